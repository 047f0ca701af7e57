// Interposers of what works on an open uverbs node.
#include <errno.h>
#include <linux/sockios.h>
#include <rdma/ib_user_verbs.h>
#include <rdma/rdma_user_ioctl_cmds.h>
#include <stdarg.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <utility>

#include "preload/interface.h"
#include "preload/netlink.h"
#include "preload/next.h"
#include "preload/progress.h"
#include "preload/state.h"
#include "support/own_calls.h"

#define EXPORT extern "C" __attribute__((visibility("default")))

using namespace verbena::preload;

EXPORT bool verbena_own_calls(bool own) { return std::exchange(inside, own); }

EXPORT int ioctl(int fd, unsigned long request, ...) {
  va_list arguments;
  va_start(arguments, request);
  void* argument = va_arg(arguments, void*);
  va_end(arguments);
  if (request == RDMA_VERBS_IOCTL)
    if (const State* now = state(); now && node_of(*now, fd) >= 0) {
      auto* header = static_cast<ib_uverbs_ioctl_hdr*>(argument);
      if (header == nullptr) {
        errno = EFAULT;
        return -1;
      }
      before_request(*header);
      const Undisturbed guard;
      return now->backend->ioctl(fd, header);
    }
  // Requests on a network interface name it, whatever socket they are made on.
  if (is_interface_request(request) && argument) [[unlikely]] {
    const char* name = static_cast<const ifreq*>(argument)->ifr_name;
    const bool by_name = request != SIOCGIFNAME && is_interface_name({name, strnlen(name, IF_NAMESIZE)});
    if (const State* now = by_name ? wake() : request == SIOCGIFNAME ? state() : nullptr)
      if (const int result = interface_ioctl(*now, request, argument); result != kNotOurs) return result;
  }
  return next<"ioctl", int(int, unsigned long, ...)>()(fd, request, argument);
}

// A node is a file in memory, and most of what it shows are pages of that file. Device memory, the addresses of its
// operations and offsets where there is nothing are not.
template <Symbol symbol>
static void* do_mmap(void* addr, size_t length, int prot, int flags, int fd, off_t offset) {
  if (fd >= 0 && ((flags & MAP_TYPE) != MAP_PRIVATE || maybe_node(fd))) [[unlikely]]
    if (const State* now = state(); now && node_of(*now, fd) >= 0) {
      const Undisturbed guard;
      return now->backend->mmap(addr, length, prot, flags, fd, offset);
    }
  return next<symbol, void*(void*, size_t, int, int, int, off_t)>()(addr, length, prot, flags, fd, offset);
}

// Exported by version alone (libc.map): libraries bind to it, while whoever looks mmap() up by name, to put a hook into
// its code as UCX does, gets libc's. Otherwise such a hook would cut us off.
#ifdef __x86_64__
#define LIBC_VERSION "GLIBC_2.2.5"
#else
#define LIBC_VERSION "GLIBC_2.17"
#endif
__asm__(".symver node_mmap, mmap@" LIBC_VERSION "\n.symver node_mmap64, mmap64@" LIBC_VERSION);

EXPORT void* node_mmap(void* addr, size_t length, int prot, int flags, int fd, off_t offset) {
  return do_mmap<"mmap">(addr, length, prot, flags, fd, offset);
}

EXPORT void* node_mmap64(void* addr, size_t length, int prot, int flags, int fd, off_t offset) {
  return do_mmap<"mmap64">(addr, length, prot, flags, fd, offset);
}

// A program that wants all its memory locked (DPDK's do) does not mean the device's, gigabytes of address space of which
// little is ever touched: with the device here, pages are locked as they are touched.
EXPORT int mlockall(int flags) {
  const auto by_libc = next<"mlockall", int(int)>();
  if (state()) return by_libc(flags | MCL_ONFAULT);
  if (flags & MCL_FUTURE) locks_future.store(!(flags & MCL_ONFAULT), std::memory_order_relaxed);
  return by_libc(flags);
}

// The old interface, commands by write(2): the kernel refuses it where the new one is spoken for all commands.
EXPORT ssize_t write(int fd, const void* data, size_t length) {
  if (maybe_node(fd)) [[unlikely]]
    if (const State* now = state(); now && node_of(*now, fd) >= 0) {
      errno = length < sizeof(ib_uverbs_cmd_hdr) ? EINVAL : EOPNOTSUPP;
      return -1;
    }
  if (NetlinkSocket::any()) [[unlikely]]
    if (const State* now = state())
      if (const auto socket = NetlinkSocket::find(fd)) {
        const iovec whole{const_cast<void*>(data), length};
        return socket->send(*now, &whole, 1, nullptr, 0);
      }
  return next<"write", ssize_t(int, const void*, size_t)>()(fd, data, length);
}

EXPORT int close(int fd) {
  const State* now = state();
  struct stat status;
  if (now == nullptr || next<"fstat", int(int, struct stat*)>()(fd, &status) != 0) return next<"close", int(int)>()(fd);
  if (S_ISSOCK(status.st_mode) && NetlinkSocket::any()) {
    const int result = next<"close", int(int)>()(fd);
    NetlinkSocket::sweep();
    return result;
  }
  // Nodes are files in memory, event descriptors pipes. In a vfork child the objects are still the parent's.
  const bool candidate = S_ISFIFO(status.st_mode) || (S_ISREG(status.st_mode) && status.st_nlink == 0);
  if (!candidate || !is_own_process()) return next<"close", int(int)>()(fd);
  forget_node(fd);
  const Undisturbed guard;
  return now->backend->close(fd);
}
