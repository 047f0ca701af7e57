#include "preload/netlink.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>

namespace verbena::preload {
namespace {

std::mutex list_lock;
std::vector<std::shared_ptr<NetlinkSocket>>& list() {
  static auto* sockets = new std::vector<std::shared_ptr<NetlinkSocket>>;  // outlives every thread
  return *sockets;
}

// Taken across fork, so that the child finds it free. Both have the socket then, as with any other.
void survive_forks() {
  static std::once_flag once;
  std::call_once(once, [] {
    pthread_atfork([] { list_lock.lock(); }, [] { list_lock.unlock(); }, [] { list_lock.unlock(); });
  });
}

void put_address(const sockaddr_nl& address, void* out, socklen_t* length) {
  memcpy(out, &address, std::min<std::size_t>(*length, sizeof address));
  *length = sizeof address;
}

}  // namespace

std::atomic<int> NetlinkSocket::count_{0};

int NetlinkSocket::open(const State& state, int type) {
  const int base = type & ~(SOCK_CLOEXEC | SOCK_NONBLOCK);
  if (state.backend->netlink == nullptr || (base != SOCK_RAW && base != SOCK_DGRAM)) {
    errno = state.backend->netlink == nullptr ? EPROTONOSUPPORT : ESOCKTNOSUPPORT;
    return -1;
  }
  const Undisturbed guard;
  sweep();
  survive_forks();
  int ends[2];
  // Of the kinds that keep datagrams apart, the one that tells when the other end is closed.
  if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) != 0) return -1;
  if (!(type & SOCK_CLOEXEC)) fcntl(ends[0], F_SETFD, 0);
  if (type & SOCK_NONBLOCK) fcntl(ends[0], F_SETFL, O_NONBLOCK);
  struct stat status {};
  fstat(ends[0], &status);
  auto made = std::make_shared<NetlinkSocket>();
  made->device_ = status.st_dev;
  made->inode_ = status.st_ino;
  made->ours_ = ends[1];
  const std::lock_guard locked(list_lock);
  list().push_back(std::move(made));
  count_.fetch_add(1, std::memory_order_relaxed);
  return ends[0];
}

NetlinkSocket::~NetlinkSocket() {
  if (ours_ < 0) return;
  const Undisturbed guard;
  ::close(ours_);
}

std::shared_ptr<NetlinkSocket> NetlinkSocket::find(int fd) {
  const Undisturbed guard;
  const int saved = errno;
  struct stat status;
  std::shared_ptr<NetlinkSocket> found;
  if (fstat(fd, &status) == 0 && S_ISSOCK(status.st_mode)) {
    const std::lock_guard locked(list_lock);
    for (const auto& socket : list())
      if (socket->inode_ == status.st_ino && socket->device_ == status.st_dev) found = socket;
  }
  errno = saved;
  return found;
}

void NetlinkSocket::sweep() {
  const Undisturbed guard;
  const int saved = errno;
  std::vector<std::shared_ptr<NetlinkSocket>> gone;  // closed after the lock is free
  {
    const std::lock_guard locked(list_lock);
    std::erase_if(list(), [&](const auto& socket) {
      pollfd other{socket->ours_, 0, 0};
      if (poll(&other, 1, 0) != 1 || !(other.revents & POLLHUP)) return false;
      gone.push_back(socket);
      count_.fetch_sub(1, std::memory_order_relaxed);
      return true;
    });
  }
  errno = saved;
}

// The port that is asked for, or (0) the pid, or some other if that is taken. 0 or an errno.
int NetlinkSocket::take_port(std::uint32_t wanted) {
  const std::lock_guard locked(list_lock);
  const auto taken = [&](std::uint32_t port) {
    return std::any_of(list().begin(), list().end(), [&](const auto& s) { return s.get() != this && s->port_ == port; });
  };
  if (wanted != 0 && taken(wanted)) return EADDRINUSE;
  std::uint32_t port = wanted ? wanted : static_cast<std::uint32_t>(getpid());
  while (taken(port)) port += 1u << 22;
  port_ = port;
  return 0;
}

int NetlinkSocket::bind(const sockaddr* address, socklen_t length) {
  sockaddr_nl wanted;
  int error = EINVAL;
  if (address != nullptr && length >= sizeof wanted) {
    memcpy(&wanted, address, sizeof wanted);
    if (wanted.nl_family == AF_NETLINK) error = 0;
  }
  if (!error && port_ != 0 && wanted.nl_pid != port_ && wanted.nl_pid != 0) error = EINVAL;
  if (!error && port_ == 0) error = take_port(wanted.nl_pid);
  if (error) {
    errno = error;
    return -1;
  }
  groups_ = wanted.nl_groups;  // nothing is ever told to groups
  return 0;
}

int NetlinkSocket::set_option(int level, int name, const void* value, socklen_t length) {
  if (level != SOL_NETLINK) {
    errno = ENOPROTOOPT;
    return -1;
  }
  int number = 0;
  if (value != nullptr) memcpy(&number, value, std::min<std::size_t>(length, sizeof number));
  switch (name) {
    case NETLINK_CAP_ACK:
      capped_ = number != 0;
      return 0;
    case NETLINK_ADD_MEMBERSHIP:
    case NETLINK_DROP_MEMBERSHIP:
    case NETLINK_EXT_ACK:
    case NETLINK_PKTINFO:
    case NETLINK_BROADCAST_ERROR:
    case NETLINK_NO_ENOBUFS:
    case NETLINK_GET_STRICT_CHK: return 0;
    default: errno = ENOPROTOOPT; return -1;
  }
}

ssize_t NetlinkSocket::send(const State& state, const iovec* pieces, std::size_t count, const sockaddr* to,
                            socklen_t length) {
  sockaddr_nl target{};
  if (to != nullptr && length >= sizeof target) memcpy(&target, to, sizeof target);
  if (to != nullptr && target.nl_family != AF_NETLINK) {
    errno = EINVAL;
    return -1;
  }
  if (target.nl_pid != 0) {  // other programs are not reached by it
    errno = ECONNREFUSED;
    return -1;
  }
  if (port_ == 0) take_port(0);
  std::vector<std::byte> datagram;
  for (std::size_t i = 0; i < count; ++i) {
    const auto* bytes = static_cast<const std::byte*>(pieces[i].iov_base);
    datagram.insert(datagram.end(), bytes, bytes + pieces[i].iov_len);
  }
  const Undisturbed guard;
  const std::lock_guard locked(lock_);
  state.backend->netlink(datagram.data(), datagram.size(), port_, capped_, this,
                         [](void* socket, const void* data, std::size_t bytes) {
                           const auto* first = static_cast<const std::byte*>(data);
                           static_cast<NetlinkSocket*>(socket)->answers_.emplace_back(first, first + bytes);
                         });
  pump_locked();
  return static_cast<ssize_t>(datagram.size());
}

void NetlinkSocket::pump() {
  const Undisturbed guard;
  const std::lock_guard locked(lock_);
  pump_locked();
}

void NetlinkSocket::pump_locked() {
  const int saved = errno;
  while (!answers_.empty()) {
    const auto& next = answers_.front();
    if (::send(ours_, next.data(), next.size(), MSG_DONTWAIT | MSG_NOSIGNAL) < 0) break;
    answers_.pop_front();
  }
  errno = saved;
}

void NetlinkSocket::own_address(sockaddr* out, socklen_t* length) const {
  put_address({AF_NETLINK, 0, port_, groups_}, out, length);
}

void NetlinkSocket::kernel_address(void* out, socklen_t* length) { put_address({AF_NETLINK, 0, 0, 0}, out, length); }

}  // namespace verbena::preload
