// A lock in shared memory that survives the death of its holder.
//
// Held for short, bounded work only (one packet, one CQE). Waiters spin, then yield, then look whether the
// holder's process still lives; a dead holder's lock is taken over. So is, after a second, one whose word never changes:
// its holder was stopped in the middle, or somebody overwrote the word. What the lock guards must therefore be
// written so that an interrupted update is harmless: body first, index last.
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
  void unlock() { word_.store(0, std::memory_order_release); }
  std::uint32_t holder() const { return word_.load(std::memory_order_relaxed); }

 private:
  void lock_slow(std::uint32_t me);  // lock.cc
  std::atomic<std::uint32_t> word_{0};
};

// Tells lock_slow() whether process `holder` still lives. Set once by whoever attaches the NIC.
using HolderAlive = bool (*)(std::uint32_t holder);
void set_holder_alive(HolderAlive check);

// What that check says; true while there is none.
bool holder_lives(std::uint32_t holder);
// Called again and again by threads that wait for a lock, so that what others want of this process goes on. Set once.
void set_lock_wait_hook(void (*hook)());
// An id of this process that holder_lives() understands: the Nic::me() of its newest NIC.
void set_process_id(std::uint32_t me);
std::uint32_t process_id();
// How long a lock may stay with a process that lives; a second unless a test says otherwise.
void set_lock_patience(std::uint64_t ns);

// Locks for a scope.
class SharedGuard {
 public:
  SharedGuard(SharedLock& lock, std::uint32_t me) : lock_(lock) { lock_.lock(me); }
  ~SharedGuard() { lock_.unlock(); }
  SharedGuard(const SharedGuard&) = delete;
  SharedGuard& operator=(const SharedGuard&) = delete;

 private:
  SharedLock& lock_;
};

}  // namespace verbena::device
