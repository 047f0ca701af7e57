#include "kernel/events.h"

#include <rdma/ib_user_verbs.h>
#include <unistd.h>

#include <utility>

namespace verbena::kernel {

void EventRegistry::add(EventSource source, std::uint32_t number, EventTarget target) {
  std::lock_guard guard(lock_);
  of(source).emplace(number, std::move(target));
}

EventCounts EventRegistry::remove(EventSource source, std::uint32_t number, const std::uint64_t* user_handle) {
  std::lock_guard guard(lock_);
  Targets& targets = of(source);
  auto [it, end] = targets.equal_range(number);
  while (it != end && user_handle && it->second.user_handle != *user_handle) ++it;
  if (it == end) return {};
  EventTarget& target = it->second;
  EventCounts counts{target.completions_sent, target.async_sent};
  if (target.completions && counts.completions) counts.completions -= target.completions->retract(target.user_handle);
  if (target.async && counts.async) counts.async -= target.async->retract(target.user_handle);
  targets.erase(it);
  return counts;
}

void EventRegistry::add_listener(std::shared_ptr<EventPipe> async) {
  std::lock_guard guard(lock_);
  listeners_.insert(std::move(async));
}

void EventRegistry::remove_listener(const std::shared_ptr<EventPipe>& async) {
  std::lock_guard guard(lock_);
  listeners_.erase(async);
}

DevxSubscription::DevxSubscription(DevxSubscription&& other) noexcept
    : event(other.event),
      affiliated(other.affiliated),
      source(other.source),
      number(other.number),
      owner(other.owner),
      channel(std::move(other.channel)),
      eventfd(std::exchange(other.eventfd, -1)),
      cookie(other.cookie) {}

DevxSubscription::~DevxSubscription() {
  if (eventfd >= 0) ::close(eventfd);
}

void EventRegistry::subscribe(std::vector<DevxSubscription> subscriptions) {
  std::lock_guard guard(lock_);
  for (DevxSubscription& s : subscriptions) {
    const SubscriptionKey where{key(s.event, s.affiliated, s.number), next_subscription_++};
    for (const void* party : {s.owner, static_cast<const void*>(s.channel.get())}) of_party_.emplace(party, where);
    subscriptions_.emplace(where, std::move(s));
  }
  has_subscriptions_.store(!subscriptions_.empty(), std::memory_order_release);
}

void EventRegistry::unsubscribe_object(const void* owner) {
  if (!has_subscriptions_.load(std::memory_order_acquire)) return;
  std::lock_guard guard(lock_);
  unsubscribe(owner);
}

void EventRegistry::unsubscribe_channel(const std::shared_ptr<DevxEventChannel>& channel) {
  std::lock_guard guard(lock_);
  unsubscribe(channel.get());
}

void EventRegistry::unsubscribe(const void* party) {
  for (auto it = of_party_.lower_bound({party, {}}); it != of_party_.end() && it->first == party;) {
    const auto s = subscriptions_.find(it->second);
    const void* other = s->second.owner == party ? s->second.channel.get() : s->second.owner;
    of_party_.erase({other, it->second});
    subscriptions_.erase(s);
    it = of_party_.erase(it);
  }
  has_subscriptions_.store(!subscriptions_.empty(), std::memory_order_release);
}

void EventRegistry::devx_event(std::uint16_t event, bool affiliated, EventSource source, std::uint32_t number,
                               std::span<const std::byte, DevxEventChannel::kEqeBytes> eqe) {
  if (!has_subscriptions_.load(std::memory_order_acquire)) return;
  std::lock_guard guard(lock_);
  const std::uint64_t which = key(event, affiliated, affiliated ? number : 0);
  for (auto it = subscriptions_.lower_bound({which, 0}); it != subscriptions_.end() && it->first.first == which; ++it) {
    const DevxSubscription& s = it->second;
    if (affiliated && s.source != source) continue;
    if (s.eventfd < 0) {
      s.channel->deliver(it->first.second, s.cookie, eqe);
      continue;
    }
    const std::uint64_t one = 1;
    // A counter that is full already says that there are events.
    [[maybe_unused]] const auto written = ::write(s.eventfd, &one, sizeof one);
  }
}

void EventRegistry::completion(std::uint32_t cqn) {
  std::lock_guard guard(lock_);
  auto it = of(EventSource::cq).find(cqn);
  if (it == of(EventSource::cq).end() || !it->second.completions) return;
  ib_uverbs_comp_event_desc record{it->second.user_handle};
  ++it->second.completions_sent;
  it->second.completions->post(&record);
}

void EventRegistry::object_event(EventSource source, std::uint32_t number, Event event) {
  std::lock_guard guard(lock_);
  for (auto [it, end] = of(source).equal_range(number); it != end; ++it) {
    EventTarget& target = it->second;
    if (!target.async) continue;
    ib_uverbs_async_event_desc record{target.user_handle, static_cast<std::uint32_t>(event), 0};
    ++target.async_sent;
    target.async->post(&record);
  }
}

void EventRegistry::device_event(Event event, std::uint32_t port) {
  std::lock_guard guard(lock_);
  ib_uverbs_async_event_desc record{port, static_cast<std::uint32_t>(event), 0};
  for (const auto& listener : listeners_) listener->post(&record);
}

}  // namespace verbena::kernel
