// Event moderation: how many CQEs, or how long, an armed CQ waits before it tells of them (PRM, Completion Queue Context:
// cq_max_count, cq_period, cq_period_mode; 0 in either of the first two: no moderation).
//
// Of an armed CQ the event comes when cq_max_count CQEs have been written since the last event, or when cq_period has
// passed, counted from the last event (START_FROM_EQE) or from the newest CQE (START_FROM_CQE), whichever is first. The
// period alone raises nothing: there is a CQE to tell of. So the first CQE after a long pause is told of at once in the one
// mode and waits a period in the other, as the drivers' descriptions of them have it.
#include <algorithm>

#include "device/transport/attention.h"
#include "device/transport/clock.h"
#include "device/transport/completion.h"

namespace verbena::device {

namespace {
constexpr std::uint64_t kPeriodUnitNs = 1000;
// No period is longer (12 bits of microseconds).
constexpr std::uint64_t kLongestNs = 4096 * kPeriodUnitNs;
}  // namespace

bool Completer::post_special(CqContext& cq, CqeBuffer& cqe, bool solicited) {
  return (cq.features & kCqCompressed) != 0 ? gather(cq, cqe, solicited) : post_whole(cq, cqe, solicited);
}

bool Completer::post_whole(CqContext& cq, CqeBuffer& cqe, bool solicited) {
  if (!append(cq, cqe)) return false;
  cq.last_cqe_ns = cqe.time;
  announce(cq, solicited);
  return true;
}

void Completer::announce(CqContext& cq, bool solicited) {
  if (solicited) cq.last_solicited_pi = cq.pi;
  const std::uint32_t arm = cq.arm.load(std::memory_order_relaxed);
  if (arm == 0) return;
  if (arm == kCqArmed || solicited || cq.event_due_ns != 0) owe(cq, solicited);
}

void Completer::owe(CqContext& cq, bool solicited) {
  const std::uint8_t features = cq.features;
  if ((features & kCqModerated) == 0 || cq.pi - cq.last_notified_pi >= cq.max_count ||
      (solicited && (features & kCqSolicitedBreaks) != 0))
    return fire(cq);
  const std::uint64_t now = device_clock(), period = cq.period_us * kPeriodUnitNs;
  const std::uint64_t begin = (features & kCqPeriodFromCqe) != 0 ? cq.last_cqe_ns : cq.last_event_ns;
  if (begin + period <= now) return fire(cq);
  cq.event_due_ns = std::min(begin, now) + period;
  if (cq.due_asked != 0) return;  // the owner looks again when the time has come that it knows of: not too late
  set_attention(*owner_.slice, cq_attention(*owner_.slice), index_of(cq));
  cq.due_asked = 1;
  deferred_.wake(owner_);
}

void Completer::moderate(CqContext& cq) {
  SharedGuard guard(cq.lock, me_);
  if (!Nic::in_use(cq)) return;
  if (cq.gathered != 0) close(cq);
  if (cq.event_due_ns == 0) return;
  cq.due_asked = 0;  // the new period may end before the old one
  owe(cq, false);
}

std::uint64_t Completer::serve(CqContext& cq) {
  SharedGuard guard(cq.lock, me_);
  if (!Nic::in_use(cq)) return 0;
  if (cq.gathered != 0) close(cq);
  const std::uint64_t now = device_clock();
  if (cq.event_due_ns != 0 && cq.event_due_ns <= now) fire(cq);
  cq.due_asked = cq.event_due_ns != 0;
  return std::min(cq.event_due_ns, now + kLongestNs);
}

}  // namespace verbena::device
