#include "fabric/frame.h"

#include <isa-l/crc.h>

#include <array>
#include <cstring>

#include "prm/wire.h"

namespace verbena::fabric {
namespace {

using prm::Aeth, prm::AtomicAckEth, prm::AtomicEth, prm::Bth, prm::BthOperation, prm::BthService, prm::Deth, prm::Eth;
using prm::Grh, prm::Ieth, prm::ImmDt, prm::Ipv4, prm::Ipv6, prm::Reth, prm::Udp, prm::View, prm::XrcEth;

constexpr std::size_t kLrhBytes = 8;  // of the LRH that the ICRC is computed as if there were
constexpr std::size_t kIpBytesMax = 0xffff;

// A zeroed header at the end of `out`. The view is good until the next one.
template <class L>
View<L> append(std::vector<std::byte>& out) {
  out.resize(out.size() + L::size);
  return View<L>(out.data() + out.size() - L::size);
}

template <std::size_t N>
void copy(std::span<std::byte, N> to, const std::uint8_t* from) {
  std::memcpy(to.data(), from, N);
}

std::uint16_t internet_checksum(std::span<const std::byte> header) {
  std::uint32_t sum = 0;
  for (std::size_t i = 0; i < header.size(); i += 4) {
    const std::uint32_t dword = prm::load_be32(header.data() + i);
    sum += (dword >> 16) + (dword & 0xffff);
  }
  while (sum >> 16) sum = (sum & 0xffff) + (sum >> 16);
  return static_cast<std::uint16_t>(~sum);
}

void put_ethernet(const Address& a, std::uint32_t ethertype, std::vector<std::byte>& out) {
  const auto eth = append<Eth>(out);
  copy(eth.bytes<Eth::dst>(), a.dmac.data());
  copy(eth.bytes<Eth::src>(), a.smac.data());
  eth.set<Eth::ethertype>(static_cast<std::uint16_t>(ethertype));
}

void put_ipv4(const Address& a, std::size_t payload, std::vector<std::byte>& out) {
  const auto ip = append<Ipv4>(out);
  ip.set<Ipv4::version>(4).set<Ipv4::ihl>(Ipv4::size / 4);
  ip.set<Ipv4::dscp>(a.traffic_class >> 2).set<Ipv4::ecn>(a.traffic_class & 3);
  ip.set<Ipv4::total_length>(static_cast<std::uint32_t>(Ipv4::size + payload));
  ip.set<Ipv4::dont_fragment>(1).set<Ipv4::ttl>(a.hop_limit).set<Ipv4::protocol>(prm::kIpProtocolUdp);
  copy(ip.bytes<Ipv4::src>(), a.sgid.data() + 12);
  copy(ip.bytes<Ipv4::dst>(), a.dgid.data() + 12);
  ip.set<Ipv4::checksum>(internet_checksum({ip.data(), Ipv4::size}));
}

// An IPv6 header, or the GRH of the same shape.
void put_ipv6(const Address& a, std::uint32_t next_header, std::size_t payload, std::vector<std::byte>& out) {
  const auto ip = append<Ipv6>(out);
  ip.set<Ipv6::version>(6).set<Ipv6::traffic_class>(a.traffic_class).set<Ipv6::flow_label>(a.flow_label & 0xfffff);
  ip.set<Ipv6::payload_length>(static_cast<std::uint32_t>(payload)).set<Ipv6::next_header>(next_header);
  ip.set<Ipv6::hop_limit>(a.hop_limit);
  copy(ip.bytes<Ipv6::src>(), a.sgid.data());
  copy(ip.bytes<Ipv6::dst>(), a.dgid.data());
}

void put_udp(const Address& a, std::size_t payload, std::vector<std::byte>& out) {
  const auto udp = append<Udp>(out);
  udp.set<Udp::sport>(a.udp_sport ? a.udp_sport : flow_label_to_udp_sport(a.flow_label));
  udp.set<Udp::dport>(prm::kUdpPortRoceV2).set<Udp::length>(static_cast<std::uint32_t>(Udp::size + payload));
  // checksum 0, none: the ICRC serves, and NICs do the same over IPv6
}

// The invariant CRC covers the packet from the network header on as if it stood behind an LRH of ones, with every
// field that routers may change taken as ones. `packet` begins at the network header and ends before the ICRC.
std::uint32_t icrc(std::span<const std::byte> packet, Carrier carrier) {
  const bool v4 = carrier == Carrier::roce_v2_ipv4, v1 = carrier == Carrier::roce_v1;
  const std::size_t network = v4 ? Ipv4::size : Ipv6::size, udp = v1 ? 0 : Udp::size;
  const std::size_t head_bytes = network + udp + Bth::size;
  std::array<std::byte, kLrhBytes + Ipv6::size + Udp::size + Bth::size> head;
  head.fill(std::byte{0xff});
  std::byte* const p = head.data() + kLrhBytes;
  std::memcpy(p, packet.data(), head_bytes);
  if (v4) {
    View<Ipv4>(p).set<Ipv4::dscp>(0x3f).set<Ipv4::ecn>(3).set<Ipv4::ttl>(0xff).set<Ipv4::checksum>(0xffff);
  } else {
    View<Ipv6>(p).set<Ipv6::traffic_class>(0xff).set<Ipv6::flow_label>(0xfffff).set<Ipv6::hop_limit>(0xff);
  }
  if (!v1) View<Udp>(p + network).set<Udp::checksum>(0xffff);
  View<Bth>(p + network + udp).set<Bth::variant>(0xff);

  const auto* bytes = reinterpret_cast<const std::uint8_t*>(head.data());
  const std::uint32_t crc = crc32_gzip_refl(0, bytes, kLrhBytes + head_bytes);
  const auto rest = packet.subspan(head_bytes);
  return crc32_gzip_refl(crc, reinterpret_cast<const std::uint8_t*>(rest.data()), rest.size());
}

std::size_t pad_of(std::size_t payload) { return (4 - payload % 4) % 4; }

// Which extension headers follow the BTH, by the operation (IBTA volume 1, table 38).
struct Extensions {
  bool xrc, reth, atomic, aeth, atomic_ack, immediate, invalidate;
};
constexpr Extensions extensions_of(BthService service, BthOperation op) {
  using enum BthOperation;
  Extensions e{};
  // Every XRC request says which receive queue it is for.
  e.xrc = service == BthService::xrc && !(op >= rdma_read_response_first && op <= atomic_acknowledge);
  e.reth = op == rdma_write_first || op == rdma_write_only || op == rdma_write_only_imm || op == rdma_read_request;
  e.atomic = op == compare_swap || op == fetch_add;
  e.aeth = op == rdma_read_response_first || op == rdma_read_response_last || op == rdma_read_response_only ||
           op == acknowledge || op == atomic_acknowledge;
  e.atomic_ack = op == atomic_acknowledge;
  e.immediate = op == send_last_imm || op == send_only_imm || op == rdma_write_last_imm || op == rdma_write_only_imm;
  e.invalidate = op == send_last_inv || op == send_only_inv;
  return e;
}

void put_transport(const Packet& p, std::vector<std::byte>& out) {
  const auto bth = append<Bth>(out);
  bth.set<Bth::opcode>(static_cast<prm::BthOpcode>(p.opcode)).set<Bth::se>(p.solicited).set<Bth::migreq>(p.migrated);
  bth.set<Bth::padcnt>(static_cast<std::uint32_t>(pad_of(p.payload.size()))).set<Bth::pkey>(p.pkey);
  bth.set<Bth::destqp>(p.dest_qpn).set<Bth::ackreq>(p.ack_request).set<Bth::psn>(p.psn);
  const BthService service = bth.get<Bth::service>();
  const Extensions has = extensions_of(service, bth.get<Bth::operation>());
  if (service == BthService::ud) append<Deth>(out).set<Deth::qkey>(p.qkey).set<Deth::srcqp>(p.src_qpn);
  if (has.xrc) append<XrcEth>(out).set<XrcEth::xrcsrq>(p.xrc_srqn);
  if (has.reth) append<Reth>(out).set<Reth::va>(p.va).set<Reth::rkey>(p.rkey).set<Reth::dma_length>(p.length);
  if (has.atomic) {
    const auto eth = append<AtomicEth>(out);
    eth.set<AtomicEth::va>(p.va).set<AtomicEth::rkey>(p.rkey);
    eth.set<AtomicEth::swap_add>(p.swap_add).set<AtomicEth::compare>(p.compare);
  }
  if (has.aeth) append<Aeth>(out).set<Aeth::syndrome>(p.syndrome).set<Aeth::msn>(p.msn);
  if (has.atomic_ack) append<AtomicAckEth>(out).set<AtomicAckEth::original>(p.original);
  if (has.immediate) append<ImmDt>(out).set<ImmDt::imm>(p.immediate);
  if (has.invalidate) append<Ieth>(out).set<Ieth::rkey>(p.invalidate);
}

}  // namespace

std::uint16_t flow_label_to_udp_sport(std::uint32_t flow_label) {
  const std::uint32_t low = flow_label & 0x03fff, high = (flow_label & 0xfc000) >> 14;
  return static_cast<std::uint16_t>((low ^ high) | 0xc000);
}

namespace {

constexpr std::size_t network_bytes(Carrier carrier) {
  switch (carrier) {
    case Carrier::roce_v1:
      return Ipv6::size;
    case Carrier::roce_v2_ipv4:
      return Ipv4::size + Udp::size;
    default:
      return Ipv6::size + Udp::size;
  }
}

// By BTH opcode: the bytes of its extension headers.
constexpr auto kExtensionBytes = [] {
  std::array<std::uint8_t, 256> bytes{};
  for (unsigned opcode = 0; opcode < bytes.size(); ++opcode) {
    const auto service = static_cast<BthService>(opcode >> 5);
    const Extensions has = extensions_of(service, static_cast<BthOperation>(opcode & 0x1f));
    std::size_t n = service == BthService::ud ? Deth::size : 0;
    if (has.xrc) n += XrcEth::size;
    if (has.reth) n += Reth::size;
    if (has.atomic) n += AtomicEth::size;
    if (has.aeth) n += Aeth::size;
    if (has.atomic_ack) n += AtomicAckEth::size;
    if (has.immediate) n += ImmDt::size;
    if (has.invalidate) n += Ieth::size;
    bytes[opcode] = static_cast<std::uint8_t>(n);
  }
  return bytes;
}();

}  // namespace

std::size_t frame_bytes(Carrier carrier, std::uint8_t opcode, std::size_t payload) {
  return message_bytes(carrier, opcode, payload, 1);
}

std::uint64_t message_bytes(Carrier carrier, std::uint8_t opcode, std::uint64_t payload, std::uint32_t packets) {
  const std::size_t plain = Eth::size + network_bytes(carrier) + Bth::size + prm::kIcrcSize;
  // A READ response has its AETH in the first and in the last packet, everything else what it has in one of them.
  const bool response = (opcode & 0x1f) == static_cast<unsigned>(BthOperation::rdma_read_response_only);
  std::uint64_t extensions = kExtensionBytes[opcode] * (response && packets > 1 ? 2u : 1u);
  const auto service = static_cast<BthService>(opcode >> 5);
  if (extensions_of(service, static_cast<BthOperation>(opcode & 0x1f)).xrc) extensions += (packets - 1) * XrcEth::size;
  return packets * plain + extensions + payload + pad_of(payload);
}

bool encode_frame(const Packet& packet, std::vector<std::byte>& out) {
  out.clear();
  if (!packet.address) return false;
  std::vector<std::byte> transport;
  put_transport(packet, transport);
  return encode_frame(*packet.address, transport, packet.payload, out);
}

bool encode_frame(const Address& a, std::span<const std::byte> transport, std::span<const std::byte> payload,
                  std::vector<std::byte>& out) {
  out.clear();
  const std::size_t iba = transport.size() + payload.size() + pad_of(payload.size()) + prm::kIcrcSize;
  if (transport.size() < Bth::size || iba + Udp::size + Ipv4::size > kIpBytesMax) return false;

  out.reserve(Eth::size + Ipv6::size + Udp::size + iba);
  switch (a.carrier) {
    case Carrier::roce_v1:
      put_ethernet(a, prm::kEtherTypeRoce, out);
      put_ipv6(a, prm::kGrhNextHeaderIba, iba, out);
      break;
    case Carrier::roce_v2_ipv4:
      put_ethernet(a, prm::kEtherTypeIpv4, out);
      put_ipv4(a, Udp::size + iba, out);
      put_udp(a, iba, out);
      break;
    default:
      put_ethernet(a, prm::kEtherTypeIpv6, out);
      put_ipv6(a, prm::kIpProtocolUdp, Udp::size + iba, out);
      put_udp(a, iba, out);
  }
  out.insert(out.end(), transport.begin(), transport.end());
  out.insert(out.end(), payload.begin(), payload.end());
  out.resize(out.size() + pad_of(payload.size()));

  const std::uint32_t crc = icrc(std::span(out).subspan(Eth::size), a.carrier);
  for (unsigned shift = 0; shift < 32; shift += 8)  // least significant byte first
    out.push_back(static_cast<std::byte>(crc >> shift));
  return true;
}

}  // namespace verbena::fabric
