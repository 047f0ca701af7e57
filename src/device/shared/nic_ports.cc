// GID table and multicast groups: the parts of a Nic that processes share and change at run time.
#include <errno.h>

#include <cstring>

#include "device/shared/nic.h"
#include "device/shared/nic_file.h"

namespace verbena::device {

bool Nic::set_port(unsigned port, bool up) {
  PortState& live = segment_->ports[port];
  const bool was = live.state.exchange(up ? kPortActive : kPortDown) == kPortActive;
  live.phys_state.store(up ? kPhysLinkUp : kPhysDisabled);
  file_->registry()->touch();
  return was;
}

int Nic::set_gid(unsigned port, unsigned index, const std::uint8_t gid[16], const std::uint8_t mac[6], GidType type,
                 bool l3_is_ipv6) {
  if (port >= segment_->ports_count || port >= kMaxPorts || index >= kGidTableSize) return EINVAL;
  fabric::Gid old{}, fresh{};
  bool old_used = false, old_still_there = false;
  {
    SharedGuard guard(segment_->lock, me());
    GidEntry& e = segment_->gids[port][index];
    old_used = e.type.load() != 0;
    std::memcpy(old.data(), e.gid, old.size());
    e.type.store(0, std::memory_order_release);
    if (type != GidType::none) {
      std::memcpy(fresh.data(), gid, fresh.size());
      std::memcpy(e.gid, gid, sizeof e.gid);
      std::memcpy(e.mac, mac, sizeof e.mac);
      e.l3_is_ipv6 = l3_is_ipv6;
      e.type.store(static_cast<std::uint8_t>(type), std::memory_order_release);
    } else {
      std::memset(e.gid, 0, sizeof e.gid);
    }
    for (const GidEntry& other : segment_->gids[port])
      old_still_there |= other.type.load() != 0 && std::memcmp(other.gid, old.data(), old.size()) == 0;
  }
  const fabric::Route route{segment_->host_index, static_cast<std::uint8_t>(segment_->device_index),
                            static_cast<std::uint8_t>(port + 1)};
  if (old_used && !old_still_there) file_->registry()->remove(old, route);
  return type == GidType::none ? 0 : file_->registry()->add(fresh, route);
}

int Nic::attach_multicast(const std::uint8_t gid[16], std::uint32_t qpn) {
  SharedGuard guard(segment_->lock, me());
  MulticastGroup* group = nullptr;
  MulticastGroup* free = nullptr;
  const unsigned top = std::min<unsigned>(segment_->multicast_top.load(), kMulticastGroups);
  for (unsigned i = 0; i < top; ++i) {
    MulticastGroup& g = segment_->multicast[i];
    if (g.members.load() == 0) {
      if (free == nullptr) free = &g;
    } else if (std::memcmp(g.gid, gid, sizeof g.gid) == 0) {
      group = &g;
      break;
    }
  }
  if (group == nullptr) group = free;
  if (group == nullptr && top < kMulticastGroups) {
    group = &segment_->multicast[top];
    segment_->multicast_top.store(top + 1);
  }
  if (group == nullptr) return ENOMEM;
  const std::uint32_t count = std::min<std::uint32_t>(group->members.load(), kMulticastMembers);
  for (std::uint32_t i = 0; i < count; ++i)
    if (group->qpn[i] == qpn) return 0;
  if (count == kMulticastMembers) return ENOMEM;
  if (count == 0) std::memcpy(group->gid, gid, sizeof group->gid);
  group->qpn[count] = qpn;
  group->members.store(count + 1, std::memory_order_release);
  return 0;
}

int Nic::detach_multicast(const std::uint8_t gid[16], std::uint32_t qpn) {
  SharedGuard guard(segment_->lock, me());
  const unsigned top = std::min<unsigned>(segment_->multicast_top.load(), kMulticastGroups);
  for (unsigned k = 0; k < top; ++k) {
    MulticastGroup& g = segment_->multicast[k];
    const std::uint32_t count = std::min<std::uint32_t>(g.members.load(), kMulticastMembers);
    if (count == 0 || std::memcmp(g.gid, gid, sizeof g.gid) != 0) continue;
    for (std::uint32_t i = 0; i < count; ++i) {
      if (g.qpn[i] != qpn) continue;
      g.qpn[i] = g.qpn[count - 1];
      g.members.store(count - 1, std::memory_order_release);
      return 0;
    }
  }
  return EINVAL;
}

}  // namespace verbena::device
