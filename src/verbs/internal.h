// Helpers shared inside src/verbs. Threads: any.
#pragma once

#include <cerrno>

#include "verbs/driver.h"

namespace verbena::verbs {

inline const Ops& ops(ibv_context* context) { return context_of(context)->ops; }

// The verbs convention: the errno value is both returned and set. 0 leaves errno alone.
inline int report(int error) {
  if (error) errno = error;
  return error;
}
template <class T>
T* refuse(int error) {
  errno = error;
  return nullptr;
}

// ops.cc: answers for verbs that the provider has not got, and the public tables derived from Ops.
const Ops& default_ops();
void publish_ops(Context& context);

// registry.cc
inline Device* device_of(ibv_device* device) { return derived<Device>(device); }
void hold(Device& device);
void put(Device& device);

// context.cc: the wrappers that verbs_context points at.
int query_port_sized(ibv_context*, std::uint8_t port, ibv_port_attr*, std::size_t attr_size);
ibv_cq_ex* create_cq_ex_checked(ibv_context*, ibv_cq_init_attr_ex*);
int alloc_async_fd(Context& context);

// cq.cc
void init_cq(ibv_cq* cq, ibv_context* context, ibv_comp_channel* channel, void* cq_context);

// gid.cc: which parts of an entry the sysfs fallback has to fill.
enum GidPart : unsigned { kGidValue = 1, kGidType = 2, kGidNetdev = 4, kGidAll = 7 };
int query_gid_entry(ibv_context*, std::uint32_t port, std::uint32_t index, ibv_gid_entry*, std::uint32_t flags,
                    std::size_t entry_size, unsigned fallback_parts);

// sysfs.cc: a file of the device, e.g. device_attribute(device, buffer, size, "ports/%u/pkeys/%u", port, index).
// Length or -1 with errno.
int device_attribute(const Device& device, char* buffer, std::size_t size, const char* format, ...)
    __attribute__((format(printf, 4, 5)));

// copy_on_fork.cc: whether fork(2) is harmless to memory that the device knows. Any thread.
bool copies_on_fork();

}  // namespace verbena::verbs

// fork.cc
extern "C" {
int ibv_dontfork_range(void* base, std::size_t size);
int ibv_dofork_range(void* base, std::size_t size);
}

// Gives `function` the version `node` of the public name `name` ("ibv_open_device@IBVERBS_1.0").
#define VERBENA_SYMVER(function, version) __asm__(".symver " #function "," version)
