// Fork and promoted memory: before a fork everything promoted goes back to private memory, so that the child gets its
// copy as the kernel makes it, from its first instruction. What stays hot is promoted again.
// Threads: any.
#pragma once

#include "device/memory/promote.h"

namespace verbena::device {

void enroll(Promoter::State& state);
void strike_off(Promoter::State& state);

}  // namespace verbena::device
