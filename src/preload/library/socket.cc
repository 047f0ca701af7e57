// Interposers of sockets, for NETLINK_RDMA and for questions about our network interface: everybody else's calls test a
// word or two and go on.
#include <errno.h>
#include <linux/netlink.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

#include "preload/interface.h"
#include "preload/netlink.h"
#include "preload/next.h"
#include "preload/state.h"

#define EXPORT extern "C" __attribute__((visibility("default")))

using namespace verbena::preload;

namespace {

// Null, or what `fd` is with the State in `*now`.
std::shared_ptr<NetlinkSocket> ours(int fd, const State** now) {
  if (!NetlinkSocket::any()) [[likely]]
    return nullptr;
  *now = state();
  return *now ? NetlinkSocket::find(fd) : nullptr;
}
std::shared_ptr<NetlinkSocket> ours(int fd) {
  const State* now = nullptr;
  return ours(fd, &now);
}

// Receives by libc, with answers moved up before and after.
template <class Receive>
ssize_t receive_from(int fd, sockaddr* from, socklen_t* length, Receive by_libc) {
  const auto socket = ours(fd);
  if (!socket) [[likely]]
    return by_libc();
  const socklen_t room = length ? *length : 0;
  socket->pump();
  const ssize_t received = by_libc();
  if (received > 0) socket->pump();
  if (received >= 0 && from && length) {
    *length = room;
    NetlinkSocket::kernel_address(from, length);
  }
  return received;
}

template <class Receive>
ssize_t receive(int fd, Receive by_libc) {
  return receive_from(fd, nullptr, nullptr, by_libc);
}

// Sends by libc, a question about our network interface in disguise.
template <class Send>
ssize_t send_by_libc(int fd, const iovec* pieces, std::size_t count, Send by_libc) {
  const State* now = count == 1 && pieces[0].iov_base ? state() : nullptr;
  if (now == nullptr) [[likely]]
    return by_libc(pieces);
  const auto question = disguised_question(*now, fd, pieces, count);
  if (question.empty()) return by_libc(pieces);
  const iovec disguise{const_cast<std::byte*>(question.data()), question.size()};
  const ssize_t sent = by_libc(&disguise);
  return sent < 0 ? sent : static_cast<ssize_t>(pieces[0].iov_len);
}

// What was received, with the answer to such a question.
ssize_t revealed(ssize_t received, const iovec* pieces, std::size_t count) {
  if (!questions_asked.load(std::memory_order_relaxed) || received <= 0) [[likely]]
    return received;
  if (const State* now = state()) reveal_answer(*now, pieces, count, static_cast<std::size_t>(received));
  return received;
}
ssize_t revealed(ssize_t received, void* data, std::size_t room) {
  const iovec whole{data, room};
  return revealed(received, &whole, 1);
}

// Nodes among the descriptors that a message carries.
void keep_passed_nodes(const State& now, const msghdr& message) {
  auto* header = const_cast<msghdr*>(&message);
  for (cmsghdr* part = CMSG_FIRSTHDR(header); part != nullptr; part = CMSG_NXTHDR(header, part)) {
    if (part->cmsg_level != SOL_SOCKET || part->cmsg_type != SCM_RIGHTS) continue;
    for (std::size_t at = CMSG_LEN(0); at + sizeof(int) <= part->cmsg_len; at += sizeof(int)) {
      int passed = -1;
      memcpy(&passed, reinterpret_cast<const char*>(part) + at, sizeof passed);
      if (node_of(now, passed) >= 0) keep_open(passed);
    }
  }
}

}  // namespace

EXPORT int socket(int domain, int type, int protocol) {
  if (domain == AF_NETLINK && protocol == NETLINK_RDMA)
    if (const State* now = wake()) return NetlinkSocket::open(*now, type);
  return next<"socket", int(int, int, int)>()(domain, type, protocol);
}

EXPORT int bind(int fd, const sockaddr* address, socklen_t length) {
  if (const auto socket = ours(fd)) return socket->bind(address, length);
  return next<"bind", int(int, const sockaddr*, socklen_t)>()(fd, address, length);
}

EXPORT int connect(int fd, const sockaddr* address, socklen_t length) {
  if (ours(fd)) return 0;  // the kernel is what it talks to anyway
  return next<"connect", int(int, const sockaddr*, socklen_t)>()(fd, address, length);
}

EXPORT int getsockname(int fd, sockaddr* address, socklen_t* length) {
  if (const auto socket = ours(fd)) {
    socket->own_address(address, length);
    return 0;
  }
  return next<"getsockname", int(int, sockaddr*, socklen_t*)>()(fd, address, length);
}

EXPORT int getpeername(int fd, sockaddr* address, socklen_t* length) {
  if (ours(fd)) {
    NetlinkSocket::kernel_address(address, length);
    return 0;
  }
  return next<"getpeername", int(int, sockaddr*, socklen_t*)>()(fd, address, length);
}

EXPORT int setsockopt(int fd, int level, int name, const void* value, socklen_t length) {
  if (level == SOL_NETLINK)
    if (const auto socket = ours(fd)) return socket->set_option(level, name, value, length);
  return next<"setsockopt", int(int, int, int, const void*, socklen_t)>()(fd, level, name, value, length);
}

