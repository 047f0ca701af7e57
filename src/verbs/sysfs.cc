// Attributes in sysfs. With the embedded device the Backend answers for the device's own files; all others are
// the host's.
#include <fcntl.h>
#include <unistd.h>

#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>

#include "verbs/internal.h"

namespace verbena::verbs {
namespace {

// Length without the trailing newline; always terminated, so a full buffer is a failure.
int terminate(char* buffer, std::size_t size, long length) {
  if (length < 0) return -1;
  if (length > 0 && buffer[length - 1] == '\n') --length;
  if (static_cast<std::size_t>(length) >= size) {
    errno = EOVERFLOW;
    return -1;
  }
  buffer[length] = '\0';
  return static_cast<int>(length);
}

int read_host_file(const char* dir, const char* file, char* buffer, std::size_t size) {
  std::string path = std::string(dir) + '/' + file;
  int fd = open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) return -1;
  long length = read(fd, buffer, size);
  int error = errno;
  close(fd);
  errno = error;
  return terminate(buffer, size, length);
}

}  // namespace

int device_attribute(const Device& device, char* buffer, std::size_t size, const char* format, ...) {
  char file[128];
  va_list args;
  va_start(args, format);
  std::vsnprintf(file, sizeof file, format, args);
  va_end(args);
  return terminate(buffer, size, device.backend->read_sysfs(device.info.ibdev_path, file, buffer, size));
}

}  // namespace verbena::verbs

using namespace verbena::verbs;

extern "C" {

const char* ibv_get_sysfs_path(void) {
  static const std::string path = [] {
    // A set-uid program must not be led astray by its caller's environment.
    const char* given = getuid() == geteuid() ? std::getenv("SYSFS_PATH") : nullptr;
    std::string result = given ? std::string(given, strnlen(given, IBV_SYSFS_PATH_MAX)) : "/sys";
    while (!result.empty() && result.back() == '/') result.pop_back();
    return result;
  }();
  return path.c_str();
}

int ibv_read_sysfs_file(const char* dir, const char* file, char* buffer, std::size_t size) {
  const verbena::uverbs::Backend* backend = verbena::uverbs::backend();
  if (backend) {
    int length = backend->read_sysfs(dir, file, buffer, size);
    if (length >= 0) return terminate(buffer, size, length);
  }
  return read_host_file(dir, file, buffer, size);
}

}  // extern "C"
