// Memory as a list of pieces, each a range in one process: what keys translate to and copies work on.
// Threads: values of one thread.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "device/shared/nic.h"

namespace verbena::device {

struct Piece {
  Peer* peer;  // whose addresses; null: this process's own (inline data, buffers of the engine)
  std::uint64_t va;
  std::uint64_t length;
};

class PieceList {
 public:
  static constexpr unsigned kInline = 6;

  unsigned size() const { return count_; }
  std::uint64_t bytes() const { return bytes_; }
  const Piece& operator[](unsigned i) const { return i < kInline ? first_[i] : more_[i - kInline]; }

  void add(Peer* peer, std::uint64_t va, std::uint64_t length) {
    if (length == 0) return;
    bytes_ += length;
    if (count_ != 0) {
      Piece& last = count_ <= kInline ? first_[count_ - 1] : more_[count_ - 1 - kInline];
      if (last.peer == peer && last.va + last.length == va) {
        last.length += length;
        return;
      }
    }
    if (count_ < kInline)
      first_[count_] = {peer, va, length};
    else
      more_.push_back({peer, va, length});
    ++count_;
  }
  void clear() {
    count_ = 0;
    bytes_ = 0;
    more_.clear();
  }

 private:
  unsigned count_ = 0;
  std::uint64_t bytes_ = 0;
  Piece first_[kInline];
  std::vector<Piece> more_;
};

}  // namespace verbena::device
