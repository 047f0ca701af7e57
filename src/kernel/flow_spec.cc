// Specifications of a flow, from the verbs' structures to the device's match.
#include <arpa/inet.h>
#include <rdma/ib_user_verbs.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "kernel/counters_object.h"
#include "kernel/flow.h"

namespace verbena::kernel {
namespace {

using Match = prm::FteMatchSetLyr24;
using Bytes = std::span<const std::byte>;

// IB_FLOW_SPEC_*
struct Spec {
  static constexpr std::uint32_t eth = 0x20, ib = 0x22, ipv4 = 0x30, ipv6 = 0x31, esp = 0x34, tcp = 0x40, udp = 0x41,
                                 vxlan = 0x50, gre = 0x51, mpls = 0x60, inner = 0x100;
  static constexpr std::uint32_t tag = 0x1000, drop = 0x1001, handle = 0x1002, count = 0x1003;
};
constexpr std::size_t kHeader = sizeof(ib_uverbs_flow_spec_hdr);
constexpr std::uint32_t kProtocolTcp = 6, kProtocolUdp = 17;
constexpr std::uint32_t kTagEnd = 1u << 24;

// Value and mask of a filter. A program built with a shorter one leaves the rest unmatched.
template <class Filter>
struct Pair {
  Filter value{}, mask{};
};
template <class Filter>
int read_pair(Bytes body, Pair<Filter>* out) {
  const std::size_t each = body.size() / 2;
  if (each == 0 || body.size() % 2) return EINVAL;
  const auto beyond = body.subspan(each).subspan(std::min(each, sizeof(Filter)));
  if (std::ranges::any_of(beyond, [](std::byte b) { return b != std::byte{0}; })) return EINVAL;
  std::memcpy(&out->value, body.data(), std::min(each, sizeof(Filter)));
  std::memcpy(&out->mask, body.data() + each, std::min(each, sizeof(Filter)));
  return 0;
}

class Reader {
 public:
  Reader(const File& file, FlowRequest& out)
      : file_(file), out_(out), value_(out.match.value.data()), mask_(out.match.mask.data()) {}

  int read(std::uint32_t type, Bytes body) {
    switch (type) {
      case Spec::eth:
        return with<ib_uverbs_flow_eth_filter>(body, [&](const auto& pair) { return eth(pair); });
      case Spec::ipv4:
        return with<ib_uverbs_flow_ipv4_filter>(body, [&](const auto& pair) { return ipv4(pair); });
      case Spec::ipv6:
        return with<ib_uverbs_flow_ipv6_filter>(body, [&](const auto& pair) { return ipv6(pair); });
      case Spec::tcp:
      case Spec::udp:
        return with<ib_uverbs_flow_tcp_udp_filter>(body, [&](const auto& pair) { return ports(type == Spec::tcp, pair); });
      case Spec::tag:
        return tag(body);
      case Spec::drop:
        if (!body.empty()) return EINVAL;
        out_.verdict.drop = true;
        return 0;
      case Spec::count:
        return count(body);
      case Spec::handle:
        return EINVAL;  // there are no flow actions, so the handle is nobody's
      default:
        return is_known(type) ? EOPNOTSUPP : EINVAL;
    }
  }

  // An Ethernet type beside an IP specification must be that of the IP.
  int finish() {
    if (!ethertype_mask_ || !ip_type_ || ethertype_mask_ != 0xffff) return ethertype_mask_ && ip_type_ ? EINVAL : 0;
    return ethertype_ == ip_type_ ? 0 : EINVAL;
  }

 private:
  // What the verbs have and this device does not look at: inner headers, tunnels, IPsec.
  static bool is_known(std::uint32_t type) {
    constexpr std::uint32_t known[] = {Spec::eth, Spec::ipv4, Spec::ipv6, Spec::esp,  Spec::tcp,
                                       Spec::udp, Spec::gre,  Spec::vxlan, Spec::mpls};
    return std::ranges::find(known, type & ~Spec::inner) != std::end(known);
  }
  template <class Filter, class Use>
  int with(Bytes body, Use use) {
    Pair<Filter> pair;
    if (int error = read_pair(body, &pair)) return error;
    return use(pair);
  }
  template <class Field>
  void set(std::uint32_t value, std::uint32_t mask) {
    value_.set<Field>(value);
    mask_.set<Field>(mask);
  }
  void copy(std::size_t offset, const void* value, const void* mask, std::size_t length) {
    std::memcpy(value_.data() + offset, value, length);
    std::memcpy(mask_.data() + offset, mask, length);
  }

