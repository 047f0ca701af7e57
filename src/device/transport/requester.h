// The requester half of a QP: executes send WQEs, makes packets, takes answers, retries.
// Threads: one at a time, under the QP's sq_lock; lives for one kick.
#pragma once

#include "device/transport/impl.h"
#include "device/transport/steering.h"
#include "fabric/frame.h"

namespace verbena::device {

class Requester {
 public:
  Requester(Engine::Impl& engine, QpContext& qp, QpLocal& local, Deferred& deferred)
      : engine_(engine),
        nic_(engine.nic()),
        self_(engine.nic().self()),
        qp_(qp),
        local_(local),
        deferred_(deferred),
        complete_(self_, engine.me(), deferred) {}

  Progress run();

 private:
  enum class Step : std::uint8_t { next, again, wait, failed };
  Step execute();
  Step send_or_write();
  Step read();
  Step atomic();
  Step datagram();
  Step frame();
  Step local_operation();
  Step take(Answer answer, std::uint32_t npsn);
  Step take_nak(std::uint8_t syndrome);
  Step lost();
  Step hold();
  Step rnr(unsigned timer_code);
  Step error(prm::CqeSyndrome syndrome, std::uint8_t vendor);
  bool timer_due();
  Step timer_expired();

  std::uint32_t posted_blocks();
  bool begin();
  void finish(std::uint64_t bytes = 0, const std::byte* inline_data = nullptr);
  Answer deliver(const Payload& payload, bool traced = true);
  // frame.cc
  Answer distribute(std::span<const std::byte> frame, const FrameHeaders& headers);
  Answer offer(NicMap& nic, std::span<const std::byte> frame, const FrameHeaders& headers);
  Answer offer_again(std::span<const std::byte> frame, const FrameHeaders& headers);
  bool held_long_enough() const;
  void send_multicast(const Payload& payload, const Way& way);
  void fill_common(prm::BthOperation op);
  unsigned log_mtu() const { return log_mtu_of(qp_); }
  std::uint32_t npsn(std::uint64_t bytes) const {
    return bytes == 0 ? 1 : static_cast<std::uint32_t>((bytes + (1u << log_mtu()) - 1) >> log_mtu());
  }
  std::uint64_t max_payload() const;
  std::uint64_t longest_message() const;
  bool fits_cqe(std::uint64_t bytes) const;
  // requester_pace.cc: may the packet not leave yet? Then a timer or a turn will kick the QP. READ: the same for the
  // response, which goes in the name of the responder's element.
  bool held_back(const Way* way, std::uint64_t payload) {
    return qp_.shaped != 0 && must_wait(way, payload, qp_.path.stat_rate);
  }
  bool must_wait(const Way* way, std::uint64_t payload, unsigned stat_rate);
  Rate own_rate(unsigned stat_rate) const;
  std::uint32_t responder_leaf() const {
    const QpContext* remote = local_.remote;
    return remote != nullptr ? remote->responder_leaf.load(std::memory_order_relaxed) : 0;
  }
  std::uint64_t shaped_response(std::uint32_t leaf, std::uint64_t left) const;
  bool response_held_back(std::uint32_t leaf, std::uint64_t bytes);
  std::uint64_t shaped_payload(std::uint64_t quantum) const;
  std::uint64_t shaped_quantum() const;
  // The QP has sent, or got as an answer.
  static void pass(Traffic& sum, Wire wire) {
    add_alone(sum.packets, wire.packets);
    add_alone(sum.octets, wire.octets);
  }
  void passed_out(unsigned port, Wire wire) { pass(qp_.requests[(port - 1) % kMaxPorts].out, wire); }
  void passed_in(unsigned port, Wire wire) { pass(qp_.requests[(port - 1) % kMaxPorts].in, wire); }
  Wire wire_of(const Way& way, std::uint64_t payload) const {
    const std::uint32_t packets = npsn(payload);
    return {packets, fabric::message_bytes(way.address.carrier, packet_.opcode, payload, packets)};
  }
  // Whether flow tables of RoCE packets let it through; of a process, arriving or leaving.
  bool passes(Peer& owner, RoceWay way, const fabric::Address& address, bool back, Wire wire) const {
    return device::passes(owner, way, address, back, wire.packets, wire.octets, engine_.me());
  }
  void befell(EventCounter which) { count(nic_.segment(), *self_.slice, qp_, which); }
  std::uint64_t bytes_on_wire(const Way* way, std::uint8_t opcode, std::uint64_t payload) const;
  void trace_answer(fabric::Packet packet, const Payload& payload, TracePart part);

  Engine::Impl& engine_;
  Nic& nic_;
  Peer& self_;
  QpContext& qp_;
  QpLocal& local_;
  Deferred& deferred_;
  Completer complete_;

  SendWqe wqe_;
  bool have_wqe_ = false;
  bool gathered_ = false;
  bool resumed_ = false;            // after its own rate's pause: what came late may be made up for
  bool timed_out_ = false;          // the transport timer ran out: the packet is sent again
  PieceList local_memory_;   // what the WQE's data segments say
  fabric::Packet packet_;
  Reply reply_;
  std::int64_t budget_bytes_ = 4096 << 10;
  int budget_wqes_ = 64;
};

// WQEBBs of a send queue that are posted and not yet executed.
std::uint32_t posted_sends(Peer& self, const QpContext& qp);

// UMR and LOCAL_INVAL work requests; false: the bind failed (CqeSyndrome::mw_bind_err).
bool execute_umr(Nic& nic, QpContext& qp, const SendWqe& wqe);
bool execute_local_invalidate(Nic& nic, QpContext& qp, std::uint32_t key);

}  // namespace verbena::device
