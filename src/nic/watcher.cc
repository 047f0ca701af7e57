#include "nic/watcher.h"

#include <pthread.h>
#include <signal.h>
#include <sys/prctl.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>

#include "support/at_fork.h"
#include "support/own_calls.h"

namespace verbena::nic {
namespace {

// The thread always sleeps between two looks: one that wakes from sleep soon gets the processor of one that spins.
// The sleep grows while nothing happens.
constexpr long kShortestNs = 20'000, kLongestNs = 1'000'000;

}  // namespace

Watcher& Watcher::get() {
  static Watcher* watcher = new Watcher;  // outlives every thread
  return *watcher;
}

Watcher::Watcher() {
  at_fork(ForkRank::watcher, {[] { get().lock_.lock(); }, [] { get().lock_.unlock(); },
                              [] {
                                get().files_.clear();
                                get().lock_.unlock();
                              }});
}

void Watcher::watch(const std::shared_ptr<kernel::File>& file) {
  std::lock_guard guard(lock_);
  if (std::any_of(files_.begin(), files_.end(), [&](const auto& f) { return f.lock() == file; })) return;
  files_.push_back(file);
  if (runs_in_ == getpid()) return;
  sigset_t all, before;
  sigfillset(&all);
  for (const int fault : {SIGSEGV, SIGBUS, SIGFPE, SIGILL}) sigdelset(&all, fault);  // the thread's own, e.g. at the gate
  pthread_sigmask(SIG_SETMASK, &all, &before);  // signals are the program's
  pthread_t thread;
  if (pthread_create(&thread, nullptr, run, this) == 0) {
    pthread_detach(thread);
    runs_in_ = getpid();
  }
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

bool Watcher::look(bool* left) {
  std::vector<std::shared_ptr<kernel::File>> now;
  {
    std::lock_guard guard(lock_);
    std::erase_if(files_, [&](const auto& weak) {
      auto file = weak.lock();
      if (!file || !file->watching()) return true;
      now.push_back(std::move(file));
      return false;
    });
    *left = !now.empty();
    if (now.empty()) runs_in_ = 0;
  }
  bool worked = false;
  for (const auto& file : now) worked = file->serve_watched() || worked;
  return worked;
}

void Watcher::loop() {
  prctl(PR_SET_NAME, "verbena-watch");
  prctl(PR_SET_TIMERSLACK, 1ul);
  bool left = true;
  for (long sleep = kShortestNs;;) {
    sleep = look(&left) ? kShortestNs : std::min(kLongestNs, sleep + sleep / 16);
    if (!left) return;
    const timespec time{0, sleep};
    nanosleep(&time, nullptr);
  }
}

void* Watcher::run(void* self) {
  const OwnCalls own;
  static_cast<Watcher*>(self)->loop();
  return nullptr;
}

}  // namespace verbena::nic
