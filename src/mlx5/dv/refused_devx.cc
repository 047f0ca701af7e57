// mlx5dv: sharing DEVX objects with other contexts. Declared, exported and refused: the man pages' way of saying "not on
// this device".

#include "mlx5/dv/refuse.h"

using namespace verbena::mlx5;

extern "C" {

VERBENA_MLX5_EXPORT void _mlx5dv_get_export_sizes(mlx5dv_export_sizes*, std::size_t) {}
VERBENA_MLX5_EXPORT int mlx5dv_devx_obj_export(mlx5dv_devx_obj*, void*) { return refuse(); }
VERBENA_MLX5_EXPORT mlx5dv_devx_obj* mlx5dv_devx_obj_import(ibv_context*, void*) { return refuse_null(); }
VERBENA_MLX5_EXPORT void mlx5dv_devx_obj_unimport(mlx5dv_devx_obj*) {}
VERBENA_MLX5_EXPORT int mlx5dv_devx_uar_export_dmabuf_fd(mlx5dv_devx_uar*) { return refuse(); }
VERBENA_MLX5_EXPORT int mlx5dv_devx_umem_export(mlx5dv_devx_umem*, void*) { return refuse(); }
VERBENA_MLX5_EXPORT mlx5dv_devx_umem* mlx5dv_devx_umem_import(ibv_context*, void*) { return refuse_null(); }
VERBENA_MLX5_EXPORT void mlx5dv_devx_umem_unimport(mlx5dv_devx_umem*) {}
VERBENA_MLX5_EXPORT int mlx5dv_var_export(mlx5dv_var*, void*) { return refuse(); }

}  // extern "C"
