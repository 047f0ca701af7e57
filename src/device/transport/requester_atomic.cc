// Atomics, those of the specification and extended ones.
#include <cstring>

#include "device/memory/transfer.h"
#include "device/transport/requester.h"

namespace verbena::device {

using prm::BthOperation;
using prm::CqeSyndrome;
using prm::WqeOpcode;

Requester::Step Requester::atomic() {
  if (!gathered_) {
    if (wqe_.gather(nic_, self_, qp_, kMkeyLocalWrite, local_memory_) != KeyError::none)
      return error(CqeSyndrome::local_prot_err, prm::kVendorSyndromeLocalProtection);
    gathered_ = true;
  }
  const bool extended = wqe_.opcode == WqeOpcode::atomic_masked_cs || wqe_.opcode == WqeOpcode::atomic_masked_fa;
  const bool swap = wqe_.opcode == WqeOpcode::atomic_cs || wqe_.opcode == WqeOpcode::atomic_masked_cs;
  const std::uint32_t bytes = wqe_.atomic_bytes;
  fill_common(swap ? BthOperation::compare_swap : BthOperation::fetch_add);
  packet_.extended_bytes = extended ? wqe_.atomic_bytes : 0;
  if (extended) {
    packet_.swap_add_mask = wqe_.swap_mask;
    packet_.compare_mask = wqe_.compare_mask;
  }
  packet_.va = wqe_.raddr;
  packet_.rkey = wqe_.rkey;
  packet_.swap_add = wqe_.swap_add;
  packet_.compare = wqe_.compare;
  packet_.payload_bytes = 0;
  if (held_back(local_.way, 0)) return Step::wait;
  const PieceList none{};
  const Answer answer = deliver({&none, 0, 0});
  if (const Step step = take(answer, 1); step != Step::next) return step;
  const bool to_cqe = fits_cqe(bytes);
  alignas(64) std::byte small[64]{};
  // The endianness mode of the atomic capabilities is that of 8 bytes; 4 come as they travel.
  if (bytes == 4)
    prm::store_be32(small, static_cast<std::uint32_t>(reply_.packet.original));
  else
    std::memcpy(small, &reply_.packet.original, 8);
  if (!to_cqe) {
    PieceList from;
    from.add(nullptr, reinterpret_cast<std::uint64_t>(small), bytes);
    if (move(local_memory_, 0, from, 0, bytes) != Moved::ok)
      return error(CqeSyndrome::local_prot_err, prm::kVendorSyndromeLocalProtection);
  }
  finish(bytes, to_cqe ? small : nullptr);
  return Step::next;
}

}  // namespace verbena::device
