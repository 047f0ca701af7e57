// ATTACH_TO_MCG, DETACH_FROM_MCG: which UD QPs get a copy of a multicast packet. The groups are the NIC's, shared by
// all processes attached to it. A QP that is attached to a group several times gets one copy, until it is detached as often.
#include <array>
#include <cstring>

#include "device/command/dispatcher.h"
#include "device/command/families.h"
#include "device/command/qp_objects.h"
#include "device/command/state.h"
#include "prm/misc.h"

namespace verbena::device::command {
namespace {

using Gid = std::array<std::uint8_t, 16>;

template <class In>
Gid group_of(const prm::ConstView<In>& in) {
  Gid gid;
  std::memcpy(gid.data(), in.template bytes<typename In::multicast_gid>().data(), gid.size());
  return gid;
}

Outcome attach(State& state, const Call<prm::AttachToMcgIn, prm::AttachToMcgOut>& call) {
  const auto qpn = call.in.get<prm::AttachToMcgIn::qpn>();
  const auto named = named_qp(state, qpn, call.uid);
  if (!named) return refuse(named.error());
  if (named->qp->type != QpType::ud) return refuse(Syndrome::mcg_qp_type);
  const Gid gid = group_of(call.in);
  if (gid[0] != 0xff) return refuse(Syndrome::mcg_gid);
  auto& groups = named->record->groups;
  if (!groups.contains(gid) && state.nic.attach_multicast(gid.data(), qpn) != 0) return refuse(Syndrome::mcg_full);
  ++groups[gid];
  return {};
}

Outcome detach(State& state, const Call<prm::DetachFromMcgIn, prm::DetachFromMcgOut>& call) {
  const auto qpn = call.in.get<prm::DetachFromMcgIn::qpn>();
  const auto named = named_qp(state, qpn, call.uid);
  if (!named) return refuse(named.error());
  auto& groups = named->record->groups;
  const auto group = groups.find(group_of(call.in));
  if (group == groups.end()) return refuse(Syndrome::mcg_not_attached);
  if (--group->second) return {};
  state.nic.detach_multicast(group->first.data(), qpn);
  groups.erase(group);
  return {};
}

}  // namespace

void add_mcg_commands(Registry& r) {
  using prm::Opcode;
  r.add<attach>(Opcode::attach_to_mcg, "ATTACH_TO_MCG");
  r.add<detach>(Opcode::detach_from_mcg, "DETACH_FROM_MCG");
}

}  // namespace verbena::device::command
