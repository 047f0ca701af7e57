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

namespace verbena::kernel {

class File;

// What stands behind a handle. `users` counts the objects built on it: while there are any, it is busy.
struct Object {
  explicit Object(std::uint16_t object_class) : cls(object_class) {}
  Object(const Object&) = delete;
  Object& operator=(const Object&) = delete;
  virtual ~Object() = default;

  // Undoes what create did, on the device too. 0, or an errno: the object lives on.
  virtual int destroy(File& file) = 0;

  const std::uint16_t cls;  // UVERBS_OBJECT_*
  std::uint32_t handle = ~0u;
  std::uint32_t users = 0;
  static constexpr std::uint32_t kNotWatched = ~0u;
  std::uint32_t watched = kNotWatched;  // its place in the File's WatchList
};

// One number space for all classes of a File, lowest free number first, as the kernel's.
class HandleTable {
 public:
  std::uint32_t add(std::unique_ptr<Object> object);
  // Null if there is none, or if it is of another class (*error says which: ENOENT, EINVAL).
  Object* find(std::uint32_t handle, std::uint16_t cls, int* error) const;
  // Of any class; null if there is none.
  Object* find(std::uint32_t handle) const {
    return handle >= first_ && handle - first_ < slots_.size() ? slots_[handle - first_].get() : nullptr;
  }
  // The lowest handle from now on; of an empty table.
  void start_at(std::uint32_t first) { first_ = first; }
  void remove(std::uint32_t handle);
  // Handles of one class, ascending.
  std::vector<std::uint32_t> of_class(std::uint16_t cls) const;
  std::vector<Object*> all() const;
  std::size_t size() const { return count_; }

 private:
  std::uint32_t first_ = 0;
  std::vector<std::unique_ptr<Object>> slots_;
  std::priority_queue<std::uint32_t, std::vector<std::uint32_t>, std::greater<>> free_;
  std::size_t count_ = 0;
};

}  // namespace verbena::kernel
