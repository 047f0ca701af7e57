// Work queues, indirection tables and XRC domains.
#include <cstring>
#include <vector>

#include "verbs/cmd/request.h"

using namespace verbena::verbs;

int verbena_cmd_create_wq(ibv_context* context, ibv_wq_init_attr* attr, ibv_wq* wq, const verbena_udata* udata) {
  if (attr->comp_mask >= IBV_WQ_INIT_ATTR_RESERVED) return report(EINVAL);
  Context& ctx = *context_of(context);
  std::uint32_t flags = attr->comp_mask & IBV_WQ_INIT_ATTR_FLAGS ? attr->create_flags : 0;
  if (flags & ~static_cast<std::uint32_t>(IBV_WQ_FLAGS_RESERVED - 1)) return report(EOPNOTSUPP);
  std::uint32_t max_wr = 0, max_sge = 0, number = 0;

  verbena_bundle bundle(UVERBS_OBJECT_WQ, UVERBS_METHOD_WQ_CREATE);
  auto handle = bundle.out_object(UVERBS_ATTR_CREATE_WQ_HANDLE);
  bundle.in_u64(UVERBS_ATTR_CREATE_WQ_USER_HANDLE, reinterpret_cast<std::uintptr_t>(wq));
  bundle.in_object(UVERBS_ATTR_CREATE_WQ_PD_HANDLE, attr->pd->handle);
  bundle.in_object(UVERBS_ATTR_CREATE_WQ_CQ_HANDLE, attr->cq->handle);
  bundle.in_const(UVERBS_ATTR_CREATE_WQ_TYPE, attr->wq_type);
  bundle.in_u32(UVERBS_ATTR_CREATE_WQ_MAX_WR, attr->max_wr);
  bundle.in_u32(UVERBS_ATTR_CREATE_WQ_MAX_SGE, attr->max_sge);
  bundle.in_fd(UVERBS_ATTR_CREATE_WQ_EVENT_FD, context->async_fd);
  bundle.in_u32(UVERBS_ATTR_CREATE_WQ_FLAGS, flags);
  bundle.out_struct(UVERBS_ATTR_CREATE_WQ_RESP_MAX_WR, max_wr);
  bundle.out_struct(UVERBS_ATTR_CREATE_WQ_RESP_MAX_SGE, max_sge);
  bundle.out_struct(UVERBS_ATTR_CREATE_WQ_RESP_WQ_NUM, number);
  add_udata(bundle, udata);

  int error = 0;
  Outcome outcome = try_native(ctx, Native::create_wq, bundle, &error);
  if (outcome == Outcome::failed) return error;
  if (outcome == Outcome::done) {
    wq->handle = bundle.object(handle);
  } else {
    if (ctx.imported) return report(EOPNOTSUPP);
    ib_uverbs_ex_create_wq request{};
    request.user_handle = reinterpret_cast<std::uintptr_t>(wq);
    request.pd_handle = attr->pd->handle;
    request.cq_handle = attr->cq->handle;
    request.wq_type = attr->wq_type;
    request.max_wr = attr->max_wr;
    request.max_sge = attr->max_sge;
    request.create_flags = flags;
    ib_uverbs_ex_create_wq_resp response{};
    error = legacy(ctx, extended(IB_USER_VERBS_EX_CMD_CREATE_WQ), request, response, udata);
    if (error) return error;
    wq->handle = response.wq_handle;
    max_wr = response.max_wr;
    max_sge = response.max_sge;
    number = response.wqn;
  }
  attr->max_wr = max_wr;
  attr->max_sge = max_sge;
  wq->wq_num = number;
  wq->context = context;
  wq->wq_context = attr->wq_context;
  wq->pd = attr->pd;
  wq->cq = attr->cq;
  wq->wq_type = attr->wq_type;
  wq->state = IBV_WQS_RESET;
  wq->events_completed = 0;
  wq->comp_mask = 0;
  pthread_mutex_init(&wq->mutex, nullptr);
  pthread_cond_init(&wq->cond, nullptr);
  return 0;
}

int verbena_cmd_modify_wq(ibv_wq* wq, const ibv_wq_attr* attr, const verbena_udata* udata) {
  if (attr->attr_mask >= IBV_WQ_ATTR_RESERVED) return report(EINVAL);
  ib_uverbs_ex_modify_wq request{};
  request.attr_mask = attr->attr_mask;
  request.wq_handle = wq->handle;
  request.wq_state = attr->wq_state;
  request.curr_wq_state = attr->curr_wq_state;
  if (attr->attr_mask & IBV_WQ_ATTR_FLAGS) {
    if (attr->flags_mask & ~static_cast<std::uint32_t>(IBV_WQ_FLAGS_RESERVED - 1)) return report(EOPNOTSUPP);
    request.flags = attr->flags;
    request.flags_mask = attr->flags_mask;
  }
  int error = legacy(*context_of(wq->context), extended(IB_USER_VERBS_EX_CMD_MODIFY_WQ), request, udata);
  if (!error && (attr->attr_mask & IBV_WQ_ATTR_STATE)) wq->state = attr->wq_state;
  return error;
}

