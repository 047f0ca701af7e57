// Object numbers of one process: local indices recycled first-in first-out, after `rest` others were freed while fresh
// ones are left (what still speaks of the old object is to find nobody), and, for QPs and mkeys, machine-wide blocks of
// 64 numbers claimed in the segment.
// Threads: under Nic's allocation mutex.
#pragma once

#include <atomic>
#include <cstdint>
#include <deque>
#include <optional>
#include <vector>

#include "device/shared/nic.h"

namespace verbena::device {

class Nic::Numbers {
 public:
  // `table` is the segment's block table or null (then number = index). `first`: lowest index given out.
  Numbers(std::uint32_t limit, std::uint32_t first, std::atomic<std::uint32_t>* table,
          std::atomic<std::uint32_t>* hint, std::atomic<std::uint32_t>* top, std::uint32_t slot, std::uint32_t rest = 0)
      : limit_(limit), next_(first), rest_(rest), table_(table), hint_(hint), top_(top), slot_(slot) {}

  // An index for a new context; nullopt: none left.
  std::optional<std::uint32_t> take() {
    if (free_.size() <= rest_ && next_ < limit_ && (table_ == nullptr || (next_ & kLow) != 0 || claim())) return next_++;
    if (free_.empty()) return std::nullopt;
    const std::uint32_t index = free_.front();
    free_.pop_front();
    return index;
  }
  void give_back(std::uint32_t index) { free_.push_back(index); }
  // The number that stands for an index.
  std::uint32_t number(std::uint32_t index) const {
    return table_ == nullptr ? index : blocks_[index >> kLogBlock] << kLogBlock | (index & kLow);
  }
  std::uint32_t high_water() const { return next_; }
  // A block that stands for no contexts; 0: none left.
  std::uint32_t reserve() {
    const auto block = claim(kNoContexts);
    return block ? *block << kLogBlock : 0;
  }
  void release(std::uint32_t first) { table_[first >> kLogBlock].store(0, std::memory_order_release); }

  std::uint64_t backed = 0;  // bytes of the context array that have pages

 private:
  static constexpr std::uint32_t kLow = (1u << kLogBlock) - 1;

  static constexpr std::uint32_t kNoContexts = 0xffff;  // as an index of a block it is past the end of every array

  bool claim() {
    const auto block = claim(static_cast<std::uint32_t>(blocks_.size()));
    if (block) blocks_.push_back(*block);
    return block.has_value();
  }
  std::optional<std::uint32_t> claim(std::uint32_t index) {
    const std::uint32_t entry = (slot_ + 1) | index << 16;
    std::uint32_t at = hint_->load(std::memory_order_relaxed);
    for (unsigned i = 0; i < kBlocks; ++i, ++at) {
      const std::uint32_t block = at % kBlocks;
      if (block == 0) continue;  // numbers below 64 are the hardware's own
      // Raised first: whoever frees the slot of a process that dies here must find the block.
      std::uint32_t top = top_->load();
      while (top <= block && !top_->compare_exchange_weak(top, block + 1)) {
      }
      std::uint32_t expected = 0;
      if (table_[block].load(std::memory_order_relaxed) != 0 ||
          !table_[block].compare_exchange_strong(expected, entry, std::memory_order_acq_rel))
        continue;
      hint_->store(block + 1, std::memory_order_relaxed);
      return block;
    }
    return std::nullopt;
  }

  std::uint32_t limit_, next_, rest_;
  std::atomic<std::uint32_t>* table_;
  std::atomic<std::uint32_t>* hint_;
  std::atomic<std::uint32_t>* top_;
  std::uint32_t slot_;
  std::vector<std::uint32_t> blocks_;
  std::deque<std::uint32_t> free_;
};

}  // namespace verbena::device
