#include "device/transport/responder.h"

#include <algorithm>
#include <bit>
#include <cstring>

#include "device/memory/transfer.h"
#include "device/transport/attention.h"
#include "device/transport/vendor.h"
#include "fabric/frame.h"
#include "prm/qp.h"

namespace verbena::device {

using prm::BthOperation;
using prm::BthService;
using prm::NakCode;

namespace {

constexpr std::uint32_t kPsnMask = 0xffffff;

// Message in progress, as qp.rx_opcode keeps it.
enum : std::uint8_t { kIdle = 0, kInSend = 1, kInWrite = 2 };

bool is_first(BthOperation op) { return op == BthOperation::send_first || op == BthOperation::rdma_write_first; }
bool is_middle(BthOperation op) { return op == BthOperation::send_middle || op == BthOperation::rdma_write_middle; }
bool is_send(BthOperation op) {
  return op <= BthOperation::send_only_imm || op == BthOperation::send_last_inv || op == BthOperation::send_only_inv;
}
bool is_write(BthOperation op) {
  return op >= BthOperation::rdma_write_first && op <= BthOperation::rdma_write_only_imm;
}
bool starts(BthOperation op) {
  switch (op) {
    case BthOperation::send_first:
    case BthOperation::send_only:
    case BthOperation::send_only_imm:
    case BthOperation::send_only_inv:
    case BthOperation::rdma_write_first:
    case BthOperation::rdma_write_only:
    case BthOperation::rdma_write_only_imm:
      return true;
    default:
      return false;
  }
}
bool ends(BthOperation op) { return !is_first(op) && !is_middle(op); }
bool has_imm(BthOperation op) {
  return op == BthOperation::send_last_imm || op == BthOperation::send_only_imm ||
         op == BthOperation::rdma_write_last_imm || op == BthOperation::rdma_write_only_imm;
}
bool has_inv(BthOperation op) { return op == BthOperation::send_last_inv || op == BthOperation::send_only_inv; }

constexpr std::uint8_t kXrcSrq = 1;  // SrqContext.type

}  // namespace

std::uint32_t Responder::npsn(std::uint64_t bytes) const {
  return bytes == 0 ? 1 : static_cast<std::uint32_t>((bytes + (std::uint64_t{1} << log_mtu()) - 1) >> log_mtu());
}

// All packets of a message but the last have the path MTU as their length, and none is longer.
bool Responder::cut_wrong(BthOperation op, const Payload& payload) const {
  if (sender_log_mtu_ == 0 || sender_log_mtu_ == log_mtu()) return false;
  return !ends(op) || payload.bytes > 1u << std::min<unsigned>(sender_log_mtu_, log_mtu());
}

bool Responder::accepts(const fabric::Packet& packet) {
  if (!Nic::in_use(qp_) || qp_.qpn != packet.dest_qpn) return false;
  const auto state = static_cast<QpState>(qp_.state.load(std::memory_order_acquire));
  if (state != QpState::rtr && state != QpState::rts && state != QpState::sqd && state != QpState::sqer) return false;
  const auto service = static_cast<BthService>(packet.opcode >> 5);
  switch (qp_.type) {
    case QpType::rc:
      return service == BthService::rc;
    case QpType::uc:
      return service == BthService::uc;
    case QpType::ud:
      return service == BthService::ud;
    case QpType::xrc:
      return service == BthService::xrc;
    default:
      return false;
  }
}

// Under rx_lock: the packet has come in.
void Responder::pass_in() {
  Traffic& in = qp_.responses[(port_ - 1u) % kMaxPorts].in;
  add_alone(in.packets, wire_.packets);
  add_alone(in.octets, wire_.octets);
}

void Responder::pass_out(const fabric::Packet& request, Reply& reply) {
  reply.wire = {};
  if (wire_.packets == 0 || request.address == nullptr) return;
  const std::uint64_t bytes = reply.packet.payload_bytes;
  const std::uint32_t packets = npsn(bytes);
  reply.wire = {packets, fabric::message_bytes(request.address->carrier, reply.packet.opcode, bytes, packets)};
  Traffic& out = qp_.responses[(port_ - 1u) % kMaxPorts].out;
  add_alone(out.packets, reply.wire.packets);
  add_alone(out.octets, reply.wire.octets);
}

bool Responder::find_xrc_queue(std::uint32_t srqn) {
  // The owner of both knows its own.
  const auto found = nic_.find_srq(srqn);
  if (!found || !Nic::in_use(*found.context) || found.context->srqn != srqn || found.context->type != kXrcSrq ||
      found.context->xrcd != qp_.xrcd || !nic_.alive(*found.peer))
    return false;
  xrc_.peer = found.peer;
  xrc_.srq = found.context;
  xrc_.index = static_cast<std::uint32_t>(found.context - found.peer->slice->srqs);
  xrc_.complete.emplace(*found.peer, me_, deferred_);
  return true;
}

Answer Responder::receive(const fabric::Packet& packet, const Payload& payload, Reply& reply) {
  SharedGuard guard(qp_.rx_lock, me_);
  if (!accepts(packet)) {
    add(nic_.segment().ports[(port_ - 1u) % kMaxPorts].counters.ib.in, wire_.packets, wire_.octets);
    return Answer::none;
  }
  if ((qp_.rx_flags & kRxCommEst) == 0) [[unlikely]] {
    qp_.rx_flags |= kRxCommEst;
    if (static_cast<QpState>(qp_.state.load()) == QpState::rtr)
      complete_.event(prm::EventType::comm_est, qp_);
  }
  if (qp_.type == QpType::ud) {
    const Answer answer = receive_datagram(packet, payload);
    if (answer != Answer::held) pass_in();
    return answer;
  }
  pass_in();
  reply.packet.payload_bytes = 0;
  const Answer answer = receive_connected(packet, payload, reply);
  if (answer == Answer::packet) pass_out(packet, reply);
  return answer;
}

Answer Responder::receive_connected(const fabric::Packet& packet, const Payload& payload, Reply& reply) {
  const auto op = static_cast<BthOperation>(packet.opcode & 0x1f);
  const std::uint32_t ahead = (packet.psn - qp_.epsn) & kPsnMask;
  if (ahead != 0) [[unlikely]] {
    if (qp_.type == QpType::uc) {
      befell(&EventCounters::out_of_sequence);
      resync(op, packet);
      if (!starts(op)) return Answer::none;
    } else if (ahead < 0x800000) {
      befell(&EventCounters::out_of_sequence);
      if (qp_.nak_sent) return Answer::none;
      qp_.nak_sent = true;
      return nak(reply, NakCode::psn_sequence_error);
    } else {
      if (qp_.type == QpType::xrc && !find_xrc_queue(packet.xrc_srqn)) return Answer::none;
      if (wire_.packets != 0) befell(&EventCounters::duplicate_request);
      return duplicate(op, packet, reply);
    }
  }
  qp_.nak_sent = false;
  if (qp_.type == QpType::xrc) [[unlikely]] {
    // A message goes where its first packet went.
    const bool going_on = (qp_.rx_flags & kRxHasWqe) != 0;
    if (!find_xrc_queue(going_on ? qp_.rx_srqn : packet.xrc_srqn)) {
      // Of a process that dies the queue pairs go before what they receive into: nobody answers any more.
      if (!nic_.alive(owner_) || nic_.segment().slots[owner_.slot].generation.load() != owner_.generation) return Answer::none;
      return fatal(reply, NakCode::invalid_request);
    }
    qp_.rx_srqn = xrc_.srq->srqn;
  }
  return request(op, packet, payload, reply);
}

// UC: packets were lost. The message in progress is dropped and its receive WQE serves the next one.
void Responder::resync(BthOperation op, const fabric::Packet& packet) {
  qp_.rx_opcode = kIdle;
  qp_.rx_offset = 0;
  if (starts(op)) qp_.epsn = packet.psn;
}

bool Responder::in_order(BthOperation op) const {
  if (starts(op)) return qp_.rx_opcode == kIdle;
  if (is_send(op)) return qp_.rx_opcode == kInSend;
  if (is_write(op)) return qp_.rx_opcode == kInWrite;
  return qp_.rx_opcode == kIdle;  // reads and atomics
}

Answer Responder::request(BthOperation op, const fabric::Packet& packet, const Payload& payload, Reply& reply) {
  if (!in_order(op)) {
    if (qp_.type == QpType::uc) {
      qp_.rx_opcode = kIdle;
      qp_.rx_offset = 0;
      if (!starts(op)) return Answer::none;
    } else {
      return fatal(reply, NakCode::invalid_request);
    }
  }
  if ((is_send(op) || is_write(op)) && cut_wrong(op, payload)) [[unlikely]] {
    if (reliable()) return fatal(reply, NakCode::invalid_request);
    qp_.rx_opcode = kIdle;
    qp_.rx_offset = 0;
    return Answer::none;
  }
  if (is_send(op)) return send(op, packet, payload, reply);
  if (is_write(op)) return write(op, packet, payload, reply);
  if (!reliable()) return Answer::none;
  if (op == BthOperation::rdma_read_request) return read(packet, reply);
  if (op == BthOperation::compare_swap || op == BthOperation::fetch_add) return atomic(op, packet, reply);
  return fatal(reply, NakCode::invalid_request);
}

// ---- SEND ----

Responder::Scatter Responder::scatter(const ReceiveWqe& wqe, std::uint64_t offset, const Payload& payload) {
  if (payload.bytes > wqe.capacity || offset > wqe.capacity - payload.bytes) return Scatter::too_long;
  PieceList to;
  const KeyUse use{&target(), wqe.pdn, qp_.qpn, kMkeyLocalWrite};
  std::uint64_t left = payload.bytes;
  for (unsigned i = 0; i < wqe.count && left != 0; ++i) {
    const ReceiveWqe::Sge& sge = wqe.sge[i];
    if (offset >= sge.length) {
      offset -= sge.length;
      continue;
    }
    const std::uint64_t n = std::min<std::uint64_t>(left, sge.length - offset);
    if (translate(nic_, use, sge.lkey, sge.va + offset, n, to) != KeyError::none) return Scatter::protection;
    left -= n;
    offset = 0;
  }
  switch (move(to, 0, *payload.pieces, payload.at, payload.bytes)) {
    case Moved::ok:
      return Scatter::ok;
    case Moved::source_fault:
      return Scatter::source_fault;
    case Moved::gone:
      return Scatter::gone;
    default:
      return Scatter::protection;
  }
}

bool Responder::fits_cqe(std::uint64_t bytes, bool only) const {
  if (!only || bytes == 0 || qp_.cs_res == 0 || (qp_.type != QpType::rc && qp_.type != QpType::uc)) return false;
  return bytes <= (complete_.cqe_log(qp_.recv_cq) == 7 && (qp_.cs_res & 0xf) == 2 ? 64u : 32u);
}

Answer Responder::send(BthOperation op, const fabric::Packet& packet, const Payload& payload, Reply& reply) {
  ReceiveQueue queue = receive_queue();
  ReceiveWqe wqe;
  if (!queue.current(wqe)) {
    befell(&EventCounters::out_of_buffer);
    if (reliable()) return rnr(reply);
    qp_.rx_opcode = kIdle;
    qp_.epsn = (packet.psn + npsn(payload.bytes)) & kPsnMask;
    return Answer::none;
  }
  if (starts(op)) qp_.rx_offset = 0;
  if (has_inv(op) && !invalidate(packet.invalidate)) {
    receive_error(wqe, prm::CqeSyndrome::local_access_err, kVendorLocalAccess);
    if (reliable()) return fatal(reply, NakCode::remote_access_error);
    to_error();
    return Answer::none;
  }
  const bool only = starts(op) && ends(op), into_cqe = fits_cqe(payload.bytes, only);
  Scatter done = Scatter::ok;
  if (into_cqe)
    done = payload.bytes > wqe.capacity ? Scatter::too_long : Scatter::ok;
  else if (payload.bytes != 0)
    done = scatter(wqe, qp_.rx_offset, payload);
  switch (done) {
    case Scatter::ok:
      break;
    case Scatter::source_fault:
      return Answer::source_fault;
    case Scatter::gone:
      return Answer::none;
    case Scatter::too_long:
      receive_error(wqe, prm::CqeSyndrome::local_length_err, kVendorLocalLength);
      return fatal(reply, NakCode::invalid_request, true);
    case Scatter::protection:
      receive_error(wqe, prm::CqeSyndrome::local_prot_err, prm::kVendorSyndromeLocalProtection);
      return fatal(reply, NakCode::remote_operational_error);
  }
  qp_.rx_offset += payload.bytes;
  if (ends(op)) {
    const auto opcode = has_imm(op)   ? prm::CqeOpcode::resp_send_imm
                        : has_inv(op) ? prm::CqeOpcode::resp_send_inv
                                      : prm::CqeOpcode::resp_send;
    finish_receive(wqe, packet, opcode, qp_.rx_offset, into_cqe ? &payload : nullptr);
    queue.release();
  } else {
    qp_.rx_opcode = kInSend;
  }
  note_outcome(packet, npsn(payload.bytes), ends(op));
  return reliable() ? ack(reply, (qp_.epsn - 1) & kPsnMask) : Answer::none;
}

void Responder::note_outcome(const fabric::Packet& packet, std::uint32_t count, bool message_done) {
  qp_.epsn = (packet.psn + count) & kPsnMask;
  if (!message_done) return;
  qp_.msn = (qp_.msn + 1) & kPsnMask;
  qp_.rx_opcode = kIdle;
  qp_.rx_offset = 0;
}

void Responder::finish_receive(const ReceiveWqe& wqe, const fabric::Packet& packet, prm::CqeOpcode opcode,
                               std::uint64_t bytes, const Payload* into_cqe) {
  CqeBuffer cqe;
  const auto v = cqe.view();
  alignas(64) std::byte inline_data[64];
  auto format = prm::CqeFormat::no_inline;
  if (into_cqe != nullptr) {
    PieceList to;
    const bool wide = into_cqe->bytes > 32;
    to.add(nullptr, reinterpret_cast<std::uint64_t>(wide ? inline_data : cqe.bytes), into_cqe->bytes);
    if (move(to, 0, *into_cqe->pieces, into_cqe->at, into_cqe->bytes) != Moved::ok)
      std::memset(wide ? inline_data : cqe.bytes, 0, into_cqe->bytes);
    if (wide) cqe.inline_data = inline_data;
    format = wide ? prm::CqeFormat::inline_64 : prm::CqeFormat::inline_32;
  } else {
    v.set<prm::Cqe64::rqpn>(packet.src_qpn);
  }
  v.set<prm::Cqe64::srqn_uidx>(xrc_.srq ? xrc_.srq->user_index : qp_.user_index);
  if (opcode == prm::CqeOpcode::resp_send_inv)
    v.set<prm::Cqe64::imm_inval_pkey>(packet.invalidate);
  else
    v.set<prm::Cqe64::imm_inval_pkey>(packet.immediate);
  v.set<prm::Cqe64::byte_cnt>(static_cast<std::uint32_t>(bytes));
  v.set<prm::Cqe64::qpn>(qp_.qpn);
  v.set<prm::Cqe64::wqe_counter>(wqe.index);
  v.set<prm::Cqe64::opcode>(opcode).set<prm::Cqe64::format>(format).set<prm::Cqe64::se>(packet.solicited);
  if (!post_receive(cqe, packet.solicited)) [[unlikely]]
    lost_completion();
}

bool Responder::post_receive(CqeBuffer& cqe, bool solicited) {
  return xrc_.srq ? xrc_.complete->post(xrc_.srq->cq, cqe, solicited) : complete_.post(qp_.recv_cq, cqe, solicited);
}

void Responder::lost_completion() {
  complete_.event(prm::EventType::wq_catas_error, qp_);
  to_error();
}

void Responder::receive_error(const ReceiveWqe& wqe, prm::CqeSyndrome syndrome, std::uint8_t vendor) {
  CqeBuffer cqe;
  cqe.error()
      .set<prm::ErrCqe::srqn>(xrc_.srq ? xrc_.srq->user_index : qp_.user_index)
      .set<prm::ErrCqe::vendor_err_synd>(vendor)
      .set<prm::ErrCqe::syndrome>(syndrome)
      .set<prm::ErrCqe::qpn>(qp_.qpn)
      .set<prm::ErrCqe::wqe_counter>(wqe.index)
      .set<prm::ErrCqe::opcode>(prm::CqeOpcode::resp_err);
  befell(&EventCounters::resp_cqe_error);
  if (syndrome == prm::CqeSyndrome::wr_flush_err) befell(&EventCounters::resp_cqe_flush_error);
  if (syndrome == prm::CqeSyndrome::local_length_err) befell(&EventCounters::resp_local_length_error);
  post_receive(cqe, true);
  receive_queue().release();
}

// ---- RDMA WRITE ----

bool Responder::start_write(const fabric::Packet& packet) {
  qp_.rx_va = packet.va;
  qp_.rx_left = packet.length;
  qp_.rx_rkey = packet.rkey;
  if (packet.length == 0 || ends(static_cast<BthOperation>(packet.opcode & 0x1f))) return true;  // checked when placed
  PieceList whole;
  const KeyUse use{&target(), remote_pd(), qp_.qpn, kMkeyRemoteWrite};
  return translate(nic_, use, packet.rkey, packet.va, packet.length, whole) == KeyError::none;
}

Answer Responder::write(BthOperation op, const fabric::Packet& packet, const Payload& payload, Reply& reply) {
  if (starts(op) && !qp_.rwe) return not_enabled(reply);
  if (starts(op)) add_alone(qp_.rx_writes, 1);
  if (starts(op) && !start_write(packet)) return fatal(reply, NakCode::remote_access_error);
  if (payload.bytes > qp_.rx_left || (ends(op) && payload.bytes != qp_.rx_left))
    return fatal(reply, NakCode::invalid_request);
  ReceiveQueue queue = receive_queue();
  ReceiveWqe wqe;
  if (has_imm(op) && !queue.current(wqe)) {
    befell(&EventCounters::out_of_buffer);
    if (reliable()) return rnr(reply);
    note_outcome(packet, npsn(payload.bytes), true);
    return Answer::none;
  }
  if (payload.bytes != 0) {
    PieceList to;
    const KeyUse use{&target(), remote_pd(), qp_.qpn, kMkeyRemoteWrite};
    if (translate(nic_, use, qp_.rx_rkey, qp_.rx_va, payload.bytes, to) != KeyError::none)
      return fatal(reply, NakCode::remote_access_error);
    const Moved moved = move(to, 0, *payload.pieces, payload.at, payload.bytes);
    if (moved == Moved::source_fault) return Answer::source_fault;
    if (moved == Moved::gone) return Answer::none;
    if (moved != Moved::ok) return fatal(reply, NakCode::remote_operational_error);
  }
  qp_.rx_va += payload.bytes;
  qp_.rx_left -= payload.bytes;
  qp_.rx_offset += payload.bytes;
  if (has_imm(op)) {
    finish_receive(wqe, packet, prm::CqeOpcode::resp_wr_imm, qp_.rx_offset, nullptr);
    queue.release();
  }
  if (!ends(op)) qp_.rx_opcode = kInWrite;
  note_outcome(packet, npsn(payload.bytes), ends(op));
  return reliable() ? ack(reply, (qp_.epsn - 1) & kPsnMask) : Answer::none;
}

// ---- RDMA READ and atomics ----

Answer Responder::read(const fabric::Packet& packet, Reply& reply) {
  if (!qp_.rre) return not_enabled(reply);
  add_alone(qp_.rx_reads, 1);
  const KeyUse use{&target(), remote_pd(), qp_.qpn, kMkeyRemoteRead};
  if (packet.length > 1u << 31) return fatal(reply, NakCode::invalid_request);
  if (packet.length != 0 &&
      translate(nic_, use, packet.rkey, packet.va, packet.length, reply.data) != KeyError::none)
    return fatal(reply, NakCode::remote_access_error);
  const std::uint32_t count = npsn(packet.length);
  qp_.rres[qp_.rres_next++ % kMaxResponderResources] = {packet.psn, count, packet.opcode, {}, packet.rkey, packet.va,
                                                        packet.length, 0};
  note_outcome(packet, count, true);
  ack(reply, packet.psn);
  reply.packet.opcode = answer_opcode(BthOperation::rdma_read_response_only);
  reply.packet.payload_bytes = packet.length;
  reply.log_mtu = static_cast<std::uint8_t>(log_mtu());
  return Answer::packet;
}

// qpc.atomic_mode: those of the specification alone, or extended ones of 8 bytes, or of up to 8.
bool Responder::serves_extended(unsigned bytes) const {
  const auto mode = static_cast<prm::AtomicMode>(qp_.atomic_mode);
  return mode >= prm::AtomicMode::up_to_8b || (mode == prm::AtomicMode::only_8b && bytes == 8);
}

Answer Responder::atomic(BthOperation op, const fabric::Packet& packet, Reply& reply) {
  if (!qp_.rae) return not_enabled(reply);
  if (packet.extended_bytes != 0 && !serves_extended(packet.extended_bytes)) return not_enabled(reply);
  add_alone(qp_.rx_atomics, 1);
  const unsigned bytes = packet.extended_bytes == 4 ? 4 : 8;
  if ((packet.va & (bytes - 1)) != 0) return fatal(reply, NakCode::invalid_request);
  PieceList at;
  const KeyUse use{&target(), remote_pd(), qp_.qpn, kMkeyAtomic};
  if (translate(nic_, use, packet.rkey, packet.va, bytes, at) != KeyError::none)
    return fatal(reply, NakCode::remote_access_error);
  if (at.size() != 1) return fatal(reply, NakCode::remote_operational_error);
  std::uint64_t original = 0;
  AtomicOp what{.compare_swap = op == BthOperation::compare_swap, .compare = packet.compare, .swap_add = packet.swap_add, .bytes = bytes};
  if (packet.extended_bytes != 0 && what.compare_swap) {
    what.compare_mask = packet.compare_mask;
    what.swap_mask = packet.swap_add_mask;
  } else if (packet.extended_bytes != 0) {
    what.fields = packet.compare;
  }
  const Moved moved = verbena::device::atomic(at[0].peer, at[0].va, what, me_, original);
  if (moved == Moved::gone) return Answer::none;
  if (moved != Moved::ok) return fatal(reply, NakCode::remote_operational_error);
  qp_.rres[qp_.rres_next++ % kMaxResponderResources] = {packet.psn, 1, packet.opcode, {}, packet.rkey, packet.va, bytes,
                                                        original};
  note_outcome(packet, 1, true);
  ack(reply, packet.psn);
  reply.packet.opcode = answer_opcode(BthOperation::atomic_acknowledge);
  reply.packet.original = original;
  return Answer::packet;
}

Answer Responder::duplicate(BthOperation op, const fabric::Packet& packet, Reply& reply) {
  if (is_send(op) || is_write(op)) return ack(reply, (qp_.epsn - 1) & kPsnMask);
  for (const ResponderResource& r : qp_.rres) {
    const std::uint32_t into = (packet.psn - r.psn) & kPsnMask;
    if (r.opcode != packet.opcode || into >= r.npsn) continue;
    ack(reply, packet.psn);
    if (op != BthOperation::rdma_read_request) {
      reply.packet.opcode = answer_opcode(BthOperation::atomic_acknowledge);
      reply.packet.original = r.result;
      return Answer::packet;
    }
    // Part of an earlier READ may be asked for again, never anything else.
    const std::uint64_t offset = packet.va - r.va;
    if (packet.rkey != r.rkey || offset > r.length || packet.length > r.length - offset) return Answer::none;
    const KeyUse use{&target(), remote_pd(), qp_.qpn, kMkeyRemoteRead};
    if (packet.length != 0 &&
        translate(nic_, use, packet.rkey, packet.va, packet.length, reply.data) != KeyError::none)
      return fatal(reply, NakCode::remote_access_error);
    reply.packet.opcode = answer_opcode(BthOperation::rdma_read_response_only);
    reply.packet.payload_bytes = packet.length;
    reply.log_mtu = static_cast<std::uint8_t>(log_mtu());
    return Answer::packet;
  }
  return Answer::none;
}

// ---- SEND with invalidate ----

bool Responder::invalidate(std::uint32_t rkey) {
  const auto found = nic_.find_mkey(rkey);
  if (!found || found.peer->slot != target().slot) return false;
  MkeyContext& m = *found.context;
  SharedGuard lock(m.lock, me_);
  const std::uint32_t flags = m.flags.load();
  if (!Nic::in_use(m) || m.key.load() != rkey || m.pdn != remote_pd() || (flags & kMkeyFree) != 0) return false;
  if (!serves(m.qpn, qp_.qpn) || (flags & kMkeyRemoteInvalidate) == 0) return false;
  m.flags.fetch_or(kMkeyFree);
  return true;
}

// ---- answers ----

Answer Responder::ack(Reply& reply, std::uint32_t psn) {
  reply.packet.opcode = answer_opcode(BthOperation::acknowledge);
  reply.packet.psn = psn;
  reply.packet.syndrome = prm::kAethCreditsUnlimited;
  reply.packet.msn = qp_.msn;
  reply.packet.dest_qpn = qp_.dest_qpn;
  reply.packet.src_qpn = qp_.qpn;
  return Answer::packet;
}

Answer Responder::nak(Reply& reply, NakCode code) {
  ack(reply, qp_.epsn);
  reply.packet.syndrome = static_cast<std::uint8_t>(static_cast<unsigned>(prm::AethKind::nak) << 5 |
                                                    static_cast<unsigned>(code));
  return Answer::packet;
}

Answer Responder::rnr(Reply& reply) {
  ack(reply, qp_.epsn);
  reply.packet.syndrome =
      static_cast<std::uint8_t>(static_cast<unsigned>(prm::AethKind::rnr_nak) << 5 | (qp_.min_rnr_nak & 0x1f));
  return Answer::packet;
}

Answer Responder::fatal(Reply& reply, NakCode code, bool completed) {
  const bool rc = reliable();
  if (code == NakCode::remote_access_error) befell(&EventCounters::resp_remote_access_errors);
  if (!rc && code == NakCode::remote_access_error) {
    // UC: the message is dropped, nobody is told.
    qp_.rx_opcode = kIdle;
    return Answer::none;
  }
  to_error();
  if (code == NakCode::remote_access_error) complete_.event(prm::EventType::wq_access_error, qp_);
  if (code == NakCode::invalid_request && !completed) complete_.event(prm::EventType::wq_inval_req_error, qp_);
  return rc ? nak(reply, code) : Answer::none;
}

// An operation this QP is not set up for is an invalid request, not an access error (IBTA table 58); UC drops it.
Answer Responder::not_enabled(Reply& reply) {
  if (reliable()) return fatal(reply, NakCode::invalid_request);
  qp_.rx_opcode = kIdle;
  return Answer::none;
}

void Responder::to_error() {
  qp_.state.store(static_cast<std::uint32_t>(QpState::err), std::memory_order_release);
  flush();
  // The send queue is its owner's to flush.
  qp_.sq_flags.fetch_or(kSqFlushPending);
  set_attention(*owner_.slice, qp_attention(*owner_.slice), static_cast<std::uint32_t>(&qp_ - owner_.slice->qps));
  deferred_.wake(owner_);
}

void Responder::flush() {
  if (qp_.type == QpType::xrc && (qp_.rx_flags & kRxHasWqe) != 0 && !find_xrc_queue(qp_.rx_srqn))
    qp_.rx_flags &= ~kRxHasWqe;  // gone, and what it had with it
  ReceiveQueue queue = receive_queue();
  ReceiveWqe wqe;
  qp_.rx_opcode = kIdle;
  if (queue.uses_srq() || qp_.type == QpType::xrc) {
    if ((qp_.rx_flags & kRxHasWqe) != 0) {
      queue.current(wqe);
      receive_error(wqe, prm::CqeSyndrome::wr_flush_err, prm::kVendorSyndromeFlushed);
    }
    const bool receives = qp_.type != QpType::xrc || qp_.sq.va == 0;  // XRC: what sends does not receive
    if (receives && (qp_.rx_flags & kRxLastWqe) == 0) {
      qp_.rx_flags |= kRxLastWqe;
      complete_.event(prm::EventType::srq_last_wqe, qp_);
    }
    return;
  }
  if (qp_.rq_type == kRqTypeNone || qp_.quiet_flush) return;
  if ((qp_.rx_flags & kRxHasWqe) != 0) qp_.rq_tail_seen = qp_.rq_tail_seen == qp_.rq_head ? qp_.rq_head + 1 : qp_.rq_tail_seen;
  qp_.rx_flags &= ~kRxHasWqe;
  posted(owner_, qp_.rq, qp_.dbrec_va, qp_.rq_head, &qp_.rq_tail_seen);
  // Counted: whoever overwrites the context meanwhile must not keep us here.
  for (std::uint16_t left = qp_.rq_tail_seen - qp_.rq_head; left != 0; --left) {
    wqe.index = qp_.rq_head;
    qp_.rx_flags |= kRxHasWqe;
    receive_error(wqe, prm::CqeSyndrome::wr_flush_err, prm::kVendorSyndromeFlushed);
  }
}

}  // namespace verbena::device
