// The virtual device of this process: asleep until an RDMA path is touched, then Backend and Tree.
//
// Threads: any.
#pragma once

#include <pthread.h>
#include <sys/stat.h>
#include <sys/types.h>

#include <atomic>
#include <cstdint>

#include "preload/paths.h"
#include "preload/tree.h"
#include "uverbs/backend.h"

namespace verbena::preload {

struct State {
  const uverbs::Backend* backend;
  Tree tree;
};

// Null until wake() succeeded. Interposers that are not about paths test this and nothing else.
inline std::atomic<const State*> awake{nullptr};

// The program has locked what it will map, before there was a device.
inline std::atomic<bool> locks_future{false};

// Set while this thread runs code of ours or of the device: its own calls go straight through. Threads and fork handlers
// of the device's own set it by support/own_calls.h.
extern thread_local bool inside __attribute__((tls_model("initial-exec")));

class Inside {
 public:
  Inside() : before_(inside) { inside = true; }
  ~Inside() { inside = before_; }
  Inside(const Inside&) = delete;
  Inside& operator=(const Inside&) = delete;

 private:
  const bool before_;
};

// The same for work that is not to be left half done: a thread that is cancelled meanwhile ends after it. (Calls of the
// libraries that hook_*() stand in front of are too frequent for this, and too short.)
class Undisturbed {
 public:
  Undisturbed() { pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &before_); }
  ~Undisturbed() { pthread_setcancelstate(before_, nullptr); }
  Undisturbed(const Undisturbed&) = delete;
  Undisturbed& operator=(const Undisturbed&) = delete;

 private:
  const Inside inside_;
  int before_ = PTHREAD_CANCEL_ENABLE;
};

inline const State* state() { return inside ? nullptr : awake.load(std::memory_order_acquire); }

// Brings the device to life, once in a process. Null if that failed, then and forever.
const State* wake();

// Whether this process (not a vfork child of it that borrows its memory) is the one the device belongs to.
bool is_own_process();

// The descriptors that stand for open uverbs nodes.
void remember_node(int fd, int device);
bool maybe_node(int fd);  // cheap; true for what open() gave, and perhaps for what took its number since
// The device whose node `fd` is, by identity of the open file (so dups count); -1 if it is none.
int node_of(const State& state, int fd);
void forget_node(int fd);
// The descriptor is on its way to somebody (SCM_RIGHTS), which keeps its file open while nobody holds it. We cannot see
// that, so the file stays open in this process from now on.
void keep_open(int fd);

}  // namespace verbena::preload
