// /proc/self/maps, read without locks or streams.
// Threads: any.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace verbena::device {

struct Mapping {
  std::uint64_t start, end;
  bool read, write, shared;
  std::uint64_t offset, device, inode;
  bool named;         // has a name other than [heap] and [anon...]
  bool below_guard;   // an inaccessible private mapping ends where this one starts: it may be a thread's stack
};

// Sorted by address; empty if the file cannot be read.
std::vector<Mapping> own_mappings();
const Mapping* mapping_of(const std::vector<Mapping>& all, std::uint64_t va);

}  // namespace verbena::device
