// What RQ and SQ of Ethernet frames have in common: three states (rst, rdy, err) of the live queue's.
// Threads: plain values.
#pragma once

#include <atomic>

#include "device/shared/contexts.h"

namespace verbena::device::command {

// QueueState: prm::RqState, prm::SqState.
template <class QueueState>
QueueState state_of(const QpContext& queue) {
  switch (static_cast<QpState>(queue.state.load(std::memory_order_acquire))) {
    case QpState::rst:
      return QueueState::rst;
    case QpState::rts:
      return QueueState::rdy;
    default:
      return QueueState::err;
  }
}

// Whether a queue in state `from` can be told to be in state `to`: in any that there is, but ERR becomes RDY by way of RST.
template <class QueueState>
bool may_become(QueueState from, QueueState to) {
  return to == QueueState::rst || to == QueueState::err || (to == QueueState::rdy && from != QueueState::err);
}

template <class QueueState>
QpState live_state(QueueState state) {
  return state == QueueState::rst ? QpState::rst : state == QueueState::rdy ? QpState::rts : QpState::err;
}

}  // namespace verbena::device::command
