#include "tests/unit/preload/stub_nic.h"

#include <errno.h>
#include <rdma/rdma_user_ioctl_cmds.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <map>
#include <mutex>
#include <string>

namespace verbena::preload::testing {
namespace {

constexpr int kDevices = 2;
std::mutex lock;
std::map<ino_t, int> nodes;

ino_t identity(int fd) {
  struct stat status;
  return fstat(fd, &status) == 0 ? status.st_ino : 0;
}

int device_count() { return kDevices; }

int device_info(int index, uverbs::DeviceInfo* out) {
  if (index < 0 || index >= kDevices) return -ENODEV;
  *out = {};
  snprintf(out->ibdev_name, sizeof out->ibdev_name, "mlx5_%d", index);
  snprintf(out->uverbs_name, sizeof out->uverbs_name, "uverbs%d", index);
  snprintf(out->ibdev_path, sizeof out->ibdev_path, "/sys/class/infiniband/mlx5_%d", index);
  snprintf(out->uverbs_path, sizeof out->uverbs_path, "/sys/class/infiniband_verbs/uverbs%d", index);
  snprintf(out->modalias, sizeof out->modalias, "pci:v000015B3d00001021sv000015B3sd00000000bc02sc00i00");
  out->vendor_id = 0x2c9;
  out->device_id = 0x1021;
  out->abi_version = 1;
  out->index = index;
  out->node_type = 1;
  return 0;
}

int read_sysfs(const char* dir, const char* file, char* buffer, std::size_t size) {
  static const std::map<std::string, std::string> attributes = {
      {"node_type", "1: CA"},         {"node_guid", "0200:00ff:fe00:0001"}, {"fw_ver", "28.43.1014"},
      {"ports/1/state", "4: ACTIVE"}, {"ports/1/link_layer", "Ethernet"},   {"ports/1/pkeys/0", "0xffff"},
      {"device/numa_node", "0"},
  };
  std::string value;
  if (const auto found = attributes.find(file); found != attributes.end()) {
    value = found->second;
  } else if (unsigned index = 0; sscanf(file, "ports/1/gids/%u", &index) == 1 && index < 5) {
    // Changes with every read, to tell a fresh value from one kept in a file.
    static unsigned reads = 0;
    char text[64];
    snprintf(text, sizeof text, "fe80:0000:0000:0000:%04x:0000:0000:%04x", reads++ & 0xffff, index);
    value = text;
  } else if (sscanf(file, "ports/1/gid_attrs/types/%u", &index) == 1 && index < 5) {
    errno = EINVAL;  // as the kernel says of an index that is not in use
    return -1;
  } else {
    errno = ENOENT;
    return -1;
  }
  if (!strstr(dir, "mlx5_")) errno = ENOENT;
  if (!strstr(dir, "mlx5_")) return -1;
  snprintf(buffer, size, "%s", value.c_str());
  return static_cast<int>(value.size());
}

int open_node(int index) {
  const int fd = memfd_create("node", MFD_CLOEXEC);
  if (fd < 0) return -1;
  const std::lock_guard guard(lock);
  nodes[identity(fd)] = index;
  return fd;
}

int device_of(int fd) {
  const std::lock_guard guard(lock);
  const auto found = nodes.find(identity(fd));
  if (found != nodes.end()) return found->second;
  errno = EBADF;
  return -1;
}

int handle_ioctl(int, ib_uverbs_ioctl_hdr* request) {
  errno = request->method_id == 77 ? ENOSPC : EPROTONOSUPPORT;
  return -1;
}

}  // namespace

const uverbs::Backend& stub_backend() {
  static const uverbs::Backend backend = [] {
    uverbs::Backend table{};
    table.abi = uverbs::kBackendAbi;
    table.device_count = device_count;
    table.device_info = device_info;
    table.read_sysfs = read_sysfs;
    table.open = open_node;
    table.device_of = device_of;
    table.ioctl = handle_ioctl;
    table.close = [](int fd) { return close(fd); };
    return table;
  }();
  return backend;
}

}  // namespace verbena::preload::testing

extern "C" __attribute__((visibility("default"))) const verbena::uverbs::Backend* verbena_embedded_backend(
    std::uint32_t abi) {
  return abi == verbena::uverbs::kBackendAbi ? &verbena::preload::testing::stub_backend() : nullptr;
}
