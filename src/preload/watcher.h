// A thread for programs that write WQEs and doorbell records by hand (UCX, DPDK, direct verbs): they call nothing that
// could be hooked, so somebody has to look at their send doorbell records from time to time.
//
// Threads: any.
#pragma once

namespace verbena::preload {

// From now on the queues of the context behind `fd` are watched, until the descriptor is closed.
void watch(int fd);
void stop_watching(int fd);

}  // namespace verbena::preload
