#include "device/shared/lock.h"

#include <time.h>

#include "device/shared/backoff.h"

namespace verbena::device {

namespace {
std::atomic<HolderCheck> holder_check{nullptr};
std::atomic<void (*)()> wait_hook{nullptr};
std::atomic<std::uint32_t> own_id{0};
std::atomic<std::uint64_t> patience_ns{1'000'000'000};

std::uint64_t now_ns() {
  timespec t{};
  clock_gettime(CLOCK_MONOTONIC, &t);
  return static_cast<std::uint64_t>(t.tv_sec) * 1'000'000'000u + static_cast<std::uint64_t>(t.tv_nsec);
}

constexpr std::uint64_t kStarved = 10;  // times the patience

Holder state_of(std::uint32_t holder) {
  const HolderCheck check = holder_check.load(std::memory_order_acquire);
  return check == nullptr ? Holder::lives : check(holder);
}

// Whether a lock that has been `holder`'s for so long is nobody's.
bool lost(std::uint32_t holder, std::uint64_t for_ns) {
  const std::uint64_t patience = patience_ns.load(std::memory_order_relaxed);
  switch (state_of(holder)) {
    case Holder::gone:
      return true;
    case Holder::stopped:
      return for_ns > patience;
    case Holder::lives:
      break;
  }
  return for_ns > kStarved * patience;
}
}  // namespace

void set_holder_check(HolderCheck check) { holder_check.store(check, std::memory_order_release); }

bool holder_lives(std::uint32_t holder) { return state_of(holder) != Holder::gone; }
void set_lock_wait_hook(void (*hook)()) { wait_hook.store(hook, std::memory_order_release); }
void set_process_id(std::uint32_t me) { own_id.store(me, std::memory_order_relaxed); }
std::uint32_t process_id() { return own_id.load(std::memory_order_relaxed); }
void set_lock_patience(std::uint64_t ns) { patience_ns.store(ns, std::memory_order_relaxed); }

void SharedLock::lock_slow(std::uint32_t me) {
  constexpr int kSpins = 400;
  constexpr std::uint64_t kSuspectAfterNs = 2'000'000;  // far longer than any honest hold
  for (int i = 0; i < kSpins; ++i) {
    if (try_lock(me)) return;
    __builtin_ia32_pause();
  }
  Backoff backoff;
  std::uint32_t suspect = holder();
  std::uint64_t since = now_ns(), suspect_at = since + kSuspectAfterNs;  // `suspect` was seen from `since` on
  for (;;) {
    backoff.pause();
    if (try_lock(me)) return;
    if (const auto hook = wait_hook.load(std::memory_order_acquire); hook != nullptr) hook();
    std::uint32_t seen = holder();
    const std::uint64_t now = now_ns();
    if (seen != suspect) {
      suspect = seen;
      since = now;
      suspect_at = now + kSuspectAfterNs;
      continue;
    }
    if (now < suspect_at || seen == 0) continue;
    if (lost(seen, now - since) && word_.compare_exchange_strong(seen, me, std::memory_order_acquire)) return;
    suspect_at = now + kSuspectAfterNs;
  }
}

}  // namespace verbena::device
