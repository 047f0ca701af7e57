// A lock in shared memory that survives the death of its holder.
//
// Held for short, bounded work only (one packet, one CQE). Waiters spin, then yield and sleep (backoff.h), and look
// whether the holder's process still lives; a dead holder's lock is taken over. So is one whose word never changes: after a
// second, if the holder's process is stopped (SIGSTOP, a debugger); after ten, if it is not. For those who only wait for a
// core that is seldom long enough, and the word may be what somebody else wrote there. What the lock guards must therefore be
// written so that an interrupted update is harmless: body first, index last, and the index only if it is still what it
// was, for the holder may go on.
//
// Lock order (always take in this order, never the reverse): QP sq -> (other QP's) rx -> SRQ -> CQ -> EQ.
// Threads: any thread of any process attached to the NIC.
#pragma once

#include <atomic>
#include <cstdint>

namespace verbena::device {

class SharedLock {
 public:
  // `me` is nonzero and names the process (Nic::me()). The lock is not recursive.
  bool try_lock(std::uint32_t me) {
    std::uint32_t expected = 0;
    return word_.load(std::memory_order_relaxed) == 0 &&
           word_.compare_exchange_strong(expected, me, std::memory_order_acquire);
  }
  void lock(std::uint32_t me) {
    if (!try_lock(me)) lock_slow(me);
  }
  // Of whoever it was taken from meanwhile, it is not the lock any more.
  void unlock(std::uint32_t me) {
    if (word_.load(std::memory_order_relaxed) == me) [[likely]]
      word_.store(0, std::memory_order_release);
  }
  std::uint32_t holder() const { return word_.load(std::memory_order_relaxed); }

 private:
  void lock_slow(std::uint32_t me);  // lock.cc
  std::atomic<std::uint32_t> word_{0};
};

enum class Holder : std::uint8_t { gone, stopped, lives };

// Tells lock_slow() how process `holder` is. Set once by whoever attaches the NIC.
using HolderCheck = Holder (*)(std::uint32_t holder);
void set_holder_check(HolderCheck check);

// Whether that check says that it lives, stopped or not; true while there is none.
bool holder_lives(std::uint32_t holder);
// Called again and again by threads that wait for a lock, so that what others want of this process goes on. Set once.
void set_lock_wait_hook(void (*hook)());
// An id of this process that holder_lives() understands: the Nic::me() of its newest NIC.
void set_process_id(std::uint32_t me);
std::uint32_t process_id();
// How long a lock may stay with a process that is stopped, and a tenth of how long with one that is not; a second unless
// a test says otherwise.
void set_lock_patience(std::uint64_t ns);

// Locks for a scope.
class SharedGuard {
 public:
  SharedGuard(SharedLock& lock, std::uint32_t me) : lock_(lock), me_(me) { lock_.lock(me); }
  ~SharedGuard() { lock_.unlock(me_); }
  SharedGuard(const SharedGuard&) = delete;
  SharedGuard& operator=(const SharedGuard&) = delete;

 private:
  SharedLock& lock_;
  const std::uint32_t me_;
};

}  // namespace verbena::device
