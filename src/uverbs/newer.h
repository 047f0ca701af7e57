// Numbers of the verbs ABI that are newer than the headers of Debian 12.
// Threads: constants only.
#pragma once

#include <rdma/ib_user_ioctl_cmds.h>
#include <rdma/mlx5_user_ioctl_cmds.h>

#include <cstddef>
#include <cstdint>

namespace verbena::uverbs::newer {

// Of UVERBS_OBJECT_DEVICE: where the data-direct function is in sysfs.
inline constexpr std::uint16_t kGetDataDirectSysfsPath = MLX5_IB_METHOD_QUERY_PORT + 1;
inline constexpr std::uint16_t kDataDirectSysfsPath = 1u << UVERBS_ID_NS_SHIFT;
// Of UVERBS_METHOD_REG_DMABUF_MR: flags of mlx5, and the one there is.
inline constexpr std::uint16_t kRegDmabufAccessFlags = 1u << UVERBS_ID_NS_SHIFT;
inline constexpr std::uint32_t kRegDmabufDataDirect = 1u << 0;

// Of UVERBS_METHOD_GET_CONTEXT: descriptors that grant further rights, an array of int.
inline constexpr std::uint16_t kGetContextFdArr = UVERBS_ATTR_GET_CONTEXT_CORE_SUPPORT + 1;

// Of UVERBS_OBJECT_DEVICE: the speed of a port, in units of 100 Mbit/s.
inline constexpr std::uint16_t kQueryPortSpeed = UVERBS_METHOD_QUERY_GID_ENTRY + 1;
enum QueryPortSpeedAttr : std::uint16_t { kQueryPortSpeedPort, kQueryPortSpeedResp };
// Of the response of UVERBS_METHOD_QUERY_PORT: the speed once more, where it has room for faster ones.
inline constexpr std::size_t kActiveSpeedEx = 4;  // offset behind the legacy part

// UVERBS_OBJECT_DMAH: hints for the caches of the host (PCIe TPH) that memory regions may come with.
inline constexpr std::uint16_t kObjectDmah = UVERBS_OBJECT_ASYNC_EVENT + 1;
enum DmahMethod : std::uint16_t { kDmahAlloc, kDmahFree };
enum AllocDmahAttr : std::uint16_t { kAllocDmahHandle, kAllocDmahCpuId, kAllocDmahMemoryType, kAllocDmahHint };
inline constexpr std::uint16_t kFreeDmahHandle = 0;
inline constexpr unsigned kDmahMemoryTypes = 2;  // volatile, persistent

// UVERBS_OBJECT_DMABUF: a page that can be mapped by the command descriptor, as a dma-buf.
inline constexpr std::uint16_t kObjectDmabuf = kObjectDmah + 1;
inline constexpr std::uint16_t kDmabufAlloc = 0;
enum AllocDmabufAttr : std::uint16_t { kAllocDmabufHandle, kAllocDmabufPage };

// Of UVERBS_OBJECT_MR: every way to register memory in one method.
inline constexpr std::uint16_t kRegMr = UVERBS_METHOD_REG_DMABUF_MR + 1;
enum RegMrAttr : std::uint16_t {
  kRegMrHandle,
  kRegMrPd,
  kRegMrDmah,
  kRegMrIova,
  kRegMrAddress,
  kRegMrLength,
  kRegMrAccess,
  kRegMrFd,
  kRegMrFdOffset,
  kRegMrLkey,
  kRegMrRkey,
};

// Of MLX5_IB_METHOD_VAR_OBJ_ALLOC: what the doorbell page is for.
inline constexpr std::uint16_t kVarAllocFlags = MLX5_IB_ATTR_VAR_OBJ_ALLOC_PAGE_ID + 1;
inline constexpr std::uint32_t kVarAllocTlp = 1u << 0;

}  // namespace verbena::uverbs::newer
