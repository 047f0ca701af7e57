// Copies between this process and another one's private memory: by process_vm_readv/writev where the kernel permits
// it, else by an errand that one of the owner's threads runs.
// Threads: any.
#pragma once

#include <cstddef>
#include <cstdint>

#include "device/memory/transfer.h"
#include "device/shared/nic.h"

namespace verbena::device {

// Copies n bytes between `mine` and the owner's address `theirs`; `writing`: into the owner's memory.
Moved remote_copy(Peer& peer, bool writing, std::byte* mine, std::uint64_t theirs, std::uint64_t n);

}  // namespace verbena::device
