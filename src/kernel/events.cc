#include "kernel/events.h"

#include <rdma/ib_user_verbs.h>
#include <unistd.h>

#include <algorithm>
#include <utility>

namespace verbena::kernel {

void EventRegistry::add(EventSource source, std::uint32_t number, EventTarget target) {
  std::lock_guard guard(lock_);
  of(source)[number] = std::move(target);
}

EventCounts EventRegistry::remove(EventSource source, std::uint32_t number) {
  std::lock_guard guard(lock_);
  Targets& targets = of(source);
  auto it = targets.find(number);
  if (it == targets.end()) return {};
  EventTarget& target = it->second;
  EventCounts counts{target.completions_sent, target.async_sent};
  if (target.completions && counts.completions) counts.completions -= target.completions->retract(target.user_handle);
  if (target.async && counts.async) counts.async -= target.async->retract(target.user_handle);
  targets.erase(it);
  return counts;
}

void EventRegistry::add_listener(std::shared_ptr<EventPipe> async) {
  std::lock_guard guard(lock_);
  listeners_.push_back(std::move(async));
}

void EventRegistry::remove_listener(const std::shared_ptr<EventPipe>& async) {
  std::lock_guard guard(lock_);
  std::erase(listeners_, async);
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
    const std::uint64_t where = key(s.event, s.affiliated, s.number);
    subscriptions_.emplace(where, Subscribed{next_subscription_++, std::move(s)});
  }
  has_subscriptions_.store(!subscriptions_.empty(), std::memory_order_release);
}

void EventRegistry::unsubscribe_object(const void* owner) {
  if (!has_subscriptions_.load(std::memory_order_acquire)) return;
  std::lock_guard guard(lock_);
  std::erase_if(subscriptions_, [owner](const auto& entry) { return entry.second.what.owner == owner; });
  has_subscriptions_.store(!subscriptions_.empty(), std::memory_order_release);
}

void EventRegistry::unsubscribe_channel(const std::shared_ptr<DevxEventChannel>& channel) {
  std::lock_guard guard(lock_);
  std::erase_if(subscriptions_, [&](const auto& entry) { return entry.second.what.channel == channel; });
  has_subscriptions_.store(!subscriptions_.empty(), std::memory_order_release);
}

void EventRegistry::devx_event(std::uint16_t event, bool affiliated, EventSource source, std::uint32_t number,
                               std::span<const std::byte, DevxEventChannel::kEqeBytes> eqe) {
  if (!has_subscriptions_.load(std::memory_order_acquire)) return;
  std::lock_guard guard(lock_);
  const auto [first, last] = subscriptions_.equal_range(key(event, affiliated, affiliated ? number : 0));
  for (auto it = first; it != last; ++it) {
    const auto& [id, s] = it->second;
    if (affiliated && s.source != source) continue;
    if (s.eventfd < 0) {
      s.channel->deliver(id, s.cookie, eqe);
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
  auto it = of(source).find(number);
  if (it == of(source).end() || !it->second.async) return;
  ib_uverbs_async_event_desc record{it->second.user_handle, static_cast<std::uint32_t>(event), 0};
  ++it->second.async_sent;
  it->second.async->post(&record);
}

void EventRegistry::device_event(Event event, std::uint32_t port) {
  std::lock_guard guard(lock_);
  ib_uverbs_async_event_desc record{port, static_cast<std::uint32_t>(event), 0};
  for (const auto& listener : listeners_) listener->post(&record);
}

}  // namespace verbena::kernel
