// The private interface of rdma-core 65, as private34.cc has that of 44: what other providers of it import that programs
// link, so that these load. Their devices are never in our list; everything refuses.
#include <infiniband/verbs.h>

#include <cerrno>

#include "verbs/internal.h"

#define VERBENA_REFUSED_65(X) \
  X(execute_ioctl) X(ibv_cmd_alloc_dm) X(ibv_cmd_alloc_mw) X(ibv_cmd_alloc_pd) X(ibv_cmd_attach_mcast)            \
  X(ibv_cmd_close_xrcd) X(ibv_cmd_create_ah) X(ibv_cmd_create_comp_cntr) X(ibv_cmd_create_cq)                     \
  X(ibv_cmd_create_cq_ex) X(ibv_cmd_create_flow) X(ibv_cmd_create_qp) X(ibv_cmd_create_qp_ex)                     \
  X(ibv_cmd_create_qp_ex2) X(ibv_cmd_create_rwq_ind_table) X(ibv_cmd_create_srq) X(ibv_cmd_create_srq_ex)         \
  X(ibv_cmd_create_wq) X(ibv_cmd_dealloc_mw) X(ibv_cmd_dealloc_pd) X(ibv_cmd_dereg_mr) X(ibv_cmd_destroy_ah)      \
  X(ibv_cmd_destroy_comp_cntr) X(ibv_cmd_destroy_cq) X(ibv_cmd_destroy_flow) X(ibv_cmd_destroy_qp)                \
  X(ibv_cmd_destroy_rwq_ind_table) X(ibv_cmd_destroy_srq) X(ibv_cmd_destroy_wq) X(ibv_cmd_detach_mcast)           \
  X(ibv_cmd_free_dm) X(ibv_cmd_get_context) X(ibv_cmd_inc_comp_cntr) X(ibv_cmd_inc_err_comp_cntr)                 \
  X(ibv_cmd_modify_cq) X(ibv_cmd_modify_qp) X(ibv_cmd_modify_qp_ex) X(ibv_cmd_modify_srq) X(ibv_cmd_modify_wq)    \
  X(ibv_cmd_open_qp) X(ibv_cmd_open_xrcd) X(ibv_cmd_qp_attach_comp_cntr) X(ibv_cmd_query_comp_cntr_caps)          \
  X(ibv_cmd_query_device_any) X(ibv_cmd_query_port) X(ibv_cmd_query_port_speed) X(ibv_cmd_query_qp)               \
  X(ibv_cmd_query_srq) X(ibv_cmd_reg_dm_mr) X(ibv_cmd_reg_dmabuf_mr) X(ibv_cmd_reg_mr) X(ibv_cmd_rereg_mr)        \
  X(ibv_cmd_resize_cq) X(ibv_cmd_set_comp_cntr) X(ibv_cmd_set_err_comp_cntr)

extern "C" {

#define X(name)                                                     \
  int verbena65_##name() { return errno = EOPNOTSUPP; }             \
  VERBENA_SYMVER(verbena65_##name, #name "@IBVERBS_PRIVATE_65");
VERBENA_REFUSED_65(X)
#undef X

#define X(name)                  \
  void verbena65_##name() {}     \
  VERBENA_SYMVER(verbena65_##name, #name "@IBVERBS_PRIVATE_65");
X(verbs_register_driver_65)
X(verbs_set_ops)
X(verbs_uninit_context)
X(__verbs_log)
#undef X

void* verbena65__verbs_init_and_alloc_context() {
  errno = EOPNOTSUPP;
  return nullptr;
}
VERBENA_SYMVER(verbena65__verbs_init_and_alloc_context, "_verbs_init_and_alloc_context@IBVERBS_PRIVATE_65");

// The one that programs call: gid.cc has it.
int ibv_query_gid_type(ibv_context* context, std::uint8_t port, unsigned index, void* type);
int verbena65_ibv_query_gid_type(ibv_context* context, std::uint8_t port, unsigned index, void* type) {
  return ibv_query_gid_type(context, port, index, type);
}
VERBENA_SYMVER(verbena65_ibv_query_gid_type, "ibv_query_gid_type@IBVERBS_PRIVATE_65");

}  // extern "C"
