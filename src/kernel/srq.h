// Shared receive queues.
// Threads: under the File's lock.
#pragma once

#include <rdma/ib_user_ioctl_cmds.h>

#include "kernel/cq.h"
#include "kernel/events.h"
#include "kernel/file.h"
#include "kernel/ib.h"
#include "kernel/pd.h"
#include "kernel/xrcd.h"
#include "prm/command.h"

namespace verbena::kernel {

struct Srq : Object {
  Srq() : Object(UVERBS_OBJECT_SRQ) {}
  int destroy(File& file) override;
  bool track(device::TrackFacts* facts) const override {
    facts->kind = device::TrackKind::srq;
    facts->pd = pd ? pd->track_id() : 0;
    facts->cq = cq ? cq->track_id() : 0;
    facts->type = static_cast<std::uint32_t>(type);
    return true;
  }
  // The device command that made it: a basic one is a receive memory pool to the device.
  prm::Opcode made_by() const {
    return type == SrqType::xrc ? prm::Opcode::create_xrc_srq : prm::Opcode::create_rmp;
  }

  std::uint32_t srqn = 0;
  std::uint32_t entries = 0;
  std::uint32_t max_sge = 0;
  SrqType type = SrqType::basic;
  Pd* pd = nullptr;
  Cq* cq = nullptr;      // XRC
  Xrcd* xrcd = nullptr;  // XRC
  EventCounts reported;
};

}  // namespace verbena::kernel
