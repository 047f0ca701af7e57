// Telling the owner of a QP that its own thread must look at it (a bit per QP, found in O(1)).
// Threads: set_attention by anyone, take_attention by the owner.
#pragma once

#include <bit>
#include <cstdint>

#include "device/shared/nic.h"

namespace verbena::device {

inline void set_attention(Peer& owner, std::uint32_t index) {
  if (index >= kMaxQps) return;
  Slice& s = *owner.slice;
  s.attention[index / 64].fetch_or(std::uint64_t{1} << (index % 64), std::memory_order_release);
  s.header.attention_summary[index / 4096].fetch_or(std::uint64_t{1} << (index / 64 % 64), std::memory_order_release);
  s.header.pending.fetch_or(kPendingAttention, std::memory_order_release);
}

// Calls visit(index) for every QP that wants attention, and forgets them.
template <class Visit>
void take_attention(Slice& s, Visit&& visit) {
  for (unsigned group = 0; group < std::size(s.header.attention_summary); ++group) {
    std::uint64_t words = s.header.attention_summary[group].load(std::memory_order_relaxed) == 0
                              ? 0
                              : s.header.attention_summary[group].exchange(0, std::memory_order_acquire);
    for (; words != 0; words &= words - 1) {
      const unsigned word = group * 64 + static_cast<unsigned>(std::countr_zero(words));
      std::uint64_t bits = s.attention[word].exchange(0, std::memory_order_acquire);
      for (; bits != 0; bits &= bits - 1) visit(word * 64 + static_cast<unsigned>(std::countr_zero(bits)));
    }
  }
}

}  // namespace verbena::device
