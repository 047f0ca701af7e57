// Shared receive queues and address handles.
#include <cstring>

#include "verbs/cmd/request.h"

namespace verbena::verbs {
namespace {

ibv_srq_type type_of(const ibv_srq_init_attr_ex& attr) {
  return attr.comp_mask & IBV_SRQ_INIT_ATTR_TYPE ? attr.srq_type : IBV_SRQT_BASIC;
}

int check(const ibv_srq_init_attr_ex& attr) {
  if (attr.comp_mask >= IBV_SRQ_INIT_ATTR_RESERVED) return EOPNOTSUPP;
  switch (type_of(attr)) {
    case IBV_SRQT_XRC: {
      constexpr std::uint32_t kNeeded = IBV_SRQ_INIT_ATTR_XRCD | IBV_SRQ_INIT_ATTR_CQ;
      return (attr.comp_mask & kNeeded) == kNeeded ? 0 : EINVAL;
    }
    case IBV_SRQT_TM: {
      constexpr std::uint32_t kNeeded = IBV_SRQ_INIT_ATTR_TM | IBV_SRQ_INIT_ATTR_CQ;
      return (attr.comp_mask & kNeeded) == kNeeded && attr.tm_cap.max_num_tags ? 0 : EINVAL;
    }
    case IBV_SRQT_BASIC:
      return 0;
  }
  return EINVAL;
}

template <class Request>
Request legacy_request(const ibv_pd& pd, const Srq& srq, const ibv_srq_init_attr_ex& attr) {
  Request request{};
  request.user_handle = reinterpret_cast<std::uintptr_t>(&srq.srq);
  request.pd_handle = pd.handle;
  request.max_wr = attr.attr.max_wr;
  request.max_sge = attr.attr.max_sge;
  request.srq_limit = attr.attr.srq_limit;
  return request;
}

int create_legacy(Context& context, const ibv_pd& pd, Srq& srq, ibv_srq_init_attr_ex& attr, const Udata* udata,
                  std::uint32_t* number) {
  if (context.imported) return report(EOPNOTSUPP);
  ib_uverbs_create_srq_resp response{};
  int error = 0;
  if (type_of(attr) == IBV_SRQT_BASIC) {
    auto request = legacy_request<ib_uverbs_create_srq>(pd, srq, attr);
    error = legacy(context, IB_USER_VERBS_CMD_CREATE_SRQ, request, response, udata);
  } else {
    auto request = legacy_request<ib_uverbs_create_xsrq>(pd, srq, attr);
    request.srq_type = type_of(attr);
    request.cq_handle = attr.cq->handle;
    if (type_of(attr) == IBV_SRQT_TM)
      request.max_num_tags = attr.tm_cap.max_num_tags;
    else
      request.xrcd_handle = derived<Xrcd>(attr.xrcd)->handle;
    error = legacy(context, IB_USER_VERBS_CMD_CREATE_XSRQ, request, response, udata);
  }
  if (error) return error;
  srq.srq.handle = response.srq_handle;
  attr.attr.max_wr = response.max_wr;
  attr.attr.max_sge = response.max_sge;
  *number = response.srqn;
  return 0;
}

}  // namespace
}  // namespace verbena::verbs

using namespace verbena::verbs;

int verbena_cmd_create_srq(ibv_pd* pd, Srq* srq, ibv_srq_init_attr_ex* attr, const verbena_udata* udata) {
  if (int error = check(*attr)) return report(error);
  Context& ctx = *context_of(pd->context);
  ibv_srq_type type = type_of(*attr);
  std::uint32_t max_wr = 0, max_sge = 0, number = 0;

  verbena_bundle bundle(UVERBS_OBJECT_SRQ, UVERBS_METHOD_SRQ_CREATE);
  if (type == IBV_SRQT_XRC) {
    bundle.in_object(UVERBS_ATTR_CREATE_SRQ_XRCD_HANDLE, derived<Xrcd>(attr->xrcd)->handle);
    bundle.in_object(UVERBS_ATTR_CREATE_SRQ_CQ_HANDLE, attr->cq->handle);
    bundle.out_struct(UVERBS_ATTR_CREATE_SRQ_RESP_SRQ_NUM, number);
  } else if (type == IBV_SRQT_TM) {
    bundle.in_object(UVERBS_ATTR_CREATE_SRQ_CQ_HANDLE, attr->cq->handle);
    bundle.in_u32(UVERBS_ATTR_CREATE_SRQ_MAX_NUM_TAGS, attr->tm_cap.max_num_tags);
  }
  auto handle = bundle.out_object(UVERBS_ATTR_CREATE_SRQ_HANDLE);
  bundle.in_const(UVERBS_ATTR_CREATE_SRQ_TYPE, type);
  bundle.in_u64(UVERBS_ATTR_CREATE_SRQ_USER_HANDLE, reinterpret_cast<std::uintptr_t>(&srq->srq));
  bundle.in_object(UVERBS_ATTR_CREATE_SRQ_PD_HANDLE, pd->handle);
  bundle.in_u32(UVERBS_ATTR_CREATE_SRQ_MAX_WR, attr->attr.max_wr);
  bundle.in_u32(UVERBS_ATTR_CREATE_SRQ_MAX_SGE, attr->attr.max_sge);
  bundle.in_u32(UVERBS_ATTR_CREATE_SRQ_LIMIT, attr->attr.srq_limit);
  bundle.in_fd(UVERBS_ATTR_CREATE_SRQ_EVENT_FD, pd->context->async_fd);
  bundle.out_struct(UVERBS_ATTR_CREATE_SRQ_RESP_MAX_WR, max_wr);
  bundle.out_struct(UVERBS_ATTR_CREATE_SRQ_RESP_MAX_SGE, max_sge);
  add_udata(bundle, udata);

  int error = 0;
  switch (try_native(ctx, Native::create_srq, bundle, &error)) {
    case Outcome::done:
      srq->srq.handle = bundle.object(handle);
      attr->attr.max_wr = max_wr;
      attr->attr.max_sge = max_sge;
      break;
    case Outcome::failed:
      return error;
    case Outcome::legacy:
      if ((error = create_legacy(ctx, *pd, *srq, *attr, udata, &number))) return error;
  }
  srq->srq.context = pd->context;
  srq->srq.srq_context = attr->srq_context;
  srq->srq.pd = pd;
  srq->srq.events_completed = 0;
  pthread_mutex_init(&srq->srq.mutex, nullptr);
  pthread_cond_init(&srq->srq.cond, nullptr);
  srq->type = type;
  srq->srq_num = number;
  srq->xrcd = type == IBV_SRQT_XRC ? derived<Xrcd>(attr->xrcd) : nullptr;
  srq->cq = attr->comp_mask & IBV_SRQ_INIT_ATTR_CQ ? attr->cq : nullptr;
  return 0;
}

