// Flows: what leads Ethernet frames to raw packet QPs.
// Threads: under the File's lock.
#pragma once

#include <rdma/ib_user_ioctl_cmds.h>

#include <memory>
#include <span>
#include <vector>

#include "kernel/file.h"
#include "kernel/flow_tables.h"

namespace verbena::kernel {

struct Counters;
struct Qp;

struct Flow : Object {
  Flow() : Object(UVERBS_OBJECT_FLOW) {}
  int destroy(File& file) override;

  FlowTables* tables = nullptr;              // null: those of what is received
  std::vector<FlowTables::Rule*> rules;      // in them
  std::vector<Object*> under;  // what it stands on: a QP, a matcher, a counter
  Counters* counters = nullptr;
};

// A rule as the specifications of ibv_create_flow() describe it.
struct FlowRequest {
  FlowMatch match;
  FlowVerdict verdict;
  Counters* counters = nullptr;
  bool multicast_only = false;
};
// Reads `count` kernel specifications (ib_uverbs_flow_spec_*). 0 or an errno.
int read_specs(const File& file, std::span<const std::byte> specs, unsigned count, FlowRequest* out);

}  // namespace verbena::kernel
