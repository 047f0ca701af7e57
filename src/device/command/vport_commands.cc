// Vports: state, NIC context (addresses and GUIDs), HCA context (the InfiniBand view of a RoCE port), the switch's context,
// counters.
#include <algorithm>
#include <cstring>

#include "device/command/dispatcher.h"
#include "device/command/eswitch.h"
#include "device/command/families.h"
#include "device/command/state.h"
#include "device/shared/counters.h"
#include "prm/port.h"

namespace verbena::device::command {
namespace {

using prm::NicVportContext;

// This device is one function with one vport. As the manager of the switch it may name it as any other (other_vport).
template <class In>
Outcome own_vport(const prm::ConstView<In>& in) {
  if (in.template get<typename In::vport_number>() != kOwnVport) return refuse(Syndrome::other_vport);
  return {};
}

// port_num of the HCA vport commands: 1-based, 0 for a single-port function.
template <class In>
Maybe<unsigned> port_of(const State& state, const prm::ConstView<In>& in) {
  if (auto ok = own_vport(in); !ok) return refuse(ok.error());
  const unsigned port = std::max<unsigned>(1, in.template get<typename In::port_num>());
  if (port > state.profile.lag_ports()) return refuse(Syndrome::vport_port);
  return port - 1;
}

const PortState& port_state(const State& state, unsigned port) { return state.nic.segment().ports[port]; }

bool is_up(const State& state, unsigned port) { return port_state(state, port).is_up(); }

// GUIDs follow from the MAC as EUI-64 does, with the local bit flipped.
std::uint64_t port_guid(const State& state, unsigned port) {
  const std::uint8_t* mac = port_state(state, port).mac;
  return std::uint64_t{static_cast<std::uint8_t>(mac[0] ^ 2)} << 56 | std::uint64_t{mac[1]} << 48 |
         std::uint64_t{mac[2]} << 40 | 0xfffe000000ull | std::uint64_t{mac[3]} << 16 | std::uint64_t{mac[4]} << 8 |
         mac[5];
}

Outcome query_vport_state(State& state, const Call<prm::QueryVportStateIn, prm::QueryVportStateOut>& call) {
  if (auto ok = own_vport(call.in); !ok) return ok;
  if (call.in.get<prm::QueryVportStateIn::op_mod>() > 2) return refuse(Syndrome::vport_op_mod);
  bool up = false;
  for (unsigned port = 0; port < state.profile.lag_ports(); ++port) up = up || is_up(state, port);
  call.out.set<prm::QueryVportStateOut::admin_state>(1);
  call.out.set<prm::QueryVportStateOut::state>(up ? prm::VportState::up : prm::VportState::down);
  return {};
}

Outcome query_nic_vport_context(State& state,
                                const Call<prm::QueryNicVportContextIn, prm::QueryNicVportContextOut>& call) {
  using In = prm::QueryNicVportContextIn;
  if (auto ok = own_vport(call.in); !ok) return ok;
  const auto list = call.in.get<In::allowed_list_type>();
  if (list > prm::AllowedListType::vlan) return refuse(Syndrome::vport_list_type);
  const auto context = call.out.sub<prm::QueryNicVportContextOut::nic_vport_context>();
  std::memcpy(context.data(), state.nic_vport.data(), NicVportContext::size);
  context.set<NicVportContext::allowed_list_type>(list);
  context.set<NicVportContext::node_guid>(state.nic.segment().node_guid);
  context.set<NicVportContext::system_image_guid>(state.nic.segment().node_guid);
  context.set<NicVportContext::port_guid>(port_guid(state, 0));
  const std::uint8_t* mac = port_state(state, 0).mac;
  const auto address = context.sub<NicVportContext::permanent_address>();
  address.set<prm::MacAddressLayout::mac_addr_47_32>(mac[0] << 8 | mac[1]);
  address.set<prm::MacAddressLayout::mac_addr_31_0>(static_cast<std::uint32_t>(mac[2]) << 24 | mac[3] << 16 |
                                                    mac[4] << 8 | mac[5]);
  return {};
}

Outcome modify_nic_vport_context(State& state,
                                 const Call<prm::ModifyNicVportContextIn, prm::ModifyNicVportContextOut>& call) {
  using In = prm::ModifyNicVportContextIn;
  using Select = prm::ModifyNicVportFieldSelect;
  if (auto ok = own_vport(call.in); !ok) return ok;
  const auto select = call.in.sub<In::field_select>();
  const auto from = call.in.sub<In::nic_vport_context>();
  auto to = state.nic_vport.view();
  if (select.get<Select::node_guid>() || select.get<Select::port_guid>() || select.get<Select::permanent_address>())
    return refuse(Syndrome::vport_identity);
  if (select.get<Select::affiliation>()) return refuse(Syndrome::vport_affiliation);
  if (select.get<Select::addresses_list>()) return refuse(Syndrome::vport_address_list);
  if (select.get<Select::min_inline>() && from.get<NicVportContext::min_wqe_inline_mode>())
    return refuse(Syndrome::vport_min_inline);
  if (select.get<Select::roce_en>() && !from.get<NicVportContext::roce_en>()) return refuse(Syndrome::vport_roce_off);
  if (select.get<Select::mtu>() && from.get<NicVportContext::mtu>() > state.profile.mtu)
    return refuse(Syndrome::vport_mtu);

  if (select.get<Select::mtu>()) to.set<NicVportContext::mtu>(from.get<NicVportContext::mtu>());
  if (select.get<Select::promisc>()) {
    to.set<NicVportContext::promisc_uc>(from.get<NicVportContext::promisc_uc>());
    to.set<NicVportContext::promisc_mc>(from.get<NicVportContext::promisc_mc>());
    to.set<NicVportContext::promisc_all>(from.get<NicVportContext::promisc_all>());
  }
  if (select.get<Select::disable_uc_local_lb>())
    to.set<NicVportContext::disable_uc_local_lb>(from.get<NicVportContext::disable_uc_local_lb>());
  if (select.get<Select::disable_mc_local_lb>())
    to.set<NicVportContext::disable_mc_local_lb>(from.get<NicVportContext::disable_mc_local_lb>());
  if (select.get<Select::change_event>())
    to.set<NicVportContext::arm_change_event>(from.get<NicVportContext::arm_change_event>());
  return {};
}

Outcome query_esw_vport_context(State& state,
                                const Call<prm::QueryEswVportContextIn, prm::QueryEswVportContextOut>& call) {
  using prm::EswVportContext;
  if (auto ok = own_vport(call.in); !ok) return ok;
  const SteeringAddresses at = steering_addresses(state.nic.config().index, SwitchPlace::own_vport);
  const auto context = call.out.sub<prm::QueryEswVportContextOut::esw_vport_context>();
  context.set<EswVportContext::sw_steering_vport_icm_address_rx>(at.rx);
  context.set<EswVportContext::sw_steering_vport_icm_address_tx>(at.tx);
  return {};
}

Outcome query_hca_vport_context(State& state,
                                const Call<prm::QueryHcaVportContextIn, prm::QueryHcaVportContextOut>& call) {
  using prm::HcaVportContext;
  const auto port = port_of(state, call.in);
  if (!port) return refuse(port.error());
  const auto context = call.out.sub<prm::QueryHcaVportContextOut::hca_vport_context>();
  context.set<HcaVportContext::has_raw>(0).set<HcaVportContext::grh_required>(1);
  context.set<HcaVportContext::port_physical_state>(port_state(state, *port).phys_state.load());
  context.set<HcaVportContext::port_state>(port_state(state, *port).state.load());
  context.set<HcaVportContext::vport_state>(is_up(state, *port) ? 1 : 0);
  context.set<HcaVportContext::node_guid>(state.nic.segment().node_guid);
  context.set<HcaVportContext::system_image_guid>(state.nic.segment().node_guid);
  context.set<HcaVportContext::port_guid>(port_guid(state, *port));
  return {};
}

Outcome query_hca_vport_gid(State& state, const Call<prm::QueryHcaVportGidIn, prm::QueryHcaVportGidOut>& call) {
  using In = prm::QueryHcaVportGidIn;
  using Out = prm::QueryHcaVportGidOut;
  constexpr std::uint32_t kAll = 0xffff;
  const auto port = port_of(state, call.in);
  if (!port) return refuse(port.error());
  const std::uint32_t index = call.in.get<In::gid_index>();
  const std::uint32_t table = state.profile.gid_table_size;
  if (index != kAll && index >= table) return refuse(Syndrome::vport_gid_index);
  const std::uint32_t first = index == kAll ? 0 : index;
  const std::uint32_t count = index == kAll ? table : 1;
  if (call.output.size() < Out::size + std::size_t{count} * 16) return refuse(Syndrome::vport_gid_room);
  for (std::uint32_t i = 0; i < count; ++i) {
    const GidEntry& entry = state.nic.segment().gids[*port][first + i];
    if (static_cast<GidType>(entry.type.load(std::memory_order_acquire)) != GidType::none)
      std::memcpy(call.output.data() + Out::size + std::size_t{i} * 16, entry.gid, 16);
  }
  call.out.set<Out::gids_num>(count);
  return {};
}

Outcome query_hca_vport_pkey(State& state, const Call<prm::QueryHcaVportPkeyIn, prm::QueryHcaVportPkeyOut>& call) {
  using In = prm::QueryHcaVportPkeyIn;
  using Out = prm::QueryHcaVportPkeyOut;
  constexpr std::uint32_t kAll = 0xffff;
  const auto port = port_of(state, call.in);
  if (!port) return refuse(port.error());
  const std::uint32_t index = call.in.get<In::pkey_index>();
  if (index != kAll && index >= state.profile.pkey_table_size) return refuse(Syndrome::vport_pkey_index);
  if (call.output.size() < Out::size + prm::Pkey::size) return refuse(Syndrome::vport_pkey_room);
  prm::View<prm::Pkey>(call.output.data() + Out::size).set<prm::Pkey::pkey>(0xffff);  // the default partition
  return {};
}

template <class Sent, class Came>
void put_traffic(const prm::View<prm::QueryVportCounterOut>& out, const Directions& counted) {
  using prm::TrafficCounter;
  out.sub<Sent>().template set<TrafficCounter::packets>(counted.out.packets);
  out.sub<Sent>().template set<TrafficCounter::octets>(counted.out.octets);
  out.sub<Came>().template set<TrafficCounter::packets>(counted.in.packets);
  out.sub<Came>().template set<TrafficCounter::octets>(counted.in.octets);
}

Outcome query_vport_counter(State& state, const Call<prm::QueryVportCounterIn, prm::QueryVportCounterOut>& call) {
  using Out = prm::QueryVportCounterOut;
  const auto port = port_of(state, call.in);
  if (!port) return refuse(port.error());
  if (call.in.get<prm::QueryVportCounterIn::clear>()) return refuse(Syndrome::vport_counter_clear);
  PortTraffic sum;
  // Of a bond, the vport sends and receives by both physical ports (PPCNT has each).
  for (unsigned p = 0; p < state.profile.lag_ports(); ++p) sum += port_traffic(state.nic, p);
  put_traffic<Out::transmitted_ib_unicast, Out::received_ib_unicast>(call.out, sum.ib);
  put_traffic<Out::transmitted_ib_multicast, Out::received_ib_multicast>(call.out, sum.ib_multicast);
  put_traffic<Out::transmitted_eth_unicast, Out::received_eth_unicast>(call.out, sum.eth);
  return {};
}

}  // namespace

void add_vport_commands(Registry& r) {
  using prm::Opcode;
  r.add<query_vport_state>(Opcode::query_vport_state, "QUERY_VPORT_STATE");
  r.add<query_nic_vport_context>(Opcode::query_nic_vport_context, "QUERY_NIC_VPORT_CONTEXT");
  r.add<modify_nic_vport_context>(Opcode::modify_nic_vport_context, "MODIFY_NIC_VPORT_CONTEXT", prm::Qword::size,
                                  Access::privileged);
  r.add<query_esw_vport_context>(Opcode::query_esw_vport_context, "QUERY_ESW_VPORT_CONTEXT");
  r.add<query_hca_vport_context>(Opcode::query_hca_vport_context, "QUERY_HCA_VPORT_CONTEXT");
  r.add<query_hca_vport_gid>(Opcode::query_hca_vport_gid, "QUERY_HCA_VPORT_GID");
  r.add<query_hca_vport_pkey>(Opcode::query_hca_vport_pkey, "QUERY_HCA_VPORT_PKEY");
  r.add<query_vport_counter>(Opcode::query_vport_counter, "QUERY_VPORT_COUNTER");
}

}  // namespace verbena::device::command
