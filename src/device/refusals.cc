#include "device/refusals.h"

#include <algorithm>
#include <cstdio>

#include "device/command/dispatcher.h"
#include "device/command/refusals.h"

namespace verbena::device {
namespace {

constexpr RefusalRow kRows[] = {
#define X(syndrome, status, name, reason) {syndrome, prm::Status::status, #name, reason},
    VERBENA_REFUSALS(X)
#undef X
};
static_assert(std::ranges::is_sorted(kRows, {}, &RefusalRow::syndrome), "syndromes ascend, so each is its own");

// A field that breaks its own rule: the syndrome says the command and where.
std::optional<Refusal> find_rule(std::uint32_t syndrome) {
  const auto opcode = static_cast<std::uint16_t>(syndrome >> 16 & 0x7fff);
  const unsigned offset = syndrome & 0xffff;
  const command::Entry* entry = command::registry().find(opcode);
  if (!entry || offset >= entry->in_size) return std::nullopt;
  char text[200];
  const auto field = entry->field_at(offset);
  std::snprintf(text, sizeof text, "%.*s, dword at 0x%x (%.*s): reserved bits are set or the value is not allowed",
                static_cast<int>(entry->name.size()), entry->name.data(), offset, static_cast<int>(field.size()),
                field.data());
  return Refusal{prm::Status::bad_param, syndrome, text};
}

}  // namespace

std::span<const RefusalRow> refusal_table() { return kRows; }

std::optional<Refusal> find_refusal(std::uint32_t syndrome) {
  if (syndrome >> 31) return find_rule(syndrome);
  const auto* row = std::ranges::lower_bound(kRows, syndrome, {}, &RefusalRow::syndrome);
  if (row == std::end(kRows) || row->syndrome != syndrome) return std::nullopt;
  return Refusal{row->status, row->syndrome, std::string(row->reason)};
}

}  // namespace verbena::device