int verbena_cmd_destroy_wq(ibv_wq* wq) {
  Context& ctx = *context_of(wq->context);
  ib_uverbs_ex_destroy_wq_resp response{};
  verbena_bundle bundle(UVERBS_OBJECT_WQ, UVERBS_METHOD_WQ_DESTROY);
  bundle.out_struct(UVERBS_ATTR_DESTROY_WQ_RESP, response.events_reported);
  bundle.in_object(UVERBS_ATTR_DESTROY_WQ_HANDLE, wq->handle);
  int error = 0;
  if (try_native(ctx, Native::destroy_wq, bundle, &error) == Outcome::legacy) {
    ib_uverbs_ex_destroy_wq request{};
    request.wq_handle = wq->handle;
    error = legacy(ctx, extended(IB_USER_VERBS_EX_CMD_DESTROY_WQ), request, response);
  }
  if (error) return treat_as_destroyed(error) ? 0 : error;
  wait_for_acks(wq->mutex, wq->cond, [&] { return wq->events_completed == response.events_reported; });
  return 0;
}

int verbena_cmd_create_rwq_ind_table(ibv_context* context, const ibv_rwq_ind_table_init_attr* attr,
                                     ibv_rwq_ind_table* table, const verbena_udata* udata) {
  if (attr->comp_mask >= IBV_CREATE_IND_TABLE_RESERVED || attr->log_ind_tbl_size > 15) return report(EINVAL);
  std::size_t entries = std::size_t{1} << attr->log_ind_tbl_size;
  std::size_t bytes = sizeof(ib_uverbs_ex_create_rwq_ind_table) + entries * sizeof(std::uint32_t);
  bytes = (bytes + 7) / 8 * 8;  // extended commands come in units of 8 bytes
  std::vector<std::uint64_t> buffer(bytes / 8);
  auto* request = reinterpret_cast<ib_uverbs_ex_create_rwq_ind_table*>(buffer.data());
  request->log_ind_tbl_size = attr->log_ind_tbl_size;
  for (std::size_t i = 0; i < entries; ++i) request->wq_handles[i] = attr->ind_tbl[i]->handle;
  ib_uverbs_ex_create_rwq_ind_table_resp response{};
  int error = verbena_write(context_of(context), extended(IB_USER_VERBS_EX_CMD_CREATE_RWQ_IND_TBL), buffer.data(),
                            bytes, &response, sizeof response, udata);
  if (error) return error;
  table->context = context;
  table->ind_tbl_handle = static_cast<int>(response.ind_tbl_handle);
  table->ind_tbl_num = static_cast<int>(response.ind_tbl_num);
  return 0;
}

int verbena_cmd_destroy_rwq_ind_table(ibv_rwq_ind_table* table) {
  auto handle = static_cast<std::uint32_t>(table->ind_tbl_handle);
  return destroy_by_handle(*context_of(table->context), Native::destroy_rwq_ind_table, UVERBS_OBJECT_RWQ_IND_TBL,
                           UVERBS_METHOD_RWQ_IND_TBL_DESTROY, UVERBS_ATTR_DESTROY_RWQ_IND_TBL_HANDLE, handle,
                           extended(IB_USER_VERBS_EX_CMD_DESTROY_RWQ_IND_TBL),
                           ib_uverbs_ex_destroy_rwq_ind_table{.ind_tbl_handle = handle});
}

// ---- XRC domains ----

int verbena_cmd_open_xrcd(ibv_context* context, Xrcd* xrcd, const ibv_xrcd_init_attr* attr) {
  constexpr std::uint32_t kNeeded = IBV_XRCD_INIT_ATTR_FD | IBV_XRCD_INIT_ATTR_OFLAGS;
  if (attr->comp_mask >= IBV_XRCD_INIT_ATTR_RESERVED) return report(EOPNOTSUPP);
  if ((attr->comp_mask & kNeeded) != kNeeded) return report(EINVAL);
  ib_uverbs_open_xrcd request{};
  request.fd = static_cast<std::uint32_t>(attr->fd);
  request.oflags = static_cast<std::uint32_t>(attr->oflags);
  ib_uverbs_open_xrcd_resp response{};
  if (int error = legacy(*context_of(context), IB_USER_VERBS_CMD_OPEN_XRCD, request, response)) return error;
  xrcd->xrcd.context = context;
  xrcd->handle = response.xrcd_handle;
  return 0;
}

int verbena_cmd_close_xrcd(Xrcd* xrcd) {
  return destroy_by_handle(*context_of(xrcd->xrcd.context), Native::destroy_xrcd, UVERBS_OBJECT_XRCD,
                           UVERBS_METHOD_XRCD_DESTROY, UVERBS_ATTR_DESTROY_XRCD_HANDLE, xrcd->handle,
                           IB_USER_VERBS_CMD_CLOSE_XRCD, ib_uverbs_close_xrcd{.xrcd_handle = xrcd->handle});
}