int verbena_cmd_modify_srq(ibv_srq* srq, const ibv_srq_attr* attr, int mask, const verbena_udata* udata) {
  ib_uverbs_modify_srq request{};
  request.srq_handle = srq->handle;
  request.attr_mask = static_cast<std::uint32_t>(mask);
  request.max_wr = attr->max_wr;
  request.srq_limit = attr->srq_limit;
  return legacy(*context_of(srq->context), IB_USER_VERBS_CMD_MODIFY_SRQ, request, udata);
}

int verbena_cmd_query_srq(ibv_srq* srq, ibv_srq_attr* attr) {
  ib_uverbs_query_srq request{};
  request.srq_handle = srq->handle;
  ib_uverbs_query_srq_resp response{};
  int error = legacy(*context_of(srq->context), IB_USER_VERBS_CMD_QUERY_SRQ, request, response);
  if (error) return error;
  *attr = {.max_wr = response.max_wr, .max_sge = response.max_sge, .srq_limit = response.srq_limit};
  return 0;
}

int verbena_cmd_destroy_srq(ibv_srq* srq) {
  Context& ctx = *context_of(srq->context);
  ib_uverbs_destroy_srq_resp response{};
  verbena_bundle bundle(UVERBS_OBJECT_SRQ, UVERBS_METHOD_SRQ_DESTROY);
  bundle.out_struct(UVERBS_ATTR_DESTROY_SRQ_RESP, response);
  bundle.in_object(UVERBS_ATTR_DESTROY_SRQ_HANDLE, srq->handle);
  int error = 0;
  if (try_native(ctx, Native::destroy_srq, bundle, &error) == Outcome::legacy) {
    ib_uverbs_destroy_srq request{};
    request.srq_handle = srq->handle;
    error = legacy(ctx, IB_USER_VERBS_CMD_DESTROY_SRQ, request, response);
  }
  if (error) return treat_as_destroyed(error) ? 0 : error;
  wait_for_acks(srq->mutex, srq->cond, [&] { return srq->events_completed == response.events_reported; });
  return 0;
}

// ---- address handles ----

int verbena_cmd_create_ah(ibv_pd* pd, ibv_ah* ah, const ibv_ah_attr* attr, const verbena_udata* udata) {
  ib_uverbs_create_ah request{};
  request.user_handle = reinterpret_cast<std::uintptr_t>(ah);
  request.pd_handle = pd->handle;
  std::memcpy(request.attr.grh.dgid, attr->grh.dgid.raw, sizeof request.attr.grh.dgid);
  request.attr.grh.flow_label = attr->grh.flow_label;
  request.attr.grh.sgid_index = attr->grh.sgid_index;
  request.attr.grh.hop_limit = attr->grh.hop_limit;
  request.attr.grh.traffic_class = attr->grh.traffic_class;
  request.attr.dlid = attr->dlid;
  request.attr.sl = attr->sl;
  request.attr.src_path_bits = attr->src_path_bits;
  request.attr.static_rate = attr->static_rate;
  request.attr.is_global = attr->is_global;
  request.attr.port_num = attr->port_num;
  ib_uverbs_create_ah_resp response{};
  if (int error = legacy(*context_of(pd->context), IB_USER_VERBS_CMD_CREATE_AH, request, response, udata)) return error;
  ah->handle = response.ah_handle;
  ah->context = pd->context;
  ah->pd = pd;
  return 0;
}

int verbena_cmd_destroy_ah(ibv_ah* ah) {
  return destroy_by_handle(*context_of(ah->context), Native::destroy_ah, UVERBS_OBJECT_AH, UVERBS_METHOD_AH_DESTROY,
                           UVERBS_ATTR_DESTROY_AH_HANDLE, ah->handle, IB_USER_VERBS_CMD_DESTROY_AH,
                           ib_uverbs_destroy_ah{.ah_handle = ah->handle});
}
