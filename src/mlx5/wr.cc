// A session: ibv_wr_start() takes the lock and remembers the ring, each builder opens a WQE, the last setter it needs
// closes it, ibv_wr_complete() rings once. An error anywhere makes complete() put everything back.

#include "mlx5/wr.h"

#include <algorithm>
#include <type_traits>

#include "mlx5/send_wqe.h"

namespace verbena::mlx5 {

namespace {

constexpr unsigned kSetters = 2;  // data and address, in either order; not of connected transports

inline Qp* qp_of_ex(ibv_qp_ex* ex) { return verbs::derived<Qp>(&ex->qp_base); }

void start(ibv_qp_ex* ex) {
  Qp* qp = qp_of_ex(ex);
  SendQueue& sq = qp->sq;
  sq.lock.lock();
  Builder& b = qp->build;
  b.old_cur_post = sq.cur_post;
  b.old_fence = sq.next_fence;
  b.error = 0;
  b.requests = 0;
  b.inlined = false;
}

void roll_back(Qp* qp) {
  qp->sq.cur_post = qp->build.old_cur_post;
  qp->sq.next_fence = qp->build.old_fence;
  qp->sq.lock.unlock();
}

void abort_session(ibv_qp_ex* ex) { roll_back(qp_of_ex(ex)); }

int complete(ibv_qp_ex* ex) {
  Qp* qp = qp_of_ex(ex);
  SendQueue& sq = qp->sq;
  Builder& b = qp->build;
  if (__builtin_expect(b.error, 0)) {
    const int error = b.error;
    roll_back(qp);
    return error;
  }
  if (__builtin_expect(!b.requests, 0)) {
    sq.lock.unlock();
    return 0;
  }
  sq.head += b.requests;
  publish(sq);
  if (__builtin_expect(sq.ring != nullptr, 1)) {
    sq.lock.unlock();
    sq.ring(sq.ring_token);
    return 0;
  }
  write_uar(sq, reinterpret_cast<const char*>(b.ctrl), b.size * kSegment, b.requests == 1 && b.inlined);
  sq.lock.unlock();
  return 0;
}

int complete_in_wrong_state(ibv_qp_ex* ex) {
  roll_back(qp_of_ex(ex));
  return EINVAL;
}

inline void set_error(Builder& b, int error) {
  if (!b.error) b.error = error;
}

// Opens a WQE of `segments` so far. False, with the error kept, if the ring is full.
inline bool open(Qp* qp, ibv_qp_ex* ex, std::uint32_t opcode, std::uint32_t segments, std::uint32_t imm,
                 std::uint32_t wc_opcode = 0) {
  SendQueue& sq = qp->sq;
  Builder& b = qp->build;
  if (__builtin_expect(b.error || b.requests >= room(sq), 0)) {
    set_error(b, ENOMEM);
    return false;
  }
  const std::uint32_t index = sq.cur_post & sq.mask;
  char* ctrl = block(sq, index);
  SendEntry& entry = sq.entries[index];
  ++b.requests;
  entry.wr_id = ex->wr_id;
  entry.next_tail = sq.head + b.requests;
  entry.wc_opcode = wc_opcode;
  const std::uint64_t bits = control_bits(sq, ex->wr_flags);
  store64(ctrl + 8, (std::uint64_t{imm} << 32) | (bits << 24));
  b.opcode_word = ((sq.cur_post & 0xffff) << 8) | opcode;
  b.ctrl = reinterpret_cast<mlx5_wqe_ctrl_seg*>(ctrl);
  b.size = segments;
  b.setters = 0;
  b.data = ctrl + segments * kSegment;
  return true;
}

inline void close(Qp* qp) {
  Builder& b = qp->build;
  store64(b.ctrl, be((std::uint64_t{b.opcode_word} << 32) | (qp->sq.qpn_field | b.size)));
  qp->sq.cur_post += (b.size + 3) / 4;
}

template <Transport kTransport>
inline void close_when_set(Qp* qp) {
  constexpr bool kOneSetter = kTransport == Transport::connected || kTransport == Transport::frames;
  if (kOneSetter || ++qp->build.setters == kSetters) close(qp);
}

// Segments in front of the operation, the control segment included.
template <Transport kTransport>
constexpr std::uint32_t kHead = kTransport == Transport::datagram ? 1 + sizeof(mlx5_wqe_av) / kSegment
                                : kTransport == Transport::xrc    ? 2
                                                                  : 1;

// ---- operations ----

inline void open_frame(Qp* qp, ibv_qp_ex* ex) {
  if (!open(qp, ex, MLX5_OPCODE_SEND, 1 + eth_segments(qp->eth_inline), 0)) return;
  if (__builtin_expect((ex->wr_flags & IBV_SEND_IP_CSUM) && !qp->tx_checksums, 0)) return set_error(qp->build, EINVAL);
  set_eth(reinterpret_cast<char*>(qp->build.ctrl) + kSegment, ex->wr_flags);
  qp->build.data = wrap(qp->sq, qp->build.data);
}

template <Transport kTransport>
inline void open_send(ibv_qp_ex* ex, std::uint32_t opcode, std::uint32_t imm) {
  Qp* qp = qp_of_ex(ex);
  if constexpr (kTransport == Transport::frames) return open_frame(qp, ex);
  const bool opened = open(qp, ex, opcode, kHead<kTransport>, imm);
  if (opened && kTransport == Transport::datagram) qp->build.data = wrap(qp->sq, qp->build.data);
}

template <Transport kTransport>
void send(ibv_qp_ex* ex) {
  open_send<kTransport>(ex, MLX5_OPCODE_SEND, 0);
}
template <Transport kTransport>
void send_imm(ibv_qp_ex* ex, __be32 imm) {
  open_send<kTransport>(ex, MLX5_OPCODE_SEND_IMM, imm);
}
template <Transport kTransport>
void send_inv(ibv_qp_ex* ex, std::uint32_t rkey) {
  open_send<kTransport>(ex, MLX5_OPCODE_SEND_INVAL, be(rkey));
}

template <Transport kTransport>
inline void open_rdma(ibv_qp_ex* ex, std::uint32_t opcode, std::uint32_t rkey, std::uint64_t address,
                      std::uint32_t imm) {
  Qp* qp = qp_of_ex(ex);
  if (open(qp, ex, opcode, kHead<kTransport> + 1, imm)) set_remote(qp->build.data - kSegment, address, rkey);
}

template <Transport kTransport>
void rdma_write(ibv_qp_ex* ex, std::uint32_t rkey, std::uint64_t address) {
  open_rdma<kTransport>(ex, MLX5_OPCODE_RDMA_WRITE, rkey, address, 0);
}
template <Transport kTransport>
void rdma_write_imm(ibv_qp_ex* ex, std::uint32_t rkey, std::uint64_t address, __be32 imm) {
  open_rdma<kTransport>(ex, MLX5_OPCODE_RDMA_WRITE_IMM, rkey, address, imm);
}
template <Transport kTransport>
void rdma_read(ibv_qp_ex* ex, std::uint32_t rkey, std::uint64_t address) {
  open_rdma<kTransport>(ex, MLX5_OPCODE_RDMA_READ, rkey, address, 0);
}

template <Transport kTransport>
inline void open_atomic(ibv_qp_ex* ex, std::uint32_t opcode, std::uint32_t rkey, std::uint64_t address,
                        std::uint64_t swap_or_add, std::uint64_t compare) {
  Qp* qp = qp_of_ex(ex);
  if (!open(qp, ex, opcode, kHead<kTransport> + 2, 0)) return;
  set_remote(qp->build.data - 2 * kSegment, address, rkey);
  set_atomic(qp->build.data - kSegment, swap_or_add, compare);
  if (kTransport == Transport::xrc) qp->build.data = wrap(qp->sq, qp->build.data);
}
template <Transport kTransport>
void atomic_cmp_swp(ibv_qp_ex* ex, std::uint32_t rkey, std::uint64_t address, std::uint64_t compare,
                    std::uint64_t swap) {
  open_atomic<kTransport>(ex, MLX5_OPCODE_ATOMIC_CS, rkey, address, swap, compare);
}
template <Transport kTransport>
void atomic_fetch_add(ibv_qp_ex* ex, std::uint32_t rkey, std::uint64_t address, std::uint64_t add) {
  open_atomic<kTransport>(ex, MLX5_OPCODE_ATOMIC_FA, rkey, address, add, 0);
}

void change_key(ibv_qp_ex* ex, std::uint32_t old_rkey, std::uint32_t new_rkey, const ibv_mw_bind_info& info,
                ibv_wc_opcode wc_opcode) {
  Qp* qp = qp_of_ex(ex);
  Builder& b = qp->build;
  if (!open(qp, ex, MLX5_OPCODE_UMR, 1, be(old_rkey), wc_opcode)) return;
  int error = 0;
  b.size += set_bind(qp->sq, b.data, IBV_MW_TYPE_2, new_rkey, info, &error);
  if (error) {
    set_error(b, error);
    return;
  }
  qp->sq.next_fence = kFenceInitiatorSmall;
  close(qp);
}
void bind_window(ibv_qp_ex* ex, ibv_mw* mw, std::uint32_t rkey, const ibv_mw_bind_info* info) {
  change_key(ex, mw->rkey, rkey, *info, IBV_WC_BIND_MW);
}
void local_inv(ibv_qp_ex* ex, std::uint32_t rkey) { change_key(ex, rkey, 0, ibv_mw_bind_info{}, IBV_WC_LOCAL_INV); }

// ---- setters ----

// Moves the head of a frame into its WQE where the device wants it there. The list that is left, or false with the error kept.
struct FrameRest {
  ibv_sge list[kMostEntries];
  std::size_t count = 0;
};
template <class Entry>
bool take_head(Qp* qp, std::size_t count, const Entry* list, FrameRest* rest) {
  ibv_sge all[kMostEntries];
  if (count > kMostEntries) {
    set_error(qp->build, ENOMEM);
    return false;
  }
  for (std::size_t i = 0; i < count; ++i) {
    if constexpr (std::is_same_v<Entry, ibv_sge>)
      all[i] = list[i];
    else
      all[i] = {reinterpret_cast<std::uintptr_t>(list[i].addr), static_cast<std::uint32_t>(list[i].length), 0};
  }
  const int left = take_eth_head(reinterpret_cast<char*>(qp->build.ctrl) + kSegment, qp->eth_inline, all, count, rest->list);
  if (left < 0) set_error(qp->build, EINVAL);
  rest->count = static_cast<std::size_t>(std::max(left, 0));
  return left >= 0;
}

template <Transport kTransport>
void set_sge_list(ibv_qp_ex* ex, std::size_t count, const ibv_sge* list);

template <Transport kTransport>
void set_sge(ibv_qp_ex* ex, std::uint32_t lkey, std::uint64_t address, std::uint32_t length) {
  Qp* qp = qp_of_ex(ex);
  Builder& b = qp->build;
  if (__builtin_expect(b.error, 0)) return;
  if constexpr (kTransport == Transport::frames)
    if (__builtin_expect(qp->eth_inline, 0)) {
      const ibv_sge one{address, length, lkey};
      return set_sge_list<kTransport>(ex, 1, &one);
    }
  if (__builtin_expect(length != 0, 1)) {
    set_data(b.data, length, lkey, address);
    ++b.size;
  }
  close_when_set<kTransport>(qp);
}

template <Transport kTransport>
void set_sge_list(ibv_qp_ex* ex, std::size_t count, const ibv_sge* list) {
  Qp* qp = qp_of_ex(ex);
  Builder& b = qp->build;
  if (__builtin_expect(b.error, 0)) return;
  if (__builtin_expect(count > qp->sq.max_sge, 0)) return set_error(b, ENOMEM);
  FrameRest rest;
  if constexpr (kTransport == Transport::frames)
    if (__builtin_expect(qp->eth_inline, 0)) {
      if (!take_head(qp, count, list, &rest)) return;
      list = rest.list;
      count = rest.count;
    }
  char* at = b.data;
  for (std::size_t i = 0; i < count; ++i) {
    if (!list[i].length) continue;
    at = wrap(qp->sq, at);
    set_data(at, list[i].length, list[i].lkey, list[i].addr);
    at += kSegment;
    ++b.size;
  }
  close_when_set<kTransport>(qp);
}

template <Transport kTransport>
void set_inline_data_list(ibv_qp_ex* ex, std::size_t count, const ibv_data_buf* list) {
  Qp* qp = qp_of_ex(ex);
  Builder& b = qp->build;
  if (__builtin_expect(b.error, 0)) return;
  FrameRest rest;
  ibv_data_buf behind[kMostEntries];
  if constexpr (kTransport == Transport::frames)
    if (__builtin_expect(qp->eth_inline, 0)) {
      if (!take_head(qp, count, list, &rest)) return;
      for (std::size_t i = 0; i < rest.count; ++i) behind[i] = {reinterpret_cast<void*>(rest.list[i].addr), rest.list[i].length};
      list = behind;
      count = rest.count;
    }
  char* at = b.data + 4;
  std::size_t total = 0;
  for (std::size_t i = 0; i < count; ++i) {
    total += list[i].length;
    if (__builtin_expect(list[i].length > qp->sq.max_inline || total > qp->sq.max_inline, 0))
      return set_error(b, ENOMEM);
    at = copy_inline(qp->sq, at, list[i].addr, static_cast<std::uint32_t>(list[i].length));
  }
  b.inlined = true;
  if (total) {
    store32(b.data, be(static_cast<std::uint32_t>(total) | kInlineFlag));
    b.size += inline_segments(static_cast<std::uint32_t>(total));
  }
  close_when_set<kTransport>(qp);
}

template <Transport kTransport>
void set_inline_data(ibv_qp_ex* ex, void* data, std::size_t length) {
  const ibv_data_buf one{data, length};
  set_inline_data_list<kTransport>(ex, 1, &one);
}

void set_ud_addr(ibv_qp_ex* ex, ibv_ah* ah, std::uint32_t qpn, std::uint32_t qkey) {
  Qp* qp = qp_of_ex(ex);
  if (__builtin_expect(qp->build.error, 0)) return;
  set_datagram(reinterpret_cast<char*>(qp->build.ctrl) + kSegment, ah_of(ah), qpn, qkey);
  close_when_set<Transport::datagram>(qp);
}

void set_xrc_srqn(ibv_qp_ex* ex, std::uint32_t srqn) {
  Qp* qp = qp_of_ex(ex);
  if (__builtin_expect(qp->build.error, 0)) return;
  set_xrc(reinterpret_cast<char*>(qp->build.ctrl) + kSegment, srqn);
  close_when_set<Transport::xrc>(qp);
}

template <Transport kTransport>
void fill_setters(ibv_qp_ex* ex) {
  ex->wr_send = send<kTransport>;
  ex->wr_send_imm = send_imm<kTransport>;
  ex->wr_set_sge = set_sge<kTransport>;
  ex->wr_set_sge_list = set_sge_list<kTransport>;
  ex->wr_set_inline_data = set_inline_data<kTransport>;
  ex->wr_set_inline_data_list = set_inline_data_list<kTransport>;
}

template <Transport kTransport>
void fill_unreliable(ibv_qp_ex* ex) {
  fill_setters<kTransport>(ex);
  ex->wr_send_inv = send_inv<kTransport>;
  ex->wr_rdma_write = rdma_write<kTransport>;
  ex->wr_rdma_write_imm = rdma_write_imm<kTransport>;
  ex->wr_bind_mw = bind_window;
  ex->wr_local_inv = local_inv;
}
template <Transport kTransport>
void fill_reliable(ibv_qp_ex* ex) {
  fill_unreliable<kTransport>(ex);
  ex->wr_rdma_read = rdma_read<kTransport>;
  ex->wr_atomic_cmp_swp = atomic_cmp_swp<kTransport>;
  ex->wr_atomic_fetch_add = atomic_fetch_add<kTransport>;
}

constexpr std::uint64_t kDatagramOps = IBV_QP_EX_WITH_SEND | IBV_QP_EX_WITH_SEND_WITH_IMM;
constexpr std::uint64_t kUnreliableOps = kDatagramOps | IBV_QP_EX_WITH_SEND_WITH_INV | IBV_QP_EX_WITH_RDMA_WRITE |
                                         IBV_QP_EX_WITH_RDMA_WRITE_WITH_IMM | IBV_QP_EX_WITH_LOCAL_INV |
                                         IBV_QP_EX_WITH_BIND_MW;
constexpr std::uint64_t kReliableOps =
    kUnreliableOps | IBV_QP_EX_WITH_RDMA_READ | IBV_QP_EX_WITH_ATOMIC_CMP_AND_SWP | IBV_QP_EX_WITH_ATOMIC_FETCH_AND_ADD;

}  // namespace

int fill_builders(Qp* qp, ibv_qp_type type, std::uint64_t send_ops) {
  ibv_qp_ex* ex = &qp->verbs.qp_ex;
  constexpr std::uint64_t kAtomics = IBV_QP_EX_WITH_ATOMIC_CMP_AND_SWP | IBV_QP_EX_WITH_ATOMIC_FETCH_AND_ADD;
  if (!qp->atomics && (send_ops & kAtomics)) return EOPNOTSUPP;
  ex->wr_start = start;
  ex->wr_abort = abort_session;
  set_completing(qp, false);
  // Everything the type can do is filled, whatever part of it was asked for.
  switch (type) {
    case IBV_QPT_RC:
      if (send_ops & ~kReliableOps) return EOPNOTSUPP;
      fill_reliable<Transport::connected>(ex);
      return 0;
    case IBV_QPT_XRC_SEND:
      if (send_ops & ~kReliableOps) return EOPNOTSUPP;
      fill_reliable<Transport::xrc>(ex);
      ex->wr_set_xrc_srqn = set_xrc_srqn;
      return 0;
    case IBV_QPT_UC:
      if (send_ops & ~kUnreliableOps) return EOPNOTSUPP;
      fill_unreliable<Transport::connected>(ex);
      return 0;
    case IBV_QPT_UD:
      if (send_ops & ~kDatagramOps) return EOPNOTSUPP;
      fill_setters<Transport::datagram>(ex);
      ex->wr_set_ud_addr = set_ud_addr;
      return 0;
    case IBV_QPT_RAW_PACKET:
      if (send_ops & ~std::uint64_t{IBV_QP_EX_WITH_SEND}) return EOPNOTSUPP;
      fill_setters<Transport::frames>(ex);
      ex->wr_send_imm = nullptr;
      return 0;
    default:
      return EOPNOTSUPP;
  }
}

void set_completing(Qp* qp, bool allowed) {
  ibv_qp_ex* ex = &qp->verbs.qp_ex;
  if (ex->wr_start) ex->wr_complete = allowed ? complete : complete_in_wrong_state;
}

}  // namespace verbena::mlx5
