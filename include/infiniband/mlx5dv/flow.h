/* mlx5 direct verbs. Flow steering in the tables the kernel owns. */
#ifndef VERBENA_INFINIBAND_MLX5DV_FLOW_H_
#define VERBENA_INFINIBAND_MLX5DV_FLOW_H_

#include <infiniband/mlx5_api.h>
#include <infiniband/mlx5dv/base.h>

#ifdef __cplusplus
extern "C" {
#endif

struct mlx5dv_devx_obj;

enum mlx5dv_flow_action_esp_mask {
  MLX5DV_FLOW_ACTION_ESP_MASK_FLAGS = 1 << 0,
};

struct mlx5dv_flow_action_esp {
  uint64_t comp_mask;
  uint32_t action_flags;
};

struct mlx5dv_flow_match_parameters {
  size_t match_sz;
  uint64_t match_buf[];
};

enum mlx5dv_flow_matcher_attr_mask {
  MLX5DV_FLOW_MATCHER_MASK_FT_TYPE = 1 << 0,
  MLX5DV_FLOW_MATCHER_MASK_IB_PORT = 1 << 1,
};

struct mlx5dv_flow_matcher_attr {
  enum ibv_flow_attr_type type;
  uint32_t flags;
  uint16_t priority;
  uint8_t match_criteria_enable;
  struct mlx5dv_flow_match_parameters* match_mask;
  uint64_t comp_mask;
  enum mlx5dv_flow_table_type ft_type;
  uint32_t ib_port;
};

struct mlx5dv_flow_matcher;

struct mlx5dv_flow_matcher* mlx5dv_create_flow_matcher(struct ibv_context* context,
                                                       struct mlx5dv_flow_matcher_attr* matcher_attr);

int mlx5dv_destroy_flow_matcher(struct mlx5dv_flow_matcher* matcher);

struct mlx5dv_steering_anchor_attr {
  enum mlx5dv_flow_table_type ft_type;
  uint16_t priority;
  uint64_t comp_mask;
};

struct mlx5dv_steering_anchor {
  uint32_t id;
};

struct mlx5dv_steering_anchor* mlx5dv_create_steering_anchor(struct ibv_context* context,
                                                             struct mlx5dv_steering_anchor_attr* attr);

int mlx5dv_destroy_steering_anchor(struct mlx5dv_steering_anchor* sa);

enum mlx5dv_flow_action_type {
  MLX5DV_FLOW_ACTION_DEST_IBV_QP,
  MLX5DV_FLOW_ACTION_DROP,
  MLX5DV_FLOW_ACTION_IBV_COUNTER,
  MLX5DV_FLOW_ACTION_IBV_FLOW_ACTION,
  MLX5DV_FLOW_ACTION_TAG,
  MLX5DV_FLOW_ACTION_DEST_DEVX,
  MLX5DV_FLOW_ACTION_COUNTERS_DEVX,
  MLX5DV_FLOW_ACTION_DEFAULT_MISS,
  MLX5DV_FLOW_ACTION_COUNTERS_DEVX_WITH_OFFSET,
};

struct mlx5dv_flow_action_attr {
  enum mlx5dv_flow_action_type type;
  union {
    struct ibv_qp* qp;
    struct ibv_counters* counter;
    struct ibv_flow_action* action;
    uint32_t tag_value;
    struct mlx5dv_devx_obj* obj;
    struct {
      struct mlx5dv_devx_obj* obj;
      uint32_t offset;
    } bulk_obj;
  };
};

struct ibv_flow* __mlx5dv_create_flow(struct mlx5dv_flow_matcher* matcher,
                                      struct mlx5dv_flow_match_parameters* match_value, size_t num_actions,
                                      struct mlx5dv_flow_action_attr actions_attr[], size_t attr_len);

/* The entry size travels with the call, so that the array may grow; programs built before that bind the plain name,
 * which is still exported. */
static inline struct ibv_flow* _mlx5dv_create_flow(struct mlx5dv_flow_matcher* matcher,
                                                   struct mlx5dv_flow_match_parameters* match_value, size_t num_actions,
                                                   struct mlx5dv_flow_action_attr actions_attr[]) {
  return __mlx5dv_create_flow(matcher, match_value, num_actions, actions_attr, sizeof(actions_attr[0]));
}

#define mlx5dv_create_flow(matcher, match_value, num_actions, actions_attr) \
  _mlx5dv_create_flow(matcher, match_value, num_actions, actions_attr)

struct ibv_flow_action* mlx5dv_create_flow_action_esp(struct ibv_context* ctx, struct ibv_flow_action_esp_attr* esp,
                                                      struct mlx5dv_flow_action_esp* mlx5_attr);

struct ibv_flow_action* mlx5dv_create_flow_action_modify_header(struct ibv_context* ctx, size_t actions_sz,
                                                                uint64_t actions[],
                                                                enum mlx5dv_flow_table_type ft_type);

struct ibv_flow_action* mlx5dv_create_flow_action_packet_reformat(
    struct ibv_context* ctx, size_t data_sz, void* data, enum mlx5dv_flow_action_packet_reformat_type reformat_type,
    enum mlx5dv_flow_table_type ft_type);

#ifdef __cplusplus
}
#endif

#endif
