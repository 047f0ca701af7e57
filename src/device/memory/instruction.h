// The x86-64 instruction behind a fault: a plain load or store of 1, 2, 4 or 8 bytes, and what it does to registers.
//
// Moves between memory and one general or vector register, with and without extension, immediate stores, and arithmetic
// that only reads memory: what a compiler or memcpy makes of one access to a volatile word. Everything else
// (read-modify-write, string, wider vectors) is not recognised.
// Threads: pure functions over the values given; usable in a signal handler.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

namespace verbena::device {

struct MemoryAccess {
  enum class Register : std::uint8_t { general, high_byte, vector, immediate };
  // The first eight in the order of their opcodes.
  enum class Action : std::uint8_t { add, or_, adc, sbb, and_, sub, xor_, cmp, test, move };
  bool store = false;
  std::uint8_t bytes = 0;   // of memory
  std::uint8_t length = 0;  // of the instruction
  Register kind = Register::general;
  std::uint8_t number = 0;    // of the register
  std::uint8_t width = 0;     // load into a general register: bytes of it that are written (4: the upper half is zeroed)
  bool sign_extend = false;
  bool vex = false;           // vector load: everything above 128 bits is zeroed too
  std::uint64_t immediate = 0;
  Action action = Action::move;
  bool memory_first = false;  // memory is the left operand: a comparison, which leaves no value
};

// `code` is what could be read from the instruction pointer on.
std::optional<MemoryAccess> decode_access(std::span<const std::uint8_t> code);

// The value of a general register after a load of `value`, of one that held `before`.
std::uint64_t loaded(const MemoryAccess& access, std::uint64_t before, std::uint64_t value);

// What arithmetic on a value from memory leaves: in the register, unless it compares, and in the flags.
struct Computed {
  std::uint64_t value, flags;
};
Computed compute(const MemoryAccess& access, std::uint64_t from_memory, std::uint64_t other, std::uint64_t flags);

}  // namespace verbena::device
