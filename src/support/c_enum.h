// Enumerations of a C interface. The caller may leave any number in one; C++ lets only the listed ones be loaded.
// Threads: any.
#pragma once

#include <cstring>
#include <type_traits>

namespace verbena {

// The number in `value`, listed or not.
template <class E>
requires std::is_enum_v<E>
inline std::underlying_type_t<E> number_of(const E& value) {
  std::underlying_type_t<E> number;
  std::memcpy(&number, &value, sizeof number);
  return number;
}

}  // namespace verbena
