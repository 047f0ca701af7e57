// ATTACH_TO_MCG, DETACH_FROM_MCG: which UD QPs get a copy of a multicast packet. The groups are the NIC's, shared by
// all processes attached to it.
#include <cerrno>
#include <cstring>

#include "device/command/dispatcher.h"
#include "device/command/families.h"
#include "device/command/qp_objects.h"
#include "device/command/state.h"
#include "prm/misc.h"

namespace verbena::device::command {
namespace {

template <class In>
const std::uint8_t* group_of(const prm::ConstView<In>& in) {
  return reinterpret_cast<const std::uint8_t*>(in.template bytes<typename In::multicast_gid>().data());
}

Outcome attach(State& state, const Call<prm::AttachToMcgIn, prm::AttachToMcgOut>& call) {
  const auto qpn = call.in.get<prm::AttachToMcgIn::qpn>();
  const auto named = named_qp(state, qpn, call.uid);
  if (!named) return refuse(named.error());
  if (named->qp->type != QpType::ud) return refuse(Syndrome::mcg_qp_type);
  const std::uint8_t* gid = group_of(call.in);
  if (gid[0] != 0xff) return refuse(Syndrome::mcg_gid);
  switch (state.nic.attach_multicast(gid, qpn)) {
    case 0:
      ++named->record->groups;
      return {};
    case EEXIST:
      return {};
    default:
      return refuse(Syndrome::mcg_full);
  }
}

Outcome detach(State& state, const Call<prm::DetachFromMcgIn, prm::DetachFromMcgOut>& call) {
  const auto qpn = call.in.get<prm::DetachFromMcgIn::qpn>();
  const auto named = named_qp(state, qpn, call.uid);
  if (!named) return refuse(named.error());
  if (state.nic.detach_multicast(group_of(call.in), qpn) != 0) return refuse(Syndrome::mcg_not_attached);
  if (named->record->groups) --named->record->groups;
  return {};
}

}  // namespace

void add_mcg_commands(Registry& r) {
  using prm::Opcode;
  r.add<attach>(Opcode::attach_to_mcg, "ATTACH_TO_MCG");
  r.add<detach>(Opcode::detach_from_mcg, "DETACH_FROM_MCG");
}

}  // namespace verbena::device::command
