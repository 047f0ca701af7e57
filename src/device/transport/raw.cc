// Ethernet frames of raw send queues. They leave by the port; nothing on the fabric receives frames yet.
#include <array>

#include "device/memory/transfer.h"
#include "device/transport/requester.h"
#include "device/transport/vendor.h"

namespace verbena::device {

namespace {
constexpr std::size_t kFrameMax = 10240, kFrameMin = 14;
}

Requester::Step Requester::frame() {
  if (wqe_.opcode == prm::WqeOpcode::nop) {
    finish();
    return Step::next;
  }
  if (wqe_.length > kFrameMax || wqe_.length < kFrameMin)
    return error(prm::CqeSyndrome::local_length_err, kVendorLocalLength);
  if (wqe_.gather(nic_, self_, qp_, kMkeyLocalRead, local_memory_) != KeyError::none)
    return error(prm::CqeSyndrome::local_prot_err, prm::kVendorSyndromeLocalProtection);
  if (held_back(nullptr, wqe_.length)) return Step::wait;
  std::array<std::byte, kFrameMax> bytes;
  PieceList to;
  to.add(nullptr, reinterpret_cast<std::uint64_t>(bytes.data()), wqe_.length);
  if (move(to, 0, local_memory_, 0, wqe_.length) != Moved::ok)
    return error(prm::CqeSyndrome::local_prot_err, prm::kVendorSyndromeLocalProtection);
  if (engine_.trace)
    engine_.trace->frame(nic_.config().host, nic_.segment().device_index, egress_port(nic_.segment(), qp_),
                         std::span(bytes).first(wqe_.length));
  budget_bytes_ -= static_cast<std::int64_t>(wqe_.length);
  finish();
  return Step::next;
}

}  // namespace verbena::device
