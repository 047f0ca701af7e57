// The user context: GET_CONTEXT and its answer.
// Threads: under the File's lock.
#pragma once

#include "kernel/file.h"

namespace verbena::kernel {

// Makes a DEVX identity. 0 or an errno.
int create_uctx(File& file, std::uint16_t* uid);

// Gives back the DEVX identity of a context.
void destroy_uctx(File& file);

// The transport domain of the context's raw packet queues, made when the first of them is. 0 or an errno.
int transport_domain(File& file, std::uint32_t* domain);
void give_back_transport_domain(File& file);

// The page with which a program turns device timestamps into wall-clock time.
int publish_clock(File& file);

}  // namespace verbena::kernel
