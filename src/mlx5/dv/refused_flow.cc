// mlx5dv: changes of packets, and doors from the kernel's tables. Declared, exported and refused: the man pages' way of saying "not on this
// device".

#include "mlx5/dv/refuse.h"

using namespace verbena::mlx5;

extern "C" {

VERBENA_MLX5_EXPORT ibv_flow_action* mlx5dv_create_flow_action_esp(ibv_context*, ibv_flow_action_esp_attr*,
                                                                   mlx5dv_flow_action_esp*) {
  return refuse_null();
}
VERBENA_MLX5_EXPORT ibv_flow_action* mlx5dv_create_flow_action_modify_header(ibv_context*, std::size_t, std::uint64_t*,
                                                                             mlx5dv_flow_table_type) {
  return refuse_null();
}
VERBENA_MLX5_EXPORT ibv_flow_action* mlx5dv_create_flow_action_packet_reformat(ibv_context*, std::size_t, void*,
                                                                               mlx5dv_flow_action_packet_reformat_type,
                                                                               mlx5dv_flow_table_type) {
  return refuse_null();
}
VERBENA_MLX5_EXPORT mlx5dv_steering_anchor* mlx5dv_create_steering_anchor(ibv_context*, mlx5dv_steering_anchor_attr*) {
  return refuse_null();
}
VERBENA_MLX5_EXPORT int mlx5dv_destroy_steering_anchor(mlx5dv_steering_anchor*) { return refuse(); }

}  // extern "C"
