// Creating, opening and destroying queue pairs; multicast groups.
#include <cstring>

#include "support/c_enum.h"
#include "verbs/cmd/request.h"

namespace verbena::verbs {
namespace {

constexpr std::uint32_t kKnownCreateFlags = IBV_QP_CREATE_BLOCK_SELF_MCAST_LB | IBV_QP_CREATE_SCATTER_FCS |
                                            IBV_QP_CREATE_CVLAN_STRIPPING | IBV_QP_CREATE_SOURCE_QPN |
                                            IBV_QP_CREATE_PCI_WRITE_END_PADDING;
constexpr std::uint32_t kKnownAttributes = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_XRCD | IBV_QP_INIT_ATTR_CREATE_FLAGS |
                                           IBV_QP_INIT_ATTR_MAX_TSO_HEADER | IBV_QP_INIT_ATTR_IND_TABLE |
                                           IBV_QP_INIT_ATTR_RX_HASH | IBV_QP_INIT_ATTR_SEND_OPS_FLAGS;

static_assert(sizeof(ibv_qp_cap) == sizeof(ib_uverbs_qp_cap), "the CAP attribute is passed through");

// Which kernel objects the QP refers to, once its type and attributes were found to agree.
struct Parts {
  std::uint32_t pd_or_xrcd = 0;
  std::uint32_t send_cq = 0;
  std::uint32_t recv_cq = 0;
  std::uint32_t ind_table = 0;
  bool has_send_cq = false;
  bool has_recv_cq = false;
  bool has_ind_table = false;
  bool by_xrcd = false;
  bool needs_extended = false;
};

int with_ind_table(const ibv_qp_init_attr_ex& attr, Parts* parts) {
  if (attr.cap.max_recv_wr || attr.cap.max_recv_sge || attr.recv_cq || attr.srq) return EINVAL;
  parts->has_ind_table = parts->needs_extended = true;
  parts->ind_table = static_cast<std::uint32_t>(attr.rwq_ind_tbl->ind_tbl_handle);
  if (attr.cap.max_send_wr) {
    if (!attr.send_cq) return EINVAL;
    parts->has_send_cq = true;
    parts->send_cq = attr.send_cq->handle;
  }
  return 0;
}

int collect(ibv_qp_init_attr_ex& attr, Parts* parts) {
  switch (number_of(attr.qp_type)) {
    case IBV_QPT_XRC_RECV:
      if (!(attr.comp_mask & IBV_QP_INIT_ATTR_XRCD)) return EINVAL;
      parts->by_xrcd = true;
      parts->pd_or_xrcd = derived<Xrcd>(attr.xrcd)->handle;
      return 0;
    case IBV_QPT_RC:
    case IBV_QPT_UC:
    case IBV_QPT_UD:
    case IBV_QPT_RAW_PACKET:
    case IBV_QPT_XRC_SEND:
    case IBV_QPT_DRIVER:
      break;
    default:
      return EINVAL;
  }
  if (!(attr.comp_mask & IBV_QP_INIT_ATTR_PD)) return EINVAL;
  parts->pd_or_xrcd = attr.pd->handle;
  if (attr.comp_mask & IBV_QP_INIT_ATTR_IND_TABLE) return with_ind_table(attr, parts);
  if (!attr.send_cq) return EINVAL;
  parts->has_send_cq = true;
  parts->send_cq = attr.send_cq->handle;
  if (attr.qp_type == IBV_QPT_XRC_SEND) {
    attr.cap.max_recv_wr = 0;  // it has no receive queue
    attr.cap.max_recv_sge = 0;
    return 0;
  }
  if (!attr.recv_cq) return EINVAL;
  parts->has_recv_cq = true;
  parts->recv_cq = attr.recv_cq->handle;
  return 0;
}

void describe(verbena_bundle& bundle, const Context& context, const Qp& qp, ibv_qp_init_attr_ex& attr,
              const Parts& parts) {
  if (parts.by_xrcd)
    bundle.in_object(UVERBS_ATTR_CREATE_QP_XRCD_HANDLE, parts.pd_or_xrcd);
  else
    bundle.in_object(UVERBS_ATTR_CREATE_QP_PD_HANDLE, parts.pd_or_xrcd);
  if (parts.has_ind_table) bundle.in_object(UVERBS_ATTR_CREATE_QP_IND_TABLE_HANDLE, parts.ind_table);
  if (parts.has_send_cq) bundle.in_object(UVERBS_ATTR_CREATE_QP_SEND_CQ_HANDLE, parts.send_cq);
  if (parts.has_recv_cq) bundle.in_object(UVERBS_ATTR_CREATE_QP_RECV_CQ_HANDLE, parts.recv_cq);
  bundle.in_const(UVERBS_ATTR_CREATE_QP_TYPE, attr.qp_type);
  bundle.in_u64(UVERBS_ATTR_CREATE_QP_USER_HANDLE, reinterpret_cast<std::uintptr_t>(&qp.qp));
  bundle.in_struct(UVERBS_ATTR_CREATE_QP_CAP, attr.cap);
  bundle.in_fd(UVERBS_ATTR_CREATE_QP_EVENT_FD, context.verbs.context.async_fd);

  std::uint32_t flags = attr.sq_sig_all ? IB_UVERBS_QP_CREATE_SQ_SIG_ALL : 0;
  if (attr.comp_mask & IBV_QP_INIT_ATTR_CREATE_FLAGS) {
    // The source QPN is an attribute of its own here, so its flag stays behind.
    flags |= attr.create_flags & ~static_cast<std::uint32_t>(IBV_QP_CREATE_SOURCE_QPN);
    if (attr.create_flags & IBV_QP_CREATE_SOURCE_QPN) bundle.in_u32(UVERBS_ATTR_CREATE_QP_SOURCE_QPN, attr.source_qpn);
  }
  if (flags) bundle.in_u32(UVERBS_ATTR_CREATE_QP_FLAGS, flags);
  if (attr.srq) bundle.in_object(UVERBS_ATTR_CREATE_QP_SRQ_HANDLE, attr.srq->handle);
}

// ib_uverbs_create_qp or its extended form.
template <class Request>
Request legacy_request(const Qp& qp, const ibv_qp_init_attr_ex& attr, const Parts& parts) {
  Request request{};
  request.user_handle = reinterpret_cast<std::uintptr_t>(&qp.qp);
  request.pd_handle = parts.pd_or_xrcd;
  request.send_cq_handle = parts.send_cq;
  request.recv_cq_handle = parts.recv_cq;
  request.srq_handle = attr.srq ? attr.srq->handle : 0;
  request.is_srq = attr.srq != nullptr;
  request.max_send_wr = attr.cap.max_send_wr;
  request.max_recv_wr = attr.cap.max_recv_wr;
  request.max_send_sge = attr.cap.max_send_sge;
  request.max_recv_sge = attr.cap.max_recv_sge;
  request.max_inline_data = attr.cap.max_inline_data;
  request.sq_sig_all = attr.sq_sig_all != 0;
  request.qp_type = static_cast<std::uint8_t>(attr.qp_type);
  return request;
}

int create_legacy(Context& context, Qp& qp, ibv_qp_init_attr_ex& attr, const Parts& parts, const Udata* udata) {
  if (context.imported) return report(EOPNOTSUPP);
  ib_uverbs_ex_create_qp_resp response{};
  int error = 0;
  if (parts.needs_extended) {
    auto request = legacy_request<ib_uverbs_ex_create_qp>(qp, attr, parts);
    if (attr.comp_mask & IBV_QP_INIT_ATTR_CREATE_FLAGS) {
      request.create_flags = attr.create_flags;
      if (attr.create_flags & IBV_QP_CREATE_SOURCE_QPN) request.source_qpn = attr.source_qpn;
    }
    if (parts.has_ind_table) {
      request.comp_mask = IB_UVERBS_CREATE_QP_MASK_IND_TABLE;
      request.rwq_ind_tbl_handle = parts.ind_table;
    }
    error = legacy(context, extended(IB_USER_VERBS_EX_CMD_CREATE_QP), request, response, udata);
  } else {
    auto request = legacy_request<ib_uverbs_create_qp>(qp, attr, parts);
    error = legacy(context, IB_USER_VERBS_CMD_CREATE_QP, request, response.base, udata);
  }
  if (error) return error;
  const ib_uverbs_create_qp_resp& base = response.base;
  qp.qp.handle = base.qp_handle;
  qp.qp.qp_num = base.qpn;
  attr.cap = {base.max_send_wr, base.max_recv_wr, base.max_send_sge, base.max_recv_sge, base.max_inline_data};
  return 0;
}

void initialize(Qp& qp, ibv_context* context, void* qp_context, ibv_qp_type type, ibv_qp_state state) {
  qp.qp.context = context;
  qp.qp.qp_context = qp_context;
  qp.qp.qp_type = type;
  qp.qp.state = state;
  qp.qp.events_completed = 0;
  pthread_mutex_init(&qp.qp.mutex, nullptr);
  pthread_cond_init(&qp.qp.cond, nullptr);
}

void finish(Qp& qp, ibv_context* context, const ibv_qp_init_attr_ex& attr) {
  initialize(qp, context, attr.qp_context, attr.qp_type, IBV_QPS_RESET);
  qp.qp.pd = attr.comp_mask & IBV_QP_INIT_ATTR_PD ? attr.pd : nullptr;
  qp.qp.send_cq = attr.send_cq;
  qp.qp.recv_cq = attr.recv_cq;
  qp.qp.srq = attr.srq;
  qp.comp_mask = 0;
  if (attr.comp_mask & IBV_QP_INIT_ATTR_XRCD) {
    qp.comp_mask |= kQpHasXrcd;
    qp.xrcd = derived<Xrcd>(attr.xrcd);
  }
}

}  // namespace
}  // namespace verbena::verbs

