#include "preload/tree.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>

#include "preload/paths.h"
#include "uverbs/backend.h"
#include "uverbs/interface.h"

namespace verbena::preload {
namespace {

constexpr unsigned kTreeFormat = 2;  // counts changes of what describe() makes

bool knows(const uverbs::Backend& backend, const TreeDevice& device, const std::string& name) {
  char value[4096];
  return backend.read_sysfs(device.info.ibdev_path, name.c_str(), value, sizeof value) >= 0 || errno != ENOENT;
}

// Number of entries of an indexed table, by doubling and halving.
unsigned count(const uverbs::Backend& backend, const TreeDevice& device, const std::string& folder) {
  const auto has = [&](unsigned index) { return knows(backend, device, folder + std::to_string(index)); };
  constexpr unsigned kMost = 4096;
  unsigned low = 0, high = 1;  // entries below `low` exist
  while (high <= kMost && has(high - 1)) {
    low = high;
    high *= 2;
  }
  while (low + 1 < high) {
    const unsigned middle = (low + high) / 2;
    (has(middle - 1) ? low : high) = middle;
  }
  return low;
}

std::string read(const uverbs::Backend& backend, const char* dir, const char* name) {
  char value[4096];
  const int length = backend.read_sysfs(dir, name, value, sizeof value);
  return length > 0 ? std::string(value, static_cast<std::size_t>(length)) : std::string();
}

TreeDevice survey(const uverbs::Backend& backend, const uverbs::DeviceInfo& info, int index) {
  TreeDevice device{.info = info};
  char slot[32];
  // A bus of our own, in another PCI domain if the host has one of that number.
  const char* domain = access("/sys/devices/pci0000:c8", F_OK) == 0 ? "00c8" : "0000";
  snprintf(slot, sizeof slot, "%s:c8:%02x.0", domain, index);
  device.slot = slot;
  const std::string uevent = read(backend, info.ibdev_path, "device/uevent");
  if (const auto at = uevent.find("PCI_SLOT_NAME="); at != std::string::npos) {
    const std::string named = uevent.substr(at + 14, uevent.find('\n', at) - at - 14);
    if (named.size() == 12 && named.find('/') == std::string::npos) device.slot = named;
  }
  device.directory = "/sys/devices/pci" + device.slot.substr(0, 7) + "/" + device.slot;
  snprintf(slot, sizeof slot, uverbs::kInterfaceName, static_cast<unsigned>(index));
  device.interface = slot;
  unsigned major = 0, minor = 0;
  if (sscanf(read(backend, info.uverbs_path, "dev").c_str(), "%u:%u", &major, &minor) == 2)
    device.number = makedev(major, minor);
  else
    device.number = makedev(uverbs::kUverbsMajor, uverbs::kUverbsFirstMinor + static_cast<unsigned>(index));
  device.ports = 0;
  while (device.ports < 8 && knows(backend, device, "ports/" + std::to_string(device.ports + 1) + "/state"))
    ++device.ports;
  device.gids = count(backend, device, "ports/1/gids/");
  device.pkeys = count(backend, device, "ports/1/pkeys/");
  return device;
}

std::uint64_t fingerprint(const std::vector<TreeDevice>& devices) {
  std::uint64_t hash = 14695981039346656037u ^ kTreeFormat;  // FNV-1a
  const auto mix = [&](std::string_view text) {
    for (const char c : text) hash = (hash ^ static_cast<unsigned char>(c)) * 1099511628211u;
    hash = (hash ^ 0xff) * 1099511628211u;
  };
  for (const TreeDevice& device : devices) {
    for (const char* text : {device.info.ibdev_name, device.info.uverbs_name, device.info.modalias}) mix(text);
    mix(device.directory);
    for (const std::uint64_t value :
         {std::uint64_t{device.number}, std::uint64_t{device.ports}, std::uint64_t{device.gids},
          std::uint64_t{device.pkeys}, device.info.node_guid_be})
      mix(std::to_string(value));
  }
  return hash;
}

Result<void> write_entry(const std::string& root, const TreeEntry& entry) {
  const std::string path = root + entry.path;
  std::error_code error;
  switch (entry.kind) {
    case TreeEntry::folder:
      std::filesystem::create_directories(path, error);
      break;
    case TreeEntry::link:
      std::filesystem::create_directories(std::filesystem::path(path).parent_path(), error);
      if (symlink(entry.content.c_str(), path.c_str()) != 0 && errno != EEXIST)
        return fail(errno, "cannot make the link " + path);
      break;
    case TreeEntry::file: {
      // access(2) asks the file itself: nodes can be written, attributes cannot.
      const mode_t mode = entry.path.starts_with("/dev/") ? 0644 : 0444;
      const int fd = ::open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, mode);
      if (fd < 0) return fail(errno, "cannot make " + path);
      const ssize_t written = ::write(fd, entry.content.data(), entry.content.size());
      const int code = errno;
      ::close(fd);
      if (written != static_cast<ssize_t>(entry.content.size())) return fail(code, "cannot write " + path);
      break;
    }
  }
  if (error) return fail(error.value(), "cannot make " + path);
  return {};
}

// Other users' folders are not trusted to describe our devices.
bool is_ours(const std::string& folder) {
  struct stat status;
  return lstat(folder.c_str(), &status) == 0 && S_ISDIR(status.st_mode) && status.st_uid == geteuid() &&
         (status.st_mode & (S_IWGRP | S_IWOTH)) == 0;
}

// Built aside and moved into place, so that nobody sees half a tree.
Result<void> materialise(const std::vector<TreeEntry>& entries, const std::string& folder) {
  std::string aside = folder + ".XXXXXX";
  if (mkdtemp(aside.data()) == nullptr) return fail(errno, "cannot make " + aside);
  Result<void> result;
  for (const TreeEntry& entry : entries)
    if (result = write_entry(aside, entry); !result) break;
  if (result && rename(aside.c_str(), folder.c_str()) == 0) return result;
  if (result && errno != EEXIST && errno != ENOTEMPTY) result = fail(errno, "cannot move a tree to " + folder);
  std::error_code ignored;
  std::filesystem::remove_all(aside, ignored);
  return result;
}

}  // namespace

