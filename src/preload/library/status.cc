// Interposers of what asks about files: status, access, links, canonical names.
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "preload/next.h"
#include "preload/place.h"

#define EXPORT extern "C" __attribute__((visibility("default")))

using namespace verbena::preload;

// On 64-bit Linux the two are one structure under two names.
static_assert(sizeof(struct stat) == sizeof(struct stat64) && sizeof(long) == 8);

namespace {

using Stat = int(const char*, struct stat*);
using StatAt = int(int, const char*, struct stat*, int);
using StatFd = int(int, struct stat*);

template <Symbol symbol>
int do_stat(const char* path, struct stat* status) {
  const Place place(path);
  const int result = next<symbol, Stat>()(place.path(), status);
  if (result == 0 && place.owner()) place.owner()->tree.disguise(status);
  return result;
}

// An open node is an unlinked file in memory; the kernel says so, the program must see a character device.
void disguise_descriptor(int fd, struct stat* status) {
  if (!S_ISREG(status->st_mode) || status->st_nlink != 0) return;
  const State* now = state();
  if (now == nullptr) return;
  const int device = node_of(*now, fd);
  if (device < 0 || static_cast<std::size_t>(device) >= now->tree.devices().size()) return;
  status->st_mode = S_IFCHR | 0666;
  status->st_rdev = now->tree.devices()[static_cast<std::size_t>(device)].number;
  status->st_nlink = 1;
  status->st_size = 0;
  status->st_blocks = 0;
}

int do_fstat(int fd, struct stat* status) {
  const int result = next<"fstat", StatFd>()(fd, status);
  if (result == 0) disguise_descriptor(fd, status);
  return result;
}

int do_fstatat(int folder, const char* path, struct stat* status, int flags) {
  const Place place(folder, path);
  const int result = next<"fstatat", StatAt>()(folder, place.path(), status, flags);
  if (result != 0) return result;
  if (place.owner()) place.owner()->tree.disguise(status);
  if ((flags & AT_EMPTY_PATH) && path && *path == '\0') disguise_descriptor(folder, status);
  return 0;
}

struct stat* as_stat(struct stat64* status) {
  return static_cast<struct stat*>(static_cast<void*>(status));
}

}  // namespace

EXPORT int stat(const char* path, struct stat* status) { return do_stat<"stat">(path, status); }
EXPORT int lstat(const char* path, struct stat* status) { return do_stat<"lstat">(path, status); }
EXPORT int fstat(int fd, struct stat* status) { return do_fstat(fd, status); }
EXPORT int fstatat(int folder, const char* path, struct stat* status, int flags) {
  return do_fstatat(folder, path, status, flags);
}
EXPORT int stat64(const char* path, struct stat64* status) { return do_stat<"stat">(path, as_stat(status)); }
EXPORT int lstat64(const char* path, struct stat64* status) { return do_stat<"lstat">(path, as_stat(status)); }
EXPORT int fstat64(int fd, struct stat64* status) { return do_fstat(fd, as_stat(status)); }
EXPORT int fstatat64(int folder, const char* path, struct stat64* status, int flags) {
  return do_fstatat(folder, path, as_stat(status), flags);
}
// What programs built against a libc older than 2.33 call; the version argument has one value on 64-bit systems.
EXPORT int __xstat(int, const char* path, struct stat* status) { return do_stat<"stat">(path, status); }
EXPORT int __lxstat(int, const char* path, struct stat* status) { return do_stat<"lstat">(path, status); }
EXPORT int __fxstat(int, int fd, struct stat* status) { return do_fstat(fd, status); }
EXPORT int __fxstatat(int, int folder, const char* path, struct stat* status, int flags) {
  return do_fstatat(folder, path, status, flags);
}
EXPORT int __xstat64(int, const char* path, struct stat64* status) { return do_stat<"stat">(path, as_stat(status)); }
EXPORT int __lxstat64(int, const char* path, struct stat64* status) { return do_stat<"lstat">(path, as_stat(status)); }
EXPORT int __fxstat64(int, int fd, struct stat64* status) { return do_fstat(fd, as_stat(status)); }
EXPORT int __fxstatat64(int, int folder, const char* path, struct stat64* status, int flags) {
  return do_fstatat(folder, path, as_stat(status), flags);
}

