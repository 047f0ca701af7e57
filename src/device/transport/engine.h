// The transport engine of one attached NIC: runs send queues, answers packets, writes completions and events.
//
// Requests are delivered synchronously: the sender's thread runs the responder on the target's shared context.
// What cannot finish at once (RNR, loss, budget) continues from step(), which pollers call while *pending() is
// nonzero and which the helper thread runs otherwise.
//
// Threads: any thread may call anything. No call may be made while holding a context's lock.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "device/shared/nic.h"

namespace verbena::device {

class Shaping;

class Engine {
 public:
  explicit Engine(Nic& nic);
  ~Engine();
  Engine(const Engine&) = delete;
  Engine& operator=(const Engine&) = delete;

  // ---- doorbells ----
  void ring_sq(QpContext& qp);
  // The CQ's arm record was written: raises the event now if a newer CQE is there, else with the next one.
  void arm_cq(CqContext& cq);
  // The CQ's moderation has changed: what it owes is reckoned anew.
  void moderate(CqContext& cq);
  // Compressed CQEs: lets the program see what a sender is still gathering. And how many CQs of this process there are
  // whose senders may be killed, or stopped, while they do so (one more, one less): the helper thread looks after them.
  void close_session(CqContext& cq);
  void watch_sessions(int change);
  void eq_doorbell(EqContext& eq, std::uint32_t ci, bool arm);
  const std::uint32_t* pending() const;
  void step();

  // ---- life of a QP, called by commands ----
  // Empties both queues and puts the QP into `state` (rst at creation and 2RST): indices, PSNs and timers to zero.
  void reset(QpContext& qp, QpState state = QpState::rst);
  // Any other state change. `update` changes attributes (may be null); it runs under both locks, before the state
  // does. Side effects by target state: rtr arms the responder, rts/resume kicks the SQ (also from sqd and sqer),
  // sqd drains (SQ_DRAINED event once nothing is in flight, if `sqd_event`), sqer flushes the SQ, err flushes both.
  void set_state(QpContext& qp, QpState state, const std::function<void(QpContext&)>& update = nullptr,
                 bool sqd_event = false);
  void move_to_error(QpContext& qp) { set_state(qp, QpState::err); }
  // Before Nic::free_qp: forgets timers and list entries.
  void remove(QpContext& qp);

  // ---- events ----
  // Called when an EQ of `vector` got entries; any thread that runs the engine, no locks held. Set once.
  void set_interrupt_handler(std::function<void(unsigned vector)> handler);
  // Writes an EQE about `number` (QPN, CQN or SRQN, by the type) into the EQ whose mask takes `type`.
  void raise_event(std::uint8_t type, std::uint8_t sub_type, std::uint32_t number);
  // A port event (PORT_CHANGE with sub type) for `port` (1-based).
  void raise_port_event(std::uint8_t sub_type, unsigned port);
  // ARM_RQ set srq.limit: raises the limit event at once if the SRQ already holds fewer WQEs.
  void check_srq_limit(SrqContext& srq);

  // ---- memory that commands touch ----
  // A range of user memory was registered, or is so no more (the same range): promotion goes by that.
  void registered(std::uint64_t va, std::uint64_t length);
  void unregistered(std::uint64_t va, std::uint64_t length);

  // Rates and scheduling elements. A QP whose own choice of them changes goes through set_state().
  Shaping& shaping();

  // Frames go to this capture file at path MTU; empty: off. Affects QPs at their next packet.
  static void set_capture(const std::string& file);

  // ---- threads ----
  void start_helper();
  // In the child of a fork: forgets the helper thread and everything else without touching the parent's objects.
  void abandon_in_child();

  class Impl;
  Impl& impl() { return *impl_; }

 private:
  std::unique_ptr<Impl> impl_;
};

}  // namespace verbena::device
