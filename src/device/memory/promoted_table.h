// The table of promoted chunks in a slice: open addressing, read by everyone, written by the owner.
// Threads: any.
#pragma once

#include <bit>
#include <cstdint>

#include "device/shared/segments.h"

namespace verbena::device {

inline constexpr std::uint64_t kPromotedChunk = std::uint64_t{1} << kLogChunk;
inline constexpr std::uint64_t kPromotedPage = 4096;
static_assert(kPromotedChunk / kPromotedPage == kLogChunk, "a chunk has as many pages as its offset has free bits");
inline constexpr unsigned kPromotedProbes = 32;

inline unsigned promoted_hash(std::uint64_t va) {
  return static_cast<unsigned>(((va >> kLogChunk) * 0x9e3779b97f4a7c15u) >> 40) & (kPromotedSlots - 1);
}

// The promoted pages of one chunk: where the chunk lies in the arena, and a bit for each page that is there.
struct PromotedPages {
  std::uint64_t arena = 0;
  std::uint32_t pages = 0;

  static constexpr unsigned kPages = kPromotedChunk / kPromotedPage;
  static unsigned page_of(std::uint64_t va) { return va / kPromotedPage & (kPages - 1); }
  bool holds(std::uint64_t va) const { return (pages >> page_of(va) & 1) != 0; }
  // The end of the run of pages, promoted or not, that `va` lies in; within its chunk.
  std::uint64_t run_end(std::uint64_t va) const {
    const unsigned page = page_of(va);
    const std::uint32_t rest = (holds(va) ? ~pages : pages) >> page | 1u << (kPages - page);
    return (va & ~(kPromotedPage - 1)) + static_cast<unsigned>(std::countr_zero(rest)) * kPromotedPage;
  }
};

inline std::uint64_t promoted_chunk(std::uint64_t va) { return va & ~(kPromotedChunk - 1); }

inline PromotedPages find_promoted(const Slice& slice, std::uint64_t va) {
  const std::uint64_t chunk = promoted_chunk(va);
  for (unsigned i = 0, at = promoted_hash(va); i < kPromotedProbes; ++i, at = (at + 1) & (kPromotedSlots - 1)) {
    const PromotedChunk& entry = slice.promoted[at];
    const std::uint64_t key = entry.va.load(std::memory_order_acquire);
    if (key == 0) break;
    if (key != chunk + 1) continue;
    const std::uint64_t where = entry.where.load(std::memory_order_acquire);
    if (entry.va.load(std::memory_order_relaxed) != key) break;
    const std::uint64_t arena = where & ~(kPromotedChunk - 1);
    if (arena > kArenaBytes - kPromotedChunk) break;
    return {arena, static_cast<std::uint32_t>(where & (kPromotedChunk - 1))};
  }
  return {};
}

}  // namespace verbena::device
