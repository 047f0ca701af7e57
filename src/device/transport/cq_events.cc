// Events that completion queues owe: whoever writes a CQE says when its event is due, and the CQ's owner sees to it that it
// comes, whatever becomes of the writer.
#include <algorithm>

#include "device/transport/attention.h"
#include "device/transport/clock.h"
#include "device/transport/impl.h"

namespace verbena::device {

namespace {
constexpr std::uint64_t kNever = ~0ull;
}

bool Engine::Impl::owes_event() const {
  return (slice().header.pending.load(std::memory_order_acquire) & kPendingCq) != 0 ||
         next_event_.load(std::memory_order_relaxed) <= device_clock();
}

void Engine::Impl::look_at_cq(std::uint32_t index) {
  std::uint64_t at;
  {
    Deferred deferred(&nic_.self());
    at = Completer(nic_.self(), me(), deferred).serve(slice().cqs[index]);
  }
  if (at == 0) return;
  bool sooner;
  {
    std::lock_guard guard(mutex_);
    std::uint64_t& listed = cq_looks_.try_emplace(index, kNever).first->second;
    if (listed <= at) return;
    listed = at;
    sooner = list_timer(cq_timers_, next_event_, {at, index, 0});
  }
  if (sooner) wake_own_helper(nic_.self());
}

std::size_t Engine::Impl::cq_timer_count() {
  std::lock_guard guard(mutex_);
  return cq_looks_.size();
}

void Engine::Impl::attend_cqs() {
  clear_pending(kPendingCq);
  take_attention(cq_attention(slice()), [this](std::uint32_t index) { look_at_cq(index); });
}

void Engine::Impl::run_cq_timers() {
  const std::uint64_t now = device_clock();
  if (now < next_event_.load(std::memory_order_relaxed)) return;
  std::vector<std::uint32_t> due;
  {
    std::lock_guard guard(mutex_);
    for (; !cq_timers_.empty() && cq_timers_.top().at <= now; cq_timers_.pop()) {
      const auto look = cq_looks_.find(cq_timers_.top().index);
      if (look == cq_looks_.end() || look->second != cq_timers_.top().at) continue;  // it was to be earlier
      due.push_back(look->first);
      cq_looks_.erase(look);
    }
    next_event_.store(cq_timers_.empty() ? kNever : cq_timers_.top().at);
    if (timers_.empty() && cq_timers_.empty()) clear_pending(kPendingTimer);
  }
  for (const std::uint32_t index : due) look_at_cq(index);
}

}  // namespace verbena::device
