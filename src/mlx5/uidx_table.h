// User index -> object, the number every CQE carries: a QP, or an XRC SRQ. A flat array of all 2^24 indices in reserved address space:
// one load per lookup, pages appear where indices are used, and 10^5 QPs cost what their pointers cost.
//
// Threads: store() and clear() by any; at() by pollers, who hold the CQ's lock while an object is removed.
#pragma once

#include <sys/mman.h>

#include <cstdint>
#include <mutex>
#include <vector>

namespace verbena::mlx5 {

template <class T>
class UidxTable {
 public:
  static constexpr std::uint32_t kCount = 1u << 24;
  static constexpr std::uint32_t kNone = 0xffffff;  // means "no user index" to the device

  UidxTable() = default;
  UidxTable(const UidxTable&) = delete;
  UidxTable& operator=(const UidxTable&) = delete;
  ~UidxTable() {
    if (slots_) ::munmap(slots_, kBytes);
  }

  bool init() {
    void* p = ::mmap(nullptr, kBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (p == MAP_FAILED) return false;
    slots_ = static_cast<T**>(p);
    return true;
  }

  // An index for `object`, or kNone when all are taken.
  std::uint32_t store(T* object) {
    std::lock_guard guard(mutex_);
    std::uint32_t index;
    if (!free_.empty()) {
      index = free_.back();
      free_.pop_back();
    } else if (next_ < kNone) {
      index = next_++;
    } else {
      return kNone;
    }
    slots_[index] = object;
    return index;
  }
  void clear(std::uint32_t index) {
    std::lock_guard guard(mutex_);
    slots_[index] = nullptr;
    free_.push_back(index);
  }
  T* at(std::uint32_t index) const { return slots_[index & (kCount - 1)]; }
  T* const* slots() const { return slots_; }

 private:
  static constexpr std::size_t kBytes = std::size_t{kCount} * sizeof(T*);
  T** slots_ = nullptr;
  std::uint32_t next_ = 0;
  std::vector<std::uint32_t> free_;
  std::mutex mutex_;
};

}  // namespace verbena::mlx5
