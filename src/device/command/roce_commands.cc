// SET_ROCE_ADDRESS, QUERY_ROCE_ADDRESS: the GID table of a port. It is the NIC's: a change is seen by all processes.
#include <cerrno>
#include <cstring>

#include "device/command/dispatcher.h"
#include "device/command/families.h"
#include "device/command/state.h"
#include "prm/port.h"

namespace verbena::device::command {
namespace {

using prm::RoceAddrLayout;

// The number in the request is 1-based; 0 stands for the only port of a single-port function.
Maybe<unsigned> table_of(const State& state, std::uint32_t port, std::uint32_t index) {
  if (port == 0) port = 1;
  if (port > state.profile.lag_ports()) return refuse(Syndrome::roce_port);
  if (index >= state.profile.gid_table_size) return refuse(Syndrome::roce_index);
  return port - 1;
}

Outcome set_roce_address(State& state, const Call<prm::SetRoceAddressIn, prm::SetRoceAddressOut>& call) {
  using In = prm::SetRoceAddressIn;
  const auto index = call.in.get<In::roce_address_index>();
  const auto port = table_of(state, call.in.get<In::vhca_port_num>(), index);
  if (!port) return refuse(port.error());
  const auto address = call.in.sub<In::roce_address>();
  std::uint8_t gid[16], mac[6];
  std::memcpy(gid, address.bytes<RoceAddrLayout::source_l3_address>().data(), 16);
  const std::uint64_t mac_bits = std::uint64_t{address.get<RoceAddrLayout::source_mac_47_32>()} << 32 |
                                 address.get<RoceAddrLayout::source_mac_31_0>();
  for (int i = 0; i < 6; ++i) mac[i] = static_cast<std::uint8_t>(mac_bits >> (40 - 8 * i));
  if (address.get<RoceAddrLayout::vlan_valid>()) return refuse(Syndrome::roce_vlan);

  GidType type = GidType::none;
  constexpr std::uint8_t kZero[16] = {};
  const auto version = address.get<RoceAddrLayout::roce_version>();
  if (std::memcmp(gid, kZero, 16) != 0) {
    if (version != prm::RoceVersion::v1 && version != prm::RoceVersion::v2) return refuse(Syndrome::roce_version);
    type = version == prm::RoceVersion::v2 ? GidType::roce_v2 : GidType::roce_v1;
  }
  const bool ipv6 = address.get<RoceAddrLayout::roce_l3_type>() == prm::RoceL3Type::ipv6;
  if (state.nic.set_gid(*port, index, gid, mac, type, ipv6) != 0) return refuse(Syndrome::roce_not_set);
  return {};
}

Outcome query_roce_address(State& state, const Call<prm::QueryRoceAddressIn, prm::QueryRoceAddressOut>& call) {
  using In = prm::QueryRoceAddressIn;
  const auto index = call.in.get<In::roce_address_index>();
  const auto port = table_of(state, call.in.get<In::vhca_port_num>(), index);
  if (!port) return refuse(port.error());
  const GidEntry& entry = state.nic.segment().gids[*port][index];
  const auto address = call.out.sub<prm::QueryRoceAddressOut::roce_address>();
  const auto type = static_cast<GidType>(entry.type.load(std::memory_order_acquire));
  if (type == GidType::none) return {};  // an empty entry reads as zero
  std::memcpy(address.bytes<RoceAddrLayout::source_l3_address>().data(), entry.gid, 16);
  address.set<RoceAddrLayout::source_mac_47_32>(entry.mac[0] << 8 | entry.mac[1]);
  address.set<RoceAddrLayout::source_mac_31_0>(static_cast<std::uint32_t>(entry.mac[2]) << 24 | entry.mac[3] << 16 |
                                               entry.mac[4] << 8 | entry.mac[5]);
  address.set<RoceAddrLayout::roce_l3_type>(entry.l3_is_ipv6 ? prm::RoceL3Type::ipv6 : prm::RoceL3Type::ipv4);
  address.set<RoceAddrLayout::roce_version>(type == GidType::roce_v2 ? prm::RoceVersion::v2 : prm::RoceVersion::v1);
  return {};
}

}  // namespace

void add_roce_commands(Registry& r) {
  using prm::Opcode;
  r.add<set_roce_address>(Opcode::set_roce_address, "SET_ROCE_ADDRESS", 0, Access::privileged);
  r.add<query_roce_address>(Opcode::query_roce_address, "QUERY_ROCE_ADDRESS");
}

}  // namespace verbena::device::command
