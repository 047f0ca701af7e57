// Numbers of the verbs ABI that are newer than the headers of Debian 12.
// Threads: constants only.
#pragma once

#include <rdma/ib_user_ioctl_cmds.h>
#include <rdma/mlx5_user_ioctl_cmds.h>

#include <cstdint>

namespace verbena::uverbs::newer {

// Of UVERBS_OBJECT_DEVICE: where the data-direct function is in sysfs.
inline constexpr std::uint16_t kGetDataDirectSysfsPath = MLX5_IB_METHOD_QUERY_PORT + 1;
inline constexpr std::uint16_t kDataDirectSysfsPath = 1u << UVERBS_ID_NS_SHIFT;
// Of UVERBS_METHOD_REG_DMABUF_MR: flags of mlx5, and the one there is.
inline constexpr std::uint16_t kRegDmabufAccessFlags = 1u << UVERBS_ID_NS_SHIFT;
inline constexpr std::uint32_t kRegDmabufDataDirect = 1u << 0;

}  // namespace verbena::uverbs::newer
