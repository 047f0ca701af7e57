// Completion queues.
// Threads: under the File's lock.
#pragma once

#include <rdma/ib_user_ioctl_cmds.h>

#include "kernel/events.h"
#include "kernel/file.h"

namespace verbena::kernel {

struct Cq : Object {
  Cq() : Object(UVERBS_OBJECT_CQ) {}
  int destroy(File& file) override;
  bool track(device::TrackFacts* facts) const override {
    facts->kind = device::TrackKind::cq;
    facts->entries = entries - 1;
    return true;
  }

  std::uint32_t cqn = 0;
  std::uint32_t entries = 0;  // of the ring; programs see one less
  std::uint32_t cqe_size = 64;
  bool padded = false;        // entries of 128 bytes are written whole
  EventCounts reported;       // filled by destroy()
  std::uint64_t doorbell = 0; // address of the doorbell record
  std::uint32_t seen_arm = 0; // arm word that serve_watched() saw last
};

}  // namespace verbena::kernel
