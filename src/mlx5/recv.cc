// ibv_post_recv() and ibv_post_srq_recv(): scatter lists into the ring. No kick: the device reads the doorbell record.

#include "mlx5/ops.h"
#include "mlx5/send_wqe.h"

namespace verbena::mlx5 {

namespace {

// Ends a list that is shorter than the WQE.
inline void terminate(char* at) {
  store64(at, be(std::uint64_t{MLX5_INVALID_LKEY}));
  store64(at + 8, 0);
}

[[gnu::always_inline]] inline int post(RecvQueue& rq, ibv_recv_wr* wr, ibv_recv_wr** bad) {
  rq.lock.lock();
  std::uint32_t next = rq.head;
  const std::uint32_t head = next;
  std::uint32_t limit = rq.tail.load(std::memory_order_acquire) + rq.count;
  int error = 0;
  for (; wr; wr = wr->next) {
    if (__builtin_expect(next == limit, 0)) {
      limit = rq.tail.load(std::memory_order_acquire) + rq.count;  // it may have been polled meanwhile
      if (next == limit) error = ENOMEM;
    }
    int left = wr->num_sge;
    const std::int32_t max_sge = rq.max_sge_now;
    if (__builtin_expect(left > max_sge, 0) && !error) error = EINVAL;
    if (__builtin_expect(error, 0)) {
      *bad = wr;
      break;
    }
    const std::uint32_t index = next & rq.mask;
    char* at = rq.start + (std::size_t{index} << rq.shift);
    rq.wr_ids[index] = wr->wr_id;
    char* const end = at + static_cast<std::size_t>(max_sge) * kSegment;
    for (const ibv_sge* sge = wr->sg_list; left > 0; --left, ++sge) {
      if (__builtin_expect(!sge->length, 0)) continue;
      set_data(at, sge->length, sge->lkey, sge->addr);
      at += kSegment;
    }
    if (at < end) terminate(at);
    ++next;
  }
  if (__builtin_expect(next != head, 1)) {
    rq.head = next;
    __atomic_store_n(rq.dbrec, be(next & 0xffff), __ATOMIC_RELEASE);
  }
  rq.lock.unlock();
  return error;
}

}  // namespace

int post_recv(ibv_qp* ibqp, ibv_recv_wr* wr, ibv_recv_wr** bad) { return post(qp_of(ibqp)->rq, wr, bad); }
int post_wq_recv(ibv_wq* ibwq, ibv_recv_wr* wr, ibv_recv_wr** bad) { return post(wq_of(ibwq)->ring.rq, wr, bad); }

// The free WQEs of an SRQ are a list through their next segments, from head to tail; completed ones join at the tail.
int post_srq_recv(ibv_srq* ibsrq, ibv_recv_wr* wr, ibv_recv_wr** bad) {
  Srq* srq = srq_of(ibsrq);
  LockGuard guard(srq->lock);
  std::uint32_t posted = 0;
  int error = 0;
  for (; wr; wr = wr->next) {
    if (wr->num_sge < 0 || static_cast<std::uint32_t>(wr->num_sge) > srq->max_sge) {
      error = EINVAL;
      *bad = wr;
      break;
    }
    if (srq->head == srq->tail) {
      error = ENOMEM;
      *bad = wr;
      break;
    }
    srq->wr_ids[srq->head] = wr->wr_id;
    char* const wqe = srq->start + (std::size_t{srq->head} << srq->shift);
    srq->head = be(reinterpret_cast<mlx5_wqe_srq_next_seg*>(wqe)->next_wqe_index);
    char* at = wqe + kSegment;
    char* const end = at + std::size_t{srq->max_sge} * kSegment;
    for (int i = 0; i < wr->num_sge; ++i) {
      if (!wr->sg_list[i].length) continue;
      set_data(at, wr->sg_list[i].length, wr->sg_list[i].lkey, wr->sg_list[i].addr);
      at += kSegment;
    }
    if (at < end) terminate(at);
    ++posted;
  }
  if (posted) {
    srq->counter += posted;
    __atomic_store_n(srq->dbrec, be(srq->counter), __ATOMIC_RELEASE);
  }
  return error;
}

}  // namespace verbena::mlx5
