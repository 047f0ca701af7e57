// Moving bytes between pieces with one copy: through mappings where both ends are mapped here, through process_vm_*
// where one end is another process's private memory.
// Threads: any; no locks held by the caller are needed. Memory that is not there is an answer, not a signal.
#pragma once

#include <cstdint>

#include "device/memory/pieces.h"

namespace verbena::device {

enum class Moved : std::uint8_t {
  ok,
  source_fault,       // nothing is mapped there, or not for that access
  destination_fault,
  unreachable,        // the kernel forbids us the other process's memory
  gone                // the other process does not answer: it has ended, or was stopped in the middle of moving its pages
};

// Copies n bytes from `from` at offset from_at to `to` at offset to_at. At least one end must be this process's
// memory or mapped here. The caller checks that n bytes are there.
Moved move(const PieceList& to, std::uint64_t to_at, const PieceList& from, std::uint64_t from_at, std::uint64_t n);

// The same between a buffer of this process and owner addresses.
Moved read_memory(Peer* peer, std::uint64_t va, void* to, std::size_t n);
Moved write_memory(Peer* peer, std::uint64_t va, const void* from, std::size_t n);

// Our address of [va, va + n) in `peer` if it is directly reachable: our own memory, its arena, or a promoted chunk.
std::byte* direct(Peer* peer, std::uint64_t va, std::uint64_t n);

// Atomics of 8 or 4 bytes. A compare and swap compares and swaps the bits of its masks; a fetch and add adds fields
// independently, `fields` having the top bit of each: no carry leaves them.
struct AtomicOp {
  bool compare_swap;     // else fetch and add
  std::uint64_t compare;
  std::uint64_t swap_add;
  std::uint64_t compare_mask = ~std::uint64_t{0}, swap_mask = ~std::uint64_t{0};
  std::uint64_t fields = 0;
  unsigned bytes = 8;
};
// Atomic against every other one through this NIC. `me`: Nic::me().
Moved atomic(Peer* peer, std::uint64_t va, const AtomicOp& op, std::uint32_t me, std::uint64_t& original);

}  // namespace verbena::device
