// Promotion: private memory that peers keep writing to or reading moves into the owner's arena, so that their next
// access is a plain copy instead of a system call.
//
// The accessor counts and asks; the owner's helper thread moves pages, while writes by the owner's threads wait in the
// fault handler. Only private anonymous read-write memory inside a memory region is moved, and it goes back when the
// region is deregistered, before a fork, and when the device is closed.
// VERBENA_PROMOTE=0 turns it off for this process's memory.
// Threads: as noted.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>

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
  // User memory was registered; and is so no more (the same range). Any thread.
  void registered(std::uint64_t va, std::uint64_t length);
  void unregistered(std::uint64_t va, std::uint64_t length);
  // Whether all of it is registered; nullopt: cannot be told without waiting.
  std::optional<bool> is_registered(std::uint64_t va, std::uint64_t length);

  struct State;

 private:
  std::unique_ptr<State> state_;
};

}  // namespace verbena::device
