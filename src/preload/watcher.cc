#include "preload/watcher.h"

#include <pthread.h>
#include <signal.h>
#include <sys/prctl.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <mutex>
#include <vector>

#include "preload/state.h"

namespace verbena::preload {
namespace {

// The watcher always sleeps between two looks: a thread that wakes from sleep soon gets the processor of one that
// spins, while one that spins too would wait for the end of the other's time slice. Latency is bought with wake-ups, so
// the sleep grows while nothing happens.
constexpr long kShortestNs = 20'000, kLongestNs = 1'000'000;

std::mutex lock;
std::vector<int>& watched() {
  static auto* list = new std::vector<int>;  // outlives every thread
  return *list;
}
pid_t runs_in = 0;  // a forked child has no watcher until it needs one itself

bool look(const uverbs::Backend& backend) {
  bool worked = false;
  const std::lock_guard guard(lock);
  for (const int fd : watched()) worked = backend.ring_all(fd) || worked;
  return worked;
}

void* run(void* argument) {
  inside = true;  // for good: nothing this thread calls is the program's
  prctl(PR_SET_NAME, "verbena-watch");
  prctl(PR_SET_TIMERSLACK, 1ul);
  const auto& backend = *static_cast<const uverbs::Backend*>(argument);
  for (long sleep = kShortestNs;;) {
    sleep = look(backend) ? kShortestNs : std::min(kLongestNs, sleep + sleep / 16);
    const timespec time{0, sleep};
    nanosleep(&time, nullptr);
  }
  return nullptr;
}

// The lock is taken across fork, so that the child finds it free; what the parent watched is not the child's.
void survive_forks() {
  static std::once_flag once;
  std::call_once(once, [] {
    pthread_atfork([] { lock.lock(); }, [] { lock.unlock(); },
                   [] {
                     watched().clear();
                     lock.unlock();
                   });
  });
}

void start(const uverbs::Backend& backend) {
  sigset_t all, before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);  // signals are the program's
  pthread_attr_t attributes;
  pthread_attr_init(&attributes);
  pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
  pthread_t thread;
  if (pthread_create(&thread, &attributes, run, const_cast<uverbs::Backend*>(&backend)) == 0) runs_in = getpid();
  pthread_attr_destroy(&attributes);
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

}  // namespace

void watch(int fd) {
  const State* now = awake.load(std::memory_order_acquire);
  if (now == nullptr || now->backend->ring_all == nullptr || node_of(*now, fd) < 0) return;
  survive_forks();
  const std::lock_guard guard(lock);
  if (std::find(watched().begin(), watched().end(), fd) == watched().end()) watched().push_back(fd);
  if (runs_in != getpid()) start(*now->backend);
}

void stop_watching(int fd) {
  const std::lock_guard guard(lock);
  std::erase(watched(), fd);
}

}  // namespace verbena::preload
