// ibv_poll_cq().

#include <algorithm>

#include "mlx5/cqe.h"
#include "mlx5/ops.h"
#include "mlx5/scatter.h"

namespace verbena::mlx5 {

namespace {

constexpr int kCorrupt = -2;  // as rdma-core: a CQE that names nothing we know

void fill_send(const mlx5_cqe64* cqe, Qp* qp, ibv_wc* wc) {
  const SendEntry& entry = retire_send(qp, cqe);
  std::uint32_t opcode = kWcOpcodes[send_opcode(cqe)];
  wc->wr_id = entry.wr_id;
  if (__builtin_expect(opcode == kFromEntry, 0)) opcode = entry.wc_opcode;
  wc->status = IBV_WC_SUCCESS;
  wc->opcode = static_cast<ibv_wc_opcode>(opcode & 0xffff);
  wc->wc_flags = opcode >> 16 ? IBV_WC_WITH_IMM : 0;
  wc->byte_len = be(cqe->byte_cnt);
}

inline void fill_recv(const mlx5_cqe64* cqe, std::uint8_t cqe_opcode, std::uint64_t wr_id, bool checksums,
                      ibv_wc* wc) {
  wc->wr_id = wr_id;
  wc->status = IBV_WC_SUCCESS;
  wc->byte_len = be(cqe->byte_cnt);
  const std::uint32_t flags_rqpn = be(cqe->flags_rqpn);
  unsigned flags = (flags_rqpn >> 28) & 3 ? IBV_WC_GRH : 0;
  if (__builtin_expect(checksums, 0)) flags |= checksum_flag(cqe);
  wc->opcode = IBV_WC_RECV;
  if (cqe_opcode != MLX5_CQE_RESP_SEND) {
    if (cqe_opcode == MLX5_CQE_RESP_SEND_INV) {
      flags |= IBV_WC_WITH_INV;
      wc->invalidated_rkey = be(cqe->imm_inval_pkey);
    } else {
      flags |= IBV_WC_WITH_IMM;
      wc->imm_data = cqe->imm_inval_pkey;
      if (cqe_opcode == MLX5_CQE_RESP_WR_IMM) wc->opcode = IBV_WC_RECV_RDMA_WITH_IMM;
    }
  }
  wc->wc_flags = flags;
  wc->src_qp = flags_rqpn & 0xffffff;
  wc->pkey_index = static_cast<std::uint16_t>(be(cqe->imm_inval_pkey));
  wc->slid = be(cqe->slid);
  wc->sl = (flags_rqpn >> 24) & 0xf;
  wc->dlid_path_bits = cqe->ml_path & 0x7f;
}

[[gnu::noinline, gnu::cold]] void fill_error(const mlx5_cqe64* cqe, std::uint8_t cqe_opcode, Qp* qp, ibv_wc* wc) {
  wc->status = status_of(as_error(cqe)->syndrome);
  wc->vendor_err = as_error(cqe)->vendor_err_synd;
  wc->wc_flags = 0;
  wc->wr_id = cqe_opcode == MLX5_CQE_REQ_ERR ? retire_send(qp, cqe).wr_id : retire_receive(qp, cqe);
}

// A CQE of an XRC SRQ, or of nothing.
[[gnu::noinline, gnu::cold]] int take_xrc(const Cq* cq, const mlx5_cqe64* cqe, Qp* owner, ibv_wc* wc) {
  if (!owner) return kCorrupt;
  const std::uint8_t cqe_opcode = cqe->op_own >> 4;
  const ibv_wc_status delivered = holds_result(cqe) ? deliver(cq, cqe, receive_queue_of(owner)) : IBV_WC_SUCCESS;
  const std::uint64_t wr_id = retire_srq_recv(receive_queue_of(owner), cqe);
  wc->qp_num = be(cqe->sop_drop_qpn) & 0xffffff;
  if (cqe_opcode != MLX5_CQE_REQ && cqe_opcode <= MLX5_CQE_RESP_SEND_INV) {
    fill_recv(cqe, cqe_opcode, wr_id, false, wc);
    wc->status = delivered;
    return 0;
  }
  if (cqe_opcode != MLX5_CQE_RESP_ERR) return kCorrupt;
  wc->wr_id = wr_id;
  wc->status = status_of(as_error(cqe)->syndrome);
  wc->vendor_err = as_error(cqe)->vendor_err_synd;
  wc->wc_flags = 0;
  return 0;
}

inline int take_of(const mlx5_cqe64* cqe, Qp* qp, ibv_wc* wc) {
  wc->qp_num = be(cqe->sop_drop_qpn) & 0xffffff;
  const std::uint8_t cqe_opcode = cqe->op_own >> 4;
  if (cqe_opcode == MLX5_CQE_REQ) {
    fill_send(cqe, qp, wc);
    return 0;
  }
  if (__builtin_expect(cqe_opcode <= MLX5_CQE_RESP_SEND_INV, 1)) {
    fill_recv(cqe, cqe_opcode, retire_receive(qp, cqe), qp->rx_checksums, wc);
    return 0;
  }
  if (cqe_opcode != MLX5_CQE_REQ_ERR && cqe_opcode != MLX5_CQE_RESP_ERR) return kCorrupt;
  fill_error(cqe, cqe_opcode, qp, wc);
  return 0;
}

[[gnu::noinline, gnu::cold]] int take_with_result(const Cq* cq, const mlx5_cqe64* cqe, Qp* qp, ibv_wc* wc) {
  const ibv_wc_status delivered = deliver(cq, cqe, qp);
  if (int error = take_of(cqe, qp, wc)) return error;
  if (delivered) wc->status = delivered;
  return 0;
}

// Fills `wc` from a CQE that is ours. 0 or kCorrupt.
inline int take(Cq* cq, const mlx5_cqe64* cqe, ibv_wc* wc) {
  ++cq->ci;
  Qp* qp = find_qp(cq, cqe);
  if (__builtin_expect(!is_queue_pair(qp), 0)) return take_xrc(cq, cqe, qp, wc);
  if (__builtin_expect(holds_result(cqe), 0)) return take_with_result(cq, cqe, qp, wc);
  return take_of(cqe, qp, wc);
}

inline int finish(Cq* cq, int result) {
  update_ci(cq);
  cq->patience = kPatientPolls;
  cq->lock.unlock();
  return result;
}

// `cqe` is ours; the lock is held, and given back. Most programs ask for one.
[[gnu::noinline]] int poll_single(Cq* cq, const mlx5_cqe64* cqe, ibv_wc* wc) {
  const int result = take(cq, cqe, wc);
  return finish(cq, __builtin_expect(result < 0, 0) ? result : 1);
}

[[gnu::noinline]] int poll_some(Cq* cq, const mlx5_cqe64* cqe, int entries, ibv_wc* wc) {
  ibv_wc* const end = wc + std::max(entries, 0);
  ibv_wc* at = wc;
  int result = 0;
  for (; at != end && cqe != nullptr; ++at, cqe = at == end ? nullptr : next_cqe(cq))
    if (result = take(cq, cqe, at); __builtin_expect(result < 0, 0)) break;
  return finish(cq, __builtin_expect(result < 0, 0) ? result : static_cast<int>(at - wc));
}

[[gnu::noinline, gnu::cold]] int poll_after_step(Cq* cq, int entries, ibv_wc* wc) {
  step(cq);
  cq->lock.lock();
  if (const mlx5_cqe64* cqe = next_cqe(cq)) return poll_some(cq, cqe, entries, wc);
  return found_nothing(cq, 0);
}

}  // namespace

// Programs spin on this: the empty case saves no registers.
int poll_cq(ibv_cq* ibcq, int entries, ibv_wc* wc) {
  Cq* cq = cq_of(ibcq);
  if (__builtin_expect(__atomic_load_n(cq->pending, __ATOMIC_RELAXED), 0)) return poll_after_step(cq, entries, wc);
  cq->lock.lock();
  const mlx5_cqe64* cqe = next_cqe(cq);
  if (!cqe) return found_nothing(cq, 0);
  return entries == 1 ? poll_single(cq, cqe, wc) : poll_some(cq, cqe, entries, wc);
}

}  // namespace verbena::mlx5
