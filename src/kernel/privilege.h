// What the process may do.
// Threads: any.
#pragma once

namespace verbena::kernel {

// CAP_NET_RAW, which raw packets and foreign source QP numbers need.
bool may_use_raw_packets();

}  // namespace verbena::kernel
