// Promotion: private memory that peers keep writing to or reading moves into the owner's arena, so that their next
// access is a plain copy instead of a system call.
//
// The accessor counts and asks; the owner's helper thread moves pages. While it does, a write by one of the owner's
// threads waits in the fault handler. Only private anonymous read-write memory that cannot be a stack is moved.
// VERBENA_PROMOTE=1 turns it on for this process's memory; off by default (docs/fidelity.md says why).
// Threads: as noted.
#pragma once

#include <cstdint>
#include <memory>

#include "device/shared/nic.h"

namespace verbena::device {

// ---- accessor; any thread ----

// Our address of `va` in another process if it is promoted, else null. Either way n is cut to how far the answer
// holds.
std::byte* promoted(const Peer& peer, std::uint64_t va, std::uint64_t& n);
// A peer's private memory was just reached the slow way.
void note_remote_access(Peer& peer, std::uint64_t va, std::uint64_t n);

// ---- owner ----

class Promoter {
 public:
  explicit Promoter(Nic& nic);
  ~Promoter();
  // Serves what peers asked for. The helper thread.
  void serve();
  // User memory was registered: forgets promotions there whose memory the program has replaced since. Any thread.
  void registered(std::uint64_t va, std::uint64_t length);

  struct State;

 private:
  std::unique_ptr<State> state_;
};

}  // namespace verbena::device
