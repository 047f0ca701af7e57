#include "kernel/devx_channel.h"

#include <fcntl.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>

namespace verbena::kernel {
namespace {

constexpr std::size_t kCookie = sizeof(std::uint64_t);
// What the kernel lets a channel owe its reader.
constexpr std::size_t kMaxUnread = 1 << 20;
constexpr int kSocketBuffer = 4 << 20;  // as far as the system allows

}  // namespace

std::shared_ptr<DevxEventChannel> DevxEventChannel::create(bool omit_data) {
  auto pipe = EventPipe::create(omit_data ? kCookie : kCookie + kEqeBytes, EventPipe::Reading::one_record);
  if (!pipe) return nullptr;
  return std::shared_ptr<DevxEventChannel>(new DevxEventChannel(std::move(pipe), omit_data));
}

void DevxEventChannel::deliver(std::uint64_t subscription, std::uint64_t cookie,
                               std::span<const std::byte, kEqeBytes> eqe) {
  std::lock_guard guard(lock_);
  std::array<std::byte, kCookie + kEqeBytes> record;
  std::memcpy(record.data(), &cookie, kCookie);
  if (!omit_data_) {
    std::memcpy(record.data() + kCookie, eqe.data(), kEqeBytes);
    return pipe_->post(record.data());
  }
  const std::size_t unread = pipe_->unread();
  while (sent_.size() > unread) sent_.pop_front();
  if (std::ranges::find(sent_, subscription) != sent_.end()) return;
  sent_.push_back(subscription);
  pipe_->post(record.data());
}

std::shared_ptr<DevxResultChannel> DevxResultChannel::create() {
  int ends[2];
  if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends)) return nullptr;
  std::shared_ptr<DevxResultChannel> channel(new DevxResultChannel);
  channel->user_ = ends[0];
  channel->writer_ = ends[1];
  channel->reader_ = fcntl(ends[0], F_DUPFD_CLOEXEC, 0);
  if (channel->reader_ < 0) {
    const int error = errno;
    channel.reset();
    errno = error;
    return nullptr;
  }
  channel->id_ = file_id(ends[0]);
  if (setsockopt(ends[1], SOL_SOCKET, SO_SNDBUFFORCE, &kSocketBuffer, sizeof kSocketBuffer))
    setsockopt(ends[1], SOL_SOCKET, SO_SNDBUF, &kSocketBuffer, sizeof kSocketBuffer);
  return channel;
}

DevxResultChannel::~DevxResultChannel() {
  for (int fd : {user_, reader_, writer_})
    if (fd >= 0) ::close(fd);
}

int DevxResultChannel::take_user_fd() {
  int fd = user_;
  user_ = -1;
  return fd;
}

// Asking the socket costs the more the more is in it, so it is asked when what was posted since may have filled it.
int DevxResultChannel::room(std::size_t reply) {
  std::lock_guard guard(lock_);
  if (unread_ + reply <= kMaxUnread) return 0;
  int bytes = 0;
  unread_ = ::ioctl(reader_, FIONREAD, &bytes) ? 0 : static_cast<std::size_t>(bytes);
  return unread_ + reply > kMaxUnread ? EAGAIN : 0;
}

int DevxResultChannel::post(std::uint64_t wr_id, std::span<const std::byte> reply) {
  std::lock_guard guard(lock_);
  unread_ += sizeof wr_id + reply.size();
  iovec parts[2] = {{&wr_id, sizeof wr_id}, {const_cast<std::byte*>(reply.data()), reply.size()}};
  msghdr message{};
  message.msg_iov = parts;
  message.msg_iovlen = 2;
  for (;;) {
    const ssize_t n = sendmsg(writer_, &message, MSG_DONTWAIT | MSG_NOSIGNAL);
    if (n >= 0) return 0;
    if (errno != EINTR) return EAGAIN;
  }
}

}  // namespace verbena::kernel
