#include "mlx5/qp_state.h"

#include "mlx5/cqe.h"
#include "mlx5/ops.h"
#include "mlx5/wr.h"

namespace verbena::mlx5 {

// Receives from INIT on, sends from RTS on; SQD, SQE and ERR keep accepting (they queue or flush).
void set_operational(Qp* qp, ibv_qp_state state) {
  switch (state) {
    case IBV_QPS_RESET:
      set_completing(qp, false);
      qp->sq.max_sge_now = -1;
      qp->rq.max_sge_now = -1;
      break;
    case IBV_QPS_INIT:
      qp->rq.max_sge_now = static_cast<std::int32_t>(qp->rq.max_sge);
      break;
    case IBV_QPS_RTS:
      qp->sq.max_sge_now = static_cast<std::int32_t>(qp->sq.max_sge);
      set_completing(qp, true);
      break;
    default:
      break;
  }
}

namespace {

// Empty rings, as the device has them after RESET.
void reset_rings(Qp* qp) {
  const ibv_qp& ibqp = qp->verbs.qp;
  if (ibqp.recv_cq) clean(cq_of(ibqp.recv_cq), qp->uidx, qp->srq);
  if (ibqp.send_cq && ibqp.send_cq != ibqp.recv_cq) clean(cq_of(ibqp.send_cq), qp->uidx, nullptr);
  qp->sq.head = qp->sq.cur_post = 0;
  qp->sq.next_fence = 0;
  qp->sq.tail.store(0, std::memory_order_relaxed);
  qp->rq.head = 0;
  qp->rq.tail.store(0, std::memory_order_relaxed);
  if (!qp->sq.dbrec) return;  // a further handle of an XRC target
  *qp->sq.dbrec = 0;
  qp->db.words[MLX5_RCV_DBR] = 0;
}

// The RQ of a raw packet QP receives from INIT on; the QP must not before RTR. So what is posted until then is kept from the
// device.
void show_receives(Qp* qp, ibv_qp_state state) {
  RecvQueue& rq = qp->rq;
  rq.lock.lock();
  const bool hold = state == IBV_QPS_RESET || state == IBV_QPS_INIT;
  rq.dbrec = hold ? &qp->held_dbrec : &qp->db.words[MLX5_RCV_DBR];
  if (!hold) __atomic_store_n(rq.dbrec, be(rq.head & 0xffff), __ATOMIC_RELEASE);
  rq.lock.unlock();
}

// Checksums are an ability of the port that the QP was given.
void learn_port(Qp* qp, std::uint8_t port) {
  const Context* context = context_of(qp->verbs.qp.context);
  if (port == 0 || port > context->link_layer.size() || context->link_layer[port - 1] != IBV_LINK_LAYER_ETHERNET) return;
  if (context->device_cap_flags & IBV_DEVICE_RAW_IP_CSUM) qp->rx_checksums = qp->tx_checksums = true;
}

}  // namespace

int modify_qp(ibv_qp* ibqp, ibv_qp_attr* attr, int mask) {
  Qp* qp = qp_of(ibqp);
  if (qp->hashes) return EOPNOTSUPP;
  if (qp->frames && (mask & IBV_QP_PORT)) learn_port(qp, attr->port_num);
  int error;
  if (qp->ece_set) {
    mlx5_ib_modify_qp request = {};
    mlx5_ib_modify_qp_resp response = {};
    request.ece_options = qp->ece_set;
    const verbs::Udata udata{&request, sizeof request, &response, sizeof response};
    error = verbena_cmd_modify_qp(ibqp, attr, mask, &udata);
    if (!error) {
      qp->ece_set = 0;
      qp->ece_got = response.ece_options;
    }
  } else {
    error = verbena_cmd_modify_qp(ibqp, attr, mask, nullptr);
  }
  if (error || !(mask & IBV_QP_STATE)) return error;
  if (attr->qp_state == IBV_QPS_RESET) reset_rings(qp);
  if (qp->frames) show_receives(qp, attr->qp_state);
  set_operational(qp, attr->qp_state);
  return 0;
}

int modify_qp_rate_limit(ibv_qp* ibqp, ibv_qp_rate_limit_attr* attr) {
  if (attr->comp_mask) return EINVAL;
  const bool bursts = context_of(ibqp->context)->vendor.packet_pacing_caps.cap_flags & MLX5_IB_PP_SUPPORT_BURST;
  if ((attr->max_burst_sz || attr->typical_pkt_sz) && (!attr->rate_limit || !bursts)) return EINVAL;
  mlx5_ib_modify_qp request = {};
  request.burst_info.max_burst_sz = attr->max_burst_sz;
  request.burst_info.typical_pkt_sz = attr->typical_pkt_sz;
  ibv_qp_attr limit = {};
  limit.rate_limit = attr->rate_limit;
  const verbs::Udata udata{.in = &request, .in_length = sizeof request};
  return verbena_cmd_modify_qp(ibqp, &limit, IBV_QP_RATE_LIMIT, &udata);
}

int query_qp(ibv_qp* ibqp, ibv_qp_attr* attr, int mask, ibv_qp_init_attr* init) {
  if (int error = verbena_cmd_query_qp(ibqp, attr, mask, init)) return error;
  const Qp* qp = qp_of(ibqp);
  init->cap.max_send_wr = qp->sq.max_post;
  init->cap.max_send_sge = qp->sq.max_sge;
  init->cap.max_inline_data = qp->sq.max_inline;
  attr->cap = init->cap;
  return 0;
}

int set_ece(ibv_qp* ibqp, ibv_ece* ece) {
  constexpr std::uint32_t kMellanox = 0x15b3;
  if (ece->comp_mask || ece->vendor_id != kMellanox) return fail(EINVAL);
  if (!context_of(ibqp->context)->ece) return fail(EOPNOTSUPP);
  qp_of(ibqp)->ece_set = ece->options;
  qp_of(ibqp)->ece_got = 0;
  return 0;
}

int query_ece(ibv_qp* ibqp, ibv_ece* ece) {
  ece->vendor_id = 0x15b3;
  ece->options = qp_of(ibqp)->ece_got;
  ece->comp_mask = 0;
  return 0;
}

// Payload lands lowest address first where the device says so of itself, and only once the QP sends.
int query_qp_data_in_order(ibv_qp* ibqp, ibv_wr_opcode, std::uint32_t flags) {
  return !flags && ibqp->state == IBV_QPS_RTS && context_of(ibqp->context)->hca.qp_data_in_order;
}

int attach_mcast(ibv_qp* qp, const ibv_gid* gid, std::uint16_t lid) { return verbena_cmd_attach_mcast(qp, gid, lid); }
int detach_mcast(ibv_qp* qp, const ibv_gid* gid, std::uint16_t lid) { return verbena_cmd_detach_mcast(qp, gid, lid); }

}  // namespace verbena::mlx5
