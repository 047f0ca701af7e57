// Ethernet frames of raw send queues, from the queue to whoever steering says.
//
// Hosts hang on one switch: a frame goes to the port that has its destination address, to all others if no port has it or it
// is for a group. A NIC's own frames are offered to its own tables as well; what is steered nowhere is lost, as on a wire.
#include <array>
#include <cstring>

#include "device/memory/transfer.h"
#include "device/transport/requester.h"
#include "device/transport/responder.h"
#include "device/transport/steering.h"
#include "device/transport/vendor.h"
#include "prm/flow.h"
#include "prm/wire.h"

namespace verbena::device {

namespace {
constexpr std::size_t kFrameMax = 10240, kFrameMin = 14, kAddresses = 12;

bool has_address(const NicSegment& segment, const std::byte* mac) {
  for (unsigned port = 0; port < std::min<unsigned>(segment.ports_count, kMaxPorts); ++port)
    if (std::memcmp(segment.ports[port].mac, mac, 6) == 0) return true;
  return false;
}
}  // namespace

Requester::Step Requester::frame() {
  if (wqe_.opcode == prm::WqeOpcode::nop) {
    finish();
    return Step::next;
  }
  if (wqe_.length > kFrameMax || wqe_.length < kFrameMin)
    return error(prm::CqeSyndrome::local_length_err, kVendorLocalLength);
  if (wqe_.gather(nic_, self_, qp_, kMkeyLocalRead, local_memory_) != KeyError::none)
    return error(prm::CqeSyndrome::local_prot_err, prm::kVendorSyndromeLocalProtection);
  const bool held = local_.held_ns != 0;  // it left before
  if (!held && held_back(nullptr, wqe_.length)) return Step::wait;
  std::array<std::byte, kFrameMax> bytes;
  PieceList to;
  to.add(nullptr, reinterpret_cast<std::uint64_t>(bytes.data()), wqe_.length);
  if (move(to, 0, local_memory_, 0, wqe_.length) != Moved::ok)
    return error(prm::CqeSyndrome::local_prot_err, prm::kVendorSyndromeLocalProtection);
  const std::span<std::byte> whole = std::span(bytes).first(wqe_.length);
  if (wqe_.checksums)
    fill_checksums(whole, wqe_.checksums & prm::EthCsFlag::l3, wqe_.checksums & prm::EthCsFlag::l4);
  const FrameHeaders headers = read_headers(whole);
  if (!held) {
    const unsigned port = egress_port(nic_.segment(), qp_);
    if (engine_.trace) engine_.trace->frame(nic_.config().host, nic_.segment().device_index, port, whole);
    passed_out(port, {1, whole.size()});
  }
  if ((held ? offer_again(whole, headers) : distribute(whole, headers)) == Answer::held) return hold();
  local_.held_ns = 0;
  budget_bytes_ -= static_cast<std::int64_t>(wqe_.length);
  finish();
  return Step::next;
}

// `held`: one receiver is late, and it alone is to be offered the frame again (local_.held_frame).
Answer Requester::distribute(std::span<const std::byte> frame, const FrameHeaders& headers) {
  Answer answer = Answer::none;
  const NicMap* addressed = nullptr;
  if (!headers.group)
    engine_.for_each_nic([&](NicMap& nic) {
      if (!addressed && has_address(nic.segment(), frame.data())) addressed = &nic;
    });
  engine_.for_each_nic([&](NicMap& nic) {
    if (&nic != &nic_ && addressed && addressed != &nic) return;
    if (offer(nic, frame, headers) == Answer::held) answer = Answer::held;
  });
  return answer;
}

Answer Requester::offer_again(std::span<const std::byte> frame, const FrameHeaders& headers) {
  const auto& held = local_.held_frame;
  if (!held.nic->alive(*held.peer)) return Answer::none;
  QpContext& rq = held.peer->slice->qps[held.target.rq];
  if (rq.qpn != held.rqn) return Answer::none;
  Responder responder(*held.nic, *held.peer, rq, engine_.me(), deferred_);
  if (held_long_enough()) responder.drop_if_unwanted();
  return responder.receive_frame(frame, headers, held.target);
}

Answer Requester::offer(NicMap& nic, std::span<const std::byte> frame, const FrameHeaders& headers) {
  NicSegment& segment = nic.segment();
  Answer answer = Answer::none;
  for (unsigned word = 0; word < kMaxSlots / 64; ++word)
    for (std::uint64_t bits = segment.frame_slots[word].load(std::memory_order_acquire); bits != 0; bits &= bits - 1) {
      Peer* const peer = nic.peer(word * 64 + static_cast<unsigned>(std::countr_zero(bits)));
      if (peer == nullptr || !nic.alive(*peer)) continue;
      std::array<FrameTarget, kFrameTargets> targets;
      const unsigned count = steer(*peer, headers, {self_.slice, qp_.transport_domain}, frame.size(), engine_.me(), targets);
      for (unsigned i = 0; i < count; ++i) {
        QpContext& rq = peer->slice->qps[targets[i].rq];
        Responder responder(nic, *peer, rq, engine_.me(), deferred_);
        // What is for a group waits for nobody.
        if (headers.group || answer == Answer::held) responder.drop_if_unwanted();
        if (responder.receive_frame(frame, headers, targets[i]) != Answer::held) continue;
        local_.held_frame = {&nic, peer, rq.qpn, targets[i]};
        answer = Answer::held;
      }
    }
  return answer;
}

// Without a receive WQE a frame is lost, in the end: as a datagram, it is held while the receiver is only late.
Answer Responder::receive_frame(std::span<const std::byte> frame, const FrameHeaders& headers, const FrameTarget& target) {
  SharedGuard guard(qp_.rx_lock, me_);
  if (!Nic::in_use(qp_) || qp_.type != QpType::raw_rq) return Answer::none;
  if (static_cast<QpState>(qp_.state.load(std::memory_order_acquire)) != QpState::rts) return Answer::none;
  ReceiveQueue queue(owner_, qp_, me_, complete_);
  ReceiveWqe wqe;
  const bool posted = queue.current(wqe);
  const Answer unposted = posted ? Answer::none : nothing_posted();
  if (unposted == Answer::held) return unposted;
  arrives(1, {1, frame.size()});
  pass_in();
  if (!posted) return Answer::none;
  const bool strip = headers.vlan && qp_.keep_vlan == 0;
  const std::size_t skip = strip ? std::size_t{prm::VlanTag::size} : 0;
  PieceList pieces;
  pieces.add(nullptr, reinterpret_cast<std::uint64_t>(frame.data()), kAddresses);
  pieces.add(nullptr, reinterpret_cast<std::uint64_t>(frame.data() + kAddresses + skip), frame.size() - kAddresses - skip);
  const Payload payload{&pieces, 0, frame.size() - skip};
  switch (scatter(wqe, 0, payload)) {
    case Scatter::ok:
      break;
    case Scatter::too_long:
      receive_error(wqe, prm::CqeSyndrome::local_length_err, kVendorLocalLength);
      to_error();
      return Answer::none;
    case Scatter::protection:
      receive_error(wqe, prm::CqeSyndrome::local_prot_err, prm::kVendorSyndromeLocalProtection);
      to_error();
      return Answer::none;
    default:
      return Answer::none;
  }
  using Cqe = prm::Cqe64;
  CqeBuffer cqe;
  const auto v = cqe.view();
  v.set<Cqe::rss_hash_result>(target.hash.value).set<Cqe::rss_hash_type>(target.hash.type);
  v.set<Cqe::l2_ok>(1).set<Cqe::l3_ok>(headers.l3_ok).set<Cqe::l4_ok>(headers.l4_ok);
  v.set<Cqe::l3_hdr_type>(headers.ipv4   ? prm::CqeL3Header::ipv4
                          : headers.ipv6 ? prm::CqeL3Header::ipv6
                                         : prm::CqeL3Header::none);
  // 0: neither, 1: TCP without ACK, 2: UDP, 3: TCP with ACK and no data, 4: with both
  v.set<Cqe::l4_hdr_type>(headers.udp ? 2 : !headers.tcp ? 0 : !headers.tcp_ack ? 1 : headers.tcp_data ? 4 : 3);
  v.set<Cqe::ip_frag>(headers.fragment).set<Cqe::cv>(strip).set<Cqe::vlan_info>(strip ? headers.tci : 0);
  v.set<Cqe::srqn_uidx>(qp_.user_index).set<Cqe::byte_cnt>(static_cast<std::uint32_t>(payload.bytes));
  v.set<Cqe::qpn>(target.tag);  // of a frame: the flow's tag
  v.set<Cqe::wqe_counter>(wqe.index).set<Cqe::opcode>(prm::CqeOpcode::resp_send);
  complete_.post(qp_.recv_cq, cqe, false);
  queue.release();
  return Answer::none;
}

}  // namespace verbena::device
