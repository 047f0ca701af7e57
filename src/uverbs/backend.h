// Seam A: how the library reaches "the kernel".
//
// A Backend is a table of calls with the meaning of open(2), ioctl(2), mmap(2) and close(2) on
// /dev/infiniband/uverbsN. Two exist: kernel_backend() (real system calls) and the embedded one, where the
// same requests are answered in process. The library never knows which it talks to, except through the
// optional members at the end, which are null on a real kernel.
//
// Threads: every call may be made from any thread.
#pragma once

#include <cstddef>
#include <cstdint>

struct ib_uverbs_ioctl_hdr;

namespace verbena::uverbs {

// uverbs0 as Linux numbers it; the others follow.
inline constexpr unsigned kUverbsMajor = 231, kUverbsFirstMinor = 192;

inline constexpr std::uint32_t kBackendAbi = 4;

// What device discovery learns about one uverbs node (sysfs class/infiniband_verbs on a real kernel).
struct DeviceInfo {
  char ibdev_name[64];    // "mlx5_0"
  char uverbs_name[64];   // "uverbs0"
  char ibdev_path[256];   // "/sys/class/infiniband/mlx5_0"
  char uverbs_path[256];  // "/sys/class/infiniband_verbs/uverbs0"
  char modalias[128];     // "pci:v000015B3d00001021sv...": the provider is chosen by it
  std::uint64_t node_guid_be;
  std::uint32_t vendor_id;
  std::uint32_t device_id;
  std::uint32_t abi_version;  // of the driver (1 for mlx5)
  std::int32_t index;         // ibv_get_device_index(); -1 if unknown
  std::uint8_t node_type;     // IBV_NODE_CA
};

struct Backend {
  std::uint32_t abi;  // kBackendAbi

  // Number of devices now present, or a negative errno.
  int (*device_count)();
  // Fills *out for device `index`; 0 or a negative errno.
  int (*device_info)(int index, DeviceInfo* out);
  // Reads a sysfs attribute ("<ibdev_path>/ports/1/gids/0"), without the trailing newline.
  // Returns the length, or -1 with errno set.
  int (*read_sysfs)(const char* dir, const char* file, char* buffer, std::size_t size);
  // Opens the uverbs node of device `index`. Returns a file descriptor or -1 with errno set.
  int (*open)(int index);
  // Which device a command descriptor (or a dup of one, for ibv_import_device) belongs to; -1 with errno if none.
  int (*device_of)(int fd);
  // RDMA_VERBS_IOCTL on it. Returns 0, or -1 with errno set.
  int (*ioctl)(int fd, ib_uverbs_ioctl_hdr* request);
  // mmap(2)/munmap(2) with the driver's offsets. MAP_FAILED and errno on error.
  void* (*mmap)(void* addr, std::size_t length, int prot, int flags, int fd, std::int64_t offset);
  int (*munmap)(void* addr, std::size_t length);
  // Closes a descriptor that open() or a request returned.
  int (*close)(int fd);

  // ---- embedded device only; null on a real kernel ----

  // Page-aligned memory for rings and doorbell records that every process on the machine can reach, so that a
  // peer completes work without this process's help. Zeroed. It is in the arena of the device that `fd` belongs to and
  // stays there when `fd` is closed. Null with errno when there is none left.
  void* (*alloc_dma)(int fd, std::size_t length);
  void (*free_dma)(void* addr, std::size_t length);

  // A token for ring_sq()/arm_cq(); stays valid until the object is destroyed. Null if there is no such object.
  void* (*sq_token)(int fd, std::uint32_t qpn);
  void* (*cq_token)(int fd, std::uint32_t cqn);
  // The send doorbell record was advanced: run the device now, in this thread.
  void (*ring_sq)(void* token);
  // The CQ's arm doorbell record was written: raise the event at once if a CQE newer than it is there already.
  void (*arm_cq)(void* token);
  // Address of a word that is nonzero while step() has something to do (timers that came due, budgeted
  // work left over, packets from peers). Polling loops test it and call step().
  const std::uint32_t* (*pending)(int fd);
  void (*step)(int fd);

  // For programs whose libibverbs is not ours (src/preload); may be null.
  // As cq_token, by the handle of the CQ in `fd`'s context, which is all that its public structure tells.
  void* (*cq_token_by_handle)(int fd, std::uint32_t handle);

  // The program was given the rings of this send queue (or CQ) and may write WQEs, doorbell and arm records by hand:
  // a thread looks at the records from now on, and so does step(). Until the object is destroyed. 0 or an errno.
  int (*watch_sq)(int fd, std::uint32_t handle);
  int (*watch_cq)(int fd, std::uint32_t handle);

  // A datagram that was sent to the kernel through a NETLINK_RDMA socket of port `port` (`capped`: NETLINK_CAP_ACK).
  // Each datagram of the answer is handed to `sink`.
  void (*netlink)(const void* datagram, std::size_t length, std::uint32_t port, bool capped, void* argument,
                  void (*sink)(void* argument, const void* datagram, std::size_t length));
};

// Real system calls on the host's own /dev/infiniband.
const Backend& kernel_backend();

// What the library uses in this process, chosen once: VERBENA_MODE=kernel|embedded, or by default the kernel
// if the host has an mlx5 uverbs node and the embedded device if not. Where there is a virtual node (src/preload), which
// holds the embedded device itself, it is the kernel's in any case. Null with errno if neither can be had.
const Backend* backend();

}  // namespace verbena::uverbs

// Exported by libverbena-nic.so, which backend.cc loads from the folder of libibverbs.so.1.
// Returns null if `abi` is not the one it speaks.
extern "C" const verbena::uverbs::Backend* verbena_embedded_backend(std::uint32_t abi);
