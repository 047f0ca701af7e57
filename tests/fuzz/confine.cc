#include "tests/fuzz/confine.h"

#include <errno.h>
#include <sys/uio.h>

#include <array>
#include <cstdint>

namespace {

struct Range {
  std::uintptr_t start, end;
};
std::array<Range, 16> ranges;
unsigned range_count = 0;
constexpr std::uintptr_t kStack = 256 << 10;  // buffers of the callers, above the frame of the wrapper

bool allowed(std::uintptr_t at, std::size_t bytes, std::uintptr_t frame) {
  if (at >= frame && at - frame < kStack && bytes <= kStack - (at - frame)) return true;
  for (unsigned i = 0; i < range_count; ++i)
    if (at >= ranges[i].start && at < ranges[i].end && bytes <= ranges[i].end - at) return true;
  return false;
}

}  // namespace

extern "C" {
// Frames stay on the stack, where allowed() looks for the callers' buffers; the device's fault handler stays in place.
const char* __asan_default_options() { return "detect_stack_use_after_return=0:allow_user_segv_handler=1"; }

std::uintptr_t __real_verbena_guarded_copy(void* to, const void* from, std::size_t n);
ssize_t __real_process_vm_writev(pid_t, const iovec*, unsigned long, const iovec*, unsigned long, unsigned long);

std::uintptr_t __wrap_verbena_guarded_copy(void* to, const void* from, std::size_t n) {
  const auto at = reinterpret_cast<std::uintptr_t>(to);
  if (!allowed(at, n, reinterpret_cast<std::uintptr_t>(__builtin_frame_address(0)))) return at != 0 ? at : 1;
  return __real_verbena_guarded_copy(to, from, n);
}

ssize_t __wrap_process_vm_writev(pid_t pid, const iovec* local, unsigned long locals, const iovec* remote,
                                 unsigned long remotes, unsigned long flags) {
  for (unsigned long i = 0; i < remotes; ++i) {
    if (allowed(reinterpret_cast<std::uintptr_t>(remote[i].iov_base), remote[i].iov_len, ~std::uintptr_t{0})) continue;
    errno = EFAULT;
    return -1;
  }
  return __real_process_vm_writev(pid, local, locals, remote, remotes, flags);
}
}

namespace verbena::fuzz {

void confine_allow(const void* start, std::size_t bytes) {
  if (range_count == ranges.size()) __builtin_trap();
  const auto at = reinterpret_cast<std::uintptr_t>(start);
  ranges[range_count++] = {at, at + bytes};
}

}  // namespace verbena::fuzz
