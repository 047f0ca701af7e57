#include "device/memory/promote.h"

#include <algorithm>

namespace verbena::device {

namespace {
constexpr std::uint64_t kChunk = std::uint64_t{1} << kLogChunk;
constexpr unsigned kProbes = 16;

unsigned hash(std::uint64_t chunk) {
  return static_cast<unsigned>((chunk * 0x9e3779b97f4a7c15u) >> 40) & (kPromotedSlots - 1);
}

// Where the chunk lies in the arena; kArenaBytes: not promoted.
std::uint64_t find(const Slice& slice, std::uint64_t chunk_va) {
  for (unsigned i = 0, at = hash(chunk_va >> kLogChunk); i < kProbes; ++i, at = (at + 1) & (kPromotedSlots - 1)) {
    const PromotedChunk& entry = slice.promoted[at];
    const std::uint64_t va = entry.va.load(std::memory_order_acquire);
    if (va == 0) return kArenaBytes;
    if (va != chunk_va + 1) continue;
    const std::uint64_t offset = entry.offset.load(std::memory_order_relaxed);
    return offset <= kArenaBytes - kChunk ? offset : kArenaBytes;
  }
  return kArenaBytes;
}
}  // namespace

std::byte* promoted(const Peer& peer, std::uint64_t va, std::uint64_t& n) {
  if (peer.slice->header.promoted_count.load(std::memory_order_relaxed) == 0) return nullptr;
  const std::uint64_t chunk = va & ~(kChunk - 1);
  const std::uint64_t offset = find(*peer.slice, chunk);
  const bool yes = offset != kArenaBytes;
  std::uint64_t extent = kChunk - (va - chunk);
  for (std::uint64_t next = chunk + kChunk; extent < n; next += kChunk, extent += kChunk) {
    const std::uint64_t o = find(*peer.slice, next);
    if (yes ? o != offset + (next - chunk) : o != kArenaBytes) break;
  }
  n = std::min(n, extent);
  return yes ? peer.arena + offset + (va - chunk) : nullptr;
}

void note_remote_access(Peer&, std::uint64_t, std::uint64_t) {}

}  // namespace verbena::device
