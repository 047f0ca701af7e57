// Interposers of what opens files and folders.
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "preload/next.h"
#include "preload/place.h"

#define EXPORT extern "C" __attribute__((visibility("default")))

using namespace verbena::preload;

namespace {

using Open = int(const char*, int, ...);
using OpenAt = int(int, const char*, int, ...);
using Open2 = int(const char*, int);
using OpenAt2 = int(int, const char*, int);
using FileOpen = FILE*(const char*, const char*);

bool takes_mode(int flags) { return (flags & O_CREAT) || (flags & O_TMPFILE) == O_TMPFILE; }

template <Symbol symbol>
int do_open(const char* path, int flags, mode_t mode) {
  const Place place(path);
  if (place.owner()) {
    pthread_testcancel();  // as open(2) does when it begins
    if (const int fd = open_place(place, flags); fd != kOrdinary) return fd;
  }
  return next<symbol, Open>()(place.path(), flags, mode);
}

template <Symbol symbol>
int do_openat(int folder, const char* path, int flags, mode_t mode) {
  const Place place(folder, path);
  if (place.owner()) {
    pthread_testcancel();  // as open(2) does when it begins
    if (const int fd = open_place(place, flags); fd != kOrdinary) return fd;
  }
  return next<symbol, OpenAt>()(folder, place.path(), flags, mode);
}

template <Symbol symbol>
FILE* do_fopen(const char* path, const char* mode) {
  const Place place(path);
  if (place.owner() && mode != nullptr) {
    const int access = strchr(mode, '+') ? O_RDWR : mode[0] == 'r' ? O_RDONLY : O_WRONLY;
    const int fd = open_place(place, access | (strchr(mode, 'e') ? O_CLOEXEC : 0));
    if (fd == -1) return nullptr;
    if (fd != kOrdinary) {
      FILE* file = fdopen(fd, mode);
      if (file == nullptr) close(fd);
      return file;
    }
  }
  return next<symbol, FileOpen>()(place.path(), mode);
}

mode_t mode_of(int flags, va_list arguments) { return takes_mode(flags) ? va_arg(arguments, mode_t) : 0; }

}  // namespace

#define DEFINE_OPEN(name)                             \
  EXPORT int name(const char* path, int flags, ...) { \
    va_list arguments;                                \
    va_start(arguments, flags);                       \
    const mode_t mode = mode_of(flags, arguments);    \
    va_end(arguments);                                \
    return do_open<#name>(path, flags, mode);         \
  }
#define DEFINE_OPENAT(name)                                       \
  EXPORT int name(int folder, const char* path, int flags, ...) { \
    va_list arguments;                                            \
    va_start(arguments, flags);                                   \
    const mode_t mode = mode_of(flags, arguments);                \
    va_end(arguments);                                            \
    return do_openat<#name>(folder, path, flags, mode);           \
  }

DEFINE_OPEN(open)
DEFINE_OPEN(open64)
DEFINE_OPENAT(openat)
DEFINE_OPENAT(openat64)
// What fortified programs call.
EXPORT int __open_2(const char* path, int flags) { return do_open<"open">(path, flags, 0); }
EXPORT int __open64_2(const char* path, int flags) { return do_open<"open64">(path, flags, 0); }
EXPORT int __openat_2(int folder, const char* path, int flags) { return do_openat<"openat">(folder, path, flags, 0); }
EXPORT int __openat64_2(int folder, const char* path, int flags) {
  return do_openat<"openat64">(folder, path, flags, 0);
}

EXPORT FILE* fopen(const char* path, const char* mode) { return do_fopen<"fopen">(path, mode); }
EXPORT FILE* fopen64(const char* path, const char* mode) { return do_fopen<"fopen64">(path, mode); }

EXPORT DIR* opendir(const char* path) {
  const Place place(path);
  return next<"opendir", DIR*(const char*)>()(place.path());
}

EXPORT int scandir(const char* path, dirent*** names, int (*filter)(const dirent*),
                   int (*compare)(const dirent**, const dirent**)) {
  const Place place(path);
  return next<"scandir", decltype(::scandir)>()(place.path(), names, filter, compare);
}
EXPORT int scandir64(const char* path, dirent64*** names, int (*filter)(const dirent64*),
                     int (*compare)(const dirent64**, const dirent64**)) {
  const Place place(path);
  return next<"scandir64", decltype(::scandir64)>()(place.path(), names, filter, compare);
}

EXPORT int chdir(const char* path) {
  const Place place(path);
  return next<"chdir", int(const char*)>()(place.path());
}
