// How a thread waits for another one, perhaps of another process, that is not worth a futex.
//
// Giving the core up (sched_yield) is not enough: it goes to threads of the same scheduling group alone, and on Linux each
// session has one of its own. A waiter that only yields can keep the core for a second from the thread it waits for.
#pragma once

namespace verbena::device {

// One wait. Threads: its own; fit for a signal handler.
class Backoff {
 public:
  // Gives the core up, and after some turns sleeps: first 50 us, then twice as long each time, up to a millisecond.
  void pause();

 private:
  unsigned turns_ = 0;
};

}  // namespace verbena::device
