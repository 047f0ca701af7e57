// The accessor's side of promotion.
#include "device/memory/promote.h"

#include <algorithm>
#include <bit>

#include "device/memory/promoted_table.h"
#include "device/transport/completion.h"

namespace verbena::device {

namespace {

constexpr std::uint32_t kEnough = 8;  // accesses before a chunk is asked for
constexpr std::uint32_t kSometimes = 4096;
constexpr unsigned kCounters = 4096;

// How often each chunk of each peer was reached the slow way; collisions only delay a wish.
struct Counter {
  std::atomic<std::uint64_t> who;
  std::atomic<std::uint32_t> count;
};
Counter counters[kCounters];

void wish(Peer& peer, std::uint64_t va, std::uint64_t n) {
  const std::uint64_t first = va >> kLogChunk, last = (va + n - 1) >> kLogChunk;
  const std::uint64_t entry = first << 16 | std::min<std::uint64_t>(last - first + 1, 0xffff);
  SliceHeader& h = peer.slice->header;
  for (auto& place : h.promote_wish)
    if (place.load(std::memory_order_relaxed) == entry) return;
  for (auto& place : h.promote_wish) {
    std::uint64_t empty = 0;
    if (!place.compare_exchange_strong(empty, entry, std::memory_order_release)) continue;
    h.pending.fetch_or(kPendingPromote, std::memory_order_release);
    return wake_helper(peer);
  }
}

}  // namespace

std::byte* promoted(const Peer& peer, std::uint64_t va, std::uint64_t& n) {
  if (peer.slice->header.promoted_count.load(std::memory_order_relaxed) == 0) return nullptr;
  const PromotedPages here = find_promoted(*peer.slice, va);
  const bool there = here.holds(va);
  const std::uint64_t shift = here.arena - promoted_chunk(va);  // arena offset = va + shift
  std::uint64_t end = here.run_end(va);
  while (end - va < n && end % kPromotedChunk == 0) {
    const PromotedPages next = find_promoted(*peer.slice, end);
    if (next.holds(end) != there || (there && next.arena - end != shift)) break;
    end = next.run_end(end);
  }
  n = std::min(n, end - va);
  return there ? peer.arena + (va + shift) : nullptr;
}

void note_remote_access(Peer& peer, std::uint64_t va, std::uint64_t n) {
  if (n == 0) return;
  const std::uint64_t who = (va >> kLogChunk) << 20 ^ std::uint64_t{peer.generation} << 10 ^ peer.slot ^ 1;
  Counter& c = counters[(who * 0x9e3779b97f4a7c15u) >> 52];
  if (c.who.load(std::memory_order_relaxed) != who) {
    c.who.store(who, std::memory_order_relaxed);
    c.count.store(0, std::memory_order_relaxed);
  }
  const std::uint32_t count = c.count.fetch_add(1, std::memory_order_relaxed) + 1;
  // Asked again, ever less often: the owner may have had no time, it may have forked, or the memory was not fit yet.
  if (count >= kEnough && (std::has_single_bit(count) || count % kSometimes == 0)) wish(peer, va, n);
}

}  // namespace verbena::device
