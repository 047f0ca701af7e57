// The switch between the NIC's ports and its functions: which places it has, and how steering names them.
// Threads: pure functions.
#pragma once

#include <cstdint>

namespace verbena::device::command {

// The vport of this function, which manages the switch. There is no other function, so no other vport but the uplink,
// which has no context.
inline constexpr std::uint32_t kOwnVport = 0;

// Where rules can send a packet, in the order of their addresses.
enum class SwitchPlace : std::uint8_t { drop, uplink, own_vport };

// Addresses, in the device's own memory (ICM), of the steering entries that lead to a place: as rules of what the switch
// receives from the wire name it, and as those of what it sends there.
struct SteeringAddresses {
  std::uint64_t rx = 0, tx = 0;
};

inline constexpr std::uint64_t kSteeringStart = 0x40000000;
inline constexpr std::uint64_t kSteeringOfFunction = 0x100000;  // bytes a function has of it
inline constexpr std::uint64_t kSteeringEntry = 64;             // bytes

constexpr SteeringAddresses steering_addresses(unsigned device_index, SwitchPlace place) {
  const std::uint64_t first = kSteeringStart + device_index * kSteeringOfFunction;
  const std::uint64_t rx = first + 2 * kSteeringEntry * static_cast<unsigned>(place);
  return {rx, rx + kSteeringEntry};
}

}  // namespace verbena::device::command
