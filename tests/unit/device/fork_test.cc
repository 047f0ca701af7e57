// Locks over fork(2): a child finds them free, whichever thread of its parent held them.
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <thread>

#include "device/memory/guard.h"
#include "support/at_fork.h"

namespace verbena::device {
namespace {

constexpr unsigned kSeconds = 10;  // after which a child that hangs ends by SIGALRM

template <ForkRank kRank>
void forks_while_held(void (*use)()) {
  std::atomic<bool> held{false}, waited{false};
  std::thread holder([&] {
    {
      std::lock_guard guard(mutex_over_fork<kRank>());
      held = true;
      std::this_thread::sleep_for(std::chrono::milliseconds(50));
    }
    // The child must not inherit a thread that ended and was not joined: TSan takes it for a leak.
    waited.wait(false);
  });
  while (!held) std::this_thread::yield();
  const pid_t child = fork();
  if (child == 0) {
    alarm(kSeconds);
    use();
    _exit(0);
  }
  int status = -1;
  EXPECT_EQ(waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
  waited = true;
  waited.notify_one();
  holder.join();
}

TEST(Fork, AChildFindsLocksFree) {
  forks_while_held<ForkRank::fault_guard>(&ensure_guard);
  forks_while_held<ForkRank::page_gate>([] { std::lock_guard guard(mutex_over_fork<ForkRank::page_gate>()); });
  forks_while_held<ForkRank::registry>([] { std::lock_guard guard(mutex_over_fork<ForkRank::registry>()); });
}

// Who holds a lock may take those of later ranks: a fork meanwhile waits for both, and nobody waits for ever.
TEST(Fork, TakesLocksFromTheOutermost) {
  std::atomic<bool> stop{false};
  std::thread nested([&] {
    while (!stop) {
      std::lock_guard outer(mutex_over_fork<ForkRank::page_gate>());
      std::lock_guard inner(mutex_over_fork<ForkRank::fault_guard>());
    }
  });
  for (int i = 0; i < 50; ++i) {
    const pid_t child = fork();
    if (child == 0) {
      alarm(kSeconds);
      std::lock_guard outer(mutex_over_fork<ForkRank::page_gate>());
      std::lock_guard inner(mutex_over_fork<ForkRank::fault_guard>());
      _exit(0);
    }
    int status = -1;
    ASSERT_EQ(waitpid(child, &status, 0), child);
    ASSERT_EQ(status, 0);
  }
  stop = true;
  nested.join();
}

}  // namespace
}  // namespace verbena::device
