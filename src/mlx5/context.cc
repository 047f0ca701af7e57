#include "mlx5/context.h"

#include <rdma/mlx5_user_ioctl_cmds.h>

#include <new>

#include "mlx5/environment.h"
#include "mlx5/heap.h"
#include "mlx5/ops.h"
#include "mlx5/uar.h"
#include "verbs/newer.h"

namespace verbena::mlx5 {

namespace {

constexpr std::uint32_t kNothingPending = 0;
constexpr std::uint8_t kEthInlineHead = 18;  // addresses, VLAN tag, type
constexpr std::uint8_t kCqeVersion1 = 1;  // CQEs carry the user index

void free_context(verbs::Context* base) {
  auto* context = static_cast<Context*>(base);
  context->reserved_qpns.reset();
  release_uars(context);
  unmap_clocks(context);
  context->db_pages.clear(context);
  verbena_context_uninit(context);
  delete context;
}

constexpr verbs::Ops kOps = {
    .free_context = free_context,
    .query_device_ex = query_device_ex,
    .query_port = query_port,
    .query_rt_values = query_rt_values,
    .alloc_pd = alloc_pd,
    .dealloc_pd = dealloc_pd,
    .alloc_td = alloc_td,
    .dealloc_td = dealloc_td,
    .alloc_parent_domain = alloc_parent_domain,
    .reg_mr = reg_mr,
    .reg_dmabuf_mr = reg_dmabuf_mr,
    .rereg_mr = rereg_mr,
    .dereg_mr = dereg_mr,
    .advise_mr = advise_mr,
    .alloc_null_mr = alloc_null_mr,
    .alloc_mw = alloc_mw,
    .dealloc_mw = dealloc_mw,
    .bind_mw = bind_mw,
    .alloc_dm = alloc_dm,
    .free_dm = free_dm,
    .reg_dm_mr = reg_dm_mr,
    .import_dm = import_dm,
    .unimport_dm = unimport_dm,
    .dm_export_dmabuf_fd = export_dm,
    .import_mr = import_mr,
    .unimport_mr = unimport_mr,
    .import_pd = import_pd,
    .unimport_pd = unimport_pd,
    .create_cq = create_cq,
    .create_cq_ex = create_cq_ex,
    .poll_cq = poll_cq,
    .req_notify_cq = req_notify_cq,
    .cq_event = cq_event,
    .resize_cq = resize_cq,
    .modify_cq = modify_cq,
    .destroy_cq = destroy_cq,
    .create_srq = create_srq,
    .create_srq_ex = create_srq_ex,
    .modify_srq = modify_srq,
    .query_srq = query_srq,
    .get_srq_num = get_srq_num,
    .destroy_srq = destroy_srq,
    .post_srq_recv = post_srq_recv,
    .create_qp = create_qp,
    .create_qp_ex = create_qp_ex,
    .open_qp = open_qp,
    .modify_qp = modify_qp,
    .query_qp = query_qp,
    .destroy_qp = destroy_qp,
    .post_send = post_send,
    .post_recv = post_recv,
    .modify_qp_rate_limit = modify_qp_rate_limit,
    .query_qp_data_in_order = query_qp_data_in_order,
    .query_ece = query_ece,
    .set_ece = set_ece,
    .attach_mcast = attach_mcast,
    .detach_mcast = detach_mcast,
    .create_ah = create_ah,
    .destroy_ah = destroy_ah,
    .open_xrcd = open_xrcd,
    .close_xrcd = close_xrcd,
    .create_wq = create_wq,
    .modify_wq = modify_wq,
    .destroy_wq = destroy_wq,
    .create_rwq_ind_table = create_rwq_ind_table,
    .destroy_rwq_ind_table = destroy_rwq_ind_table,
    .create_flow = create_flow,
    .destroy_flow = destroy_flow,
    .create_counters = create_counters,
    .destroy_counters = destroy_counters,
    .read_counters = read_counters,
    .attach_counters_point_flow = attach_counters_point_flow,
};

Context* make_context(verbs::Device* device, int cmd_fd) {
  auto* context = new (std::nothrow) Context();
  if (!context) {
    device->backend->close(cmd_fd);
    return fail_null(ENOMEM);
  }
  verbena_context_init(context, device, cmd_fd, RDMA_DRIVER_MLX5);
  context->single_threaded = environment::single_threaded();
  context->prefer_blueflame = environment::prefer_blueflame();
  context->no_blueflame = environment::shut_up_blueflame();
  context->heap = &Heap::of(device->backend, cmd_fd);
  context->pending = &kNothingPending;
  return context;
}

verbs::Context* discard(Context* context, int error) {
  release_uars(context);
  unmap_clocks(context);
  verbena_context_uninit(context);
  delete context;
  errno = error ? error : EIO;
  return nullptr;
}

int read_bfreg_counts(Context* context) {
  const int total = environment::total_bfregs();
  if (total < 0) return -total;
  const int low_latency = environment::low_latency_bfregs(total);
  if (low_latency < 0) return -low_latency;
  context->total_bfregs = static_cast<std::uint32_t>(total);
  context->low_latency_bfregs = static_cast<std::uint32_t>(low_latency);
  return 0;
}

int get_context(Context* context, bool devx, const ibv_fd_arr* rights) {
  const mlx5_ib_alloc_ucontext_req_v2 request = {
      .total_num_bfregs = context->total_bfregs,
      .num_low_latency_bfregs = context->low_latency_bfregs,
      .flags = devx ? static_cast<__u32>(MLX5_IB_ALLOC_UCTX_DEVX) : 0,
      .max_cqe_version = kCqeVersion1,
      .lib_caps = MLX5_LIB_CAP_4K_UAR | MLX5_LIB_CAP_DYN_UAR,
  };
  context->caps = {};
  const verbs::Udata udata{&request, sizeof request, &context->caps, sizeof context->caps};
  return verbena_cmd_get_context_with(context, &udata, rights);
}

// What both ways of opening share: everything after the kernel's answer.
int set_up(Context* context, bool imported) {
  const auto& caps = context->caps;
  if (caps.cqe_version != kCqeVersion1) return ENOTSUP;  // kernels before 4.4
  context->ece = !!(caps.comp_mask & MLX5_IB_ALLOC_UCONTEXT_RESP_MASK_ECE);
  context->sqd2rts = !!(caps.comp_mask & MLX5_IB_ALLOC_UCONTEXT_RESP_MASK_SQD2RTS);
  context->real_time_ts = !!(caps.comp_mask & MLX5_IB_ALLOC_UCONTEXT_RESP_MASK_REAL_TIME_TS);
  // A kernel that does not say is one whose devices need the head of every frame in its WQE.
  context->eth_inline = caps.eth_min_inline == MLX5_USER_INLINE_MODE_NONE ? 0 : kEthInlineHead;
  context->static_uars = caps.tot_bfregs != 0;
  if (!context->qps.init()) return errno;
  if (context->static_uars) {
    if (imported) return EINVAL;
    if (!setup_static_uars(context)) return errno;
  }
  map_clocks(context);
  verbena_set_ops(context, &kOps);
  read_capabilities(context);
  for (std::uint8_t port = 0; port < context->link_layer.size() && port < caps.num_ports; ++port) {
    ibv_port_attr attr = {};
    if (query_port(context->ibv(), port + 1, &attr)) continue;
    context->link_layer[port] = attr.link_layer;
    context->port_flags[port] = attr.flags;
  }
  setup_nc_uar(context);
  const uverbs::Backend* backend = context->backend;
  if (backend->pending)
    if (const std::uint32_t* word = backend->pending(context->ibv()->cmd_fd)) context->pending = word;
  return 0;
}

}  // namespace

verbs::Context* alloc_context(verbs::Device* device, int cmd_fd, void* private_data) {
  const auto* attr = static_cast<const mlx5dv_context_attr*>(private_data);
  Context* context = make_context(device, cmd_fd);
  if (!context) return nullptr;
  if (attr && ((attr->comp_mask & ~std::uint64_t{MLX5DV_CONTEXT_ATTR_MASK_FD_ARRAY}) ||
               (attr->flags & ~static_cast<std::uint32_t>(MLX5DV_CONTEXT_FLAGS_DEVX))))
    return discard(context, EINVAL);
  const ibv_fd_arr* rights = attr && attr->comp_mask ? attr->fds : nullptr;
  if (int error = read_bfreg_counts(context)) return discard(context, error);
  // DEVX is always wanted, but only insisted on where the program asked for it.
  const bool insist = attr && attr->flags;
  int error = get_context(context, true, rights);
  if (error && !insist) error = get_context(context, false, rights);
  if (error) return discard(context, error);
  if (int failed = set_up(context, false)) return discard(context, failed);
  return context;
}

verbs::Context* import_context(verbs::Device* device, int cmd_fd) {
  Context* context = make_context(device, cmd_fd);
  if (!context) return nullptr;
  if (int error = read_bfreg_counts(context)) return discard(context, error);
  uverbs::Bundle bundle(UVERBS_OBJECT_DEVICE, UVERBS_METHOD_QUERY_CONTEXT);
  bundle.out_struct(MLX5_IB_ATTR_QUERY_CONTEXT_RESP_UCTX, context->caps);
  if (int error = verbena_cmd_query_context(context, &bundle)) return discard(context, error);
  if (int failed = set_up(context, true)) return discard(context, failed);
  return context;
}

}  // namespace verbena::mlx5
