#include "device/transport/trace.h"

#include "device/memory/transfer.h"
#include "fabric/frame.h"

namespace verbena::device {

using prm::BthOperation;

std::unique_ptr<Trace> Trace::open(const std::string& file) { return std::unique_ptr<Trace>(new Trace(file)); }

fabric::Capture* Trace::port(const std::string& host, unsigned device, unsigned port) {
  const std::string name = fabric::Capture::port_name(host, device, port);
  std::lock_guard guard(mutex_);
  auto found = ports_.find(name);
  if (found == ports_.end()) {
    auto opened = fabric::Capture::open(file_, {name});
    found = ports_.emplace(name, opened ? std::move(*opened) : nullptr).first;
  }
  return found->second.get();
}

void Trace::frame(const std::string& host, unsigned device, unsigned port_number, std::span<const std::byte> bytes) {
  if (fabric::Capture* capture = port(host, device, port_number)) capture->write(0, bytes);
}

void Trace::packet(const std::string& host, unsigned device, unsigned port_number, const fabric::Packet& packet,
                   const Payload& payload, unsigned mtu, TracePart part) {
  fabric::Capture* capture = port(host, device, port_number);
  if (capture == nullptr) return;
  fabric::Packet copy = packet;
  std::vector<std::byte> bytes(std::min<std::uint64_t>(payload.bytes, mtu)), frame;
  const auto service = static_cast<prm::BthService>(packet.opcode >> 5);
  const bool response = static_cast<BthOperation>(packet.opcode & 0x1f) == BthOperation::rdma_read_response_only;
  std::uint64_t at = 0;
  do {
    const std::uint64_t n = std::min<std::uint64_t>(payload.bytes - at, mtu);
    bytes.resize(n);
    PieceList to;
    to.add(nullptr, reinterpret_cast<std::uint64_t>(bytes.data()), n);
    if (n != 0 && move(to, 0, *payload.pieces, payload.at + at, n) != Moved::ok) return;
    if (response) {
      const bool first = part.begins && at == 0, last = part.ends && at + n == payload.bytes;
      copy.opcode = prm::bth_opcode(service, first  ? (last ? BthOperation::rdma_read_response_only
                                                            : BthOperation::rdma_read_response_first)
                                             : last ? BthOperation::rdma_read_response_last
                                                    : BthOperation::rdma_read_response_middle);
      copy.psn = (packet.psn + static_cast<std::uint32_t>(at / mtu)) & 0xffffff;
    }
    copy.payload = bytes;
    copy.payload_bytes = static_cast<std::uint32_t>(n);
    if (fabric::encode_frame(copy, frame)) capture->write(0, frame);
    at += n;
  } while (at < payload.bytes);
}

}  // namespace verbena::device
