// Copies that survive unmapped memory: a fault inside guarded_copy() becomes its return value, not a signal.
//
// A handler for SIGSEGV and SIGBUS acts only when the instruction lies in the copy routine (or the address in
// memory that is just being promoted, or in a page of operations); every other fault goes to the handler that was there before.
// Threads: any.
#pragma once

#include <cstddef>
#include <cstdint>

namespace verbena::device {

// Copies n bytes (the ranges must not overlap). 0, or nonzero if an access faulted: the address (1 for none known).
// An aligned copy of 8 bytes is one load and one store.
extern "C" std::uintptr_t verbena_guarded_copy(void* to, const void* from, std::size_t n);
inline std::uintptr_t guarded_copy(void* to, const void* from, std::size_t n) {
  return verbena_guarded_copy(to, from, n);
}

// The same, for reading a program's arguments into memory of our own. (A name of its own, so that tests can confine
// where the device writes.)
extern "C" std::uintptr_t verbena_guarded_read(void* to, const void* from, std::size_t n);
inline std::uintptr_t guarded_read(void* to, const void* from, std::size_t n) {
  return verbena_guarded_read(to, from, n);
}

// Installs the handler, or again if somebody replaced it. A system call or two.
void ensure_guard();

// Asked first about every fault that is not a guarded copy's; true: try the instruction again. Set once.
using FaultHook = bool (*)(std::uintptr_t address);
void set_fault_hook(FaultHook hook);
// Asked last, with the interrupted thread's ucontext_t: true, it did what the instruction would have done. Set once.
using AccessHook = bool (*)(std::uintptr_t address, void* context);
void set_access_hook(AccessHook hook);

}  // namespace verbena::device
