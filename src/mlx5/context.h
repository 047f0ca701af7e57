// Opening a device.
//
// Threads: any.
#pragma once

#include "mlx5/types.h"

namespace verbena::mlx5 {

// private_data: mlx5dv_context_attr of mlx5dv_open_device(), or null.
verbs::Context* alloc_context(verbs::Device* device, int cmd_fd, void* private_data);
verbs::Context* import_context(verbs::Device* device, int cmd_fd);

}  // namespace verbena::mlx5
