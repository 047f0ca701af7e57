// Packets that may not leave yet: by the rate of the QP itself, by its scheduling elements, by those of a responder.
#include <algorithm>

#include "device/transport/clock.h"
#include "device/transport/requester.h"
#include "fabric/frame.h"
#include "prm/qp.h"

namespace verbena::device {

namespace {
constexpr std::uint64_t kLinkPayload = 256 << 10;
}  // namespace

// As much as goes at once where packets need not be what a wire has: whole packets of the path MTU, one at least.
std::uint64_t Requester::shaped_payload(std::uint64_t quantum) const {
  const std::uint64_t mtu = std::uint64_t{1} << log_mtu();
  return std::clamp(quantum & ~(mtu - 1), mtu, kLinkPayload);
}

std::uint64_t Requester::bytes_on_wire(const Way* way, std::uint8_t opcode, std::uint64_t payload) const {
  if (qp_.type == QpType::raw) return payload;
  const auto carrier = way != nullptr ? way->address.carrier : fabric::Carrier::roce_v2_ipv4;
  return fabric::message_bytes(carrier, opcode, payload, npsn(payload));
}

// The slower of its entry of the packet pacing table and the static rate of the path.
Rate Requester::own_rate(unsigned stat_rate) const {
  Rate rate;
  if ((qp_.shaped & kShapedRate) != 0) rate = engine_.shaping.rate(qp_.rate_index);
  const std::uint64_t mbps = prm::kStatRateMbps[stat_rate & 15];
  const std::uint64_t path = mbps != 0 ? kPsPerByteAtOneMbps / mbps : 0;
  return path > rate.ps_per_byte ? Rate{path, 0} : rate;
}

bool Requester::must_wait(const Way* way, std::uint64_t payload, unsigned stat_rate) {
  if (way == nullptr && qp_.type != QpType::raw && engine_.resolve(qp_, local_)) way = local_.way;
  const std::uint64_t now = device_clock(), bytes = bytes_on_wire(way, packet_.opcode, payload);
  const Rate own = own_rate(stat_rate);
  if (own.ps_per_byte != 0 && qp_.pace_ns > now && qp_.pace_ns <= now + kFarthestNs) {
    engine_.arm_timer(qp_, qp_.pace_ns - now, TimerKind::pace);
    return true;
  }
  if ((qp_.shaped & kShapedLeaf) != 0) {
    if (local_.turn == Turn::granted) {
      local_.turn = Turn::none;
    } else if (!engine_.shaping.ask(nic_.index_of(qp_), qp_.leaf, bytes, now)) {
      local_.turn = Turn::waiting;
      qp_.deadline_ns = ~0ull;
      qp_.timer = static_cast<std::uint8_t>(TimerKind::pace);
      engine_.arm_turns();
      return true;
    }
  }
  if (own.ps_per_byte != 0) {
    const std::uint64_t credit = resumed_ ? kCatchUpNs : own.cost_ns(own.burst_bytes);
    qp_.pace_ns = std::max(qp_.pace_ns <= now ? qp_.pace_ns : 0, now - std::min(now, credit)) + own.cost_ns(bytes);
  }
  return false;
}

std::uint64_t Requester::shaped_quantum() const {
  const std::uint64_t tree = (qp_.shaped & kShapedLeaf) != 0 ? engine_.shaping.quantum(qp_.leaf) : ~0ull;
  return std::min(own_rate(qp_.path.stat_rate).quantum(), tree);
}

std::uint64_t Requester::shaped_response(std::uint32_t leaf, std::uint64_t left) const {
  const Peer* peer = local_.peer;
  if (leaf == 0 || peer == nullptr) return std::min(left, kLinkPayload);
  if (engine_.trace != nullptr) return std::min(left, std::uint64_t{1} << log_mtu());
  return std::min(left, shaped_payload(response_quantum(*peer->slice, leaf)));
}

bool Requester::response_held_back(std::uint32_t leaf, std::uint64_t bytes) {
  Peer* const peer = local_.peer;
  if (leaf == 0 || peer == nullptr || local_.response_booked) {
    local_.response_booked = false;
    return false;
  }
  const std::uint64_t now = device_clock();
  const std::uint8_t opcode = prm::bth_opcode(prm::BthService::rc, prm::BthOperation::rdma_read_response_middle);
  const std::uint64_t begin = reserve_response(*peer->slice, leaf, bytes_on_wire(local_.way, opcode, bytes), now);
  if (begin == 0) return false;
  local_.response_booked = true;
  qp_.req_flags |= kReqStarted;
  engine_.arm_timer(qp_, begin - now, TimerKind::pace);
  return true;
}

}  // namespace verbena::device
