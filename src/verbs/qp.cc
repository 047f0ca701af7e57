// Queue pairs, shared receive queues, address handles and multicast.
#include "verbs/internal.h"

using namespace verbena::verbs;

extern "C" {

// ---- queue pairs ----

ibv_qp* ibv_create_qp(ibv_pd* pd, ibv_qp_init_attr* attr) { return ops(pd->context).create_qp(pd, attr); }

ibv_qp_ex* ibv_qp_to_qp_ex(ibv_qp* qp) {
  Qp* own = derived<Qp>(qp);
  return own->comp_mask & kQpIsEx ? &own->qp_ex : nullptr;
}

int ibv_query_qp(ibv_qp* qp, ibv_qp_attr* attr, int mask, ibv_qp_init_attr* init) {
  int error = ops(qp->context).query_qp(qp, attr, mask, init);
  if (!error && (mask & IBV_QP_STATE)) qp->state = attr->qp_state;
  return error;
}

int ibv_modify_qp(ibv_qp* qp, ibv_qp_attr* attr, int mask) {
  int error = ops(qp->context).modify_qp(qp, attr, mask);
  if (!error && (mask & IBV_QP_STATE)) qp->state = attr->qp_state;
  return error;
}

int ibv_destroy_qp(ibv_qp* qp) { return ops(qp->context).destroy_qp(qp); }

int ibv_query_qp_data_in_order(ibv_qp* qp, ibv_wr_opcode opcode, std::uint32_t flags) {
#if defined(__x86_64__) || defined(__i386__)
  return ops(qp->context).query_qp_data_in_order(qp, opcode, flags);
#else
  (void)qp, (void)opcode, (void)flags;
  return 0;  // other machines may make data visible out of order whatever the device does
#endif
}

int ibv_set_ece(ibv_qp* qp, ibv_ece* ece) {
  if (!ece->vendor_id) return report(EOPNOTSUPP);
  return ops(qp->context).set_ece(qp, ece);
}

int ibv_query_ece(ibv_qp* qp, ibv_ece* ece) { return ops(qp->context).query_ece(qp, ece); }

int ibv_attach_mcast(ibv_qp* qp, const ibv_gid* gid, std::uint16_t lid) {
  return ops(qp->context).attach_mcast(qp, gid, lid);
}

int ibv_detach_mcast(ibv_qp* qp, const ibv_gid* gid, std::uint16_t lid) {
  return ops(qp->context).detach_mcast(qp, gid, lid);
}

// ---- shared receive queues ----

ibv_srq* ibv_create_srq(ibv_pd* pd, ibv_srq_init_attr* attr) {
  ibv_srq* srq = ops(pd->context).create_srq(pd, attr);
  if (srq) {
    srq->context = pd->context;
    srq->srq_context = attr->srq_context;
    srq->pd = pd;
  }
  return srq;
}

int ibv_modify_srq(ibv_srq* srq, ibv_srq_attr* attr, int mask) { return ops(srq->context).modify_srq(srq, attr, mask); }

int ibv_query_srq(ibv_srq* srq, ibv_srq_attr* attr) { return ops(srq->context).query_srq(srq, attr); }

int ibv_destroy_srq(ibv_srq* srq) { return ops(srq->context).destroy_srq(srq); }

// ---- address handles ----

ibv_ah* ibv_create_ah(ibv_pd* pd, ibv_ah_attr* attr) {
  ibv_ah* ah = ops(pd->context).create_ah(pd, attr);
  if (ah) {
    ah->context = pd->context;
    ah->pd = pd;
  }
  return ah;
}

int ibv_destroy_ah(ibv_ah* ah) { return ops(ah->context).destroy_ah(ah); }

}  // extern "C"
