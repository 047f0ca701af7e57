// The entries of the node IBVERBS_1.0: each makes or unwraps an old object around the present verb.
#include <cerrno>
#include <cstdlib>
#include <new>
#include <vector>

#include "verbs/compat/types.h"
#include "verbs/internal.h"

#undef ibv_reg_mr
#undef ibv_query_port
#undef ibv_get_device_list

namespace verbena::verbs::v1_0 {
namespace {

template <class Old>
Old* make() {
  auto* object = new (std::nothrow) Old{};
  if (!object) errno = ENOMEM;
  return object;
}

// Keeps `old` if the present object came to be.
template <class Old, class Real>
Old* adopt(Old* old, Real* real) {
  if (!real) {
    delete old;
    return nullptr;
  }
  old->real = real;
  return old;
}

template <class Old>
int dispose(Old* old, int error) {
  if (!error) delete old;
  return error;
}

template <class Real, class Old>
Real* real_of(Old* old) {
  return old ? old->real : nullptr;
}

// Async events name present objects, whose user context is the old one. WQs did not exist.
enum class Element { cq, qp, srq, other };
Element element_of(ibv_event_type type) {
  switch (type) {
    case IBV_EVENT_CQ_ERR:
      return Element::cq;
    case IBV_EVENT_QP_FATAL:
    case IBV_EVENT_QP_REQ_ERR:
    case IBV_EVENT_QP_ACCESS_ERR:
    case IBV_EVENT_COMM_EST:
    case IBV_EVENT_SQ_DRAINED:
    case IBV_EVENT_PATH_MIG:
    case IBV_EVENT_PATH_MIG_ERR:
    case IBV_EVENT_QP_LAST_WQE_REACHED:
      return Element::qp;
    case IBV_EVENT_SRQ_ERR:
    case IBV_EVENT_SRQ_LIMIT_REACHED:
      return Element::srq;
    default:
      return Element::other;
  }
}

}  // namespace
}  // namespace verbena::verbs::v1_0

using namespace verbena::verbs::v1_0;

