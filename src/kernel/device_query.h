// QUERY_DEVICE commands.
// Threads: under the File's lock.
#pragma once

#include "kernel/method.h"

namespace verbena::kernel {

// device_cap_flags: IB_UVERBS_DEVICE_*.
std::uint32_t capability_flags(const Caps& caps);

int write_query_device(File& file, WriteCall& call);
int write_query_device_ex(File& file, WriteCall& call);

}  // namespace verbena::kernel
