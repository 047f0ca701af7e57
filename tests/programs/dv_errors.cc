// Errors of the mlx5dv calls on devices, queues, device memory and rates; see dv_errors_devx.cc.
#include <linux/capability.h>
#include <sys/resource.h>
#include <sys/syscall.h>

#include <vector>

#include "dv_errors.h"

namespace {

// What `call` says when the process may map no more.
template <class Call>
int without_address_space(Call call) {
  rlimit before;
  CHECK(!getrlimit(RLIMIT_AS, &before));
  const rlimit none = {1, before.rlim_max};
  CHECK(!setrlimit(RLIMIT_AS, &none));
  errno = 0;
  const int error = call();
  CHECK(!setrlimit(RLIMIT_AS, &before));
  return error;
}

void device_memory(World* w, Foreign& foreign) {
  const auto alloc = [&](ibv_context* c, std::size_t length, std::uint32_t align, int type, std::uint64_t mask = 0) {
    ibv_alloc_dm_attr attr = {length, align, 0};
    mlx5dv_alloc_dm_attr kind = {static_cast<mlx5dv_alloc_dm_type>(type), mask};
    return mlx5dv_alloc_dm(c, &attr, &kind);
  };
  CASE(mlx5dv_alloc_dm, EINVAL, of(alloc(w->context, 0, 0, 0)));
  CASE(mlx5dv_alloc_dm, EINVAL, of(alloc(w->context, 1 << 20, 0, 0)));
  CASE(mlx5dv_alloc_dm, EINVAL, of(alloc(w->context, 64, 13, 0)));
  CASE(mlx5dv_alloc_dm, EINVAL, of(alloc(w->context, 64, 0, 0, 1)));
  CASE(mlx5dv_alloc_dm, EOPNOTSUPP, of(alloc(w->context, 64, 0, 9)));
  CASE(mlx5dv_alloc_dm, EOPNOTSUPP, of(alloc(foreign(), 64, 0, 0)));
  ibv_dm* all = alloc(w->context, 1 << 17, 0, 0);
  CHECK(all);
  CASE(mlx5dv_alloc_dm, ENOMEM, of(alloc(w->context, 64, 0, 0)));
  CASE(mlx5dv_dm_map_op_addr, EOPNOTSUPP, of(mlx5dv_dm_map_op_addr(all, 200)));
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)  // their own memory is of that space, too
  CASE(mlx5dv_dm_map_op_addr, ENOMEM, without_address_space([&] { return of(mlx5dv_dm_map_op_addr(all, 0)); }));
#endif
  ibv_context* other = ibv_import_device(dup(w->context->cmd_fd));
  ibv_dm* shadow = other ? ibv_import_dm(other, all->handle) : nullptr;
  CHECK(shadow && !ibv_free_dm(all));
  CASE(mlx5dv_dm_map_op_addr, ENOENT, of(mlx5dv_dm_map_op_addr(shadow, 0)));
  ibv_unimport_dm(shadow);
  CHECK(!ibv_close_device(other));
  // Without capabilities.
  __user_cap_header_struct header = {_LINUX_CAPABILITY_VERSION_3, 0};
  __user_cap_data_struct before[2], none[2] = {};
  CHECK(!syscall(SYS_capget, &header, before));
  const bool capable = before[0].effective >> CAP_NET_RAW & before[0].effective >> CAP_SYS_RAWIO & 1;
  const auto steering = [&](int type) { return of(alloc(w->context, 64, 0, type)); };
  if (capable) {
    CASE(mlx5dv_alloc_dm, EOPNOTSUPP, steering(MLX5DV_DM_TYPE_STEERING_SW_ICM));
    CASE(mlx5dv_alloc_dm, EOPNOTSUPP, steering(MLX5DV_DM_TYPE_HEADER_MODIFY_SW_ICM));
    CASE(mlx5dv_alloc_dm, EOPNOTSUPP, steering(MLX5DV_DM_TYPE_HEADER_MODIFY_PATTERN_SW_ICM));
  }
  none[0].permitted = before[0].permitted, none[1].permitted = before[1].permitted;
  CHECK(!syscall(SYS_capset, &header, none));
  CASE(mlx5dv_alloc_dm, EPERM, steering(MLX5DV_DM_TYPE_STEERING_SW_ICM));
  CASE(mlx5dv_alloc_dm, EPERM, steering(MLX5DV_DM_TYPE_HEADER_MODIFY_SW_ICM));
  CHECK(!syscall(SYS_capset, &header, before));

