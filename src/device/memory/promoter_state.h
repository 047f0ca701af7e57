// What the owner's side of promotion keeps, shared by its parts: promoter.cc (what to move), page_mover.cc (moving),
// promoter_fork.cc (fork).
// Threads: everything under `mutex`, but what page_mover.cc says of the fault handler.
#pragma once

#include <cstdint>
#include <map>
#include <mutex>
#include <vector>

#include "device/memory/coverage.h"
#include "device/memory/maps.h"
#include "device/memory/promote.h"

namespace verbena::device {

struct Promoter::State {
  explicit State(Nic& n) : nic(n) {}

  struct Chunk {
    std::uint64_t arena;        // its place there
    std::uint32_t pages = 0;    // which of its pages are there
    PromotedChunk* entry;       // in the slice's table
  };
  struct Resting {  // arena memory of which a peer may still hold an address
    std::uint64_t arena, since_ns;
  };
  using Chunks = std::map<std::uint64_t, Chunk>;  // by the chunk's address

  Nic& nic;
  std::mutex mutex;
  Coverage coverage;  // by memory regions, UMEMs and queues: what peers may reach by its address
  Chunks chunks;
  std::vector<Resting> resting;
  std::uint64_t device = 0, inode = 0;
  bool enabled = true;

  // promoter.cc
  bool in_arena(std::uint64_t va, std::uint64_t length) const;
  void promote(std::uint64_t va, std::uint64_t end);
  bool prepare(std::uint64_t va, std::uint64_t end);
  void forget_replaced(std::uint64_t va, std::uint64_t end);
  // Takes every promoted page that overlaps [va, end), and is not `keep_covered` by a region, back to private memory.
  void demote(std::uint64_t va, std::uint64_t end, bool keep_covered);
  void demote_chunk(Chunks::iterator at, std::uint32_t pages, const std::vector<Mapping>& maps);
  Chunks::iterator drop_if_empty(Chunks::iterator at);
  void release_rested();
  bool ours(const Mapping* m, std::uint64_t va, std::uint64_t arena) const;

  // page_mover.cc; pages of one chunk, `arena` the place of the first of them.
  bool move_in(std::uint64_t va, std::uint64_t end, std::uint64_t arena);
  bool move_out(std::uint64_t va, std::uint64_t end);
  // Waits until nobody who found [a promoted page] before is still at it.
  void wait_for_deliveries();
};

}  // namespace verbena::device
