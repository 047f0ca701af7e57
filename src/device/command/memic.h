// Memory on the device (MEMIC): a window of the BAR, which here is shared memory of the process's slice.
// Threads: under State::mutex.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>

namespace verbena::device::command {

struct State;

// What the capability page says.
inline constexpr std::uint64_t kMemicBarStart = 0x2000000;
inline constexpr std::uint32_t kMemicBarBytes = 1u << 20;
inline constexpr std::uint32_t kMemicBytes = 1u << 17;  // all allocations of a process together
inline constexpr std::uint32_t kMemicGranule = 64;
inline constexpr unsigned kMemicMaxAlignment = 6;  // log2 of 64-byte units: 4 KiB

struct Memic {
  struct Area {
    std::uint32_t bytes = 0;
    std::uint32_t uses = 0;  // memory keys over it
  };
  std::byte* window = nullptr;         // of the whole BAR range; made at the first allocation
  std::map<std::uint64_t, Area> areas;  // by BAR address
  std::uint32_t used = 0;

  // The area that holds all of [address, address + length); null if there is none. `*start` is its address.
  Area* holding(std::uint64_t address, std::uint64_t length, std::uint64_t* start);
  // Where a BAR address of the window lies in this process.
  std::byte* at(std::uint64_t address) const { return window + (address - kMemicBarStart); }
};

}  // namespace verbena::device::command
