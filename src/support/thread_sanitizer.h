// What ThreadSanitizer cannot see by itself: loads in assembly (device/memory/guard.h).
#pragma once

#if defined(__SANITIZE_THREAD__)
extern "C" void __tsan_acquire(void* address);
#endif

namespace verbena {

// The word at `address`, which this process has mapped, was loaded in order: what was stored before it is seen too.
inline void loaded_in_order([[maybe_unused]] const void* address) {
#if defined(__SANITIZE_THREAD__)
  __tsan_acquire(const_cast<void*>(address));
#endif
}

}  // namespace verbena
