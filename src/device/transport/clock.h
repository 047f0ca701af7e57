// The device's free-running clock: nanoseconds (1 GHz), close to CLOCK_MONOTONIC, at the price of one rdtsc.
// Threads: any.
#pragma once

#include <cstdint>

namespace verbena::device {

inline constexpr std::uint32_t kDeviceFrequencyKhz = 1'000'000;

// Steady within a process; between processes of a machine within about a microsecond.
std::uint64_t device_clock();
// For tests: the clock stands at `ns` until it is set again; 0 lets it run.
void stop_clock(std::uint64_t ns);
// CLOCK_MONOTONIC in nanoseconds.
std::uint64_t monotonic_ns();

}  // namespace verbena::device
