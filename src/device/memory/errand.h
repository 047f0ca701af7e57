// Errands: where the kernel lets nobody into a process's memory (Yama, another user, PR_SET_DUMPABLE, seccomp), one of
// its own threads copies for its peers, through a window in its slice.
//
// Served by whoever runs the owner's engine: a polling thread, the helper thread, or a thread that waits for a lock
// (so that a peer that holds the lock can finish). A stopped owner serves nobody: its peers give up after a second.
// Threads: any.
#pragma once

#include <cstddef>
#include <cstdint>

#include "device/memory/promote.h"
#include "device/memory/transfer.h"
#include "device/shared/nic.h"

namespace verbena::device {

// As remote_copy(). Moved::gone if the owner did not answer in time.
Moved run_errand(Peer& peer, bool writing, std::byte* mine, std::uint64_t theirs, std::uint64_t n);

// The owner's side. While it lives, threads of this process that wait for a lock serve too.
class ErrandDuty {
 public:
  ErrandDuty(Nic& nic, Promoter& promoter);
  ~ErrandDuty();
  ErrandDuty(const ErrandDuty&) = delete;
  ErrandDuty& operator=(const ErrandDuty&) = delete;
  // Runs what peers ask for, on memory that is registered: a peer may reach no other.
  void serve();
  bool asked() const;

 private:
  Nic& nic_;
  Promoter& promoter_;
};

}  // namespace verbena::device
