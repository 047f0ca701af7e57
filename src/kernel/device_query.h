// QUERY_DEVICE commands.
// Threads: under the File's lock.
#pragma once

#include "kernel/method.h"

namespace verbena::kernel {

int write_query_device(File& file, WriteCall& call);
int write_query_device_ex(File& file, WriteCall& call);

}  // namespace verbena::kernel
