#include "device/transport/receive_wqe.h"

#include <algorithm>
#include <cstring>

#include "device/memory/transfer.h"
#include "prm/doorbell.h"
#include "prm/wqe.h"

namespace verbena::device {

std::uint32_t posted(Peer& owner, const Ring& ring, std::uint64_t dbrec_va, std::uint16_t consumed,
                     std::uint16_t* producer) {
  std::byte record[4];
  if (const std::byte* p = owner.in_arena(dbrec_va, 4); p != nullptr) [[likely]] {
    const std::uint32_t v = __atomic_load_n(reinterpret_cast<const std::uint32_t*>(p), __ATOMIC_ACQUIRE);
    std::memcpy(record, &v, 4);
  } else if (read_memory(&owner, dbrec_va, record, sizeof record) != Moved::ok) {
    return 0;
  }
  const auto counter = static_cast<std::uint16_t>(prm::load_be32(record));
  const std::uint16_t count = counter - consumed;
  if (ring.log_entries > 16 || count > 1u << (ring.log_entries & 31)) return 0;
  if (producer != nullptr) *producer = counter;
  return count;
}

namespace {
// Adds the segment to the list; false: it ends the list.
bool add_segment(const std::byte* at, ReceiveWqe& wqe) {
  const prm::ConstView<prm::DataSeg> seg(at);
  const auto length = seg.get<prm::DataSeg::byte_count>();
  const auto lkey = seg.get<prm::DataSeg::lkey>();
  if (lkey == prm::kInvalidLkey) return false;
  if (length == 0) return true;
  wqe.sge[wqe.count++] = {seg.get<prm::DataSeg::addr>(), lkey, length};
  wqe.capacity += length;
  return true;
}
}  // namespace

// Reads the posted WQEs of `each` bytes from rq_head, which is at `va`, to the end of its cache line.
bool ReceiveQueue::read_ahead(std::uint64_t va, unsigned each) {
  const std::uint64_t room = 64 - (va & 63), known = static_cast<std::uint16_t>(qp_.rq_tail_seen - qp_.rq_head);
  const std::uint64_t count = std::min(room / each, std::max<std::uint64_t>(known, 1));
  if (count == 0 || read_memory(&owner_, va, qp_.rq_ahead, count * each) != Moved::ok) return false;
  qp_.rq_ahead_first = qp_.rq_head;
  qp_.rq_ahead_count = static_cast<std::uint16_t>(count);
  return true;
}

bool ReceiveQueue::parse(std::uint64_t va, unsigned bytes, bool srq, ReceiveWqe& wqe) {
  wqe.count = 0;
  wqe.capacity = 0;
  if (!srq && bytes < 64) {
    std::uint16_t at = qp_.rq_head - qp_.rq_ahead_first;
    if (at >= qp_.rq_ahead_count) {
      if (!read_ahead(va, bytes)) return false;
      at = 0;
    }
    const std::byte* raw = qp_.rq_ahead + (std::size_t{at} * bytes & 63);
    for (unsigned i = 0; i < bytes && add_segment(raw + i, wqe); i += prm::DataSeg::size) {
    }
    return true;
  }
  alignas(16) std::byte raw[ReceiveWqe::kMaxSges * prm::DataSeg::size];
  bytes = std::min<unsigned>(bytes, sizeof raw);
  // Short lists are the rule: fetch the rest only if the first segments do not end the list.
  unsigned have = std::min(bytes, 64u);
  if (read_memory(&owner_, va, raw, have) != Moved::ok) return false;
  for (unsigned at = srq ? prm::SrqNextSeg::size : 0; at + prm::DataSeg::size <= bytes; at += prm::DataSeg::size) {
    if (at + prm::DataSeg::size > have) {
      if (read_memory(&owner_, va + have, raw + have, bytes - have) != Moved::ok) return false;
      have = bytes;
    }
    if (!add_segment(raw + at, wqe)) break;
  }
  return true;
}

bool ReceiveQueue::take_from_srq() {
  if (srq_ >= kMaxSrqs) return false;
  SrqContext& srq = owner_.slice->srqs[srq_];
  SharedGuard guard(srq.lock, me_);
  if (!Nic::in_use(srq) || srq.ring.log_stride < 5 || srq.ring.log_stride > 12) return false;
  const std::uint32_t left = posted(owner_, srq.ring, srq.dbrec_va, srq.consumed);
  if (left == 0) return false;
  const std::uint32_t mask = (1u << (srq.ring.log_entries & 31)) - 1;
  const std::uint16_t index = srq.head & mask;
  std::byte next[prm::SrqNextSeg::size];
  if (read_memory(&owner_, srq.ring.va + (std::uint64_t{index} << (srq.ring.log_stride & 31)), next, sizeof next) != Moved::ok)
    return false;
  srq.head = srq.cyclic ? index + 1
                        : static_cast<std::uint16_t>(prm::ConstView<prm::SrqNextSeg>(next).get<prm::SrqNextSeg::next_wqe_index>());
  ++srq.consumed;
  qp_.rx_srq_wqe = index;
  const std::uint32_t limit = srq.limit.load(std::memory_order_relaxed);
  if (limit != 0 && left - 1 < limit) {
    srq.limit.store(0, std::memory_order_relaxed);
    complete_.event(prm::EventType::srq_rq_limit, srq);
  }
  return true;
}

bool ReceiveQueue::current(ReceiveWqe& wqe) {
  if (uses_srq()) {
    if ((qp_.rx_flags & kRxHasWqe) == 0) {
      if (!take_from_srq()) return false;
      qp_.rx_flags |= kRxHasWqe;
    }
    if (srq_ >= kMaxSrqs) return false;
    const SrqContext& srq = owner_.slice->srqs[srq_];
    const std::uint32_t log_stride = std::min<std::uint32_t>(srq.ring.log_stride & 31, 12), mask = (1u << (srq.ring.log_entries & 15)) - 1;
    wqe.index = static_cast<std::uint16_t>(qp_.rx_srq_wqe & mask);
    wqe.pdn = srq.pdn;
    return parse(srq.ring.va + (std::uint64_t{wqe.index} << log_stride), 1u << log_stride, true, wqe);
  }
  const std::uint32_t stride = __atomic_load_n(&qp_.rq.log_stride, __ATOMIC_RELAXED);  // once: it is shared memory
  if (stride < 4 || stride > 12 || qp_.rq_type == kRqTypeNone) return false;
  if (qp_.rq_head == qp_.rq_tail_seen && (qp_.rx_flags & kRxHasWqe) == 0 &&
      posted(owner_, qp_.rq, qp_.dbrec_va, qp_.rq_head, &qp_.rq_tail_seen) == 0)
    return false;
  qp_.rx_flags |= kRxHasWqe;
  const std::uint32_t mask = (1u << (qp_.rq.log_entries & 31)) - 1;
  wqe.index = qp_.rq_head;
  wqe.pdn = qp_.pdn;
  const std::uint64_t va = qp_.rq.va + (std::uint64_t{qp_.rq_head & mask} << stride);
  return parse(va, 1u << stride, false, wqe);
}

void ReceiveQueue::release() {
  if ((qp_.rx_flags & kRxHasWqe) == 0) return;
  qp_.rx_flags &= ~kRxHasWqe;
  if (!uses_srq()) {
    ++qp_.rq_head;
    if (static_cast<std::uint16_t>(qp_.rq_head - qp_.rq_ahead_first) < qp_.rq_ahead_count) return;
    const std::uint32_t mask = (1u << (qp_.rq.log_entries & 31)) - 1;
    if (const std::byte* p = owner_.in_arena(
            qp_.rq.va + (std::uint64_t{qp_.rq_head & mask} << (qp_.rq.log_stride & 31)), prm::DataSeg::size))
      __builtin_prefetch(p);
  }
}

}  // namespace verbena::device
