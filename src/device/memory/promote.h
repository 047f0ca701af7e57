// Promotion: private memory that peers keep writing to or reading moves into the owner's arena, chunk by chunk, so
// that their next access is a plain copy instead of a system call.
// Threads: any.
#pragma once

#include <cstdint>

#include "device/shared/nic.h"

namespace verbena::device {

// Our address of `va` in another process if its chunk is promoted, else null. Either way n is cut to how far the
// answer holds.
std::byte* promoted(const Peer& peer, std::uint64_t va, std::uint64_t& n);

// A peer's private memory was just reached the slow way.
void note_remote_access(Peer& peer, std::uint64_t va, std::uint64_t n);

}  // namespace verbena::device
