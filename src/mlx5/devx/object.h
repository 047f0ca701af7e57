// DEVX objects: any object of the device, made by the program's own command.
//
// A query and a change go through one kernel method whatever the handle is of: a DEVX object, or a QP, CQ, SRQ, WQ or
// indirection table that verbs made. mlx5dv_devx_obj_modify() and mlx5dv_devx_qp_modify() are two doors to it.
// Threads: any.
#pragma once

#include <cstddef>
#include <cstdint>

#include "mlx5/types.h"

namespace verbena::mlx5 {

// All return 0 or errno; EREMOTEIO: the device refused, status and syndrome are in `out`.
int query_by_handle(Context* context, std::uint32_t handle, const void* in, std::size_t in_length, void* out,
                    std::size_t out_length);
int modify_by_handle(Context* context, std::uint32_t handle, const void* in, std::size_t in_length, void* out,
                     std::size_t out_length);

}  // namespace verbena::mlx5

// Opaque to programs.
struct mlx5dv_devx_obj {
  verbena::mlx5::Context* context;
  std::uint32_t handle;
};
