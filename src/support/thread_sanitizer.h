// What ThreadSanitizer cannot see by itself: loads and stores in assembly (device/memory/guard.h).
#pragma once

#if defined(__SANITIZE_THREAD__)
extern "C" void __tsan_acquire(void* address);
extern "C" void __tsan_release(void* address);
#endif

namespace verbena {

// The word at `address`, which this process has mapped, was loaded in order: what was stored before it is seen too.
inline void loaded_in_order([[maybe_unused]] const void* address) {
#if defined(__SANITIZE_THREAD__)
  __tsan_acquire(const_cast<void*>(address));
#endif
}

// The byte or word at `address`, which this process has mapped, is about to be stored in order: after all stores so far.
inline void stores_in_order([[maybe_unused]] const void* address) {
#if defined(__SANITIZE_THREAD__)
  __tsan_release(const_cast<void*>(address));
#endif
}

}  // namespace verbena
