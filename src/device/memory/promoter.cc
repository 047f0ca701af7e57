// The owner's side of promotion: what to move, and forgetting what the program replaced.
#include <sys/mman.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>

#include "device/memory/promote.h"
#include "device/memory/promoted_table.h"
#include "device/memory/promoter_fork.h"
#include "device/memory/promoter_state.h"
#include "device/transport/clock.h"

namespace verbena::device {

namespace {

constexpr std::uint64_t kStretch = 1 << 20;  // moved under one hold of the mutex
constexpr std::uint64_t kRestNs = 1'000'000'000;

// The pages of the chunk at `chunk` that lie in [va, end).
std::uint32_t pages_between(std::uint64_t chunk, std::uint64_t va, std::uint64_t end) {
  const std::uint64_t first = va <= chunk ? 0 : (va - chunk) / kPromotedPage;
  const std::uint64_t stop = end >= chunk + kPromotedChunk ? PromotedPages::kPages : (end - chunk + kPromotedPage - 1) / kPromotedPage;
  return first >= stop ? 0 : ((1u << stop) - 1) & ~((1u << first) - 1);
}

// Calls visit(first address, end) for every run of set pages.
template <class Visit>
void for_each_run(std::uint64_t chunk, std::uint32_t pages, Visit&& visit) {
  while (pages != 0) {
    const auto first = static_cast<unsigned>(std::countr_zero(pages));
    const auto count = static_cast<unsigned>(std::countr_one(pages >> first));
    visit(chunk + first * kPromotedPage, chunk + (first + count) * kPromotedPage);
    pages &= ~(((1u << count) - 1) << first);
  }
}

// A free place in the table for a chunk; null: too many of its neighbours are taken, peers go on the slow way.
PromotedChunk* free_entry(Slice& s, std::uint64_t chunk) {
  for (unsigned i = 0, at = promoted_hash(chunk); i < kPromotedProbes; ++i, at = (at + 1) & (kPromotedSlots - 1)) {
    const std::uint64_t key = s.promoted[at].va.load(std::memory_order_relaxed);
    if (key == 0 || key == kPromotedGone) return &s.promoted[at];
  }
  return nullptr;
}

}  // namespace

Promoter::Promoter(Nic& nic) : state_(std::make_unique<State>(nic)) {
  const char* env = std::getenv("VERBENA_PROMOTE");
  state_->enabled = (env == nullptr || std::strcmp(env, "0") != 0) && nic.slice_identity(state_->device, state_->inode);
  enroll(*state_);
}

// The program's data must not stay in a file that is about to go.
Promoter::~Promoter() {
  strike_off(*state_);
  std::lock_guard guard(state_->mutex);
  state_->demote(0, ~std::uint64_t{0}, false);
}

void Promoter::serve() {
  if (!state_->enabled) return;
  for (auto& place : state_->nic.slice().header.promote_wish) {
    const std::uint64_t wish = place.exchange(0, std::memory_order_acq_rel);
    if (wish == 0) continue;
    const std::uint64_t start = wish >> 16 << kLogChunk, end = start + (wish & 0xffff) * kPromotedChunk;
    for (std::uint64_t at = start; at < end; at += kStretch) {
      std::lock_guard guard(state_->mutex);
      state_->promote(at, std::min(end, at + kStretch));
    }
  }
}

// Rings and doorbell records that the library took from the arena need nothing of all this.
bool Promoter::State::in_arena(std::uint64_t va, std::uint64_t length) const {
  return length == 0 || nic.self().in_arena(va, length) != nullptr;
}

void Promoter::registered(std::uint64_t va, std::uint64_t length) {
  if (state_->in_arena(va, length)) return;
  std::lock_guard guard(state_->mutex);
  state_->coverage.add(va, va + length);
  state_->forget_replaced(va, va + length);
}

void Promoter::unregistered(std::uint64_t va, std::uint64_t length) {
  if (state_->in_arena(va, length)) return;
  std::lock_guard guard(state_->mutex);
  state_->coverage.remove(va, va + length);
  state_->demote(va, va + length, true);
}

std::optional<bool> Promoter::is_registered(std::uint64_t va, std::uint64_t length) {
  std::unique_lock guard(state_->mutex, std::try_to_lock);
  if (!guard) return std::nullopt;
  return va + length >= va && state_->coverage.covers(va, va + length);
}

// Promotes the pages of [va, end) that are fit: private anonymous memory that cannot be a stack, and whole inside a
// memory region. Never others: memory that is not registered is the allocator's, the kernel's (MADV_DONTNEED must give
// zeros) and a forked child's business.
void Promoter::State::promote(std::uint64_t va, std::uint64_t end) {
  release_rested();
  const auto maps = own_mappings();
  for (const Mapping& m : maps) {
    const std::uint64_t from = std::max(va, m.start), to = std::min(end, m.end);
    if (from >= to || !m.read || !m.write || m.shared || m.inode != 0 || m.named || m.below_guard) continue;
    for (auto [first, last] = coverage.next(from, to); first < last; std::tie(first, last) = coverage.next(last, to)) {
      const std::uint64_t start = (first + kPromotedPage - 1) & ~(kPromotedPage - 1), stop = last & ~(kPromotedPage - 1);
      if (start >= stop || !prepare(start, stop)) continue;
      for (std::uint64_t chunk = promoted_chunk(start); chunk < stop; chunk += kPromotedChunk) {
        const auto at = chunks.find(chunk);
        if (at == chunks.end()) continue;
        Chunk& c = at->second;
        for_each_run(chunk, pages_between(chunk, start, stop) & ~c.pages, [&](std::uint64_t run, std::uint64_t run_end) {
          if (move_in(run, run_end, c.arena + (run - chunk))) c.pages |= pages_between(chunk, run, run_end);
        });
        c.entry->where.store(c.arena | c.pages, std::memory_order_release);
        drop_if_empty(at);
      }
    }
  }
}

// Gives every chunk of [va, end) its place, side by side where several are new. False: none left.
bool Promoter::State::prepare(std::uint64_t va, std::uint64_t end) {
  for (std::uint64_t chunk = promoted_chunk(va); chunk < end;) {
    std::uint64_t stop = chunk;
    while (stop < end && !chunks.contains(stop)) stop += kPromotedChunk;
    if (stop == chunk) {
      chunk += kPromotedChunk;
      continue;
    }
    std::uint64_t arena = nic.reserve_arena(stop - chunk, kPromotedChunk);
    if (arena == 0) return false;
    for (; chunk < stop; chunk += kPromotedChunk, arena += kPromotedChunk) {
      PromotedChunk* entry = free_entry(nic.slice(), chunk);
      if (entry == nullptr) {
        nic.free_arena(arena, kPromotedChunk);
        continue;
      }
      entry->where.store(arena, std::memory_order_relaxed);
      entry->va.store(chunk + 1, std::memory_order_release);
      nic.slice().header.promoted_count.fetch_add(1, std::memory_order_release);
      chunks.emplace(chunk, Chunk{arena, 0, entry});
    }
  }
  return true;
}

Promoter::State::Chunks::iterator Promoter::State::drop_if_empty(Chunks::iterator at) {
  if (at->second.pages != 0) return ++at;
  at->second.entry->va.store(kPromotedGone, std::memory_order_release);
  nic.slice().header.promoted_count.fetch_sub(1, std::memory_order_release);
  resting.push_back({at->second.arena, monotonic_ns()});
  return chunks.erase(at);
}

void Promoter::State::release_rested() {
  const std::uint64_t now = monotonic_ns();
  std::erase_if(resting, [&](const Resting& r) {
    if (now - r.since_ns < kRestNs) return false;
    nic.free_arena(r.arena, kPromotedChunk);
    return true;
  });
}

bool Promoter::State::ours(const Mapping* m, std::uint64_t va, std::uint64_t arena) const {
  return m != nullptr && m->shared && m->device == device && m->inode == inode &&
         m->offset + (va - m->start) == kArenaOffset + arena;
}

void Promoter::State::demote(std::uint64_t va, std::uint64_t end, bool keep_covered) {
  auto at = chunks.lower_bound(promoted_chunk(va));
  if (at == chunks.end() || at->first >= end) return;
  std::vector<std::pair<std::uint64_t, std::uint32_t>> leaving;
  for (; at != chunks.end() && at->first < end; ++at) {
    std::uint32_t pages = 0;
    for_each_run(at->first, pages_between(at->first, va, end) & at->second.pages, [&](std::uint64_t run, std::uint64_t stop) {
      for (; run < stop; run += kPromotedPage)
        if (!keep_covered || !coverage.covers(run, run + kPromotedPage)) pages |= pages_between(at->first, run, run + kPromotedPage);
    });
    if (pages == 0) continue;
    leaving.emplace_back(at->first, pages);
    at->second.entry->where.store(at->second.arena | (at->second.pages & ~pages), std::memory_order_release);
  }
  if (leaving.empty()) return;
  wait_for_deliveries();
  const auto maps = own_mappings();
  for (const auto& [chunk, pages] : leaving) demote_chunk(chunks.find(chunk), pages, maps);
}

void Promoter::State::demote_chunk(Chunks::iterator at, std::uint32_t pages, const std::vector<Mapping>& maps) {
  Chunk& c = at->second;
  for_each_run(at->first, pages, [&](std::uint64_t run, std::uint64_t stop) {
    for (std::uint64_t next; run < stop; run = next) {  // piece by piece of what the program has left there
      const Mapping* m = mapping_of(maps, run);
      const bool mine = ours(m, run, c.arena + (run - at->first));
      next = m != nullptr ? std::min(m->end, stop) : run + kPromotedPage;
      // A page that cannot go back (no memory) stays promoted.
      if (!mine || move_out(run, next)) c.pages &= ~pages_between(at->first, run, next);
    }
  });
  c.entry->where.store(c.arena | c.pages, std::memory_order_release);
  drop_if_empty(at);
}

// Memory was registered where promoted pages were: drops those that the program has replaced since.
void Promoter::State::forget_replaced(std::uint64_t va, std::uint64_t end) {
  auto at = chunks.lower_bound(promoted_chunk(va));
  if (at == chunks.end() || at->first >= end) return;
  const auto maps = own_mappings();
  while (at != chunks.end() && at->first < end) {
    Chunk& c = at->second;
    for (std::uint64_t page = at->first; page < at->first + kPromotedChunk; page += kPromotedPage)
      if (!ours(mapping_of(maps, page), page, c.arena + (page - at->first)))
        c.pages &= ~pages_between(at->first, page, page + kPromotedPage);
    c.entry->where.store(c.arena | c.pages, std::memory_order_release);
    at = drop_if_empty(at);
  }
}

}  // namespace verbena::device
