// Moving pages between private memory and the arena while the program, and peers, go on using them.
//
// The owner's threads: the range is read-only while it is copied, and a write waits in the fault handler (the gate).
// Peers who come by system call: they announce themselves in `visitors` and do not begin while `promoting` is odd
// (remote.cc); closing the gate waits for those who have begun. Peers who hold an address in the arena: they hold the receive
// lock of one of our QPs; before pages go back, those locks are seen free once (wait_for_deliveries).
//
// A system call of the program that writes to the range in these microseconds gets EFAULT (docs/fidelity.md).
#include <pthread.h>
#include <signal.h>
#include <sys/mman.h>

#include <atomic>

#include "device/memory/guard.h"
#include "device/memory/promoted_table.h"
#include "device/memory/promoter_state.h"
#include "device/memory/raw_map.h"
#include "device/shared/backoff.h"
#include "device/shared/lock.h"
#include "device/transport/clock.h"
#include "support/at_fork.h"

namespace verbena::device {

namespace {

constexpr std::uint64_t kVisitNs = 20'000'000;      // a visitor that takes longer is stopped: give up for now
constexpr std::uint64_t kDeliveryNs = 200'000'000;  // so is a delivery; the pages must go all the same

// The range being moved, for the fault handler: writers to it wait.
std::atomic<std::uint64_t> gate_start{0}, gate_end{0};
std::atomic<pthread_t> gate_keeper{};  // who moves it: must not wait for itself
std::atomic<std::uint64_t> retry_address{0};
std::atomic<unsigned> retry_count{0};
std::atomic<std::uint64_t> moved_low{~0ull}, moved_high{0};  // bounds of everything ever moved

bool wait_at_gate(std::uintptr_t address) {
  bool waited = false;
  Backoff backoff;
  while (address >= gate_start.load(std::memory_order_acquire) && address < gate_end.load(std::memory_order_acquire)) {
    // The keeper only reads there: the program has unmapped a part, and the copy fails.
    if (pthread_equal(gate_keeper.load(std::memory_order_relaxed), pthread_self())) return false;
    waited = true;
    backoff.pause();
  }
  if (waited) return true;
  // The gate may have opened between the fault and this handler: try again, but not for ever.
  if (address < moved_low.load() || address >= moved_high.load()) return false;
  if (retry_address.exchange(address) != address) retry_count.store(0);
  return retry_count.fetch_add(1) < 64;
}

// Holds back the program's writes to a range, and visitors, while it lives. No signal handler of the program runs in
// this thread meanwhile: it could wait at the gate for ever.
class Gate {
 public:
  Gate(SliceHeader& header, std::uint64_t va, std::uint64_t end) : header_(header), va_(va), bytes_(end - va), only_(mutex_over_fork<ForkRank::page_gate>()) {
    ensure_guard();
    set_fault_hook(&wait_at_gate);
    sigset_t all;
    sigfillset(&all);
    for (const int keep : {SIGSEGV, SIGBUS, SIGFPE, SIGILL}) sigdelset(&all, keep);
    pthread_sigmask(SIG_BLOCK, &all, &signals_);
    if (va < moved_low.load()) moved_low.store(va);
    if (end > moved_high.load()) moved_high.store(end);
    gate_keeper.store(pthread_self(), std::memory_order_relaxed);
    gate_start.store(va);
    gate_end.store(end);
    header_.promoting.fetch_add(1);
  }
  ~Gate() {
    header_.promoting.fetch_add(1);
    gate_end.store(0);
    gate_start.store(0);
    pthread_sigmask(SIG_SETMASK, &signals_, nullptr);
  }
  Gate(const Gate&) = delete;
  Gate& operator=(const Gate&) = delete;

  // If it fails, the part before what is not mapped may be closed: reopen() after that too.
  bool close() { return mprotect(reinterpret_cast<void*>(va_), bytes_, PROT_READ) == 0; }
  void reopen() {
    if (mprotect(reinterpret_cast<void*>(va_), bytes_, PROT_READ | PROT_WRITE) == 0) return;
    for (std::uint64_t at = va_; at < va_ + bytes_; at += kPromotedPage)  // the program has unmapped some
      mprotect(reinterpret_cast<void*>(at), kPromotedPage, PROT_READ | PROT_WRITE);
  }
  bool visitors_gone() {
    for (auto& place : header_.visitors) {
      const std::uint64_t until = monotonic_ns() + kVisitNs;
      Backoff backoff;
      for (std::uint32_t who; (who = place.load(std::memory_order_acquire)) != 0;) {
        if (monotonic_ns() < until) {
          backoff.pause();
          continue;
        }
        if (holder_lives(who)) return false;
        place.compare_exchange_strong(who, 0);
      }
    }
    return true;
  }

 private:
  SliceHeader& header_;
  std::uint64_t va_, bytes_;
  std::lock_guard<std::mutex> only_;
  sigset_t signals_;
};

}  // namespace

bool Promoter::State::move_in(std::uint64_t va, std::uint64_t end, std::uint64_t arena) {
  if (!nic.back_arena(arena, end - va)) return false;
  auto* at = reinterpret_cast<void*>(va);
  Gate gate(nic.slice().header, va, end);
  if (!gate.visitors_gone()) return false;
  if (gate.close() && guarded_copy(nic.self().arena + arena, at, end - va) == 0 && nic.map_arena(at, end - va, arena))
    return true;
  gate.reopen();
  return false;
}

bool Promoter::State::move_out(std::uint64_t va, std::uint64_t end) {
  auto* at = reinterpret_cast<void*>(va);
  const std::uint64_t bytes = end - va;
  void* fresh = raw::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
  if (fresh == MAP_FAILED) return false;
  Gate gate(nic.slice().header, va, end);
  gate.visitors_gone();  // one that is stopped in the middle loses its write, as a packet that comes too late would be
  if (gate.close() && guarded_copy(fresh, at, bytes) == 0 && raw::move(fresh, bytes, at) == at)
    return true;
  gate.reopen();
  raw::munmap(fresh, bytes);
  return false;
}

void Promoter::State::wait_for_deliveries() {
  std::atomic_thread_fence(std::memory_order_seq_cst);
  const std::uint32_t count = nic.qp_high_water();
  const std::uint64_t until = monotonic_ns() + kDeliveryNs;
  for (std::uint32_t i = 0; i < count; ++i) {
    const SharedLock& lock = nic.slice().qps[i].rx_lock;
    const std::uint32_t seen = lock.holder();
    if (seen == 0 || seen == nic.me()) continue;  // our own threads go by the program's addresses
    for (Backoff backoff; lock.holder() == seen && monotonic_ns() < until; backoff.pause()) {
    }
  }
}

}  // namespace verbena::device
