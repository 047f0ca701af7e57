#include "preload/place.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

namespace verbena::preload {

void Place::look(const char* path) {
  const int saved = errno;
  virtual_ = tidy(path);
  const State* state = awake.load(std::memory_order_acquire);
  if (state == nullptr && (is_rdma_path(virtual_) || is_below(virtual_, "/sys/bus/pci/devices") ||
                           is_interface_path(virtual_)))
    state = wake();
  if (state != nullptr &&
      (is_rdma_path(virtual_) || is_shared_path(virtual_) || is_below(virtual_, "/sys/bus/pci/drivers/mlx5_core"))) {
    const Undisturbed guard;
    if (auto real = state->tree.real_path(virtual_)) {
      real_ = std::move(*real);
      path_ = real_.c_str();
      state_ = state;
    }
  }
  errno = saved;
}

void Place::look_below(int folder, const char* path) {
  const State* state = awake.load(std::memory_order_acquire);
  const Undisturbed guard;
  const int saved = errno;
  char at[PATH_MAX];
  const ssize_t length = readlink(("/proc/self/fd/" + std::to_string(folder)).c_str(), at, sizeof at);
  if (length > 0)
    if (const auto base = state->tree.virtual_path({at, static_cast<std::size_t>(length)})) {
      virtual_ = tidy((std::string(*base) + "/" + path).c_str());
      real_ = state->tree.root() + virtual_;
      path_ = real_.c_str();
      state_ = state;
    }
  errno = saved;
}

namespace {

int open_node(const State& state, int device, int flags) {
  const Undisturbed guard;
  const int fd = state.backend->open(device);
  if (fd < 0) return -1;
  remember_node(fd, device);
  const int now = fcntl(fd, F_GETFD);
  if (now >= 0) fcntl(fd, F_SETFD, flags & O_CLOEXEC ? now | FD_CLOEXEC : now & ~FD_CLOEXEC);
  return fd;
}

// A file of its own for each open, as sysfs takes a snapshot at the first read.
int open_snapshot(const std::string& content, int flags) {
  const int fd = memfd_create("attribute", flags & O_CLOEXEC ? MFD_CLOEXEC : 0u);
  if (fd < 0) return -1;
  if (write(fd, content.data(), content.size()) == static_cast<ssize_t>(content.size()) && lseek(fd, 0, SEEK_SET) == 0)
    return fd;
  const int error = errno;
  close(fd);
  errno = error;
  return -1;
}

}  // namespace

int open_place(const Place& place, int flags) {
  const State& state = *place.owner();
  if (flags & (O_PATH | O_DIRECTORY)) return kOrdinary;
  if (const int device = state.tree.node_of(place.virtual_path()); device >= 0) return open_node(state, device, flags);

  const Undisturbed guard;
  char canonical[PATH_MAX];
  if (::realpath(place.path(), canonical) == nullptr) return kOrdinary;  // it will say why
  const auto path = state.tree.virtual_path(canonical);
  if (!path) return kOrdinary;
  if ((flags & O_ACCMODE) != O_RDONLY) {
    errno = EACCES;
    return -1;
  }
  struct stat status;
  if (stat(canonical, &status) != 0 || !S_ISREG(status.st_mode)) return kOrdinary;
  const auto value = state.tree.attribute(*state.backend, *path);
  if (value) return open_snapshot(*value, flags);
  if (value.error().code == ENOENT) return kOrdinary;
  errno = value.error().code;
  return -1;
}

std::size_t hide_root(const State& state, char* path, std::size_t length) {
  const auto shown = state.tree.virtual_path({path, length});
  if (!shown) return length;
  const std::size_t left = shown->size();
  memmove(path, shown->data(), left);
  return left;
}

}  // namespace verbena::preload
