// Prints a layout for traces: a line a field, name and value, sub-layouts indented. Zero fields are left out unless
// asked for. Members that overlap (unions) print as bytes; print the one that holds by its own layout.
// Threads: pure functions on the caller's bytes; any thread may call.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "layout.h"
#include "validate.h"

namespace verbena::prm {

struct PrintOptions {
  bool zeros = false;          // print fields that are zero too
  unsigned indent = 0;         // columns in front of each line
  std::size_t max_array = 16;  // elements of an array before the rest is summed up
};

namespace detail {

// Appends lines to a string; the untemplated half of the printer.
class LinePrinter {
 public:
  LinePrinter(std::string& out, const PrintOptions& options) : out_(out), options_(options), depth_(options.indent) {}
  void value(std::string_view name, std::uint64_t value);
  void bytes(std::string_view name, std::span<const std::byte> bytes);
  void more(std::size_t elements);
  // open() writes a heading; close() takes it back if nothing was written under it.
  struct Heading {
    std::size_t start;
    std::size_t end;
  };
  Heading open(std::string_view name);
  Heading open(std::string_view name, std::size_t index);
  void close(Heading heading);
  const PrintOptions& options() const { return options_; }

 private:
  void start(std::string_view name);
  std::string& out_;
  const PrintOptions& options_;
  unsigned depth_;
};

template <class L>
void print_layout(LinePrinter& to, std::span<const std::byte> bytes);

template <class A>
void print_array(LinePrinter& to, std::span<const std::byte> bytes) {
  using E = typename A::layout;
  const std::size_t room = bytes.size() > A::offset ? (bytes.size() - A::offset) / E::size : 0;
  const std::size_t count = A::count == 0 ? room : A::count;
  for (std::size_t i = 0; i < count && i < to.options().max_array; ++i) {
    const auto heading = to.open(A::name, i);
    print_layout<E>(to, bytes.subspan(A::offset + i * E::size, E::size));
    to.close(heading);
  }
  if (count > to.options().max_array) to.more(count - to.options().max_array);
}

template <class L>
void print_layout(LinePrinter& to, std::span<const std::byte> bytes) {
  L::fields::each([&]<class F>() {
    if constexpr (F::kind == Kind::array) {
      print_array<F>(to, bytes);
    } else if constexpr (F::kind == Kind::bytes) {
      to.bytes(F::name, bytes.subspan(F::offset, F::bytes));
    } else if constexpr (F::kind == Kind::sub) {
      if constexpr (is_union_member<L, F>()) {
        // The first of the overlapping members stands for all.
        if constexpr (!overlaps_earlier<L, F>()) to.bytes("union", bytes.subspan(F::offset, F::bytes));
      } else {
        const auto heading = to.open(F::name);
        print_layout<typename F::layout>(to, bytes.subspan(F::offset));
        to.close(heading);
      }
    } else {
      to.value(F::name, static_cast<std::uint64_t>(F::get(bytes.data())));
    }
  });
}

}  // namespace detail

// The fields of the layout over `bytes`, which may go on behind it (command tails). Empty if they are too short.
template <class L>
std::string to_text(std::span<const std::byte> bytes, const PrintOptions& options = {}) {
  std::string out;
  if (bytes.size() < L::size) return out;
  detail::LinePrinter printer(out, options);
  detail::print_layout<L>(printer, bytes);
  return out;
}

}  // namespace verbena::prm
