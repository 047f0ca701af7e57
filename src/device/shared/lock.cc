#include "device/shared/lock.h"

#include <sched.h>
#include <time.h>

namespace verbena::device {

namespace {
std::atomic<HolderAlive> holder_alive{nullptr};
std::atomic<void (*)()> wait_hook{nullptr};
std::atomic<std::uint32_t> own_id{0};
std::atomic<std::uint64_t> patience_ns{1'000'000'000};

std::uint64_t now_ns() {
  timespec t{};
  clock_gettime(CLOCK_MONOTONIC, &t);
  return static_cast<std::uint64_t>(t.tv_sec) * 1'000'000'000u + static_cast<std::uint64_t>(t.tv_nsec);
}
}  // namespace

void set_holder_alive(HolderAlive check) { holder_alive.store(check, std::memory_order_release); }

bool holder_lives(std::uint32_t holder) {
  const HolderAlive check = holder_alive.load(std::memory_order_acquire);
  return check == nullptr || check(holder);
}
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
  std::uint32_t suspect = holder();
  std::uint64_t since = now_ns(), suspect_at = since + kSuspectAfterNs;  // `suspect` was seen from `since` on
  for (;;) {
    sched_yield();
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
    const bool lost = !holder_lives(seen) || now - since > patience_ns.load(std::memory_order_relaxed);
    if (lost && word_.compare_exchange_strong(seen, me, std::memory_order_acquire)) return;
    suspect_at = now + kSuspectAfterNs;
  }
}

}  // namespace verbena::device
