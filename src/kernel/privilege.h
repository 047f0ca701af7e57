// What the process may do.
// Threads: any.
#pragma once

namespace verbena::kernel {

// CAP_NET_RAW, which raw packets and foreign source QP numbers need.
bool may_use_raw_packets();

// CAP_NET_ADMIN, which sees keys in resource lists.
bool may_administer_network();

// CAP_SYS_RAWIO and CAP_NET_RAW: memory of steering tables.
bool may_use_steering_memory();

}  // namespace verbena::kernel
