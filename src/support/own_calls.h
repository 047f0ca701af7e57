// In a process whose calls of libc are intercepted (src/preload) those of our own threads and handlers are meant for libc:
// on their way to it they would ask the device, whose locks their callers may hold.
//
// An object says so of its thread while it lives. Any thread; signal-safe.
#pragma once

// Of libverbena-preload.so; null where it is not loaded. Sets whether this thread's calls are our own; returns what was set.
extern "C" __attribute__((weak, visibility("default"))) bool verbena_own_calls(bool own);

namespace verbena {

class OwnCalls {
 public:
  OwnCalls() : before_(verbena_own_calls != nullptr && verbena_own_calls(true)) {}
  ~OwnCalls() {
    if (verbena_own_calls != nullptr) verbena_own_calls(before_);
  }
  OwnCalls(const OwnCalls&) = delete;
  OwnCalls& operator=(const OwnCalls&) = delete;

 private:
  const bool before_;
};

}  // namespace verbena
