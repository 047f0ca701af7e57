// The heap of device-visible memory: extents of a few large slabs, so that 10^5 queues make no 10^5 mappings and
// a small ring does not occupy a page. Blocks below a page are powers of two and never cross one; larger ones begin
// on a page. Slabs come from Backend::alloc_dma on the embedded device (every process can reach them) and from
// anonymous memory, kept out of forked children, on a real kernel.
//
// Threads: any.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <mutex>
#include <set>
#include <vector>

#include "uverbs/backend.h"

extern "C" {
// Exported by libibverbs.so.1 for providers; the public header does not declare them.
int ibv_dontfork_range(void* base, std::size_t size);
int ibv_dofork_range(void* base, std::size_t size);
}

namespace verbena::mlx5 {

class Heap {
 public:
  static constexpr std::size_t kPage = 4096;
  static constexpr std::size_t kSmallest = 64;

  explicit Heap(const uverbs::Backend* backend) : backend_(backend) {}
  Heap(const Heap&) = delete;
  Heap& operator=(const Heap&) = delete;

  // Zeroed memory of at least `size` bytes, or null with errno. `fd`: an open descriptor of the device, to grow by.
  void* take(int fd, std::size_t size);
  // `size` as given to take().
  void give(void* block, std::size_t size);

  // The one of this process and the device behind `fd`; lives until the process ends.
  static Heap& of(const uverbs::Backend* backend, int fd);

 private:
  static constexpr std::size_t kFirstSlab = std::size_t{1} << 20;
  static constexpr std::size_t kLargestSlab = std::size_t{32} << 20;
  static constexpr unsigned kSizes = 7;  // 64 .. 4096

  void* take_pages(int fd, std::size_t length);
  void give_pages(std::uintptr_t at, std::size_t length);
  bool grow(int fd, std::size_t length);
  void insert(std::uintptr_t at, std::size_t length);
  void erase(std::map<std::uintptr_t, std::size_t>::iterator extent);
  static unsigned size_class(std::size_t size);

  const uverbs::Backend* backend_;
  std::mutex mutex_;
  std::vector<void*> small_[kSizes];
  std::map<std::uintptr_t, std::size_t> by_address_;  // free extents, whole pages
  std::set<std::pair<std::size_t, std::uintptr_t>> by_length_;
  std::map<std::uintptr_t, std::size_t> slabs_;
  std::size_t next_slab_ = kFirstSlab;
};

}  // namespace verbena::mlx5
