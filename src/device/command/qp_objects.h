// QPs as objects: found by number, made, taken apart. Threads: under State::mutex.
#pragma once

#include <cstdint>

#include "device/command/outcome.h"
#include "device/command/state.h"
#include "prm/qp.h"

namespace verbena::device::command {

struct NamedQp {
  QpRecord* record;
  QpContext* qp;
};
Maybe<NamedQp> named_qp(State& state, std::uint32_t qpn, std::uint16_t uid);

Outcome create_qp(State& state, const Call<prm::CreateQpIn, prm::CreateQpOut>& call);

// Gives back the objects that the QP stands on.
void release_parts(State& state, QpRecord& record);

}  // namespace verbena::device::command
