// The sysfs attributes of an embedded device.
// Threads: any.
#pragma once

#include <optional>
#include <string>

#include "kernel/node.h"

namespace verbena::nic {

inline constexpr char kIbdevRoot[] = "/sys/class/infiniband/mlx5_";
inline constexpr char kUverbsRoot[] = "/sys/class/infiniband_verbs/uverbs";

std::string modalias(const device::Profile& profile);
std::string guid_text(std::uint64_t guid_be);

// Content of attribute `file` (a path below /sys/class/infiniband/mlx5_N) or an errno.
struct Attribute {
  int error = 0;
  std::string text;
};
Attribute ibdev_attribute(kernel::Node& node, const std::string& file);
// The same below /sys/class/infiniband_verbs/uverbsN.
Attribute uverbs_attribute(kernel::Node& node, const std::string& file);

}  // namespace verbena::nic
