// Port counters, as sysfs shows them under counters/ and hw_counters/.
// Threads: any.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "kernel/node.h"

namespace verbena::kernel {

// 0, or ENOENT if there is no counter of that name, or the device's errno.
int read_counter(Node& node, const std::string& name, std::uint64_t* value);

// Those of hw_counters/, in their order there.
std::vector<std::string_view> hw_counter_names();

}  // namespace verbena::kernel