// Defines the function NAME_1_0 and binds it to NAME@IBVERBS_1.0.
#define V1_0(result, name, ...)                     \
  VERBENA_SYMVER(name##_1_0, #name "@IBVERBS_1.0"); \
  extern "C" __attribute__((used)) result name##_1_0(__VA_ARGS__)

// ---- devices ----

// Two hidden entries surround the old list: the present list before it, the terminating null behind it.
V1_0(Device**, ibv_get_device_list, int* count) {
  int n = 0;
  ibv_device** real = ibv_get_device_list(&n);
  if (!real) return nullptr;
  auto** list = static_cast<Device**>(std::calloc(static_cast<std::size_t>(n) + 2, sizeof(Device*)));
  bool complete = list != nullptr;
  for (int i = 0; complete && i < n; ++i) {
    list[i + 1] = make<Device>();
    complete = list[i + 1] != nullptr;
    if (complete) list[i + 1]->real = real[i];
  }
  if (!complete) {
    for (int i = 0; list && i < n; ++i) delete list[i + 1];
    std::free(list);
    ibv_free_device_list(real);
    errno = ENOMEM;
    return nullptr;
  }
  list[0] = reinterpret_cast<Device*>(real);
  if (count) *count = n;
  return list + 1;
}

V1_0(void, ibv_free_device_list, Device** list) {
  for (Device** entry = list; *entry; ++entry) delete *entry;
  ibv_free_device_list(reinterpret_cast<ibv_device**>(list[-1]));
  std::free(list - 1);
}

V1_0(const char*, ibv_get_device_name, Device* device) { return ibv_get_device_name(device->real); }
V1_0(__be64, ibv_get_device_guid, Device* device) { return ibv_get_device_guid(device->real); }

V1_0(Context*, ibv_open_device, Device* device) {
  auto* context = make<Context>();
  if (!context || !adopt(context, ibv_open_device(device->real))) return nullptr;
  context->device = device;
  context->cmd_fd = context->real->cmd_fd;
  context->async_fd = context->real->async_fd;
  context->num_comp_vectors = context->real->num_comp_vectors;
  set_data_path(&context->ops);
  return context;
}

V1_0(int, ibv_close_device, Context* context) { return dispose(context, ibv_close_device(context->real)); }

V1_0(int, ibv_query_device, Context* context, ibv_device_attr* attr) { return ibv_query_device(context->real, attr); }
V1_0(int, ibv_query_port, Context* context, std::uint8_t port, _compat_ibv_port_attr* attr) {
  return ibv_query_port(context->real, port, attr);
}
V1_0(int, ibv_query_gid, Context* context, std::uint8_t port, int index, ibv_gid* gid) {
  return ibv_query_gid(context->real, port, index, gid);
}
V1_0(int, ibv_query_pkey, Context* context, std::uint8_t port, int index, __be16* pkey) {
  return ibv_query_pkey(context->real, port, index, pkey);
}

// ---- asynchronous events ----

V1_0(int, ibv_get_async_event, Context* context, ibv_async_event* event) {
  int error = ibv_get_async_event(context->real, event);
  if (error) return error;
  auto& element = event->element;
  switch (element_of(event->event_type)) {
    case Element::cq:
      element.cq = static_cast<ibv_cq*>(element.cq->cq_context);
      break;
    case Element::qp:
      element.qp = static_cast<ibv_qp*>(element.qp->qp_context);
      break;
    case Element::srq:
      element.srq = static_cast<ibv_srq*>(element.srq->srq_context);
      break;
    case Element::other:
      break;
  }
  return 0;
}

V1_0(void, ibv_ack_async_event, ibv_async_event* event) {
  ibv_async_event present = *event;
  switch (element_of(event->event_type)) {
    case Element::cq:
      present.element.cq = reinterpret_cast<Cq*>(event->element.cq)->real;
      break;
    case Element::qp:
      present.element.qp = reinterpret_cast<Qp*>(event->element.qp)->real;
      break;
    case Element::srq:
      present.element.srq = reinterpret_cast<Srq*>(event->element.srq)->real;
      break;
    case Element::other:
      break;
  }
  ibv_ack_async_event(&present);
}

// ---- protection and memory ----

V1_0(Pd*, ibv_alloc_pd, Context* context) {
  auto* pd = make<Pd>();
  if (!pd || !adopt(pd, ibv_alloc_pd(context->real))) return nullptr;
  pd->context = context;
  return pd;
}

V1_0(int, ibv_dealloc_pd, Pd* pd) { return dispose(pd, ibv_dealloc_pd(pd->real)); }

V1_0(Mr*, ibv_reg_mr, Pd* pd, void* addr, std::size_t length, int access) {
  auto* mr = make<Mr>();
  if (!mr || !adopt(mr, ibv_reg_mr(pd->real, addr, length, access))) return nullptr;
  mr->context = pd->context;
  mr->pd = pd;
  mr->handle = mr->real->handle;
  mr->lkey = mr->real->lkey;
  mr->rkey = mr->real->rkey;
  return mr;
}

V1_0(int, ibv_dereg_mr, Mr* mr) { return dispose(mr, ibv_dereg_mr(mr->real)); }

// ---- completion queues ----

V1_0(Cq*, ibv_create_cq, Context* context, int cqe, void* cq_context, ibv_comp_channel* channel, int vector) {
  auto* cq = make<Cq>();
  if (!cq || !adopt(cq, ibv_create_cq(context->real, cqe, cq, channel, vector))) return nullptr;
  cq->context = context;
  cq->cq_context = cq_context;
  cq->handle = cq->real->handle;
  cq->cqe = cq->real->cqe;
  return cq;
}

V1_0(int, ibv_resize_cq, Cq* cq, int cqe) {
  int error = ibv_resize_cq(cq->real, cqe);
  if (!error) cq->cqe = cq->real->cqe;
  return error;
}

V1_0(int, ibv_destroy_cq, Cq* cq) { return dispose(cq, ibv_destroy_cq(cq->real)); }

V1_0(int, ibv_get_cq_event, ibv_comp_channel* channel, Cq** cq, void** cq_context) {
  ibv_cq* real = nullptr;
  void* old = nullptr;
  int error = ibv_get_cq_event(channel, &real, &old);
  if (error) return error;
  *cq = static_cast<Cq*>(old);
  *cq_context = (*cq)->cq_context;
  return 0;
}

V1_0(void, ibv_ack_cq_events, Cq* cq, unsigned count) { ibv_ack_cq_events(cq->real, count); }

// ---- shared receive queues ----

V1_0(Srq*, ibv_create_srq, Pd* pd, ibv_srq_init_attr* attr) {
  auto* srq = make<Srq>();
  if (!srq || !adopt(srq, ibv_create_srq(pd->real, attr))) return nullptr;
  srq->context = pd->context;
  srq->srq_context = attr->srq_context;
  srq->pd = pd;
  srq->handle = srq->real->handle;
  srq->real->srq_context = srq;
  return srq;
}

V1_0(int, ibv_modify_srq, Srq* srq, ibv_srq_attr* attr, int mask) { return ibv_modify_srq(srq->real, attr, mask); }
V1_0(int, ibv_query_srq, Srq* srq, ibv_srq_attr* attr) { return ibv_query_srq(srq->real, attr); }
V1_0(int, ibv_destroy_srq, Srq* srq) { return dispose(srq, ibv_destroy_srq(srq->real)); }

// ---- queue pairs ----

V1_0(Qp*, ibv_create_qp, Pd* pd, QpInitAttr* attr) {
  ibv_qp_init_attr init{};
  init.send_cq = real_of<ibv_cq>(attr->send_cq);
  init.recv_cq = real_of<ibv_cq>(attr->recv_cq);
  init.srq = real_of<ibv_srq>(attr->srq);
  init.cap = attr->cap;
  init.qp_type = attr->qp_type;
  init.sq_sig_all = attr->sq_sig_all;
  auto* qp = make<Qp>();
  if (!qp) return nullptr;
  init.qp_context = qp;
  if (!adopt(qp, ibv_create_qp(pd->real, &init))) return nullptr;
  attr->cap = init.cap;
  qp->context = pd->context;
  qp->qp_context = attr->qp_context;
  qp->pd = pd;
  qp->send_cq = attr->send_cq;
  qp->recv_cq = attr->recv_cq;
  qp->srq = attr->srq;
  qp->handle = qp->real->handle;
  qp->qp_num = qp->real->qp_num;
  qp->state = qp->real->state;
  qp->qp_type = attr->qp_type;
  return qp;
}

V1_0(int, ibv_query_qp, Qp* qp, ibv_qp_attr* attr, int mask, QpInitAttr* init) {
  ibv_qp_init_attr present{};
  int error = ibv_query_qp(qp->real, attr, mask, &present);
  if (error) return error;
  *init = {.qp_context = qp->qp_context,
           .send_cq = qp->send_cq,
           .recv_cq = qp->recv_cq,
           .srq = qp->srq,
           .cap = present.cap,
           .qp_type = present.qp_type,
           .sq_sig_all = present.sq_sig_all};
  qp->state = qp->real->state;
  return 0;
}

V1_0(int, ibv_modify_qp, Qp* qp, ibv_qp_attr* attr, int mask) {
  int error = ibv_modify_qp(qp->real, attr, mask);
  qp->state = qp->real->state;
  return error;
}

V1_0(int, ibv_destroy_qp, Qp* qp) { return dispose(qp, ibv_destroy_qp(qp->real)); }

V1_0(int, ibv_attach_mcast, Qp* qp, ibv_gid* gid, std::uint16_t lid) { return ibv_attach_mcast(qp->real, gid, lid); }
V1_0(int, ibv_detach_mcast, Qp* qp, ibv_gid* gid, std::uint16_t lid) { return ibv_detach_mcast(qp->real, gid, lid); }

// ---- address handles ----

V1_0(Ah*, ibv_create_ah, Pd* pd, ibv_ah_attr* attr) {
  auto* ah = make<Ah>();
  if (!ah || !adopt(ah, ibv_create_ah(pd->real, attr))) return nullptr;
  ah->context = pd->context;
  ah->pd = pd;
  ah->handle = ah->real->handle;
  return ah;
}

V1_0(int, ibv_destroy_ah, Ah* ah) { return dispose(ah, ibv_destroy_ah(ah->real)); }

// ---- the driver interface of 1.1, called by some old programs to silence a warning ----

VERBENA_SYMVER(ibv_register_driver_1_1, "ibv_register_driver@IBVERBS_1.1");
extern "C" __attribute__((used)) void ibv_register_driver_1_1(const char*, void*) {}