using namespace verbena::verbs;

int verbena_cmd_create_qp(ibv_context* context, Qp* qp, ibv_qp_init_attr_ex* attr, const verbena_udata* udata) {
  if (attr->comp_mask & ~kKnownAttributes) return report(EINVAL);
  Context& ctx = *context_of(context);
  Parts parts;
  if (int error = collect(*attr, &parts)) return report(error);
  if (attr->comp_mask & IBV_QP_INIT_ATTR_CREATE_FLAGS) {
    if (attr->create_flags & ~kKnownCreateFlags) return report(EINVAL);
    parts.needs_extended = true;
  }

  std::uint32_t qp_num = 0;
  ibv_qp_cap granted{};
  verbena_bundle bundle(UVERBS_OBJECT_QP, UVERBS_METHOD_QP_CREATE);
  auto handle = bundle.out_object(UVERBS_ATTR_CREATE_QP_HANDLE);
  describe(bundle, ctx, *qp, *attr, parts);
  bundle.out_struct(UVERBS_ATTR_CREATE_QP_RESP_CAP, granted);
  bundle.out_struct(UVERBS_ATTR_CREATE_QP_RESP_QP_NUM, qp_num);
  add_udata(bundle, udata);

  int error = 0;
  switch (try_native(ctx, Native::create_qp, bundle, &error)) {
    case Outcome::done:
      qp->qp.handle = bundle.object(handle);
      qp->qp.qp_num = qp_num;
      attr->cap = granted;
      break;
    case Outcome::failed:
      return error;
    case Outcome::legacy:
      if ((error = create_legacy(ctx, *qp, *attr, parts, udata))) return error;
  }
  finish(*qp, context, *attr);
  return 0;
}

