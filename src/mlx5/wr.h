// The ibv_wr_* builders of an extended QP.
//
// Threads: fill_builders() while the QP is made; set_completing() under no lock, as ibv_modify_qp() allows.
#pragma once

#include "mlx5/types.h"

namespace verbena::mlx5 {

// Fills the table of qp->verbs.qp_ex for its type. 0, or EOPNOTSUPP if `send_ops` asks for more than there is.
int fill_builders(Qp* qp, ibv_qp_type type, std::uint64_t send_ops);
// In states that cannot send, ibv_wr_complete() answers EINVAL and nothing is posted.
void set_completing(Qp* qp, bool allowed);

}  // namespace verbena::mlx5
