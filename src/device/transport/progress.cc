// What runs later: timers, work left over by budgets, QPs in the error state, and the helper thread.
#include <linux/futex.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>

#include "device/transport/clock.h"
#include "device/transport/impl.h"
#include "support/own_calls.h"

namespace verbena::device {

namespace {
constexpr std::uint64_t kFailedCheckNs = 10'000;
constexpr std::size_t kFailedChecks = 64;  // QPs of one look
constexpr std::uint64_t kReceiverCheckNs = 500;
constexpr std::uint64_t kNever = ~0ull;
constexpr int kTurnRounds = 64;
constexpr std::uint64_t kSessionCheckNs = 100'000'000;
constexpr std::uint64_t kPollerPauseNs = 300'000;  // how long the helper leaves work to a program that polls
}  // namespace

void Engine::Impl::queue_work(QpContext& qp) {
  if ((qp.sq_flags.fetch_or(kSqQueued) & kSqQueued) != 0) return;
  {
    std::lock_guard guard(mutex_);
    work_.push_back(nic_.index_of(qp));
  }
  set_pending(kPendingWork);
  if (slice().header.helper_sleeps.load() != 0) wake_helper(nic_.self());
}

bool Engine::Impl::list_timer(Timers& timers, std::atomic<std::uint64_t>& next, const Timer& timer) {
  timers.push(timer);
  const bool sooner = timer.at < next.load();
  if (sooner) next.store(timer.at);
  set_pending(kPendingTimer);
  return sooner;
}

void Engine::Impl::arm_timer(QpContext& qp, std::uint64_t delay_ns, TimerKind kind) {
  const std::uint64_t at = device_clock() + delay_ns;
  qp.deadline_ns = at;
  qp.timer = static_cast<std::uint8_t>(kind);
  bool sooner;
  {
    std::lock_guard guard(mutex_);
    if (kind == TimerKind::rnr) {
      rnr_waiters_.push_back(nic_.index_of(qp));
      rnr_count_.store(static_cast<std::uint32_t>(rnr_waiters_.size()));
    }
    sooner = list_timer(timers_, next_deadline_, {at, nic_.index_of(qp), qp.generation.load()});
  }
  if (sooner) wake_own_helper(nic_.self());
}

void Engine::Impl::reshape(QpContext& qp) {
  QpLocal& l = local(qp);
  if (static_cast<TimerKind>(qp.timer) == TimerKind::pace) qp.deadline_ns = 0;
  l.response_booked = false;
  if (l.turn == Turn::waiting) shaping.forget(nic_.index_of(qp));
  l.turn = Turn::none;
}

void Engine::Impl::arm_turns() {
  const std::uint64_t at = shaping.next_turn();
  bool sooner;
  {
    std::lock_guard guard(mutex_);
    if (at >= turns_at_) return;
    turns_at_ = at;
    sooner = list_timer(timers_, next_deadline_, {at, kTurns, 0});
  }
  if (sooner) wake_own_helper(nic_.self());
}

void Engine::Impl::grant_turn(QpContext& qp) {
  {
    SharedGuard guard(qp.sq_lock, me());
    QpLocal& l = local(qp);
    if (l.turn != Turn::waiting) return;
    l.turn = Turn::granted;
    qp.deadline_ns = 0;
  }
  if (Nic::in_use(qp)) kick(qp);
}

void Engine::Impl::serve_turns() {
  {
    std::lock_guard guard(mutex_);
    turns_at_ = kNever;
  }
  shaping.set_serving(true);
  std::vector<std::uint32_t> granted;
  for (int round = 0; round < kTurnRounds; ++round, granted.clear()) {
    shaping.serve(device_clock(), granted);
    if (granted.empty()) break;
    for (const std::uint32_t index : granted) grant_turn(slice().qps[index]);
  }
  shaping.set_serving(false);
  arm_turns();
}

void Engine::Impl::list_failed(QpContext& qp) {
  if (local(qp).failed_listed.exchange(true)) return;
  {
    std::lock_guard guard(mutex_);
    failed_.push_back({nic_.index_of(qp), qp.generation.load()});
  }
  set_pending(kPendingError);
  if (slice().header.helper_sleeps.load() != 0) wake_helper(nic_.self());
}

void Engine::Impl::run_timers() {
  const std::uint64_t now = device_clock();
  if (now < next_deadline_.load(std::memory_order_relaxed)) return;
  std::vector<Timer> due;
  {
    std::lock_guard guard(mutex_);
    while (!timers_.empty() && timers_.top().at <= now) {
      due.push_back(timers_.top());
      timers_.pop();
    }
    next_deadline_.store(timers_.empty() ? kNever : timers_.top().at);
    if (timers_.empty() && cq_timers_.empty()) clear_pending(kPendingTimer);
  }
  for (const Timer& t : due) {
    if (t.index == kTurns) {
      serve_turns();
      continue;
    }
    QpContext& qp = slice().qps[t.index];
    if (qp.generation.load() == t.generation && Nic::in_use(qp)) kick(qp);
  }
}

bool Engine::Impl::receiver_ready(const QpContext& qp, QpLocal& local) {
  if (static_cast<TimerKind>(qp.timer) != TimerKind::rnr || local.peer == nullptr) return false;
  const QpContext& remote = *local.remote;
  if (remote.srq != ~0u || local.peer->in_arena(remote.dbrec_va, 8) == nullptr) return false;
  const std::uint32_t enough = std::max(1u, (1u << (remote.rq.log_entries & 15)) / 4);
  return posted(*local.peer, remote.rq, remote.dbrec_va, remote.rq_head) >= enough;
}

// The RNR timer says when to try again at the latest. A sender that polls anyway looks whether the receiver has
// caught up, instead of leaving both idle until then.
void Engine::Impl::look_at_receivers() {
  const std::uint64_t now = device_clock();
  if (now - receivers_seen_ns_ < kReceiverCheckNs) return;
  receivers_seen_ns_ = now;
  std::vector<std::uint32_t> list;
  {
    std::lock_guard guard(mutex_);
    list.swap(rnr_waiters_);
  }
  for (const std::uint32_t index : list) {
    QpContext& qp = slice().qps[index];
    bool ready = false, waiting = false;
    {
      SharedGuard guard(qp.sq_lock, me());
      if (!Nic::in_use(qp)) continue;  // gone; its place may have another QP at any time
      waiting = qp.deadline_ns != 0 && static_cast<TimerKind>(qp.timer) == TimerKind::rnr;
      ready = waiting && receiver_ready(qp, local(qp));
      if (ready) qp.deadline_ns = 0;
    }
    if (ready) kick(qp);
    if (ready || !waiting) continue;
    std::lock_guard guard(mutex_);
    rnr_waiters_.push_back(index);
  }
  std::lock_guard guard(mutex_);
  rnr_count_.store(static_cast<std::uint32_t>(rnr_waiters_.size()));
}

void Engine::Impl::run_work() {
  std::size_t turns;
  {
    std::lock_guard guard(mutex_);
    turns = work_.size();
    if (turns == 0) clear_pending(kPendingWork);
  }
  for (; turns != 0; --turns) {
    std::uint32_t index;
    {
      std::lock_guard guard(mutex_);
      if (work_.empty()) break;
      index = work_.front();
      work_.pop_front();
    }
    QpContext& qp = slice().qps[index];
    qp.sq_flags.fetch_and(~kSqQueued);
    if (Nic::in_use(qp)) kick(qp);
  }
}

// Receive WQEs posted to a QP in the error state come without a doorbell: look for them, in a few QPs at a time.
void Engine::Impl::check_failed() {
  const std::uint64_t now = device_clock();
  if (now - failed_checked_ns_ < kFailedCheckNs) return;
  failed_checked_ns_ = now;
  std::vector<Failed> list;
  {
    std::lock_guard guard(mutex_);
    const auto end = failed_.begin() + static_cast<std::ptrdiff_t>(std::min(kFailedChecks, failed_.size()));
    list.assign(failed_.begin(), end);
    failed_.erase(failed_.begin(), end);
  }
  std::erase_if(list, [this](const Failed& f) {
    QpContext& qp = slice().qps[f.index];
    if (qp.generation.load() != f.generation || !Nic::in_use(qp)) return true;
    Deferred deferred(&nic_.self());
    SharedGuard sq(qp.sq_lock, me());
    SharedGuard rx(qp.rx_lock, me());
    if (static_cast<QpState>(qp.state.load()) != QpState::err) {
      local(qp).failed_listed.store(false);
      return true;
    }
    Responder(nic_, nic_.self(), qp, me(), deferred).flush();
    flush_sq(qp, deferred);
    return false;
  });
  std::lock_guard guard(mutex_);
  failed_.insert(failed_.end(), list.begin(), list.end());
  if (failed_.empty()) clear_pending(kPendingError);
}

void Engine::Impl::step() {
  turns_.store(turns_.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
  work();
}

void Engine::Impl::work() {
  std::uint32_t bits = slice().header.pending.load(std::memory_order_acquire) & ~kPendingPromote;
  if (next_deadline_.load(std::memory_order_relaxed) != kNever || next_event_.load(std::memory_order_relaxed) != kNever)
    bits |= kPendingTimer;  // whoever cleared it
  if (bits == 0) return;
  if ((bits & kPendingErrand) != 0) errands.serve();
  if (!stepping_.test_and_set(std::memory_order_acquire)) {
    if ((bits & kPendingTimer) != 0) {
      run_timers();
      run_cq_timers();
    }
    if (rnr_count_.load(std::memory_order_relaxed) != 0) look_at_receivers();
    if ((bits & kPendingWork) != 0) run_work();
    if ((bits & kPendingError) != 0) check_failed();
    stepping_.clear(std::memory_order_release);
  }
  settle();
}

// ---- the helper thread ----

void Engine::Impl::helper() {
  prctl(PR_SET_TIMERSLACK, 1000);  // nanoseconds: pacing is as even as this thread wakes
  SliceHeader& h = slice().header;
  std::uint64_t error_pause = 1'000'000, turns_seen = turns_.load();
  while (!stop_.load(std::memory_order_acquire)) {
    const std::uint32_t ticket = h.wake.load(std::memory_order_seq_cst);
    const std::uint64_t turns = turns_.load(std::memory_order_relaxed);
    const bool polled = turns != turns_seen;
    turns_seen = turns;
    if ((h.pending.load(std::memory_order_acquire) & kPendingPromote) != 0) {
      clear_pending(kPendingPromote);
      promoter.serve();
    }
    if (errands.asked()) errands.serve();
    if (!polled) {
      work();
    } else if (owes_event()) {
      // Who polled and then waits for an event is not to wait longer for having polled.
      run_cq_timers();
      settle();
    }
    h.helper_sleeps.store(1, std::memory_order_seq_cst);
    const std::uint32_t bits = h.pending.load(std::memory_order_seq_cst);
    std::uint64_t pause = kNever;
    if (const std::uint64_t at = next_deadline_.load(); at != kNever) {
      const std::uint64_t now = device_clock();
      pause = at <= now ? 0 : at - now;
    }
    if ((bits & kPendingError) != 0) {
      pause = std::min(pause, error_pause);
      error_pause = std::min<std::uint64_t>(error_pause * 2, 50'000'000);
    } else {
      error_pause = 1'000'000;
    }
    if ((bits & (kPendingWork | kPendingAttention | kPendingIrq | kPendingErrand)) != 0) pause = 0;
    // (a promotion asked for meanwhile has bumped `wake`, so the wait below returns at once)
    // Somebody polls: two threads on the same queues only get into each other's way.
    if (pause != kNever && polled) pause = std::max(pause, kPollerPauseNs);
    if (watched_sessions.load(std::memory_order_relaxed) > 0) pause = std::min(pause, kSessionCheckNs);
    if (const std::uint64_t at = next_event_.load(); at != kNever) {
      const std::uint64_t now = device_clock();
      pause = std::min(pause, at <= now ? 0 : at - now);
    }
    if (pause != 0 && !stop_.load()) {
      timespec t{static_cast<time_t>(pause / 1'000'000'000), static_cast<long>(pause % 1'000'000'000)};
      syscall(SYS_futex, reinterpret_cast<std::uint32_t*>(&h.wake), FUTEX_WAIT, ticket, pause == kNever ? nullptr : &t,
              nullptr, 0);
    }
    h.helper_sleeps.store(0, std::memory_order_seq_cst);
  }
}

void Engine::Impl::start_helper() {
  std::lock_guard guard(helper_mutex_);
  if (helper_.joinable() || pid_ != getpid()) return;
  stop_.store(false);
  helper_done_.store(false);
  // Signals are for the program's own threads.
  sigset_t all, old;
  sigfillset(&all);
  for (const int keep : {SIGSEGV, SIGBUS, SIGFPE, SIGILL}) sigdelset(&all, keep);
  pthread_sigmask(SIG_BLOCK, &all, &old);
  try {
    helper_ = std::thread([this] {
      const OwnCalls own;
      helper();
      helper_done_.store(true, std::memory_order_release);
    });
    pthread_setname_np(helper_.native_handle(), "verbena");
  } catch (const std::system_error&) {
    // Without it passive targets wait for the next call into the library.
  }
  pthread_sigmask(SIG_SETMASK, &old, nullptr);
}

void Engine::Impl::stop_helper() {
  std::lock_guard guard(helper_mutex_);
  if (!helper_.joinable()) return;
  stop_.store(true);
  // Again, should somebody overwrite the word it sleeps on.
  while (!helper_done_.load(std::memory_order_acquire)) {
    wake_own_helper(nic_.self());
    usleep(50);
  }
  helper_.join();
}

void Engine::Impl::abandon() {
  // The thread exists in the parent only; its handle must not be joined or destroyed here.
  pid_ = 0;
  new (&helper_) std::thread();
}

}  // namespace verbena::device