EXPORT ssize_t sendto(int fd, const void* data, size_t length, int flags, const sockaddr* to, socklen_t to_length) {
  const State* now = nullptr;
  if (const auto socket = ours(fd, &now)) {
    const iovec whole{const_cast<void*>(data), length};
    return socket->send(*now, &whole, 1, to, to_length);
  }
  const iovec whole{const_cast<void*>(data), length};
  return send_by_libc(fd, &whole, 1, [&](const iovec* sent) {
    return next<"sendto", ssize_t(int, const void*, size_t, int, const sockaddr*, socklen_t)>()(
        fd, sent->iov_base, sent->iov_len, flags, to, to_length);
  });
}

EXPORT ssize_t send(int fd, const void* data, size_t length, int flags) {
  const State* now = nullptr;
  if (const auto socket = ours(fd, &now)) {
    const iovec whole{const_cast<void*>(data), length};
    return socket->send(*now, &whole, 1, nullptr, 0);
  }
  const iovec whole{const_cast<void*>(data), length};
  return send_by_libc(fd, &whole, 1, [&](const iovec* sent) {
    return next<"send", ssize_t(int, const void*, size_t, int)>()(fd, sent->iov_base, sent->iov_len, flags);
  });
}

EXPORT ssize_t sendmsg(int fd, const msghdr* message, int flags) {
  if (message && message->msg_controllen != 0) [[unlikely]]
    if (const State* node_state = state()) keep_passed_nodes(*node_state, *message);
  const State* now = nullptr;
  if (const auto socket = ours(fd, &now))
    return socket->send(*now, message->msg_iov, message->msg_iovlen, static_cast<const sockaddr*>(message->msg_name),
                        message->msg_namelen);
  const auto by_libc = next<"sendmsg", ssize_t(int, const msghdr*, int)>();
  if (message == nullptr || message->msg_iovlen != 1) return by_libc(fd, message, flags);
  return send_by_libc(fd, message->msg_iov, 1, [&](const iovec* sent) {
    msghdr instead = *message;
    instead.msg_iov = const_cast<iovec*>(sent);
    return by_libc(fd, &instead, flags);
  });
}

EXPORT ssize_t writev(int fd, const iovec* pieces, int count) {
  const State* now = nullptr;
  if (const auto socket = ours(fd, &now))
    return socket->send(*now, pieces, static_cast<size_t>(count), nullptr, 0);
  return next<"writev", ssize_t(int, const iovec*, int)>()(fd, pieces, count);
}

EXPORT ssize_t recvmsg(int fd, msghdr* message, int flags) {
  void* const name = message ? message->msg_name : nullptr;
  socklen_t* const length = message ? &message->msg_namelen : nullptr;
  return receive_from(fd, static_cast<sockaddr*>(name), length,
                      [&] {
                        const ssize_t got = next<"recvmsg", ssize_t(int, msghdr*, int)>()(fd, message, flags);
                        return message ? revealed(got, message->msg_iov, message->msg_iovlen) : got;
                      });
}

EXPORT ssize_t recvfrom(int fd, void* data, size_t room, int flags, sockaddr* from, socklen_t* length) {
  return receive_from(fd, from, length, [&] {
    return revealed(next<"recvfrom", ssize_t(int, void*, size_t, int, sockaddr*, socklen_t*)>()(fd, data, room, flags,
                                                                                                from, length),
                    data, room);
  });
}

EXPORT ssize_t recv(int fd, void* data, size_t room, int flags) {
  return receive(fd, [&] {
    return revealed(next<"recv", ssize_t(int, void*, size_t, int)>()(fd, data, room, flags), data, room);
  });
}

EXPORT ssize_t read(int fd, void* data, size_t room) {
  // A node has nothing to read.
  if (maybe_node(fd)) [[unlikely]]
    if (const State* now = state(); now && node_of(*now, fd) >= 0) {
      errno = EINVAL;
      return -1;
    }
  return receive(fd, [&] {
    return revealed(next<"read", ssize_t(int, void*, size_t)>()(fd, data, room), data, room);
  });
}

EXPORT ssize_t readv(int fd, const iovec* pieces, int count) {
  return receive(fd, [&] { return next<"readv", ssize_t(int, const iovec*, int)>()(fd, pieces, count); });
}

// What fortified programs call.
EXPORT ssize_t __recvfrom_chk(int fd, void* data, size_t room, size_t size, int flags, sockaddr* from,
                              socklen_t* length) {
  return receive_from(fd, from, length, [&] {
    return revealed(next<"__recvfrom_chk", ssize_t(int, void*, size_t, size_t, int, sockaddr*, socklen_t*)>()(
                        fd, data, room, size, flags, from, length),
                    data, room);
  });
}

EXPORT ssize_t __recv_chk(int fd, void* data, size_t room, size_t size, int flags) {
  return receive(fd, [&] {
    return revealed(next<"__recv_chk", ssize_t(int, void*, size_t, size_t, int)>()(fd, data, room, size, flags), data, room);
  });
}

EXPORT ssize_t __read_chk(int fd, void* data, size_t room, size_t size) {
  return receive(fd, [&] { return next<"__read_chk", ssize_t(int, void*, size_t, size_t)>()(fd, data, room, size); });
}
