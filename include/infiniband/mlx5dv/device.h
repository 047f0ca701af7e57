/* mlx5 direct verbs. The device: capabilities, opening it, clocks, ports, and what is reserved from it. */
#ifndef VERBENA_INFINIBAND_MLX5DV_DEVICE_H_
#define VERBENA_INFINIBAND_MLX5DV_DEVICE_H_

#include <infiniband/mlx5_api.h>
#include <infiniband/mlx5dv/base.h>

#ifdef __cplusplus
extern "C" {
#endif

enum mlx5dv_context_comp_mask {
  MLX5DV_CONTEXT_MASK_CQE_COMPRESION = 1 << 0,
  MLX5DV_CONTEXT_MASK_SWP = 1 << 1,
  MLX5DV_CONTEXT_MASK_STRIDING_RQ = 1 << 2,
  MLX5DV_CONTEXT_MASK_TUNNEL_OFFLOADS = 1 << 3,
  MLX5DV_CONTEXT_MASK_DYN_BFREGS = 1 << 4,
  MLX5DV_CONTEXT_MASK_CLOCK_INFO_UPDATE = 1 << 5,
  MLX5DV_CONTEXT_MASK_FLOW_ACTION_FLAGS = 1 << 6,
  MLX5DV_CONTEXT_MASK_DC_ODP_CAPS = 1 << 7,
  MLX5DV_CONTEXT_MASK_HCA_CORE_CLOCK = 1 << 8,
  MLX5DV_CONTEXT_MASK_NUM_LAG_PORTS = 1 << 9,
  MLX5DV_CONTEXT_MASK_SIGNATURE_OFFLOAD = 1 << 10,
  MLX5DV_CONTEXT_MASK_DCI_STREAMS = 1 << 11,
  MLX5DV_CONTEXT_MASK_WR_MEMCPY_LENGTH = 1 << 12,
  MLX5DV_CONTEXT_MASK_CRYPTO_OFFLOAD = 1 << 13,
  MLX5DV_CONTEXT_MASK_MAX_DC_RD_ATOM = 1 << 14,
  MLX5DV_CONTEXT_MASK_REG_C0 = 1 << 15,
  MLX5DV_CONTEXT_MASK_OOO_RECV_WRS = 1 << 16,
};

struct mlx5dv_cqe_comp_caps {
  uint32_t max_num;
  uint32_t supported_format;
};

struct mlx5dv_sw_parsing_caps {
  uint32_t sw_parsing_offloads;
  uint32_t supported_qpts;
};

struct mlx5dv_striding_rq_caps {
  uint32_t min_single_stride_log_num_of_bytes;
  uint32_t max_single_stride_log_num_of_bytes;
  uint32_t min_single_wqe_log_num_of_strides;
  uint32_t max_single_wqe_log_num_of_strides;
  uint32_t supported_qpts;
};

struct mlx5dv_dci_streams_caps {
  uint8_t max_log_num_concurent;
  uint8_t max_log_num_errored;
};

enum mlx5dv_tunnel_offloads {
  MLX5DV_RAW_PACKET_CAP_TUNNELED_OFFLOAD_VXLAN = 1 << 0,
  MLX5DV_RAW_PACKET_CAP_TUNNELED_OFFLOAD_GRE = 1 << 1,
  MLX5DV_RAW_PACKET_CAP_TUNNELED_OFFLOAD_GENEVE = 1 << 2,
  MLX5DV_RAW_PACKET_CAP_TUNNELED_OFFLOAD_CW_MPLS_OVER_GRE = 1 << 3,
  MLX5DV_RAW_PACKET_CAP_TUNNELED_OFFLOAD_CW_MPLS_OVER_UDP = 1 << 4,
};

enum mlx5dv_flow_action_cap_flags {
  MLX5DV_FLOW_ACTION_FLAGS_ESP_AES_GCM = 1 << 0,
  MLX5DV_FLOW_ACTION_FLAGS_ESP_AES_GCM_REQ_METADATA = 1 << 1,
  MLX5DV_FLOW_ACTION_FLAGS_ESP_AES_GCM_SPI_STEERING = 1 << 2,
  MLX5DV_FLOW_ACTION_FLAGS_ESP_AES_GCM_FULL_OFFLOAD = 1 << 3,
  MLX5DV_FLOW_ACTION_FLAGS_ESP_AES_GCM_TX_IV_IS_ESN = 1 << 4,
};

enum mlx5dv_sig_type {
  MLX5DV_SIG_TYPE_T10DIF,
  MLX5DV_SIG_TYPE_CRC,
};

enum mlx5dv_sig_prot_caps {
  MLX5DV_SIG_PROT_CAP_T10DIF = 1 << MLX5DV_SIG_TYPE_T10DIF,
  MLX5DV_SIG_PROT_CAP_CRC = 1 << MLX5DV_SIG_TYPE_CRC,
};

enum mlx5dv_sig_t10dif_bg_type {
  MLX5DV_SIG_T10DIF_CRC,
  MLX5DV_SIG_T10DIF_CSUM,
};

enum mlx5dv_sig_t10dif_bg_caps {
  MLX5DV_SIG_T10DIF_BG_CAP_CRC = 1 << MLX5DV_SIG_T10DIF_CRC,
  MLX5DV_SIG_T10DIF_BG_CAP_CSUM = 1 << MLX5DV_SIG_T10DIF_CSUM,
};

enum mlx5dv_sig_crc_type {
  MLX5DV_SIG_CRC_TYPE_CRC32,
  MLX5DV_SIG_CRC_TYPE_CRC32C,
  MLX5DV_SIG_CRC_TYPE_CRC64_XP10,
};

enum mlx5dv_sig_crc_type_caps {
  MLX5DV_SIG_CRC_TYPE_CAP_CRC32 = 1 << MLX5DV_SIG_CRC_TYPE_CRC32,
  MLX5DV_SIG_CRC_TYPE_CAP_CRC32C = 1 << MLX5DV_SIG_CRC_TYPE_CRC32C,
  MLX5DV_SIG_CRC_TYPE_CAP_CRC64_XP10 = 1 << MLX5DV_SIG_CRC_TYPE_CRC64_XP10,
};

enum mlx5dv_block_size {
  MLX5DV_BLOCK_SIZE_512,
  MLX5DV_BLOCK_SIZE_520,
  MLX5DV_BLOCK_SIZE_4048,
  MLX5DV_BLOCK_SIZE_4096,
  MLX5DV_BLOCK_SIZE_4160,
};

enum mlx5dv_block_size_caps {
  MLX5DV_BLOCK_SIZE_CAP_512 = 1 << MLX5DV_BLOCK_SIZE_512,
  MLX5DV_BLOCK_SIZE_CAP_520 = 1 << MLX5DV_BLOCK_SIZE_520,
  MLX5DV_BLOCK_SIZE_CAP_4048 = 1 << MLX5DV_BLOCK_SIZE_4048,
  MLX5DV_BLOCK_SIZE_CAP_4096 = 1 << MLX5DV_BLOCK_SIZE_4096,
  MLX5DV_BLOCK_SIZE_CAP_4160 = 1 << MLX5DV_BLOCK_SIZE_4160,
};

struct mlx5dv_sig_caps {
  uint64_t block_size;
  uint32_t block_prot;
  uint16_t t10dif_bg;
  uint16_t crc_type;
};

enum mlx5dv_crypto_engines_caps {
  MLX5DV_CRYPTO_ENGINES_CAP_AES_XTS = 1 << 0,
  MLX5DV_CRYPTO_ENGINES_CAP_AES_XTS_SINGLE_BLOCK = 1 << 1,
  MLX5DV_CRYPTO_ENGINES_CAP_AES_XTS_MULTI_BLOCK = 1 << 2,
};

enum mlx5dv_crypto_wrapped_import_method_caps {
  MLX5DV_CRYPTO_WRAPPED_IMPORT_METHOD_CAP_AES_XTS = 1 << 0,
};

enum mlx5dv_crypto_caps_flags {
  MLX5DV_CRYPTO_CAPS_CRYPTO = 1 << 0,
  MLX5DV_CRYPTO_CAPS_WRAPPED_CRYPTO_OPERATIONAL = 1 << 1,
  MLX5DV_CRYPTO_CAPS_WRAPPED_CRYPTO_GOING_TO_COMMISSIONING = 1 << 2,
};

struct mlx5dv_crypto_caps {
  uint16_t failed_selftests;
  uint8_t crypto_engines;
  uint8_t wrapped_import_method;
  uint8_t log_max_num_deks;
  uint32_t flags;
};

struct mlx5dv_ooo_recv_wrs_caps {
  uint32_t max_rc;
  uint32_t max_xrc;
  uint32_t max_dct;
  uint32_t max_ud;
  uint32_t max_uc;
};

struct mlx5dv_context {
  uint8_t version;
  uint64_t flags;
  uint64_t comp_mask;
  struct mlx5dv_cqe_comp_caps cqe_comp_caps;
  struct mlx5dv_sw_parsing_caps sw_parsing_caps;
  struct mlx5dv_striding_rq_caps striding_rq_caps;
  uint32_t tunnel_offloads_caps;
  uint32_t max_dynamic_bfregs;
  uint64_t max_clock_info_update_nsec;
  uint32_t flow_action_flags;
  uint32_t dc_odp_caps;
  void* hca_core_clock;
  uint8_t num_lag_ports;
  struct mlx5dv_sig_caps sig_caps;
  struct mlx5dv_dci_streams_caps dci_streams_caps;
  size_t max_wr_memcpy_length;
  struct mlx5dv_crypto_caps crypto_caps;
  uint64_t max_dc_rd_atom;
  uint64_t max_dc_init_rd_atom;
  struct mlx5dv_reg reg_c0;
  struct mlx5dv_ooo_recv_wrs_caps ooo_recv_wrs_caps;
};

enum mlx5dv_context_flags {
  MLX5DV_CONTEXT_FLAGS_CQE_V1 = (1 << 0),
  MLX5DV_CONTEXT_FLAGS_OBSOLETE = (1 << 1),
  MLX5DV_CONTEXT_FLAGS_MPW_ALLOWED = (1 << 2),
  MLX5DV_CONTEXT_FLAGS_ENHANCED_MPW = (1 << 3),
  MLX5DV_CONTEXT_FLAGS_CQE_128B_COMP = (1 << 4),
  MLX5DV_CONTEXT_FLAGS_CQE_128B_PAD = (1 << 5),
  MLX5DV_CONTEXT_FLAGS_PACKET_BASED_CREDIT_MODE = (1 << 6),
  MLX5DV_CONTEXT_FLAGS_REAL_TIME_TS = (1 << 7),
  MLX5DV_CONTEXT_FLAGS_BLUEFLAME = (1 << 8),
};

int mlx5dv_query_device(struct ibv_context* ctx_in, struct mlx5dv_context* attrs_out);

bool mlx5dv_is_supported(struct ibv_device* device);

enum mlx5dv_context_attr_flags {
  MLX5DV_CONTEXT_FLAGS_DEVX = 1 << 0,
};

enum mlx5dv_context_attr_comp_mask {
  MLX5DV_CONTEXT_ATTR_MASK_FD_ARRAY = 1 << 0,
};

struct mlx5dv_context_attr {
  uint32_t flags;
  uint64_t comp_mask;
  struct ibv_fd_arr* fds;
};

struct ibv_context* mlx5dv_open_device(struct ibv_device* device, struct mlx5dv_context_attr* attr);

enum mlx5dv_vfio_context_attr_flags {
  MLX5DV_VFIO_CTX_FLAGS_INIT_LINK_DOWN = 1 << 0,
};

struct mlx5dv_vfio_context_attr {
  const char* pci_name;
  uint32_t flags;
  uint64_t comp_mask;
};

struct ibv_device** mlx5dv_get_vfio_device_list(struct mlx5dv_vfio_context_attr* attr);

int mlx5dv_vfio_get_events_fd(struct ibv_context* ibctx);

int mlx5dv_vfio_process_events(struct ibv_context* context);

enum mlx5dv_set_ctx_attr_type {
  MLX5DV_CTX_ATTR_BUF_ALLOCATORS = 1,
};

enum {
  MLX5_MMAP_GET_REGULAR_PAGES_CMD = 0,
  MLX5_MMAP_GET_NC_PAGES_CMD = 3,
};

struct mlx5dv_ctx_allocators {
  void* (*alloc)(size_t size, void* priv_data);
  void (*free)(void* ptr, void* priv_data);
  void* data;
};

int mlx5dv_set_context_attr(struct ibv_context* context, enum mlx5dv_set_ctx_attr_type type, void* attr);

struct mlx5dv_clock_info {
  uint64_t nsec;
  uint64_t last_cycles;
  uint64_t frac;
  uint32_t mult;
  uint32_t shift;
  uint64_t mask;
};

int mlx5dv_get_clock_info(struct ibv_context* context, struct mlx5dv_clock_info* clock_info);

/* Device timestamp -> nanoseconds of the clock the page describes. A timestamp up to half the counter's range older
 * than the page is taken as the past, everything else as the future. */
static inline uint64_t mlx5dv_ts_to_ns(struct mlx5dv_clock_info* clock_info, uint64_t device_timestamp) {
  const uint64_t ahead = (device_timestamp - clock_info->last_cycles) & clock_info->mask;

  if (ahead <= clock_info->mask / 2)
    return clock_info->nsec + ((ahead * clock_info->mult + clock_info->frac) >> clock_info->shift);

  const uint64_t behind = (clock_info->last_cycles - device_timestamp) & clock_info->mask;

  return clock_info->nsec - ((behind * clock_info->mult - clock_info->frac) >> clock_info->shift);
}

int _mlx5dv_query_port(struct ibv_context* context, uint32_t port_num, struct mlx5dv_port* info, size_t info_len);

/* Port facts that the port query of verbs does not have; info_len is the size of the caller's struct. */
static inline int mlx5dv_query_port(struct ibv_context* context, uint32_t port_num, struct mlx5dv_port* info) {
  return _mlx5dv_query_port(context, port_num, info, sizeof(*info));
}

struct mlx5dv_pp {
  uint16_t index;
};

struct mlx5dv_pp* mlx5dv_pp_alloc(struct ibv_context* context, size_t pp_context_sz, const void* pp_context,
                                  uint32_t flags);

void mlx5dv_pp_free(struct mlx5dv_pp* pp);

int mlx5dv_get_data_direct_sysfs_path(struct ibv_context* context, char* buf, size_t buf_len);

#ifdef __cplusplus
}
#endif

#endif
