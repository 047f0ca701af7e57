// ACCESS_REGISTER: the port registers PTYS, PAOS, PMTU and PPCNT, and NODE_DESC.
#include <algorithm>
#include <bit>
#include <cstring>

#include "device/command/dispatcher.h"
#include "device/command/families.h"
#include "device/command/state.h"
#include "device/shared/counters.h"
#include "prm/port.h"
#include "prm/registers.h"

namespace verbena::device::command {
namespace {

using prm::ExtLinkMode;

// One access: the register as the request carries it, and its copy in the reply.
struct RegisterAccess {
  bool write;
  std::span<const std::byte> in;
  std::span<std::byte> out;
};

// Ports of registers are 1-based.
Maybe<unsigned> port_of(const State& state, std::uint32_t local_port) {
  if (local_port < 1 || local_port > state.profile.lag_ports()) return refuse(Syndrome::register_port);
  return local_port - 1;
}

// The link mode of a speed, in the extended and in the legacy numbering of PTYS.
struct LinkMode {
  unsigned gbps;
  ExtLinkMode ext;
  unsigned legacy_bit;
};
constexpr LinkMode kModes[] = {
    {10, ExtLinkMode::base_10g, 12},     {25, ExtLinkMode::base_25g_1, 27},   {40, ExtLinkMode::base_40g_4, 6},
    {50, ExtLinkMode::base_50g_2, 31},   {100, ExtLinkMode::base_100g_4, 21}, {200, ExtLinkMode::base_200g_4, 32},
    {400, ExtLinkMode::base_400g_4, 32},
};

std::uint32_t bit(unsigned n) { return n < 32 ? 1u << n : 0; }

Outcome ptys(State& state, const RegisterAccess& access) {
  using prm::PtysReg;
  const prm::ConstView<PtysReg> in(access.in);
  const auto port = port_of(state, in.get<PtysReg::local_port>());
  if (!port) return refuse(port.error());
  if (access.write) return refuse(Syndrome::register_read_only);
  if (in.get<PtysReg::proto_mask>() != prm::PtysProto::ethernet) return refuse(Syndrome::ptys_proto);
  const prm::View<PtysReg> out(access.out);
  out.set<PtysReg::local_port>(in.get<PtysReg::local_port>()).set<PtysReg::proto_mask>(prm::PtysProto::ethernet);
  const bool up = state.nic.segment().ports[*port].is_up();
  for (const LinkMode& mode : kModes) {
    if (mode.gbps > state.profile.link_gbps) continue;
    const std::uint32_t ext = bit(static_cast<unsigned>(mode.ext)), legacy = bit(mode.legacy_bit);
    out.set<PtysReg::ext_eth_proto_capability>(out.get<PtysReg::ext_eth_proto_capability>() | ext);
    out.set<PtysReg::ext_eth_proto_admin>(out.get<PtysReg::ext_eth_proto_admin>() | ext);
    out.set<PtysReg::eth_proto_capability>(out.get<PtysReg::eth_proto_capability>() | legacy);
    out.set<PtysReg::eth_proto_admin>(out.get<PtysReg::eth_proto_admin>() | legacy);
    if (mode.gbps != state.profile.link_gbps || !up) continue;
    out.set<PtysReg::ext_eth_proto_oper>(ext).set<PtysReg::eth_proto_oper>(legacy);
    out.set<PtysReg::data_rate_oper>(mode.gbps * 10);
  }
  return {};
}

Outcome paos(State& state, const RegisterAccess& access) {
  using prm::PaosReg;
  const prm::ConstView<PaosReg> in(access.in);
  const auto port = port_of(state, in.get<PaosReg::local_port>());
  if (!port) return refuse(port.error());
  const PortState& live = state.nic.segment().ports[*port];
  if (access.write && in.get<PaosReg::ase>()) {
    const auto wanted = static_cast<prm::PaosStatus>(in.get<PaosReg::admin_status>());
    if (wanted != prm::PaosStatus::up && wanted != prm::PaosStatus::down) return refuse(Syndrome::paos_status);
    const bool up = wanted == prm::PaosStatus::up;
    if (state.nic.set_port(*port, up) != up) state.engine.raise_port_event(up ? 4 : 1, *port + 1);
  }
  const bool up = live.is_up();
  const auto status = static_cast<std::uint32_t>(up ? prm::PaosStatus::up : prm::PaosStatus::down);
  const prm::View<PaosReg> out(access.out);
  out.set<PaosReg::local_port>(in.get<PaosReg::local_port>());
  out.set<PaosReg::admin_status>(status).set<PaosReg::oper_status>(status);
  return {};
}

Outcome pmtu(State& state, const RegisterAccess& access) {
  using prm::PmtuReg;
  const prm::ConstView<PmtuReg> in(access.in);
  const auto port = port_of(state, in.get<PmtuReg::local_port>());
  if (!port) return refuse(port.error());
  // The register counts the Ethernet header and checksum, too: 22 bytes on top of the interface's MTU.
  const std::uint32_t hardware = state.profile.mtu + 22;
  if (access.write && in.get<PmtuReg::admin_mtu>() != hardware) return refuse(Syndrome::pmtu_fixed);
  const prm::View<PmtuReg> out(access.out);
  out.set<PmtuReg::local_port>(in.get<PmtuReg::local_port>());
  out.set<PmtuReg::max_mtu>(hardware).set<PmtuReg::admin_mtu>(hardware).set<PmtuReg::oper_mtu>(hardware);
  return {};
}

void put64(const prm::View<prm::PpcntReg>& out, std::size_t index, std::uint64_t value) {
  prm::store_be64(out.sub<prm::PpcntReg::counter_set>().data() + 8 * index, value);
}

Outcome ppcnt(State& state, const RegisterAccess& access) {
  using prm::PpcntReg;
  const prm::ConstView<PpcntReg> in(access.in);
  const auto port = port_of(state, in.get<PpcntReg::local_port>());
  if (!port) return refuse(port.error());
  if (access.write || in.get<PpcntReg::clr>()) return refuse(Syndrome::register_read_only);
  const prm::View<PpcntReg> out(access.out);
  out.set<PpcntReg::local_port>(in.get<PpcntReg::local_port>()).set<PpcntReg::grp>(in.get<PpcntReg::grp>());
  const PortTraffic traffic = port_traffic(state.nic, *port);
  Directions all = traffic.ib;
  all += traffic.ib_multicast;
  all += traffic.eth;
  switch (in.get<PpcntReg::grp>()) {
    case prm::PpcntGroup::ieee_802_3:  // frames sent and received, then their octets
      put64(out, 0, all.out.packets);
      put64(out, 1, all.in.packets);
      put64(out, 4, all.out.octets);
      put64(out, 5, all.in.octets);
      return {};
    case prm::PpcntGroup::rfc_2863:  // octets and packets in, octets and packets out
      put64(out, 0, all.in.octets);
      put64(out, 1, all.in.packets);
      put64(out, 5, all.out.octets);
      put64(out, 6, all.out.packets);
      return {};
    case prm::PpcntGroup::physical_layer:  // a link without errors
    case prm::PpcntGroup::infiniband:
      return {};
    default:
      return refuse(Syndrome::ppcnt_group);
  }
}

Outcome node_desc(State& state, const RegisterAccess& access) {
  if (access.write)
    std::memcpy(state.node_description.data(), access.in.data(), prm::SetNodeIn::size);
  else
    std::memcpy(access.out.data(), state.node_description.data(), prm::SetNodeIn::size);
  return {};
}

Outcome access_register(State& state, const Call<prm::AccessRegisterIn, prm::AccessRegisterOut>& call) {
  using In = prm::AccessRegisterIn;
  struct Register {
    prm::RegisterId id;
    std::size_t size;
    Outcome (*run)(State&, const RegisterAccess&);
  };
  static constexpr Register kRegisters[] = {
      {prm::RegisterId::ptys, prm::PtysReg::size, ptys},
      {prm::RegisterId::paos, prm::PaosReg::size, paos},
      {prm::RegisterId::pmtu, prm::PmtuReg::size, pmtu},
      {prm::RegisterId::ppcnt, prm::PpcntReg::size, ppcnt},
      {prm::RegisterId::node_desc, prm::SetNodeIn::size, node_desc},
  };
  const auto id = static_cast<prm::RegisterId>(call.in.get<In::register_id>());
  const auto op = call.in.get<In::op_mod>();
  if (op > 1) return refuse(Syndrome::register_op_mod);
  const bool write = op == static_cast<unsigned>(prm::AccessRegisterOpMod::write);
  if (write && call.uid) return refuse(Syndrome::register_write_uid);
  for (const Register& r : kRegisters) {
    if (r.id != id) continue;
    if (call.tail().size() < r.size) return refuse(Syndrome::register_input_length);
    if (call.output.size() < prm::AccessRegisterOut::size + r.size) return refuse(Syndrome::register_output_length);
    return r.run(state, {write, call.tail().first(r.size), call.output.subspan(prm::AccessRegisterOut::size, r.size)});
  }
  return refuse(id == prm::RegisterId::mcia ? Syndrome::register_no_module : Syndrome::register_unknown);
}

}  // namespace

void add_register_commands(Registry& r) {
  r.add<access_register>(prm::Opcode::access_reg, "ACCESS_REGISTER", prm::Dword::size);
}

}  // namespace verbena::device::command
