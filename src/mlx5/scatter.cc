#include "mlx5/scatter.h"

#include <algorithm>

#include "mlx5/context.h"
#include "mlx5/wire.h"

namespace verbena::mlx5 {
namespace {

constexpr std::size_t kSegmentSize = sizeof(mlx5_wqe_data_seg);
constexpr std::size_t kHalf = sizeof(mlx5_cqe64), kSmall = 32;

// A list of data segments in a ring that may begin again at its start.
struct List {
  const char* at;
  std::size_t segments;
  const char* end;
  const char* start;
};

// The result that a CQE holds; null if it cannot hold one of that length.
const char* result_of(const Cq* cq, const mlx5_cqe64* cqe) {
  const std::size_t length = be(cqe->byte_cnt);
  const char* const bytes = reinterpret_cast<const char*>(cqe);
  if (cqe->op_own & kInCqe) return length <= kSmall ? bytes : nullptr;
  return length <= kHalf && cq->cqe_offset >= kHalf ? bytes - kHalf : nullptr;
}

ibv_wc_status deliver(const Cq* cq, const mlx5_cqe64* cqe, List list) {
  std::size_t left = be(cqe->byte_cnt);
  const char* from = result_of(cq, cqe);
  if (!from) return IBV_WC_LOC_LEN_ERR;
  const ibv_context* ibv = cq->verbs.cq.context;
  const std::uint32_t null_key = ibv ? context_of(const_cast<ibv_context*>(ibv))->caps.dump_fill_mkey : 0;
  for (; left && list.segments; --list.segments) {
    if (list.at == list.end) list.at = list.start;
    mlx5_wqe_data_seg segment;
    std::memcpy(&segment, list.at, sizeof segment);
    const std::size_t part = std::min<std::size_t>(left, be(segment.byte_count));
    // Memory that takes anything and keeps nothing has no address.
    if (part && (!null_key || be(segment.lkey) != null_key))
      std::memcpy(reinterpret_cast<void*>(be(segment.addr)), from, part);
    from += part;
    left -= part;
    list.at += kSegmentSize;
  }
  return left ? IBV_WC_LOC_LEN_ERR : IBV_WC_SUCCESS;
}

// Where a read or an atomic operation has its result put: behind the segments that say what is to be done.
ibv_wc_status deliver_send(const Cq* cq, const mlx5_cqe64* cqe, const Qp* qp) {
  const SendQueue& sq = qp->sq;
  const char* const wqe = sq.start + std::size_t{be(cqe->wqe_counter) & sq.mask} * MLX5_SEND_WQE_BB;
  mlx5_wqe_ctrl_seg control;
  std::memcpy(&control, wqe, sizeof control);
  std::size_t before = 2;  // control, remote address
  switch (be(control.opmod_idx_opcode) & 0xff) {
    case MLX5_OPCODE_RDMA_READ:
      break;
    case MLX5_OPCODE_ATOMIC_CS:
    case MLX5_OPCODE_ATOMIC_FA:
      ++before;
      break;
    default:
      return IBV_WC_REM_INV_REQ_ERR;
  }
  const std::size_t segments = be(control.qpn_ds) & 0x3f;
  if (segments < before) return IBV_WC_GENERAL_ERR;
  return deliver(cq, cqe, List{wqe + before * kSegmentSize, segments - before, sq.end, sq.start});
}

}  // namespace

ibv_wc_status deliver(const Cq* cq, const mlx5_cqe64* cqe, const Qp* qp) {
  if (cqe->op_own >> 4 == MLX5_CQE_REQ) return deliver_send(cq, cqe, qp);
  if (qp->srq) return deliver(cq, cqe, qp->srq);
  const RecvQueue& rq = qp->rq;
  const char* const wqe = rq.start + (std::size_t{be(cqe->wqe_counter) & rq.mask} << rq.shift);
  return deliver(cq, cqe, List{wqe, (std::size_t{1} << rq.shift) / kSegmentSize, nullptr, nullptr});
}

ibv_wc_status deliver(const Cq* cq, const mlx5_cqe64* cqe, const Srq* srq) {
  const std::uint32_t index = be(cqe->wqe_counter);
  if (index >= srq->count) return IBV_WC_GENERAL_ERR;
  const char* const wqe = srq->start + (std::size_t{index} << srq->shift);
  return deliver(cq, cqe, List{wqe + kSegmentSize, srq->max_sge, nullptr, nullptr});  // behind the link
}

}  // namespace verbena::mlx5