Result<Tree> Tree::build(const uverbs::Backend& backend, const std::string& run_dir, const std::string& host) {
  Tree tree;
  const int devices = backend.device_count();
  if (devices < 0) return fail(-devices, "cannot count the devices");
  for (int i = 0; i < devices; ++i) {
    uverbs::DeviceInfo info{};
    if (const int error = backend.device_info(i, &info); error < 0) return fail(-error, "cannot ask for a device");
    tree.devices_.push_back(survey(backend, info, i));
  }

  std::error_code error;
  const std::string trees = run_dir + "/sysfs";
  std::filesystem::create_directories(trees, error);
  if (error) return fail(error.value(), "cannot make " + trees);
  char name[32];
  snprintf(name, sizeof name, "-%016llx", static_cast<unsigned long long>(fingerprint(tree.devices_)));
  const std::string folder = trees + "/" + host + name;
  if (access(folder.c_str(), F_OK) != 0)
    if (auto made = materialise(describe(backend, tree.devices_), folder); !made) return std::unexpected(made.error());
  if (!is_ours(folder)) return fail(EPERM, folder + " belongs to somebody else");
  char canonical[PATH_MAX];
  if (::realpath(folder.c_str(), canonical) == nullptr) return fail(errno, "cannot resolve " + folder);
  tree.root_ = canonical;

  for (TreeDevice& device : tree.devices_) {
    struct stat status;
    const std::string stand_in = tree.root_ + "/dev/infiniband/" + device.info.uverbs_name;
    if (stat(stand_in.c_str(), &status) != 0) return fail(errno, "cannot look at " + stand_in);
    tree.file_system_ = status.st_dev;
    device.placeholder = status.st_ino;
  }
  return tree;
}

std::optional<std::string> Tree::real_path(std::string_view path) const {
  bool ours = is_rdma_path(path) || path == "/sys/bus/pci/devices" || path == "/sys/bus/pci/drivers/mlx5_core";
  for (const TreeDevice& device : devices_)
    ours = ours || is_below(path, device.directory) || is_below(path, "/sys/bus/pci/devices/" + device.slot) ||
           path == device.directory.substr(0, device.directory.rfind('/')) ||
           is_below(path, "/sys/class/net/" + device.interface);
  if (!ours) return std::nullopt;
  return root_ + std::string(path);
}

std::optional<std::string_view> Tree::virtual_path(std::string_view real) const {
  if (!is_below(real, root_)) return std::nullopt;
  return real.size() == root_.size() ? std::string_view("/") : real.substr(root_.size());
}

int Tree::node_of(std::string_view path) const {
  constexpr std::string_view kFolder = "/dev/infiniband/";
  if (!path.starts_with(kFolder)) return -1;
  for (std::size_t i = 0; i < devices_.size(); ++i)
    if (path.substr(kFolder.size()) == devices_[i].info.uverbs_name) return static_cast<int>(i);
  return -1;
}

bool Tree::disguise(struct stat* status) const {
  if (status->st_dev != file_system_) return false;
  for (const TreeDevice& device : devices_)
    if (status->st_ino == device.placeholder) {
      status->st_mode = S_IFCHR | 0666;
      status->st_rdev = device.number;
      status->st_size = 0;
      return true;
    }
  return false;
}

Result<std::string> Tree::attribute(const uverbs::Backend& backend, std::string_view path) const {
  for (const TreeDevice& device : devices_) {
    if (!is_below(path, device.directory) || path.size() == device.directory.size()) continue;
    std::string_view rest = path.substr(device.directory.size() + 1);
    std::string dir = device.info.ibdev_path, name;
    const std::string ib = std::string("infiniband/") + device.info.ibdev_name;
    const std::string uverbs = std::string("infiniband_verbs/") + device.info.uverbs_name;
    if (is_below(rest, ib)) {
      name = rest.substr(std::min(rest.size(), ib.size() + 1));
    } else if (is_below(rest, uverbs)) {
      dir = device.info.uverbs_path;
      name = rest.substr(std::min(rest.size(), uverbs.size() + 1));
    } else {
      name = "device/" + std::string(rest);
    }
    char value[4096];
    const int length = backend.read_sysfs(dir.c_str(), name.c_str(), value, sizeof value);
    if (length < 0) return fail(errno, "no attribute " + std::string(path));
    return std::string(value, static_cast<std::size_t>(length)) + "\n";
  }
  return fail(ENOENT, "not an attribute");
}

}  // namespace verbena::preload
