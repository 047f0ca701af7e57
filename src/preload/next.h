// The function that an interposer stands in front of: next<"fopen", decltype(::fopen)>().
//
// Threads: any. Null if no library behind ours has it.
#pragma once

#include <dlfcn.h>

#include <atomic>
#include <cstddef>

namespace verbena::preload {

template <std::size_t N>
struct Symbol {
  consteval Symbol(const char (&text)[N]) {
    for (std::size_t i = 0; i < N; ++i) name[i] = text[i];
  }
  char name[N];
};

template <Symbol symbol, class Function>
inline std::atomic<Function*> next_function{nullptr};

template <Symbol symbol, class Function>
Function* next() {
  Function* function = next_function<symbol, Function>.load(std::memory_order_relaxed);
  if (function == nullptr) [[unlikely]] {
    function = reinterpret_cast<Function*>(dlsym(RTLD_NEXT, symbol.name));
    next_function<symbol, Function>.store(function, std::memory_order_relaxed);
  }
  return function;
}

}  // namespace verbena::preload
