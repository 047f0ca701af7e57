// Requests built by the names of their fields, for tests that go through every command.
// Threads: values of one thread.
#pragma once

#include <algorithm>
#include <stdexcept>
#include <string>
#include <vector>

#include "device/command/dispatcher.h"
#include "prm/layout.h"

namespace verbena::device {

struct FieldInfo {
  std::string path;
  unsigned offset, lsb, width;  // width above 64: raw bytes
  bool (*accepts)(std::uint64_t);

  std::uint64_t max() const { return width >= 64 ? ~std::uint64_t{0} : (std::uint64_t{1} << width) - 1; }
  void set(std::vector<std::byte>& bytes, std::uint64_t value) const {
    if (width > 64) {
      std::fill_n(bytes.begin() + offset, width / 8, static_cast<std::byte>(value));
      return;
    }
    if (width == 64) return prm::store_be64(bytes.data() + offset, value);
    const auto mask = static_cast<std::uint32_t>(max()) << lsb;
    const std::uint32_t old = prm::load_be32(bytes.data() + offset);
    prm::store_be32(bytes.data() + offset, (old & ~mask) | (static_cast<std::uint32_t>(value) << lsb & mask));
  }
};

inline const std::vector<FieldInfo>& fields_of(const command::Entry& entry) {
  static std::vector<std::pair<prm::Opcode, std::vector<FieldInfo>>> known;
  for (const auto& [opcode, list] : known)
    if (opcode == entry.opcode) return list;
  struct Collect final : command::FieldVisitor {
    std::vector<FieldInfo> list;
    void field(const std::string& path, unsigned offset, unsigned lsb, unsigned width,
               bool (*accepts)(std::uint64_t)) override {
      list.push_back({path, offset, lsb, width, accepts});
    }
  } collect;
  entry.visit(collect);
  known.reserve(1024);  // references stay good
  return known.emplace_back(entry.opcode, std::move(collect.list)).second;
}

// A request under construction.
struct Command {
  const command::Entry* entry;
  std::vector<std::byte> in;

  explicit Command(prm::Opcode opcode, std::uint16_t uid = 0, std::size_t tail = 0)
      : entry(command::registry().find(static_cast<std::uint16_t>(opcode))), in(entry->in_size + tail) {
    prm::View<prm::CommandIn>(in.data()).set<prm::CommandIn::opcode>(opcode).set<prm::CommandIn::uid>(uid);
  }
  // Another request's bytes, to be changed.
  template <class Request>
  explicit Command(const Request& from)
      : entry(command::registry().find(static_cast<std::uint16_t>(prm::load_be32(from.in.span().data()) >> 16))),
        in(from.in.span().begin(), from.in.span().end()) {}

  // By the whole path, or by its end where that is the first such.
  Command& set(const std::string& name, std::uint64_t value) {
    for (const FieldInfo& f : fields_of(*entry))
      if (f.path == name || f.path.ends_with("." + name)) {
        f.set(in, value);
        return *this;
      }
    throw std::runtime_error("no field " + name);
  }
  Command& tail64(unsigned i, std::uint64_t value) {
    in.resize(std::max(in.size(), entry->in_size + 8 * (i + std::size_t{1})));
    prm::store_be64(in.data() + entry->in_size + 8 * i, value);
    return *this;
  }
  Command& uid(std::uint16_t value) {
    prm::View<prm::CommandIn>(in.data()).set<prm::CommandIn::uid>(value);
    return *this;
  }
};

}  // namespace verbena::device
