// The packet pacing table of one device, as the driver hands out its entries.
// Threads: any.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <vector>

#include "device/device.h"
#include "kernel/caps.h"
#include "prm/misc.h"

namespace verbena::kernel {

using RateContents = std::array<std::byte, prm::SetPpRateLimitContext::size>;

class RateTable {
 public:
  void resize(const Caps& caps);
  // An entry with these contents for queues of `uid`: one that is there already, unless it is to be `dedicated`. 0 or an
  // errno: EOPNOTSUPP (there is no table), EINVAL (no such rate), ENOSPC, or what the device says.
  int take(device::Device& device, const RateContents& contents, std::uint16_t uid, bool dedicated,
           std::uint16_t* index);
  void give_back(device::Device& device, std::uint16_t index);

 private:
  struct Entry {
    RateContents contents{};
    std::uint16_t uid = 0;
    bool dedicated = false;
    unsigned users = 0;
  };
  Entry* find(const RateContents& contents, std::uint16_t uid, bool dedicated);
  int write(device::Device& device, const Entry& entry, bool on);

  std::mutex lock_;
  std::vector<Entry> entries_;  // entry i is the table's i + 1
  std::uint32_t min_kbps_ = 0, max_kbps_ = 0;
};

}  // namespace verbena::kernel
