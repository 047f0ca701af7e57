// Completion channels and completion queues.
#include <unistd.h>

#include <new>

#include "verbs/cmd/request.h"
#include "verbs/internal.h"

namespace verbena::verbs {
namespace {

void count_user(ibv_comp_channel* channel, int by) {
  pthread_mutex_lock(&channel->context->mutex);
  channel->refcnt += by;
  pthread_mutex_unlock(&channel->context->mutex);
}

}  // namespace

void init_cq(ibv_cq* cq, ibv_context* context, ibv_comp_channel* channel, void* cq_context) {
  cq->context = context;
  cq->channel = channel;
  cq->cq_context = cq_context;
  cq->comp_events_completed = 0;
  cq->async_events_completed = 0;
  pthread_mutex_init(&cq->mutex, nullptr);
  pthread_cond_init(&cq->cond, nullptr);
  if (channel) count_user(channel, 1);
}

ibv_cq_ex* create_cq_ex_checked(ibv_context* context, ibv_cq_init_attr_ex* attr) {
  if (attr->wc_flags & ~static_cast<std::uint64_t>(IBV_CREATE_CQ_SUP_WC_FLAGS)) return refuse<ibv_cq_ex>(EOPNOTSUPP);
  ibv_cq_ex* cq = ops(context).create_cq_ex(context, attr);
  if (cq) init_cq(ibv_cq_ex_to_cq(cq), context, attr->channel, attr->cq_context);
  return cq;
}

}  // namespace verbena::verbs

using namespace verbena::verbs;

extern "C" {

ibv_comp_channel* ibv_create_comp_channel(ibv_context* context) {
  auto* channel = new (std::nothrow) ibv_comp_channel{};
  if (!channel) return refuse<ibv_comp_channel>(ENOMEM);
  ib_uverbs_create_comp_channel request{};
  ib_uverbs_create_comp_channel_resp response{};
  if (legacy(*context_of(context), IB_USER_VERBS_CMD_CREATE_COMP_CHANNEL, request, response)) {
    delete channel;
    return nullptr;
  }
  channel->context = context;
  channel->fd = static_cast<int>(response.fd);
  return channel;
}

int ibv_destroy_comp_channel(ibv_comp_channel* channel) {
  ibv_context* context = channel->context;
  pthread_mutex_lock(&context->mutex);
  bool used = channel->refcnt != 0;
  pthread_mutex_unlock(&context->mutex);
  if (used) return EBUSY;
  context_of(context)->backend->close(channel->fd);
  delete channel;
  return 0;
}

ibv_cq* ibv_create_cq(ibv_context* context, int cqe, void* cq_context, ibv_comp_channel* channel, int vector) {
  ibv_cq* cq = ops(context).create_cq(context, cqe, channel, vector);
  if (cq) init_cq(cq, context, channel, cq_context);
  return cq;
}

int ibv_resize_cq(ibv_cq* cq, int cqe) { return ops(cq->context).resize_cq(cq, cqe); }

int ibv_destroy_cq(ibv_cq* cq) {
  ibv_comp_channel* channel = cq->channel;
  int error = ops(cq->context).destroy_cq(cq);
  if (!error && channel) count_user(channel, -1);
  return error;
}

int ibv_get_cq_event(ibv_comp_channel* channel, ibv_cq** cq, void** cq_context) {
  ib_uverbs_comp_event_desc event;
  if (read(channel->fd, &event, sizeof event) != sizeof event) return -1;
  *cq = reinterpret_cast<ibv_cq*>(event.cq_handle);  // the user handle given at creation
  *cq_context = (*cq)->cq_context;
  ops((*cq)->context).cq_event(*cq);
  return 0;
}

void ibv_ack_cq_events(ibv_cq* cq, unsigned count) {
  pthread_mutex_lock(&cq->mutex);
  cq->comp_events_completed += count;
  pthread_cond_signal(&cq->cond);
  pthread_mutex_unlock(&cq->mutex);
}

}  // extern "C"
