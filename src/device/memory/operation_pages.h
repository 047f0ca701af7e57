// Pages on which loads and stores are operations (MEMIC), or read the device's clock: a program maps them without any
// access, and the fault handler carries out what the faulting instruction would have done, on what lies behind.
//
// Which page an address is, the kernel's map of the process says, so that programs may unmap, move and inherit these
// pages as they like.
// Threads: any.
#pragma once

#include <cstddef>
#include <cstdint>

namespace verbena::device {

// As memic_operation_type has it.
enum class MemoryOperation : std::uint8_t {
  increment = 0,     // a store adds its value; a load reads
  test_and_set = 1,  // a load reads and sets all bits; a store writes
};
inline constexpr unsigned kMemoryOperations = 2;
inline constexpr std::uint32_t kOperationBytes = 1u << 20;  // of memory that one OperationPages covers

// The operation pages over one stretch of memory of kOperationBytes.
class OperationPages {
 public:
  OperationPages() = default;
  ~OperationPages();
  OperationPages(const OperationPages&) = delete;
  OperationPages& operator=(const OperationPages&) = delete;

  // Maps the pages at `offset` of the memory that begins at `memory`, always the same, as mmap(2) does; MAP_FAILED and errno.
  void* map(void* addr, std::size_t length, int flags, std::byte* memory, MemoryOperation op, std::uint32_t offset);
  // Accesses fault from now on as if nothing were mapped.
  void withdraw();

 private:
  int place_ = -1;
};

// Maps the page of the device's clock, always the same: a load reads it as it is, 64 bits big-endian at its begin. As mmap(2).
void* map_clock_page(void* addr, std::size_t length, int flags);

}  // namespace verbena::device
