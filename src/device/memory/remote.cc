#include "device/memory/remote.h"

#include <errno.h>
#include <sys/uio.h>
#include <unistd.h>

#include "device/memory/errand.h"
#include "device/memory/guard.h"
#include "device/memory/promote.h"
#include "device/shared/backoff.h"
#include "device/shared/lock.h"
#include "device/transport/clock.h"

namespace verbena::device {

namespace {

constexpr std::uint64_t kPromotionNs = 500'000'000;  // an owner that takes longer was stopped in the middle of a move

constexpr unsigned kGates = 8;  // moves of our own pages that one copy waits for

// Whether our own memory can be read: tells whose fault an EFAULT was.
bool readable(const iovec& local) {
  char sink;
  const auto* p = static_cast<const char*>(local.iov_base);
  for (std::size_t at = 0; at < local.iov_len; at += 4096)
    if (guarded_copy(&sink, p + at, 1) != 0) return false;
  return guarded_copy(&sink, p + local.iov_len - 1, 1) == 0;
}

// Whether our own memory can be written. Where its pages are just being moved (page_mover.cc), a write waits, while a
// system call that writes there fails.
bool writable(const iovec& local) {
  auto* p = static_cast<char*>(local.iov_base);
  const auto touch = [](char* at) { return guarded_copy(at, at, 1) == 0; };
  for (std::size_t at = 0; at < local.iov_len; at += 4096)
    if (!touch(p + at)) return false;
  return touch(p + local.iov_len - 1);
}

// The pid may be of another pid namespace and then stand for somebody else: look for the cookie first.
bool identified(Peer& peer) {
  std::uint64_t cookie = 0;
  const iovec here{&cookie, sizeof cookie};
  const std::uint64_t va = peer.arena_va - kArenaOffset + offsetof(SliceHeader, cookie);
  const iovec there{reinterpret_cast<void*>(va), sizeof cookie};
  if (process_vm_readv(peer.pid, &here, 1, &there, 1, 0) != sizeof cookie) return false;
  return cookie == peer.slice->header.cookie;
}

bool may_process_vm(Peer& peer) {
  const auto state = peer.process_vm.load(std::memory_order_acquire);
  if (state != Peer::ProcessVm::unknown) [[likely]]
    return state == Peer::ProcessVm::yes;
  const bool yes = identified(peer);
  peer.process_vm.store(yes ? Peer::ProcessVm::yes : Peer::ProcessVm::no, std::memory_order_release);
  return yes;
}

// Our place among those who reach the owner's memory by system call, while none of it is being moved (page_mover.cc).
class Visit {
 public:
  explicit Visit(SliceHeader& h) : header_(h) {
    const std::uint32_t me = process_id();
    const std::uint64_t until = monotonic_ns() + kPromotionNs;
    Backoff backoff;
    for (unsigned i = me * 0x9e3779b9u >> 26;; i = (i + 1) % kVisitors) {
      std::uint32_t nobody = 0;
      if (h.visitors[i].compare_exchange_strong(nobody, me, std::memory_order_seq_cst)) {
        place_ = &h.visitors[i];
        if ((h.promoting.load(std::memory_order_seq_cst) & 1) == 0) [[likely]]
          return;
        leave();
        if (monotonic_ns() > until) return;
        backoff.pause();
      } else if (monotonic_ns() > until) {
        return;  // all places are held by processes that died or are stopped: the owner clears those of the dead
      }
    }
  }
  ~Visit() { leave(); }
  Visit(const Visit&) = delete;
  Visit& operator=(const Visit&) = delete;

  // False after kPromotionNs in vain: then what is not mapped there may only be on its way.
  bool admitted() const { return place_ != nullptr; }

 private:
  void leave() {
    if (place_ != nullptr) place_->store(0, std::memory_order_release);
    place_ = nullptr;
  }
  SliceHeader& header_;
  std::atomic<std::uint32_t>* place_ = nullptr;
};

}  // namespace

Moved remote_copy(Peer& peer, bool writing, std::byte* mine, std::uint64_t theirs, std::uint64_t n) {
  note_remote_access(peer, theirs, n);
  if (!may_process_vm(peer)) return run_errand(peer, writing, mine, theirs, n);
  Visit visit(peer.slice->header);
  iovec here{mine, n};
  for (unsigned gates = 0; here.iov_len != 0;) {
    const iovec there{reinterpret_cast<void*>(theirs), here.iov_len};
    const ssize_t done = writing ? process_vm_writev(peer.pid, &here, 1, &there, 1, 0)
                                 : process_vm_readv(peer.pid, &here, 1, &there, 1, 0);
    if (done > 0) {
      here.iov_base = static_cast<char*>(here.iov_base) + done;
      here.iov_len -= static_cast<std::size_t>(done);
      theirs += static_cast<std::uint64_t>(done);
      continue;
    }
    if (done < 0 && errno == EINTR) continue;
    if (done < 0 && errno == ESRCH) return Moved::gone;
    if (done < 0 && errno == EPERM) {  // it became unreachable since (setuid, PR_SET_DUMPABLE)
      peer.process_vm.store(Peer::ProcessVm::no, std::memory_order_release);
      return run_errand(peer, writing, static_cast<std::byte*>(here.iov_base), theirs, here.iov_len);
    }
    const bool their_fault = writing ? readable(here) : writable(here);
    if (!writing && their_fault && gates++ < kGates) continue;  // we may have waited for ours, so it is not known yet
    if (their_fault && !visit.admitted()) return Moved::gone;  // the requester asks again, within its retry budget
    return writing == their_fault ? Moved::destination_fault : Moved::source_fault;
  }
  return Moved::ok;
}

}  // namespace verbena::device
