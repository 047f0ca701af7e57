// mlx5dv: direct rules. Declared, exported and refused: the man pages' way of saying "not on this device".

#include "mlx5/dv/refuse.h"

using namespace verbena::mlx5;

extern "C" {

VERBENA_MLX5_EXPORT mlx5dv_dr_action* mlx5dv_dr_action_create_aso(mlx5dv_dr_domain*, mlx5dv_devx_obj*, std::uint32_t,
                                                                  std::uint32_t, std::uint8_t) {
  return refuse_null();
}
VERBENA_MLX5_EXPORT mlx5dv_dr_action* mlx5dv_dr_action_create_default_miss() { return refuse_null(); }
VERBENA_MLX5_EXPORT mlx5dv_dr_action* mlx5dv_dr_action_create_dest_array(mlx5dv_dr_domain*, std::size_t,
                                                                         mlx5dv_dr_action_dest_attr**) {
  return refuse_null();
}
VERBENA_MLX5_EXPORT mlx5dv_dr_action* mlx5dv_dr_action_create_dest_devx_tir(mlx5dv_devx_obj*) { return refuse_null(); }
VERBENA_MLX5_EXPORT mlx5dv_dr_action* mlx5dv_dr_action_create_dest_ib_port(mlx5dv_dr_domain*, std::uint32_t) {
  return refuse_null();
}
VERBENA_MLX5_EXPORT mlx5dv_dr_action* mlx5dv_dr_action_create_dest_ibv_qp(ibv_qp*) { return refuse_null(); }
VERBENA_MLX5_EXPORT mlx5dv_dr_action* mlx5dv_dr_action_create_dest_root_table(mlx5dv_dr_table*, std::uint16_t) {
  return refuse_null();
}
VERBENA_MLX5_EXPORT mlx5dv_dr_action* mlx5dv_dr_action_create_dest_table(mlx5dv_dr_table*) { return refuse_null(); }
VERBENA_MLX5_EXPORT mlx5dv_dr_action* mlx5dv_dr_action_create_dest_vport(mlx5dv_dr_domain*, std::uint32_t) {
  return refuse_null();
}
VERBENA_MLX5_EXPORT mlx5dv_dr_action* mlx5dv_dr_action_create_drop() { return refuse_null(); }
VERBENA_MLX5_EXPORT mlx5dv_dr_action* mlx5dv_dr_action_create_flow_counter(mlx5dv_devx_obj*, std::uint32_t) {
  return refuse_null();
}
VERBENA_MLX5_EXPORT mlx5dv_dr_action* mlx5dv_dr_action_create_flow_meter(mlx5dv_dr_flow_meter_attr*) {
  return refuse_null();
}
VERBENA_MLX5_EXPORT mlx5dv_dr_action* mlx5dv_dr_action_create_flow_sampler(mlx5dv_dr_flow_sampler_attr*) {
  return refuse_null();
}
VERBENA_MLX5_EXPORT mlx5dv_dr_action* mlx5dv_dr_action_create_modify_header(mlx5dv_dr_domain*, std::uint32_t,
                                                                            std::size_t, __be64*) {
  return refuse_null();
}
VERBENA_MLX5_EXPORT mlx5dv_dr_action* mlx5dv_dr_action_create_packet_reformat(mlx5dv_dr_domain*, std::uint32_t,
                                                                              mlx5dv_flow_action_packet_reformat_type,
                                                                              std::size_t, void*) {
  return refuse_null();
}
VERBENA_MLX5_EXPORT mlx5dv_dr_action* mlx5dv_dr_action_create_pop_vlan() { return refuse_null(); }
VERBENA_MLX5_EXPORT mlx5dv_dr_action* mlx5dv_dr_action_create_push_vlan(mlx5dv_dr_domain*, __be32) {
  return refuse_null();
}
VERBENA_MLX5_EXPORT mlx5dv_dr_action* mlx5dv_dr_action_create_tag(std::uint32_t) { return refuse_null(); }
VERBENA_MLX5_EXPORT int mlx5dv_dr_action_destroy(mlx5dv_dr_action*) { return refuse(); }
VERBENA_MLX5_EXPORT int mlx5dv_dr_action_modify_aso(mlx5dv_dr_action*, std::uint32_t, std::uint32_t, std::uint8_t) {
  return refuse();
}
VERBENA_MLX5_EXPORT int mlx5dv_dr_action_modify_flow_meter(mlx5dv_dr_action*, mlx5dv_dr_flow_meter_attr*, __be64) {
  return refuse();
}
VERBENA_MLX5_EXPORT int mlx5dv_dr_aso_other_domain_link(mlx5dv_devx_obj*, mlx5dv_dr_domain*, mlx5dv_dr_domain*,
                                                        std::uint32_t, std::uint8_t) {
  return refuse();
}
VERBENA_MLX5_EXPORT int mlx5dv_dr_aso_other_domain_unlink(mlx5dv_devx_obj*, mlx5dv_dr_domain*) { return refuse(); }
VERBENA_MLX5_EXPORT void mlx5dv_dr_domain_allow_duplicate_rules(mlx5dv_dr_domain*, bool) {}
VERBENA_MLX5_EXPORT mlx5dv_dr_domain* mlx5dv_dr_domain_create(ibv_context*, mlx5dv_dr_domain_type) {
  return refuse_null();
}
VERBENA_MLX5_EXPORT int mlx5dv_dr_domain_destroy(mlx5dv_dr_domain*) { return refuse(); }
VERBENA_MLX5_EXPORT void mlx5dv_dr_domain_set_reclaim_device_memory(mlx5dv_dr_domain*, bool) {}
VERBENA_MLX5_EXPORT int mlx5dv_dr_domain_sync(mlx5dv_dr_domain*, std::uint32_t) { return refuse(); }
VERBENA_MLX5_EXPORT mlx5dv_dr_matcher* mlx5dv_dr_matcher_create(mlx5dv_dr_table*, std::uint16_t, std::uint8_t,
                                                                mlx5dv_flow_match_parameters*) {
  return refuse_null();
}
VERBENA_MLX5_EXPORT int mlx5dv_dr_matcher_destroy(mlx5dv_dr_matcher*) { return refuse(); }
VERBENA_MLX5_EXPORT int mlx5dv_dr_matcher_set_layout(mlx5dv_dr_matcher*, mlx5dv_dr_matcher_layout*) { return refuse(); }
VERBENA_MLX5_EXPORT mlx5dv_dr_rule* mlx5dv_dr_rule_create(mlx5dv_dr_matcher*, mlx5dv_flow_match_parameters*,
                                                          std::size_t, mlx5dv_dr_action**) {
  return refuse_null();
}
VERBENA_MLX5_EXPORT int mlx5dv_dr_rule_destroy(mlx5dv_dr_rule*) { return refuse(); }
VERBENA_MLX5_EXPORT mlx5dv_dr_table* mlx5dv_dr_table_create(mlx5dv_dr_domain*, std::uint32_t) { return refuse_null(); }
VERBENA_MLX5_EXPORT int mlx5dv_dr_table_destroy(mlx5dv_dr_table*) { return refuse(); }
VERBENA_MLX5_EXPORT int mlx5dv_dump_dr_domain(FILE*, mlx5dv_dr_domain*) { return refuse(); }
VERBENA_MLX5_EXPORT int mlx5dv_dump_dr_matcher(FILE*, mlx5dv_dr_matcher*) { return refuse(); }
VERBENA_MLX5_EXPORT int mlx5dv_dump_dr_rule(FILE*, mlx5dv_dr_rule*) { return refuse(); }
VERBENA_MLX5_EXPORT int mlx5dv_dump_dr_table(FILE*, mlx5dv_dr_table*) { return refuse(); }

}  // extern "C"
