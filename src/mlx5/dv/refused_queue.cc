// mlx5dv: queue changes. Declared, exported and refused: the man pages' way of saying "not on this device".

#include "mlx5/dv/refuse.h"

using namespace verbena::mlx5;

extern "C" {

VERBENA_MLX5_EXPORT int mlx5dv_dci_stream_id_reset(ibv_qp*, std::uint16_t) { return refuse(); }
VERBENA_MLX5_EXPORT int mlx5dv_qp_cancel_posted_send_wrs(mlx5dv_qp_ex*, std::uint64_t) { return refuse(); }

}  // extern "C"
