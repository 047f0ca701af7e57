// Device memory.
// Threads: under the File's lock.
#pragma once

#include <rdma/ib_user_ioctl_cmds.h>

#include <map>

#include "kernel/file.h"

namespace verbena::kernel {

struct Dm : Object {
  Dm() : Object(UVERBS_OBJECT_DM) {}
  int destroy(File& file) override;

  std::uint64_t address = 0;  // in the BAR
  std::uint64_t length = 0;   // as asked for
  std::uint32_t bytes = 0;    // as allocated
  std::uint32_t page = 0, pages = 0;
  std::uint64_t offset = 0;  // of its mapping

  // An operation that a program asked for the addresses of.
  struct Operation {
    std::uint64_t address;  // in the BAR
    std::uint64_t offset;   // of its mapping
  };
  std::map<std::uint8_t, Operation> operations;
};

}  // namespace verbena::kernel
