// The embedded "kernel" of this process: its devices and their open files.
// Threads: any.
#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <unordered_map>
#include <vector>

#include "device/profile.h"
#include "kernel/file.h"
#include "kernel/node.h"
#include "support/result.h"

namespace verbena::nic {

class Runtime {
 public:
  static Runtime& get();

  unsigned device_count() const { return count_; }
  // The device, attached on first use.
  Result<std::shared_ptr<kernel::Node>> node(unsigned index);
  const Result<device::Profile>& profile() const { return profile_; }

  // open(2), close(2) of the command descriptor: errno style.
  int open(unsigned index);
  int close(int fd);
  // The open file behind a descriptor or a dup of it; null if it is not one of ours.
  std::shared_ptr<kernel::File> file(int fd);

  // In a forked child, the same over an attachment of its own; null with errno.
  std::shared_ptr<kernel::File> heir(int fd);

  void* alloc_dma(int fd, std::size_t length);
  void free_dma(void* addr, std::size_t length);

 private:
  Runtime();
  static void before_fork();
  static void after_fork_parent();
  static void after_fork_child();
  bool has_other_descriptor(const kernel::File& file) const;
  std::shared_ptr<kernel::File> find_locked(int fd);

  std::mutex lock_;
  unsigned count_ = 1;
  std::string host_;
  Result<device::Profile> profile_;
  std::vector<std::shared_ptr<kernel::Node>> nodes_;
  std::vector<std::shared_ptr<kernel::File>> files_;
  std::unordered_map<int, std::shared_ptr<kernel::File>> by_fd_;
  std::map<void*, std::shared_ptr<kernel::Node>> dma_;
};

}  // namespace verbena::nic
