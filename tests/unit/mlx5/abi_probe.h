// One list of probes, compiled against two headers: each gives a table of numbers that must agree.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace verbena::test {

struct AbiProbe {
  const char* what;
  std::uint64_t number;
  bool may_grow;  // a structure that newer versions append to
};

std::span<const AbiProbe> our_probes();
std::span<const AbiProbe> distro_probes();

}  // namespace verbena::test
