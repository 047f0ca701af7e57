// mlx5dv: DEVX: events, asynchronous commands, sharing with other contexts. Declared, exported and refused: the man pages'
// way of saying "not on this device".

#include "mlx5/dv/refuse.h"

using namespace verbena::mlx5;

extern "C" {

VERBENA_MLX5_EXPORT void _mlx5dv_get_export_sizes(mlx5dv_export_sizes*, std::size_t) {}
VERBENA_MLX5_EXPORT mlx5dv_devx_cmd_comp* mlx5dv_devx_create_cmd_comp(ibv_context*) { return refuse_null(); }
VERBENA_MLX5_EXPORT mlx5dv_devx_event_channel* mlx5dv_devx_create_event_channel(
    ibv_context*, mlx5dv_devx_create_event_channel_flags) {
  return refuse_null();
}
VERBENA_MLX5_EXPORT void mlx5dv_devx_destroy_cmd_comp(mlx5dv_devx_cmd_comp*) {}
VERBENA_MLX5_EXPORT void mlx5dv_devx_destroy_event_channel(mlx5dv_devx_event_channel*) {}
VERBENA_MLX5_EXPORT int mlx5dv_devx_get_async_cmd_comp(mlx5dv_devx_cmd_comp*, mlx5dv_devx_async_cmd_hdr*, std::size_t) {
  return refuse();
}
VERBENA_MLX5_EXPORT ssize_t mlx5dv_devx_get_event(mlx5dv_devx_event_channel*, mlx5dv_devx_async_event_hdr*,
                                                  std::size_t) {
  return refuse_minus_one();
}
VERBENA_MLX5_EXPORT int mlx5dv_devx_obj_export(mlx5dv_devx_obj*, void*) { return refuse(); }
VERBENA_MLX5_EXPORT mlx5dv_devx_obj* mlx5dv_devx_obj_import(ibv_context*, void*) { return refuse_null(); }
VERBENA_MLX5_EXPORT int mlx5dv_devx_obj_query_async(mlx5dv_devx_obj*, const void*, std::size_t, std::size_t,
                                                    std::uint64_t, mlx5dv_devx_cmd_comp*) {
  return refuse();
}
VERBENA_MLX5_EXPORT void mlx5dv_devx_obj_unimport(mlx5dv_devx_obj*) {}
VERBENA_MLX5_EXPORT int mlx5dv_devx_subscribe_devx_event(mlx5dv_devx_event_channel*, mlx5dv_devx_obj*, std::uint16_t,
                                                         std::uint16_t*, std::uint64_t) {
  return refuse();
}
VERBENA_MLX5_EXPORT int mlx5dv_devx_subscribe_devx_event_fd(mlx5dv_devx_event_channel*, int, mlx5dv_devx_obj*,
                                                            std::uint16_t) {
  return refuse();
}
VERBENA_MLX5_EXPORT int mlx5dv_devx_uar_export_dmabuf_fd(mlx5dv_devx_uar*) { return refuse(); }
VERBENA_MLX5_EXPORT int mlx5dv_devx_umem_export(mlx5dv_devx_umem*, void*) { return refuse(); }
VERBENA_MLX5_EXPORT mlx5dv_devx_umem* mlx5dv_devx_umem_import(ibv_context*, void*) { return refuse_null(); }
VERBENA_MLX5_EXPORT void mlx5dv_devx_umem_unimport(mlx5dv_devx_umem*) {}
VERBENA_MLX5_EXPORT int mlx5dv_var_export(mlx5dv_var*, void*) { return refuse(); }

}  // extern "C"
