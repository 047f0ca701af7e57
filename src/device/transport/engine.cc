#include "device/transport/engine.h"

#include <sys/mman.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>

#include "device/memory/guard.h"
#include "device/shared/sparse.h"
#include "device/transport/attention.h"
#include "device/transport/clock.h"
#include "device/transport/impl.h"
#include "device/transport/requester.h"
#include "device/transport/vendor.h"
#include "support/at_fork.h"

namespace verbena::device {

namespace {
constexpr std::size_t kLocalsBytes = std::size_t{kMaxQps} * sizeof(QpLocal);
std::mutex& capture_mutex() { return mutex_over_fork<ForkRank::capture>(); }
std::string* capture_file = nullptr;
}  // namespace

Engine::Impl::Impl(Nic& nic) : promoter(nic), errands(nic, promoter), shaping(nic.slice()), nic_(nic), pid_(getpid()) {
  ensure_guard();
  void* p = map_sparse(kLocalsBytes, MAP_PRIVATE | MAP_ANONYMOUS, -1);
  locals_ = static_cast<QpLocal*>(p);
  if (auto registry = fabric::Registry::open(nic.run_dir())) registry_ = *registry;
  std::lock_guard guard(capture_mutex());
  if (capture_file != nullptr) {
    trace = Trace::open(*capture_file);
  } else if (const char* env = getenv("VERBENA_CAPTURE"); env != nullptr && *env != '\0') {
    trace = Trace::open(env);
  }
}

Engine::Impl::~Impl() {
  if (pid_ != getpid()) {
    abandon();
    return;
  }
  stop_helper();
  munmap(locals_, kLocalsBytes);
}

Engine::Engine(Nic& nic) : impl_(std::make_unique<Impl>(nic)) {}
Engine::~Engine() = default;

void Engine::set_capture(const std::string& file) {
  std::lock_guard guard(capture_mutex());
  delete capture_file;
  capture_file = file.empty() ? nullptr : new std::string(file);
}

void Engine::abandon_in_child() { impl_->abandon(); }
void Engine::start_helper() { impl_->start_helper(); }
void Engine::ring_sq(QpContext& qp) { impl_->kick(qp); }
Shaping& Engine::shaping() { return impl_->shaping; }
void Engine::step() { impl_->step(); }
const std::uint32_t* Engine::pending() const {
  return reinterpret_cast<const std::uint32_t*>(&impl_->slice().header.pending);
}

void Engine::arm_cq(CqContext& cq) {
  impl_->complete([&](Completer& completer) { completer.arm(cq); });
}

void Engine::moderate(CqContext& cq) {
  impl_->complete([&](Completer& completer) { completer.moderate(cq); });
}

void Engine::close_session(CqContext& cq) {
  impl_->complete([&](Completer& completer) { completer.close_session(cq.cqn); });
}

void Engine::watch_sessions(int change) {
  impl_->watched_sessions += change;
  if (change > 0) wake_own_helper(impl_->nic().self());
}

void Engine::eq_doorbell(EqContext& eq, std::uint32_t ci, bool arm) {
  {
    SharedGuard guard(eq.lock, impl_->me());
    eq.ci.store(ci & 0xffffff, std::memory_order_release);
    eq.armed.store(arm ? 1 : 0, std::memory_order_relaxed);
  }
}

void Engine::set_interrupt_handler(std::function<void(unsigned)> handler) {
  impl_->interrupt = std::move(handler);
  impl_->has_interrupt.store(true, std::memory_order_release);
  impl_->start_helper();
}

void Engine::raise_event(std::uint8_t type, std::uint8_t sub_type, std::uint32_t number) {
  impl_->complete([&](Completer& completer) { completer.event(static_cast<prm::EventType>(type), sub_type, number); });
}

// The port is everybody's: each process of the NIC has its event.
void Engine::raise_port_event(std::uint8_t sub_type, unsigned port) {
  Nic& nic = impl_->nic();
  for (std::uint32_t slot = 0; slot < kMaxSlots; ++slot) {
    if (slot == nic.slot()) continue;
    Peer* const peer = nic.peer(slot);
    if (peer == nullptr || !nic.alive(*peer)) continue;
    Deferred deferred(&nic.self());
    Completer(*peer, impl_->me(), deferred).event(prm::EventType::port_change, sub_type, port);
  }
  raise_event(static_cast<std::uint8_t>(prm::EventType::port_change), sub_type, port);
}

void Engine::check_srq_limit(SrqContext& srq) {
  Nic& nic = impl_->nic();
  impl_->complete([&](Completer& completer) {
    SharedGuard guard(srq.lock, impl_->me());
    const std::uint32_t limit = srq.limit.load();
    if (limit != 0 && posted(nic.self(), srq.ring, srq.dbrec_va, srq.consumed) < limit) {
      srq.limit.store(0);
      completer.event(prm::EventType::srq_rq_limit, srq);
    }
  });
}

void Engine::registered(std::uint64_t va, std::uint64_t length) {
  ensure_guard();  // the program may have set its own handler since
  impl_->promoter.registered(va, length);
}
void Engine::unregistered(std::uint64_t va, std::uint64_t length) { impl_->promoter.unregistered(va, length); }

// ---- life of a QP ----
//
// Lists of QPs keep what they have of one that is reset or removed: whoever comes to it finds that it means nothing any
// more.

void Engine::reset(QpContext& qp, QpState state) {
  impl_->start_helper();
  impl_->shaping.forget(impl_->nic().index_of(qp));
  SharedGuard sq(qp.sq_lock, impl_->me());
  SharedGuard rx(qp.rx_lock, impl_->me());
  qp.state.store(static_cast<std::uint32_t>(state), std::memory_order_release);
  qp.sq_head = qp.sq_done = 0;
  qp.rung.store(0);
  qp.sq_flags.store(0);
  qp.next_psn = qp.una_psn = qp.ssn = qp.reads_in_flight = 0;
  qp.retries_left = qp.rnr_left = qp.timer = 0;
  qp.deadline_ns = qp.wqe_offset = 0;
  qp.req_flags = qp.msg_psn = 0;
  qp.pace_ns = 0;
  impl_->reshape(qp);
  qp.epsn = qp.msn = 0;
  qp.rq_head = qp.rq_tail_seen = qp.rq_ahead_count = 0;
  qp.rx_opcode = 0;
  qp.nak_sent = false;
  qp.rres_next = 0;
  qp.rx_srq_wqe = qp.rx_flags = qp.rx_rkey = qp.rx_dropped_at = 0;
  qp.rx_offset = qp.rx_va = qp.rx_left = 0;
  std::memset(qp.rres, 0, sizeof qp.rres);
  impl_->invalidate_way(qp);
}

void Engine::set_state(QpContext& qp, QpState state, const std::function<void(QpContext&)>& update, bool sqd_event) {
  Nic& nic = impl_->nic();
  if (state == QpState::rst) {
    reset(qp);
    if (update) {
      SharedGuard sq(qp.sq_lock, impl_->me());
      SharedGuard rx(qp.rx_lock, impl_->me());
      update(qp);
    }
    return;
  }
  {
    Deferred deferred(&nic.self());
    SharedGuard sq(qp.sq_lock, impl_->me());
    const auto old = static_cast<QpState>(qp.state.load());
    {
      SharedGuard rx(qp.rx_lock, impl_->me());
      if (update) update(qp);
      impl_->invalidate_way(qp);
      impl_->reshape(qp);
      if (state == QpState::rtr && old == QpState::init) {
        qp.nak_sent = false;
        qp.rx_opcode = 0;
        qp.rx_flags = 0;
      }
      if (state == QpState::rts) {
        qp.retries_left = qp.retry_count;
        qp.rnr_left = qp.rnr_retry;
        if (qp.deadline_ns == ~0ull) qp.deadline_ns = 0;
      }
      qp.state.store(static_cast<std::uint32_t>(state), std::memory_order_release);
      if (state == QpState::err) Responder(nic, nic.self(), qp, impl_->me(), deferred).flush();
    }
    if (state == QpState::err || state == QpState::sqer) impl_->flush_sq(qp, deferred);
    if (state == QpState::sqd && sqd_event) {
      if ((qp.req_flags & kReqStarted) != 0)
        qp.req_flags |= kReqDrainEvent;
      else
        Completer(nic.self(), impl_->me(), deferred).event(prm::EventType::sq_drained, qp);
    }
  }
  if (state == QpState::err) impl_->list_failed(qp);
  if (state == QpState::rts)
    impl_->kick(qp);
  else
    impl_->settle();
}

void Engine::remove(QpContext& qp) {
  {
    SharedGuard sq(qp.sq_lock, impl_->me());
    SharedGuard rx(qp.rx_lock, impl_->me());
    qp.state.store(static_cast<std::uint32_t>(QpState::rst), std::memory_order_release);
    impl_->local(qp).failed_listed.store(false);
  }
  impl_->shaping.forget(impl_->nic().index_of(qp));
}

// ---- queues ----

void Engine::Impl::kick(QpContext& qp) {
  if (qp.type == QpType::raw_rq) return settle();  // sends nothing
  QpLocal& l = local(qp);
  Progress progress;
  {
    Deferred deferred(&nic_.self());
    SharedGuard guard(qp.sq_lock, me());
    progress = Requester(*this, qp, l, deferred).run();
  }
  if (progress == Progress::more) queue_work(qp);
  settle();
}

void Engine::Impl::flush_sq(QpContext& qp, Deferred& deferred) {
  Peer& self = nic_.self();
  Completer completer(self, me(), deferred);
  qp.deadline_ns = 0;
  qp.wqe_offset = 0;
  qp.req_flags = 0;
  if (qp.sq.log_entries > 15 || qp.type == QpType::raw_rq || qp.quiet_flush) return;
  while (const std::uint32_t available = posted_sends(self, qp)) {
    SendWqe wqe;
    if (wqe.fetch(qp, self, qp.sq_head, available) == SendWqe::Fetch::unreadable) break;
    CqeBuffer cqe;
    cqe.error()
        .set<prm::ErrCqe::srqn>(qp.user_index)
        .set<prm::ErrCqe::vendor_err_synd>(prm::kVendorSyndromeFlushed)
        .set<prm::ErrCqe::syndrome>(prm::CqeSyndrome::wr_flush_err)
        .set<prm::ErrCqe::s_wqe_opcode>(static_cast<std::uint32_t>(wqe.opcode))
        .set<prm::ErrCqe::qpn>(qp.qpn)
        .set<prm::ErrCqe::wqe_counter>(wqe.index)
        .set<prm::ErrCqe::opcode>(prm::CqeOpcode::req_err);
    count(nic_.segment(), slice(), qp, &EventCounters::req_cqe_error);
    count(nic_.segment(), slice(), qp, &EventCounters::req_cqe_flush_error);
    completer.post(qp.send_cq, cqe, true);
    qp.sq_head = static_cast<std::uint16_t>(qp.sq_head + wqe.blocks);
    qp.sq_done = qp.sq_head;
  }
}

void Engine::Impl::fail(QpContext& qp, Deferred& deferred) {
  {
    SharedGuard rx(qp.rx_lock, me());
    qp.state.store(static_cast<std::uint32_t>(QpState::err), std::memory_order_release);
    Responder(nic_, nic_.self(), qp, me(), deferred).flush();
  }
  flush_sq(qp, deferred);
  list_failed(qp);
}

void Engine::Impl::settle() {
  const std::uint32_t bits = slice().header.pending.load(std::memory_order_acquire);
  if ((bits & (kPendingAttention | kPendingIrq | kPendingCq)) == 0) [[likely]]
    return;
  if ((bits & kPendingAttention) != 0) attend();
  if ((bits & kPendingCq) != 0) attend_cqs();
  if ((slice().header.pending.load() & kPendingIrq) != 0) dispatch_interrupts();
}

void Engine::Impl::attend() {
  clear_pending(kPendingAttention);
  take_attention(qp_attention(slice()), [this](std::uint32_t index) {
    QpContext& qp = slice().qps[index];
    if (!Nic::in_use(qp)) return;
    {
      Deferred deferred(&nic_.self());
      SharedGuard guard(qp.sq_lock, me());
      qp.sq_flags.fetch_and(~kSqFlushPending);
      if (static_cast<QpState>(qp.state.load()) == QpState::err) flush_sq(qp, deferred);
    }
    list_failed(qp);
  });
}

void Engine::Impl::dispatch_interrupts() {
  clear_pending(kPendingIrq);
  std::uint32_t vectors = slice().header.irq.exchange(0, std::memory_order_acq_rel);
  if (!has_interrupt.load(std::memory_order_acquire)) return;
  for (; vectors != 0; vectors &= vectors - 1) interrupt(static_cast<unsigned>(std::countr_zero(vectors)));
}

}  // namespace verbena::device
