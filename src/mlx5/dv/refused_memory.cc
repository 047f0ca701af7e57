// mlx5dv: memory keys. Declared, exported and refused: the man pages' way of saying "not on this device".

#include "mlx5/dv/refuse.h"

using namespace verbena::mlx5;

extern "C" {

VERBENA_MLX5_EXPORT int _mlx5dv_mkey_check(mlx5dv_mkey*, mlx5dv_mkey_err*, std::size_t) { return refuse(); }
VERBENA_MLX5_EXPORT mlx5dv_mkey* mlx5dv_create_mkey(mlx5dv_mkey_init_attr*) { return refuse_null(); }
VERBENA_MLX5_EXPORT int mlx5dv_destroy_mkey(mlx5dv_mkey*) { return refuse(); }

}  // extern "C"
