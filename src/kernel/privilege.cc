#include "kernel/privilege.h"

#include <linux/capability.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace verbena::kernel {

namespace {

bool has_capability(unsigned capability) {
  __user_cap_header_struct header{_LINUX_CAPABILITY_VERSION_3, 0};
  __user_cap_data_struct data[_LINUX_CAPABILITY_U32S_3]{};
  if (syscall(SYS_capget, &header, data)) return false;
  return data[CAP_TO_INDEX(capability)].effective & CAP_TO_MASK(capability);
}

}  // namespace

bool may_use_raw_packets() { return has_capability(CAP_NET_RAW); }

bool may_administer_network() { return has_capability(CAP_NET_ADMIN); }

bool may_use_steering_memory() { return has_capability(CAP_SYS_RAWIO) && has_capability(CAP_NET_RAW); }

}  // namespace verbena::kernel
