// DEVX objects: what a program made with the device's own commands.
// Threads: under the File's lock.
#pragma once

#include <rdma/mlx5_user_ioctl_cmds.h>

#include <vector>

#include "kernel/devx_rules.h"
#include "kernel/dmabuf.h"
#include "kernel/file.h"

namespace verbena::kernel {

struct DevxObject : Object {
  DevxObject() : Object(MLX5_IB_OBJECT_DEVX_OBJ) {}
  int destroy(File& file) override;

  ObjectId id;
  std::vector<std::byte> undo;      // the request that destroys it
  std::uint32_t counters = 0;       // flow counters: how many in a row
  std::uint64_t doorbell = 0;       // QP, CQ: address of its doorbell record; 0: none
  std::uint32_t seen_doorbell = 0;  // its second word as serve_watched() saw it last
};

struct DevxUmem : Object {
  DevxUmem() : Object(MLX5_IB_OBJECT_DEVX_UMEM) {}
  int destroy(File& file) override;

  std::uint32_t id = 0;
  std::unique_ptr<DmaBuf> dmabuf;
};

// In whose name a command goes to the device: the user context of `file`, or the driver's own if that has none and the
// command is open to all. EINVAL: it has none and needs one.
int command_uid(File& file, Mailbox in, std::uint16_t* uid);
// The same of a command about an object.
int object_command_uid(File& file, Mailbox in, std::uint16_t* uid);

}  // namespace verbena::kernel
