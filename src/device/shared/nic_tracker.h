// The Tracker over a Nic: records in this process's slice, read in everybody's.
//
// Threads: any; changes of records take a process-local mutex.
#pragma once

#include <mutex>

#include "device/shared/nic.h"
#include "device/track.h"

namespace verbena::device {

class NicTracker final : public Tracker {
 public:
  explicit NicTracker(Nic& nic) : nic_(nic) {}

  TrackRecord* add(const TrackFacts& facts) override;
  void change(TrackRecord* record, const TrackFacts& facts) override;
  void set_users(TrackRecord* record, std::uint32_t users) override;
  void remove(TrackRecord* record) override;
  std::vector<Tracked> list(TrackKind kind) override;

 private:
  std::uint32_t new_id(TrackKind kind);
  void add_transport(Tracked& qp);

  Nic& nic_;
  std::mutex mutex_;
  std::vector<std::uint32_t> free_;
  std::uint32_t next_ = 0, backed_ = 0;  // records
};

}  // namespace verbena::device
