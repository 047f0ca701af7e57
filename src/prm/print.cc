#include "print.h"

#include <algorithm>
#include <cstdio>

#include "support/bytes.h"

namespace verbena::prm::detail {

void LinePrinter::start(std::string_view name) {
  out_.append(depth_, ' ');
  out_.append(name);
}

void LinePrinter::value(std::string_view name, std::uint64_t value) {
  if (value == 0 && !options_.zeros) return;
  char text[32];
  const int length = std::snprintf(text, sizeof text, " = 0x%llx\n", static_cast<unsigned long long>(value));
  start(name);
  out_.append(text, static_cast<std::size_t>(length));
}

void LinePrinter::bytes(std::string_view name, std::span<const std::byte> bytes) {
  if (!options_.zeros && is_zero(bytes)) return;
  static constexpr char kHex[] = "0123456789abcdef";
  static constexpr std::size_t kMost = 256;
  start(name);
  out_.append(" = ");
  for (std::byte b : bytes.first(std::min(bytes.size(), kMost))) {
    out_.push_back(kHex[std::to_integer<unsigned>(b) >> 4]);
    out_.push_back(kHex[std::to_integer<unsigned>(b) & 0xf]);
  }
  if (bytes.size() > kMost) out_.append("...");
  out_.push_back('\n');
}

void LinePrinter::more(std::size_t elements) {
  start("... and ");
  out_.append(std::to_string(elements));
  out_.append(" more\n");
}

LinePrinter::Heading LinePrinter::open(std::string_view name) {
  const std::size_t begin = out_.size();
  start(name);
  out_.append(":\n");
  depth_ += 2;
  return {begin, out_.size()};
}

LinePrinter::Heading LinePrinter::open(std::string_view name, std::size_t index) {
  const std::size_t begin = out_.size();
  start(name);
  out_.push_back('[');
  out_.append(std::to_string(index));
  out_.append("]:\n");
  depth_ += 2;
  return {begin, out_.size()};
}

void LinePrinter::close(Heading heading) {
  depth_ -= 2;
  if (out_.size() == heading.end) out_.resize(heading.start);
}

}  // namespace verbena::prm::detail
