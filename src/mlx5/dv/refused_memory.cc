// mlx5dv: memory keys. Declared, exported and refused: the man pages' way of saying "not on this device".

#include "mlx5/dv/refuse.h"

using namespace verbena::mlx5;

extern "C" {

VERBENA_MLX5_EXPORT int _mlx5dv_mkey_check(mlx5dv_mkey*, mlx5dv_mkey_err*, std::size_t) { return refuse(); }
VERBENA_MLX5_EXPORT mlx5dv_mkey* mlx5dv_create_mkey(mlx5dv_mkey_init_attr*) { return refuse_null(); }
VERBENA_MLX5_EXPORT int mlx5dv_destroy_mkey(mlx5dv_mkey*) { return refuse(); }
VERBENA_MLX5_EXPORT int mlx5dv_get_data_direct_sysfs_path(ibv_context*, char*, std::size_t) { return refuse(); }
VERBENA_MLX5_EXPORT ibv_mr* mlx5dv_reg_dmabuf_mr(ibv_pd*, std::uint64_t, std::size_t, std::uint64_t, int, int, int) {
  return refuse_null();
}

}  // extern "C"
