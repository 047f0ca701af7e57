// ibv_post_send(): one specialised loop per kind of transport, chosen when the QP is made.

#include "mlx5/ops.h"
#include "mlx5/send_wqe.h"

namespace verbena::mlx5 {

namespace {

enum class Wqe : std::uint8_t { data, rdma, atomic, bind, invalidate, none };

struct Operation {
  std::uint8_t opcode = 0;
  Wqe kind = Wqe::none;
};

constexpr unsigned kOpcodes = IBV_WR_TSO + 1;

constexpr std::array<Operation, kOpcodes> make_operations() {
  std::array<Operation, kOpcodes> table = {};
  table[IBV_WR_RDMA_WRITE] = {MLX5_OPCODE_RDMA_WRITE, Wqe::rdma};
  table[IBV_WR_RDMA_WRITE_WITH_IMM] = {MLX5_OPCODE_RDMA_WRITE_IMM, Wqe::rdma};
  table[IBV_WR_SEND] = {MLX5_OPCODE_SEND, Wqe::data};
  table[IBV_WR_SEND_WITH_IMM] = {MLX5_OPCODE_SEND_IMM, Wqe::data};
  table[IBV_WR_RDMA_READ] = {MLX5_OPCODE_RDMA_READ, Wqe::rdma};
  table[IBV_WR_ATOMIC_CMP_AND_SWP] = {MLX5_OPCODE_ATOMIC_CS, Wqe::atomic};
  table[IBV_WR_ATOMIC_FETCH_AND_ADD] = {MLX5_OPCODE_ATOMIC_FA, Wqe::atomic};
  table[IBV_WR_LOCAL_INV] = {MLX5_OPCODE_UMR, Wqe::invalidate};
  table[IBV_WR_BIND_MW] = {MLX5_OPCODE_UMR, Wqe::bind};
  table[IBV_WR_SEND_WITH_INV] = {MLX5_OPCODE_SEND_INVAL, Wqe::data};
  return table;
}

constexpr auto kOperations = make_operations();

// Fourth dword of the control segment.
std::uint32_t immediate(const ibv_send_wr& wr) {
  switch (wr.opcode) {
    case IBV_WR_RDMA_WRITE_WITH_IMM:
    case IBV_WR_SEND_WITH_IMM:
      return wr.imm_data;
    case IBV_WR_SEND_WITH_INV:
    case IBV_WR_LOCAL_INV:
      return be(wr.invalidate_rkey);
    case IBV_WR_BIND_MW:
      return be(wr.bind_mw.mw->rkey);
    default:
      return 0;
  }
}

struct Position {
  char* at;
  std::uint32_t segments;
};

// Inline data of a whole gather list. False: longer than the QP takes.
inline bool gather_inline(const SendQueue& sq, const ibv_send_wr& wr, Position& to) {
  char* const header = to.at;
  char* at = header + 4;
  std::uint64_t total = 0;
  for (int i = 0; i < wr.num_sge; ++i) {
    const ibv_sge& sge = wr.sg_list[i];
    total += sge.length;
    if (__builtin_expect(total > sq.max_inline, 0)) return false;
    at = copy_inline(sq, at, reinterpret_cast<const void*>(sge.addr), sge.length);
  }
  if (__builtin_expect(total != 0, 1)) {
    store32(header, be(static_cast<std::uint32_t>(total) | kInlineFlag));
    to.segments += inline_segments(static_cast<std::uint32_t>(total));
  }
  return true;
}

// Empty entries are left out: a length of zero means 2 GiB to the device.
inline void gather(const SendQueue& sq, const ibv_send_wr& wr, Position& to) {
  const ibv_sge* sge = wr.sg_list;
  for (int i = 0; i < wr.num_sge; ++i, ++sge) {
    if (__builtin_expect(!sge->length, 0)) continue;
    to.at = wrap(sq, to.at);
    set_data(to.at, sge->length, sge->lkey, sge->addr);
    to.at += kSegment;
    ++to.segments;
  }
}

inline void gather_atomic(const ibv_send_wr& wr, Position& to) {
  for (int i = 0; i < wr.num_sge; ++i) {
    if (!wr.sg_list[i].length) continue;
    set_data(to.at, 8, wr.sg_list[i].lkey, wr.sg_list[i].addr);
    to.at += kSegment;
    ++to.segments;
    break;  // there is one result
  }
}

// Segments between control and data of a connected QP. 0 or errno.
inline int connected_segments(Qp* qp, const ibv_send_wr& wr, Operation operation, SendEntry& entry, Position& to) {
  SendQueue& sq = qp->sq;
  int error = 0;
  switch (operation.kind) {
    case Wqe::data:
      break;
    case Wqe::rdma:
      set_remote(to.at, wr.wr.rdma.remote_addr, wr.wr.rdma.rkey);
      to.at += kSegment;
      ++to.segments;
      break;
    case Wqe::atomic:
      if (!qp->atomics) return EOPNOTSUPP;
      set_remote(to.at, wr.wr.atomic.remote_addr, wr.wr.atomic.rkey);
      if (wr.opcode == IBV_WR_ATOMIC_CMP_AND_SWP)
        set_atomic(to.at + kSegment, wr.wr.atomic.swap, wr.wr.atomic.compare_add);
      else
        set_atomic(to.at + kSegment, wr.wr.atomic.compare_add, 0);
      to.at += 2 * kSegment;
      to.segments += 2;
      break;
    case Wqe::bind:
      entry.wc_opcode = IBV_WC_BIND_MW;
      to.segments += set_bind(sq, to.at, wr.bind_mw.mw->type, wr.bind_mw.rkey, wr.bind_mw.bind_info, &error);
      break;
    case Wqe::invalidate:
      entry.wc_opcode = IBV_WC_LOCAL_INV;
      to.segments += set_bind(sq, to.at, IBV_MW_TYPE_2, 0, ibv_mw_bind_info{}, &error);
      break;
    case Wqe::none:
      return EINVAL;
  }
  return error;
}

// One request into the ring at sq.cur_post. 0 or errno; the ring's state moves only on success.
template <bool kDatagram>
inline int build(Qp* qp, const ibv_send_wr& wr, std::uint32_t next_tail, Position& to, char*& ctrl) {
  SendQueue& sq = qp->sq;
  if (__builtin_expect(static_cast<unsigned>(wr.opcode) >= kOpcodes, 0)) return EINVAL;
  const Operation operation = kOperations[wr.opcode];
  if (__builtin_expect(wr.num_sge > sq.max_sge_now, 0)) return ENOMEM;
  const std::uint32_t index = sq.cur_post & sq.mask;
  SendEntry& entry = sq.entries[index];
  ctrl = block(sq, index);
  const std::uint8_t old_fence = sq.next_fence;
  const std::uint8_t bits = control_bits(sq, wr.send_flags);
  to = {ctrl + kSegment, 1};
  if constexpr (kDatagram) {
    if (operation.kind == Wqe::none) return EINVAL;
    set_datagram(to.at, ah_of(wr.wr.ud.ah), wr.wr.ud.remote_qpn, wr.wr.ud.remote_qkey);
    to.at = wrap(sq, to.at + sizeof(mlx5_wqe_av));
    to.segments += sizeof(mlx5_wqe_av) / kSegment;
  } else if (operation.kind != Wqe::data) {
    if (int error = connected_segments(qp, wr, operation, entry, to); __builtin_expect(error, 0)) {
      sq.next_fence = old_fence;
      return error;
    }
  }
  if (operation.kind <= Wqe::rdma || kDatagram) {
    if (wr.send_flags & kIsInline) {
      if (!gather_inline(sq, wr, to)) {
        sq.next_fence = old_fence;
        return ENOMEM;
      }
    } else {
      gather(sq, wr, to);
    }
  } else if (operation.kind == Wqe::atomic) {
    gather_atomic(wr, to);
  } else {
    sq.next_fence = kFenceInitiatorSmall;  // the next one waits until the key has changed
  }
  set_control(sq, ctrl, sq.cur_post, operation.opcode, to.segments, bits, immediate(wr));
  entry.wr_id = wr.wr_id;
  entry.next_tail = next_tail;
  sq.cur_post += (to.segments + 3) / 4;
  return 0;
}

template <bool kDatagram>
int post(Qp* qp, ibv_send_wr* wr, ibv_send_wr** bad) {
  SendQueue& sq = qp->sq;
  sq.lock.lock();
  std::uint32_t left = room(sq);
  const std::uint32_t head = sq.head;
  std::uint32_t next = head;
  int error = 0;
  Position at{};
  char* ctrl = nullptr;
  bool inlined = false;
  for (; wr; wr = wr->next) {
    if (__builtin_expect(next - head >= left, 0)) {
      left = room(sq);  // it may have been polled meanwhile
      if (next - head >= left) {
        error = ENOMEM;
        *bad = wr;
        break;
      }
    }
    error = build<kDatagram>(qp, *wr, next + 1, at, ctrl);
    if (__builtin_expect(error, 0)) {
      *bad = wr;
      break;
    }
    inlined = inlined || (wr->send_flags & kIsInline);
    ++next;
  }
  if (__builtin_expect(next == head, 0)) {
    sq.lock.unlock();
    return error;
  }
  sq.head = next;
  publish(sq);
  if (__builtin_expect(sq.ring != nullptr, 1)) {
    sq.lock.unlock();
    sq.ring(sq.ring_token);
    return error;
  }
  write_uar(sq, ctrl, at.segments * kSegment, next - head == 1 && inlined);
  sq.lock.unlock();
  return error;
}

}  // namespace

int post_connected(Qp* qp, ibv_send_wr* wr, ibv_send_wr** bad) { return post<false>(qp, wr, bad); }
int post_datagram(Qp* qp, ibv_send_wr* wr, ibv_send_wr** bad) { return post<true>(qp, wr, bad); }

int post_send(ibv_qp* ibqp, ibv_send_wr* wr, ibv_send_wr** bad) {
  Qp* qp = qp_of(ibqp);
  return qp->post_send(qp, wr, bad);
}

}  // namespace verbena::mlx5
