#include "device/transport/frame_headers.h"

#include <array>
#include <cstring>

#include "prm/flow.h"
#include "prm/raw.h"
#include "prm/wire.h"

namespace verbena::device {
namespace {

using Match = prm::FteMatchSetLyr24;
using Bytes = std::span<const std::byte>;

constexpr std::uint32_t kEtherTypeServiceVlan = 0x88a8;
constexpr std::uint32_t kIpProtocolTcp = 6;
constexpr std::size_t kTcpBytes = 20;
// Where checksums stand in their headers.
constexpr std::size_t kIpv4Sum = 10, kUdpSum = 6, kTcpSum = 16;
constexpr unsigned kTcpAck = 1u << 4;

std::uint32_t load16(const std::byte* p) {
  return static_cast<std::uint32_t>(p[0]) << 8 | static_cast<std::uint32_t>(p[1]);
}

// Ones' complement sum of big-endian words.
std::uint32_t add_words(Bytes bytes, std::uint32_t sum) {
  for (std::size_t i = 0; i + 1 < bytes.size(); i += 2) sum += load16(bytes.data() + i);
  if (bytes.size() % 2) sum += static_cast<std::uint32_t>(bytes.back()) << 8;
  while (sum >> 16) sum = (sum & 0xffff) + (sum >> 16);
  return sum;
}
bool sums_up(std::uint32_t sum) { return sum == 0xffff; }

void read_l4(Bytes l4, std::uint32_t protocol, std::uint32_t pseudo, const prm::View<Match>& m, FrameHeaders& h) {
  pseudo = add_words(l4, pseudo + protocol + static_cast<std::uint32_t>(l4.size()));
  if (protocol == kIpProtocolTcp && l4.size() >= kTcpBytes) {
    const std::uint32_t word = load16(l4.data() + 12), flags = word & 0x1ff;
    h.tcp = true;
    h.tcp_ack = flags & kTcpAck;
    h.tcp_data = l4.size() > (word >> 12) * 4;
    h.l4_ok = sums_up(pseudo);
    m.set<Match::tcp_sport>(load16(l4.data())).set<Match::tcp_dport>(load16(l4.data() + 2)).set<Match::tcp_flags>(flags);
  } else if (protocol == prm::kIpProtocolUdp && l4.size() >= prm::Udp::size) {
    const prm::ConstView<prm::Udp> udp(l4.data());
    h.udp = true;
    h.l4_ok = udp.get<prm::Udp::checksum>() == 0 || sums_up(pseudo);
    m.set<Match::udp_sport>(udp.get<prm::Udp::sport>()).set<Match::udp_dport>(udp.get<prm::Udp::dport>());
  }
}

void read_ipv4(Bytes l3, const prm::View<Match>& m, FrameHeaders& h) {
  if (l3.size() < prm::Ipv4::size) return;
  const prm::ConstView<prm::Ipv4> ip(l3.data());
  const std::size_t header = ip.get<prm::Ipv4::ihl>() * 4, total = ip.get<prm::Ipv4::total_length>();
  if (ip.get<prm::Ipv4::version>() != 4 || header < prm::Ipv4::size || header > l3.size()) return;
  h.ipv4 = true;
  h.fragment = ip.get<prm::Ipv4::more_fragments>() || ip.get<prm::Ipv4::fragment_offset>();
  const bool whole = total >= header && total <= l3.size();
  h.l3_ok = whole && sums_up(add_words(l3.first(header), 0));
  const std::uint32_t protocol = ip.get<prm::Ipv4::protocol>();
  m.set<Match::ip_version>(4).set<Match::ip_protocol>(protocol).set<Match::ip_dscp>(ip.get<prm::Ipv4::dscp>());
  m.set<Match::ip_ecn>(ip.get<prm::Ipv4::ecn>()).set<Match::frag>(h.fragment);
  m.set<Match::ipv4_ihl>(ip.get<prm::Ipv4::ihl>()).set<Match::ttl_hoplimit>(ip.get<prm::Ipv4::ttl>());
  std::memcpy(m.data() + Match::src_ipv4_src_ipv6::offset + 12, ip.bytes<prm::Ipv4::src>().data(), 4);
  std::memcpy(m.data() + Match::dst_ipv4_dst_ipv6::offset + 12, ip.bytes<prm::Ipv4::dst>().data(), 4);
  if (h.fragment) return;
  const std::size_t l4 = whole ? total - header : l3.size() - header;
  read_l4(l3.subspan(header, l4), protocol, add_words(l3.subspan(prm::Ipv4::src::offset, 8), 0), m, h);
  h.l4_ok &= whole;
}

// Extension headers are not looked behind.
void read_ipv6(Bytes l3, const prm::View<Match>& m, FrameHeaders& h) {
  if (l3.size() < prm::Ipv6::size) return;
  const prm::ConstView<prm::Ipv6> ip(l3.data());
  const std::size_t payload = ip.get<prm::Ipv6::payload_length>();
  if (ip.get<prm::Ipv6::version>() != 6) return;
  const bool whole = payload <= l3.size() - prm::Ipv6::size;
  h.ipv6 = true;
  h.l3_ok = whole;
  const std::uint32_t protocol = ip.get<prm::Ipv6::next_header>(), tclass = ip.get<prm::Ipv6::traffic_class>();
  m.set<Match::ip_version>(6).set<Match::ip_protocol>(protocol).set<Match::ttl_hoplimit>(ip.get<prm::Ipv6::hop_limit>());
  m.set<Match::ip_dscp>(tclass >> 2).set<Match::ip_ecn>(tclass & 3);
  std::memcpy(m.data() + Match::src_ipv4_src_ipv6::offset, ip.bytes<prm::Ipv6::src>().data(), 16);
  std::memcpy(m.data() + Match::dst_ipv4_dst_ipv6::offset, ip.bytes<prm::Ipv6::dst>().data(), 16);
  const std::size_t l4 = whole ? payload : l3.size() - prm::Ipv6::size;
  read_l4(l3.subspan(prm::Ipv6::size, l4), protocol, add_words(l3.subspan(prm::Ipv6::src::offset, 32), 0), m, h);
  h.l4_ok &= whole;
}

bool is_tag(std::uint32_t type) { return type == prm::kEtherTypeVlan || type == kEtherTypeServiceVlan; }

// Where the network header begins, and what the type before it says: behind all VLAN tags.
std::size_t behind_tags(Bytes frame, std::uint32_t* type) {
  std::size_t at = prm::Eth::size;
  *type = prm::ConstView<prm::Eth>(frame.data()).get<prm::Eth::ethertype>();
  for (; is_tag(*type) && frame.size() >= at + prm::VlanTag::size; at += prm::VlanTag::size)
    *type = prm::ConstView<prm::VlanTag>(frame.data() + at).get<prm::VlanTag::ethertype>();
  return at;
}

// What goes into the hash: source, destination, ports, as far as the TIR wants them.
struct Input {
  std::array<std::byte, 36> bytes{};
  std::size_t count = 0;
  void add(const std::byte* from, std::size_t n) {
    std::memcpy(bytes.data() + count, from, n);
    count += n;
  }
  // Source and destination; symmetric: what is the same with the two exchanged.
  void add_pair(const std::byte* source, const std::byte* destination, std::size_t n, bool first, bool second, bool symmetric) {
    if (!symmetric || !first || !second) {
      if (first) add(source, n);
      if (second) add(destination, n);
      return;
    }
    for (std::size_t i = 0; i < n; ++i) bytes[count + i] = source[i] | destination[i];
    for (std::size_t i = 0; i < n; ++i) bytes[count + n + i] = source[i] ^ destination[i];
    count += 2 * n;
  }
};

// For every bit of the input that is set: the 32 bits of the key from there on.
std::uint32_t toeplitz(const std::uint8_t (&key)[40], const Input& in) {
  std::uint32_t result = 0, window = static_cast<std::uint32_t>(key[0]) << 24 | static_cast<std::uint32_t>(key[1]) << 16 |
                                     static_cast<std::uint32_t>(key[2]) << 8 | key[3];
  for (std::size_t i = 0; i < in.count; ++i)
    for (int bit = 7; bit >= 0; --bit) {
      if (static_cast<unsigned>(in.bytes[i]) >> bit & 1) result ^= window;
      window = window << 1 | (key[i + 4] >> bit & 1u);
    }
  return result;
}

}  // namespace

FrameHeaders read_headers(Bytes frame) {
  FrameHeaders h;
  const prm::View<Match> m(h.match);
  const prm::ConstView<prm::Eth> eth(frame.data());
  std::memcpy(m.data() + Match::smac_47_16::offset, eth.bytes<prm::Eth::src>().data(), 6);
  std::memcpy(m.data() + Match::dmac_47_16::offset, eth.bytes<prm::Eth::dst>().data(), 6);
  h.group = (frame[0] & std::byte{1}) != std::byte{0};
  const std::uint32_t outer = eth.get<prm::Eth::ethertype>();
  if (is_tag(outer) && frame.size() >= prm::Eth::size + prm::VlanTag::size) {
    const auto tci = prm::ConstView<prm::VlanTag>(frame.data() + prm::Eth::size).get<prm::VlanTag::tci>();
    h.vlan = outer == prm::kEtherTypeVlan;
    h.tci = static_cast<std::uint16_t>(tci);
    m.set<Match::first_prio>(tci >> 13).set<Match::first_cfi>(tci >> 12 & 1).set<Match::first_vid>(tci & 0xfff);
    m.set<Match::cvlan_tag>(h.vlan).set<Match::svlan_tag>(!h.vlan);
  }
  std::uint32_t type = 0;
  const std::size_t at = behind_tags(frame, &type);
  m.set<Match::ethertype>(type);
  if (type == prm::kEtherTypeIpv4) read_ipv4(frame.subspan(at), m, h);
  if (type == prm::kEtherTypeIpv6) read_ipv6(frame.subspan(at), m, h);
  return h;
}

namespace {

void store16(std::byte* p, std::uint32_t v) {
  p[0] = static_cast<std::byte>(v >> 8);
  p[1] = static_cast<std::byte>(v);
}

// The checksum field at `at` of `bytes`, over all of them and what `sum` stands for.
void fill_sum(std::span<std::byte> bytes, std::size_t at, std::uint32_t sum) {
  store16(bytes.data() + at, 0);
  store16(bytes.data() + at, ~add_words(bytes, sum) & 0xffff);
}

void fill_l4(std::span<std::byte> l4, std::uint32_t protocol, std::uint32_t pseudo) {
  pseudo += protocol + static_cast<std::uint32_t>(l4.size());
  if (protocol == kIpProtocolTcp && l4.size() >= kTcpBytes) return fill_sum(l4, kTcpSum, pseudo);
  if (protocol != prm::kIpProtocolUdp || l4.size() < prm::Udp::size) return;
  fill_sum(l4, kUdpSum, pseudo);
  if (load16(l4.data() + kUdpSum) == 0) store16(l4.data() + kUdpSum, 0xffff);  // zero says that there is none
}

}  // namespace

void read_roce_headers(const fabric::Address& address, bool back, std::byte (&match)[kMatchBytes]) {
  std::memset(match, 0, sizeof match);
  const prm::View<Match> m(match);
  const auto put = [&](std::size_t source, std::size_t destination, const auto& from, const auto& to, std::size_t skip) {
    const std::size_t bytes = from.size() - skip;
    std::memcpy(m.data() + source + skip, (back ? to : from).data() + skip, bytes);
    std::memcpy(m.data() + destination + skip, (back ? from : to).data() + skip, bytes);
  };
  put(Match::smac_47_16::offset, Match::dmac_47_16::offset, address.smac, address.dmac, 0);
  if (address.carrier == fabric::Carrier::roce_v1) {
    m.set<Match::ethertype>(prm::kEtherTypeRoce);
    return;
  }
  const bool ipv4 = address.carrier == fabric::Carrier::roce_v2_ipv4;
  m.set<Match::ethertype>(ipv4 ? prm::kEtherTypeIpv4 : prm::kEtherTypeIpv6).set<Match::ip_version>(ipv4 ? 4 : 6);
  put(Match::src_ipv4_src_ipv6::offset, Match::dst_ipv4_dst_ipv6::offset, address.sgid, address.dgid, ipv4 ? 12 : 0);
  if (ipv4) m.set<Match::ipv4_ihl>(5);
  m.set<Match::ip_protocol>(prm::kIpProtocolUdp).set<Match::ttl_hoplimit>(address.hop_limit);
  m.set<Match::ip_dscp>(address.traffic_class >> 2).set<Match::ip_ecn>(address.traffic_class & 3);
  m.set<Match::udp_sport>(address.udp_sport).set<Match::udp_dport>(prm::kUdpPortRoceV2);
}

void fill_checksums(std::span<std::byte> frame, bool l3_wanted, bool l4_wanted) {
  std::uint32_t type = 0;
  const auto l3 = frame.subspan(behind_tags(frame, &type));
  if (type == prm::kEtherTypeIpv4 && l3.size() >= prm::Ipv4::size) {
    const prm::ConstView<prm::Ipv4> ip(l3.data());
    const std::size_t header = ip.get<prm::Ipv4::ihl>() * 4, total = ip.get<prm::Ipv4::total_length>();
    if (header < prm::Ipv4::size || total < header || total > l3.size()) return;
    if (l3_wanted) fill_sum(l3.first(header), kIpv4Sum, 0);
    if (l4_wanted && !ip.get<prm::Ipv4::more_fragments>() && !ip.get<prm::Ipv4::fragment_offset>())
      fill_l4(l3.subspan(header, total - header), ip.get<prm::Ipv4::protocol>(), add_words(l3.subspan(prm::Ipv4::src::offset, 8), 0));
  } else if (type == prm::kEtherTypeIpv6 && l3.size() >= prm::Ipv6::size && l4_wanted) {
    const prm::ConstView<prm::Ipv6> ip(l3.data());
    const std::size_t payload = ip.get<prm::Ipv6::payload_length>();
    if (payload > l3.size() - prm::Ipv6::size) return;
    fill_l4(l3.subspan(prm::Ipv6::size, payload), ip.get<prm::Ipv6::next_header>(),
            add_words(l3.subspan(prm::Ipv6::src::offset, 32), 0));
  }
}

FrameHash hash_headers(const TirContext& tir, const FrameHeaders& h) {
  using Select = prm::RxHashFieldSelect;
  const bool wanted_l3 = tir.hash_ipv6 ? h.ipv6 : h.ipv4, wanted_l4 = tir.hash_udp ? h.udp : h.tcp;
  const std::uint32_t ports = tir.hash_fields & (Select::l4_sport | Select::l4_dport);
  FrameHash hash;
  if (!wanted_l3 || (ports && !wanted_l4)) return hash;
  Input in;
  const std::size_t n = h.ipv6 ? 16 : 4, skip = 16 - n;
  in.add_pair(h.match + Match::src_ipv4_src_ipv6::offset + skip, h.match + Match::dst_ipv4_dst_ipv6::offset + skip, n,
              tir.hash_fields & Select::src_ip, tir.hash_fields & Select::dst_ip, tir.hash_symmetric);
  const std::byte* const port = h.match + (h.udp ? Match::udp_sport::offset : Match::tcp_sport::offset);
  in.add_pair(port, port + 2, 2, ports & Select::l4_sport, ports & Select::l4_dport, tir.hash_symmetric);
  if (tir.hash_fn == static_cast<std::uint8_t>(prm::RxHashFn::toeplitz)) {
    hash.value = toeplitz(tir.key, in);
  } else {
    std::uint8_t x = 0;
    for (std::size_t i = 0; i < in.count; ++i) x ^= static_cast<std::uint8_t>(in.bytes[i]);
    hash.value = static_cast<std::uint8_t>(~x);
  }
  hash.type = static_cast<std::uint8_t>((h.ipv6 ? 2 : 1) << 2 | (ports == 0 ? 0 : h.udp ? 2 : 1) << 6);
  return hash;
}

}  // namespace verbena::device
