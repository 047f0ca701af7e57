// Life of a shared receive queue.

#include <algorithm>
#include <bit>

#include "mlx5/cqe.h"
#include "mlx5/ops.h"
#include "support/c_enum.h"

namespace verbena::mlx5 {

namespace {

constexpr std::uint32_t kSmallestWqe = 32;

void link(Srq* srq, std::uint32_t first, std::uint32_t last) {
  for (std::uint32_t i = first; i < last; ++i)
    reinterpret_cast<mlx5_wqe_srq_next_seg*>(srq->start + (std::size_t{i} << srq->shift))->next_wqe_index =
        be(static_cast<std::uint16_t>(i + 1));
}

// The ring is twice as long as asked for where the device allows it: real devices need spare WQEs to repeat a receive
// after a page fault, and programs see the size in their memory accounting.
bool allocate_ring(Context* context, ibv_pd* pd, std::uint32_t max_wr, Srq* srq) {
  const std::uint64_t doubled = std::uint64_t{max_wr} * 2 + 1;
  const bool spare = doubled <= context->caps.max_srq_recv_wr;
  const std::uint32_t bytes = std::bit_ceil(std::max<std::uint32_t>(kSmallestWqe, kSegment + srq->max_sge * kSegment));
  if (bytes > context->caps.max_recv_wr) {
    errno = EINVAL;
    return false;
  }
  srq->max_sge = (bytes - kSegment) / kSegment;
  srq->shift = static_cast<std::uint32_t>(std::countr_zero(bytes));
  srq->count = std::bit_ceil(spare ? static_cast<std::uint32_t>(doubled) : max_wr + 1);
  const BufferRequest request{std::size_t{srq->count} * bytes, 4096, MLX5DV_RES_TYPE_SRQ, "SRQ"};
  if (!allocate(context, pd, request, &srq->buffer)) return false;
  srq->start = srq->buffer.data;
  srq->wr_ids = new (std::nothrow) std::uint64_t[srq->count]();
  if (!srq->wr_ids) {
    errno = ENOMEM;
    return false;
  }
  srq->head = 0;
  srq->tail = std::bit_ceil(max_wr + 1) - 1;
  link(srq, 0, srq->tail);
  if (spare) link(srq, srq->tail + 1, srq->count - 1);
  return true;
}

void discard(Context* context, Srq* srq) {
  if (srq->uidx != CqeOwners::kNone) context->qps.clear(srq->uidx);
  release(context, &srq->db);
  release(context, &srq->buffer);
  delete[] srq->wr_ids;
  delete srq;
}

ibv_srq* create(Context* context, ibv_srq_init_attr_ex* attr) {
  if (attr->attr.max_wr > context->caps.max_srq_recv_wr) return fail_null(EINVAL);
  if (attr->attr.max_sge > context->caps.max_rq_desc_sz / kSegment) return fail_null(EINVAL);
  const bool xrc = attr->comp_mask & IBV_SRQ_INIT_ATTR_TYPE && attr->srq_type == IBV_SRQT_XRC;
  auto* srq = new (std::nothrow) Srq();
  if (!srq) return fail_null(ENOMEM);
  srq->lock.set_shared(!single_threaded(context, attr->pd));
  srq->max_sge = attr->attr.max_sge;
  if (!allocate_ring(context, attr->pd, attr->attr.max_wr, srq) || !allocate(context, attr->pd, &srq->db)) {
    const int error = errno;
    discard(context, srq);
    return fail_null(error);
  }
  srq->dbrec = srq->db.words;
  if (xrc) srq->uidx = context->qps.store(as_owner(srq));
  if (xrc && srq->uidx == CqeOwners::kNone) {
    discard(context, srq);
    return fail_null(ENOMEM);
  }
  mlx5_ib_create_srq request = {};
  mlx5_ib_create_srq_resp response = {};
  request.buf_addr = reinterpret_cast<std::uintptr_t>(srq->buffer.data);
  request.db_addr = reinterpret_cast<std::uintptr_t>(srq->db.words);
  if (xrc) request.uidx = srq->uidx;
  attr->attr.max_sge = srq->max_sge;
  attr->attr.max_wr = srq->count - 1;  // the kernel is told of the spare ones
  const verbs::Udata udata{&request, sizeof request, &response, sizeof response};
  if (int error = verbena_cmd_create_srq(attr->pd, &srq->verbs, attr, &udata)) {
    discard(context, srq);
    return fail_null(error);
  }
  attr->attr.max_wr = srq->tail;
  attr->attr.max_sge = srq->max_sge;
  srq->srqn = response.srqn;
  return &srq->verbs.srq;
}

}  // namespace

ibv_srq* create_srq(ibv_pd* pd, ibv_srq_init_attr* attr) {
  ibv_srq_init_attr_ex extended = {};
  extended.srq_context = attr->srq_context;
  extended.attr = attr->attr;
  extended.comp_mask = IBV_SRQ_INIT_ATTR_PD;
  extended.pd = pd;
  ibv_srq* srq = create(context_of(pd->context), &extended);
  if (srq) attr->attr = extended.attr;
  return srq;
}

ibv_srq* create_srq_ex(ibv_context* ibv, ibv_srq_init_attr_ex* attr) {
  const bool typed = attr->comp_mask & IBV_SRQ_INIT_ATTR_TYPE;
  const std::uint32_t type = typed ? number_of(attr->srq_type) : std::uint32_t{IBV_SRQT_BASIC};
  if (type == IBV_SRQT_TM) return fail_null(EOPNOTSUPP);
  if (type != IBV_SRQT_BASIC && type != IBV_SRQT_XRC) return fail_null(EINVAL);
  if (!attr->pd) return fail_null(EINVAL);
  return create(context_of(ibv), attr);
}

int modify_srq(ibv_srq* srq, ibv_srq_attr* attr, int mask) { return verbena_cmd_modify_srq(srq, attr, mask, nullptr); }

int query_srq(ibv_srq* srq, ibv_srq_attr* attr) { return verbena_cmd_query_srq(srq, attr); }

int get_srq_num(ibv_srq* srq, std::uint32_t* number) {
  *number = srq_of(srq)->srqn;
  return 0;
}

int destroy_srq(ibv_srq* ibsrq) {
  Srq* srq = srq_of(ibsrq);
  ibv_cq* cq = srq->verbs.cq;
  if (int error = verbena_cmd_destroy_srq(ibsrq)) return error;
  if (cq && srq->uidx != CqeOwners::kNone) clean(cq_of(cq), srq->uidx, srq);
  discard(context_of(ibsrq->context), srq);
  return 0;
}

}  // namespace verbena::mlx5
