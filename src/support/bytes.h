// Threads: pure functions.
#pragma once

#include <algorithm>
#include <cstddef>
#include <span>

namespace verbena {

inline bool is_zero(std::span<const std::byte> bytes) {
  return std::ranges::all_of(bytes, [](std::byte b) { return b == std::byte{0}; });
}

}  // namespace verbena
