// Rates as objects: the packet pacing table, scheduling elements and who hangs on them.
// Threads: under State::mutex.
#pragma once

#include <cstdint>

#include "device/command/outcome.h"
#include "device/command/state.h"
#include "prm/general_object.h"
#include "prm/qp.h"

namespace verbena::device::command {

// What the capability page says.
inline constexpr std::uint32_t kMinRateKbps = 1;
inline constexpr std::uint32_t kMaxRateKbps = 100'000'000;
inline constexpr std::uint32_t kMaxShare = 100;

// May a queue of `uid` send at the rate of this entry? 0 is no limit.
bool may_use_rate(const State& state, std::uint32_t index, std::uint16_t uid);
// The queue group of this number if `uid` may hang a queue on it; else null.
SchedulingElement* usable_leaf(State& state, std::uint32_t id, std::uint16_t uid);

// Moves a QP to the queue groups that the extended context names (null: there is none); leave_leaves() takes it off both.
// The record and the uses of the groups change; apply_leaves() brings the live context in step.
Outcome take_leaves(State& state, QpRecord& record, const QpContext& qp, const std::byte* extension, std::uint16_t uid);
void leave_leaves(State& state, QpRecord& record);
void apply_leaves(const QpRecord& record, QpContext& qp);

// The general object SCHEDULING_ELEMENT.
using ObjectCall = Call<prm::GeneralObjInCmdHdr, prm::GeneralObjOutCmdHdr>;
Outcome create_element_object(State& state, const ObjectCall& call);
Outcome query_element_object(State& state, const ObjectCall& call);
Outcome modify_element_object(State& state, const ObjectCall& call);
Outcome destroy_element_object(State& state, const ObjectCall& call);

}  // namespace verbena::device::command
