// The rarer work on CQEs: error codes, and taking out those of a QP that is gone.

#include <sched.h>

#include "mlx5/cqe.h"

namespace verbena::mlx5 {

void step(Cq* cq) {
  ibv_context* ibv = cq->verbs.cq.context;
  context_of(ibv)->backend->step(ibv->cmd_fd);
}

int yield_to_peers(Cq* cq, int result) {
  cq->patience = kPollsPerYield;
  cq->lock.unlock();
  if (context_of(cq->verbs.cq.context)->backend->step) sched_yield();  // a real device needs no core of ours
  return result;
}

ibv_wc_status status_of(std::uint8_t syndrome) {
  switch (syndrome) {
    case MLX5_CQE_SYNDROME_LOCAL_LENGTH_ERR:
      return IBV_WC_LOC_LEN_ERR;
    case MLX5_CQE_SYNDROME_LOCAL_QP_OP_ERR:
      return IBV_WC_LOC_QP_OP_ERR;
    case MLX5_CQE_SYNDROME_LOCAL_PROT_ERR:
      return IBV_WC_LOC_PROT_ERR;
    case MLX5_CQE_SYNDROME_WR_FLUSH_ERR:
      return IBV_WC_WR_FLUSH_ERR;
    case MLX5_CQE_SYNDROME_MW_BIND_ERR:
      return IBV_WC_MW_BIND_ERR;
    case MLX5_CQE_SYNDROME_BAD_RESP_ERR:
      return IBV_WC_BAD_RESP_ERR;
    case MLX5_CQE_SYNDROME_LOCAL_ACCESS_ERR:
      return IBV_WC_LOC_ACCESS_ERR;
    case MLX5_CQE_SYNDROME_REMOTE_INVAL_REQ_ERR:
      return IBV_WC_REM_INV_REQ_ERR;
    case MLX5_CQE_SYNDROME_REMOTE_ACCESS_ERR:
      return IBV_WC_REM_ACCESS_ERR;
    case MLX5_CQE_SYNDROME_REMOTE_OP_ERR:
      return IBV_WC_REM_OP_ERR;
    case MLX5_CQE_SYNDROME_TRANSPORT_RETRY_EXC_ERR:
      return IBV_WC_RETRY_EXC_ERR;
    case MLX5_CQE_SYNDROME_RNR_RETRY_EXC_ERR:
      return IBV_WC_RNR_RETRY_EXC_ERR;
    case MLX5_CQE_SYNDROME_REMOTE_ABORTED_ERR:
      return IBV_WC_REM_ABORT_ERR;
    default:
      return IBV_WC_GENERAL_ERR;
  }
}

void free_srq_wqe(Srq* srq, std::uint16_t index) {
  LockGuard guard(srq->lock);
  auto* last = reinterpret_cast<mlx5_wqe_srq_next_seg*>(srq->start + (std::size_t{srq->tail} << srq->shift));
  last->next_wqe_index = be(index);
  srq->tail = index;
}

namespace {

bool is_receive(const mlx5_cqe64* cqe) {
  const std::uint8_t opcode = cqe->op_own >> 4;
  return (opcode >= MLX5_CQE_RESP_WR_IMM && opcode <= MLX5_CQE_RESP_SEND_INV) || opcode == MLX5_CQE_RESP_ERR;
}

}  // namespace

// Newest to oldest, survivors slide up over the holes; then the consumer index skips the holes at the old end.
void clean_locked(Cq* cq, std::uint32_t uidx, Srq* srq) {
  if (cq->dv_owned) return;  // the program consumes it by hand
  std::uint32_t end = cq->ci;
  while (end - cq->ci <= cq->mask && owned_by_software(cq, cqe_at(cq, end), end)) ++end;
  std::uint32_t holes = 0;
  const std::size_t entry_size = std::size_t{1} << cq->shift;
  for (std::uint32_t i = end; i != cq->ci;) {
    --i;
    mlx5_cqe64* cqe = cqe_at(cq, i);
    if ((be(cqe->srqn_uidx) & 0xffffff) == uidx) {
      const std::uint16_t index = be(cqe->wqe_counter);
      if (srq && is_receive(cqe) && index < srq->count) free_srq_wqe(srq, index);
      ++holes;
    } else if (holes) {
      mlx5_cqe64* to = cqe_at(cq, i + holes);
      const std::uint8_t owner = to->op_own & MLX5_CQE_OWNER_MASK;
      std::memcpy(reinterpret_cast<char*>(to) - cq->cqe_offset, reinterpret_cast<char*>(cqe) - cq->cqe_offset,
                  entry_size);
      mlx5dv_set_cqe_owner(to, owner);
    }
  }
  if (!holes) return;
  cq->ci += holes;
  update_ci(cq);
}

void clean(Cq* cq, std::uint32_t uidx, Srq* srq) {
  LockGuard guard(cq->lock);
  clean_locked(cq, uidx, srq);
}

}  // namespace verbena::mlx5
