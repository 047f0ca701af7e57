// What a process knows of its own keys and rings by itself.
//
// Contexts lie in shared memory, where any process of the NIC may have overwritten them. A wrong word must not make the
// owner's own thread write into memory that the program never gave to the device, so the owner keeps its own account
// of where its keys and rings lead, and uses that. (For a peer's objects there is only the shared word; a peer reaches
// the owner's memory through the kernel, which knows what is there.)
//
// Threads: written by whoever makes or changes the object, while it is hidden or its lock is held; read by any.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <vector>

#include "device/shared/contexts.h"
#include "device/shared/segments.h"

namespace verbena::device {

struct OwnRing {
  std::uint64_t va, bytes;
  bool holds(std::uint64_t at, std::uint64_t n) const { return at - va < bytes && n <= bytes - (at - va); }
};

class Own {
 public:
  // Null if there is no address space for it.
  static std::shared_ptr<Own> make();
  ~Own();
  Own(const Own&) = delete;
  Own& operator=(const Own&) = delete;

  // By the object's index in the slice. Of a key: mode, sizes, start, length, translations, entries and the flags that
  // it may have; for MTT keys `translations` leads to a private table.
  MkeyContext& key(std::uint32_t index) { return maps_->keys[index]; }
  const MkeyContext* keys() const { return maps_->keys; }
  OwnRing& cq(std::uint32_t index) { return maps_->cqs[index]; }
  OwnRing& eq(std::uint32_t index) { return maps_->eqs[index]; }

  // Copies the context of a new key, and its page list if it is one: `slice` is where `translations` counts from.
  void note(std::uint32_t index, const MkeyContext& shared, const std::byte* slice);
  void forget(std::uint32_t index);

 private:
  struct Maps {
    MkeyContext keys[kMaxMkeys];
    OwnRing cqs[kMaxCqs];
    OwnRing eqs[kMaxEqs];
  };
  explicit Own(Maps* maps) : maps_(maps) {}

  Maps* maps_;
  std::mutex mutex_;
  // Page lists by key. Those of dead keys are used again but never freed: a thread may still be reading.
  std::map<std::uint32_t, std::vector<Translation>> tables_;
  std::multimap<std::size_t, std::vector<Translation>> spare_;
};

}  // namespace verbena::device
