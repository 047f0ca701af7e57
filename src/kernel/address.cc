#include "kernel/address.h"

#include <rdma/ib_user_ioctl_verbs.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

namespace verbena::kernel {
namespace {

using Raw = std::array<std::uint8_t, 16>;
using Mac = std::array<std::uint8_t, 6>;

constexpr std::uint32_t kFlowLabelMask = 0xfffff;
constexpr std::uint8_t kDefaultHopLimit = 64;

bool is_mapped_ipv4(const Raw& gid) {
  static constexpr std::uint8_t prefix[12] = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff};
  return std::equal(std::begin(prefix), std::end(prefix), gid.begin());
}

bool is_link_local(const Raw& gid) { return gid[0] == 0xfe && (gid[1] & 0xc0) == 0x80; }

Mac multicast_mac(const Raw& gid) {
  if (is_mapped_ipv4(gid))
    return {0x01, 0x00, 0x5e, static_cast<std::uint8_t>(gid[13] & 0x7f), gid[14], gid[15]};
  return {0x33, 0x33, gid[12], gid[13], gid[14], gid[15]};
}

// Takes the place of neighbour discovery. A link-local address holds the MAC; one of ours is in the table; the
// addresses that ports get by default tell it (device/shared/gids.cc). For any other address the MAC is made up
// from it: the fabric routes by GID, so the MAC only shows in captures.
int unicast_mac(Node& node, const Raw& gid, Mac* mac) {
  if (is_link_local(gid)) {
    *mac = {static_cast<std::uint8_t>(gid[8] ^ 2), gid[9], gid[10], gid[13], gid[14], gid[15]};
    return 0;
  }
  for (unsigned i = 0; i < node.caps().gid_table_size; ++i) {
    Gid own;
    if (int error = node.gid(1, i, &own)) return error;
    if (!own.valid) break;
    if (own.raw == gid) {
      *mac = own.mac;
      return 0;
    }
  }
  if (is_mapped_ipv4(gid) && gid[12] == 198 && gid[13] == 18 && gid[15]) {
    const unsigned port = (gid[15] - 1u) % 2, device = (gid[15] - 1u) / 2;
    *mac = {0x02, 0x56, 0, gid[14], static_cast<std::uint8_t>(device), static_cast<std::uint8_t>(port + 1)};
  } else {
    *mac = {0x02, 0x57, gid[12], gid[13], gid[14], gid[15]};
  }
  return 0;
}

// How the kernel spreads connections over UDP source ports.
std::uint16_t source_port(std::uint32_t flow_label, std::uint32_t local_qpn, std::uint32_t remote_qpn) {
  constexpr std::uint32_t kLowBits = 0x3fff, kFirstPort = 0xc000;
  if (!flow_label) {
    std::uint64_t v = std::uint64_t{local_qpn} * remote_qpn;
    v ^= v >> 20;
    v ^= v >> 40;
    flow_label = static_cast<std::uint32_t>(v) & kFlowLabelMask;
  }
  return static_cast<std::uint16_t>(((flow_label & kLowBits) ^ (flow_label >> 14)) | kFirstPort);
}

// ads.stat_rate of a rate of enum ib_rate: five more, but for the ones that came later.
struct LaterRate {
  std::uint8_t ib_rate, code;
};
constexpr LaterRate kLaterRates[] = {{12, 1}, {15, 2}, {16, 3}, {17, 4}, {20, 5}, {21, 6}};  // 56 25 100 200 50 400
constexpr unsigned kRateOffset = 5;

unsigned code_of(unsigned ib_rate) {
  for (const LaterRate& later : kLaterRates)
    if (later.ib_rate == ib_rate) return later.code;
  return ib_rate + kRateOffset;
}

std::uint8_t ib_rate_of(unsigned code) {
  for (const LaterRate& later : kLaterRates)
    if (later.code == code) return later.ib_rate;
  return static_cast<std::uint8_t>(code ? code - kRateOffset : 0);
}

}  // namespace

bool is_multicast(const Raw& gid) { return gid[0] == 0xff || (is_mapped_ipv4(gid) && (gid[12] & 0xf0) == 0xe0); }

AddressAttr from_abi(const ib_uverbs_ah_attr& attr) {
  AddressAttr out;
  std::memcpy(out.dgid.data(), attr.grh.dgid, 16);
  out.flow_label = attr.grh.flow_label;
  out.sgid_index = attr.grh.sgid_index;
  out.hop_limit = attr.grh.hop_limit;
  out.traffic_class = attr.grh.traffic_class;
  out.sl = attr.sl;
  out.static_rate = attr.static_rate;
  out.port = attr.port_num;
  out.is_global = attr.is_global;
  return out;
}

