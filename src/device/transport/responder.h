// The responder half of a QP: takes request packets, places data, answers. It runs in the sender's thread, on the
// target's shared context, under the target's rx_lock.
//
// Threads: any.
#pragma once

#include <cstdint>
#include <optional>

#include "device/memory/pieces.h"
#include "device/memory/translate.h"
#include "device/shared/counters.h"
#include "device/shared/nic.h"
#include "device/transport/completion.h"
#include "device/transport/receive_wqe.h"
#include "device/transport/steering.h"
#include "fabric/packet.h"
#include "prm/wire.h"

namespace verbena::device {

// What a packet carries: bytes at offset `at` of a gather list.
struct Payload {
  const PieceList* pieces;
  std::uint64_t at;
  std::uint64_t bytes;
};

enum class Answer : std::uint8_t {
  none,          // dropped: as if the wire had lost it, or nothing to say (UC, UD)
  packet,        // Reply::packet holds an ACK, a NAK or a response
  held,          // UD, frames: no receive WQE yet; the link holds the packet (Responder::drop_if_unwanted)
  source_fault   // the sender's own memory could not be read: its local protection error
};

// Where a connection cuts its messages (path MTU). The record may hold anything.
inline unsigned log_mtu_of(const QpContext& qp) { return qp.log_mtu >= 8 && qp.log_mtu <= 12 ? qp.log_mtu : 10; }

// What it was on the wire: frames, and their octets. Zero: it was no packet (what goes on with a message).
struct Wire {
  std::uint32_t packets = 0;
  std::uint64_t octets = 0;
};

struct Reply {
  fabric::Packet packet;
  Wire wire;
  std::uint8_t log_mtu = 0;  // READ response: where the responder cuts it
  PieceList data;  // READ response: where the bytes lie
};

class Responder {
 public:
  Responder(NicMap& nic, Peer& owner, QpContext& qp, std::uint32_t me, Deferred& deferred)
      : nic_(nic), owner_(owner), qp_(qp), me_(me), deferred_(deferred), complete_(owner, me, deferred) {}

  // Handles one packet; takes and releases rx_lock.
  Answer receive(const fabric::Packet& packet, const Payload& payload, Reply& reply);

  // The port that the next packet comes by (1 and above), and what it is there.
  void arrives(std::uint8_t port, Wire wire) {
    port_ = port;
    wire_ = wire;
  }

  // Where the sender cuts messages: both ends must agree on it.
  void cut_at(unsigned log_mtu) { sender_log_mtu_ = static_cast<std::uint8_t>(log_mtu); }

  // The link has held the packet for as long as it can: the next receive() drops it if there is still no receive WQE,
  // and until one is consumed later packets are not held.
  void drop_if_unwanted() { drop_ = true; }

  // A frame that steering gave to this receive queue (frame.cc); takes and releases rx_lock.
  Answer receive_frame(std::span<const std::byte> frame, const FrameHeaders& headers, const FrameTarget& target);

  // For state changes, with rx_lock held: completes every posted receive WQE with a flush error.
  void flush();

 private:
  enum class Sequence { expected, duplicate, ahead };
  Answer receive_connected(const fabric::Packet& packet, const Payload& payload, Reply& reply);
  Answer receive_datagram(const fabric::Packet& packet, const Payload& payload);
  bool accepts(const fabric::Packet& packet);

  Answer request(prm::BthOperation op, const fabric::Packet& packet, const Payload& payload, Reply& reply);
  Answer send(prm::BthOperation op, const fabric::Packet& packet, const Payload& payload, Reply& reply);
  Answer write(prm::BthOperation op, const fabric::Packet& packet, const Payload& payload, Reply& reply);
  Answer read(const fabric::Packet& packet, Reply& reply);
  Answer atomic(prm::BthOperation op, const fabric::Packet& packet, Reply& reply);
  bool serves_extended(unsigned bytes) const;
  Answer duplicate(prm::BthOperation op, const fabric::Packet& packet, Reply& reply);
  bool in_order(prm::BthOperation op) const;
  Answer not_enabled(Reply& reply);
  bool start_write(const fabric::Packet& packet);
  bool invalidate(std::uint32_t rkey);
  void resync(prm::BthOperation op, const fabric::Packet& packet);

  // Scatters `payload` behind what the message already placed.
  enum class Scatter { ok, too_long, protection, source_fault, gone };
  Scatter scatter(const ReceiveWqe& wqe, std::uint64_t offset, const Payload& payload);
  bool fits_cqe(std::uint64_t bytes, bool only) const;
  void finish_receive(const ReceiveWqe& wqe, const fabric::Packet& packet, prm::CqeOpcode opcode, std::uint64_t bytes,
                      const Payload* into_cqe);
  void receive_error(const ReceiveWqe& wqe, prm::CqeSyndrome syndrome, std::uint8_t vendor);
  void note_outcome(const fabric::Packet& packet, std::uint32_t npsn, bool message_done);

  Answer ack(Reply& reply, std::uint32_t psn);
  Answer nak(Reply& reply, prm::NakCode code);
  Answer rnr(Reply& reply);
  // An error that ends the connection: NAK, the error state, and the event unless a completion has told of it.
  Answer fatal(Reply& reply, prm::NakCode code, bool completed = false);
  void to_error();
  std::uint8_t answer_opcode(prm::BthOperation op) const {
    return prm::bth_opcode(qp_.type == QpType::xrc ? prm::BthService::xrc : prm::BthService::rc, op);
  }

  unsigned log_mtu() const { return log_mtu_of(qp_); }
  std::uint32_t npsn(std::uint64_t bytes) const;
  bool cut_wrong(prm::BthOperation op, const Payload& payload) const;
  bool reliable() const { return is_reliable(qp_.type); }

  // XRC: where the packet says that it wants to be received. False: no such queue, or one of another domain.
  bool find_xrc_queue(std::uint32_t srqn);
  ReceiveQueue receive_queue() {
    return xrc_.srq ? ReceiveQueue(*xrc_.peer, xrc_.index, qp_, me_, *xrc_.complete) : ReceiveQueue(owner_, qp_, me_, complete_);
  }
  // The domain that remote keys must be of: in XRC, the receive queue's.
  std::uint32_t remote_pd() const { return xrc_.srq ? xrc_.srq->pdn : qp_.pdn; }
  // The process whose memory it is about.
  Peer& target() { return xrc_.srq ? *xrc_.peer : owner_; }
  bool post_receive(CqeBuffer& cqe, bool solicited);
  void lost_completion();
  std::uint32_t pd() const { return receive_pd_; }

  NicMap& nic_;
  Peer& owner_;
  QpContext& qp_;
  std::uint32_t me_;
  Deferred& deferred_;
  Completer complete_;
  struct XrcQueue {
    Peer* peer = nullptr;
    const SrqContext* srq = nullptr;  // null: not XRC
    std::uint32_t index = 0;
    std::optional<Completer> complete;
  } xrc_;
  Answer nothing_posted();
  std::uint32_t receive_pd_ = 0;
  bool drop_ = false;
  std::uint8_t port_ = 1;
  std::uint8_t sender_log_mtu_ = 0;  // 0: as ours
  Wire wire_;
  void befell(EventCounter which) { count(nic_.segment(), *owner_.slice, qp_, which); }
  void pass_in();
  void pass_out(const fabric::Packet& request, Reply& reply);
};

}  // namespace verbena::device
