// Work queues, and the tables that receive hashing spreads over them.

#include <algorithm>
#include <bit>

#include "mlx5/cqe.h"
#include "mlx5/ops.h"

namespace verbena::mlx5 {

namespace {

int compute_size(const Context* context, const ibv_wq_init_attr& attr, RecvQueue* rq) {
  if (!attr.max_wr) return EINVAL;
  const std::uint64_t wqe = std::uint64_t{std::max(attr.max_sge, 1u)} * kSegment;
  if (wqe > context->caps.max_rq_desc_sz || attr.max_wr > 1u << 31) return EINVAL;
  const auto entry = static_cast<std::uint32_t>(std::bit_ceil(wqe));
  const std::uint64_t bytes = std::max<std::uint64_t>(std::uint64_t{std::bit_ceil(attr.max_wr)} * entry, kWqeBlock);
  if (bytes / entry > 1u << 31) return EINVAL;
  rq->count = static_cast<std::uint32_t>(bytes / entry);
  rq->mask = rq->count - 1;
  rq->shift = static_cast<std::uint32_t>(std::countr_zero(entry));
  rq->max_sge = entry / kSegment;
  rq->max_sge_now = static_cast<std::int32_t>(rq->max_sge);
  return 0;
}

int allocate_ring(Context* context, ibv_pd* pd, Qp* ring) {
  RecvQueue& rq = ring->rq;
  const BufferRequest request{std::size_t{rq.count} << rq.shift, 4096, MLX5DV_RES_TYPE_RWQ, "RWQ"};
  if (!allocate(context, pd, request, &ring->buffer)) return errno ? errno : ENOMEM;
  if (!allocate(context, pd, &ring->db)) return errno ? errno : ENOMEM;
  rq.start = ring->buffer.data;
  rq.dbrec = &ring->db.words[MLX5_RCV_DBR];
  rq.wr_ids = new (std::nothrow) std::uint64_t[rq.count]();
  if (!rq.wr_ids) return ENOMEM;
  ring->uidx = context->qps.store(ring);
  return ring->uidx == UidxTable<Qp>::kNone ? ENOMEM : 0;
}

void discard(Context* context, Wq* wq) {
  Qp& ring = wq->ring;
  if (ring.uidx != UidxTable<Qp>::kNone) context->qps.clear(ring.uidx);
  release(context, &ring.db);
  release(context, &ring.buffer);
  delete[] ring.rq.wr_ids;
  delete wq;
}

// Striding queues: the device says within which bounds, and has none where it says zero.
int check_striding(const Context* context, const mlx5dv_wq_init_attr* vendor, mlx5_ib_create_wq* request) {
  if (!vendor) return 0;
  if (vendor->comp_mask & ~std::uint64_t{MLX5DV_WQ_INIT_ATTR_MASK_STRIDING_RQ}) return EINVAL;
  if (!vendor->comp_mask) return 0;
  const auto& caps = context->vendor.striding_rq_caps;
  const auto& asked = vendor->striding_rq_attrs;
  const auto within = [](std::uint32_t value, std::uint32_t low, std::uint32_t high) { return value >= low && value <= high; };
  if (!within(asked.single_stride_log_num_of_bytes, caps.min_single_stride_log_num_of_bytes,
              caps.max_single_stride_log_num_of_bytes) ||
      !within(asked.single_wqe_log_num_of_strides, caps.min_single_wqe_log_num_of_strides,
              caps.max_single_wqe_log_num_of_strides))
    return EINVAL;
  request->single_stride_log_num_of_bytes = asked.single_stride_log_num_of_bytes;
  request->single_wqe_log_num_of_strides = asked.single_wqe_log_num_of_strides;
  request->two_byte_shift_en = asked.two_byte_shift_en;
  request->comp_mask = MLX5_IB_CREATE_WQ_STRIDING_RQ;
  return 0;
}

}  // namespace

ibv_wq* create_wq(Context* context, ibv_wq_init_attr* attr, const mlx5dv_wq_init_attr* vendor) {
  if (attr->wq_type != IBV_WQT_RQ) return fail_null(EINVAL);
  auto* wq = new (std::nothrow) Wq();
  if (!wq) return fail_null(ENOMEM);
  Qp& ring = wq->ring;
  ring.uidx = UidxTable<Qp>::kNone;
  ring.rq.lock.set_shared(!single_threaded(context, attr->pd));
  mlx5_ib_create_wq request = {};
  mlx5_ib_create_wq_resp response = {};
  int error = compute_size(context, *attr, &ring.rq);
  if (!error) error = check_striding(context, vendor, &request);
  if (!error) error = allocate_ring(context, attr->pd, &ring);
  if (!error) {
    request.buf_addr = reinterpret_cast<std::uintptr_t>(ring.buffer.data);
    request.db_addr = reinterpret_cast<std::uintptr_t>(ring.db.words);
    request.rq_wqe_count = ring.rq.count;
    request.rq_wqe_shift = ring.rq.shift;
    request.user_index = ring.uidx;
    const verbs::Udata udata{&request, sizeof request, &response, sizeof response};
    error = verbena_cmd_create_wq(context->ibv(), attr, &wq->wq, &udata);
  }
  if (error) {
    discard(context, wq);
    return fail_null(error);
  }
  wq->wq.post_recv = post_wq_recv;
  return &wq->wq;
}

ibv_wq* create_wq(ibv_context* ibv, ibv_wq_init_attr* attr) { return create_wq(context_of(ibv), attr, nullptr); }

int modify_wq(ibv_wq* ibwq, ibv_wq_attr* attr) {
  Wq* wq = wq_of(ibwq);
  Qp& ring = wq->ring;
  if (attr->attr_mask & IBV_WQ_ATTR_STATE && attr->wq_state == IBV_WQS_RDY) {
    if (attr->attr_mask & IBV_WQ_ATTR_CURR_STATE && attr->curr_wq_state != ibwq->state) return EINVAL;
    if (ibwq->state == IBV_WQS_RESET) {  // empty, as the device has it
      clean(cq_of(ibwq->cq), ring.uidx, nullptr);
      ring.rq.head = 0;
      ring.rq.tail.store(0, std::memory_order_relaxed);
      ring.db.words[MLX5_RCV_DBR] = ring.db.words[MLX5_SND_DBR] = 0;
    }
  }
  const mlx5_ib_modify_wq request = {};
  const verbs::Udata udata{.in = &request, .in_length = sizeof request};
  return verbena_cmd_modify_wq(ibwq, attr, &udata);
}

int destroy_wq(ibv_wq* ibwq) {
  Wq* wq = wq_of(ibwq);
  if (int error = verbena_cmd_destroy_wq(ibwq)) return error;
  clean(cq_of(ibwq->cq), wq->ring.uidx, nullptr);
  discard(context_of(ibwq->context), wq);
  return 0;
}

ibv_rwq_ind_table* create_rwq_ind_table(ibv_context* ibv, ibv_rwq_ind_table_init_attr* attr) {
  auto* table = new (std::nothrow) ibv_rwq_ind_table{};
  if (!table) return fail_null(ENOMEM);
  if (int error = verbena_cmd_create_rwq_ind_table(ibv, attr, table, nullptr)) {
    delete table;
    return fail_null(error);
  }
  return table;
}

int destroy_rwq_ind_table(ibv_rwq_ind_table* table) {
  if (int error = verbena_cmd_destroy_rwq_ind_table(table)) return error;
  delete table;
  return 0;
}

}  // namespace verbena::mlx5