EXPORT int statx(int folder, const char* path, int flags, unsigned mask, struct statx* status) {
  const Place place(folder, path);
  const int result =
      next<"statx", int(int, const char*, int, unsigned, struct statx*)>()(folder, place.path(), flags, mask, status);
  if (result != 0) return result;
  struct stat shown {};
  shown.st_mode = status->stx_mode;
  shown.st_nlink = status->stx_nlink;
  shown.st_dev = makedev(status->stx_dev_major, status->stx_dev_minor);
  shown.st_ino = status->stx_ino;
  if (place.owner())
    place.owner()->tree.disguise(&shown);
  else if ((flags & AT_EMPTY_PATH) && *path == '\0')
    disguise_descriptor(folder, &shown);
  if (!S_ISCHR(shown.st_mode) || S_ISCHR(status->stx_mode)) return 0;
  status->stx_mode = static_cast<std::uint16_t>(shown.st_mode);
  status->stx_rdev_major = major(shown.st_rdev);
  status->stx_rdev_minor = minor(shown.st_rdev);
  status->stx_size = 0;
  return 0;
}

EXPORT int access(const char* path, int mode) {
  const Place place(path);
  return next<"access", int(const char*, int)>()(place.path(), mode);
}
EXPORT int eaccess(const char* path, int mode) {
  const Place place(path);
  return next<"eaccess", int(const char*, int)>()(place.path(), mode);
}
EXPORT int euidaccess(const char* path, int mode) {
  const Place place(path);
  return next<"euidaccess", int(const char*, int)>()(place.path(), mode);
}
EXPORT int faccessat(int folder, const char* path, int mode, int flags) {
  const Place place(folder, path);
  return next<"faccessat", int(int, const char*, int, int)>()(folder, place.path(), mode, flags);
}

namespace {

ssize_t shown(char* buffer, ssize_t length) {
  const State* now = length > 0 ? state() : nullptr;
  return now ? static_cast<ssize_t>(hide_root(*now, buffer, static_cast<std::size_t>(length))) : length;
}

char* shown(char* name) {
  const State* now = name ? state() : nullptr;
  if (now) name[hide_root(*now, name, strlen(name))] = '\0';
  return name;
}

}  // namespace

EXPORT ssize_t readlink(const char* path, char* buffer, size_t size) {
  const Place place(path);
  return shown(buffer, next<"readlink", ssize_t(const char*, char*, size_t)>()(place.path(), buffer, size));
}
EXPORT ssize_t readlinkat(int folder, const char* path, char* buffer, size_t size) {
  const Place place(folder, path);
  return shown(buffer,
               next<"readlinkat", ssize_t(int, const char*, char*, size_t)>()(folder, place.path(), buffer, size));
}
EXPORT char* realpath(const char* path, char* resolved) {
  const Place place(path);
  return shown(next<"realpath", char*(const char*, char*)>()(place.path(), resolved));
}
EXPORT char* canonicalize_file_name(const char* path) { return realpath(path, nullptr); }
// What fortified programs call.
EXPORT ssize_t __readlink_chk(const char* path, char* buffer, size_t size, size_t room) {
  const Place place(path);
  return shown(buffer,
               next<"__readlink_chk", ssize_t(const char*, char*, size_t, size_t)>()(place.path(), buffer, size, room));
}
EXPORT char* __realpath_chk(const char* path, char* resolved, size_t room) {
  const Place place(path);
  return shown(next<"__realpath_chk", char*(const char*, char*, size_t)>()(place.path(), resolved, room));
}
