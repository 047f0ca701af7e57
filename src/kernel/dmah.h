// DMA handles: which processor and which kind of memory a region is meant for (PCIe TPH). They are hints for the caches
// of a host: nothing that a program sees depends on them.
// Threads: under the File's lock.
#pragma once

#include <cstdint>

#include <span>

#include "kernel/file.h"
#include "uverbs/newer.h"

namespace verbena::kernel {

struct Dmah : Object {
  Dmah() : Object(uverbs::newer::kObjectDmah) {}
  int destroy(File&) override { return 0; }  // in use as long as a region was registered with it
};

struct Method;
std::span<const Method> dmah_methods();

}  // namespace verbena::kernel
