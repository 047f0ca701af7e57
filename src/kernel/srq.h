// Shared receive queues.
// Threads: under the File's lock.
#pragma once

#include <rdma/ib_user_ioctl_cmds.h>

#include "kernel/events.h"
#include "kernel/file.h"
#include "kernel/ib.h"
#include "kernel/pd.h"

namespace verbena::kernel {

struct Srq : Object {
  Srq() : Object(UVERBS_OBJECT_SRQ) {}
  int destroy(File& file) override;
  bool track(device::TrackFacts* facts) const override {
    facts->kind = device::TrackKind::srq;
    facts->pd = pd ? pd->track_id() : 0;
    facts->type = static_cast<std::uint32_t>(SrqType::basic);
    return true;
  }

  std::uint32_t srqn = 0;
  std::uint32_t entries = 0;
  std::uint32_t max_sge = 0;
  Pd* pd = nullptr;
  EventCounts reported;
};

}  // namespace verbena::kernel
