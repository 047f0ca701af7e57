// mlx5dv_init_obj(): where the rings and doorbell records of an object are, for programs that write WQEs by hand.

#include "mlx5/devx/object.h"
#include "mlx5/dm.h"
#include "mlx5/export.h"
#include "mlx5/ops.h"

namespace {

using namespace verbena::mlx5;

constexpr std::uint32_t kAlwaysPending = 1;

// The embedded device hears of no store to a doorbell record or UAR, so it must look at those of this queue from now on.
// Whoever polls a CQ of it through the library does so too.
void watch(ibv_qp* ibqp) {
  const verbena::uverbs::Backend* backend = context_of(ibqp->context)->backend;
  if (!backend->watch_sq || backend->watch_sq(ibqp->context->cmd_fd, ibqp->handle)) return;
  for (ibv_cq* cq : {ibqp->send_cq, ibqp->recv_cq})
    if (cq) __atomic_store_n(&cq_of(cq)->pending, &kAlwaysPending, __ATOMIC_RELEASE);
}

int describe(ibv_qp* ibqp, mlx5dv_qp* out) {
  Qp* qp = qp_of(ibqp);
  watch(ibqp);
  const std::uint64_t asked = out->comp_mask;
  out->comp_mask = 0;
  out->dbrec = qp->db.words;
  out->sq.buf = qp->sq.start;
  out->sq.wqe_cnt = qp->sq.blocks;
  out->sq.stride = kWqeBlock;
  out->rq.buf = qp->rq.start;
  out->rq.wqe_cnt = qp->rq.count;
  out->rq.stride = 1u << qp->rq.shift;
  out->bf.reg = qp->sq.uar ? qp->sq.uar->reg : nullptr;
  out->bf.size = qp->sq.uar ? qp->sq.uar->bf_size : 0;
  if ((asked & MLX5DV_QP_MASK_UAR_MMAP_OFFSET) && qp->sq.uar) {
    out->uar_mmap_offset = static_cast<off_t>(qp->sq.uar->mmap_offset);
    out->comp_mask |= MLX5DV_QP_MASK_UAR_MMAP_OFFSET;
  }
  if (asked & MLX5DV_QP_MASK_RAW_QP_HANDLES) {  // only raw packet QPs have them
    out->tirn = qp->parts.tirn;
    out->tisn = qp->parts.tisn;
    out->rqn = qp->parts.rqn;
    out->sqn = qp->parts.sqn;
    out->comp_mask |= MLX5DV_QP_MASK_RAW_QP_HANDLES;
  }
  if (asked & MLX5DV_QP_MASK_RAW_QP_TIR_ADDR) {
    out->tir_icm_addr = qp->parts.tir_icm_addr;
    out->comp_mask |= MLX5DV_QP_MASK_RAW_QP_TIR_ADDR;
  }
  return 0;
}

// From now on the program moves the consumer index, so the library keeps its hands off it.
int describe(ibv_cq* ibcq, mlx5dv_cq* out) {
  Cq* cq = cq_of(ibcq);
  out->comp_mask = 0;
  out->buf = cq->buf;
  out->dbrec = cq->dbrec;
  out->cqe_cnt = cq->count_bit;
  out->cqe_size = 1u << cq->shift;
  out->cq_uar = context_of(ibcq->context)->cq_uar;
  out->cqn = cq->cqn;
  cq->dv_owned = true;
  const verbena::uverbs::Backend* backend = context_of(ibcq->context)->backend;
  if (backend->watch_cq) backend->watch_cq(ibcq->context->cmd_fd, ibcq->handle);
  return 0;
}

int describe(ibv_srq* ibsrq, mlx5dv_srq* out) {
  const Srq* srq = srq_of(ibsrq);
  const std::uint64_t asked = out->comp_mask;
  out->comp_mask = 0;
  out->buf = srq->start;
  out->dbrec = srq->dbrec;
  out->stride = 1u << srq->shift;
  out->head = srq->head;
  out->tail = srq->tail;
  if (asked & MLX5DV_SRQ_MASK_SRQN) {
    out->srqn = srq->srqn;
    out->comp_mask |= MLX5DV_SRQ_MASK_SRQN;
  }
  return 0;
}

int describe(ibv_wq* ibwq, mlx5dv_rwq* out) {
  const RecvQueue& rq = wq_of(ibwq)->ring.rq;
  out->comp_mask = 0;
  out->buf = rq.start;
  out->dbrec = wq_of(ibwq)->ring.db.words;
  out->wqe_cnt = rq.count;
  out->stride = 1u << rq.shift;
  return 0;
}

int describe(ibv_ah* ibah, mlx5dv_ah* out) {
  out->comp_mask = 0;
  out->av = &ah_of(ibah)->av;
  return 0;
}

int describe(ibv_pd* ibpd, mlx5dv_pd* out) {
  out->comp_mask = 0;
  out->pdn = pd_of(ibpd)->pdn;
  return 0;
}

// The context all objects named in `type` must share the vendor of.
int describe(ibv_dm* ibdm, mlx5dv_dm* out) {
  const Dm* dm = dm_of(ibdm);
  const std::uint64_t asked = out->comp_mask;
  out->buf = dm->start;
  out->length = dm->length;
  if (asked & MLX5DV_DM_MASK_REMOTE_VA) out->remote_va = dm->remote_va;
  out->comp_mask = asked & MLX5DV_DM_MASK_REMOTE_VA;
  return 0;
}

int describe(const mlx5dv_devx_obj* object, mlx5dv_devx* out) {
  out->handle = object->handle;
  return 0;
}

ibv_context* any_context(const mlx5dv_obj* obj, std::uint64_t type) {
  if (type & MLX5DV_OBJ_QP) return obj->qp.in->context;
  if (type & MLX5DV_OBJ_CQ) return obj->cq.in->context;
  if (type & MLX5DV_OBJ_SRQ) return obj->srq.in->context;
  if (type & MLX5DV_OBJ_RWQ) return obj->rwq.in->context;
  if (type & MLX5DV_OBJ_AH) return obj->ah.in->context;
  if (type & MLX5DV_OBJ_PD) return obj->pd.in->context;
  if (type & MLX5DV_OBJ_DM) return obj->dm.in->context;
  if (type & MLX5DV_OBJ_DEVX) return obj->devx.in->context->ibv();
  return nullptr;
}

}  // namespace

