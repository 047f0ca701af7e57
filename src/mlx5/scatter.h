// Small results that the device put into the CQE instead of where they belong (MLX5_QP_FLAG_SCATTER_CQE): the poller moves
// them there.
//
// Threads: the holder of Cq::lock.
#pragma once

#include "mlx5/types.h"

namespace verbena::mlx5 {

// Two bits of op_own: the result is in the CQE itself, or in the half before it of one of 128 bytes. Errors have neither.
inline constexpr std::uint8_t kInCqe = 1 << 2, kBeforeCqe = 1 << 3;

inline bool holds_result(const mlx5_cqe64* cqe) { return cqe->op_own & (kInCqe | kBeforeCqe); }

// Before the work request is retired. What became of the completion: success, or an error of lists that do not fit.
[[gnu::cold]] ibv_wc_status deliver(const Cq* cq, const mlx5_cqe64* cqe, const Qp* qp);
[[gnu::cold]] ibv_wc_status deliver(const Cq* cq, const mlx5_cqe64* cqe, const Srq* srq);

}  // namespace verbena::mlx5
