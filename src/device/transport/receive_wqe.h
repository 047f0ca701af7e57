// Taking receive WQEs from a QP's own receive ring or from its SRQ.
// Threads: under the QP's rx_lock; takes the SRQ's lock itself.
#pragma once

#include <cstdint>

#include "device/shared/nic.h"
#include "device/transport/completion.h"

namespace verbena::device {

struct ReceiveWqe {
  static constexpr unsigned kMaxSges = 64;
  struct Sge {
    std::uint64_t va;
    std::uint32_t lkey;
    std::uint32_t length;
  };
  std::uint16_t index;      // what the CQE's wqe_counter says
  std::uint16_t count;
  std::uint32_t pdn;        // domain its keys must be of
  std::uint64_t capacity;   // bytes
  Sge sge[kMaxSges];
};

class ReceiveQueue {
 public:
  ReceiveQueue(Peer& owner, QpContext& qp, std::uint32_t me, Completer& complete)
      : owner_(owner), qp_(qp), me_(me), complete_(complete), srq_(qp.srq) {}
  // XRC: the queue `srq` of a process that need not be the QP's; `complete` is that process's.
  ReceiveQueue(Peer& owner, std::uint32_t srq, QpContext& qp, std::uint32_t me, Completer& complete)
      : owner_(owner), qp_(qp), me_(me), complete_(complete), srq_(srq) {}

  // The WQE of the message in progress: takes a new one if it has none yet. False: none posted.
  bool current(ReceiveWqe& wqe);
  // The message is done with it.
  void release();
  // A WQE is posted (RQ) or was taken (any).
  bool uses_srq() const { return srq_ != ~0u; }

 private:
  bool take_from_srq();
  bool read_ahead(std::uint64_t va, unsigned each);
  bool parse(std::uint64_t va, unsigned bytes, bool srq, ReceiveWqe& wqe);

  Peer& owner_;
  QpContext& qp_;
  std::uint32_t me_;
  Completer& complete_;
  const std::uint32_t srq_;  // ~0: the QP's own ring
};

// Number of WQEs posted to a ring and not yet consumed, by its doorbell record; 0 if the record is absurd.
std::uint32_t posted(Peer& owner, const Ring& ring, std::uint64_t dbrec_va, std::uint16_t consumed,
                     std::uint16_t* producer = nullptr);

}  // namespace verbena::device
