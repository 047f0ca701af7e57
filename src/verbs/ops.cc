// Defaults for verbs a provider lacks, and the function tables that programs' inline verbs look into.
#include "verbs/internal.h"

#undef ibv_query_port

#define VERBENA_OPS(X)                                                                                                \
  X(free_context)                                                                                                     \
  X(query_device_ex)                                                                                                  \
  X(query_port) X(query_rt_values) X(async_event) X(alloc_pd) X(dealloc_pd) X(alloc_td) X(dealloc_td)                 \
      X(alloc_parent_domain) X(reg_mr) X(reg_dmabuf_mr) X(rereg_mr) X(dereg_mr) X(advise_mr) X(alloc_null_mr)         \
          X(alloc_mw) X(dealloc_mw) X(bind_mw) X(alloc_dm) X(free_dm) X(reg_dm_mr) X(import_dm) X(unimport_dm) X(dm_export_dmabuf_fd)  \
              X(import_mr) X(unimport_mr) X(import_pd) X(unimport_pd) X(create_cq) X(create_cq_ex) X(poll_cq)         \
                  X(req_notify_cq) X(cq_event) X(resize_cq) X(modify_cq) X(destroy_cq) X(create_srq) X(create_srq_ex) \
                      X(modify_srq) X(query_srq) X(get_srq_num) X(destroy_srq) X(post_srq_recv) X(post_srq_ops)       \
                          X(create_qp) X(create_qp_ex) X(open_qp) X(modify_qp) X(query_qp) X(destroy_qp) X(post_send) \
                              X(post_recv) X(modify_qp_rate_limit) X(query_qp_data_in_order) X(query_ece) X(set_ece)  \
                                  X(attach_mcast) X(detach_mcast) X(create_ah) X(destroy_ah) X(open_xrcd)             \
                                      X(close_xrcd) X(create_wq) X(modify_wq) X(destroy_wq) X(create_rwq_ind_table)   \
                                          X(destroy_rwq_ind_table) X(create_flow) X(destroy_flow)                     \
                                              X(create_flow_action_esp) X(modify_flow_action_esp)                     \
                                                  X(destroy_flow_action) X(create_counters) X(destroy_counters)       \
                                                      X(read_counters) X(attach_counters_point_flow)

namespace verbena::verbs {
namespace {

// The answer of a verb that nobody implements, by its result type.
template <class Function>
struct Unsupported;
template <class T, class... Args>
struct Unsupported<T* (*)(Args...)> {
  static T* call(Args...) { return refuse<T>(EOPNOTSUPP); }
};
template <class... Args>
struct Unsupported<int (*)(Args...)> {
  static int call(Args...) { return report(EOPNOTSUPP); }
};
template <class... Args>
struct Unsupported<void (*)(Args...)> {
  static void call(Args...) {}
};

Ops make_defaults() {
  Ops table;
#define X(op) table.op = Unsupported<decltype(Ops::op)>::call;
  VERBENA_OPS(X)
#undef X
  table.poll_cq = [](ibv_cq*, int, ibv_wc*) { return -report(EOPNOTSUPP); };  // a positive result counts completions
  table.dm_export_dmabuf_fd = [](ibv_dm*) { return report(EOPNOTSUPP), -1; };
  table.query_qp_data_in_order = [](ibv_qp*, ibv_wr_opcode, std::uint32_t) { return 0; };
  table.get_srq_num = [](ibv_srq* srq, std::uint32_t* number) {
    const Srq* own = derived<Srq>(srq);
    if (own->type != IBV_SRQT_XRC) return report(EOPNOTSUPP);
    *number = own->srq_num;
    return 0;
  };
  return table;
}

}  // namespace

const Ops& default_ops() {
  static const Ops table = make_defaults();
  return table;
}

void publish_ops(Context& context) {
  const Ops& o = context.ops;
  ibv_context_ops& base = context.verbs.context.ops;
  base._compat_query_device = ibv_query_device;
  base._compat_query_port = ibv_query_port;
  base.alloc_mw = o.alloc_mw;
  base.bind_mw = o.bind_mw;
  base.dealloc_mw = o.dealloc_mw;
  base.poll_cq = o.poll_cq;
  base.req_notify_cq = o.req_notify_cq;
  base.post_srq_recv = o.post_srq_recv;
  base.post_send = o.post_send;
  base.post_recv = o.post_recv;

  verbs_context& ext = context.verbs;
  ext.query_port = query_port_sized;
  ext.advise_mr = o.advise_mr;
  ext.alloc_null_mr = o.alloc_null_mr;
  ext.read_counters = o.read_counters;
  ext.attach_counters_point_flow = o.attach_counters_point_flow;
  ext.create_counters = o.create_counters;
  ext.destroy_counters = o.destroy_counters;
  ext.reg_dm_mr = o.reg_dm_mr;
  ext.alloc_dm = o.alloc_dm;
  ext.free_dm = o.free_dm;
  ext.modify_flow_action_esp = o.modify_flow_action_esp;
  ext.destroy_flow_action = o.destroy_flow_action;
  ext.create_flow_action_esp = o.create_flow_action_esp;
  ext.modify_qp_rate_limit = o.modify_qp_rate_limit;
  ext.alloc_parent_domain = o.alloc_parent_domain;
  ext.dealloc_td = o.dealloc_td;
  ext.alloc_td = o.alloc_td;
  ext.modify_cq = o.modify_cq;
  ext.post_srq_ops = o.post_srq_ops;
  ext.destroy_rwq_ind_table = o.destroy_rwq_ind_table;
  ext.create_rwq_ind_table = o.create_rwq_ind_table;
  ext.destroy_wq = o.destroy_wq;
  ext.modify_wq = o.modify_wq;
  ext.create_wq = o.create_wq;
  ext.query_rt_values = o.query_rt_values;
  ext.create_cq_ex = create_cq_ex_checked;
  ext.query_device_ex = o.query_device_ex;
  ext.ibv_destroy_flow = o.destroy_flow;
  ext.ibv_create_flow = o.create_flow;
  // Programs built against libibverbs 1.1.8 look for the two steering verbs here.
  ext.ABI_placeholder1 = reinterpret_cast<void (*)()>(o.create_flow);
  ext.ABI_placeholder2 = reinterpret_cast<void (*)()>(o.destroy_flow);
  ext.open_qp = o.open_qp;
  ext.create_qp_ex = o.create_qp_ex;
  ext.get_srq_num = o.get_srq_num;
  ext.create_srq_ex = o.create_srq_ex;
  ext.open_xrcd = o.open_xrcd;
  ext.close_xrcd = o.close_xrcd;
}

}  // namespace verbena::verbs

void verbena_set_ops(verbena_context* context, const verbena::verbs::Ops* ops) {
#define X(op) \
  if (ops->op) context->ops.op = ops->op;
  VERBENA_OPS(X)
#undef X
  verbena::verbs::publish_ops(*context);
}