AddressAttr from_abi(const ib_uverbs_qp_dest& dest) {
  AddressAttr out;
  std::memcpy(out.dgid.data(), dest.dgid, 16);
  out.flow_label = dest.flow_label;
  out.sgid_index = dest.sgid_index;
  out.hop_limit = dest.hop_limit;
  out.traffic_class = dest.traffic_class;
  out.sl = dest.sl;
  out.static_rate = dest.static_rate;
  out.port = dest.port_num;
  out.is_global = dest.is_global;
  return out;
}

ib_uverbs_qp_dest to_abi(const AddressAttr& attr) {
  ib_uverbs_qp_dest out{};
  std::memcpy(out.dgid, attr.dgid.data(), 16);
  out.flow_label = attr.flow_label;
  out.sgid_index = attr.sgid_index;
  out.hop_limit = attr.hop_limit;
  out.traffic_class = attr.traffic_class;
  out.sl = attr.sl;
  out.static_rate = attr.static_rate;
  out.is_global = attr.is_global;
  out.port_num = attr.port;
  return out;
}

int resolve_address(Node& node, const AddressAttr& attr, ResolvedAddress* out) {
  if (attr.port != 1 || !attr.is_global) return EINVAL;
  out->attr = attr;
  if (int error = node.gid(attr.port, attr.sgid_index, &out->source)) return error;
  if (!out->source.valid) return ENODATA;
  if (is_multicast(attr.dgid)) {
    out->dmac = multicast_mac(attr.dgid);
    return 0;
  }
  if (std::all_of(attr.dgid.begin(), attr.dgid.end(), [](std::uint8_t b) { return b == 0; })) return EINVAL;
  return unicast_mac(node, attr.dgid, &out->dmac);
}

int stat_rate_of(const Caps& caps, std::uint8_t ib_rate, std::uint8_t* code) {
  constexpr unsigned kSlowest = 2, kLast = 23;  // 2.5 and 800 Gbit/s, as enum ib_rate counts
  *code = 0;
  if (ib_rate == 0 || ib_rate == kLast) return 0;
  if (ib_rate < kSlowest || ib_rate > kLast) return EINVAL;
  // Downwards in the order of the enumeration, which is not that of the rates: as mlx5_ib does.
  for (unsigned rate = ib_rate; rate >= kSlowest; --rate) {
    const unsigned candidate = code_of(rate);
    if (candidate < 16 && caps.stat_rates >> candidate & 1) {
      *code = static_cast<std::uint8_t>(candidate);
      break;
    }
  }
  return 0;
}

void set_path(const prm::View<prm::Ads>& path, const ResolvedAddress& address, std::uint32_t local_qpn,
              std::uint32_t remote_qpn) {
  using prm::Ads;
  const AddressAttr& attr = address.attr;
  const Mac& mac = address.dmac;
  path.set<Ads::rmac_47_32>(std::uint32_t{mac[0]} << 8 | mac[1]);
  path.set<Ads::rmac_31_0>(std::uint32_t{mac[2]} << 24 | std::uint32_t{mac[3]} << 16 | std::uint32_t{mac[4]} << 8 |
                           mac[5]);
  if (address.source.type == IB_UVERBS_GID_TYPE_ROCE_V2) {
    path.set<Ads::udp_sport>(source_port(attr.flow_label & kFlowLabelMask, local_qpn, remote_qpn));
    path.set<Ads::dscp>(attr.traffic_class >> 2);
  }
  path.set<Ads::eth_prio>(attr.sl & 7);
  path.set<Ads::sl>(attr.sl & 15);
  path.set<Ads::grh>(1);
  path.set<Ads::src_addr_index>(attr.sgid_index);
  path.set<Ads::hop_limit>(attr.hop_limit ? attr.hop_limit : kDefaultHopLimit);
  path.set<Ads::tclass>(attr.traffic_class);
  path.set<Ads::flow_label>(attr.flow_label & kFlowLabelMask);
  std::memcpy(path.bytes<Ads::rgid_rip>().data(), attr.dgid.data(), 16);
  path.set<Ads::vhca_port_num>(attr.port);
}

AddressAttr get_path(const prm::ConstView<prm::Ads>& path, std::uint8_t port) {
  using prm::Ads;
  AddressAttr attr;
  attr.port = port;
  attr.is_global = true;
  attr.sl = static_cast<std::uint8_t>(path.get<Ads::eth_prio>());
  attr.sgid_index = static_cast<std::uint8_t>(path.get<Ads::src_addr_index>());
  attr.hop_limit = static_cast<std::uint8_t>(path.get<Ads::hop_limit>());
  attr.traffic_class = static_cast<std::uint8_t>(path.get<Ads::tclass>());
  attr.flow_label = path.get<Ads::flow_label>();
  attr.static_rate = ib_rate_of(path.get<Ads::stat_rate>());
  std::memcpy(attr.dgid.data(), path.bytes<Ads::rgid_rip>().data(), 16);
  return attr;
}

}  // namespace verbena::kernel
