// ibv_post_send(): one specialised loop per kind of transport, chosen when the QP is made. Sends, writes and reads are
// built in line; atomics and key changes, which nobody posts by the million, in functions of their own, so that the
// common path keeps its state in registers.

#include <algorithm>

#include "mlx5/ops.h"
#include "mlx5/send_wqe.h"
#include "support/c_enum.h"

namespace verbena::mlx5 {

namespace {

#define VERBENA_INLINE [[gnu::always_inline]] inline
#define LIKELY(condition) __builtin_expect(!!(condition), 1)
#define UNLIKELY(condition) __builtin_expect(!!(condition), 0)

// Segments of a WQE, or a negative errno.
using Built = int;

// Inline data of a list of several entries: segments added, or negative errno.
[[gnu::noinline]] Built gather_inline_list(const SendQueue& sq, const ibv_send_wr& wr, char* header) {
  char* at = header + 4;
  std::uint64_t total = 0;
  for (int i = 0; i < wr.num_sge; ++i) {
    const ibv_sge& sge = wr.sg_list[i];
    total += sge.length;
    if (total > sq.max_inline) return -ENOMEM;
    at = copy_inline(sq, at, reinterpret_cast<const void*>(sge.addr), sge.length);
  }
  if (!total) return 0;
  store32(header, be(static_cast<std::uint32_t>(total) | kInlineFlag));
  return static_cast<Built>(inline_segments(static_cast<std::uint32_t>(total)));
}

VERBENA_INLINE Built gather_inline(const SendQueue& sq, const ibv_send_wr& wr, char* header) {
  if (UNLIKELY(wr.num_sge != 1)) return gather_inline_list(sq, wr, header);
  const std::uint32_t length = wr.sg_list->length;
  if (UNLIKELY(length > sq.max_inline)) return -ENOMEM;
  if (UNLIKELY(!length)) return 0;
  store32(header, be(length | kInlineFlag));
  copy_inline(sq, header + 4, reinterpret_cast<const void*>(wr.sg_list->addr), length);
  return static_cast<Built>(inline_segments(length));
}

// Empty entries are left out: a length of zero means 2 GiB to the device.
VERBENA_INLINE Built gather(const SendQueue& sq, const ibv_send_wr& wr, char* at) {
  Built added = 0;
  const ibv_sge* sge = wr.sg_list;
  for (int left = wr.num_sge; left > 0; --left, ++sge) {
    if (UNLIKELY(!sge->length)) continue;
    at = wrap(sq, at);
    set_data(at, sge->length, sge->lkey, sge->addr);
    at += kSegment;
    ++added;
  }
  return added;
}

std::uint8_t bits_of(const SendQueue& sq, const ibv_send_wr& wr, std::uint8_t fence) {
  std::uint8_t bits = kFlagBits[wr.send_flags & 7] | sq.signal_bits;
  if (UNLIKELY(fence) && !(wr.send_flags & IBV_SEND_FENCE)) bits |= fence;
  return bits;
}

// Both atomics. There is one result entry, of 8 bytes.
Built build_atomic(const Qp* qp, const ibv_send_wr& wr, char* ctrl, std::uint32_t post, std::uint8_t fence, bool xrc) {
  if (!qp->atomics) return -EOPNOTSUPP;
  const bool swap = wr.opcode == IBV_WR_ATOMIC_CMP_AND_SWP;
  char* at = ctrl + kSegment;
  Built segments = 3;
  if (xrc) {
    set_xrc(at, wr.qp_type.xrc.remote_srqn);
    at += kSegment;
    ++segments;
  }
  set_remote(at, wr.wr.atomic.remote_addr, wr.wr.atomic.rkey);
  set_atomic(at + kSegment, swap ? wr.wr.atomic.swap : wr.wr.atomic.compare_add, swap ? wr.wr.atomic.compare_add : 0);
  for (int i = 0; i < wr.num_sge; ++i) {
    if (!wr.sg_list[i].length) continue;
    set_data(wrap(qp->sq, at + 2 * kSegment), 8, wr.sg_list[i].lkey, wr.sg_list[i].addr);
    ++segments;
    break;
  }
  set_control(qp->sq, ctrl, post, swap ? MLX5_OPCODE_ATOMIC_CS : MLX5_OPCODE_ATOMIC_FA,
              static_cast<std::uint32_t>(segments), bits_of(qp->sq, wr, fence), 0);
  return segments;
}

// Window binds and local invalidations.
Built build_key_change(const Qp* qp, const ibv_send_wr& wr, char* ctrl, std::uint32_t post, std::uint8_t fence) {
  const SendQueue& sq = qp->sq;
  const bool bind = wr.opcode == IBV_WR_BIND_MW;
  int error = 0;
  const std::uint32_t segments =
      1 + (bind ? set_bind(sq, ctrl + kSegment, wr.bind_mw.mw->type, wr.bind_mw.rkey, wr.bind_mw.bind_info, &error)
                : set_bind(sq, ctrl + kSegment, IBV_MW_TYPE_2, 0, ibv_mw_bind_info{}, &error));
  if (error) return -error;
  set_control(sq, ctrl, post, MLX5_OPCODE_UMR, segments, bits_of(sq, wr, fence),
              be(bind ? wr.bind_mw.mw->rkey : wr.invalidate_rkey));
  return static_cast<Built>(segments);
}

// Whatever the common path does not know.
[[gnu::noinline]] Built build_rare(const Qp* qp, const ibv_send_wr& wr, char* ctrl, std::uint32_t post,
                                   std::uint8_t fence, bool xrc) {
  switch (number_of(wr.opcode)) {
    case IBV_WR_ATOMIC_CMP_AND_SWP:
    case IBV_WR_ATOMIC_FETCH_AND_ADD:
      return build_atomic(qp, wr, ctrl, post, fence, xrc);
    case IBV_WR_LOCAL_INV:
    case IBV_WR_BIND_MW:
      return build_key_change(qp, wr, ctrl, post, fence);
    default:
      return -EINVAL;
  }
}

// What the device is to refuse: operations that the transport does not have. 0: there is no such operation.
[[gnu::noinline]] std::uint32_t unserved_opcode(const ibv_send_wr& wr) {
  switch (number_of(wr.opcode)) {
    case IBV_WR_ATOMIC_CMP_AND_SWP:
      return MLX5_OPCODE_ATOMIC_CS;
    case IBV_WR_ATOMIC_FETCH_AND_ADD:
      return MLX5_OPCODE_ATOMIC_FA;
    case IBV_WR_LOCAL_INV:
    case IBV_WR_BIND_MW:
    case IBV_WR_DRIVER1:
      return MLX5_OPCODE_UMR;
    case IBV_WR_TSO:
      return MLX5_OPCODE_TSO;
    default:
      return 0;
  }
}

// An Ethernet frame: its head is in the WQE as far as the device insists on it.
VERBENA_INLINE Built build_frame(const Qp* qp, const ibv_send_wr& wr, char* ctrl, std::uint32_t post, std::uint8_t fence) {
  const SendQueue& sq = qp->sq;
  if (UNLIKELY(wr.opcode != IBV_WR_SEND || wr.num_sge < 1)) return -EINVAL;
  if (UNLIKELY((wr.send_flags & IBV_SEND_IP_CSUM) && !qp->tx_checksums)) return -EINVAL;
  set_eth(ctrl + kSegment, wr.send_flags);
  std::uint32_t segments = 1 + eth_segments(qp->eth_inline);
  char* const at = wrap(sq, ctrl + segments * kSegment);
  Built added;
  if (UNLIKELY(qp->eth_inline)) {
    ibv_sge rest[kMostEntries];
    ibv_send_wr behind = wr;
    if (wr.num_sge > static_cast<int>(kMostEntries)) return -ENOMEM;
    behind.num_sge = take_eth_head(ctrl + kSegment, qp->eth_inline, wr.sg_list, static_cast<std::size_t>(wr.num_sge), rest);
    if (behind.num_sge < 0) return -EINVAL;
    behind.sg_list = rest;
    added = wr.send_flags & kIsInline ? gather_inline_list(sq, behind, at) : gather(sq, behind, at);
  } else {
    added = wr.send_flags & kIsInline ? gather_inline(sq, wr, at) : gather(sq, wr, at);
  }
  if (UNLIKELY(added < 0)) return added;
  segments += static_cast<std::uint32_t>(added);
  set_control(sq, ctrl, post, MLX5_OPCODE_SEND, segments, bits_of(sq, wr, fence), 0);
  return static_cast<Built>(segments);
}

// One request at `ctrl`. The device answers for operations that the transport does not have.
template <Transport kTransport>
VERBENA_INLINE Built build(const Qp* qp, const ibv_send_wr& wr, char* ctrl, std::uint32_t post, std::uint8_t fence) {
  const SendQueue& sq = qp->sq;
  if constexpr (kTransport == Transport::frames) return build_frame(qp, wr, ctrl, post, fence);
  char* at = ctrl + kSegment;
  std::uint32_t segments = 1, opcode, imm = 0;
  bool remote = false;
  switch (number_of(wr.opcode)) {
    case IBV_WR_SEND:
      opcode = MLX5_OPCODE_SEND;
      break;
    case IBV_WR_SEND_WITH_IMM:
      opcode = MLX5_OPCODE_SEND_IMM;
      imm = wr.imm_data;
      break;
    case IBV_WR_SEND_WITH_INV:
      opcode = MLX5_OPCODE_SEND_INVAL;
      imm = be(wr.invalidate_rkey);
      break;
    case IBV_WR_RDMA_WRITE:
      opcode = MLX5_OPCODE_RDMA_WRITE;
      remote = true;
      break;
    case IBV_WR_RDMA_WRITE_WITH_IMM:
      opcode = MLX5_OPCODE_RDMA_WRITE_IMM;
      imm = wr.imm_data;
      remote = true;
      break;
    case IBV_WR_RDMA_READ:
      opcode = MLX5_OPCODE_RDMA_READ;
      remote = true;
      break;
    default:
      if (kTransport != Transport::datagram && number_of(wr.opcode) != IBV_WR_TSO && number_of(wr.opcode) != IBV_WR_DRIVER1)
        return build_rare(qp, wr, ctrl, post, fence, kTransport == Transport::xrc);
      if (!(opcode = unserved_opcode(wr))) return -EINVAL;
      break;
  }
  if constexpr (kTransport == Transport::xrc) {
    set_xrc(at, wr.qp_type.xrc.remote_srqn);
    at += kSegment;
    ++segments;
  }
  if constexpr (kTransport == Transport::datagram) {
    set_datagram(at, ah_of(wr.wr.ud.ah), wr.wr.ud.remote_qpn, wr.wr.ud.remote_qkey);
    at = wrap(sq, at + sizeof(mlx5_wqe_av));
    segments += sizeof(mlx5_wqe_av) / kSegment;
  } else if (remote) {
    set_remote(at, wr.wr.rdma.remote_addr, wr.wr.rdma.rkey);
    at += kSegment;
    ++segments;
  }
  const unsigned flags = wr.send_flags;
  const Built added = flags & kIsInline ? gather_inline(sq, wr, at) : gather(sq, wr, at);
  if (UNLIKELY(added < 0)) return added;
  segments += static_cast<std::uint32_t>(added);
  set_control(sq, ctrl, post, opcode, segments, bits_of(sq, wr, fence), imm);
  return static_cast<Built>(segments);
}

// What the poller will report where the CQE's opcode does not tell; nonzero means that a key changes.
inline std::uint32_t wc_opcode_of(ibv_wr_opcode opcode) {
  if (UNLIKELY(opcode == IBV_WR_BIND_MW)) return IBV_WC_BIND_MW;
  return UNLIKELY(opcode == IBV_WR_LOCAL_INV) ? IBV_WC_LOCAL_INV : 0;
}

[[gnu::noinline]] int finish_by_uar(SendQueue& sq, const char* ctrl, std::uint32_t segments, bool blueflame,
                                    int error) {
  write_uar(sq, ctrl, segments * kSegment, blueflame);
  sq.lock.unlock();
  return error;
}

template <Transport kTransport>
VERBENA_INLINE int post(Qp* qp, ibv_send_wr* wr, ibv_send_wr** bad) {
  if (UNLIKELY(!wr)) return 0;
  SendQueue& sq = qp->sq;
  sq.lock.lock();
  std::uint32_t next = sq.head;
  const std::uint32_t head = next;
  std::uint32_t limit = sq.tail.load(std::memory_order_acquire) + sq.max_post;
  char* ctrl = nullptr;
  Built built = 0;
  int error = 0;
  unsigned flags = 0;
  do {
    if (UNLIKELY(next == limit)) {
      limit = sq.tail.load(std::memory_order_acquire) + sq.max_post;  // it may have been polled meanwhile
    }
    if (UNLIKELY(wr->num_sge > sq.max_sge_now || next == limit)) {
      error = ENOMEM;
      *bad = wr;
      break;
    }
    const std::uint32_t position = sq.cur_post;
    const std::uint32_t index = position & sq.mask;
    char* const here = block(sq, index);
    built = build<kTransport>(qp, *wr, here, position, sq.next_fence);
    if (UNLIKELY(built < 0)) {
      error = -built;
      *bad = wr;
      break;
    }
    ctrl = here;
    flags = wr->send_flags;
    SendEntry& entry = sq.entries[index];
    entry.wr_id = wr->wr_id;
    entry.next_tail = ++next;
    entry.wc_opcode = wc_opcode_of(wr->opcode);
    // Behind a key change, the next request waits until the key has changed.
    sq.next_fence = entry.wc_opcode ? kFenceInitiatorSmall : 0;
    sq.cur_post = position + (static_cast<std::uint32_t>(built) + 3) / 4;
    wr = wr->next;
  } while (wr);
  if (UNLIKELY(next == head)) {
    sq.lock.unlock();
    return error;
  }
  sq.head = next;
  publish(sq);
  auto* const kick = sq.ring;
  if (UNLIKELY(!kick))
    return finish_by_uar(sq, ctrl, static_cast<std::uint32_t>(built), next - head == 1 && (flags & kIsInline), error);
  void* const token = sq.ring_token;
  sq.lock.unlock();
  kick(token);
  return error;
}

}  // namespace

int take_eth_head(char* at, std::uint32_t size, const ibv_sge* list, std::size_t count, ibv_sge* rest) {
  const std::uint16_t length = be(static_cast<std::uint16_t>(size));
  std::memcpy(at + offsetof(mlx5_wqe_eth_seg, inline_hdr_sz), &length, sizeof length);
  char* to = at + kEthHeadAt;
  int left = 0;
  for (std::size_t i = 0; i < count; ++i) {
    const std::uint32_t part = std::min(list[i].length, size);
    std::memcpy(to, reinterpret_cast<const void*>(list[i].addr), part);
    to += part;
    size -= part;
    if (part != list[i].length) rest[left++] = {list[i].addr + part, list[i].length - part, list[i].lkey};
  }
  return size ? -1 : left;
}

int post_connected(Qp* qp, ibv_send_wr* wr, ibv_send_wr** bad) { return post<Transport::connected>(qp, wr, bad); }
int post_datagram(Qp* qp, ibv_send_wr* wr, ibv_send_wr** bad) { return post<Transport::datagram>(qp, wr, bad); }
int post_xrc(Qp* qp, ibv_send_wr* wr, ibv_send_wr** bad) { return post<Transport::xrc>(qp, wr, bad); }
// Of a QP that sends nothing.
int post_none(Qp*, ibv_send_wr* wr, ibv_send_wr** bad) {
  if (!wr) return 0;
  *bad = wr;
  return ENOMEM;
}
int post_frames(Qp* qp, ibv_send_wr* wr, ibv_send_wr** bad) { return post<Transport::frames>(qp, wr, bad); }

int post_send(ibv_qp* ibqp, ibv_send_wr* wr, ibv_send_wr** bad) {
  Qp* qp = qp_of(ibqp);
  return qp->post_send(qp, wr, bad);
}

}  // namespace verbena::mlx5
