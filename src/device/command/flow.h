// What the capability page says of flow tables.
// Threads: constants.
#pragma once

#include <cstdint>

namespace verbena::device::command {

inline constexpr std::uint32_t kLogFlowTable = 13;  // entries of one table
inline constexpr std::uint32_t kFlowLevels = 64;

}  // namespace verbena::device::command
