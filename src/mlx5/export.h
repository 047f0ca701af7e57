// What every file of mlx5dv functions needs.
#pragma once

#include "mlx5/types.h"

#define VERBENA_MLX5_EXPORT __attribute__((visibility("default")))

namespace verbena::mlx5 {

// Null if the context is another vendor's.
inline Context* mlx5_context(ibv_context* ibv) { return is_mlx5(ibv->device) ? context_of(ibv) : nullptr; }

}  // namespace verbena::mlx5
