// Telling the owner of a QP or a CQ that its own threads must look at it (a bit each, found in O(1)).
// Threads: set_attention by anyone, take_attention by the owner.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>

#include "device/shared/nic.h"

namespace verbena::device {

// Bits of one kind of context, and a bit for each word of those.
struct AttentionBits {
  std::atomic<std::uint64_t>* words;
  std::atomic<std::uint64_t>* summary;
  unsigned count;         // of contexts
  std::uint32_t pending;  // kPending*
};
inline AttentionBits qp_attention(Slice& s) {
  return {s.attention, s.header.attention_summary, kMaxQps, kPendingAttention};
}
inline AttentionBits cq_attention(Slice& s) {
  return {s.cq_attention, s.header.cq_attention_summary, kMaxCqs, kPendingCq};
}

inline void set_attention(Slice& s, const AttentionBits& bits, std::uint32_t index) {
  if (index >= bits.count) return;
  bits.words[index / 64].fetch_or(std::uint64_t{1} << (index % 64), std::memory_order_release);
  bits.summary[index / 4096].fetch_or(std::uint64_t{1} << (index / 64 % 64), std::memory_order_release);
  s.header.pending.fetch_or(bits.pending, std::memory_order_release);
}

// Calls visit(index) for every context that wants attention, and forgets them.
template <class Visit>
void take_attention(const AttentionBits& bits, Visit&& visit) {
  for (unsigned group = 0; group < bits.count / 4096; ++group) {
    std::uint64_t words = bits.summary[group].load(std::memory_order_relaxed) == 0
                              ? 0
                              : bits.summary[group].exchange(0, std::memory_order_acquire);
    for (; words != 0; words &= words - 1) {
      const unsigned word = group * 64 + static_cast<unsigned>(std::countr_zero(words));
      std::uint64_t set = bits.words[word].exchange(0, std::memory_order_acquire);
      for (; set != 0; set &= set - 1) visit(word * 64 + static_cast<unsigned>(std::countr_zero(set)));
    }
  }
}

}  // namespace verbena::device
