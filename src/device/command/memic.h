// Memory on the device (MEMIC): a window of the BAR, which here is shared memory of the process's slice.
// Threads: under State::mutex.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>

#include "device/memory/operation_pages.h"

namespace verbena::device::command {

struct State;

// What the capability page says.
inline constexpr std::uint64_t kMemicBarStart = 0x2000000;
inline constexpr std::uint32_t kMemicBarBytes = 1u << 20;
inline constexpr std::uint32_t kMemicBytes = 1u << 17;  // all allocations of a process together
inline constexpr std::uint32_t kMemicGranule = 64;
inline constexpr unsigned kMemicMaxAlignment = 6;  // log2 of 64-byte units: 4 KiB
inline constexpr std::uint32_t kMemicOperations = (1u << kMemoryOperations) - 1;
inline constexpr std::uint32_t kMemicOperationSizes = 0xf;  // log2 of bytes: 1, 2, 4, 8
static_assert(kMemicBarBytes == kOperationBytes);

struct Memic {
  struct Area {
    std::uint32_t bytes = 0;
    std::uint32_t uses = 0;  // memory keys over it
    std::uint32_t operations = 0;  // those that have addresses
  };
  std::byte* window = nullptr;         // of the whole BAR range; made at the first allocation
  std::map<std::uint64_t, Area> areas;  // by BAR address
  std::uint32_t used = 0;

  // The area that holds all of [address, address + length); null if there is none. `*start` is its address.
  Area* holding(std::uint64_t address, std::uint64_t length, std::uint64_t* start);
  // Where a BAR address of the window lies in this process.
  std::byte* at(std::uint64_t address) const { return window + (address - kMemicBarStart); }

  // Each operation has a window of its own behind the memory's.
  static std::uint64_t operation_address(std::uint64_t address, std::uint32_t op) {
    return address + std::uint64_t{kMemicBarBytes} * (1 + op);
  }
  OperationPages operation_pages;
};

}  // namespace verbena::device::command
