// Counters of the verbs: points of flows that count, and where a program finds them in what it reads.
// Threads: under the File's lock.
#pragma once

#include <rdma/ib_user_ioctl_cmds.h>

#include <cstdint>
#include <vector>

#include "kernel/file.h"

namespace verbena::kernel {

struct Counters : Object {
  Counters() : Object(UVERBS_OBJECT_COUNTERS) {}
  int destroy(File& file) override;

  struct Point {
    std::uint32_t description;  // 0: packets, 1: bytes
    std::uint32_t index;        // in the array that is read
  };
  std::uint32_t number = 0;    // of the flow counter; 0: not made yet
  std::vector<Point> points;   // while it is bound to a flow
  std::uint32_t end = 0;       // one above the highest index
};

// Binds the counters to one more flow: the first brings the points (`driver`), the others none. 0 or an errno.
int bind_counters(File& file, Counters& counters, const uverbs::Udata& driver);
// The flow goes.
void unbind_counters(Counters& counters);

}  // namespace verbena::kernel