  CASE(mlx5dv_alloc_var, EOPNOTSUPP, of(mlx5dv_alloc_var(w->context, 4)));
  CASE(mlx5dv_alloc_var, EOPNOTSUPP, of(mlx5dv_alloc_var(foreign(), 0)));
  CASE(mlx5dv_alloc_var, ENOSPC, [&] {
    std::vector<mlx5dv_var*> pages;
    while (mlx5dv_var* var = mlx5dv_alloc_var(w->context, 0)) pages.push_back(var);
    const int error = errno;
    for (mlx5dv_var* var : pages) mlx5dv_free_var(var);
    return error;
  }());
  char blob[64] = {};
  CASE(mlx5dv_var_import, EOPNOTSUPP, of(mlx5dv_var_import(foreign(), blob)));
}

void queues(World* w, Foreign& foreign) {
  ibv_cq_init_attr_ex attr = {};
  mlx5dv_cq_init_attr vendor = {};
  const auto cq = [&](ibv_context* c) {
    ibv_cq_ex* made = mlx5dv_create_cq(c, &attr, &vendor);
    return made ? ibv_destroy_cq(ibv_cq_ex_to_cq(made)) : errno;
  };
  CASE(mlx5dv_create_cq, EINVAL, cq(w->context));  // no entries
  attr.cqe = 1 << 24;
  CASE(mlx5dv_create_cq, EINVAL, cq(w->context));
  attr.cqe = 16;
  CHECK(!cq(w->context));
  CASE(mlx5dv_create_cq, EOPNOTSUPP, cq(foreign()));
  vendor.comp_mask = 1ull << 40;
  CASE(mlx5dv_create_cq, EINVAL, cq(w->context));
  vendor.comp_mask = MLX5DV_CQ_INIT_ATTR_MASK_CQE_SIZE;
  vendor.cqe_size = 32;
  CASE(mlx5dv_create_cq, EINVAL, cq(w->context));
  vendor.comp_mask = MLX5DV_CQ_INIT_ATTR_MASK_FLAGS;
  vendor.flags = MLX5DV_CQ_INIT_ATTR_FLAGS_CQE_PAD;  // of 64 bytes
  CASE(mlx5dv_create_cq, EINVAL, cq(w->context));
  vendor.comp_mask |= MLX5DV_CQ_INIT_ATTR_MASK_CQE_SIZE;
  vendor.cqe_size = 128;
  CHECK(!cq(w->context));
  vendor.flags = 1u << 7;
  CASE(mlx5dv_create_cq, EINVAL, cq(w->context));
  vendor = {};
  vendor.comp_mask = MLX5DV_CQ_INIT_ATTR_MASK_COMPRESSED_CQE;
  vendor.cqe_comp_res_format = 8;  // no such format
  CASE(mlx5dv_create_cq, EINVAL, cq(w->context));
  vendor = {};
  attr.wc_flags = 1ull << 40;
  CASE(mlx5dv_create_cq, ENOTSUP, cq(w->context));

  ibv_cq* plain = ibv_create_cq(w->context, 16, nullptr, nullptr, 0);
  CHECK(plain);
  ibv_qp_init_attr_ex init = {};
  mlx5dv_qp_init_attr special = {};
  const auto qp = [&](ibv_context* c) {
    ibv_qp* made = mlx5dv_create_qp(c, &init, &special);
    return made ? ibv_destroy_qp(made) : errno;
  };
  init.qp_type = IBV_QPT_RC;
  init.send_cq = init.recv_cq = plain;
  init.cap = {1, 1, 1, 1, 0};
  CASE(mlx5dv_create_qp, EINVAL, qp(w->context));  // no PD
  init.comp_mask = IBV_QP_INIT_ATTR_PD;
  init.pd = w->pd;
  CHECK(!qp(w->context));
  CASE(mlx5dv_create_qp, EOPNOTSUPP, qp(foreign()));
  special.comp_mask = 1ull << 40;
  CASE(mlx5dv_create_qp, EINVAL, qp(w->context));
  special.comp_mask = MLX5DV_QP_INIT_ATTR_MASK_QP_CREATE_FLAGS;
  special.create_flags = MLX5DV_QP_CREATE_DISABLE_SCATTER_TO_CQE | MLX5DV_QP_CREATE_ALLOW_SCATTER_TO_CQE;
  CASE(mlx5dv_create_qp, EINVAL, qp(w->context));
  special.create_flags = MLX5DV_QP_CREATE_SIG_PIPELINING;
  CASE(mlx5dv_create_qp, EOPNOTSUPP, qp(w->context));
  special = {};
  init.cap.max_send_sge = 1000;
  CASE(mlx5dv_create_qp, EINVAL, qp(w->context));
  init.cap.max_send_sge = 1;
  init.qp_type = IBV_QPT_DRIVER;
  CASE(mlx5dv_create_qp, EINVAL, qp(w->context));  // of no known kind
  special.comp_mask = MLX5DV_QP_INIT_ATTR_MASK_DC;
  CASE(mlx5dv_create_qp, EINVAL, qp(w->context));
  special.dc_init_attr.dc_type = MLX5DV_DCTYPE_DCI;
  CASE(mlx5dv_create_qp, EOPNOTSUPP, qp(w->context));
  special = {};
  init.qp_type = static_cast<ibv_qp_type>(99);
  CASE(mlx5dv_create_qp, EINVAL, qp(w->context));
  CHECK(!ibv_destroy_cq(plain));
}

