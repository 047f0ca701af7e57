// Debian's own libibverbs, where installed: what we must look like.
#pragma once

#include <dlfcn.h>

#include <cstdlib>
#include <filesystem>

namespace verbena::test {

inline constexpr char kReference[] = "/usr/lib/x86_64-linux-gnu/libibverbs.so.1";

inline bool have_reference() {
  std::error_code error;
  return std::filesystem::exists(kReference, error) &&
         !std::filesystem::equivalent(kReference, VERBENA_LIBIBVERBS, error);
}

// A copy in a namespace of its own, so that its symbols do not mix with ours.
inline void* reference() {
  static void* library = dlmopen(LM_ID_NEWLM, kReference, RTLD_NOW);
  return library;
}

template <class Function>
Function reference_function(const char* name) {
  return reinterpret_cast<Function>(dlsym(reference(), name));
}

}  // namespace verbena::test
