// Descriptors from which a program reads what DEVX has for it: events it subscribed to, results of queries that it did not
// wait for.
//
// A read(2) takes one record, as from the kernel's own files.
// Threads: any.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <span>

#include "kernel/event_pipe.h"

namespace verbena::kernel {

class DevxEventChannel {
 public:
  static constexpr std::size_t kEqeBytes = 64;
  // `omit_data`: records have the cookie alone, and a subscription that has one unread gets no second.
  // Null with errno set if there is no descriptor left.
  static std::shared_ptr<DevxEventChannel> create(bool omit_data);

  int take_user_fd() { return pipe_->take_user_fd(); }
  const FileId& id() const { return pipe_->id(); }
  void deliver(std::uint64_t subscription, std::uint64_t cookie, std::span<const std::byte, kEqeBytes> eqe);

 private:
  DevxEventChannel(std::shared_ptr<EventPipe> pipe, bool omit_data) : pipe_(std::move(pipe)), omit_data_(omit_data) {}

  const std::shared_ptr<EventPipe> pipe_;
  const bool omit_data_;
  std::mutex lock_;
  std::deque<std::uint64_t> sent_;  // omit_data: subscriptions of the records not known to be read
};

// Results of asynchronous queries: each is wr_id and the reply of the device.
class DevxResultChannel {
 public:
  static std::shared_ptr<DevxResultChannel> create();
  ~DevxResultChannel();

  int take_user_fd();
  const FileId& id() const { return id_; }
  // 0; EAGAIN: too much is unread already.
  int post(std::uint64_t wr_id, std::span<const std::byte> reply);
  // Whether a reply of that length may be asked for now: 0 or EAGAIN.
  int room(std::size_t reply);

 private:
  int user_ = -1, reader_ = -1, writer_ = -1;
  FileId id_;
  std::mutex lock_;
  std::size_t unread_ = 0;  // at most so many bytes
};

}  // namespace verbena::kernel
