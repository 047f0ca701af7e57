// The private interface that other providers of rdma-core 44 import.
//
// Programs link libefa, libmlx4 or libmana for their direct-verbs calls, so these must load; their devices are never
// in our list, so nothing here is called except the registration. Every entry refuses.
//
// The argument lists do not matter (all callers pass what the C calling convention lets a callee ignore).
#include <cerrno>

#define VERBENA_REFUSED(X)                                                                                            \
  X(execute_ioctl)                                                                                                    \
  X(ibv_cmd_advise_mr)                                                                                                \
  X(ibv_cmd_alloc_dm) X(ibv_cmd_alloc_mw) X(ibv_cmd_alloc_pd) X(ibv_cmd_attach_mcast) X(ibv_cmd_close_xrcd)           \
      X(ibv_cmd_create_ah) X(ibv_cmd_create_counters) X(ibv_cmd_create_cq) X(ibv_cmd_create_cq_ex)                    \
          X(ibv_cmd_create_flow) X(ibv_cmd_create_flow_action_esp) X(ibv_cmd_create_qp) X(ibv_cmd_create_qp_ex)       \
              X(ibv_cmd_create_qp_ex2) X(ibv_cmd_create_rwq_ind_table) X(ibv_cmd_create_srq) X(ibv_cmd_create_srq_ex) \
                  X(ibv_cmd_create_wq) X(ibv_cmd_dealloc_mw) X(ibv_cmd_dealloc_pd) X(ibv_cmd_dereg_mr)                \
                      X(ibv_cmd_destroy_ah) X(ibv_cmd_destroy_counters) X(ibv_cmd_destroy_cq) X(ibv_cmd_destroy_flow) \
                          X(ibv_cmd_destroy_flow_action) X(ibv_cmd_destroy_qp) X(ibv_cmd_destroy_rwq_ind_table)       \
                              X(ibv_cmd_destroy_srq) X(ibv_cmd_destroy_wq) X(ibv_cmd_detach_mcast) X(ibv_cmd_free_dm) \
                                  X(ibv_cmd_get_context) X(ibv_cmd_modify_cq) X(ibv_cmd_modify_flow_action_esp)       \
                                      X(ibv_cmd_modify_qp) X(ibv_cmd_modify_qp_ex) X(ibv_cmd_modify_srq)              \
                                          X(ibv_cmd_modify_wq) X(ibv_cmd_open_qp) X(ibv_cmd_open_xrcd)                \
                                              X(ibv_cmd_post_recv) X(ibv_cmd_post_send) X(ibv_cmd_post_srq_recv)      \
                                                  X(ibv_cmd_query_context) X(ibv_cmd_query_device_any)                \
                                                      X(ibv_cmd_query_mr) X(ibv_cmd_query_port) X(ibv_cmd_query_qp)   \
                                                          X(ibv_cmd_query_srq) X(ibv_cmd_read_counters)               \
                                                              X(ibv_cmd_reg_dm_mr) X(ibv_cmd_reg_dmabuf_mr)           \
                                                                  X(ibv_cmd_reg_mr) X(ibv_cmd_req_notify_cq)          \
                                                                      X(ibv_cmd_rereg_mr) X(ibv_cmd_resize_cq)

extern "C" {

bool verbs_allow_disassociate_destroy = false;

#define X(name) \
  int name() { return errno = EOPNOTSUPP; }
VERBENA_REFUSED(X)
#undef X

// A count or a length where the others return an errno.
int ibv_cmd_poll_cq() {
  errno = EOPNOTSUPP;
  return -1;
}
int ibv_read_ibdev_sysfs_file() {
  errno = EOPNOTSUPP;
  return -1;
}
unsigned __ioctl_final_num_attrs(unsigned count) { return count; }

void* _verbs_init_and_alloc_context() {
  errno = EOPNOTSUPP;
  return nullptr;
}
void* verbs_open_device() {
  errno = EOPNOTSUPP;
  return nullptr;
}

void verbs_register_driver_34() {}
void verbs_set_ops() {}
void verbs_uninit_context() {}
void verbs_init_cq() {}
void __verbs_log() {}

}  // extern "C"
