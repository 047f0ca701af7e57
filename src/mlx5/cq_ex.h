// The extended CQ's session functions.
//
// Threads: between start and end the session's thread holds Cq::lock (unless the CQ is single-threaded).
#pragma once

#include "mlx5/types.h"

namespace verbena::mlx5 {

// Fills the table of cq->verbs.cq_ex. 0, or EOPNOTSUPP where the wall clock is asked for and cannot be had.
int fill_cq_ex(Context* context, Cq* cq, std::uint64_t wc_flags);

}  // namespace verbena::mlx5