int open_with_rights(ibv_device* nic, int fd) {
  struct {
    int* arr;
    std::uint32_t count;
  } list = {&fd, 1};
  mlx5dv_context_attr attr = {};
  attr.comp_mask = MLX5DV_CONTEXT_ATTR_MASK_FD_ARRAY;
  attr.fds = reinterpret_cast<ibv_fd_arr*>(&list);
  return of(mlx5dv_open_device(nic, &attr));
}

void device(World* w, Foreign& foreign) {
  ibv_device* nic = w->context->device;
  mlx5dv_context_attr attr = {};
  attr.flags = 1u << 30;
  CASE(mlx5dv_open_device, EINVAL, of(mlx5dv_open_device(nic, &attr)));
  attr.flags = 0;
  attr.comp_mask = 1ull << 40;
  CASE(mlx5dv_open_device, EINVAL, of(mlx5dv_open_device(nic, &attr)));
  CASE(mlx5dv_open_device, EBADF, open_with_rights(nic, 12345));
  CASE(mlx5dv_open_device, EINVAL, open_with_rights(nic, 0));
  CASE(mlx5dv_open_device, EOPNOTSUPP, of(mlx5dv_open_device(&foreign.device.device, &attr)));
  mlx5dv_context out = {};
  CASE(mlx5dv_query_device, EOPNOTSUPP, mlx5dv_query_device(foreign(), &out));
  mlx5dv_port port = {};
  CASE(mlx5dv_query_port, EINVAL, mlx5dv_query_port(w->context, 2, &port));
  CASE(mlx5dv_query_port, EOPNOTSUPP, mlx5dv_query_port(foreign(), 1, &port));
  mlx5dv_clock_info clock;
  CASE(mlx5dv_get_clock_info, EOPNOTSUPP, mlx5dv_get_clock_info(foreign(), &clock));
  CASE(mlx5dv_set_context_attr, ENOTSUP,
       mlx5dv_set_context_attr(w->context, static_cast<mlx5dv_set_ctx_attr_type>(99), nullptr));
  CASE(mlx5dv_set_context_attr, EOPNOTSUPP,
       mlx5dv_set_context_attr(foreign(), MLX5DV_CTX_ATTR_BUF_ALLOCATORS, nullptr));
  std::uint32_t qpn;
  CASE(mlx5dv_reserved_qpn_alloc, EOPNOTSUPP, mlx5dv_reserved_qpn_alloc(foreign(), &qpn));
  CASE(mlx5dv_reserved_qpn_dealloc, EINVAL, mlx5dv_reserved_qpn_dealloc(w->context, 0xfffff0));
  CASE(mlx5dv_reserved_qpn_dealloc, EOPNOTSUPP, mlx5dv_reserved_qpn_dealloc(foreign(), 0x100));
}

