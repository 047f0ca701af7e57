// Port attributes as the verbs report them.
// Threads: any.
#pragma once

#include <rdma/ib_user_ioctl_verbs.h>
#include <rdma/ib_user_verbs.h>

#include "kernel/node.h"

namespace verbena::kernel {

// Width and speed codes that add up to the profile's link rate.
struct LinkRate {
  std::uint8_t width;  // IB_WIDTH_*
  std::uint8_t speed;  // IB_SPEED_*
  const char* name;    // as sysfs says it
};
LinkRate link_rate(unsigned gbps);

// 0 or an errno; EINVAL if there is no such port.
int query_port(Node& node, unsigned port, ib_uverbs_query_port_resp* out);

}  // namespace verbena::kernel
