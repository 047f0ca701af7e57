// The rules that a layout states of its own fields, as the dispatcher applies them to every request.
// Threads: pure functions.
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string>
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

// Takes every field of a request: its path ("qpc.primary_address_path.tclass"), the byte offset of its first dword, its
// lowest bit there and its width. Wider than 64 bits: raw bytes.
struct FieldVisitor {
  virtual void field(const std::string& path, unsigned offset, unsigned lsb, unsigned width,
                     bool (*accepts)(std::uint64_t)) = 0;

 protected:
  ~FieldVisitor() = default;
};

template <class L>
void visit_fields(FieldVisitor& visitor, const std::string& prefix, unsigned base) {
  L::fields::each([&]<class F>() {
    const std::string path = prefix + std::string(F::name);
    if constexpr (F::kind == prm::Kind::sub) {
      visit_fields<typename F::layout>(visitor, path + ".", base + F::offset);
    } else if constexpr (F::kind == prm::Kind::array) {
      for (unsigned i = 0; i < F::count; ++i)
        visit_fields<typename F::layout>(visitor, path + "[" + std::to_string(i) + "].",
                                         static_cast<unsigned>(base + F::offset + i * F::layout::size));
    } else if constexpr (F::kind == prm::Kind::bytes) {
      visitor.field(path, base + F::offset, 0, F::bytes * 8, [](std::uint64_t) { return true; });
    } else if constexpr (F::kind == prm::Kind::bits) {
      visitor.field(path, base + F::offset, F::at.lsb, F::width, &F::rule::accepts);
    } else {
      visitor.field(path, base + F::offset, 0, F::width, &F::rule::accepts);
    }
  });
}

}  // namespace verbena::device::command
