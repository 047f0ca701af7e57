// The table of promoted chunks in a slice: open addressing, read by everyone, written by the owner.
// Threads: any.
#pragma once

#include <cstdint>

#include "device/shared/segments.h"

namespace verbena::device {

inline constexpr std::uint64_t kPromotedChunk = std::uint64_t{1} << kLogChunk;
inline constexpr std::uint64_t kPromotedPage = 4096;
inline constexpr unsigned kPromotedProbes = 32;

inline unsigned promoted_hash(std::uint64_t va) {
  return static_cast<unsigned>(((va >> kLogChunk) * 0x9e3779b97f4a7c15u) >> 40) & (kPromotedSlots - 1);
}

// The promoted part of one chunk: owner addresses, and the arena offset of `start`. All zero: none.
struct PromotedRange {
  std::uint64_t start = 0, end = 0, arena = 0;
  bool holds(std::uint64_t va) const { return va >= start && va < end; }
};

inline PromotedRange find_promoted(const Slice& slice, std::uint64_t va) {
  const std::uint64_t chunk = va & ~(kPromotedChunk - 1);
  for (unsigned i = 0, at = promoted_hash(va); i < kPromotedProbes; ++i, at = (at + 1) & (kPromotedSlots - 1)) {
    const PromotedChunk& entry = slice.promoted[at];
    const std::uint64_t key = entry.va.load(std::memory_order_acquire);
    if (key == 0) break;
    if (key != chunk + 1) continue;
    const std::uint64_t v = entry.offset.load(std::memory_order_acquire);
    if (entry.va.load(std::memory_order_relaxed) != key) break;
    const std::uint64_t offset = v & ~(kPromotedChunk - 1), first = v >> 4 & 15, last = v & 15;
    if (first > last || offset > kArenaBytes - kPromotedChunk) break;
    return {chunk + first * kPromotedPage, chunk + (last + 1) * kPromotedPage, offset + first * kPromotedPage};
  }
  return {};
}

}  // namespace verbena::device
