// QUERY_LAG: how the two ports are bonded. The profile decides that; it cannot be changed by command.
#include "device/command/dispatcher.h"
#include "device/command/families.h"
#include "device/command/state.h"
#include "prm/misc.h"

namespace verbena::device::command {
namespace {

Outcome query_lag(State& state, const Call<prm::QueryLagIn, prm::QueryLagOut>& call) {
  if (state.profile.lag_ports() < 2) return refuse(Syndrome::lag_off);
  const auto lag = call.out.sub<prm::QueryLagOut::ctx>();
  std::uint32_t active = 0;
  for (unsigned port = 0; port < 2; ++port)
    if (state.nic.segment().ports[port].is_up()) active |= 1u << port;
  // A port that is down sends through the other one.
  lag.set<prm::Lagc::tx_remap_affinity_1>(active == 2 ? 2 : 1).set<prm::Lagc::tx_remap_affinity_2>(active == 1 ? 1 : 2);
  lag.set<prm::Lagc::active_port>(active).set<prm::Lagc::lag_state>(1);
  return {};
}

}  // namespace

void add_lag_commands(Registry& r) { r.add<query_lag>(prm::Opcode::query_lag, "QUERY_LAG"); }

}  // namespace verbena::device::command
