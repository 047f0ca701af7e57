// Doorbell registers: which QP, thread domain or CQ uses which UAR page. The policy is rdma-core's, because the
// kernel sees it: the first low-latency QPs get a register to themselves, the next ones share, thread domains own
// theirs.
//
// Threads: any.
#pragma once

#include <cstddef>

#include "mlx5/types.h"

namespace verbena::mlx5 {

// What a program holds of a page.
inline Uar* uar_of(mlx5dv_devx_uar* devx) {
  return reinterpret_cast<Uar*>(reinterpret_cast<char*>(devx) - offsetof(Uar, devx));
}


// At open. setup_static_uars() only where the kernel fixed the pages (tot_bfregs != 0).
bool setup_static_uars(Context* context);
void setup_nc_uar(Context* context);
void release_uars(Context* context);

// For a QP: null with errno if none can be had. Give it back when the QP is gone.
Uar* take_qp_uar(Context* context);
void give_qp_uar(Context* context, Uar* uar);

Uar* take_thread_uar(Context* context);
void give_thread_uar(Context* context, Uar* uar);

// A page without write combining that nobody else uses; give_page() unmaps it.
Uar* take_page(Context* context);
void give_page(Context* context, Uar* uar);

}  // namespace verbena::mlx5
