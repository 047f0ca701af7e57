#include "device/shared/lock.h"

#include <sched.h>
#include <time.h>

namespace verbena::device {

namespace {
std::atomic<HolderAlive> holder_alive{nullptr};

std::uint64_t now_ns() {
  timespec t{};
  clock_gettime(CLOCK_MONOTONIC, &t);
  return static_cast<std::uint64_t>(t.tv_sec) * 1'000'000'000u + static_cast<std::uint64_t>(t.tv_nsec);
}
}  // namespace

void set_holder_alive(HolderAlive check) { holder_alive.store(check, std::memory_order_release); }

void SharedLock::lock_slow(std::uint32_t me) {
  constexpr int kSpins = 400;
  constexpr std::uint64_t kSuspectAfterNs = 2'000'000;  // far longer than any honest hold
  for (int i = 0; i < kSpins; ++i) {
    if (try_lock(me)) return;
    __builtin_ia32_pause();
  }
  std::uint64_t suspect_at = now_ns() + kSuspectAfterNs;
  std::uint32_t suspect = holder();
  for (;;) {
    sched_yield();
    if (try_lock(me)) return;
    if (now_ns() < suspect_at) continue;
    std::uint32_t seen = holder();
    const HolderAlive check = holder_alive.load(std::memory_order_acquire);
    if (seen != 0 && seen == suspect && check != nullptr && !check(seen) &&
        word_.compare_exchange_strong(seen, me, std::memory_order_acquire))
      return;
    suspect = holder();
    suspect_at = now_ns() + kSuspectAfterNs;
  }
}

}  // namespace verbena::device
