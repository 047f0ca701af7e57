// The lock of a queue. Uncontended it costs one atomic exchange; where the program promised a single thread
// (thread domain, IBV_CREATE_CQ_ATTR_SINGLE_THREADED, MLX5_SINGLE_THREADED) it costs a predicted branch.
//
// Threads: lock() and unlock() by any; set_shared() before the object is published.
#pragma once

#include <sched.h>

#include <atomic>
#include <cstdint>

namespace verbena::mlx5 {

class SpinLock {
 public:
  void set_shared(bool shared) { shared_ = shared; }
  bool shared() const { return shared_; }

  void lock() {
    if (!shared_) return;
    if (__builtin_expect(word_.exchange(1, std::memory_order_acquire), 0)) wait();
  }
  void unlock() {
    if (shared_) word_.store(0, std::memory_order_release);
  }

 private:
  // On few cores the holder may be off its core: give ours up after a short spin.
  [[gnu::noinline, gnu::cold]] void wait() {
    for (unsigned spins = 0;; ++spins) {
      if (!word_.load(std::memory_order_relaxed) && !word_.exchange(1, std::memory_order_acquire)) return;
      if (spins < 100)
        __builtin_ia32_pause();
      else
        sched_yield();
    }
  }

  std::atomic<std::uint32_t> word_{0};
  bool shared_ = true;
};

class LockGuard {
 public:
  explicit LockGuard(SpinLock& lock) : lock_(lock) { lock_.lock(); }
  ~LockGuard() { lock_.unlock(); }
  LockGuard(const LockGuard&) = delete;
  LockGuard& operator=(const LockGuard&) = delete;

 private:
  SpinLock& lock_;
};

}  // namespace verbena::mlx5
