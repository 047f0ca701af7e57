#include "device/shared/gids.h"

#include <algorithm>
#include <cstring>

namespace verbena::device {

namespace {

using Gid = std::array<std::uint8_t, 16>;

Gid link_local(const std::uint8_t mac[6]) {
  Gid g{0xfe, 0x80};
  const std::uint8_t eui[8] = {static_cast<std::uint8_t>(mac[0] ^ 2), mac[1], mac[2], 0xff, 0xfe, mac[3], mac[4], mac[5]};
  std::memcpy(g.data() + 8, eui, sizeof eui);
  return g;
}

Gid mapped(std::uint32_t ipv4) {
  Gid g{};
  g[10] = g[11] = 0xff;
  for (int i = 0; i < 4; ++i) g[12 + i] = static_cast<std::uint8_t>(ipv4 >> (24 - 8 * i));
  return g;
}

// Each address takes two entries: RoCE v1, then RoCE v2.
void add_pair(NicSegment& segment, unsigned port, unsigned& next, const Gid& gid, bool ipv6) {
  for (const GidType type : {GidType::roce_v1, GidType::roce_v2}) {
    if (next >= kGidTableSize) return;
    GidEntry& e = segment.gids[port][next++];
    std::memcpy(e.gid, gid.data(), gid.size());
    std::memcpy(e.mac, segment.ports[port].mac, 6);
    e.l3_is_ipv6 = ipv6 || type == GidType::roce_v1;
    e.type.store(static_cast<std::uint8_t>(type), std::memory_order_release);
  }
}

}  // namespace

void fill_ports(NicSegment& segment, const NicConfig& config) {
  const std::uint32_t host = segment.host_index;
  segment.ports_count = std::clamp(config.ports, 1u, kMaxPorts);
  for (unsigned p = 0; p < segment.ports_count; ++p) {
    const NicConfig::Port given = p < config.port.size() ? config.port[p] : NicConfig::Port{};
    PortState& port = segment.ports[p];
    const std::uint8_t zero[6] = {};
    if (std::memcmp(given.mac, zero, 6) != 0) {
      std::memcpy(port.mac, given.mac, 6);
    } else {
      const std::uint8_t mac[6] = {0x02, 0x56, static_cast<std::uint8_t>(host >> 8), static_cast<std::uint8_t>(host),
                                   static_cast<std::uint8_t>(segment.device_index), static_cast<std::uint8_t>(p + 1)};
      std::memcpy(port.mac, mac, 6);
    }
    port.state.store(kPortActive);
    port.phys_state.store(kPhysLinkUp);
    unsigned next = 0;
    if (given.link_local) add_pair(segment, p, next, link_local(port.mac), true);
    std::vector<std::uint32_t> ipv4 = given.ipv4;
    if (ipv4.empty())
      ipv4.push_back((198u << 24) + (18u << 16) + (host << 8) + segment.device_index * 2 + p + 1);
    for (const std::uint32_t a : ipv4) add_pair(segment, p, next, mapped(a), false);
    for (const Gid& a : given.ipv6) add_pair(segment, p, next, a, true);
  }
  const std::uint8_t* mac = segment.ports[0].mac;
  segment.node_guid = config.node_guid;
  if (segment.node_guid == 0) {
    const std::uint8_t guid[8] = {mac[0], mac[1], mac[2], 0x03, 0x00, mac[3], mac[4], mac[5]};
    for (const std::uint8_t b : guid) segment.node_guid = segment.node_guid << 8 | b;
  }
}

void register_gids(const NicSegment& segment, fabric::Registry& registry) {
  for (unsigned p = 0; p < std::min(segment.ports_count, kMaxPorts); ++p)
    for (const GidEntry& e : segment.gids[p]) {
      if (e.type.load(std::memory_order_acquire) == 0) continue;
      Gid gid;
      std::memcpy(gid.data(), e.gid, gid.size());
      registry.add(gid, {segment.host_index, static_cast<std::uint8_t>(segment.device_index),
                         static_cast<std::uint8_t>(p + 1)});
    }
}

}  // namespace verbena::device