// Of devices that a program drives by itself, through VFIO; of transports and features that are not there.
void absent(World* w, Foreign&) {
  mlx5dv_vfio_context_attr vfio = {};
  CASE(mlx5dv_get_vfio_device_list, EOPNOTSUPP, of(mlx5dv_get_vfio_device_list(&vfio)));
  CASE(mlx5dv_vfio_get_events_fd, EOPNOTSUPP, of_fd(mlx5dv_vfio_get_events_fd(w->context)));
  CASE(mlx5dv_vfio_process_events, EOPNOTSUPP, mlx5dv_vfio_process_events(w->context));
  CASE(mlx5dv_devx_alloc_msi_vector, EOPNOTSUPP, of(mlx5dv_devx_alloc_msi_vector(w->context)));
  mlx5dv_devx_msi_vector vector = {};
  CASE(mlx5dv_devx_free_msi_vector, EOPNOTSUPP, mlx5dv_devx_free_msi_vector(&vector));
  alignas(8) std::byte in[0x300]{}, out[16]{};
  prm::View<prm::GeneralObjInCmdHdr>(in).set<prm::GeneralObjInCmdHdr::opcode>(static_cast<unsigned>(prm::Opcode::create_eq));
  CASE(mlx5dv_devx_create_eq, EOPNOTSUPP, of(mlx5dv_devx_create_eq(w->context, in, sizeof in, out, sizeof out)));
  mlx5dv_devx_eq eq = {};
  CASE(mlx5dv_devx_destroy_eq, EOPNOTSUPP, mlx5dv_devx_destroy_eq(&eq));
  ibv_cq* cq = ibv_create_cq(w->context, 16, nullptr, nullptr, 0);
  ibv_qp* qp = make_qp(w, IBV_QPT_RC, cq, cq, nullptr);
  CASE(mlx5dv_dci_stream_id_reset, EOPNOTSUPP, mlx5dv_dci_stream_id_reset(qp, 1));
  CHECK(!ibv_destroy_qp(qp) && !ibv_destroy_cq(cq));
}

