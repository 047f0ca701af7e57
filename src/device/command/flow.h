// What the capability page says of flow tables.
// Threads: constants.
#pragma once

#include <cstdint>

#include "prm/flow.h"

namespace verbena::device::command {

inline constexpr std::uint32_t kLogFlowTable = 13;  // entries of one table
inline constexpr std::uint32_t kFlowLevels = 64, kRoceFlowLevels = 255;
inline constexpr std::uint32_t kLogCounterBulk = 12;   // counters of a bulk
inline constexpr std::uint32_t kCounterBulks = (2u << kLogCounterBulk) / prm::kFlowCounterBulkUnit - 1;  // its bits

}  // namespace verbena::device::command
