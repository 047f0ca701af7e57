// The driver's e-switch in switchdev mode: what it knows of the vport behind a port.
// Threads: any.
#pragma once

#include <rdma/mlx5_user_ioctl_verbs.h>

#include "kernel/node.h"

namespace verbena::kernel {

// Fills what MLX5_IB_METHOD_QUERY_PORT tells of `port` (from 1, a valid one) in switchdev mode, and its flags. 0 or an
// errno: the device's refusals as mlx5_core reports them.
int fill_switchdev_info(Node& node, unsigned port, mlx5_ib_uapi_query_port* info);

}  // namespace verbena::kernel
