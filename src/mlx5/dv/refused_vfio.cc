// mlx5dv: the VFIO backend, its event queues and vectors. Declared, exported and refused: the man pages' way of saying
// "not on this device".

#include "mlx5/dv/refuse.h"

using namespace verbena::mlx5;

extern "C" {

VERBENA_MLX5_EXPORT mlx5dv_devx_msi_vector* mlx5dv_devx_alloc_msi_vector(ibv_context*) { return refuse_null(); }
VERBENA_MLX5_EXPORT mlx5dv_devx_eq* mlx5dv_devx_create_eq(ibv_context*, const void*, std::size_t, void*, std::size_t) {
  return refuse_null();
}
VERBENA_MLX5_EXPORT int mlx5dv_devx_destroy_eq(mlx5dv_devx_eq*) { return refuse(); }
VERBENA_MLX5_EXPORT int mlx5dv_devx_free_msi_vector(mlx5dv_devx_msi_vector*) { return refuse(); }
VERBENA_MLX5_EXPORT ibv_device** mlx5dv_get_vfio_device_list(mlx5dv_vfio_context_attr*) { return refuse_null(); }
VERBENA_MLX5_EXPORT int mlx5dv_vfio_get_events_fd(ibv_context*) {
  return static_cast<int>(refuse_minus_one());  // a positive number would be a descriptor
}
VERBENA_MLX5_EXPORT int mlx5dv_vfio_process_events(ibv_context*) { return refuse(); }

}  // extern "C"
