// What happens to locks and mappings around fork(2), in one order for the whole library.
//
// pthread_atfork runs the handlers of before the fork last registered first: locks would be taken from the inside
// outwards, against the order in which everybody else takes them. Here they are taken from the outermost to the
// innermost; then the parent's, and the child's, handlers run from the outermost too.
// Any thread.
#pragma once

#include <mutex>

namespace verbena {

// Outermost first: who holds the lock of one may take those of the later ones.
enum class ForkRank {
  runtime,
  watcher,
  tokens,
  promoter,
  page_gate,
  nic_file,
  registry,
  operation_pages,
  capture,
  fault_guard,
  heaps,         // libmlx5
  reserved_qpns,
  fork_ranges,   // libibverbs
  hooks,         // the preload library
  kept_nodes,
  count
};

struct ForkHandlers {
  void (*before)() = nullptr;
  void (*in_parent)() = nullptr;
  void (*in_child)() = nullptr;  // the one thread of the child; async-signal-safe as far as the parent had threads
};

// All three are wanted. Once for each rank; a second call for a rank changes nothing.
void at_fork(ForkRank rank, const ForkHandlers& handlers);

// The one lock of a rank that has nothing but a lock. A child finds it free, and what it guards whole: no thread of the
// parent is inside while the process forks. It is there, and its rank listed, from when the library is loaded: what
// begins at its first use could be half begun in the child.
template <ForkRank kRank>
struct OverFork {
  static inline constinit std::mutex mutex;
  static inline const bool listed =
      (at_fork(kRank, {[] { mutex.lock(); }, [] { mutex.unlock(); }, [] { mutex.unlock(); }}), true);
};

template <ForkRank kRank>
std::mutex& mutex_over_fork() {
  static_cast<void>(OverFork<kRank>::listed);
  return OverFork<kRank>::mutex;
}

}  // namespace verbena
