// The rules that a layout states of its own fields, as the dispatcher applies them to every request.
// Threads: pure functions.
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string_view>

#include "prm/validate.h"

namespace verbena::device::command {

// Offset of the first dword with reserved bits set or a value that its field does not allow.
template <class L>
std::optional<unsigned> first_violation(std::span<const std::byte> in) {
  if (const auto found = prm::validate<L>(in)) return found->dword;
  return std::nullopt;
}

// The innermost field whose bytes include `offset`; "reserved" if there is none.
template <class L>
std::string_view field_name_at(unsigned offset) {
  std::string_view name = "reserved";
  L::fields::each([&]<class F>() {
    if (offset < F::offset || offset >= F::offset + F::bytes) return;
    if constexpr (F::kind == prm::Kind::sub)
      name = field_name_at<typename F::layout>(offset - F::offset);
    else if (name == "reserved")
      name = F::name;
  });
  return name;
}

}  // namespace verbena::device::command
