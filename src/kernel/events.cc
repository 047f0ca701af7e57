#include "kernel/events.h"

#include <rdma/ib_user_verbs.h>

#include <algorithm>

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
