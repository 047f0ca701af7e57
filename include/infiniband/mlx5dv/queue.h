/* mlx5 direct verbs. Queues with vendor properties: CQ, QP, WQ; and changes to a live QP. */
#ifndef VERBENA_INFINIBAND_MLX5DV_QUEUE_H_
#define VERBENA_INFINIBAND_MLX5DV_QUEUE_H_

#include <infiniband/mlx5dv/base.h>
#include <infiniband/mlx5dv/cqe.h>

#ifdef __cplusplus
extern "C" {
#endif

enum mlx5dv_cq_init_attr_mask {
  MLX5DV_CQ_INIT_ATTR_MASK_COMPRESSED_CQE = 1 << 0,
  MLX5DV_CQ_INIT_ATTR_MASK_FLAGS = 1 << 1,
  MLX5DV_CQ_INIT_ATTR_MASK_CQE_SIZE = 1 << 2,
};

enum mlx5dv_cq_init_attr_flags {
  MLX5DV_CQ_INIT_ATTR_FLAGS_CQE_PAD = 1 << 0,
  MLX5DV_CQ_INIT_ATTR_FLAGS_RESERVED = 1 << 1,
};

struct mlx5dv_cq_init_attr {
  uint64_t comp_mask;
  uint8_t cqe_comp_res_format;
  uint32_t flags;
  uint16_t cqe_size;
};

struct ibv_cq_ex* mlx5dv_create_cq(struct ibv_context* context, struct ibv_cq_init_attr_ex* cq_attr,
                                   struct mlx5dv_cq_init_attr* mlx5_cq_attr);

enum mlx5dv_qp_create_flags {
  MLX5DV_QP_CREATE_TUNNEL_OFFLOADS = 1 << 0,
  MLX5DV_QP_CREATE_TIR_ALLOW_SELF_LOOPBACK_UC = 1 << 1,
  MLX5DV_QP_CREATE_TIR_ALLOW_SELF_LOOPBACK_MC = 1 << 2,
  MLX5DV_QP_CREATE_DISABLE_SCATTER_TO_CQE = 1 << 3,
  MLX5DV_QP_CREATE_ALLOW_SCATTER_TO_CQE = 1 << 4,
  MLX5DV_QP_CREATE_PACKET_BASED_CREDIT_MODE = 1 << 5,
  MLX5DV_QP_CREATE_SIG_PIPELINING = 1 << 6,
  MLX5DV_QP_CREATE_OOO_DP = 1 << 7,
};

enum mlx5dv_qp_init_attr_mask {
  MLX5DV_QP_INIT_ATTR_MASK_QP_CREATE_FLAGS = 1 << 0,
  MLX5DV_QP_INIT_ATTR_MASK_DC = 1 << 1,
  MLX5DV_QP_INIT_ATTR_MASK_SEND_OPS_FLAGS = 1 << 2,
  MLX5DV_QP_INIT_ATTR_MASK_DCI_STREAMS = 1 << 3,
};

enum mlx5dv_dc_type {
  MLX5DV_DCTYPE_DCT = 1,
  MLX5DV_DCTYPE_DCI,
};

struct mlx5dv_dci_streams {
  uint8_t log_num_concurent;
  uint8_t log_num_errored;
};

struct mlx5dv_dc_init_attr {
  enum mlx5dv_dc_type dc_type;
  union {
    uint64_t dct_access_key;
    struct mlx5dv_dci_streams dci_streams;
  };
};

enum mlx5dv_qp_create_send_ops_flags {
  MLX5DV_QP_EX_WITH_MR_INTERLEAVED = 1 << 0,
  MLX5DV_QP_EX_WITH_MR_LIST = 1 << 1,
  MLX5DV_QP_EX_WITH_MKEY_CONFIGURE = 1 << 2,
  MLX5DV_QP_EX_WITH_RAW_WQE = 1 << 3,
  MLX5DV_QP_EX_WITH_MEMCPY = 1 << 4,
};

struct mlx5dv_qp_init_attr {
  uint64_t comp_mask;
  uint32_t create_flags;
  struct mlx5dv_dc_init_attr dc_init_attr;
  uint64_t send_ops_flags;
};

struct ibv_qp* mlx5dv_create_qp(struct ibv_context* context, struct ibv_qp_init_attr_ex* qp_attr,
                                struct mlx5dv_qp_init_attr* mlx5_qp_attr);

enum mlx5dv_wq_init_attr_mask {
  MLX5DV_WQ_INIT_ATTR_MASK_STRIDING_RQ = 1 << 0,
};

struct mlx5dv_striding_rq_init_attr {
  uint32_t single_stride_log_num_of_bytes;
  uint32_t single_wqe_log_num_of_strides;
  uint8_t two_byte_shift_en;
};

struct mlx5dv_wq_init_attr {
  uint64_t comp_mask;
  struct mlx5dv_striding_rq_init_attr striding_rq_attrs;
};

struct ibv_wq* mlx5dv_create_wq(struct ibv_context* context, struct ibv_wq_init_attr* wq_init_attr,
                                struct mlx5dv_wq_init_attr* mlx5_wq_attr);

int mlx5dv_map_ah_to_qp(struct ibv_ah* ah, uint32_t qp_num);

int mlx5dv_query_qp_lag_port(struct ibv_qp* qp, uint8_t* port_num, uint8_t* active_port_num);

int mlx5dv_modify_qp_lag_port(struct ibv_qp* qp, uint8_t port_num);

int mlx5dv_modify_qp_udp_sport(struct ibv_qp* qp, uint16_t udp_sport);

int mlx5dv_dci_stream_id_reset(struct ibv_qp* qp, uint16_t stream_id);

enum mlx5dv_sched_elem_attr_flags {
  MLX5DV_SCHED_ELEM_ATTR_FLAGS_BW_SHARE = 1 << 0,
  MLX5DV_SCHED_ELEM_ATTR_FLAGS_MAX_AVG_BW = 1 << 1,
};

struct mlx5dv_sched_attr {
  struct mlx5dv_sched_node* parent;
  uint32_t flags;
  uint32_t bw_share;
  uint32_t max_avg_bw;
  uint64_t comp_mask;
};

struct mlx5dv_sched_node;

struct mlx5dv_sched_leaf;

struct mlx5dv_sched_node* mlx5dv_sched_node_create(struct ibv_context* context,
                                                   const struct mlx5dv_sched_attr* sched_attr);

struct mlx5dv_sched_leaf* mlx5dv_sched_leaf_create(struct ibv_context* context,
                                                   const struct mlx5dv_sched_attr* sched_attr);

int mlx5dv_sched_node_modify(struct mlx5dv_sched_node* node, const struct mlx5dv_sched_attr* sched_attr);

int mlx5dv_sched_leaf_modify(struct mlx5dv_sched_leaf* leaf, const struct mlx5dv_sched_attr* sched_attr);

int mlx5dv_sched_node_destroy(struct mlx5dv_sched_node* node);

int mlx5dv_sched_leaf_destroy(struct mlx5dv_sched_leaf* leaf);

int mlx5dv_modify_qp_sched_elem(struct ibv_qp* qp, const struct mlx5dv_sched_leaf* requestor,
                                const struct mlx5dv_sched_leaf* responder);

int mlx5dv_reserved_qpn_alloc(struct ibv_context* ctx, uint32_t* qpn);

int mlx5dv_reserved_qpn_dealloc(struct ibv_context* ctx, uint32_t qpn);

#ifdef __cplusplus
}
#endif

#endif
