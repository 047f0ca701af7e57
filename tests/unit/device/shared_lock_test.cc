// SharedLock: from whom it is taken, after how long, and what that leaves of the one it was taken from.
#include "device/shared/lock.h"

#include <gtest/gtest.h>
#include <time.h>

#include <cstring>

#include "device/shared/nic_file.h"

namespace verbena::device {
namespace {

constexpr std::uint32_t kOther = 1, kMe = 2;
constexpr std::uint64_t kPatienceMs = 30;

Holder answer = Holder::lives;

std::uint64_t milliseconds(clockid_t clock) {
  timespec t{};
  clock_gettime(clock, &t);
  return static_cast<std::uint64_t>(t.tv_sec) * 1000 + static_cast<std::uint64_t>(t.tv_nsec) / 1'000'000;
}

class Lock : public testing::Test {
 protected:
  void SetUp() override {
    set_holder_check([](std::uint32_t) { return answer; });
    set_lock_patience(kPatienceMs * 1'000'000);
    lock_.lock(kOther);
  }
  void TearDown() override {
    set_holder_check(&NicFile::holder_state);
    set_lock_patience(1'000'000'000);
  }
  // How long it takes to get the lock of such a holder.
  std::uint64_t wait_for(Holder holder) {
    answer = holder;
    const std::uint64_t start = milliseconds(CLOCK_MONOTONIC);
    const SharedGuard guard(lock_, kMe);
    return milliseconds(CLOCK_MONOTONIC) - start;
  }

  SharedLock lock_;
};

TEST_F(Lock, OneThatIsStoppedLosesIt) {
  EXPECT_GE(wait_for(Holder::stopped), kPatienceMs);
  EXPECT_EQ(lock_.holder(), 0u);
}

// It may only wait for a core.
TEST_F(Lock, OneThatLivesKeepsItTenTimesAsLong) { EXPECT_GE(wait_for(Holder::lives), 10 * kPatienceMs); }

TEST_F(Lock, OneThatIsGoneLosesItAtOnce) {
  set_lock_patience(1'000'000'000'000);
  wait_for(Holder::gone);
  EXPECT_EQ(lock_.holder(), 0u);
}

// Whoever waits leaves the core to the holder, which may be of another session.
TEST_F(Lock, WaitersSleep) {
  const std::uint64_t start = milliseconds(CLOCK_THREAD_CPUTIME_ID), waited = wait_for(Holder::lives);
  EXPECT_LT(milliseconds(CLOCK_THREAD_CPUTIME_ID) - start, waited / 4);
}

TEST_F(Lock, WhatWasTakenIsNotFreed) {
  std::memcpy(static_cast<void*>(&lock_), &kMe, sizeof kMe);
  lock_.unlock(kOther);
  EXPECT_EQ(lock_.holder(), kMe);
  lock_.unlock(kMe);
  EXPECT_EQ(lock_.holder(), 0u);
}

}  // namespace
}  // namespace verbena::device
