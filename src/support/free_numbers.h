// Numbers of a range, each given out once at a time, at the same cost however many are out.
// Threads: the caller's lock.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

namespace verbena {

class FreeNumbers {
 public:
  // [first, end)
  FreeNumbers(std::uint32_t first, std::uint32_t end) : fresh_(first), end_(end) {}

  bool any() const { return !free_.empty() || fresh_ < end_; }
  std::optional<std::uint32_t> take() {
    if (free_.empty()) return fresh_ < end_ ? std::optional(fresh_++) : std::nullopt;
    const std::uint32_t number = free_.back();
    free_.pop_back();
    return number;
  }
  void give_back(std::uint32_t number) { free_.push_back(number); }

 private:
  std::uint32_t fresh_, end_;
  std::vector<std::uint32_t> free_;
};

}  // namespace verbena
