// NETLINK_RDMA sockets. The program holds one end of a pair of local sockets, so that poll, fcntl, dup and close work as
// ever; what it sends goes to the kernel's role in this process, in the thread that sends, and the answers come out of
// the other end.
//
// Threads: any.
#pragma once

#include <linux/netlink.h>
#include <sys/socket.h>
#include <sys/types.h>
#include <sys/uio.h>

#include <atomic>
#include <cstddef>
#include <deque>
#include <memory>
#include <mutex>
#include <vector>

#include "preload/state.h"

namespace verbena::preload {

class NetlinkSocket {
 public:
  // As socket(2). EPROTONOSUPPORT if the kernel's role speaks no netlink.
  static int open(const State& state, int type);
  // The socket behind a descriptor or a dup of it; null if it is none of ours.
  static std::shared_ptr<NetlinkSocket> find(int fd);
  // Whether find() could find any.
  static bool any() { return count_.load(std::memory_order_relaxed) != 0; }
  // Lets go of sockets that no descriptor refers to any more.
  static void sweep();

  // As bind(2), setsockopt(2), sendmsg(2): -1 and errno.
  int bind(const sockaddr* address, socklen_t length);
  int set_option(int level, int name, const void* value, socklen_t length);
  ssize_t send(const State& state, const iovec* pieces, std::size_t count, const sockaddr* to, socklen_t length);
  // Moves answers to where the program receives them, as far as there is room. Before and after each receive.
  void pump();

  // Addresses, as getsockname(2) and recvmsg(2) return them.
  void own_address(sockaddr* out, socklen_t* length) const;
  static void kernel_address(void* out, socklen_t* length);

  ~NetlinkSocket();

 private:
  int take_port(std::uint32_t wanted);
  void pump_locked();

  static std::atomic<int> count_;
  dev_t device_ = 0;
  ino_t inode_ = 0;
  int ours_ = -1;
  std::atomic<std::uint32_t> port_{0}, groups_{0};
  std::atomic<bool> capped_{false};
  std::mutex lock_;
  std::deque<std::vector<std::byte>> answers_;
};

}  // namespace verbena::preload
