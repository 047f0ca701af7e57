#include "device/memory/errand.h"

#include <sched.h>
#include <time.h>

#include <algorithm>
#include <array>

#include "device/memory/guard.h"
#include "device/shared/lock.h"
#include "device/transport/clock.h"
#include "device/transport/completion.h"

namespace verbena::device {

namespace {

constexpr std::uint64_t kAnswerNs = 1'000'000'000;
constexpr std::uint64_t kSpinNs = 20'000;  // then the processor goes to others for longer

std::array<std::atomic<ErrandDuty*>, 16> on_duty;

std::uint32_t code(ErrandState s) { return static_cast<std::uint32_t>(s); }

bool turn(Errand& e, ErrandState from, ErrandState to) {
  std::uint32_t expected = code(from);
  return e.state.compare_exchange_strong(expected, code(to), std::memory_order_acq_rel);
}

void pause_since(std::uint64_t start) {
  if (monotonic_ns() - start < kSpinNs) {
    sched_yield();
    return;
  }
  const timespec t{0, 50'000};
  nanosleep(&t, nullptr);
}

// A window of the owner's, ours until it is free again; kErrands if none comes free in time.
unsigned claim(SliceHeader& h) {
  for (const std::uint64_t start = monotonic_ns(); monotonic_ns() - start < kAnswerNs; pause_since(start))
    for (unsigned i = 0; i < kErrands; ++i) {
      Errand& e = h.errands[i];
      const std::uint32_t state = e.state.load(std::memory_order_relaxed);
      if (state != code(ErrandState::free)) {
        // Of one who died with it. (Running ones end by themselves.)
        const bool stale = state == code(ErrandState::filling) || state == code(ErrandState::done);
        if (!stale || monotonic_ns() - start < kAnswerNs / 2 || holder_lives(e.who)) continue;
        std::uint32_t seen = state;
        if (!e.state.compare_exchange_strong(seen, code(ErrandState::filling))) continue;
      } else if (!turn(e, ErrandState::free, ErrandState::filling)) {
        continue;
      }
      e.who = process_id();
      return i;
    }
  return kErrands;
}

// One window's worth.
Moved run_one(Peer& peer, bool writing, std::byte* mine, std::uint64_t theirs, std::uint64_t n) {
  SliceHeader& h = peer.slice->header;
  const unsigned i = claim(h);
  if (i == kErrands) return Moved::gone;
  Errand& e = h.errands[i];
  std::byte* window = peer.slice->errand_data[i];
  if (writing && guarded_copy(window, mine, n) != 0) {
    e.state.store(code(ErrandState::free), std::memory_order_release);
    return Moved::source_fault;
  }
  e.va = theirs;
  e.bytes = static_cast<std::uint32_t>(n);
  e.write = writing;
  e.failed = 0;
  e.state.store(code(ErrandState::asked), std::memory_order_release);
  h.pending.fetch_or(kPendingErrand, std::memory_order_seq_cst);
  wake_helper(peer);
  const std::uint64_t start = monotonic_ns();
  while (e.state.load(std::memory_order_acquire) != code(ErrandState::done)) {
    if (monotonic_ns() - start > kAnswerNs && turn(e, ErrandState::asked, ErrandState::free)) return Moved::gone;
    if (monotonic_ns() - start > 2 * kAnswerNs) return Moved::gone;  // stopped or dead while at it: its window stays
    pause_since(start);
  }
  Moved result = e.failed == 0 ? Moved::ok : writing ? Moved::destination_fault : Moved::source_fault;
  if (!writing && result == Moved::ok && guarded_copy(mine, window, n) != 0) result = Moved::destination_fault;
  e.state.store(code(ErrandState::free), std::memory_order_release);
  return result;
}

void serve_all() {
  for (auto& place : on_duty)
    if (ErrandDuty* duty = place.load(std::memory_order_acquire); duty != nullptr && duty->asked()) duty->serve();
}

}  // namespace

Moved run_errand(Peer& peer, bool writing, std::byte* mine, std::uint64_t theirs, std::uint64_t n) {
  while (n != 0) {
    const std::uint64_t part = std::min(n, kErrandBytes);
    if (const Moved m = run_one(peer, writing, mine, theirs, part); m != Moved::ok) return m;
    mine += part;
    theirs += part;
    n -= part;
  }
  return Moved::ok;
}

bool ErrandDuty::asked() const {
  return (nic_.slice().header.pending.load(std::memory_order_relaxed) & kPendingErrand) != 0;
}

void ErrandDuty::serve() {
  SliceHeader& h = nic_.slice().header;
  h.pending.fetch_and(~kPendingErrand, std::memory_order_seq_cst);
  for (unsigned i = 0; i < kErrands; ++i) {
    Errand& e = h.errands[i];
    if (!turn(e, ErrandState::asked, ErrandState::running)) continue;
    const std::uint64_t va = e.va, n = std::min<std::uint64_t>(e.bytes, kErrandBytes);
    const std::optional<bool> registered = promoter_.is_registered(va, n);
    if (!registered) {  // its pages are just being moved
      e.state.store(code(ErrandState::asked), std::memory_order_release);
      h.pending.fetch_or(kPendingErrand, std::memory_order_seq_cst);
      continue;
    }
    auto* memory = reinterpret_cast<std::byte*>(va);
    std::byte* window = nic_.slice().errand_data[i];
    e.failed = !*registered || (e.write != 0 ? guarded_copy(memory, window, n) : guarded_copy(window, memory, n)) != 0;
    e.state.store(code(ErrandState::done), std::memory_order_release);
  }
}

ErrandDuty::ErrandDuty(Nic& nic, Promoter& promoter) : nic_(nic), promoter_(promoter) {
  set_lock_wait_hook(&serve_all);
  for (auto& place : on_duty) {
    ErrandDuty* nobody = nullptr;
    if (place.compare_exchange_strong(nobody, this)) return;
  }
}

ErrandDuty::~ErrandDuty() {
  for (auto& place : on_duty) {
    ErrandDuty* me = this;
    if (place.compare_exchange_strong(me, nullptr)) return;
  }
}

}  // namespace verbena::device
