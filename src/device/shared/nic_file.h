// The open, mapped nic file: one object per file and process, because POSIX record locks belong to the process
// and are lost when any descriptor of the file is closed.
//
// Threads: any.
#pragma once

#include <array>
#include <atomic>
#include <map>
#include <memory>
#include <mutex>
#include <string>

#include "device/shared/nic.h"
#include "device/shared/segments.h"
#include "fabric/registry.h"
#include "support/result.h"

namespace verbena::device {

class NicFile {
 public:
  // Opens (with `config`: creating it if need be) the nic file of (host, index).
  static Result<std::shared_ptr<NicFile>> open(const std::string& run_dir, const std::string& host, unsigned index,
                                               const NicConfig* config);
  ~NicFile();
  NicFile(const NicFile&) = delete;
  NicFile& operator=(const NicFile&) = delete;

  NicSegment& segment() const { return *segment_; }
  const std::string& dir() const { return dir_; }
  const std::string& run_dir() const { return run_dir_; }
  const std::string& host() const { return host_; }
  const std::shared_ptr<fabric::Registry>& registry() const { return registry_; }
  std::string slice_path(std::uint32_t slot) const { return dir_ + "/slice-" + std::to_string(slot); }

  // Whether a live process holds the slot.
  bool live(std::uint32_t slot) const;
  bool local(std::uint32_t slot) const { return local_[slot].load(std::memory_order_acquire); }
  // What another NIC object of this process knows of its slot; null if it is not this process's.
  std::shared_ptr<Own> own(std::uint32_t slot);
  void set_own(std::uint32_t slot, std::shared_ptr<Own> own);
  // Takes or gives up the record lock of a slot. Call under exclusive().
  bool lock_slot(std::uint32_t slot);
  void unlock_slot(std::uint32_t slot);
  // Frees what dead processes left: numbers, multicast memberships, slice files. Call under exclusive().
  void reap();
  void free_slot(std::uint32_t slot);

  // Excludes every other process (flock) and thread from slot changes.
  class Exclusive {
   public:
    explicit Exclusive(NicFile& file);
    ~Exclusive();

   private:
    NicFile& file_;
    std::unique_lock<std::mutex> lock_;
  };

  // A mapping that a forked child gets zeros for, so that what it does to its copy of the queues hits nobody.
  static void replace_in_child(void* start, std::size_t length);
  static void keep_in_child(void* start);

  // How the process is that holds a SharedLock (see Nic::me()).
  static Holder holder_state(std::uint32_t lock_id);
  static std::uint32_t lock_id(std::uint32_t host, std::uint32_t device, std::uint32_t slot, std::uint32_t generation);

 private:
  NicFile() = default;
  Result<void> create(const NicConfig& config);
  Result<void> map();
  void settle_slot(std::uint32_t slot);
  static void in_child();

  int fd_ = -1;
  int pid_ = 0;  // a forked child must not close what it inherited
  NicSegment* segment_ = nullptr;
  std::string run_dir_, host_, dir_;
  unsigned index_ = 0;
  std::uint32_t host_index_ = 0;
  std::shared_ptr<fabric::Registry> registry_;
  std::mutex mutex_;
  std::array<std::atomic<bool>, kMaxSlots> local_{};
  std::mutex own_mutex_;
  std::map<std::uint32_t, std::shared_ptr<Own>> own_;
};

}  // namespace verbena::device
