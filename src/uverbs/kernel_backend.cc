// The backend of a real kernel: system calls on /dev/infiniband, discovery by sysfs.
#include <dirent.h>
#include <endian.h>
#include <fcntl.h>
#include <rdma/rdma_user_ioctl_cmds.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

#include "uverbs/backend.h"

namespace verbena::uverbs {
namespace {

const char* sysfs_root() {
  const char* given = getuid() == geteuid() ? std::getenv("SYSFS_PATH") : nullptr;
  return given && *given ? given : "/sys";
}

int read_sysfs(const char* dir, const char* file, char* buffer, std::size_t size) {
  std::string path = std::string(dir) + '/' + file;
  int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) return -1;
  ssize_t length = ::read(fd, buffer, size);
  int error = errno;
  ::close(fd);
  errno = error;
  if (length > 0 && buffer[length - 1] == '\n') --length;
  return static_cast<int>(length);
}

// An attribute as text; empty if there is none.
std::string attribute(const std::string& dir, const char* file) {
  char buffer[256];
  int length = read_sysfs(dir.c_str(), file, buffer, sizeof buffer);
  return length > 0 ? std::string(buffer, static_cast<std::size_t>(length)) : std::string();
}

// uverbs nodes in the order of their numbers.
std::vector<std::string> uverbs_nodes() {
  std::vector<std::string> names;
  std::string dir = std::string(sysfs_root()) + "/class/infiniband_verbs";
  if (DIR* stream = ::opendir(dir.c_str())) {
    while (const dirent* entry = ::readdir(stream))
      if (std::strncmp(entry->d_name, "uverbs", 6) == 0) names.emplace_back(entry->d_name);
    ::closedir(stream);
  }
  std::sort(names.begin(), names.end(), [](const std::string& a, const std::string& b) {
    return a.size() != b.size() ? a.size() < b.size() : a < b;
  });
  return names;
}

void copy_text(char* to, std::size_t size, const std::string& from) {
  std::size_t length = std::min(size - 1, from.size());
  std::memcpy(to, from.data(), length);
  to[length] = '\0';
}

std::uint64_t parse_guid(const std::string& text) {
  unsigned parts[4];
  if (std::sscanf(text.c_str(), "%4x:%4x:%4x:%4x", &parts[0], &parts[1], &parts[2], &parts[3]) != 4) return 0;
  std::uint64_t guid = 0;
  for (unsigned part : parts) guid = guid << 16 | part;
  return guid;
}

// Hexadecimal digits that follow `key` in a modalias ("pci:v000015B3d00001021sv...").
std::uint32_t modalias_id(const std::string& modalias, char key) {
  std::size_t at = modalias.rfind("pci:", 0) == 0 ? modalias.find(key, 4) : std::string::npos;
  if (at == std::string::npos || modalias.size() < at + 9) return 0;
  return static_cast<std::uint32_t>(std::strtoul(modalias.substr(at + 1, 8).c_str(), nullptr, 16));
}

int device_count() { return static_cast<int>(uverbs_nodes().size()); }

int device_info(int index, DeviceInfo* out) {
  std::vector<std::string> nodes = uverbs_nodes();
  if (index < 0 || static_cast<std::size_t>(index) >= nodes.size()) return -ENODEV;
  const std::string& node = nodes[static_cast<std::size_t>(index)];
  std::string uverbs_path = std::string(sysfs_root()) + "/class/infiniband_verbs/" + node;
  std::string ibdev = attribute(uverbs_path, "ibdev");
  if (ibdev.empty()) return -ENODEV;
  std::string ibdev_path = std::string(sysfs_root()) + "/class/infiniband/" + ibdev;
  std::string modalias = attribute(ibdev_path, "device/modalias");
  *out = {};
  copy_text(out->ibdev_name, sizeof out->ibdev_name, ibdev);
  copy_text(out->uverbs_name, sizeof out->uverbs_name, node);
  copy_text(out->ibdev_path, sizeof out->ibdev_path, ibdev_path);
  copy_text(out->uverbs_path, sizeof out->uverbs_path, uverbs_path);
  copy_text(out->modalias, sizeof out->modalias, modalias);
  out->node_guid_be = htobe64(parse_guid(attribute(ibdev_path, "node_guid")));
  out->vendor_id = modalias_id(modalias, 'v');
  out->device_id = modalias_id(modalias, 'd');
  out->abi_version =
      static_cast<std::uint32_t>(std::strtoul(attribute(uverbs_path, "abi_version").c_str(), nullptr, 10));
  std::string type = attribute(ibdev_path, "node_type");  // "1: CA"
  out->node_type = static_cast<std::uint8_t>(std::strtoul(type.c_str(), nullptr, 10));
  out->index = -1;  // only netlink tells
  return 0;
}

// The device number that sysfs gives for a node.
bool node_number(const std::string& node, dev_t* number) {
  unsigned major_part = 0, minor_part = 0;
  std::string text = attribute(std::string(sysfs_root()) + "/class/infiniband_verbs/" + node, "dev");
  if (std::sscanf(text.c_str(), "%u:%u", &major_part, &minor_part) != 2) return false;
  *number = makedev(major_part, minor_part);
  return true;
}

int open_device(int index) {
  std::vector<std::string> nodes = uverbs_nodes();
  if (index < 0 || static_cast<std::size_t>(index) >= nodes.size()) return errno = ENODEV, -1;
  const std::string& node = nodes[static_cast<std::size_t>(index)];
  dev_t expected = 0;
  if (!node_number(node, &expected)) return errno = ENODEV, -1;
  // By name first; the node may have been renamed, then the number finds it.
  char by_number[64];
  std::snprintf(by_number, sizeof by_number, "/dev/char/%u:%u", major(expected), minor(expected));
  for (const std::string& path : {"/dev/infiniband/" + node, std::string(by_number)}) {
    int fd = ::open(path.c_str(), O_RDWR | O_CLOEXEC);
    if (fd < 0) continue;
    struct stat status {};
    if (::fstat(fd, &status) == 0 && S_ISCHR(status.st_mode) && status.st_rdev == expected) return fd;
    ::close(fd);
    errno = ENODEV;
  }
  return -1;
}

int device_of(int fd) {
  struct stat status {};
  if (::fstat(fd, &status)) return -1;
  if (S_ISCHR(status.st_mode)) {
    std::vector<std::string> nodes = uverbs_nodes();
    for (std::size_t index = 0; index < nodes.size(); ++index) {
      dev_t number = 0;
      if (node_number(nodes[index], &number) && number == status.st_rdev) return static_cast<int>(index);
    }
  }
  errno = EINVAL;
  return -1;
}

int request(int fd, ib_uverbs_ioctl_hdr* header) { return ::ioctl(fd, RDMA_VERBS_IOCTL, header); }

void* map(void* addr, std::size_t length, int prot, int flags, int fd, std::int64_t offset) {
  return ::mmap(addr, length, prot, flags, fd, offset);
}

constexpr Backend kKernel = {
    .abi = kBackendAbi,
    .device_count = device_count,
    .device_info = device_info,
    .read_sysfs = read_sysfs,
    .open = open_device,
    .device_of = device_of,
    .ioctl = request,
    .mmap = map,
    .munmap = ::munmap,
    .close = ::close,
    .alloc_dma = nullptr,
    .free_dma = nullptr,
    .sq_token = nullptr,
    .cq_token = nullptr,
    .ring_sq = nullptr,
    .arm_cq = nullptr,
    .pending = nullptr,
    .step = nullptr,
};

}  // namespace

const Backend& kernel_backend() { return kKernel; }

}  // namespace verbena::uverbs
