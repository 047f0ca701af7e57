// Posting and polling for programs of libibverbs 1.0: lists of work requests are rebuilt in the present form.
#include <cerrno>
#include <cstring>
#include <vector>

#include "verbs/compat/types.h"

namespace verbena::verbs::v1_0 {
namespace {

ibv_recv_wr convert(const RecvWr& from) {
  return {.wr_id = from.wr_id, .next = nullptr, .sg_list = from.sg_list, .num_sge = from.num_sge};
}

ibv_send_wr convert(const SendWr& from, bool ud) {
  ibv_send_wr to{};
  to.wr_id = from.wr_id;
  to.sg_list = from.sg_list;
  to.num_sge = from.num_sge;
  to.opcode = from.opcode;
  to.send_flags = static_cast<unsigned>(from.send_flags);
  to.imm_data = from.imm_data;
  static_assert(sizeof to.wr == sizeof from.wr);
  std::memcpy(&to.wr, &from.wr, sizeof to.wr);
  if (ud) to.wr.ud.ah = from.wr.ud.ah->real;
  return to;
}

// Rebuilds the list, posts it, and translates the position of a request that was refused.
template <class New, class Old, class Convert, class Post>
int post(Old* list, Old** bad, Convert make, Post submit) {
  std::vector<New> requests;
  try {
    for (Old* old = list; old; old = old->next) requests.push_back(make(*old));
  } catch (const std::bad_alloc&) {
    *bad = list;
    return ENOMEM;
  }
  for (std::size_t i = 1; i < requests.size(); ++i) requests[i - 1].next = &requests[i];
  New* refused = nullptr;
  int error = submit(requests.empty() ? nullptr : requests.data(), &refused);
  if (!error) return 0;
  *bad = list;
  for (New* at = requests.data(); refused && at != refused && (*bad)->next; ++at) *bad = (*bad)->next;
  return error;
}

int poll_cq(Cq* cq, int count, ibv_wc* wc) { return cq->real->context->ops.poll_cq(cq->real, count, wc); }

int req_notify_cq(Cq* cq, int solicited_only) { return cq->real->context->ops.req_notify_cq(cq->real, solicited_only); }

int post_send(Qp* qp, SendWr* list, SendWr** bad) {
  bool ud = qp->qp_type == IBV_QPT_UD;
  return post<ibv_send_wr>(
      list, bad, [ud](const SendWr& wr) { return convert(wr, ud); },
      [qp](ibv_send_wr* first, ibv_send_wr** refused) {
        return qp->real->context->ops.post_send(qp->real, first, refused);
      });
}

int post_recv(Qp* qp, RecvWr* list, RecvWr** bad) {
  return post<ibv_recv_wr>(
      list, bad, [](const RecvWr& wr) { return convert(wr); },
      [qp](ibv_recv_wr* first, ibv_recv_wr** refused) {
        return qp->real->context->ops.post_recv(qp->real, first, refused);
      });
}

int post_srq_recv(Srq* srq, RecvWr* list, RecvWr** bad) {
  return post<ibv_recv_wr>(
      list, bad, [](const RecvWr& wr) { return convert(wr); },
      [srq](ibv_recv_wr* first, ibv_recv_wr** refused) {
        return srq->real->context->ops.post_srq_recv(srq->real, first, refused);
      });
}

}  // namespace

void set_data_path(ContextOps* ops) {
  ops->poll_cq = poll_cq;
  ops->req_notify_cq = req_notify_cq;
  ops->post_send = post_send;
  ops->post_recv = post_recv;
  ops->post_srq_recv = post_srq_recv;
}

}  // namespace verbena::verbs::v1_0
