/* mlx5 direct verbs. Direct rules: steering tables the program owns. */
#ifndef VERBENA_INFINIBAND_MLX5DV_DR_H_
#define VERBENA_INFINIBAND_MLX5DV_DR_H_

#include <infiniband/mlx5dv/base.h>
#include <infiniband/mlx5dv/flow.h>
#include <stdio.h>

#ifdef __cplusplus
extern "C" {
#endif

struct mlx5dv_dr_domain;

struct mlx5dv_dr_table;

struct mlx5dv_dr_matcher;

struct mlx5dv_dr_rule;

struct mlx5dv_dr_action;

enum mlx5dv_dr_domain_type {
  MLX5DV_DR_DOMAIN_TYPE_NIC_RX,
  MLX5DV_DR_DOMAIN_TYPE_NIC_TX,
  MLX5DV_DR_DOMAIN_TYPE_FDB,
};

enum mlx5dv_dr_domain_sync_flags {
  MLX5DV_DR_DOMAIN_SYNC_FLAGS_SW = 1 << 0,
  MLX5DV_DR_DOMAIN_SYNC_FLAGS_HW = 1 << 1,
  MLX5DV_DR_DOMAIN_SYNC_FLAGS_MEM = 1 << 2,
};

struct mlx5dv_dr_flow_meter_attr {
  struct mlx5dv_dr_table* next_table;
  uint8_t active;
  uint8_t reg_c_index;
  size_t flow_meter_parameter_sz;
  void* flow_meter_parameter;
};

struct mlx5dv_dr_flow_sampler_attr {
  uint32_t sample_ratio;
  struct mlx5dv_dr_table* default_next_table;
  uint32_t num_sample_actions;
  struct mlx5dv_dr_action** sample_actions;
  __be64 action;
};

struct mlx5dv_dr_domain* mlx5dv_dr_domain_create(struct ibv_context* ctx, enum mlx5dv_dr_domain_type type);

int mlx5dv_dr_domain_destroy(struct mlx5dv_dr_domain* domain);

int mlx5dv_dr_domain_sync(struct mlx5dv_dr_domain* domain, uint32_t flags);

void mlx5dv_dr_domain_set_reclaim_device_memory(struct mlx5dv_dr_domain* dmn, bool enable);

void mlx5dv_dr_domain_allow_duplicate_rules(struct mlx5dv_dr_domain* domain, bool allow);

struct mlx5dv_dr_table* mlx5dv_dr_table_create(struct mlx5dv_dr_domain* domain, uint32_t level);

int mlx5dv_dr_table_destroy(struct mlx5dv_dr_table* table);

struct mlx5dv_dr_matcher* mlx5dv_dr_matcher_create(struct mlx5dv_dr_table* table, uint16_t priority,
                                                   uint8_t match_criteria_enable,
                                                   struct mlx5dv_flow_match_parameters* mask);

int mlx5dv_dr_matcher_destroy(struct mlx5dv_dr_matcher* matcher);

enum mlx5dv_dr_matcher_layout_flags {
  MLX5DV_DR_MATCHER_LAYOUT_RESIZABLE = 1 << 0,
  MLX5DV_DR_MATCHER_LAYOUT_NUM_RULE = 1 << 1,
};

struct mlx5dv_dr_matcher_layout {
  uint32_t flags;
  uint32_t log_num_of_rules_hint;
};

int mlx5dv_dr_matcher_set_layout(struct mlx5dv_dr_matcher* matcher, struct mlx5dv_dr_matcher_layout* layout);

struct mlx5dv_dr_rule* mlx5dv_dr_rule_create(struct mlx5dv_dr_matcher* matcher,
                                             struct mlx5dv_flow_match_parameters* value, size_t num_actions,
                                             struct mlx5dv_dr_action* actions[]);

int mlx5dv_dr_rule_destroy(struct mlx5dv_dr_rule* rule);

enum mlx5dv_dr_action_flags {
  MLX5DV_DR_ACTION_FLAGS_ROOT_LEVEL = 1 << 0,
};

struct mlx5dv_dr_action* mlx5dv_dr_action_create_dest_ibv_qp(struct ibv_qp* ibqp);

struct mlx5dv_dr_action* mlx5dv_dr_action_create_dest_table(struct mlx5dv_dr_table* table);

struct mlx5dv_dr_action* mlx5dv_dr_action_create_dest_vport(struct mlx5dv_dr_domain* domain, uint32_t vport);

struct mlx5dv_dr_action* mlx5dv_dr_action_create_dest_ib_port(struct mlx5dv_dr_domain* domain, uint32_t ib_port);

struct mlx5dv_dr_action* mlx5dv_dr_action_create_dest_devx_tir(struct mlx5dv_devx_obj* devx_obj);

enum mlx5dv_dr_action_dest_type {
  MLX5DV_DR_ACTION_DEST,
  MLX5DV_DR_ACTION_DEST_REFORMAT,
};

struct mlx5dv_dr_action_dest_reformat {
  struct mlx5dv_dr_action* reformat;
  struct mlx5dv_dr_action* dest;
};

struct mlx5dv_dr_action_dest_attr {
  enum mlx5dv_dr_action_dest_type type;
  union {
    struct mlx5dv_dr_action* dest;
    struct mlx5dv_dr_action_dest_reformat* dest_reformat;
  };
};

struct mlx5dv_dr_action* mlx5dv_dr_action_create_dest_array(struct mlx5dv_dr_domain* domain, size_t num_dest,
                                                            struct mlx5dv_dr_action_dest_attr* dests[]);

struct mlx5dv_dr_action* mlx5dv_dr_action_create_drop(void);

struct mlx5dv_dr_action* mlx5dv_dr_action_create_default_miss(void);

struct mlx5dv_dr_action* mlx5dv_dr_action_create_tag(uint32_t tag_value);

struct mlx5dv_dr_action* mlx5dv_dr_action_create_flow_counter(struct mlx5dv_devx_obj* devx_obj, uint32_t offset);

enum mlx5dv_dr_action_aso_first_hit_flags {
  MLX5DV_DR_ACTION_FLAGS_ASO_FIRST_HIT_SET = 1 << 0,
};

enum mlx5dv_dr_action_aso_flow_meter_flags {
  MLX5DV_DR_ACTION_FLAGS_ASO_FLOW_METER_RED = 1 << 0,
  MLX5DV_DR_ACTION_FLAGS_ASO_FLOW_METER_YELLOW = 1 << 1,
  MLX5DV_DR_ACTION_FLAGS_ASO_FLOW_METER_GREEN = 1 << 2,
  MLX5DV_DR_ACTION_FLAGS_ASO_FLOW_METER_UNDEFINED = 1 << 3,
};

enum mlx5dv_dr_action_aso_ct_flags {
  MLX5DV_DR_ACTION_FLAGS_ASO_CT_DIRECTION_INITIATOR = 1 << 0,
  MLX5DV_DR_ACTION_FLAGS_ASO_CT_DIRECTION_RESPONDER = 1 << 1,
};

struct mlx5dv_dr_action* mlx5dv_dr_action_create_aso(struct mlx5dv_dr_domain* domain, struct mlx5dv_devx_obj* devx_obj,
                                                     uint32_t offset, uint32_t flags, uint8_t return_reg_c);

int mlx5dv_dr_action_modify_aso(struct mlx5dv_dr_action* action, uint32_t offset, uint32_t flags, uint8_t return_reg_c);

struct mlx5dv_dr_action* mlx5dv_dr_action_create_packet_reformat(
    struct mlx5dv_dr_domain* domain, uint32_t flags, enum mlx5dv_flow_action_packet_reformat_type reformat_type,
    size_t data_sz, void* data);

struct mlx5dv_dr_action* mlx5dv_dr_action_create_modify_header(struct mlx5dv_dr_domain* domain, uint32_t flags,
                                                               size_t actions_sz, __be64 actions[]);

struct mlx5dv_dr_action* mlx5dv_dr_action_create_flow_meter(struct mlx5dv_dr_flow_meter_attr* attr);

int mlx5dv_dr_action_modify_flow_meter(struct mlx5dv_dr_action* action, struct mlx5dv_dr_flow_meter_attr* attr,
                                       __be64 modify_field_select);

struct mlx5dv_dr_action* mlx5dv_dr_action_create_flow_sampler(struct mlx5dv_dr_flow_sampler_attr* attr);

struct mlx5dv_dr_action* mlx5dv_dr_action_create_pop_vlan(void);

struct mlx5dv_dr_action* mlx5dv_dr_action_create_push_vlan(struct mlx5dv_dr_domain* domain, __be32 vlan_hdr);

struct mlx5dv_dr_action* mlx5dv_dr_action_create_dest_root_table(struct mlx5dv_dr_table* table, uint16_t priority);

int mlx5dv_dr_action_destroy(struct mlx5dv_dr_action* action);

int mlx5dv_dump_dr_domain(FILE* fout, struct mlx5dv_dr_domain* domain);

int mlx5dv_dump_dr_table(FILE* fout, struct mlx5dv_dr_table* table);

int mlx5dv_dump_dr_matcher(FILE* fout, struct mlx5dv_dr_matcher* matcher);

int mlx5dv_dump_dr_rule(FILE* fout, struct mlx5dv_dr_rule* rule);

int mlx5dv_dr_aso_other_domain_link(struct mlx5dv_devx_obj* devx_obj, struct mlx5dv_dr_domain* peer_dmn,
                                    struct mlx5dv_dr_domain* dmn, uint32_t flags, uint8_t return_reg_c);

int mlx5dv_dr_aso_other_domain_unlink(struct mlx5dv_devx_obj* devx_obj, struct mlx5dv_dr_domain* dmn);

#ifdef __cplusplus
}
#endif

#endif
