// What a QP's state allows the library to post.
//
// Threads: as ibv_modify_qp().
#pragma once

#include "mlx5/types.h"

namespace verbena::mlx5 {

void set_operational(Qp* qp, ibv_qp_state state);

}  // namespace verbena::mlx5
