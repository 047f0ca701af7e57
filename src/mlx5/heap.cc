#include "mlx5/heap.h"

#include <sys/mman.h>
#include <unistd.h>

#include <bit>
#include <cerrno>
#include <cstring>
#include <memory>
#include <tuple>

#include "support/at_fork.h"

namespace verbena::mlx5 {

unsigned Heap::size_class(std::size_t size) {
  const std::size_t rounded = std::bit_ceil(size < kSmallest ? kSmallest : size);
  return static_cast<unsigned>(std::countr_zero(rounded) - std::countr_zero(kSmallest));
}

void* Heap::take(int fd, std::size_t size) {
  if (!size) size = kSmallest;
  if (size > SIZE_MAX / 2) {
    errno = ENOMEM;
    return nullptr;
  }
  void* block = nullptr;
  if (size > kPage / 2) {
    std::lock_guard guard(mutex_);
    block = take_pages(fd, (size + kPage - 1) & ~(kPage - 1));
  } else {
    const unsigned index = size_class(size);
    std::lock_guard guard(mutex_);
    auto& list = small_[index];
    if (list.empty()) {
      auto* page = static_cast<char*>(take_pages(fd, kPage));
      if (!page) return nullptr;
      const std::size_t step = kSmallest << index;
      for (std::size_t at = kPage; at >= step; at -= step) list.push_back(page + at - step);
    }
    block = list.back();
    list.pop_back();
  }
  if (block) std::memset(block, 0, size);
  return block;
}

void Heap::give(void* block, std::size_t size) {
  if (!block) return;
  if (!size) size = kSmallest;
  std::lock_guard guard(mutex_);
  if (size > kPage / 2)
    give_pages(reinterpret_cast<std::uintptr_t>(block), (size + kPage - 1) & ~(kPage - 1));
  else
    small_[size_class(size)].push_back(block);
}

void* Heap::take_pages(int fd, std::size_t length) {
  auto best = by_length_.lower_bound({length, 0});
  if (best == by_length_.end()) {
    if (!grow(fd, length)) return nullptr;
    best = by_length_.lower_bound({length, 0});
  }
  const auto [available, at] = *best;
  erase(by_address_.find(at));
  if (available > length) insert(at + length, available - length);
  return reinterpret_cast<void*>(at);
}

void Heap::give_pages(std::uintptr_t at, std::size_t length) {
  auto next = by_address_.lower_bound(at);
  // Neighbours merge, but not across slabs: those may be freed one by one.
  if (next != by_address_.end() && next->first == at + length && !slabs_.contains(next->first)) {
    length += next->second;
    auto merged = next++;
    erase(merged);
  }
  if (next != by_address_.begin() && !slabs_.contains(at)) {
    auto previous = std::prev(next);
    if (previous->first + previous->second == at) {
      at = previous->first;
      length += previous->second;
      erase(previous);
    }
  }
  auto slab = slabs_.find(at);
  if (slab != slabs_.end() && slab->second == length && length > kFirstSlab) {
    slabs_.erase(slab);
    auto* memory = reinterpret_cast<void*>(at);
    if (backend_->free_dma) {
      backend_->free_dma(memory, length);
    } else {
      ibv_dofork_range(memory, length);
      ::munmap(memory, length);
    }
    return;
  }
  insert(at, length);
}

bool Heap::grow(int fd, std::size_t length) {
  std::size_t slab = next_slab_ > length ? next_slab_ : length;
  void* memory = nullptr;
  for (;;) {
    if (backend_->alloc_dma) {
      memory = backend_->alloc_dma(fd, slab);
    } else {
      memory = ::mmap(nullptr, slab, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
      if (memory == MAP_FAILED) memory = nullptr;
      if (memory && ibv_dontfork_range(memory, slab)) {
        ::munmap(memory, slab);
        errno = ENOMEM;
        return false;
      }
    }
    if (memory || slab == length) break;
    slab = length;  // perhaps just enough is left
  }
  if (!memory) {
    errno = ENOMEM;
    return false;
  }
  if (next_slab_ < kLargestSlab) next_slab_ *= 2;
  const auto at = reinterpret_cast<std::uintptr_t>(memory);
  slabs_[at] = slab;
  insert(at, slab);
  return true;
}

void Heap::insert(std::uintptr_t at, std::size_t length) {
  by_address_[at] = length;
  by_length_.insert({length, at});
}

void Heap::erase(std::map<std::uintptr_t, std::size_t>::iterator extent) {
  by_length_.erase({extent->second, extent->first});
  by_address_.erase(extent);
}

// A forked child has heaps of its own: what is free in its parent's is still the parent's to hand out. Real kernels need
// no heap per device; memory is memory there.
Heap& Heap::of(const uverbs::Backend* backend, int fd) {
  static auto& heaps = *new std::map<std::tuple<const uverbs::Backend*, pid_t, int>, std::unique_ptr<Heap>>;
  const int device = backend->alloc_dma ? backend->device_of(fd) : -1;
  std::lock_guard guard(mutex_over_fork<ForkRank::heaps>());
  auto& heap = heaps[{backend, getpid(), device}];  // outlives exit handlers
  if (!heap) heap = std::make_unique<Heap>(backend);
  return *heap;
}

}  // namespace verbena::mlx5
