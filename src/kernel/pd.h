// Protection domains.
// Threads: under the File's lock.
#pragma once

#include <rdma/ib_user_ioctl_cmds.h>

#include "kernel/file.h"

namespace verbena::kernel {

struct Pd : Object {
  Pd() : Object(UVERBS_OBJECT_PD) {}
  int destroy(File& file) override;
  bool track(device::TrackFacts* facts) const override {
    facts->kind = device::TrackKind::pd;
    return true;
  }
  std::uint32_t pdn = 0;
};

}  // namespace verbena::kernel
