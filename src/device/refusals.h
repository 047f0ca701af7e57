// Why the device refused a command: from the syndrome in the output mailbox back to a sentence.
//
// Each refusal has a syndrome of its own. Two kinds exist: those of the table in device/command/refusals.h, and those
// computed for a field that breaks its own rule (reserved bits set, value not in its list), which name the command and
// the field's byte offset: bit 31, opcode in bits 30..16, offset in bits 15..0.
// Threads: pure functions.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "prm/command.h"

namespace verbena::device {

struct Refusal {
  prm::Status status = prm::Status::ok;
  std::uint32_t syndrome = 0;
  std::string reason;  // one line: which field and why
};

// What a syndrome of this device means; empty for one it never gives.
std::optional<Refusal> find_refusal(std::uint32_t syndrome);

// One row of the table; `name` is how the sources call it.
struct RefusalRow {
  std::uint32_t syndrome;
  prm::Status status;
  std::string_view name;
  std::string_view reason;
};
// All rows, ascending by syndrome.
std::span<const RefusalRow> refusal_table();

}  // namespace verbena::device
