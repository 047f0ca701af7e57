/* mlx5 direct verbs. Memory keys and the vendor work-request builders. */
#ifndef VERBENA_INFINIBAND_MLX5DV_WR_H_
#define VERBENA_INFINIBAND_MLX5DV_WR_H_

#include <infiniband/mlx5dv/base.h>
#include <infiniband/mlx5dv/device.h>

#ifdef __cplusplus
extern "C" {
#endif

enum mlx5dv_mkey_init_attr_flags {
  MLX5DV_MKEY_INIT_ATTR_FLAGS_INDIRECT = 1 << 0,
  MLX5DV_MKEY_INIT_ATTR_FLAGS_BLOCK_SIGNATURE = 1 << 1,
  MLX5DV_MKEY_INIT_ATTR_FLAGS_CRYPTO = 1 << 2,
  MLX5DV_MKEY_INIT_ATTR_FLAGS_UPDATE_TAG = 1 << 3,
  MLX5DV_MKEY_INIT_ATTR_FLAGS_REMOTE_INVALIDATE = 1 << 4,
};

struct mlx5dv_mkey_init_attr {
  struct ibv_pd* pd;
  uint32_t create_flags;
  uint16_t max_entries;
};

struct mlx5dv_mkey {
  uint32_t lkey;
  uint32_t rkey;
};

struct mlx5dv_mkey* mlx5dv_create_mkey(struct mlx5dv_mkey_init_attr* mkey_init_attr);

int mlx5dv_destroy_mkey(struct mlx5dv_mkey* mkey);

struct mlx5dv_mr_interleaved {
  uint64_t addr;
  uint32_t bytes_count;
  uint32_t bytes_skip;
  uint32_t lkey;
};

enum mlx5dv_sig_t10dif_flags {
  MLX5DV_SIG_T10DIF_FLAG_REF_REMAP = 1 << 0,
  MLX5DV_SIG_T10DIF_FLAG_APP_ESCAPE = 1 << 1,
  MLX5DV_SIG_T10DIF_FLAG_APP_REF_ESCAPE = 1 << 2,
};

struct mlx5dv_sig_t10dif {
  enum mlx5dv_sig_t10dif_bg_type bg_type;
  uint16_t bg;
  uint16_t app_tag;
  uint32_t ref_tag;
  uint16_t flags;
};

struct mlx5dv_sig_crc {
  enum mlx5dv_sig_crc_type type;
  uint64_t seed;
};

struct mlx5dv_sig_block_domain {
  enum mlx5dv_sig_type sig_type;
  union {
    const struct mlx5dv_sig_t10dif* dif;
    const struct mlx5dv_sig_crc* crc;
  } sig;
  enum mlx5dv_block_size block_size;
  uint64_t comp_mask;
};

enum mlx5dv_sig_mask {
  MLX5DV_SIG_MASK_T10DIF_GUARD = 0xc0,
  MLX5DV_SIG_MASK_T10DIF_APPTAG = 0x30,
  MLX5DV_SIG_MASK_T10DIF_REFTAG = 0x0f,
  MLX5DV_SIG_MASK_CRC32 = 0xf0,
  MLX5DV_SIG_MASK_CRC32C = MLX5DV_SIG_MASK_CRC32,
  MLX5DV_SIG_MASK_CRC64_XP10 = 0xff,
};

enum mlx5dv_sig_block_attr_flags {
  MLX5DV_SIG_BLOCK_ATTR_FLAG_COPY_MASK = 1 << 0,
};

struct mlx5dv_sig_block_attr {
  const struct mlx5dv_sig_block_domain* mem;
  const struct mlx5dv_sig_block_domain* wire;
  uint32_t flags;
  uint8_t check_mask;
  uint8_t copy_mask;
  uint64_t comp_mask;
};

struct mlx5dv_dek;

enum mlx5dv_crypto_standard {
  MLX5DV_CRYPTO_STANDARD_AES_XTS,
};

enum mlx5dv_signature_crypto_order {
  MLX5DV_SIGNATURE_CRYPTO_ORDER_SIGNATURE_AFTER_CRYPTO_ON_TX,
  MLX5DV_SIGNATURE_CRYPTO_ORDER_SIGNATURE_BEFORE_CRYPTO_ON_TX,
};

struct mlx5dv_crypto_attr {
  enum mlx5dv_crypto_standard crypto_standard;
  bool encrypt_on_tx;
  enum mlx5dv_signature_crypto_order signature_crypto_order;
  enum mlx5dv_block_size data_unit_size;
  char initial_tweak[16];
  struct mlx5dv_dek* dek;
  char keytag[8];
  uint64_t comp_mask;
};

enum mlx5dv_mkey_conf_flags {
  MLX5DV_MKEY_CONF_FLAG_RESET_SIG_ATTR = 1 << 0,
};

struct mlx5dv_mkey_conf_attr {
  uint32_t conf_flags;
  uint64_t comp_mask;
};

enum mlx5dv_wc_opcode {
  MLX5DV_WC_UMR = IBV_WC_DRIVER1,
  MLX5DV_WC_RAW_WQE = IBV_WC_DRIVER2,
  MLX5DV_WC_MEMCPY = IBV_WC_DRIVER3,
};

struct mlx5dv_qp_ex {
  uint64_t comp_mask;
  void (*wr_set_dc_addr)(struct mlx5dv_qp_ex* mqp, struct ibv_ah* ah, uint32_t remote_dctn, uint64_t remote_dc_key);
  void (*wr_mr_interleaved)(struct mlx5dv_qp_ex* mqp, struct mlx5dv_mkey* mkey, uint32_t access_flags,
                            uint32_t repeat_count, uint16_t num_interleaved, struct mlx5dv_mr_interleaved* data);
  void (*wr_mr_list)(struct mlx5dv_qp_ex* mqp, struct mlx5dv_mkey* mkey, uint32_t access_flags, uint16_t num_sges,
                     struct ibv_sge* sge);
  void (*wr_mkey_configure)(struct mlx5dv_qp_ex* mqp, struct mlx5dv_mkey* mkey, uint8_t num_setters,
                            struct mlx5dv_mkey_conf_attr* attr);
  void (*wr_set_mkey_access_flags)(struct mlx5dv_qp_ex* mqp, uint32_t access_flags);
  void (*wr_set_mkey_layout_list)(struct mlx5dv_qp_ex* mqp, uint16_t num_sges, const struct ibv_sge* sge);
  void (*wr_set_mkey_layout_interleaved)(struct mlx5dv_qp_ex* mqp, uint32_t repeat_count, uint16_t num_interleaved,
                                         const struct mlx5dv_mr_interleaved* data);
  void (*wr_set_mkey_sig_block)(struct mlx5dv_qp_ex* mqp, const struct mlx5dv_sig_block_attr* attr);
  void (*wr_raw_wqe)(struct mlx5dv_qp_ex* mqp, const void* wqe);
  void (*wr_set_dc_addr_stream)(struct mlx5dv_qp_ex* mqp, struct ibv_ah* ah, uint32_t remote_dctn,
                                uint64_t remote_dc_key, uint16_t stream_id);
  void (*wr_memcpy)(struct mlx5dv_qp_ex* mqp, uint32_t dest_lkey, uint64_t dest_addr, uint32_t src_lkey,
                    uint64_t src_addr, size_t length);
  void (*wr_set_mkey_crypto)(struct mlx5dv_qp_ex* mqp, const struct mlx5dv_crypto_attr* attr);
};

struct mlx5dv_qp_ex* mlx5dv_qp_ex_from_ibv_qp_ex(struct ibv_qp_ex* qp);

/* The builders below call through the table of the QP; use them between ibv_wr_start() and ibv_wr_complete(). */
static inline void mlx5dv_wr_set_dc_addr(struct mlx5dv_qp_ex* mqp, struct ibv_ah* ah, uint32_t remote_dctn,
                                         uint64_t remote_dc_key) {
  mqp->wr_set_dc_addr(mqp, ah, remote_dctn, remote_dc_key);
}

static inline void mlx5dv_wr_set_dc_addr_stream(struct mlx5dv_qp_ex* mqp, struct ibv_ah* ah, uint32_t remote_dctn,
                                                uint64_t remote_dc_key, uint16_t stream_id) {
  mqp->wr_set_dc_addr_stream(mqp, ah, remote_dctn, remote_dc_key, stream_id);
}

static inline void mlx5dv_wr_mr_interleaved(struct mlx5dv_qp_ex* mqp, struct mlx5dv_mkey* mkey, uint32_t access_flags,
                                            uint32_t repeat_count, uint16_t num_interleaved,
                                            struct mlx5dv_mr_interleaved* data) {
  mqp->wr_mr_interleaved(mqp, mkey, access_flags, repeat_count, num_interleaved, data);
}

static inline void mlx5dv_wr_mr_list(struct mlx5dv_qp_ex* mqp, struct mlx5dv_mkey* mkey, uint32_t access_flags,
                                     uint16_t num_sges, struct ibv_sge* sge) {
  mqp->wr_mr_list(mqp, mkey, access_flags, num_sges, sge);
}

static inline void mlx5dv_wr_mkey_configure(struct mlx5dv_qp_ex* mqp, struct mlx5dv_mkey* mkey, uint8_t num_setters,
                                            struct mlx5dv_mkey_conf_attr* attr) {
  mqp->wr_mkey_configure(mqp, mkey, num_setters, attr);
}

static inline void mlx5dv_wr_set_mkey_access_flags(struct mlx5dv_qp_ex* mqp, uint32_t access_flags) {
  mqp->wr_set_mkey_access_flags(mqp, access_flags);
}

static inline void mlx5dv_wr_set_mkey_layout_list(struct mlx5dv_qp_ex* mqp, uint16_t num_sges,
                                                  const struct ibv_sge* sge) {
  mqp->wr_set_mkey_layout_list(mqp, num_sges, sge);
}

static inline void mlx5dv_wr_set_mkey_layout_interleaved(struct mlx5dv_qp_ex* mqp, uint32_t repeat_count,
                                                         uint16_t num_interleaved,
                                                         const struct mlx5dv_mr_interleaved* data) {
  mqp->wr_set_mkey_layout_interleaved(mqp, repeat_count, num_interleaved, data);
}

static inline void mlx5dv_wr_set_mkey_sig_block(struct mlx5dv_qp_ex* mqp, const struct mlx5dv_sig_block_attr* attr) {
  mqp->wr_set_mkey_sig_block(mqp, attr);
}

static inline void mlx5dv_wr_set_mkey_crypto(struct mlx5dv_qp_ex* mqp, const struct mlx5dv_crypto_attr* attr) {
  mqp->wr_set_mkey_crypto(mqp, attr);
}

static inline void mlx5dv_wr_memcpy(struct mlx5dv_qp_ex* mqp, uint32_t dest_lkey, uint64_t dest_addr, uint32_t src_lkey,
                                    uint64_t src_addr, size_t length) {
  mqp->wr_memcpy(mqp, dest_lkey, dest_addr, src_lkey, src_addr, length);
}

static inline void mlx5dv_wr_raw_wqe(struct mlx5dv_qp_ex* mqp, const void* wqe) { mqp->wr_raw_wqe(mqp, wqe); }

enum mlx5dv_mkey_err_type {
  MLX5DV_MKEY_NO_ERR,
  MLX5DV_MKEY_SIG_BLOCK_BAD_GUARD,
  MLX5DV_MKEY_SIG_BLOCK_BAD_REFTAG,
  MLX5DV_MKEY_SIG_BLOCK_BAD_APPTAG,
};

struct mlx5dv_sig_err {
  uint64_t actual_value;
  uint64_t expected_value;
  uint64_t offset;
};

struct mlx5dv_mkey_err {
  enum mlx5dv_mkey_err_type err_type;
  union {
    struct mlx5dv_sig_err sig;
  } err;
};

int _mlx5dv_mkey_check(struct mlx5dv_mkey* mkey, struct mlx5dv_mkey_err* err_info, size_t err_info_size);

/* Takes the error of a signature key, if there is one, and clears it. */
static inline int mlx5dv_mkey_check(struct mlx5dv_mkey* mkey, struct mlx5dv_mkey_err* err_info) {
  return _mlx5dv_mkey_check(mkey, err_info, sizeof(*err_info));
}

int mlx5dv_qp_cancel_posted_send_wrs(struct mlx5dv_qp_ex* mqp, uint64_t wr_id);

#ifdef __cplusplus
}
#endif

#endif
