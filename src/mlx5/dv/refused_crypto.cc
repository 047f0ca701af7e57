// mlx5dv: crypto logins and keys. Declared, exported and refused: the man pages' way of saying "not on this device".

#include "mlx5/dv/refuse.h"

using namespace verbena::mlx5;

extern "C" {

VERBENA_MLX5_EXPORT int mlx5dv_crypto_login(ibv_context*, mlx5dv_crypto_login_attr*) { return refuse(); }
VERBENA_MLX5_EXPORT mlx5dv_crypto_login_obj* mlx5dv_crypto_login_create(ibv_context*, mlx5dv_crypto_login_attr_ex*) {
  return refuse_null();
}
VERBENA_MLX5_EXPORT int mlx5dv_crypto_login_destroy(mlx5dv_crypto_login_obj*) { return refuse(); }
VERBENA_MLX5_EXPORT int mlx5dv_crypto_login_query(mlx5dv_crypto_login_obj*, mlx5dv_crypto_login_query_attr*) {
  return refuse();
}
VERBENA_MLX5_EXPORT int mlx5dv_crypto_login_query_state(ibv_context*, mlx5dv_crypto_login_state*) { return refuse(); }
VERBENA_MLX5_EXPORT int mlx5dv_crypto_logout(ibv_context*) { return refuse(); }
VERBENA_MLX5_EXPORT mlx5dv_dek* mlx5dv_dek_create(ibv_context*, mlx5dv_dek_init_attr*) { return refuse_null(); }
VERBENA_MLX5_EXPORT int mlx5dv_dek_destroy(mlx5dv_dek*) { return refuse(); }
VERBENA_MLX5_EXPORT int mlx5dv_dek_query(mlx5dv_dek*, mlx5dv_dek_attr*) { return refuse(); }

}  // extern "C"
