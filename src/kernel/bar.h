// Pages of the device's BAR that are handed to programs: which are taken.
// Threads: any.
#pragma once

#include <cstdint>
#include <mutex>
#include <optional>
#include <vector>

namespace verbena::kernel {

class BarPages {
 public:
  explicit BarPages(std::size_t pages = 0) : taken_(pages) {}
  void resize(std::size_t pages) { taken_.resize(pages); }
  // The first run of free pages at or behind `from`, now taken.
  std::optional<std::uint32_t> take(std::size_t pages, std::size_t from) {
    std::lock_guard guard(lock_);
    std::size_t run = 0;
    for (std::size_t i = from; i < taken_.size(); ++i) {
      run = taken_[i] ? 0 : run + 1;
      if (run < pages) continue;
      const std::size_t first = i + 1 - pages;
      for (std::size_t p = first; p <= i; ++p) taken_[p] = true;
      return static_cast<std::uint32_t>(first);
    }
    return std::nullopt;
  }
  void give_back(std::size_t first, std::size_t pages) {
    std::lock_guard guard(lock_);
    for (std::size_t p = first; p < first + pages && p < taken_.size(); ++p) taken_[p] = false;
  }

 private:
  std::mutex lock_;
  std::vector<bool> taken_;
};

}  // namespace verbena::kernel
