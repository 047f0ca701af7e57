// Threads: pure functions.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>

namespace verbena {

inline bool is_zero(std::span<const std::byte> bytes) {
  return std::ranges::all_of(bytes, [](std::byte b) { return b == std::byte{0}; });
}

// Of whole words of 8 bytes; what is behind the last does not count.
inline std::uint64_t hash_words(std::span<const std::byte> bytes, std::uint64_t seed = 0) {
  std::uint64_t h = seed;
  for (; bytes.size() >= 8; bytes = bytes.subspan(8)) {
    std::uint64_t word;
    std::memcpy(&word, bytes.data(), sizeof word);
    h = (h ^ word) * 0x9e3779b97f4a7c15u;
    h ^= h >> 32;
  }
  return h;
}

}  // namespace verbena
