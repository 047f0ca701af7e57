// Completion queues.
#include "verbs/cmd/request.h"

namespace verbena::verbs {
namespace {

std::uint32_t creation_flags(const ibv_cq_init_attr_ex& attr) {
  constexpr std::uint64_t kTimestamps =
      IBV_WC_EX_WITH_COMPLETION_TIMESTAMP | IBV_WC_EX_WITH_COMPLETION_TIMESTAMP_WALLCLOCK;
  std::uint32_t flags = 0;
  if (attr.wc_flags & kTimestamps) flags |= IB_UVERBS_CQ_FLAGS_TIMESTAMP_COMPLETION;
  if ((attr.comp_mask & IBV_CQ_INIT_ATTR_MASK_FLAGS) && (attr.flags & IBV_CREATE_CQ_ATTR_IGNORE_OVERRUN))
    flags |= IB_UVERBS_CQ_FLAGS_IGNORE_OVERRUN;
  return flags;
}

// ib_uverbs_create_cq or its extended form; the members have the same names.
template <class Request>
Request legacy_request(const ibv_cq_init_attr_ex& attr, const ibv_cq& cq) {
  Request request{};
  request.user_handle = reinterpret_cast<std::uintptr_t>(&cq);
  request.cqe = attr.cqe;
  request.comp_vector = attr.comp_vector;
  request.comp_channel = attr.channel ? attr.channel->fd : -1;
  return request;
}

int create_legacy(Context& context, const ibv_cq_init_attr_ex& attr, std::uint32_t flags, ibv_cq& cq,
                  const Udata* udata) {
  if (context.imported) return report(EOPNOTSUPP);
  ib_uverbs_ex_create_cq_resp response{};
  int error = 0;
  // A kernel without the extended command cannot ignore overruns, but it timestamps every completion anyway.
  if (flags & ~IB_UVERBS_CQ_FLAGS_TIMESTAMP_COMPLETION) {
    auto request = legacy_request<ib_uverbs_ex_create_cq>(attr, cq);
    request.flags = flags;
    error = legacy(context, extended(IB_USER_VERBS_EX_CMD_CREATE_CQ), request, response, udata);
  } else {
    auto request = legacy_request<ib_uverbs_create_cq>(attr, cq);
    error = legacy(context, IB_USER_VERBS_CMD_CREATE_CQ, request, response.base, udata);
  }
  if (error) return error;
  cq.handle = response.base.cq_handle;
  cq.cqe = static_cast<int>(response.base.cqe);
  return 0;
}

}  // namespace
}  // namespace verbena::verbs

using namespace verbena::verbs;

int verbena_cmd_create_cq(ibv_context* context, const ibv_cq_init_attr_ex* attr, Cq* cq, const verbena_udata* udata) {
  if (attr->comp_mask & ~static_cast<std::uint32_t>(IBV_CQ_INIT_ATTR_MASK_FLAGS | IBV_CQ_INIT_ATTR_MASK_PD))
    return report(EOPNOTSUPP);
  Context& ctx = *context_of(context);
  std::uint32_t flags = creation_flags(*attr);
  std::uint32_t cqe = 0;
  cq->cq.context = context;

  verbena_bundle bundle(UVERBS_OBJECT_CQ, UVERBS_METHOD_CQ_CREATE);
  auto handle = bundle.out_object(UVERBS_ATTR_CREATE_CQ_HANDLE);
  bundle.out_struct(UVERBS_ATTR_CREATE_CQ_RESP_CQE, cqe);
  bundle.in_u32(UVERBS_ATTR_CREATE_CQ_CQE, attr->cqe);
  bundle.in_u64(UVERBS_ATTR_CREATE_CQ_USER_HANDLE, reinterpret_cast<std::uintptr_t>(&cq->cq));
  if (attr->channel) bundle.in_fd(UVERBS_ATTR_CREATE_CQ_COMP_CHANNEL, attr->channel->fd);
  bundle.in_u32(UVERBS_ATTR_CREATE_CQ_COMP_VECTOR, attr->comp_vector);
  auto event_fd = bundle.in_fd(UVERBS_ATTR_CREATE_CQ_EVENT_FD, context->async_fd);
  // A kernel that does not know the attribute still has the one event file of the context.
  if (!ctx.imported) bundle.optional(event_fd);
  if (flags) bundle.in_u32(UVERBS_ATTR_CREATE_CQ_FLAGS, flags);
  add_udata(bundle, udata);

  int error = 0;
  switch (try_native(ctx, Native::create_cq, bundle, &error)) {
    case Outcome::done:
      cq->cq.handle = bundle.object(handle);
      cq->cq.cqe = static_cast<int>(cqe);
      return 0;
    case Outcome::failed:
      return error;
    case Outcome::legacy:
      break;
  }
  return create_legacy(ctx, *attr, flags, cq->cq, udata);
}

int verbena_cmd_resize_cq(ibv_cq* cq, int cqe, const verbena_udata* udata) {
  ib_uverbs_resize_cq request{};
  request.cq_handle = cq->handle;
  request.cqe = static_cast<std::uint32_t>(cqe);
  ib_uverbs_resize_cq_resp response{};
  int error = legacy(*context_of(cq->context), IB_USER_VERBS_CMD_RESIZE_CQ, request, response, udata);
  if (error) return error;
  cq->cqe = static_cast<int>(response.cqe);
  return 0;
}

int verbena_cmd_modify_cq(ibv_cq* cq, const ibv_modify_cq_attr* attr) {
  if (attr->attr_mask >= IBV_CQ_ATTR_RESERVED) return report(EINVAL);
  ib_uverbs_ex_modify_cq request{};
  request.cq_handle = cq->handle;
  request.attr_mask = attr->attr_mask;
  request.attr.cq_count = attr->moderate.cq_count;
  request.attr.cq_period = attr->moderate.cq_period;
  return legacy(*context_of(cq->context), extended(IB_USER_VERBS_EX_CMD_MODIFY_CQ), request);
}

int verbena_cmd_destroy_cq(ibv_cq* cq) {
  Context& ctx = *context_of(cq->context);
  ib_uverbs_destroy_cq_resp response{};
  verbena_bundle bundle(UVERBS_OBJECT_CQ, UVERBS_METHOD_CQ_DESTROY);
  bundle.out_struct(UVERBS_ATTR_DESTROY_CQ_RESP, response);
  bundle.in_object(UVERBS_ATTR_DESTROY_CQ_HANDLE, cq->handle);
  int error = 0;
  if (try_native(ctx, Native::destroy_cq, bundle, &error) == Outcome::legacy) {
    ib_uverbs_destroy_cq request{};
    request.cq_handle = cq->handle;
    error = legacy(ctx, IB_USER_VERBS_CMD_DESTROY_CQ, request, response);
  }
  if (error) return treat_as_destroyed(error) ? 0 : error;
  wait_for_acks(cq->mutex, cq->cond, [&] {
    return cq->comp_events_completed == response.comp_events_reported &&
           cq->async_events_completed == response.async_events_reported;
  });
  return 0;
}