void rates(World* w, Foreign& foreign) {
  alignas(8) std::byte contents[64] = {};
  const auto pp = [&](ibv_context* c, std::uint32_t kbps, std::uint32_t flags, std::size_t length) {
    store_be32(contents, kbps);
    return mlx5dv_pp_alloc(c, length, contents, flags);
  };
  CASE(mlx5dv_pp_alloc, EOPNOTSUPP, of(pp(w->context, 100, 2, 48)));
  CASE(mlx5dv_pp_alloc, EOPNOTSUPP, of(pp(foreign(), 100, 0, 48)));
  CASE(mlx5dv_pp_alloc, EINVAL, of(pp(w->context, 0, 0, 48)));
  CASE(mlx5dv_pp_alloc, EINVAL, of(pp(w->context, 100, 0, 49)));
  CASE(mlx5dv_pp_alloc, EINVAL, of(pp(w->context, 100, 0, 0)));
  CASE(mlx5dv_pp_alloc, ENOSPC, [&] {
    std::vector<mlx5dv_pp*> all;
    while (mlx5dv_pp* one = pp(w->context, 100, 1, 48)) all.push_back(one);
    const int error = errno;
    for (mlx5dv_pp* one : all) mlx5dv_pp_free(one);
    return error;
  }());
  mlx5dv_sched_attr attr = {};
  mlx5dv_sched_node* root = mlx5dv_sched_node_create(w->context, &attr);
  attr.parent = root;
  mlx5dv_sched_leaf* leaf = mlx5dv_sched_leaf_create(w->context, &attr);
  CHECK(root && leaf);
  CASE(mlx5dv_sched_node_destroy, EINVAL, mlx5dv_sched_node_destroy(root));
  CASE(mlx5dv_sched_node_create, EINVAL, of(mlx5dv_sched_node_create(w->context, nullptr)));
  CASE(mlx5dv_sched_node_create, EOPNOTSUPP, of(mlx5dv_sched_node_create(foreign(), &attr)));
  CASE(mlx5dv_sched_leaf_create, EOPNOTSUPP, of(mlx5dv_sched_leaf_create(foreign(), &attr)));
  mlx5dv_sched_attr wrong = attr;
  CASE(mlx5dv_sched_leaf_create, EINVAL, of(mlx5dv_sched_leaf_create(w->context, nullptr)));
  wrong.parent = nullptr;
  CASE(mlx5dv_sched_leaf_create, EINVAL, of(mlx5dv_sched_leaf_create(w->context, &wrong)));
  wrong.flags = MLX5DV_SCHED_ELEM_ATTR_FLAGS_MAX_AVG_BW;
  CASE(mlx5dv_sched_node_create, EINVAL, of(mlx5dv_sched_node_create(w->context, &wrong)));  // a root has no limit
  wrong = attr;
  wrong.flags = 1u << 5;
  CASE(mlx5dv_sched_node_create, EINVAL, of(mlx5dv_sched_node_create(w->context, &wrong)));
  wrong.flags = MLX5DV_SCHED_ELEM_ATTR_FLAGS_BW_SHARE;
  wrong.bw_share = 101;
  CASE(mlx5dv_sched_node_create, EINVAL, of(mlx5dv_sched_node_create(w->context, &wrong)));
  CASE(mlx5dv_sched_node_create, EAGAIN, [&] {
    std::vector<mlx5dv_sched_node*> all;
    while (mlx5dv_sched_node* one = mlx5dv_sched_node_create(w->context, &attr)) all.push_back(one);
    const int error = errno;
    for (mlx5dv_sched_node* one : all) CHECK(!mlx5dv_sched_node_destroy(one));
    return error;
  }());
  CASE(mlx5dv_sched_leaf_create, EAGAIN, [&] {
    std::vector<mlx5dv_sched_leaf*> all;
    while (mlx5dv_sched_leaf* one = mlx5dv_sched_leaf_create(w->context, &attr)) all.push_back(one);
    const int error = errno;
    for (mlx5dv_sched_leaf* one : all) CHECK(!mlx5dv_sched_leaf_destroy(one));
    return error;
  }());
  attr.flags = MLX5DV_SCHED_ELEM_ATTR_FLAGS_BW_SHARE;
  attr.bw_share = 101;
  CASE(mlx5dv_sched_leaf_modify, EINVAL, mlx5dv_sched_leaf_modify(leaf, &attr));
  attr.comp_mask = 1;
  CASE(mlx5dv_sched_leaf_create, EINVAL, of(mlx5dv_sched_leaf_create(w->context, &attr)));
  CASE(mlx5dv_sched_node_modify, EINVAL, mlx5dv_sched_node_modify(root, &attr));
  CHECK(!mlx5dv_sched_leaf_destroy(leaf) && !mlx5dv_sched_node_destroy(root));
}

}  // namespace

int main() {
  World w = open_devx();
  Foreign foreign;
  device_memory(&w, foreign);
  queues(&w, foreign);
  device(&w, foreign);
  rates(&w, foreign);
  absent(&w, foreign);
  close_world(&w);
  return finish();
}
