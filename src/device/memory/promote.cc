// The accessor's side of promotion.
#include "device/memory/promote.h"

#include <algorithm>

#include "device/memory/promoted_table.h"
#include "device/transport/completion.h"

namespace verbena::device {

namespace {

constexpr std::uint32_t kEnough = 8;  // accesses before a chunk is asked for
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
  const PromotedRange here = find_promoted(*peer.slice, va);
  if (here.holds(va)) {
    std::uint64_t end = here.end;
    const std::uint64_t shift = here.arena - here.start;  // arena offset = va + shift
    while (end - va < n) {
      const PromotedRange next = find_promoted(*peer.slice, end);
      if (!next.holds(end) || next.arena - next.start != shift) break;
      end = next.end;
    }
    n = std::min(n, end - va);
    return peer.arena + (va + shift);
  }
  // Not promoted here: how far does that hold?
  std::uint64_t end = here.start > va ? here.start : (va & ~(kPromotedChunk - 1)) + kPromotedChunk;
  while (end - va < n && here.start <= va) {
    const PromotedRange next = find_promoted(*peer.slice, end);
    if (next.end != 0) break;
    end += kPromotedChunk;
  }
  n = std::min(n, end - va);
  return nullptr;
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
  // Asked again now and then: the owner may have had no time, or the memory was not fit yet.
  if (count == kEnough || (count > kEnough && (count & 0xfff) == 0)) wish(peer, va, n);
}

}  // namespace verbena::device
