// A descriptor from which a program reads event records: completion channel or asynchronous events.
//
// It is a pipe, so that read(2), poll(2) and O_NONBLOCK work without help. The kernel's role keeps a read end of its
// own: writing never raises SIGPIPE, and records that nobody has read can be taken back when their object dies.
//
// Threads: any.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <vector>

#include "kernel/descriptors.h"

namespace verbena::kernel {

class EventPipe {
 public:
  enum class Reading { stream, one_record };
  // `record` is the size of every record, at most kMaxRecord; its first 8 bytes say whose event it is. A read(2) takes as
  // many records as fit, or never more than one. Returns null with errno set if there is no descriptor left.
  static constexpr std::size_t kMaxRecord = 72;
  static std::shared_ptr<EventPipe> create(std::size_t record, Reading reading = Reading::stream);
  ~EventPipe();

  // The read end for the program, not yet closed by us: hand it out once.
  int take_user_fd();
  // Of its read ends.
  const FileId& id() const { return id_; }

  void post(const void* record);
  // How many records the program has not read yet.
  std::size_t unread();
  // Takes back the records of `element` that were not read; returns how many.
  unsigned retract(std::uint64_t element);

 private:
  explicit EventPipe(std::size_t record) : record_(record) {}
  bool write_one(const std::byte* record);
  void flush_backlog();

  const std::size_t record_;
  int user_ = -1, reader_ = -1, writer_ = -1;
  FileId id_;
  std::mutex lock_;
  std::deque<std::vector<std::byte>> backlog_;  // what the pipe had no room for
};

}  // namespace verbena::kernel
