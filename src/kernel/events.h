// From event queue entries to event records: which program wants to know about which object.
//
// The registry is a Node's. It has its own lock, because events arrive in any thread that runs the device, also in
// one that is inside a request and holds a File's lock. Nothing here calls the device.
#pragma once

#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <span>
#include <unordered_map>
#include <vector>

#include "kernel/devx_channel.h"
#include "kernel/event_pipe.h"
#include "kernel/ib.h"

namespace verbena::kernel {

// Where the events of one object go.
struct EventTarget {
  std::shared_ptr<EventPipe> completions;  // CQ only; null: no channel
  std::shared_ptr<EventPipe> async;        // null: the context has no asynchronous event descriptor
  std::uint64_t user_handle = 0;
  std::uint32_t completions_sent = 0;
  std::uint32_t async_sent = 0;
};

// What a destroy command reports: events the program has read and must acknowledge.
struct EventCounts {
  std::uint32_t completions = 0;
  std::uint32_t async = 0;
};

enum class EventSource : std::uint8_t { cq, qp, srq, wq };

// A DEVX subscription: one event of one object (or of the device), and where it goes.
struct DevxSubscription {
  DevxSubscription() = default;
  DevxSubscription(DevxSubscription&& other) noexcept;
  DevxSubscription& operator=(DevxSubscription&&) = delete;
  ~DevxSubscription();

  std::uint16_t event = 0;  // prm::EventType
  bool affiliated = false;
  EventSource source = EventSource::cq;  // of an affiliated one
  std::uint32_t number = 0;
  const void* owner = nullptr;  // the DEVX object; its end is the subscription's
  std::shared_ptr<DevxEventChannel> channel;
  int eventfd = -1;  // ours; if there is one, it is written instead of the channel
  std::uint64_t cookie = 0;
};

class EventRegistry {
 public:
  // Again for every handle that a shared queue pair has.
  void add(EventSource source, std::uint32_t number, EventTarget target);
  // Forgets the object and takes back what was not read. Of an object with several handles: this one.
  EventCounts remove(EventSource source, std::uint32_t number, const std::uint64_t* user_handle = nullptr);

  void add_listener(std::shared_ptr<EventPipe> async);
  void remove_listener(const std::shared_ptr<EventPipe>& async);

  void subscribe(std::vector<DevxSubscription> subscriptions);
  void unsubscribe_object(const void* owner);
  void unsubscribe_channel(const std::shared_ptr<DevxEventChannel>& channel);
  // An entry of an event queue, before anybody looks into it.
  void devx_event(std::uint16_t event, bool affiliated, EventSource source, std::uint32_t number,
                  std::span<const std::byte, DevxEventChannel::kEqeBytes> eqe);

  void completion(std::uint32_t cqn);
  void object_event(EventSource source, std::uint32_t number, Event event);
  // A port or device event: to every context.
  void device_event(Event event, std::uint32_t port);

 private:
  using Targets = std::unordered_multimap<std::uint32_t, EventTarget>;
  Targets& of(EventSource source) { return targets_[static_cast<unsigned>(source)]; }

  std::mutex lock_;
  Targets targets_[4];
  std::set<std::shared_ptr<EventPipe>> listeners_;
  // By kind of event, number of the object and age: an event finds its subscribers at once.
  using SubscriptionKey = std::pair<std::uint64_t, std::uint64_t>;
  static std::uint64_t key(std::uint16_t event, bool affiliated, std::uint32_t number) {
    return std::uint64_t{event} << 40 | std::uint64_t{affiliated} << 32 | number;
  }
  void unsubscribe(const void* party);
  std::map<SubscriptionKey, DevxSubscription> subscriptions_;
  std::set<std::pair<const void*, SubscriptionKey>> of_party_;  // those of an owner or a channel
  std::uint64_t next_subscription_ = 1;
  std::atomic<bool> has_subscriptions_{false};
};

}  // namespace verbena::kernel
