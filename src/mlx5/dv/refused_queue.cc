// mlx5dv: queue changes. Declared, exported and refused: the man pages' way of saying "not on this device".

#include "mlx5/dv/refuse.h"

using namespace verbena::mlx5;

extern "C" {

VERBENA_MLX5_EXPORT ibv_wq* mlx5dv_create_wq(ibv_context*, ibv_wq_init_attr*, mlx5dv_wq_init_attr*) {
  return refuse_null();
}
VERBENA_MLX5_EXPORT int mlx5dv_dci_stream_id_reset(ibv_qp*, std::uint16_t) { return refuse(); }
VERBENA_MLX5_EXPORT int mlx5dv_map_ah_to_qp(ibv_ah*, std::uint32_t) { return refuse(); }
VERBENA_MLX5_EXPORT int mlx5dv_modify_qp_sched_elem(ibv_qp*, const mlx5dv_sched_leaf*, const mlx5dv_sched_leaf*) {
  return refuse();
}
VERBENA_MLX5_EXPORT int mlx5dv_qp_cancel_posted_send_wrs(mlx5dv_qp_ex*, std::uint64_t) { return refuse(); }
VERBENA_MLX5_EXPORT mlx5dv_sched_leaf* mlx5dv_sched_leaf_create(ibv_context*, const mlx5dv_sched_attr*) {
  return refuse_null();
}
VERBENA_MLX5_EXPORT int mlx5dv_sched_leaf_destroy(mlx5dv_sched_leaf*) { return refuse(); }
VERBENA_MLX5_EXPORT int mlx5dv_sched_leaf_modify(mlx5dv_sched_leaf*, const mlx5dv_sched_attr*) { return refuse(); }
VERBENA_MLX5_EXPORT mlx5dv_sched_node* mlx5dv_sched_node_create(ibv_context*, const mlx5dv_sched_attr*) {
  return refuse_null();
}
VERBENA_MLX5_EXPORT int mlx5dv_sched_node_destroy(mlx5dv_sched_node*) { return refuse(); }
VERBENA_MLX5_EXPORT int mlx5dv_sched_node_modify(mlx5dv_sched_node*, const mlx5dv_sched_attr*) { return refuse(); }

}  // extern "C"
