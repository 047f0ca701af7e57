#include "fabric/frame.h"

#include <isa-l/crc.h>

#include <array>
#include <cstring>

namespace verbena::fabric {
namespace {

constexpr std::size_t kEthernetBytes = 14;
constexpr std::size_t kIpv4Bytes = 20;
constexpr std::size_t kIpv6Bytes = 40;  // a GRH has the same size and shape
constexpr std::size_t kUdpBytes = 8;
constexpr std::size_t kBthBytes = 12;
constexpr std::size_t kIcrcBytes = 4;
constexpr std::uint16_t kEtherTypeIpv4 = 0x0800, kEtherTypeIpv6 = 0x86dd, kEtherTypeRoceV1 = 0x8915;
constexpr std::uint8_t kProtocolUdp = 17, kNextHeaderIba = 0x1b;

// Appends big-endian values to a byte vector.
class Writer {
 public:
  explicit Writer(std::vector<std::byte>& out) : out_(out) {}
  Writer& u8(unsigned v) {
    out_.push_back(static_cast<std::byte>(v));
    return *this;
  }
  Writer& u16(unsigned v) { return u8(v >> 8).u8(v); }
  Writer& u32(std::uint32_t v) { return u16(v >> 16).u16(v); }
  template <std::size_t N>
  Writer& bytes(const std::array<std::uint8_t, N>& from) {
    const auto* p = reinterpret_cast<const std::byte*>(from.data());
    out_.insert(out_.end(), p, p + N);
    return *this;
  }
  Writer& bytes(std::span<const std::byte> from) {
    out_.insert(out_.end(), from.begin(), from.end());
    return *this;
  }

 private:
  std::vector<std::byte>& out_;
};

std::uint16_t internet_checksum(std::span<const std::byte> header) {
  std::uint32_t sum = 0;
  for (std::size_t i = 0; i + 1 < header.size(); i += 2)
    sum += std::to_integer<std::uint32_t>(header[i]) << 8 | std::to_integer<std::uint32_t>(header[i + 1]);
  while (sum >> 16) sum = (sum & 0xffff) + (sum >> 16);
  return static_cast<std::uint16_t>(~sum);
}

void put_ipv4(const Address& a, std::size_t ip_payload, std::vector<std::byte>& out) {
  const std::size_t start = out.size();
  Writer w(out);
  w.u8(0x45).u8(a.traffic_class).u16(static_cast<unsigned>(kIpv4Bytes + ip_payload));
  w.u16(0).u16(0x4000);  // no identification: the packet is never fragmented
  w.u8(a.hop_limit).u8(kProtocolUdp).u16(0);
  for (const Gid* gid : {&a.sgid, &a.dgid})
    for (std::size_t i = 12; i < 16; ++i) w.u8((*gid)[i]);
  const std::uint16_t sum = internet_checksum(std::span(out).subspan(start));
  out[start + 10] = static_cast<std::byte>(sum >> 8);
  out[start + 11] = static_cast<std::byte>(sum);
}

void put_ipv6(const Address& a, std::size_t ip_payload, std::uint8_t next_header, std::vector<std::byte>& out) {
  Writer w(out);
  w.u32(6u << 28 | std::uint32_t{a.traffic_class} << 20 | (a.flow_label & 0xfffff));
  w.u16(static_cast<unsigned>(ip_payload)).u8(next_header).u8(a.hop_limit);
  w.bytes(a.sgid).bytes(a.dgid);
}

void mask(std::byte* p, std::uint8_t bits = 0xff) { *p |= std::byte{bits}; }

// The invariant CRC covers the packet from the network header on as if it stood behind an LRH of ones, with every
// field that a router or the network stack may change taken as ones.
std::uint32_t icrc(std::span<const std::byte> frame, std::size_t network_bytes, bool udp) {
  std::array<std::byte, 8 + kIpv6Bytes + kUdpBytes + kBthBytes> head;
  head.fill(std::byte{0xff});
  const std::size_t head_bytes = network_bytes + (udp ? kUdpBytes : 0) + kBthBytes;
  std::byte* network = head.data() + 8;
  std::memcpy(network, frame.data() + kEthernetBytes, head_bytes);
  if (network_bytes == kIpv4Bytes) {
    mask(network + 1);                       // type of service
    mask(network + 8);                       // time to live
    mask(network + 10), mask(network + 11);  // header checksum
  } else {
    mask(network, 0x0f);  // traffic class and flow label
    mask(network + 1), mask(network + 2), mask(network + 3);
    mask(network + 7);  // hop limit
  }
  std::byte* transport = network + network_bytes;
  if (udp) {
    mask(transport + 6), mask(transport + 7);  // UDP checksum
    transport += kUdpBytes;
  }
  mask(transport + 4);  // BTH: FECN, BECN and the reserved bits beside them

  std::uint32_t crc = crc32_gzip_refl(0, reinterpret_cast<const std::uint8_t*>(head.data()), 8 + head_bytes);
  const auto rest = frame.subspan(kEthernetBytes + head_bytes);
  return crc32_gzip_refl(crc, reinterpret_cast<const std::uint8_t*>(rest.data()), rest.size());
}

}  // namespace

std::uint16_t flow_label_to_udp_sport(std::uint32_t flow_label) {
  const std::uint32_t low = flow_label & 0x03fff, high = (flow_label & 0xfc000) >> 14;
  return static_cast<std::uint16_t>((low ^ high) | 0xc000);
}

bool encode_frame(const Address& a, std::span<const std::byte> transport, std::span<const std::byte> payload,
                  std::vector<std::byte>& out) {
  out.clear();
  const std::size_t pad = (4 - payload.size() % 4) % 4;
  const std::size_t iba = transport.size() + payload.size() + pad + kIcrcBytes;
  const bool v1 = a.carrier == Carrier::roce_v1, ipv4 = a.carrier == Carrier::roce_v2_ipv4;
  const std::size_t network_bytes = ipv4 ? kIpv4Bytes : kIpv6Bytes;
  if (transport.size() < kBthBytes || iba + kUdpBytes + kIpv4Bytes > 0xffff) return false;

  out.reserve(kEthernetBytes + network_bytes + kUdpBytes + iba);
  const std::uint16_t ether_type = v1 ? kEtherTypeRoceV1 : ipv4 ? kEtherTypeIpv4 : kEtherTypeIpv6;
  Writer w(out);
  w.bytes(a.dmac).bytes(a.smac).u16(ether_type);
  if (v1) {
    put_ipv6(a, iba, kNextHeaderIba, out);
  } else {
    if (ipv4)
      put_ipv4(a, kUdpBytes + iba, out);
    else
      put_ipv6(a, kUdpBytes + iba, kProtocolUdp, out);
    w.u16(a.udp_sport ? a.udp_sport : flow_label_to_udp_sport(a.flow_label));
    w.u16(kRoceV2Port).u16(static_cast<unsigned>(kUdpBytes + iba)).u16(0);  // no checksum: the ICRC serves
  }
  w.bytes(transport).bytes(payload);
  for (std::size_t i = 0; i < pad; ++i) w.u8(0);

  const std::uint32_t crc = icrc(out, network_bytes, !v1);
  for (unsigned shift = 0; shift < 32; shift += 8) w.u8(crc >> shift);  // least significant byte first
  return true;
}

}  // namespace verbena::fabric
