#include "mlx5/qp_size.h"

#include <algorithm>
#include <bit>
#include <cerrno>

#include "mlx5/wire.h"

namespace verbena::mlx5 {

namespace {

constexpr std::uint64_t kAllConnected =
    IBV_QP_EX_WITH_SEND | IBV_QP_EX_WITH_SEND_WITH_INV | IBV_QP_EX_WITH_SEND_WITH_IMM | IBV_QP_EX_WITH_RDMA_WRITE |
    IBV_QP_EX_WITH_RDMA_WRITE_WITH_IMM | IBV_QP_EX_WITH_RDMA_READ | IBV_QP_EX_WITH_ATOMIC_CMP_AND_SWP |
    IBV_QP_EX_WITH_ATOMIC_FETCH_AND_ADD | IBV_QP_EX_WITH_LOCAL_INV | IBV_QP_EX_WITH_BIND_MW;
constexpr std::uint32_t kControl = sizeof(mlx5_wqe_ctrl_seg);
constexpr std::uint32_t kRdma = kControl + sizeof(mlx5_wqe_raddr_seg);
constexpr std::uint32_t kAtomic = kRdma + sizeof(mlx5_wqe_atomic_seg);
constexpr std::uint32_t kWindow =
    kControl + sizeof(mlx5_wqe_umr_ctrl_seg) + sizeof(mlx5_wqe_mkey_context_seg) + kUmrKlmBlock;
constexpr std::uint32_t kInlineHeader = sizeof(mlx5_wqe_inl_data_seg);
constexpr std::uint32_t kDataSeg = sizeof(mlx5_wqe_data_seg);

constexpr std::uint64_t align(std::uint64_t value, std::uint64_t to) { return (value + to - 1) / to * to; }

// The largest fixed part of the WQEs this QP may post.
std::uint32_t overhead(const ibv_qp_init_attr_ex& attr, const mlx5dv_qp_init_attr* vendor) {
  const bool only_sends = attr.qp_type == IBV_QPT_UD || attr.qp_type == IBV_QPT_RAW_PACKET;
  std::uint64_t ops = only_sends ? std::uint64_t{IBV_QP_EX_WITH_SEND} : kAllConnected;
  if (attr.comp_mask & IBV_QP_INIT_ATTR_SEND_OPS_FLAGS) ops = attr.send_ops_flags;
  const std::uint64_t vendor_ops =
      vendor && (vendor->comp_mask & MLX5DV_QP_INIT_ATTR_MASK_SEND_OPS_FLAGS) ? vendor->send_ops_flags : 0;
  std::uint32_t size = kControl;
  if (ops & (IBV_QP_EX_WITH_RDMA_WRITE | IBV_QP_EX_WITH_RDMA_WRITE_WITH_IMM | IBV_QP_EX_WITH_RDMA_READ))
    size = std::max(size, kRdma);
  if (ops & (IBV_QP_EX_WITH_ATOMIC_CMP_AND_SWP | IBV_QP_EX_WITH_ATOMIC_FETCH_AND_ADD)) size = std::max(size, kAtomic);
  if ((ops & (IBV_QP_EX_WITH_BIND_MW | IBV_QP_EX_WITH_LOCAL_INV)) ||
      (vendor_ops & (MLX5DV_QP_EX_WITH_MR_INTERLEAVED | MLX5DV_QP_EX_WITH_MR_LIST)))
    size = std::max(size, kWindow);
  if (attr.qp_type == IBV_QPT_UD) size += sizeof(mlx5_wqe_datagram_seg);
  if (attr.qp_type == IBV_QPT_RAW_PACKET) size += sizeof(mlx5_wqe_eth_seg);
  if (attr.qp_type == IBV_QPT_XRC_SEND) size += kSegment;  // the receive queue that it is for
  return size;
}

int compute_send(const QpLimits& limits, const ibv_qp_init_attr_ex& attr, const mlx5dv_qp_init_attr* vendor,
                 QpSize* out) {
  if (!attr.cap.max_send_wr) return 0;
  const std::uint32_t fixed = overhead(attr, vendor);
  // Headers of segmented frames lie before the data.
  const std::uint64_t headers =
      attr.comp_mask & IBV_QP_INIT_ATTR_MAX_TSO_HEADER ? align(attr.max_tso_header, kSegment) : 0;
  if (fixed + headers > limits.max_sq_desc_sz ||
      attr.cap.max_send_sge > (limits.max_sq_desc_sz - fixed - headers) / kDataSeg)
    return EINVAL;
  std::uint64_t wqe = fixed + headers + std::uint64_t{attr.cap.max_send_sge} * kDataSeg;
  if (attr.cap.max_inline_data)
    wqe = std::max(wqe, fixed + align(kInlineHeader + std::uint64_t{attr.cap.max_inline_data}, kSegment));
  if (wqe > limits.max_sq_desc_sz) return EINVAL;
  wqe = align(wqe, kWqeBlock);
  if (wqe > limits.max_sq_desc_sz) return EINVAL;
  if (attr.cap.max_send_wr > 0x7fffffffu / limits.max_sq_desc_sz) return EINVAL;
  const std::uint64_t bytes = std::bit_ceil(attr.cap.max_send_wr * wqe);
  if (bytes / kWqeBlock > limits.max_send_wqebb) return EINVAL;
  out->send_blocks = static_cast<std::uint32_t>(bytes / kWqeBlock);
  out->max_post = static_cast<std::uint32_t>(bytes / wqe);
  out->max_inline = static_cast<std::uint32_t>(wqe - fixed - kInlineHeader);
  out->max_send_sge = attr.cap.max_send_sge;
  return 0;
}

int compute_recv(const QpLimits& limits, const ibv_qp_init_attr_ex& attr, QpSize* out) {
  if (!attr.cap.max_recv_wr) return 0;
  if (attr.cap.max_recv_wr > limits.max_recv_wr) return EINVAL;
  if (attr.srq || attr.qp_type == IBV_QPT_XRC_SEND || attr.qp_type == IBV_QPT_XRC_RECV) return 0;
  const std::uint64_t wqe_bytes = std::uint64_t{std::max(attr.cap.max_recv_sge, 1u)} * kDataSeg;
  if (wqe_bytes > limits.max_rq_desc_sz) return EINVAL;
  const std::uint32_t wqe = std::bit_ceil(static_cast<std::uint32_t>(wqe_bytes));
  if (wqe > limits.max_rq_desc_sz) return EINVAL;
  const std::uint64_t bytes =
      std::max<std::uint64_t>(std::uint64_t{std::bit_ceil(attr.cap.max_recv_wr)} * wqe, kWqeBlock);
  out->recv_count = static_cast<std::uint32_t>(bytes / wqe);
  out->recv_shift = static_cast<std::uint32_t>(std::countr_zero(wqe));
  out->max_recv_sge = wqe / kDataSeg;
  return 0;
}

}  // namespace

int compute_size(const QpLimits& limits, const ibv_qp_init_attr_ex& attr, const mlx5dv_qp_init_attr* vendor,
                 QpSize* out) {
  *out = {};
  if (int error = compute_send(limits, attr, vendor, out)) return error;
  return compute_recv(limits, attr, out);
}

}  // namespace verbena::mlx5
