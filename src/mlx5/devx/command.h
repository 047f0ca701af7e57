// DEVX, the base: device commands through the kernel. Nothing here knows what stands on it.
//
// Threads: any.
#pragma once

#include <cstddef>

#include "mlx5/types.h"

namespace verbena::mlx5 {

// Any command that makes no object. 0, or errno; EREMOTEIO: the device refused, status and syndrome are in `out`.
int general_command(Context* context, const void* in, std::size_t in_length, void* out, std::size_t out_length);

// What a refused command means to a caller who sees no mailbox: the errno that the kernel gives for its status. `error` is
// what the call returned; all but EREMOTEIO stand.
int command_errno(int error, const std::byte* out);

}  // namespace verbena::mlx5
