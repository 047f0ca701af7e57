// mlx5dv: queues with vendor properties.

#include <pthread.h>

#include "mlx5/export.h"
#include "mlx5/ops.h"

namespace {

using namespace verbena::mlx5;

// What ibv_create_cq() does after the provider made the queue.
void publish(ibv_context* ibv, const ibv_cq_init_attr_ex& attr, ibv_cq* cq) {
  cq->context = ibv;
  cq->channel = attr.channel;
  cq->cq_context = attr.cq_context;
  cq->comp_events_completed = 0;
  cq->async_events_completed = 0;
  pthread_mutex_init(&cq->mutex, nullptr);
  pthread_cond_init(&cq->cond, nullptr);
  if (!attr.channel) return;
  pthread_mutex_lock(&ibv->mutex);
  ++attr.channel->refcnt;
  pthread_mutex_unlock(&ibv->mutex);
}

}  // namespace

extern "C" {

VERBENA_MLX5_EXPORT ibv_cq_ex* mlx5dv_create_cq(ibv_context* ibv, ibv_cq_init_attr_ex* attr,
                                                mlx5dv_cq_init_attr* vendor) {
  Context* context = mlx5_context(ibv);
  if (!context) return fail_null(EOPNOTSUPP);
  Cq* cq = create_cq(context, *attr, true, vendor);
  if (!cq) return nullptr;
  publish(ibv, *attr, &cq->verbs.cq);
  return &cq->verbs.cq_ex;
}

VERBENA_MLX5_EXPORT ibv_qp* mlx5dv_create_qp(ibv_context* ibv, ibv_qp_init_attr_ex* attr, mlx5dv_qp_init_attr* vendor) {
  Context* context = mlx5_context(ibv);
  if (!context) return fail_null(EOPNOTSUPP);
  Qp* qp = create_qp(context, attr, vendor);
  return qp ? &qp->verbs.qp : nullptr;
}

VERBENA_MLX5_EXPORT ibv_wq* mlx5dv_create_wq(ibv_context* ibv, ibv_wq_init_attr* attr, mlx5dv_wq_init_attr* vendor) {
  Context* context = mlx5_context(ibv);
  return context ? create_wq(context, attr, vendor) : fail_null(EOPNOTSUPP);
}

// The table exists for every extended QP; its builders are filled where the QP was made with vendor send_ops.
VERBENA_MLX5_EXPORT mlx5dv_qp_ex* mlx5dv_qp_ex_from_ibv_qp_ex(ibv_qp_ex* qp) { return &qp_of(&qp->qp_base)->dv; }

}  // extern "C"
