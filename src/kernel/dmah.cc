#include "kernel/dmah.h"

#include <sched.h>

#include <cerrno>

#include "kernel/method.h"

namespace verbena::kernel {
namespace {

using namespace uverbs::newer;

constexpr AttrSpec kAllocAttrs[] = {
    uverbs::object_attr(kAllocDmahHandle, kObjectDmah, AttrAccess::create),
    uverbs::in_attr(kAllocDmahCpuId, 4, false),
    {kAllocDmahMemoryType, uverbs::AttrKind::enum_in, false, kDmahMemoryTypes, 0, false, 0, AttrAccess::read},
    uverbs::in_attr(kAllocDmahHint, 1, false),
};

bool may_run_on(std::uint32_t cpu) {
  cpu_set_t set;
  CPU_ZERO(&set);
  return cpu < CPU_SETSIZE && sched_getaffinity(0, sizeof set, &set) == 0 && CPU_ISSET(cpu, &set);
}

int native_alloc(File& file, Request& request) {
  constexpr std::uint8_t kHints = 3;  // two bits
  const bool cpu = request.has(kAllocDmahCpuId);
  if (cpu && !may_run_on(request.value<std::uint32_t>(kAllocDmahCpuId))) return EPERM;
  if (!request.has(kAllocDmahHint) || request.value<std::uint8_t>(kAllocDmahHint) & ~kHints) return EINVAL;
  if (cpu != request.has(kAllocDmahMemoryType)) return EINVAL;  // a steering tag is of both
  request.set_id(kAllocDmahHandle, file.objects().add(std::make_unique<Dmah>()));
  return 0;
}

constexpr AttrSpec kFreeAttrs[] = {uverbs::object_attr(kFreeDmahHandle, kObjectDmah, AttrAccess::destroy)};
constexpr Method kMethods[] = {
    {{kObjectDmah, kDmahAlloc, kAllocAttrs}, native_alloc},
    {{kObjectDmah, kDmahFree, kFreeAttrs}, destroy_method<kObjectDmah, kFreeDmahHandle>},
};

}  // namespace

std::span<const Method> dmah_methods() { return kMethods; }

}  // namespace verbena::kernel
