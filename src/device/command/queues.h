// Where a queue lies, from the three ways a command can say it: a page list, a UMEM, nothing.
//
// Bus addresses are virtual addresses of this process and every queue must be one run of them; a page list that is not
// consecutive is refused. Memory that is not mapped is refused too: the device must never fault on a guest's address.
// Threads: under State::mutex.
#pragma once

#include <cstdint>
#include <optional>
#include <span>

#include "device/command/outcome.h"
#include "device/command/state.h"
#include "prm/wq.h"

namespace verbena::device::command {

// What a command says about the memory of a queue.
struct QueueMemory {
  bool written = false;              // by the device: a completion queue. Work queues it only reads
  bool umem_valid = false;
  std::uint32_t umem_id = 0;
  std::uint64_t umem_offset = 0;
  unsigned log_page_size = 0;        // of the context: the page is 4096 << this
  unsigned page_offset = 0;          // of the context: in 64ths of a page
  std::span<const std::byte> pages;  // pas[]
};

// Checks that `bytes` bytes of queue lie there and says where. Does not take a reference on a UMEM.
Maybe<Backing> locate_queue(State& state, const QueueMemory& memory, std::uint64_t bytes, std::uint16_t uid);

// The address of a doorbell record: `addr` itself, or an offset into a UMEM. Checks alignment and that it is mapped.
Maybe<std::uint64_t> locate_doorbell(State& state, bool umem_valid, std::uint32_t umem_id, std::uint64_t addr,
                                     std::uint16_t uid, Backing& backing);

// What the context of a work queue (of an SQ, an RQ, an RMP) says of its memory.
QueueMemory memory_of(const prm::ConstView<prm::Wq>& wq, std::span<const std::byte> pages);

// Both of a work queue whose entries have 1 << log_stride bytes.
Maybe<Backing> locate_work_queue(State& state, const prm::ConstView<prm::Wq>& wq, unsigned log_stride,
                                 std::span<const std::byte> pages, std::uint16_t uid);

// A queue takes and gives back its UMEMs.
void hold(State& state, const Backing& backing);
void let_go(State& state, const Backing& backing);

// Writes the page list of a queue behind a query's reply, as far as the reply has room.
void list_pages(const Backing& backing, std::span<std::byte> tail);

// A word of a doorbell record, as the program has it now; none if it is not there (any more).
std::optional<std::uint32_t> read_record(std::uint64_t va);

// Whether all of [va, va + bytes) is mapped in this process.
bool is_mapped(std::uint64_t va, std::uint64_t bytes);

}  // namespace verbena::device::command
