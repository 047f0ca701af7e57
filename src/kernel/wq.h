// Work queues and the tables that receive hashing spreads over them.
// Threads: under the File's lock.
#pragma once

#include <rdma/ib_user_ioctl_cmds.h>

#include <vector>

#include "kernel/cq.h"
#include "kernel/events.h"
#include "kernel/file.h"
#include "kernel/pd.h"

namespace verbena::kernel {

enum class WqState : std::uint32_t { reset = 0, rdy = 1, err = 2 };  // IB_WQS_*

struct Wq : Object {
  Wq() : Object(UVERBS_OBJECT_WQ) {}
  int destroy(File& file) override;

  std::uint32_t rqn = 0;
  WqState state = WqState::reset;
  Pd* pd = nullptr;
  Cq* cq = nullptr;
  EventCounts reported;
};

struct IndTable : Object {
  IndTable() : Object(UVERBS_OBJECT_RWQ_IND_TBL) {}
  int destroy(File& file) override;

  std::uint32_t rqtn = 0;
  std::vector<Wq*> queues;
};

}  // namespace verbena::kernel
