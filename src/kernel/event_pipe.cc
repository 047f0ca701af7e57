#include "kernel/event_pipe.h"

#include <fcntl.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>

namespace verbena::kernel {
namespace {

constexpr std::size_t kMaxBacklog = 65536;  // a program that never reads its events loses the newest
constexpr int kBigPipe = 1 << 20;           // what an unprivileged process may ask for

}  // namespace

std::shared_ptr<EventPipe> EventPipe::create(std::size_t record, Reading reading) {
  // A pipe in packet mode keeps what one write(2) wrote apart from the rest.
  const int packets = reading == Reading::one_record ? O_DIRECT : 0;
  int ends[2];
  if (record > kMaxRecord || pipe2(ends, O_CLOEXEC | packets)) return nullptr;
  std::shared_ptr<EventPipe> pipe(new EventPipe(record));
  pipe->user_ = ends[0];
  pipe->writer_ = ends[1];
  // A second open file of the read end: O_NONBLOCK on it is ours alone, the program's flags are its own.
  char path[64];
  std::snprintf(path, sizeof path, "/proc/self/fd/%d", ends[0]);
  pipe->reader_ = open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
  if (pipe->reader_ < 0 || fcntl(ends[1], F_SETFL, O_NONBLOCK | packets)) {
    int error = errno;
    pipe.reset();
    errno = error;
    return nullptr;
  }
  pipe->id_ = file_id(ends[0]);
  return pipe;
}

EventPipe::~EventPipe() {
  for (int fd : {user_, reader_, writer_})
    if (fd >= 0) ::close(fd);
}

int EventPipe::take_user_fd() {
  int fd = user_;
  user_ = -1;
  return fd;
}

bool EventPipe::write_one(const std::byte* record) {
  for (;;) {
    ssize_t n = ::write(writer_, record, record_);
    if (n == static_cast<ssize_t>(record_)) return true;
    if (n < 0 && errno == EINTR) continue;
    if (n < 0 && errno == EAGAIN && fcntl(writer_, F_GETPIPE_SZ) < kBigPipe &&
        fcntl(writer_, F_SETPIPE_SZ, kBigPipe) > 0)
      continue;
    return false;
  }
}

void EventPipe::flush_backlog() {
  while (!backlog_.empty() && write_one(backlog_.front().data())) backlog_.pop_front();
}

void EventPipe::post(const void* record) {
  std::lock_guard guard(lock_);
  flush_backlog();
  const auto* bytes = static_cast<const std::byte*>(record);
  if (backlog_.empty() && write_one(bytes)) return;
  if (backlog_.size() < kMaxBacklog) backlog_.emplace_back(bytes, bytes + record_);
}

std::size_t EventPipe::unread() {
  std::lock_guard guard(lock_);
  flush_backlog();
  int bytes = 0;
  if (::ioctl(reader_, FIONREAD, &bytes)) return 0;
  return static_cast<std::size_t>(bytes) / record_ + backlog_.size();
}

unsigned EventPipe::retract(std::uint64_t element) {
  std::lock_guard guard(lock_);
  auto is_dead = [element](const std::byte* record) { return !std::memcmp(record, &element, sizeof element); };
  unsigned removed = 0;
  std::deque<std::vector<std::byte>> kept;
  std::byte record[kMaxRecord];
  for (;;) {
    ssize_t n = ::read(reader_, record, record_);
    if (n < 0 && errno == EINTR) continue;
    if (n != static_cast<ssize_t>(record_)) break;
    if (is_dead(record))
      ++removed;
    else
      kept.emplace_back(record, record + record_);
  }
  for (auto& late : backlog_) {
    if (is_dead(late.data()))
      ++removed;
    else
      kept.push_back(std::move(late));
  }
  backlog_ = std::move(kept);
  flush_backlog();
  return removed;
}

}  // namespace verbena::kernel
