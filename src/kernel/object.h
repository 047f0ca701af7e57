// Kernel objects behind handles, and the table that finds them.
//
// Threads: everything here is used under the owning File's lock.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <memory>
#include <queue>
#include <vector>

#include "device/track.h"

namespace verbena::kernel {

class File;

// A count of users that is published with what is tracked of the object.
class Users {
 public:
  operator std::uint32_t() const { return count_; }
  Users& operator++() { return set(count_ + 1); }
  Users& operator--() { return set(count_ - 1); }

 private:
  friend class HandleTable;
  Users& set(std::uint32_t count) {
    count_ = count;
    if (record_ != nullptr) tracker_->set_users(record_, count_);
    return *this;
  }
  std::uint32_t count_ = 0;
  device::Tracker* tracker_ = nullptr;
  device::TrackRecord* record_ = nullptr;
};

// What stands behind a handle. `users` counts the objects built on it: while there are any, it is busy.
struct Object {
  explicit Object(std::uint16_t object_class) : cls(object_class) {}
  Object(const Object&) = delete;
  Object& operator=(const Object&) = delete;
  virtual ~Object() = default;

  // Undoes what create did, on the device too. 0, or an errno: the object lives on.
  virtual int destroy(File& file) = 0;
  // What resource tracking says of it. False: it is of a kind that is not tracked.
  virtual bool track(device::TrackFacts* /*facts*/) const { return false; }
  // Its number there, 0 if it has none.
  std::uint32_t track_id() const { return device::Tracker::id_of(record); }

  const std::uint16_t cls;  // UVERBS_OBJECT_*
  std::uint32_t handle = ~0u;
  Users users;
  device::TrackRecord* record = nullptr;
  static constexpr std::uint32_t kNotWatched = ~0u;
  std::uint32_t watched = kNotWatched;  // its place in the File's WatchList
};

// One number space for all classes of a File, lowest free number first, as the kernel's.
class HandleTable {
 public:
  // From now on objects are tracked, as those of the user context of this number.
  void track_in(device::Tracker* tracker, std::uint32_t context) {
    tracker_ = tracker;
    context_ = context;
  }
  // From now on one object can be added without memory for it, so that what a request has made is not lost for want of a
  // handle.
  void make_room();
  std::uint32_t add(std::unique_ptr<Object> object);
  // Null if there is none, or if it is of another class (*error says which: ENOENT, EINVAL).
  Object* find(std::uint32_t handle, std::uint16_t cls, int* error) const;
  // Of any class; null if there is none.
  Object* find(std::uint32_t handle) const {
    return handle >= first_ && handle - first_ < slots_.size() ? slots_[handle - first_].get() : nullptr;
  }
  // The lowest handle from now on; of an empty table.
  void start_at(std::uint32_t first) { first_ = first; }
  // What tracking says of the object changed.
  void changed(Object& object);
  void remove(std::uint32_t handle);
  // Handles of one class, ascending.
  std::vector<std::uint32_t> of_class(std::uint16_t cls) const;
  std::vector<Object*> all() const;
  std::size_t size() const { return count_; }

 private:
  void start_tracking(Object& object);

  device::Tracker* tracker_ = nullptr;
  std::uint32_t context_ = 0;
  std::uint32_t first_ = 0;
  std::vector<std::unique_ptr<Object>> slots_;
  std::priority_queue<std::uint32_t, std::vector<std::uint32_t>, std::greater<>> free_;
  std::size_t count_ = 0;
};

}  // namespace verbena::kernel
