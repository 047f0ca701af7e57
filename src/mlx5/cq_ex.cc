#include "mlx5/cq_ex.h"

#include <array>

#include "mlx5/cqe.h"
#include "mlx5/ops.h"
#include "mlx5/scatter.h"

namespace verbena::mlx5 {

namespace {

constexpr int kCorrupt = EINVAL;

inline Cq* cq_of_ex(ibv_cq_ex* ex) { return cq_of(ibv_cq_ex_to_cq(ex)); }

// A CQE of an XRC SRQ, or of nothing.
[[gnu::noinline, gnu::cold]] int consume_xrc(Cq* cq, const mlx5_cqe64* cqe, Qp* owner) {
  if (!owner) return kCorrupt;
  cq->cqe = cqe;
  cq->checksums = false;
  const std::uint8_t opcode = cqe->op_own >> 4;
  if (opcode == MLX5_CQE_REQ || (opcode > MLX5_CQE_RESP_SEND_INV && opcode != MLX5_CQE_RESP_ERR)) return kCorrupt;
  ibv_cq_ex* ex = &cq->verbs.cq_ex;
  ex->status = opcode == MLX5_CQE_RESP_ERR ? status_of(as_error(cqe)->syndrome)
               : holds_result(cqe)         ? deliver(cq, cqe, receive_queue_of(owner))
                                           : IBV_WC_SUCCESS;
  ex->wr_id = retire_srq_recv(receive_queue_of(owner), cqe);
  return 0;
}

// Consumes `cqe`: wr_id and status become fields of the session, the rest is read on demand. What most CQEs are; false:
// another kind, and nothing has happened. Saves no registers, unlike the whole.
inline bool consume_plain(Cq* cq, const mlx5_cqe64* cqe) {
  Qp* qp = find_qp(cq, cqe);
  if (__builtin_expect(!is_queue_pair(qp) || holds_result(cqe), 0)) return false;
  ibv_cq_ex* ex = &cq->verbs.cq_ex;
  const std::uint8_t opcode = cqe->op_own >> 4;
  if (opcode == MLX5_CQE_REQ) {
    const SendEntry& entry = retire_send(qp, cqe);
    ex->wr_id = entry.wr_id;
    cq->wc_opcode = entry.wc_opcode;
  } else {
    if (__builtin_expect(opcode > MLX5_CQE_RESP_SEND_INV || qp->srq != nullptr, 0)) return false;
    ex->wr_id = retire_recv(qp);
    cq->checksums = qp->rx_checksums;
  }
  ++cq->ci;
  cq->cqe = cqe;
  ex->status = IBV_WC_SUCCESS;
  return true;
}

// The others.
[[gnu::noinline]] int consume_other(Cq* cq, const mlx5_cqe64* cqe) {
  ++cq->ci;
  Qp* qp = find_qp(cq, cqe);
  if (!is_queue_pair(qp)) return consume_xrc(cq, cqe, qp);
  cq->cqe = cqe;
  ibv_cq_ex* ex = &cq->verbs.cq_ex;
  ex->status = holds_result(cqe) ? deliver(cq, cqe, qp) : IBV_WC_SUCCESS;
  const std::uint8_t opcode = cqe->op_own >> 4;
  const bool is_send = opcode == MLX5_CQE_REQ || opcode == MLX5_CQE_REQ_ERR;
  if (opcode == MLX5_CQE_REQ_ERR || opcode == MLX5_CQE_RESP_ERR)
    ex->status = status_of(as_error(cqe)->syndrome);
  else if (opcode > MLX5_CQE_RESP_SEND_INV)
    return kCorrupt;
  if (is_send) {
    const SendEntry& entry = retire_send(qp, cqe);
    ex->wr_id = entry.wr_id;
    cq->wc_opcode = entry.wc_opcode;
  } else {
    ex->wr_id = retire_receive(qp, cqe);
    cq->checksums = qp->rx_checksums;
  }
  return 0;
}

// The first of a session, where that takes more; the lock is held, and given back if there is an error.
template <bool kClock>
[[gnu::noinline]] int begin_slowly(Cq* cq, const mlx5_cqe64* cqe) {
  int error = kClock && consume_plain(cq, cqe) ? 0 : consume_other(cq, cqe);
  if constexpr (kClock) {
    if (!error) error = read_clock_info(context_of(cq->verbs.cq.context), &cq->clock);
  }
  if (__builtin_expect(error, 0)) {
    update_ci(cq);
    cq->lock.unlock();
  }
  return error;
}

template <bool kClock>
inline int begin(Cq* cq, const mlx5_cqe64* cqe) {
  cq->patience = kPatientPolls;
  if (!kClock && consume_plain(cq, cqe)) return 0;
  return begin_slowly<kClock>(cq, cqe);
}

template <bool kClock>
[[gnu::noinline, gnu::cold]] int start_after_step(Cq* cq) {
  step(cq);
  cq->lock.lock();
  if (const mlx5_cqe64* cqe = next_cqe(cq)) return begin<kClock>(cq, cqe);
  return found_nothing(cq, ENOENT);
}

// Programs spin on this: the empty case saves no registers.
template <bool kClock>
int start_poll(ibv_cq_ex* ex, ibv_poll_cq_attr* attr) {
  Cq* cq = cq_of_ex(ex);
  if (__builtin_expect(attr->comp_mask, 0)) return EINVAL;
  if (__builtin_expect(__atomic_load_n(cq->pending, __ATOMIC_RELAXED), 0)) return start_after_step<kClock>(cq);
  cq->lock.lock();
  if (const mlx5_cqe64* cqe = next_cqe(cq)) return begin<kClock>(cq, cqe);
  return found_nothing(cq, ENOENT);
}

int next_poll(ibv_cq_ex* ex) {
  Cq* cq = cq_of_ex(ex);
  const mlx5_cqe64* cqe = next_cqe(cq);
  if (!cqe) return ENOENT;
  return consume_plain(cq, cqe) ? 0 : consume_other(cq, cqe);
}

void end_poll(ibv_cq_ex* ex) {
  Cq* cq = cq_of_ex(ex);
  update_ci(cq);
  cq->lock.unlock();
}

// What the opcode of a CQE says about a receive.
struct Receive {
  ibv_wc_opcode opcode;
  std::uint32_t flags;
};
constexpr auto kReceives = [] {
  std::array<Receive, 16> all{};
  all[MLX5_CQE_RESP_WR_IMM] = {IBV_WC_RECV_RDMA_WITH_IMM, IBV_WC_WITH_IMM};
  all[MLX5_CQE_RESP_SEND] = {IBV_WC_RECV, 0};
  all[MLX5_CQE_RESP_SEND_IMM] = {IBV_WC_RECV, IBV_WC_WITH_IMM};
  all[MLX5_CQE_RESP_SEND_INV] = {IBV_WC_RECV, IBV_WC_WITH_INV};
  return all;
}();

ibv_wc_opcode read_opcode(ibv_cq_ex* ex) {
  const Cq* cq = cq_of_ex(ex);
  const unsigned cqe_opcode = cq->cqe->op_own >> 4;
  if (cqe_opcode != MLX5_CQE_REQ) return kReceives[cqe_opcode].opcode;
  const std::uint32_t opcode = kWcOpcodes[send_opcode(cq->cqe)];
  return static_cast<ibv_wc_opcode>(opcode == kFromEntry ? cq->wc_opcode : opcode & 0xffff);
}

unsigned read_wc_flags(ibv_cq_ex* ex) {
  const Cq* cq = cq_of_ex(ex);
  const mlx5_cqe64* cqe = cq->cqe;
  const unsigned cqe_opcode = cqe->op_own >> 4;
  unsigned flags = kReceives[cqe_opcode].flags;
  if (cqe->flags_rqpn & be(3u << 28)) flags |= IBV_WC_GRH;
  if (__builtin_expect(cq->checksums, 0) && cqe_opcode == MLX5_CQE_RESP_SEND) flags |= checksum_flag(cqe);
  return flags;
}

std::uint32_t read_vendor_err(ibv_cq_ex* ex) { return as_error(cq_of_ex(ex)->cqe)->vendor_err_synd; }
std::uint32_t read_byte_len(ibv_cq_ex* ex) { return be(cq_of_ex(ex)->cqe->byte_cnt); }

// Doubles as the invalidated key, which programs take in host order.
__be32 read_imm_data(ibv_cq_ex* ex) {
  const mlx5_cqe64* cqe = cq_of_ex(ex)->cqe;
  if (cqe->op_own >> 4 == MLX5_CQE_RESP_SEND_INV) return be(cqe->imm_inval_pkey);
  return cqe->imm_inval_pkey;
}

std::uint32_t read_qp_num(ibv_cq_ex* ex) { return be(cq_of_ex(ex)->cqe->sop_drop_qpn) & 0xffffff; }
std::uint32_t read_src_qp(ibv_cq_ex* ex) { return be(cq_of_ex(ex)->cqe->flags_rqpn) & 0xffffff; }
std::uint32_t read_slid(ibv_cq_ex* ex) { return be(cq_of_ex(ex)->cqe->slid); }
std::uint8_t read_sl(ibv_cq_ex* ex) { return (be(cq_of_ex(ex)->cqe->flags_rqpn) >> 24) & 0xf; }
std::uint8_t read_dlid_path_bits(ibv_cq_ex* ex) { return cq_of_ex(ex)->cqe->ml_path & 0x7f; }
std::uint64_t read_timestamp(ibv_cq_ex* ex) { return be(cq_of_ex(ex)->cqe->timestamp); }
std::uint64_t read_wallclock(ibv_cq_ex* ex) {
  return mlx5dv_ts_to_ns(&cq_of_ex(ex)->clock, be(cq_of_ex(ex)->cqe->timestamp));
}
std::uint16_t read_cvlan(ibv_cq_ex* ex) { return be(cq_of_ex(ex)->cqe->vlan_info); }
std::uint32_t read_flow_tag(ibv_cq_ex* ex) { return be(cq_of_ex(ex)->cqe->sop_drop_qpn) & 0xffffff; }
void read_tm_info(ibv_cq_ex* ex, ibv_wc_tm_info* info) {
  const mlx5_cqe64* cqe = cq_of_ex(ex)->cqe;
  info->tag = be(cqe->tmh.tag);
  info->priv = be(cqe->tmh.app_ctx);
}

}  // namespace

int fill_cq_ex(Context* context, Cq* cq, std::uint64_t wc_flags) {
  ibv_cq_ex* ex = &cq->verbs.cq_ex;
  const bool raw = wc_flags & IBV_WC_EX_WITH_COMPLETION_TIMESTAMP;
  const bool wallclock = wc_flags & IBV_WC_EX_WITH_COMPLETION_TIMESTAMP_WALLCLOCK;
  // Where CQEs already carry real time, nothing needs converting.
  const bool real_time = wallclock && !raw && context->real_time_ts;
  const bool convert = wallclock && !real_time;
  if (convert && !context->clock_info) return EOPNOTSUPP;
  ex->start_poll = convert ? start_poll<true> : start_poll<false>;
  ex->next_poll = next_poll;
  ex->end_poll = end_poll;
  ex->read_opcode = read_opcode;
  ex->read_vendor_err = read_vendor_err;
  ex->read_wc_flags = read_wc_flags;
  if (wc_flags & IBV_WC_EX_WITH_BYTE_LEN) ex->read_byte_len = read_byte_len;
  if (wc_flags & IBV_WC_EX_WITH_IMM) ex->read_imm_data = read_imm_data;
  if (wc_flags & IBV_WC_EX_WITH_QP_NUM) ex->read_qp_num = read_qp_num;
  if (wc_flags & IBV_WC_EX_WITH_SRC_QP) ex->read_src_qp = read_src_qp;
  if (wc_flags & IBV_WC_EX_WITH_SLID) ex->read_slid = read_slid;
  if (wc_flags & IBV_WC_EX_WITH_SL) ex->read_sl = read_sl;
  if (wc_flags & IBV_WC_EX_WITH_DLID_PATH_BITS) ex->read_dlid_path_bits = read_dlid_path_bits;
  if (raw) ex->read_completion_ts = read_timestamp;
  if (wallclock) ex->read_completion_wallclock_ns = real_time ? read_timestamp : read_wallclock;
  if (wc_flags & IBV_WC_EX_WITH_CVLAN) ex->read_cvlan = read_cvlan;
  if (wc_flags & IBV_WC_EX_WITH_FLOW_TAG) ex->read_flow_tag = read_flow_tag;
  if (wc_flags & IBV_WC_EX_WITH_TM_INFO) ex->read_tm_info = read_tm_info;
  return 0;
}

}  // namespace verbena::mlx5
