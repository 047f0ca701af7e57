// Which attributes a queue pair transition must and may carry (IBTA "Modify Queue Pair", as the kernel checks it).
// Threads: pure functions.
#pragma once

#include <cstdint>

#include "kernel/ib.h"

namespace verbena::kernel {

// Whether `mask` (QpAttr bits) is right for the transition of a QP of this type.
bool modify_is_ok(QpState current, QpState next, QpType type, std::uint32_t mask);

}  // namespace verbena::kernel
