// Asynchronous events. Each is counted in its object when acknowledged; destroying the object waits for the count
// that the kernel reported.
#include <unistd.h>

#include "verbs/internal.h"

namespace verbena::verbs {
namespace {

enum class Subject { cq, qp, srq, wq, port_or_device };

Subject subject_of(ibv_event_type type) {
  switch (type) {
    case IBV_EVENT_CQ_ERR:
      return Subject::cq;
    case IBV_EVENT_QP_FATAL:
    case IBV_EVENT_QP_REQ_ERR:
    case IBV_EVENT_QP_ACCESS_ERR:
    case IBV_EVENT_COMM_EST:
    case IBV_EVENT_SQ_DRAINED:
    case IBV_EVENT_PATH_MIG:
    case IBV_EVENT_PATH_MIG_ERR:
    case IBV_EVENT_QP_LAST_WQE_REACHED:
      return Subject::qp;
    case IBV_EVENT_SRQ_ERR:
    case IBV_EVENT_SRQ_LIMIT_REACHED:
      return Subject::srq;
    case IBV_EVENT_WQ_FATAL:
      return Subject::wq;
    default:
      return Subject::port_or_device;
  }
}

template <class Object>
void count(Object& object, std::uint32_t Object::*counter) {
  pthread_mutex_lock(&object.mutex);
  ++(object.*counter);
  pthread_cond_signal(&object.cond);
  pthread_mutex_unlock(&object.mutex);
}

}  // namespace
}  // namespace verbena::verbs

using namespace verbena::verbs;

extern "C" {

int ibv_get_async_event(ibv_context* context, ibv_async_event* event) {
  ib_uverbs_async_event_desc record;
  if (read(context->async_fd, &record, sizeof record) != sizeof record) return -1;
  event->event_type = static_cast<ibv_event_type>(record.event_type);
  // `element` is the object's user handle, or the port number.
  if (subject_of(event->event_type) == Subject::port_or_device)
    event->element.port_num = static_cast<int>(record.element);
  else
    event->element.cq = reinterpret_cast<ibv_cq*>(record.element);
  ops(context).async_event(context, event);
  return 0;
}

void ibv_ack_async_event(ibv_async_event* event) {
  switch (subject_of(event->event_type)) {
    case Subject::cq:
      return count(*event->element.cq, &ibv_cq::async_events_completed);
    case Subject::qp:
      return count(*event->element.qp, &ibv_qp::events_completed);
    case Subject::srq:
      return count(*event->element.srq, &ibv_srq::events_completed);
    case Subject::wq:
      return count(*event->element.wq, &ibv_wq::events_completed);
    case Subject::port_or_device:
      return;
  }
}

}  // extern "C"
