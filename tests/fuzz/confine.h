// Confines what the device under test writes: a fuzzed address must not reach the fuzzer's own heap, where no IOMMU
// stands in the way. Copies to anywhere but declared ranges and the caller's stack fail as unmapped memory does.
// Threads: confine_allow() before the first input; the rest any.
#pragma once

#include <cstddef>

namespace verbena::fuzz {

// Declares [start, start + bytes) as memory that the device may write.
void confine_allow(const void* start, std::size_t bytes);

}  // namespace verbena::fuzz
