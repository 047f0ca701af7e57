// The HCA as a whole: life cycle, capabilities, identity.
#include <algorithm>
#include <cstring>

#include "device/command/caps.h"
#include "device/command/dispatcher.h"
#include "device/command/families.h"
#include "device/command/state.h"
#include "prm/admin.h"
#include "prm/caps.h"
#include "prm/misc.h"
#include "prm/port.h"

namespace verbena::device::command {
namespace {

constexpr std::uint32_t kSupportedIssi = 1u << 1 | 1u << 0;

Outcome query_hca_cap(State& state, const Call<prm::QueryHcaCapIn, prm::QueryHcaCapOut>& call) {
  using In = prm::QueryHcaCapIn;
  // Function 0 is this one, and as the manager of the switch it may name it as any other (other_function).
  if (call.in.get<In::function_id>()) return refuse(Syndrome::other_function);
  const auto type = static_cast<prm::CapType>(call.in.get<In::op_mod>() >> 1);
  const CapFacts facts{state.profile, state.nic.config().index};
  if (!fill_capability_page(facts, type, call.out.sub<prm::QueryHcaCapOut::capability>()))
    return refuse(Syndrome::cap_page);
  return {};
}

Outcome query_adapter(State& state, const Call<prm::QueryAdapterIn, prm::QueryAdapterOut>& call) {
  using Block = prm::QueryAdapterParamBlock;
  const auto block = call.out.sub<prm::QueryAdapterOut::query_adapter_struct>();
  block.set<Block::ieee_vendor_id>(state.profile.vendor_id);
  const auto psid = block.bytes<Block::vsd_contd_psid>();
  std::memcpy(psid.data(), state.profile.board_id.data(), std::min(psid.size(), state.profile.board_id.size()));
  return {};
}

Outcome query_issi(State& state, const Call<prm::QueryIssiIn, prm::QueryIssiOut>& call) {
  call.out.set<prm::QueryIssiOut::current_issi>(state.issi);
  call.out.set<prm::QueryIssiOut::supported_issi_dw0>(kSupportedIssi);
  return {};
}

Outcome set_issi(State& state, const Call<prm::SetIssiIn, prm::SetIssiOut>& call) {
  const auto wanted = call.in.get<prm::SetIssiIn::current_issi>();
  if (wanted > 31 || !(kSupportedIssi >> wanted & 1)) return refuse(Syndrome::issi_unknown);
  state.issi = static_cast<std::uint16_t>(wanted);
  return {};
}

Outcome enable_hca(State&, const Call<prm::EnableHcaIn, prm::EnableHcaOut>& call) {
  if (call.in.get<prm::EnableHcaIn::function_id>()) return refuse(Syndrome::other_function);
  return {};
}

bool has_objects(const State& state) {
  return state.qps.size() + state.cqs.size() + state.srqs.size() + state.mkeys.size() > 0;
}

Outcome disable_hca(State& state, const Call<prm::DisableHcaIn, prm::DisableHcaOut>& call) {
  if (call.in.get<prm::DisableHcaIn::function_id>()) return refuse(Syndrome::other_function);
  if (has_objects(state)) return refuse(Syndrome::hca_busy);
  return {};
}

Outcome init_hca(State& state, const Call<prm::InitHcaIn, prm::InitHcaOut>&) {
  state.initialised = true;
  return {};
}

Outcome teardown_hca(State& state, const Call<prm::TeardownHcaIn, prm::TeardownHcaOut>& call) {
  // Profile 0 is a graceful stop; the forced ones would need every queue stopped at once.
  if (call.in.get<prm::TeardownHcaIn::profile>()) return refuse(Syndrome::teardown_profile);
  if (has_objects(state)) return refuse(Syndrome::hca_busy);
  state.initialised = false;
  return {};
}

Outcome nop(State&, const Call<prm::NopIn, prm::NopOut>&) { return {}; }

}  // namespace

void add_hca_commands(Registry& r) {
  using prm::Opcode;
  r.add<query_hca_cap>(Opcode::query_hca_cap, "QUERY_HCA_CAP");
  r.allow_short_reply(Opcode::query_hca_cap);
  r.add<query_adapter>(Opcode::query_adapter, "QUERY_ADAPTER");
  r.add<query_issi>(Opcode::query_issi, "QUERY_ISSI");
  r.add<set_issi>(Opcode::set_issi, "SET_ISSI", 0, Access::privileged);
  r.add<enable_hca>(Opcode::enable_hca, "ENABLE_HCA", 0, Access::privileged);
  r.add<disable_hca>(Opcode::disable_hca, "DISABLE_HCA", 0, Access::privileged);
  r.add<init_hca>(Opcode::init_hca, "INIT_HCA", 0, Access::privileged);
  r.add<teardown_hca>(Opcode::teardown_hca, "TEARDOWN_HCA", 0, Access::privileged);
  r.add<nop>(Opcode::nop, "NOP");
}

}  // namespace verbena::device::command
