// Raw commands on a QP that verbs made: what mlx5dv_devx_qp_query() and mlx5dv_devx_qp_modify() do.
// Threads: any.
#pragma once

#include <infiniband/verbs.h>

#include <cstddef>

namespace verbena::mlx5 {

// 0 or errno; EREMOTEIO: the device refused, status and syndrome are in `out`. The library's view of the QP's state
// follows the command.
int modify_qp_by_command(ibv_qp* qp, const void* in, std::size_t in_length, void* out, std::size_t out_length);
int query_qp_by_command(ibv_qp* qp, const void* in, std::size_t in_length, void* out, std::size_t out_length);

}  // namespace verbena::mlx5
