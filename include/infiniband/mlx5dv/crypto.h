/* mlx5 direct verbs. Crypto: logging in, and data encryption keys. */
#ifndef VERBENA_INFINIBAND_MLX5DV_CRYPTO_H_
#define VERBENA_INFINIBAND_MLX5DV_CRYPTO_H_

#include <infiniband/mlx5dv/base.h>

#ifdef __cplusplus
extern "C" {
#endif

struct mlx5dv_crypto_login_obj;

struct mlx5dv_crypto_login_attr {
  uint32_t credential_id;
  uint32_t import_kek_id;
  char credential[48];
  uint64_t comp_mask;
};

struct mlx5dv_crypto_login_attr_ex {
  uint32_t credential_id;
  uint32_t import_kek_id;
  const void* credential;
  size_t credential_len;
  uint64_t comp_mask;
};

enum mlx5dv_crypto_login_state {
  MLX5DV_CRYPTO_LOGIN_STATE_VALID,
  MLX5DV_CRYPTO_LOGIN_STATE_NO_LOGIN,
  MLX5DV_CRYPTO_LOGIN_STATE_INVALID,
};

struct mlx5dv_crypto_login_query_attr {
  enum mlx5dv_crypto_login_state state;
  uint64_t comp_mask;
};

int mlx5dv_crypto_login(struct ibv_context* context, struct mlx5dv_crypto_login_attr* login_attr);

int mlx5dv_crypto_login_query_state(struct ibv_context* context, enum mlx5dv_crypto_login_state* state);

int mlx5dv_crypto_logout(struct ibv_context* context);

struct mlx5dv_crypto_login_obj* mlx5dv_crypto_login_create(struct ibv_context* context,
                                                           struct mlx5dv_crypto_login_attr_ex* login_attr);

int mlx5dv_crypto_login_query(struct mlx5dv_crypto_login_obj* crypto_login,
                              struct mlx5dv_crypto_login_query_attr* query_attr);

int mlx5dv_crypto_login_destroy(struct mlx5dv_crypto_login_obj* crypto_login);

enum mlx5dv_crypto_key_size {
  MLX5DV_CRYPTO_KEY_SIZE_128,
  MLX5DV_CRYPTO_KEY_SIZE_256,
};

enum mlx5dv_crypto_key_purpose {
  MLX5DV_CRYPTO_KEY_PURPOSE_AES_XTS,
};

enum mlx5dv_dek_state {
  MLX5DV_DEK_STATE_READY,
  MLX5DV_DEK_STATE_ERROR,
};

enum mlx5dv_dek_init_attr_mask {
  MLX5DV_DEK_INIT_ATTR_CRYPTO_LOGIN = 1 << 0,
};

struct mlx5dv_dek_init_attr {
  enum mlx5dv_crypto_key_size key_size;
  bool has_keytag;
  enum mlx5dv_crypto_key_purpose key_purpose;
  struct ibv_pd* pd;
  char opaque[8];
  char key[128];
  uint64_t comp_mask;
  struct mlx5dv_crypto_login_obj* crypto_login;
};

struct mlx5dv_dek_attr {
  enum mlx5dv_dek_state state;
  char opaque[8];
  uint64_t comp_mask;
};

struct mlx5dv_dek;

struct mlx5dv_dek* mlx5dv_dek_create(struct ibv_context* context, struct mlx5dv_dek_init_attr* init_attr);

int mlx5dv_dek_query(struct mlx5dv_dek* dek, struct mlx5dv_dek_attr* attr);

int mlx5dv_dek_destroy(struct mlx5dv_dek* dek);

#ifdef __cplusplus
}
#endif

#endif
