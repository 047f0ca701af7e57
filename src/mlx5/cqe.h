// Reading a CQE: ownership, which QP, what it says. Shared by ibv_poll_cq() and the extended CQ.
//
// Threads: the holder of Cq::lock.
#pragma once

#include "mlx5/types.h"

namespace verbena::mlx5 {

inline constexpr std::uint32_t kPatientPolls = 2048;  // empty polls in a row before the first yield
inline constexpr std::uint32_t kPollsPerYield = 32;   // and between yields

// wc opcode of a completed send by device opcode; kFromEntry: the poster wrote it down.
inline constexpr std::uint32_t kFromEntry = ~0u;
inline constexpr std::uint32_t kWithImm = 1u << 16;  // beside the opcode: set IBV_WC_WITH_IMM

consteval std::array<std::uint32_t, 64> make_wc_opcodes() {
  std::array<std::uint32_t, 64> table;
  table.fill(kFromEntry);
  table[MLX5_OPCODE_RDMA_WRITE] = IBV_WC_RDMA_WRITE;
  table[MLX5_OPCODE_RDMA_WRITE_IMM] = IBV_WC_RDMA_WRITE | kWithImm;
  table[MLX5_OPCODE_SEND] = IBV_WC_SEND;
  table[MLX5_OPCODE_SEND_INVAL] = IBV_WC_SEND;
  table[MLX5_OPCODE_SEND_IMM] = IBV_WC_SEND | kWithImm;
  table[MLX5_OPCODE_RDMA_READ] = IBV_WC_RDMA_READ;
  table[MLX5_OPCODE_ATOMIC_CS] = IBV_WC_COMP_SWAP;
  table[MLX5_OPCODE_ATOMIC_FA] = IBV_WC_FETCH_ADD;
  table[MLX5_OPCODE_TSO] = IBV_WC_TSO;
  return table;
}
inline constexpr auto kWcOpcodes = make_wc_opcodes();

inline constexpr std::uint8_t kOpcodeInvalid = MLX5_CQE_INVALID << 4;

inline mlx5_cqe64* cqe_at(const Cq* cq, std::uint32_t index) {
  char* entry = cq->buf + (std::size_t{index & cq->mask} << cq->shift);
  return reinterpret_cast<mlx5_cqe64*>(entry + cq->cqe_offset);
}

// The device wrote it: its owner bit is that of this lap, and it is not the initial "invalid".
inline bool owned_by_software(const Cq* cq, const mlx5_cqe64* cqe, std::uint32_t index) {
  const std::uint8_t op_own = __atomic_load_n(&cqe->op_own, __ATOMIC_ACQUIRE);
  const bool lap = (index & cq->count_bit) != 0;
  return (op_own & MLX5_CQE_OWNER_MASK) == lap && op_own < kOpcodeInvalid;
}

inline const mlx5_cqe64* next_cqe(const Cq* cq) {
  const mlx5_cqe64* cqe = cqe_at(cq, cq->ci);
  return owned_by_software(cq, cqe, cq->ci) ? cqe : nullptr;
}

inline void update_ci(Cq* cq) { __atomic_store_n(&cq->dbrec[0], be(cq->ci & 0xffffff), __ATOMIC_RELEASE); }

inline Qp* find_qp(const Cq* cq, const mlx5_cqe64* cqe) { return cq->qps[be(cqe->srqn_uidx) & 0xffffff]; }

// IBV_WC_IP_CSUM_OK where the device found the checksums of an IPv4 packet right.
inline unsigned checksum_flag(const mlx5_cqe64* cqe) {
  constexpr std::uint8_t kBoth = MLX5_CQE_L3_OK | MLX5_CQE_L4_OK;
  const bool ipv4 = (cqe->l4_hdr_type_etc >> 2 & 3) == MLX5_CQE_L3_HDR_TYPE_IPV4;
  return ipv4 && (cqe->hds_ip_ext & kBoth) == kBoth ? IBV_WC_IP_CSUM_OK : 0;
}

// First byte of sop_drop_qpn: the opcode of the completed send.
inline std::uint32_t send_opcode(const mlx5_cqe64* cqe) {
  return reinterpret_cast<const std::uint8_t*>(&cqe->sop_drop_qpn)[0] & 63;
}

// Retires the sends up to the completed one; returns what the poster wrote down.
inline const SendEntry& retire_send(Qp* qp, const mlx5_cqe64* cqe) {
  SendQueue& sq = qp->sq;
  const SendEntry& entry = sq.entries[be(cqe->wqe_counter) & sq.mask];
  sq.tail.store(entry.next_tail, std::memory_order_release);
  return entry;
}

inline std::uint64_t retire_recv(Qp* qp) {
  RecvQueue& rq = qp->rq;
  const std::uint32_t tail = rq.tail.load(std::memory_order_relaxed);
  const std::uint64_t wr_id = rq.wr_ids[tail & rq.mask];
  rq.tail.store(tail + 1, std::memory_order_release);
  return wr_id;
}

// Puts a completed SRQ WQE at the end of the free list.
void free_srq_wqe(Srq* srq, std::uint16_t index);

inline std::uint64_t retire_srq_recv(Srq* srq, const mlx5_cqe64* cqe) {
  const std::uint16_t index = be(cqe->wqe_counter);
  if (index >= srq->count) return 0;  // not from a device that keeps to the rules
  const std::uint64_t wr_id = srq->wr_ids[index];
  free_srq_wqe(srq, index);
  return wr_id;
}

inline std::uint64_t retire_receive(Qp* qp, const mlx5_cqe64* cqe) {
  if (__builtin_expect(qp->srq != nullptr, 0)) return retire_srq_recv(qp->srq, cqe);
  return retire_recv(qp);
}

inline const mlx5_err_cqe* as_error(const mlx5_cqe64* cqe) { return reinterpret_cast<const mlx5_err_cqe*>(cqe); }

// Runs the embedded device: it said that something is due.
void step(Cq* cq);

// The end of a poll that found nothing: counts it, gives the CQ's lock back and returns `result`. On the embedded device
// the peer is a process of this machine: where more spin than there are cores, a poller that has found nothing for some
// 50 us lets the others run.
[[gnu::cold]] int yield_to_peers(Cq* cq, int result);
inline int found_nothing(Cq* cq, int result) {
  if (__builtin_expect(--cq->patience == 0, 0)) return yield_to_peers(cq, result);
  cq->lock.unlock();
  return result;
}

ibv_wc_status status_of(std::uint8_t syndrome);

// Removes every CQE of a QP that is gone or reset. `srq`: where its receives return to. Takes no lock.
void clean_locked(Cq* cq, std::uint32_t uidx, Srq* srq);
void clean(Cq* cq, std::uint32_t uidx, Srq* srq);

}  // namespace verbena::mlx5