int verbena_cmd_open_qp(ibv_context* context, Qp* qp, const ibv_qp_open_attr* attr, const verbena_udata* udata) {
  constexpr std::uint32_t kNeeded = IBV_QP_OPEN_ATTR_XRCD | IBV_QP_OPEN_ATTR_NUM | IBV_QP_OPEN_ATTR_TYPE;
  if (attr->comp_mask >= IBV_QP_OPEN_ATTR_RESERVED) return report(EOPNOTSUPP);
  if ((attr->comp_mask & kNeeded) != kNeeded) return report(EINVAL);
  ib_uverbs_open_qp request{};
  request.user_handle = reinterpret_cast<std::uintptr_t>(&qp->qp);
  request.pd_handle = derived<Xrcd>(attr->xrcd)->handle;
  request.qpn = attr->qp_num;
  request.qp_type = static_cast<std::uint8_t>(attr->qp_type);
  ib_uverbs_create_qp_resp response{};
  if (int error = legacy(*context_of(context), IB_USER_VERBS_CMD_OPEN_QP, request, response, udata)) return error;
  initialize(*qp, context, attr->comp_mask & IBV_QP_OPEN_ATTR_CONTEXT ? attr->qp_context : nullptr, attr->qp_type,
             IBV_QPS_UNKNOWN);
  qp->qp.handle = response.qp_handle;
  qp->qp.qp_num = attr->qp_num;
  qp->qp.pd = nullptr;
  qp->qp.send_cq = qp->qp.recv_cq = nullptr;
  qp->qp.srq = nullptr;
  qp->comp_mask = kQpHasXrcd;
  qp->xrcd = derived<Xrcd>(attr->xrcd);
  return 0;
}

int verbena_cmd_destroy_qp(ibv_qp* qp) {
  Context& ctx = *context_of(qp->context);
  ib_uverbs_destroy_qp_resp response{};
  verbena_bundle bundle(UVERBS_OBJECT_QP, UVERBS_METHOD_QP_DESTROY);
  bundle.out_struct(UVERBS_ATTR_DESTROY_QP_RESP, response);
  bundle.in_object(UVERBS_ATTR_DESTROY_QP_HANDLE, qp->handle);
  int error = 0;
  if (try_native(ctx, Native::destroy_qp, bundle, &error) == Outcome::legacy) {
    ib_uverbs_destroy_qp request{};
    request.qp_handle = qp->handle;
    error = legacy(ctx, IB_USER_VERBS_CMD_DESTROY_QP, request, response);
  }
  if (error) return treat_as_destroyed(error) ? 0 : error;
  wait_for_acks(qp->mutex, qp->cond, [&] { return qp->events_completed == response.events_reported; });
  return 0;
}

int verbena_cmd_attach_mcast(ibv_qp* qp, const ibv_gid* gid, std::uint16_t lid) {
  ib_uverbs_attach_mcast request{};
  std::memcpy(request.gid, gid->raw, sizeof request.gid);
  request.qp_handle = qp->handle;
  request.mlid = lid;
  return legacy(*context_of(qp->context), IB_USER_VERBS_CMD_ATTACH_MCAST, request);
}

int verbena_cmd_detach_mcast(ibv_qp* qp, const ibv_gid* gid, std::uint16_t lid) {
  ib_uverbs_detach_mcast request{};
  std::memcpy(request.gid, gid->raw, sizeof request.gid);
  request.qp_handle = qp->handle;
  request.mlid = lid;
  int error = legacy(*context_of(qp->context), IB_USER_VERBS_CMD_DETACH_MCAST, request);
  return treat_as_destroyed(error) ? 0 : error;
}
