#include "device/transport/requester.h"

#include <algorithm>
#include <cstring>

#include "device/memory/transfer.h"
#include "device/transport/clock.h"
#include "device/transport/vendor.h"
#include "prm/doorbell.h"

namespace verbena::device {

using prm::BthOperation;
using prm::BthService;
using prm::CqeSyndrome;
using prm::WqeOpcode;

namespace {
constexpr std::uint32_t kPsnMask = 0xffffff;
constexpr std::uint64_t kLinkPayload = 256 << 10;  // between processes of one machine: a multiple of every MTU

// How long the link holds a datagram that found no receive WQE, and how often it looks.
constexpr std::uint64_t kHoldNs = 100'000'000, kFirstLookNs = 2'000, kLastLookNs = 500'000;

// RNR NAK timer codes (IBTA table 45) in microseconds.
constexpr std::uint32_t kRnrMicroseconds[32] = {655360, 10,   20,   30,   40,   60,    80,    120,   160,    240,    320,
                                                480,    640,  960,  1280, 1920, 2560,  3840,  5120,  7680,   10240,  15360,
                                                20480,  30720, 40960, 61440, 81920, 122880, 163840, 245760, 327680, 491520};
}  // namespace

std::uint32_t posted_sends(Peer& self, const QpContext& qp) {
  if (qp.no_send_record == 0) [[likely]]
    return posted(self, qp.sq, qp.dbrec_va + 4, qp.sq_head);
  const std::uint16_t count = static_cast<std::uint16_t>(qp.rung.load(std::memory_order_acquire)) - qp.sq_head;
  return qp.sq.log_entries <= 15 && count <= 1u << (qp.sq.log_entries & 31) ? count : 0;
}

std::uint32_t Requester::posted_blocks() {
  if (qp_.no_send_record != 0) [[unlikely]]
    return posted_sends(self_, qp_);
  std::byte record[4];
  const std::uint64_t va = qp_.dbrec_va + 4;
  if (const std::byte* p = self_.in_arena(va, 4); p != nullptr) [[likely]] {
    const std::uint32_t v = __atomic_load_n(reinterpret_cast<const std::uint32_t*>(p), __ATOMIC_ACQUIRE);
    std::memcpy(record, &v, sizeof v);
  } else if (read_memory(&self_, va, record, sizeof record) != Moved::ok) {
    return 0;
  }
  const auto producer = static_cast<std::uint16_t>(prm::load_be32(record));
  const std::uint16_t count = producer - qp_.sq_head;
  return qp_.sq.log_entries <= 15 && count <= 1u << (qp_.sq.log_entries & 31) ? count : 0;
}

bool Requester::begin() {
  const std::uint32_t available = posted_blocks();
  if (available == 0) return false;
  gathered_ = false;
  local_memory_.clear();
  have_wqe_ = true;
  switch (wqe_.fetch(qp_, self_, qp_.sq_head, available)) {
    case SendWqe::Fetch::ok:
      break;
    case SendWqe::Fetch::bad:
      error(CqeSyndrome::local_qp_op_err, kVendorQpOperation);
      return false;
    case SendWqe::Fetch::unreadable:
      error(CqeSyndrome::local_prot_err, prm::kVendorSyndromeLocalProtection);
      return false;
  }
  // An offset behind the message's end is nobody's: it would turn lengths negative.
  if ((qp_.req_flags & kReqStarted) == 0 || qp_.wqe_offset > wqe_.length) {
    qp_.msg_psn = qp_.next_psn;
    qp_.una_psn = qp_.next_psn;
    qp_.wqe_offset = 0;
  }
  return true;
}

Progress Requester::run() {
  for (;;) {
    const auto state = static_cast<QpState>(qp_.state.load(std::memory_order_acquire));
    if (state == QpState::err || state == QpState::sqer) {
      engine_.flush_sq(qp_, deferred_);
      return Progress::idle;
    }
    const bool started = (qp_.req_flags & kReqStarted) != 0;
    if (state != QpState::rts && !(state == QpState::sqd && started)) return Progress::idle;
    if (qp_.deadline_ns != 0) {
      if (!timer_due()) return Progress::idle;
      if (timer_expired() == Step::failed) continue;
    }
    if (budget_bytes_ <= 0 || budget_wqes_ <= 0) return posted_blocks() != 0 ? Progress::more : Progress::idle;
    if (!have_wqe_ && !begin()) {
      if (static_cast<QpState>(qp_.state.load()) != state) continue;  // a bad WQE moved us to an error state
      return Progress::idle;
    }
    switch (execute()) {
      case Step::next:
        have_wqe_ = false;
        --budget_wqes_;
        break;
      case Step::again:
        break;
      case Step::wait:
        return Progress::idle;
      case Step::failed:
        have_wqe_ = false;
        break;
    }
  }
}

Requester::Step Requester::execute() {
  if (qp_.type == QpType::ud) return datagram();
  if (qp_.type == QpType::raw) [[unlikely]]
    return frame();
  switch (wqe_.opcode) {
    case WqeOpcode::send:
    case WqeOpcode::send_imm:
    case WqeOpcode::send_inval:
    case WqeOpcode::rdma_write:
    case WqeOpcode::rdma_write_imm:
      return send_or_write();
    case WqeOpcode::rdma_read:
      return read();
    case WqeOpcode::atomic_cs:
    case WqeOpcode::atomic_fa:
    case WqeOpcode::atomic_masked_cs:
    case WqeOpcode::atomic_masked_fa:
      return atomic();
    default:
      return local_operation();
  }
}

void Requester::fill_common(BthOperation op) {
  const BthService service = qp_.type == QpType::rc    ? BthService::rc
                             : qp_.type == QpType::uc  ? BthService::uc
                             : qp_.type == QpType::xrc ? BthService::xrc
                                                       : BthService::ud;
  packet_.opcode = prm::bth_opcode(service, op);
  if (service == BthService::xrc) packet_.xrc_srqn = wqe_.xrc_srqn;
  packet_.dest_qpn = qp_.dest_qpn;
  packet_.src_qpn = qp_.qpn;
  packet_.psn = qp_.next_psn;
  packet_.solicited = false;
  packet_.ack_request = is_reliable(qp_.type);
}

std::uint64_t Requester::max_payload() const {
  if (engine_.trace != nullptr) return std::uint64_t{1} << log_mtu();
  return qp_.shaped == 0 ? kLinkPayload : shaped_payload(shaped_quantum());
}

// As the QP was told; no message is longer than 2 GiB.
std::uint64_t Requester::longest_message() const {
  const unsigned log = qp_.log_msg_max;
  return std::uint64_t{1} << (log == 0 ? 31 : std::min(log, 31u));
}

Requester::Step Requester::send_or_write() {
  if (!gathered_) {
    if (wqe_.length > longest_message()) return error(CqeSyndrome::local_length_err, kVendorLocalLength);
    if (wqe_.gather(nic_, self_, qp_, kMkeyLocalRead, local_memory_) != KeyError::none)
      return error(CqeSyndrome::local_prot_err, prm::kVendorSyndromeLocalProtection);
    gathered_ = true;
  }
  const bool write = wqe_.opcode == WqeOpcode::rdma_write || wqe_.opcode == WqeOpcode::rdma_write_imm;
  const bool imm = wqe_.opcode == WqeOpcode::send_imm || wqe_.opcode == WqeOpcode::rdma_write_imm;
  const bool inv = wqe_.opcode == WqeOpcode::send_inval;
  const std::uint64_t left = wqe_.length - std::min(qp_.wqe_offset, wqe_.length);
  const std::uint64_t bytes = std::min(left, max_payload());
  const bool first = qp_.wqe_offset == 0, last = bytes == left;
  const auto base = static_cast<unsigned>(write ? BthOperation::rdma_write_first : BthOperation::send_first);
  BthOperation op;
  if (last && inv)
    op = first ? BthOperation::send_only_inv : BthOperation::send_last_inv;
  else  // first, middle, last, last+imm, only, only+imm lie in this order from `base`
    op = static_cast<BthOperation>(base + (last ? (first ? 4 : 2) + (imm ? 1 : 0) : first ? 0 : 1));
  fill_common(op);
  packet_.solicited = last && wqe_.solicited;
  packet_.immediate = packet_.invalidate = wqe_.immediate;
  packet_.va = wqe_.raddr;
  packet_.rkey = wqe_.rkey;
  packet_.length = static_cast<std::uint32_t>(wqe_.length);
  packet_.payload_bytes = static_cast<std::uint32_t>(bytes);
  if (held_back(local_.way, bytes)) return Step::wait;
  budget_bytes_ -= static_cast<std::int64_t>(bytes);
  const Answer answer = deliver({&local_memory_, qp_.wqe_offset, bytes});
  const std::uint32_t count = npsn(bytes);
  if (qp_.type == QpType::uc) {
    if (answer == Answer::source_fault)
      return error(CqeSyndrome::local_prot_err, prm::kVendorSyndromeLocalProtection);
    qp_.next_psn = (qp_.next_psn + count) & kPsnMask;
  } else if (const Step step = take(answer, count); step != Step::next) {
    return step;
  }
  if (!last) {
    qp_.wqe_offset += bytes;
    qp_.req_flags |= kReqStarted;
    return Step::again;
  }
  finish();
  return Step::next;
}

bool Requester::fits_cqe(std::uint64_t bytes) const {
  if (qp_.cs_req == 0 || !wqe_.signaled || bytes == 0) return false;
  return bytes <= (complete_.cqe_log(qp_.send_cq) == 7 && (qp_.cs_req & 0xf) == 2 ? 64u : 32u);
}

Requester::Step Requester::read() {
  const bool to_cqe = fits_cqe(wqe_.length);
  if (!gathered_) {
    if (wqe_.length > longest_message()) return error(CqeSyndrome::local_length_err, kVendorLocalLength);
    if (!to_cqe && wqe_.gather(nic_, self_, qp_, kMkeyLocalWrite, local_memory_) != KeyError::none)
      return error(CqeSyndrome::local_prot_err, prm::kVendorSyndromeLocalProtection);
    gathered_ = true;
  }
  fill_common(BthOperation::rdma_read_request);
  const std::uint64_t offset = std::min(qp_.wqe_offset, wqe_.length);
  // A READ that a budget or a loss cut short goes on as a request for the rest, at the PSN of its next response.
  packet_.psn = (qp_.msg_psn + static_cast<std::uint32_t>(offset >> log_mtu())) & kPsnMask;
  packet_.va = wqe_.raddr + offset;
  packet_.rkey = wqe_.rkey;
  packet_.length = static_cast<std::uint32_t>(wqe_.length - offset);
  packet_.payload_bytes = 0;
  // On a wire the rest of a response comes by itself: what asks for it here is no packet.
  const bool asked = local_.response_booked || (offset != 0 && !timed_out_);
  if (!asked && held_back(local_.way, 0)) return Step::wait;
  const PieceList none{};
  reply_.data.clear();
  const Answer answer = deliver({&none, 0, 0}, !asked);
  if (const Step step = take(answer, 0); step != Step::next) return step;
  qp_.next_psn = (qp_.msg_psn + npsn(wqe_.length)) & kPsnMask;
  const std::uint64_t left = packet_.length;
  const bool cut_wrong = reply_.log_mtu != log_mtu() && left > 1u << std::min<unsigned>(reply_.log_mtu, log_mtu());
  if (reply_.packet.payload_bytes != left || cut_wrong) return error(CqeSyndrome::bad_resp_err, kVendorBadResponse);
  std::uint64_t bytes = std::min(left, kLinkPayload);
  if (const std::uint32_t leaf = responder_leaf(); (leaf != 0) | local_.response_booked) [[unlikely]] {
    bytes = shaped_response(leaf, left);
    if (response_held_back(leaf, bytes)) return Step::wait;
  }
  if (engine_.trace) [[unlikely]]
    trace_answer(reply_.packet, {&reply_.data, 0, bytes}, {offset == 0, bytes == left});
  alignas(64) std::byte small[64]{};
  PieceList to_small;
  if (to_cqe) to_small.add(nullptr, reinterpret_cast<std::uint64_t>(small), bytes);
  switch (move(to_cqe ? to_small : local_memory_, offset, reply_.data, 0, bytes)) {
    case Moved::ok:
      break;
    case Moved::destination_fault:
      return error(CqeSyndrome::local_prot_err, prm::kVendorSyndromeLocalProtection);
    case Moved::gone:
      return lost();
    default:
      return error(CqeSyndrome::remote_op_err, kVendorRemoteOperation);
  }
  budget_bytes_ -= static_cast<std::int64_t>(bytes);
  if (bytes != left) {
    qp_.wqe_offset = offset + bytes;
    qp_.req_flags |= kReqStarted;
    return Step::again;
  }
  finish(wqe_.length, to_cqe ? small : nullptr);
  return Step::next;
}

Requester::Step Requester::local_operation() {
  if (wqe_.opcode == WqeOpcode::umr && !execute_umr(nic_, qp_, wqe_))
    return error(CqeSyndrome::mw_bind_err, kVendorBind);
  if (wqe_.opcode == WqeOpcode::local_inval && !execute_local_invalidate(nic_, qp_, wqe_.immediate))
    return error(CqeSyndrome::mw_bind_err, kVendorBind);
  finish();
  return Step::next;
}

void Requester::finish(std::uint64_t bytes, const std::byte* inline_data) {
  qp_.sq_head = static_cast<std::uint16_t>(qp_.sq_head + wqe_.blocks);
  qp_.sq_done = qp_.sq_head;
  qp_.ssn = (qp_.ssn + 1) & kPsnMask;
  qp_.una_psn = qp_.next_psn;
  qp_.wqe_offset = 0;
  const bool drain = (qp_.req_flags & kReqDrainEvent) != 0;
  qp_.req_flags = 0;
  if (wqe_.signaled) {
    CqeBuffer cqe;
    const auto v = cqe.view();
    auto format = prm::CqeFormat::no_inline;
    if (inline_data != nullptr) {
      format = bytes > 32 ? prm::CqeFormat::inline_64 : prm::CqeFormat::inline_32;
      if (bytes > 32)
        cqe.inline_data = inline_data;
      else
        std::memcpy(cqe.bytes, inline_data, 32);
    }
    v.set<prm::Cqe64::srqn_uidx>(qp_.user_index).set<prm::Cqe64::byte_cnt>(static_cast<std::uint32_t>(bytes));
    v.set<prm::Cqe64::send_wqe_opcode>(static_cast<std::uint32_t>(wqe_.opcode)).set<prm::Cqe64::qpn>(qp_.qpn);
    v.set<prm::Cqe64::wqe_counter>(wqe_.index);
    v.set<prm::Cqe64::opcode>(prm::CqeOpcode::req).set<prm::Cqe64::format>(format);
    if (!complete_.post(qp_.send_cq, cqe, wqe_.event)) [[unlikely]] {
      complete_.event(prm::EventType::wq_catas_error, qp_);
      engine_.fail(qp_, deferred_);
    }
  }
  if (drain) complete_.event(prm::EventType::sq_drained, qp_);
}

// ---- answers ----

Requester::Step Requester::take(Answer answer, std::uint32_t count) {
  if (answer == Answer::none) return lost();
  if (answer == Answer::source_fault) return error(CqeSyndrome::local_prot_err, prm::kVendorSyndromeLocalProtection);
  const std::uint8_t syndrome = reply_.packet.syndrome;
  const bool positive = (syndrome >> 5 & 3) == static_cast<unsigned>(prm::AethKind::ack);
  // What goes to another QP, or acknowledges other packets than these, is no answer.
  const std::uint32_t into = (reply_.packet.psn - packet_.psn) & kPsnMask;
  if (reply_.packet.dest_qpn != qp_.qpn || (positive && into != (count == 0 ? 0 : count - 1))) [[unlikely]]
    return lost();
  if (!positive) [[unlikely]]
    return take_nak(syndrome);
  qp_.next_psn = (qp_.next_psn + count) & kPsnMask;
  qp_.una_psn = qp_.next_psn;
  qp_.retries_left = qp_.retry_count;
  qp_.rnr_left = qp_.rnr_retry;
  return Step::next;
}

Requester::Step Requester::take_nak(std::uint8_t syndrome) {
  if ((syndrome >> 5 & 3) == static_cast<unsigned>(prm::AethKind::rnr_nak)) return rnr(syndrome & 0x1f);
  switch (static_cast<prm::NakCode>(syndrome & 0x1f)) {
    case prm::NakCode::psn_sequence_error:
      befell(&EventCounters::packet_seq_err);
      return lost();
    case prm::NakCode::invalid_request:
      befell(&EventCounters::req_remote_invalid_request);
      return error(CqeSyndrome::remote_inval_req_err, prm::kVendorSyndromeRemoteInvalidRequest);
    case prm::NakCode::remote_access_error:
      befell(&EventCounters::req_remote_access_errors);
      return error(CqeSyndrome::remote_access_err, prm::kVendorSyndromeRemoteAccess);
    default:
      return error(CqeSyndrome::remote_op_err, kVendorRemoteOperation);
  }
}

Requester::Step Requester::lost() {
  local_.peer = nullptr;  // look again: the peer may have come back as another process
  qp_.req_flags |= kReqStarted;
  if (qp_.ack_timeout == 0) {
    qp_.deadline_ns = ~0ull;  // no timeout: waits until the QP is modified
    qp_.timer = static_cast<std::uint8_t>(TimerKind::transport);
    return Step::wait;
  }
  engine_.arm_timer(qp_, std::uint64_t{4096} << (qp_.ack_timeout & 0x1f), TimerKind::transport);
  return Step::wait;
}

Requester::Step Requester::rnr(unsigned code) {
  qp_.req_flags |= kReqStarted;
  if (qp_.rnr_retry != 7) {
    if (qp_.rnr_left == 0) return error(CqeSyndrome::rnr_retry_exc_err, kVendorRnrRetry);
    --qp_.rnr_left;
  }
  befell(&EventCounters::rnr_nak_retry_err);
  engine_.arm_timer(qp_, std::uint64_t{kRnrMicroseconds[code]} * 1000, TimerKind::rnr);
  return Step::wait;
}

bool Requester::timer_due() { return qp_.deadline_ns != ~0ull && device_clock() >= qp_.deadline_ns; }

Requester::Step Requester::timer_expired() {
  qp_.deadline_ns = 0;
  resumed_ = static_cast<TimerKind>(qp_.timer) == TimerKind::pace;
  timed_out_ = static_cast<TimerKind>(qp_.timer) == TimerKind::transport;
  if (static_cast<TimerKind>(qp_.timer) != TimerKind::transport) return Step::again;
  if (qp_.retries_left != 0) {
    --qp_.retries_left;
    befell(&EventCounters::local_ack_timeout_err);
    return Step::again;
  }
  if (!have_wqe_ && !begin()) return Step::failed;
  return error(CqeSyndrome::transport_retry_exc_err, prm::kVendorSyndromeTransportRetry);
}

Requester::Step Requester::error(CqeSyndrome syndrome, std::uint8_t vendor) {
  CqeBuffer cqe;
  cqe.error()
      .set<prm::ErrCqe::srqn>(qp_.user_index)
      .set<prm::ErrCqe::vendor_err_synd>(vendor)
      .set<prm::ErrCqe::syndrome>(syndrome)
      .set<prm::ErrCqe::s_wqe_opcode>(static_cast<std::uint32_t>(wqe_.opcode))
      .set<prm::ErrCqe::qpn>(qp_.qpn)
      .set<prm::ErrCqe::wqe_counter>(wqe_.index)
      .set<prm::ErrCqe::opcode>(prm::CqeOpcode::req_err);
  befell(&EventCounters::req_cqe_error);
  complete_.post(qp_.send_cq, cqe, true);
  qp_.sq_head = static_cast<std::uint16_t>(qp_.sq_head + wqe_.blocks);
  qp_.sq_done = qp_.sq_head;
  qp_.wqe_offset = 0;
  qp_.req_flags = 0;
  qp_.deadline_ns = 0;
  have_wqe_ = false;
  if (is_reliable(qp_.type)) {
    engine_.fail(qp_, deferred_);
  } else {
    qp_.state.store(static_cast<std::uint32_t>(QpState::sqer), std::memory_order_release);
    engine_.flush_sq(qp_, deferred_);
  }
  return Step::failed;
}

// ---- the way out ----

Answer Requester::deliver(const Payload& payload, bool traced) {
  const bool there = engine_.resolve(qp_, local_);
  Wire wire;
  if (traced && local_.way != nullptr && local_.way->egress != 0) {
    wire = wire_of(*local_.way, payload.bytes);
    if (!passes(self_, RoceWay::out, local_.way->address, false, wire)) return Answer::none;
    passed_out(local_.way->egress, wire);
  }
  if (!there) return Answer::none;
  // Somebody who overwrites our lock lets two threads in here: what one has found the other may forget.
  Way* const found = local_.way;
  Peer* const peer = local_.peer;
  QpContext* const remote = local_.remote;
  if (found == nullptr || peer == nullptr || remote == nullptr || found->nic == nullptr) return Answer::none;
  Way& way = *found;
  packet_.address = &way.address;
  if (engine_.trace && traced) [[unlikely]]
    engine_.trace->packet(nic_.config().host, nic_.segment().device_index, egress_port(nic_.segment(), qp_), packet_, payload, 1u << log_mtu());
  if (wire.packets != 0 && !passes(*peer, RoceWay::in, way.address, false, wire)) return Answer::none;
  Responder responder(*way.nic, *peer, *remote, engine_.me(), deferred_);
  responder.arrives(way.port, wire);
  responder.cut_at(log_mtu());
  Answer answer = responder.receive(packet_, payload, reply_);
  if (answer == Answer::packet && !engine_.leads_back(way, *remote)) [[unlikely]]
    answer = Answer::none;
  if (answer == Answer::packet && wire.packets != 0 &&
      (!passes(*peer, RoceWay::out, way.address, true, reply_.wire) || !passes(self_, RoceWay::in, way.address, true, reply_.wire)))
    return Answer::none;
  if (answer == Answer::packet) passed_in(way.egress, reply_.wire);
  // Data of a READ is traced as it is taken.
  if (engine_.trace && answer == Answer::packet &&
      static_cast<BthOperation>(reply_.packet.opcode & 0x1f) != BthOperation::rdma_read_response_only) [[unlikely]]
    trace_answer(reply_.packet, {&reply_.data, 0, 0}, {});
  return answer;
}

void Requester::trace_answer(fabric::Packet packet, const Payload& payload, TracePart part) {
  const Way& way = *local_.way;
  fabric::Address back = way.address;
  std::swap(back.sgid, back.dgid);
  std::swap(back.smac, back.dmac);
  packet.address = &back;
  engine_.trace->packet(engine_.host_name(way.host), way.device, way.port, packet, payload, 1u << log_mtu(), part);
}

// Looks again after a time that grows with the time it has waited.
Requester::Step Requester::hold() {
  const std::uint64_t now = device_clock();
  if (local_.held_ns == 0) local_.held_ns = now;
  qp_.req_flags |= kReqStarted;
  engine_.arm_timer(qp_, std::clamp((now - local_.held_ns) / 2, kFirstLookNs, kLastLookNs), TimerKind::held);
  return Step::wait;
}

bool Requester::held_long_enough() const { return device_clock() - local_.held_ns >= kHoldNs; }

Requester::Step Requester::datagram() {
  if (wqe_.opcode == WqeOpcode::nop) {
    finish();
    return Step::next;
  }
  if (wqe_.length > 1u << (qp_.log_mtu >= 8 && qp_.log_mtu <= 12 ? qp_.log_mtu : 12))
    return error(CqeSyndrome::local_length_err, kVendorLocalLength);
  if (wqe_.gather(nic_, self_, qp_, kMkeyLocalRead, local_memory_) != KeyError::none)
    return error(CqeSyndrome::local_prot_err, prm::kVendorSyndromeLocalProtection);
  const prm::ConstView<prm::UdAdrsVector> av(wqe_.address_vector);
  Path path{};
  const auto rgid = av.bytes<prm::UdAdrsVector::rgid_rip>();
  const auto rmac = av.bytes<prm::UdAdrsVector::rmac>();
  std::memcpy(path.rgid, rgid.data(), rgid.size());
  std::memcpy(path.rmac, rmac.data(), rmac.size());
  path.port = qp_.port;
  path.sgid_index = static_cast<std::uint8_t>(av.get<prm::UdAdrsVector::src_addr_index>());
  path.hop_limit = static_cast<std::uint8_t>(av.get<prm::UdAdrsVector::hop_limit>());
  path.traffic_class = static_cast<std::uint8_t>(av.get<prm::UdAdrsVector::tclass>());
  path.flow_label = av.get<prm::UdAdrsVector::flow_label>();
  path.sl = static_cast<std::uint8_t>(av.get<prm::UdAdrsVector::sl_eth_prio>());
  path.udp_sport = static_cast<std::uint16_t>(av.get<prm::UdAdrsVector::rlid_udp_sport>());
  fill_common(wqe_.opcode == WqeOpcode::send_imm ? BthOperation::send_only_imm : BthOperation::send_only);
  packet_.dest_qpn = av.get<prm::UdAdrsVector::destination_qp_dct>();
  const std::uint32_t qkey = av.get<prm::UdAdrsVector::qkey>();
  packet_.qkey = (qkey & 0x80000000u) != 0 ? qp_.qkey : qkey;
  packet_.solicited = wqe_.solicited;
  packet_.immediate = wqe_.immediate;
  packet_.payload_bytes = static_cast<std::uint32_t>(wqe_.length);
  const Payload payload{&local_memory_, 0, wqe_.length};
  Way way;
  Answer answer = Answer::none;
  const bool addressed = engine_.address_from(qp_, path, way);
  const unsigned stat_rate = av.get<prm::UdAdrsVector::static_rate>();
  const bool held = local_.held_ns != 0;  // it left before
  if ((qp_.shaped | stat_rate) != 0 && !held && must_wait(&way, wqe_.length, stat_rate)) return Step::wait;
  const Wire wire = addressed ? wire_of(way, wqe_.length) : Wire{};
  if (addressed && (held || passes(self_, RoceWay::out, way.address, false, wire))) {
    packet_.address = &way.address;
    if (!held) {
      if (way.multicast)
        add(nic_.segment().ports[way.egress - 1u].counters.ib_multicast.out, wire.packets, wire.octets);
      else
        passed_out(way.egress, wire);
    }
    if (engine_.trace && !held) [[unlikely]]
      engine_.trace->packet(nic_.config().host, nic_.segment().device_index, egress_port(nic_.segment(), qp_), packet_, payload, 4096);
    if (way.multicast) {
      send_multicast(payload, way);
    } else if (way.nic != nullptr) {
      const auto found = way.nic->find_qp(packet_.dest_qpn);
      if (found && way.nic->alive(*found.peer) && (held || passes(*found.peer, RoceWay::in, way.address, false, wire))) {
        Responder responder(*way.nic, *found.peer, *found.context, engine_.me(), deferred_);
        responder.arrives(way.port, wire);
        if (held && held_long_enough()) responder.drop_if_unwanted();
        answer = responder.receive(packet_, payload, reply_);
      }
    }
  }
  if (answer == Answer::held) return hold();
  local_.held_ns = 0;
  if (answer == Answer::source_fault)
    return error(CqeSyndrome::local_prot_err, prm::kVendorSyndromeLocalProtection);
  qp_.next_psn = (qp_.next_psn + 1) & kPsnMask;
  budget_bytes_ -= static_cast<std::int64_t>(wqe_.length);
  finish();
  return Step::next;
}

// Every member of the group gets a copy, on every host; the sending QP too, unless it was created not to.
void Requester::send_multicast(const Payload& payload, const Way& way) {
  const Wire wire = wire_of(way, payload.bytes);
  const auto deliver_on = [&](NicMap& nic) {
    NicSegment& segment = nic.segment();
    const unsigned top = std::min<unsigned>(segment.multicast_top.load(), kMulticastGroups);
    bool came = false;
    for (unsigned g = 0; g < top; ++g) {
      const MulticastGroup& group = segment.multicast[g];
      const std::uint32_t count = std::min<std::uint32_t>(group.members.load(std::memory_order_acquire), kMulticastMembers);
      if (count == 0 || std::memcmp(group.gid, way.address.dgid.data(), sizeof group.gid) != 0) continue;
      for (std::uint32_t i = 0; i < count; ++i) {
        const auto found = nic.find_qp(group.qpn[i] & 0xffffff);
        if (!found || (found.context == &qp_ && qp_.block_lb_mc) || !nic.alive(*found.peer)) continue;
        if (!came) add(segment.ports[0].counters.ib_multicast.in, 1, wire.octets);
        came = true;
        if (!passes(*found.peer, RoceWay::in, way.address, false, wire)) continue;
        packet_.dest_qpn = found.context->qpn;
        Responder(nic, *found.peer, *found.context, engine_.me(), deferred_).receive(packet_, payload, reply_);
      }
    }
  };
  engine_.for_each_nic(deliver_on);
}

}  // namespace verbena::device
