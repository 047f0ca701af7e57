#include "device/transport/completion.h"

#include <limits.h>
#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <cstring>

#include "device/memory/transfer.h"
#include "device/shared/srq_type.h"
#include "device/transport/clock.h"
#include "prm/doorbell.h"
#include "support/thread_sanitizer.h"

namespace verbena::device {

namespace {
constexpr std::uint32_t kMaxLogEntries = 22;

// Whether [va, va + n) belongs to the queue, as far as we know better than shared memory does (own.h).
bool within(const Peer& owner, const CqContext& cq, std::uint64_t va, std::uint64_t n) {
  return owner.own == nullptr || owner.own->cq(static_cast<std::uint32_t>(&cq - owner.slice->cqs)).holds(va, n);
}
bool within(const Peer& owner, const EqContext& eq, std::uint64_t va, std::uint64_t n) {
  return owner.own == nullptr || owner.own->eq(static_cast<std::uint32_t>(&eq - owner.slice->eqs)).holds(va, n);
}

std::uint32_t producer(const CqContext& cq) { return __atomic_load_n(&cq.pi, __ATOMIC_RELAXED); }

// Stores an entry so that its last byte, which holds opcode and owner bit, becomes visible last.
template <class Queue>
bool store_entry(Peer& owner, const Queue& queue, std::uint64_t va, const std::byte (&entry)[64]) {
  if (std::byte* p = owner.in_arena(va, sizeof entry); p != nullptr && (va & 63) == 0) [[likely]] {
    std::memcpy(p, entry, 63);
    reinterpret_cast<std::atomic<std::byte>*>(p + 63)->store(entry[63], std::memory_order_release);
    return true;
  }
  if (!within(owner, queue, va, sizeof entry)) return false;
  // The guarded copy and process_vm_writev are opaque to the compiler: these two stay in order.
  if (write_memory(&owner, va, entry, 56) != Moved::ok) return false;
  if (owner.own != nullptr) stores_in_order(reinterpret_cast<const void*>(va + 63));
  return write_memory(&owner, va + 56, entry + 56, 8) == Moved::ok;
}
}  // namespace

void wake_helper(Peer& peer) {
  SliceHeader& h = peer.slice->header;
  h.wake.fetch_add(1, std::memory_order_seq_cst);
  if (h.helper_sleeps.load(std::memory_order_seq_cst) != 0)
    syscall(SYS_futex, reinterpret_cast<std::uint32_t*>(&h.wake), FUTEX_WAKE, INT_MAX, nullptr, nullptr, 0);
}

void wake_own_helper(Peer& self) {
  SliceHeader& h = self.slice->header;
  h.wake.fetch_add(1, std::memory_order_seq_cst);
  syscall(SYS_futex, reinterpret_cast<std::uint32_t*>(&h.wake), FUTEX_WAKE, INT_MAX, nullptr, nullptr, 0);
}

void Deferred::wake(Peer& peer) {
  if (&peer == own_) return;
  for (unsigned i = 0; i < count_; ++i)
    if (peers_[i] == &peer) return;
  if (count_ == peers_.size()) return wake_helper(peer);
  peers_[count_++] = &peer;
}

bool Deferred::close_later(Peer& owner, std::uint32_t cq_index, std::uint32_t me) {
  for (unsigned i = 0; i < session_count_; ++i)
    if (sessions_[i].owner == &owner && sessions_[i].cq_index == cq_index) return true;
  if (session_count_ == sessions_.size()) return false;
  sessions_[session_count_++] = {&owner, cq_index, me};
  return true;
}

void Deferred::run() {
  for (unsigned i = 0; i < session_count_; ++i)
    Completer(*sessions_[i].owner, sessions_[i].me, *this).close_session(sessions_[i].cq_index);
  session_count_ = 0;
  for (unsigned i = 0; i < count_; ++i) wake_helper(*peers_[i]);
  count_ = 0;
}

std::uint8_t Completer::cqe_log(std::uint32_t cq_index) const {
  return cq_index < kMaxCqs ? owner_.slice->cqs[cq_index].cqe_bytes_log : 6;
}

// An entry for one more, `ahead` of the producer index.
bool Completer::has_room(CqContext& cq, std::uint32_t ahead) {
  const std::uint32_t entries = 1u << (cq.ring.log_entries & 31);
  if (cq.pi + ahead - cq.ci_seen < entries) [[likely]]
    return true;
  std::byte record[prm::CqDbr::size];
  if (read_memory(&owner_, cq.dbrec_va, record, sizeof record) != Moved::ok) return false;
  const std::uint32_t ci = prm::ConstView<prm::CqDbr>(record).get<prm::CqDbr::update_ci>();
  // Of the index what tells a full ring from an empty one counts: DPDK's senders keep 16 bits of it.
  cq.ci_seen = cq.pi - ((cq.pi - ci) & (2 * entries - 1));
  return cq.pi + ahead - cq.ci_seen < entries;
}

bool Completer::place(CqContext& cq, std::uint32_t pi, CqeBuffer& cqe) {
  // Read once: whoever else writes to the context must not make a shift too wide.
  const unsigned log_entries = cq.ring.log_entries & 31, log_bytes = cq.cqe_bytes_log == 7 ? 7 : 6;
  cqe.view().set<prm::Cqe64::owner>(pi >> log_entries & 1);
  std::uint64_t va = cq.ring.va + (std::uint64_t{pi & ((1u << log_entries) - 1)} << log_bytes);
  if (log_bytes == 7) {
    constexpr static std::byte zeros[64]{};
    const std::byte* front = cqe.inline_data == nullptr && cq.padded ? zeros : cqe.inline_data;
    if (front != nullptr) {
      if (owner_.in_arena(va, 64) == nullptr && !within(owner_, cq, va, 64)) return false;
      if (write_memory(&owner_, va, front, 64) != Moved::ok) return false;
    }
    va += 64;
  }
  return store_entry(owner_, cq, va, cqe.bytes);
}

// Part of an entry that nobody looks at before another one says so.
bool Completer::write_half(CqContext& cq, std::uint32_t index, const std::byte* bytes, std::uint32_t n) {
  const unsigned log_bytes = cq.cqe_bytes_log == 7 ? 7 : 6;
  const std::uint32_t mask = (1u << (cq.ring.log_entries & 31)) - 1;
  const std::uint64_t va = cq.ring.va + (std::uint64_t{index & mask} << log_bytes) + (log_bytes == 7 ? 64 : 0);
  if (std::byte* p = owner_.in_arena(va, n); p != nullptr) [[likely]] {
    std::memcpy(p, bytes, n);
    return true;
  }
  return within(owner_, cq, va, n) && write_memory(&owner_, va, bytes, n) == Moved::ok;
}

void Completer::overrun(CqContext& cq) {
  if (cq.status == kCqOverflow) return;
  cq.status = kCqOverflow;
  event(prm::EventType::cq_error, 0, cq.cqn);
}

bool Completer::usable(const CqContext& cq) {
  return Nic::in_use(cq) && cq.ring.log_entries <= kMaxLogEntries && (cq.cqe_bytes_log == 6 || cq.cqe_bytes_log == 7);
}

// The next entry; false: lost.
bool Completer::append(CqContext& cq, CqeBuffer& cqe) {
  const std::uint32_t pi = producer(cq);
  if (cq.status == kCqOverflow || (!has_room(cq) && !cq.overrun_ignore) || !place(cq, pi, cqe)) [[unlikely]] {
    overrun(cq);
    return false;
  }
  // The lock may have been taken from us (SharedLock). One of two entries is lost then, but the consumer finds no gap.
  if (producer(cq) == pi) [[likely]]
    cq.pi = pi + 1;
  return true;
}

bool Completer::post(std::uint32_t cq_index, CqeBuffer& cqe, bool solicited) {
  if (cq_index >= kMaxCqs) return true;
  CqContext& cq = owner_.slice->cqs[cq_index];
  const auto opcode = cqe.view().get<prm::Cqe64::opcode>();
  cqe.time = device_clock();
  // An error entry has its syndromes where others have the timestamp.
  if (opcode != prm::CqeOpcode::req_err && opcode != prm::CqeOpcode::resp_err)
    cqe.view().set<prm::Cqe64::timestamp>(cqe.time);
  SharedGuard guard(cq.lock, me_);
  if (!usable(cq)) return true;
  if (cq.features != 0) [[unlikely]]
    return post_special(cq, cqe, solicited);
  if (!append(cq, cqe)) [[unlikely]]
    return false;
  if (solicited) cq.last_solicited_pi = cq.pi;
  const std::uint32_t arm = cq.arm.load(std::memory_order_relaxed);
  if (arm == kCqArmed || (arm == kCqArmedSolicited && solicited)) [[unlikely]]
    fire(cq);
  return true;
}

void Completer::arm(CqContext& cq) {
  std::byte record[prm::CqDbr::size];
  SharedGuard guard(cq.lock, me_);
  if (!Nic::in_use(cq) || read_memory(&owner_, cq.dbrec_va, record, sizeof record) != Moved::ok) return;
  if (cq.gathered != 0) close(cq);
  const prm::ConstView<prm::CqDbr> dbr(record);
  const std::uint32_t ci = dbr.get<prm::CqDbr::arm_ci>();
  const bool only_solicited = dbr.get<prm::CqDbr::arm_solicited>() != 0;
  // Entries the consumer had not seen when it armed, among those that count, raise the event at once; but one event
  // is enough for an entry (cqc.last_notified_index): a consumer that arms before it polls is not told twice.
  const auto newer = [](std::uint32_t a, std::uint32_t b) { return ((a - b - 1) & 0xffffff) < 0x7fffff; };
  const auto untold = [&](std::uint32_t newest) { return newer(newest, ci) && newer(newest, cq.last_notified_pi); };
  const bool there = untold(only_solicited ? cq.last_solicited_pi : cq.pi);
  if (there && cq.features == 0) return fire(cq);
  // Who waits for the next entry keeps waiting for it (IBTA C11-31).
  if (!only_solicited || cq.arm.load(std::memory_order_relaxed) != kCqArmed)
    cq.arm.store(only_solicited ? kCqArmedSolicited : kCqArmed, std::memory_order_relaxed);
  if (there) owe(cq, untold(cq.last_solicited_pi));
}

void Completer::fire(CqContext& cq) {
  cq.arm.store(0, std::memory_order_relaxed);
  cq.last_notified_pi = cq.pi;
  cq.last_event_ns = device_clock();
  cq.event_due_ns = 0;
  if (cq.eq >= kMaxEqs) return;
  EqContext& eq = owner_.slice->eqs[cq.eq];
  alignas(8) std::byte eqe[64]{};
  const prm::View<prm::Eqe> v(eqe);
  v.set<prm::Eqe::event_type>(prm::EventType::comp);
  v.sub<prm::Eqe::event_data>().sub<prm::EventAuto::comp_event>().set<prm::CompEvent::cq_number>(cq.cqn);
  write_eqe(eq, eqe);
}

void Completer::write_eqe(EqContext& eq, std::byte (&eqe)[64]) {
  SharedGuard guard(eq.lock, me_);
  if (!Nic::in_use(eq) || eq.ring.log_entries > kMaxLogEntries) return;
  const std::uint32_t entries = 1u << (eq.ring.log_entries & 31);
  const std::uint32_t used = (eq.pi - eq.ci.load(std::memory_order_acquire)) & 0xffffff;
  if (used >= entries) {
    eq.status = kCqOverflow;  // lost, as on hardware whose driver sizes EQs too small
    return;
  }
  prm::View<prm::Eqe>(eqe).set<prm::Eqe::owner>(eq.pi >> (eq.ring.log_entries & 31) & 1);
  if (!store_entry(owner_, eq, eq.ring.va + (std::uint64_t{eq.pi & (entries - 1)} << 6), eqe)) return;
  ++eq.pi;
  SliceHeader& h = owner_.slice->header;
  h.irq.fetch_or(1u << (eq.intr & 31), std::memory_order_release);
  h.pending.fetch_or(kPendingIrq, std::memory_order_release);
  deferred_.wake(owner_);
}

void Completer::event(prm::EventType type, const QpContext& queue) {
  using Object = prm::QpEventObject;
  event(type, 0, queue.qpn, queue.type == QpType::raw ? Object::sq : queue.type == QpType::raw_rq ? Object::rq : Object::qp);
}

void Completer::event(prm::EventType type, const SrqContext& srq) {
  event(type, 0, srq.srqn, srq.type == kSrqTypeRmp ? prm::QpEventObject::rq : prm::QpEventObject::qp);
}

void Completer::event(prm::EventType type, std::uint8_t sub_type, std::uint32_t number, prm::QpEventObject object) {
  alignas(8) std::byte eqe[64]{};
  const prm::View<prm::Eqe> v(eqe);
  v.set<prm::Eqe::event_type>(type).set<prm::Eqe::event_sub_type>(sub_type);
  const auto data = v.sub<prm::Eqe::event_data>();
  if (type == prm::EventType::cq_error) {
    data.sub<prm::EventAuto::cq_error>().set<prm::CqError::cqn>(number).set<prm::CqError::syndrome>(
        prm::CqErrorSyndrome::overrun);
  } else if (type == prm::EventType::port_change) {
    data.sub<prm::EventAuto::port_state_change_event>().set<prm::PortStateChangeEvent::port_num>(number);
  } else {
    data.sub<prm::EventAuto::qp_events>().set<prm::QpEvents::qpn_rqn_sqn>(number).set<prm::QpEvents::type>(object);
  }
  const auto bit = static_cast<unsigned>(type);
  for (EqContext& eq : owner_.slice->eqs)
    if (Nic::in_use(eq) && (eq.event_mask[bit / 64] >> (bit % 64) & 1) != 0) return write_eqe(eq, eqe);
}

}  // namespace verbena::device
