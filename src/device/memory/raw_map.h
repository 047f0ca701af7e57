// mmap(2) and its kin by system call. Where the device moves the program's own pages, nothing changes for the program;
// libraries that put hooks into libc's functions to learn what is unmapped (UCX does) must not be told otherwise.
//
// Threads: any.
#pragma once

#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/types.h>
#include <unistd.h>

#include <cstddef>

namespace verbena::device::raw {

inline void* mmap(void* at, std::size_t bytes, int prot, int flags, int fd, off_t offset) {
  return reinterpret_cast<void*>(::syscall(SYS_mmap, at, bytes, prot, flags, fd, offset));
}
// Moves [from, from + bytes) to `at`, over what is there.
inline void* move(void* from, std::size_t bytes, void* at) {
  return reinterpret_cast<void*>(::syscall(SYS_mremap, from, bytes, bytes, MREMAP_MAYMOVE | MREMAP_FIXED, at));
}
inline int munmap(void* at, std::size_t bytes) { return static_cast<int>(::syscall(SYS_munmap, at, bytes)); }

}  // namespace verbena::device::raw