extern "C" {

int verbena_init_obj_1_2(mlx5dv_obj* obj, std::uint64_t type);
int verbena_init_obj_1_0(mlx5dv_obj* obj, std::uint64_t type);

VERBENA_MLX5_EXPORT int verbena_init_obj_1_2(mlx5dv_obj* obj, std::uint64_t type) {
  ibv_context* ibv = any_context(obj, type);
  if (!ibv) return EINVAL;
  if (!mlx5_context(ibv)) return EOPNOTSUPP;
  int error = 0;
  if (type & MLX5DV_OBJ_QP) error = describe(obj->qp.in, obj->qp.out);
  if (!error && (type & MLX5DV_OBJ_CQ)) error = describe(obj->cq.in, obj->cq.out);
  if (!error && (type & MLX5DV_OBJ_SRQ)) error = describe(obj->srq.in, obj->srq.out);
  if (!error && (type & MLX5DV_OBJ_RWQ)) error = describe(obj->rwq.in, obj->rwq.out);
  if (!error && (type & MLX5DV_OBJ_DM)) error = describe(obj->dm.in, obj->dm.out);
  if (!error && (type & MLX5DV_OBJ_DEVX)) error = describe(obj->devx.in, obj->devx.out);
  if (!error && (type & MLX5DV_OBJ_AH)) error = describe(obj->ah.in, obj->ah.out);
  if (!error && (type & MLX5DV_OBJ_PD)) error = describe(obj->pd.in, obj->pd.out);
  return error;
}

// Programs of the first version take cq_uar for the address of the library's pointer.
VERBENA_MLX5_EXPORT int verbena_init_obj_1_0(mlx5dv_obj* obj, std::uint64_t type) {
  const int error = verbena_init_obj_1_2(obj, type);
  if (!error && (type & MLX5DV_OBJ_CQ)) obj->cq.out->cq_uar = &context_of(obj->cq.in->context)->cq_uar;
  return error;
}

}  // extern "C"

__asm__(".symver verbena_init_obj_1_0, mlx5dv_init_obj@MLX5_1.0");
__asm__(".symver verbena_init_obj_1_2, mlx5dv_init_obj@@MLX5_1.2");
