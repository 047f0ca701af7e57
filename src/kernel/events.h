// From event queue entries to event records: which program wants to know about which object.
//
// The registry is a Node's. It has its own lock, because events arrive in any thread that runs the device, also in
// one that is inside a request and holds a File's lock. Nothing here calls the device.
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <unordered_map>
#include <vector>

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

enum class EventSource : std::uint8_t { cq, qp, srq };

class EventRegistry {
 public:
  void add(EventSource source, std::uint32_t number, EventTarget target);
  // Forgets the object and takes back what was not read.
  EventCounts remove(EventSource source, std::uint32_t number);

  void add_listener(std::shared_ptr<EventPipe> async);
  void remove_listener(const std::shared_ptr<EventPipe>& async);

  void completion(std::uint32_t cqn);
  void object_event(EventSource source, std::uint32_t number, Event event);
  // A port or device event: to every context.
  void device_event(Event event, std::uint32_t port);

 private:
  using Targets = std::unordered_map<std::uint32_t, EventTarget>;
  Targets& of(EventSource source) { return targets_[static_cast<unsigned>(source)]; }

  std::mutex lock_;
  Targets targets_[3];
  std::vector<std::shared_ptr<EventPipe>> listeners_;
};

}  // namespace verbena::kernel
