// The allocator of a slice's DMA arena. Bookkeeping lives in process memory; only pages lie in the file.
//
// Runs of pages go to exact-size bins when freed, so equal sizes cost O(1); when nothing fits, free runs are
// merged once. Pieces below a page (translation tables) come from pages cut into powers of two.
// Threads: under Nic's allocation mutex.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <vector>

#include "device/shared/nic.h"

namespace verbena::device {

class Nic::Arena {
 public:
  static constexpr std::uint64_t kPage = 4096;
  static constexpr std::uint64_t kSmallest = 64;

  Arena(std::byte* base, int fd) : base_(base), fd_(fd) {}

  // Offset of zeroed, backed pages; nullopt: full.
  std::optional<std::uint64_t> alloc_pages(std::uint64_t bytes);
  void free_pages(std::uint64_t offset, std::uint64_t bytes);
  // Of any size; zeroed; aligned to 64 bytes at least.
  std::optional<std::uint64_t> alloc_small(std::uint64_t bytes);
  void free_small(std::uint64_t offset, std::uint64_t bytes);
  // Address space without pages, aligned to `align` (a power of two): for what is mapped or touched later.
  std::optional<std::uint64_t> reserve(std::uint64_t bytes, std::uint64_t align);

 private:
  static std::uint64_t round(std::uint64_t bytes) { return (bytes + kPage - 1) & ~(kPage - 1); }
  std::optional<std::uint64_t> find(std::uint64_t bytes);
  void merge();

  std::byte* base_;
  int fd_;
  std::uint64_t top_ = kPage;  // offset 0 stays unused: tables use it for "none"
  std::map<std::uint64_t, std::vector<std::uint64_t>> bins_;
  std::vector<std::uint64_t> small_[7];  // 64 << i
};

}  // namespace verbena::device