  int eth(const Pair<ib_uverbs_flow_eth_filter>& p) {
    copy(Match::dmac_47_16::offset, p.value.dst_mac, p.mask.dst_mac, 6);
    copy(Match::smac_47_16::offset, p.value.src_mac, p.mask.src_mac, 6);
    if (const std::uint32_t mask = ntohs(p.mask.vlan_tag)) {
      const std::uint32_t value = ntohs(p.value.vlan_tag);
      set<Match::cvlan_tag>(1, 1);
      set<Match::first_vid>(value & 0xfff, mask & 0xfff);
      set<Match::first_cfi>(value >> 12 & 1, mask >> 12 & 1);
      set<Match::first_prio>(value >> 13, mask >> 13);
    }
    set<Match::ethertype>(ntohs(p.value.ether_type), ntohs(p.mask.ether_type));
    ethertype_ = ntohs(p.value.ether_type);
    ethertype_mask_ = ntohs(p.mask.ether_type);
    if (first_) out_.multicast_only = p.mask.dst_mac[0] & p.value.dst_mac[0] & 1;
    first_ = false;
    return 0;
  }
  int ipv4(const Pair<ib_uverbs_flow_ipv4_filter>& p) {
    if (p.mask.ttl || p.mask.flags) return EOPNOTSUPP;
    set<Match::ip_version>(4, 0xf);
    copy(Match::src_ipv4_src_ipv6::offset + 12, &p.value.src_ip, &p.mask.src_ip, 4);
    copy(Match::dst_ipv4_dst_ipv6::offset + 12, &p.value.dst_ip, &p.mask.dst_ip, 4);
    ip_type_ = 0x0800;
    if (first_) out_.multicast_only = (ntohl(p.value.dst_ip) & 0xf0000000) == 0xe0000000;
    first_ = false;
    return traffic(p.value.tos, p.mask.tos, p.value.proto, p.mask.proto);
  }
  int ipv6(const Pair<ib_uverbs_flow_ipv6_filter>& p) {
    if (ntohl(p.mask.flow_label) >= 1u << 20) return EINVAL;
    if (p.mask.hop_limit || p.mask.reserved || p.mask.flow_label) return EOPNOTSUPP;
    set<Match::ip_version>(6, 0xf);
    copy(Match::src_ipv4_src_ipv6::offset, p.value.src_ip, p.mask.src_ip, 16);
    copy(Match::dst_ipv4_dst_ipv6::offset, p.value.dst_ip, p.mask.dst_ip, 16);
    ip_type_ = 0x86dd;
    first_ = false;
    return traffic(p.value.traffic_class, p.mask.traffic_class, p.value.next_hdr, p.mask.next_hdr);
  }
  int traffic(std::uint32_t tos, std::uint32_t tos_mask, std::uint32_t protocol, std::uint32_t protocol_mask) {
    set<Match::ip_ecn>(tos & 3, tos_mask & 3);
    set<Match::ip_dscp>(tos >> 2, tos_mask >> 2);
    return set_protocol(protocol, protocol_mask);
  }
  int ports(bool tcp, const Pair<ib_uverbs_flow_tcp_udp_filter>& p) {
    first_ = false;
    if (int error = set_protocol(tcp ? kProtocolTcp : kProtocolUdp, 0xff)) return error;
    const std::uint32_t from = ntohs(p.value.src_port), from_mask = ntohs(p.mask.src_port);
    const std::uint32_t to = ntohs(p.value.dst_port), to_mask = ntohs(p.mask.dst_port);
    if (tcp) {
      set<Match::tcp_sport>(from, from_mask);
      set<Match::tcp_dport>(to, to_mask);
    } else {
      set<Match::udp_sport>(from, from_mask);
      set<Match::udp_dport>(to, to_mask);
    }
    return 0;
  }
  // Two specifications may name the protocol if they agree.
  int set_protocol(std::uint32_t value, std::uint32_t mask) {
    if (!mask) return 0;
    if (const std::uint32_t known = mask_.get<Match::ip_protocol>())
      return known == mask && value_.get<Match::ip_protocol>() == value ? 0 : EINVAL;
    set<Match::ip_protocol>(value, mask);
    return 0;
  }
  int tag(Bytes body) {
    std::uint32_t tag = 0;
    if (body.size() < sizeof tag || kHeader + body.size() != sizeof(ib_uverbs_flow_spec_action_tag)) return EINVAL;
    std::memcpy(&tag, body.data(), sizeof tag);
    if (tag >= kTagEnd) return EINVAL;
    out_.verdict.tag = tag;
    out_.verdict.has_tag = true;
    return 0;
  }
  int count(Bytes body) {
    std::uint32_t handle = 0;
    if (kHeader + body.size() != sizeof(ib_uverbs_flow_spec_action_count)) return EINVAL;
    std::memcpy(&handle, body.data(), sizeof handle);
    int error = 0;
    Counters* counters = file_.find<Counters>(handle, UVERBS_OBJECT_COUNTERS, &error);
    if (!counters || out_.counters) return EINVAL;
    out_.counters = counters;
    return 0;
  }

  const File& file_;
  FlowRequest& out_;
  prm::View<Match> value_, mask_;  // outer headers stand first
  std::uint32_t ethertype_ = 0, ethertype_mask_ = 0, ip_type_ = 0;
  bool first_ = true;
};

}  // namespace

int read_specs(const File& file, std::span<const std::byte> specs, unsigned count, FlowRequest* out) {
  Reader reader(file, *out);
  for (unsigned i = 0; i < count; ++i) {
    ib_uverbs_flow_spec_hdr header{};
    if (specs.size() < kHeader) return EINVAL;
    std::memcpy(&header, specs.data(), kHeader);
    if (header.reserved || header.size < kHeader || header.size > specs.size()) return EINVAL;
    if (int error = reader.read(header.type, specs.subspan(kHeader, header.size - kHeader))) return error;
    specs = specs.subspan(header.size);
  }
  if (!specs.empty()) return EINVAL;
  const bool outer = std::ranges::any_of(out->match.mask, [](std::byte b) { return b != std::byte{0}; });
  out->match.criteria = outer ? prm::kMatchOuterHeaders : 0;
  return reader.finish();
}

}  // namespace verbena::kernel
