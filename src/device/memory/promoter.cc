// The owner's side of promotion: moving pages, forgetting what the program replaced, fork.
#include <pthread.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>
#include <mutex>
#include <vector>

#include "device/memory/guard.h"
#include "device/memory/maps.h"
#include "device/memory/promote.h"
#include "device/memory/promoted_table.h"
#include "device/transport/clock.h"

namespace verbena::device {

struct Promoter::State {
  explicit State(Nic& n) : nic(n) {}
  struct Run {  // whole chunks of arena behind one move
    std::uint64_t va, end, arena, arena_bytes;
    bool dead = false;
  };
  struct Resting {  // arena memory that peers may still be writing to
    std::uint64_t arena, bytes, since_ns;
  };
  Nic& nic;
  std::mutex mutex;
  std::vector<Run> runs;
  std::vector<Resting> resting;
  std::uint64_t device = 0, inode = 0;
  bool enabled = true;

  void promote_registered(const std::vector<Mapping>& maps, std::uint64_t va, std::uint64_t end);
  void promote(const std::vector<Mapping>& maps, std::uint64_t va, std::uint64_t end);
  void move(std::uint64_t va, std::uint64_t end);
  bool publish(std::uint64_t va, std::uint64_t end, std::uint64_t arena);
  void withdraw(std::uint64_t va, std::uint64_t end);
  void forget_replaced(std::uint64_t va, std::uint64_t end);
  void release_rested();
};

namespace {

// The range being moved, for the fault handler: writers to it wait.
std::atomic<std::uint64_t> gate_start{0}, gate_end{0};
std::atomic<std::uint64_t> retry_address{0};
std::atomic<unsigned> retry_count{0};
std::atomic<std::uint64_t> moved_low{~0ull}, moved_high{0};  // bounds of everything ever moved

bool wait_at_gate(std::uintptr_t address) {
  bool waited = false;
  while (address >= gate_start.load(std::memory_order_acquire) && address < gate_end.load(std::memory_order_acquire)) {
    waited = true;
    sched_yield();
  }
  if (waited) return true;
  // The gate may have opened between the fault and this handler: try again, but not for ever.
  if (address < moved_low.load() || address >= moved_high.load()) return false;
  if (retry_address.exchange(address) != address) retry_count.store(0);
  return retry_count.fetch_add(1) < 64;
}

// ---- fork: the child gets private copies, as with private memory ----

struct Snapshot {
  std::uint64_t va, bytes;
  void* copy;
};
std::mutex& registry_mutex() {
  static auto* m = new std::mutex;
  return *m;
}
std::vector<Promoter::State*>& registry() {
  static auto* r = new std::vector<Promoter::State*>;
  return *r;
}
std::vector<Snapshot>& snapshots() {
  static auto* s = new std::vector<Snapshot>;
  return *s;
}

void before_fork() {
  registry_mutex().lock();
  for (auto* state : registry()) {
    state->mutex.lock();
    for (const auto& run : state->runs) {
      if (run.dead) continue;
      const std::uint64_t bytes = run.end - run.va;
      void* copy = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
      if (copy == MAP_FAILED) continue;
      if (guarded_copy(copy, state->nic.self().arena + run.arena, bytes) == 0)
        snapshots().push_back({run.va, bytes, copy});
      else
        munmap(copy, bytes);
    }
  }
}
void unlock_all() {
  for (auto* state : registry()) state->mutex.unlock();
  registry_mutex().unlock();
}
void after_fork_in_parent() {
  for (const Snapshot& s : snapshots()) munmap(s.copy, s.bytes);
  snapshots().clear();
  unlock_all();
}
void after_fork_in_child() {
  const auto maps = snapshots().empty() ? std::vector<Mapping>{} : own_mappings();
  for (const Snapshot& s : snapshots())
    for (std::uint64_t at = s.va, next; at < s.va + s.bytes; at = next) {
      // Only where the parent's shared mapping was inherited: not what is MADV_DONTFORK, nor what replaced it.
      const Mapping* m = mapping_of(maps, at);
      next = m != nullptr ? std::min(m->end, s.va + s.bytes) : at + kPromotedPage;
      bool inherited = false;
      for (auto* state : registry())
        inherited |= m != nullptr && m->shared && m->device == state->device && m->inode == state->inode;
      if (!inherited) continue;
      mremap(static_cast<char*>(s.copy) + (at - s.va), next - at, next - at, MREMAP_MAYMOVE | MREMAP_FIXED,
             reinterpret_cast<void*>(at));
    }
  snapshots().clear();
  unlock_all();
  registry().clear();
}

}  // namespace

Promoter::Promoter(Nic& nic) : state_(std::make_unique<State>(nic)) {
  static const int once = pthread_atfork(before_fork, after_fork_in_parent, after_fork_in_child);
  (void)once;
  const char* env = std::getenv("VERBENA_PROMOTE");
  state_->enabled = env != nullptr && std::strcmp(env, "1") == 0 && nic.slice_identity(state_->device, state_->inode);
  set_fault_hook(&wait_at_gate);
  std::lock_guard guard(registry_mutex());
  registry().push_back(state_.get());
}

// What was promoted stays mapped: the program's data lies there. The file lives on until the last mapping goes.
Promoter::~Promoter() {
  std::lock_guard guard(registry_mutex());
  std::erase(registry(), state_.get());
}

void Promoter::serve() {
  SliceHeader& h = state_->nic.slice().header;
  std::vector<Mapping> maps;
  for (auto& place : h.promote_wish) {
    const std::uint64_t wish = place.exchange(0, std::memory_order_acq_rel);
    if (wish == 0 || !state_->enabled) continue;
    std::lock_guard guard(state_->mutex);
    maps = own_mappings();
    const std::uint64_t start = wish >> 16 << kLogChunk;
    state_->promote_registered(maps, start, start + (wish & 0xffff) * kPromotedChunk);
  }
}

// Promotes the pages of [va, end) that lie whole inside a memory region. Never others: a page that also holds an
// allocator's or a library's own data would stay shared with a forked child until its handlers run, and both would
// write to it.
void Promoter::State::promote_registered(const std::vector<Mapping>& maps, std::uint64_t va, std::uint64_t end) {
  const std::uint32_t keys = nic.mkey_high_water();
  for (std::uint32_t i = 0; i < keys; ++i) {
    const MkeyContext& key = nic.slice().mkeys[i];
    const std::uint32_t flags = key.flags.load(std::memory_order_relaxed);
    if (!Nic::in_use(key) || key.mode != MkeyMode::pa || (flags & (kMkeyFree | kMkeyLength64 | kMkeyWindow))) continue;
    const std::uint64_t start = key.start + key.translations, stop = start + key.length;
    if (stop < start || start >= end || stop <= va) continue;
    const std::uint64_t first = std::max(va, (start + kPromotedPage - 1) & ~(kPromotedPage - 1));
    const std::uint64_t last = std::min(end, stop & ~(kPromotedPage - 1));
    if (first < last) promote(maps, first, last);
  }
}

// Promotes what is fit of [va, end), mapping by mapping.
void Promoter::State::promote(const std::vector<Mapping>& maps, std::uint64_t va, std::uint64_t end) {
  release_rested();
  for (const Mapping& m : maps) {
    const std::uint64_t from = std::max(va, m.start), to = std::min(end, m.end);
    if (from >= to || !m.read || !m.write || m.shared || m.inode != 0 || m.named || m.below_guard) continue;
    // Skips chunks of which a part is promoted already.
    for (std::uint64_t at = from; at < to;) {
      std::uint64_t stop = at;
      while (stop < to && find_promoted(nic.slice(), stop).end == 0)
        stop = std::min(to, (stop & ~(kPromotedChunk - 1)) + kPromotedChunk);
      if (stop > at) move(at, stop);
      at = std::max(stop, std::min(to, (stop & ~(kPromotedChunk - 1)) + kPromotedChunk));
    }
  }
}

void Promoter::State::move(std::uint64_t va, std::uint64_t end) {
  const std::uint64_t chunk = va & ~(kPromotedChunk - 1);
  const std::uint64_t bytes = ((end + kPromotedChunk - 1) & ~(kPromotedChunk - 1)) - chunk;
  const std::uint64_t arena = nic.alloc_arena(bytes, kPromotedChunk);
  if (arena == 0) return;
  auto* from = reinterpret_cast<void*>(va);
  const std::uint64_t shift = va - chunk, length = end - va;
  const bool dontfork = is_dontfork(va);
  SliceHeader& h = nic.slice().header;
  ensure_guard();
  h.promoting.fetch_add(1);
  gate_start.store(va);
  gate_end.store(end);
  bool moved = mprotect(from, length, PROT_READ) == 0;
  if (moved) {
    moved = guarded_copy(nic.self().arena + arena + shift, from, length) == 0 && nic.map_arena(from, length, arena + shift);
    if (moved) {
      if (dontfork) madvise(from, length, MADV_DONTFORK);
      if (va < moved_low.load()) moved_low.store(va);
      if (end > moved_high.load()) moved_high.store(end);
    } else {
      mprotect(from, length, PROT_READ | PROT_WRITE);
    }
  }
  if (moved) publish(va, end, arena);
  gate_end.store(0);
  gate_start.store(0);
  h.promoting.fetch_add(1);
  if (moved)
    runs.push_back({va, end, arena + shift, bytes});
  else
    nic.free_arena(arena, bytes);
}

bool Promoter::State::publish(std::uint64_t va, std::uint64_t end, std::uint64_t arena) {
  Slice& s = nic.slice();
  bool all = true;
  for (std::uint64_t chunk = va & ~(kPromotedChunk - 1); chunk < end; chunk += kPromotedChunk, arena += kPromotedChunk) {
    const std::uint64_t first = chunk < va ? (va - chunk) / kPromotedPage : 0;
    const std::uint64_t last = std::min(end - chunk, kPromotedChunk) / kPromotedPage - 1;
    bool placed = false;
    for (unsigned i = 0, at = promoted_hash(chunk); i < kPromotedProbes && !placed; ++i, at = (at + 1) & (kPromotedSlots - 1)) {
      PromotedChunk& entry = s.promoted[at];
      const std::uint64_t key = entry.va.load();
      if (key != 0 && key != kPromotedGone) continue;
      entry.offset.store(arena | first << 4 | last, std::memory_order_relaxed);
      entry.va.store(chunk + 1, std::memory_order_release);
      s.header.promoted_count.fetch_add(1, std::memory_order_release);
      placed = true;
    }
    all &= placed;  // without an entry peers go on the slow way, which stays right
  }
  return all;
}

void Promoter::State::withdraw(std::uint64_t va, std::uint64_t end) {
  Slice& s = nic.slice();
  for (std::uint64_t chunk = va & ~(kPromotedChunk - 1); chunk < end; chunk += kPromotedChunk)
    for (unsigned i = 0, at = promoted_hash(chunk); i < kPromotedProbes; ++i, at = (at + 1) & (kPromotedSlots - 1)) {
      PromotedChunk& entry = s.promoted[at];
      if (entry.va.load() == 0) break;
      if (entry.va.load() != chunk + 1) continue;
      entry.va.store(kPromotedGone, std::memory_order_release);
      s.header.promoted_count.fetch_sub(1, std::memory_order_release);
      break;
    }
}

void Promoter::State::release_rested() {
  const std::uint64_t now = monotonic_ns();
  std::erase_if(resting, [&](const Resting& r) {
    if (now - r.since_ns < 1'000'000'000) return false;
    nic.free_arena(r.arena, r.bytes);
    return true;
  });
}

void Promoter::State::forget_replaced(std::uint64_t va, std::uint64_t end) {
  bool any = false;
  for (const Run& run : runs) any |= !run.dead && run.va < end && va < run.end;
  if (!any) return;
  const auto maps = own_mappings();
  for (Run& run : runs) {
    if (run.dead || run.va >= end || va >= run.end) continue;
    bool still_ours = true, some_ours = false;
    for (std::uint64_t at = run.va; at < run.end; at += kPromotedPage) {
      const Mapping* m = mapping_of(maps, at);
      const bool ours = m != nullptr && m->shared && m->device == device && m->inode == inode &&
                        m->offset + (at - m->start) == kArenaOffset + run.arena + (at - run.va);
      still_ours &= ours;
      some_ours |= ours;
    }
    if (still_ours) continue;
    withdraw(run.va, run.end);
    // What is left of it stays where it is, reached the slow way; its arena memory is given up only when none is.
    if (some_ours) continue;
    run.dead = true;
    resting.push_back({run.arena & ~(kPromotedChunk - 1), run.arena_bytes, monotonic_ns()});
  }
  std::erase_if(runs, [](const Run& run) { return run.dead; });
}

void Promoter::registered(std::uint64_t va, std::uint64_t length) {
  if (state_->nic.slice().header.promoted_count.load(std::memory_order_relaxed) == 0) return;
  std::lock_guard guard(state_->mutex);
  state_->forget_replaced(va, va + length);
}

}  // namespace verbena::device
