#include "device/shared/sparse.h"

#include <sys/mman.h>

#include <cerrno>

namespace verbena::device {

void* map_sparse(std::size_t length, int flags, int fd) {
  // What nobody may touch is not filled, and what is unlocked before somebody may, neither.
  void* p = mmap(nullptr, length, PROT_NONE, flags | MAP_NORESERVE, fd, 0);
  if (p == MAP_FAILED) return p;
  if (munlock(p, length) == 0 && mprotect(p, length, PROT_READ | PROT_WRITE) == 0) return p;
  const int error = errno;
  munmap(p, length);
  errno = error;
  return MAP_FAILED;
}

void replace_sparse(void* mapping, std::size_t length) {
  void* zeros = map_sparse(length, MAP_PRIVATE | MAP_ANONYMOUS, -1);
  if (zeros != MAP_FAILED) mremap(zeros, length, length, MREMAP_MAYMOVE | MREMAP_FIXED, mapping);
}

}  // namespace verbena::device
