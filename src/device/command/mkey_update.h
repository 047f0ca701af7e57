// Changing a memory key in place, as the driver's own UMR queue does on hardware: the key keeps its number.
// Threads: any; takes the state's mutex.
#pragma once

#include <cstdint>

#include "device/command/state.h"
#include "prm/mkey.h"

namespace verbena::device::command {

// Gives the key the domain and the rights of `mkc`; with `range`, which only direct keys (mode PA) have, also its
// start and length. Returns 0, or EINVAL if there is no such key, domain or range; nothing is changed then.
int update_mkey(State& state, std::uint32_t key, const prm::ConstView<prm::Mkc>& mkc, bool range);

}  // namespace verbena::device::command
