// Mappings that are large and of which little is ever touched.
//
// Threads: any.
#pragma once

#include <cstddef>

namespace verbena::device {

// As mmap(2) of `length` bytes to read and write; `flags` has MAP_SHARED or MAP_PRIVATE | MAP_ANONYMOUS. Where the program
// has all its future mappings locked, and with that filled (mlockall(2), MCL_FUTURE), this one is left out.
void* map_sparse(std::size_t length, int flags, int fd);
// Puts zeros of this process alone in the place of such a mapping. Whoever is inside it meanwhile sees either.
void replace_sparse(void* mapping, std::size_t length);

}  // namespace verbena::device
