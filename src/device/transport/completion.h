// Writing CQEs and EQEs into their owner's queues, from whichever process runs the device.
//
// Threads: any. Lock order: these take the CQ lock, then the EQ lock; the caller may hold QP and SRQ locks.
#pragma once

#include <array>
#include <cstdint>

#include "device/shared/nic.h"
#include "prm/cqe.h"
#include "prm/eqe.h"

namespace verbena::device {

inline constexpr std::uint8_t kCqOverflow = 9;  // cqc.status

// Helpers to wake and whatever else must wait until no lock is held.
class Deferred {
 public:
  // `own` needs no waking: whoever runs the engine looks at its words before it returns.
  explicit Deferred(const Peer* own) : own_(own) {}
  ~Deferred() { run(); }
  // `peer`'s helper thread has something to do (its pending and irq words say what).
  void wake(Peer& peer);
  // The CQ's session of compressed CQEs is to be closed. False: it will not be, there is no room left to remember it.
  bool close_later(Peer& owner, std::uint32_t cq_index, std::uint32_t me);
  void run();

 private:
  struct Session {
    Peer* owner;
    std::uint32_t cq_index, me;
  };
  const Peer* own_;
  std::array<Peer*, 4> peers_;
  std::array<Session, 4> sessions_;
  unsigned count_ = 0, session_count_ = 0;
};
void wake_helper(Peer& peer);
// Our own, whatever shared memory says of it.
void wake_own_helper(Peer& self);

// One CQE under construction: the entry, and what a 128-byte CQ gets in front of it.
struct CqeBuffer {
  alignas(64) std::byte bytes[64]{};
  const std::byte* inline_data = nullptr;  // with CqeFormat::inline_64: 64 bytes
  std::uint64_t time = 0;                  // when it was posted
  prm::View<prm::Cqe64> view() { return prm::View<prm::Cqe64>(bytes); }
  prm::View<prm::ErrCqe> error() { return prm::View<prm::ErrCqe>(bytes); }
};

class Completer {
 public:
  Completer(Peer& owner, std::uint32_t me, Deferred& deferred) : owner_(owner), me_(me), deferred_(deferred) {}

  // Appends the CQE (the owner bit is set here) and raises the completion event if the CQ is armed for it.
  // False: the CQ has overflowed, now or before, and the entry is lost. The queue it is about cannot go on.
  bool post(std::uint32_t cq_index, CqeBuffer& cqe, bool solicited);
  // Arms the CQ as its doorbell record says, or fires at once.
  void arm(CqContext& cq);
  // compression.cc: lets the consumer see what was gathered for one session. With the lock held it is close().
  void close_session(std::uint32_t cq_index);
  bool close(CqContext& cq);
  // moderation.cc, for the CQ's owner. Its moderation has changed.
  void moderate(CqContext& cq);
  // Somebody asked for attention, or the time has come: raises the event that is due. When to look again (device_clock);
  // 0: no need to.
  std::uint64_t serve(CqContext& cq);
  // An event about a QP, CQ or SRQ (the type says which), or a port (number: the port).
  void event(prm::EventType type, std::uint8_t sub_type, std::uint32_t number,
             prm::QpEventObject object = prm::QpEventObject::qp);
  void event(prm::EventType type, const QpContext& queue);
  void event(prm::EventType type, const SrqContext& srq);
  std::uint8_t cqe_log(std::uint32_t cq_index) const;

 private:
  static bool usable(const CqContext& cq);
  std::uint32_t index_of(const CqContext& cq) const { return static_cast<std::uint32_t>(&cq - owner_.slice->cqs); }
  CqSession& session_of(const CqContext& cq) const { return owner_.slice->cq_sessions[index_of(cq)]; }
  bool append(CqContext& cq, CqeBuffer& cqe);
  bool place(CqContext& cq, std::uint32_t pi, CqeBuffer& cqe);
  bool write_half(CqContext& cq, std::uint32_t index, const std::byte* bytes, std::uint32_t n);
  bool has_room(CqContext& cq, std::uint32_t ahead = 0);
  void overrun(CqContext& cq);
  void fire(CqContext& cq);
  bool post_special(CqContext& cq, CqeBuffer& cqe, bool solicited);
  bool post_whole(CqContext& cq, CqeBuffer& cqe, bool solicited);
  bool gather(CqContext& cq, CqeBuffer& cqe, bool solicited);
  bool begins(CqContext& cq);
  bool continues(CqContext& cq, const CqeBuffer& cqe);
  bool write_array(CqContext& cq, std::uint32_t pi, std::uint32_t n);
  void announce(CqContext& cq, bool solicited);
  void owe(CqContext& cq, bool solicited);
  void write_eqe(EqContext& eq, std::byte (&eqe)[64]);

  Peer& owner_;
  std::uint32_t me_;
  Deferred& deferred_;
};

}  // namespace verbena::device
