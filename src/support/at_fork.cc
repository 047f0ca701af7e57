#include "support/at_fork.h"

#include <pthread.h>

#include <array>
#include <atomic>
#include <mutex>

#include "support/own_calls.h"

namespace verbena {
namespace {

struct Rank {
  std::atomic<int> state = 0;  // 0 free, 1 being written, 2 ready
  ForkHandlers handlers;
  bool ran = false;  // before() called its handler; of the thread that holds fork_lock
};

// Held from before a fork until after it. at_fork() does not take it: its callers hold locks of their own.
std::mutex fork_lock;
std::array<Rank, static_cast<std::size_t>(ForkRank::count)> ranks;

void before() {
  const OwnCalls own;
  fork_lock.lock();
  for (auto& rank : ranks) {
    rank.ran = rank.state.load(std::memory_order_acquire) == 2;
    if (rank.ran) rank.handlers.before();
  }
}

void after(void (*ForkHandlers::*handler)()) {
  const OwnCalls own;
  for (auto& rank : ranks)
    if (rank.ran) (rank.handlers.*handler)();
  fork_lock.unlock();
}

}  // namespace

void at_fork(ForkRank which, const ForkHandlers& handlers) {
  static const int once = pthread_atfork(before, [] { after(&ForkHandlers::in_parent); }, [] { after(&ForkHandlers::in_child); });
  (void)once;
  Rank& rank = ranks[static_cast<std::size_t>(which)];
  int free = 0;
  if (!rank.state.compare_exchange_strong(free, 1)) return;
  rank.handlers = handlers;
  rank.state.store(2, std::memory_order_release);
}

}  // namespace verbena
