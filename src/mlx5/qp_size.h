// How large the rings of a QP are. Programs read the results back as their capabilities, so the sums are the ones
// rdma-core makes.
//
// Threads: pure functions.
#pragma once

#include <infiniband/mlx5dv.h>

#include <cstdint>

namespace verbena::mlx5 {

struct QpLimits {
  std::uint32_t max_sq_desc_sz;
  std::uint32_t max_rq_desc_sz;
  std::uint32_t max_send_wqebb;
  std::uint32_t max_recv_wr;
};

struct QpSize {
  std::uint32_t send_blocks = 0;  // 64-byte units
  std::uint32_t max_post = 0;     // send requests
  std::uint32_t max_inline = 0;
  std::uint32_t max_send_sge = 0;
  std::uint32_t recv_count = 0;
  std::uint32_t recv_shift = 0;
  std::uint32_t max_recv_sge = 0;

  std::uint64_t recv_bytes() const { return std::uint64_t{recv_count} << recv_shift; }
  std::uint64_t send_bytes() const { return std::uint64_t{send_blocks} * MLX5_SEND_WQE_BB; }
};

// 0 or errno. `vendor` may be null.
int compute_size(const QpLimits& limits, const ibv_qp_init_attr_ex& attr, const mlx5dv_qp_init_attr* vendor,
                 QpSize* out);

}  // namespace verbena::mlx5
