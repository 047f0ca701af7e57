// How a function that this library does not have yet says so: EOPNOTSUPP, in the form its return type asks for.
#pragma once

#include "mlx5/export.h"

namespace verbena::mlx5 {

inline int refuse() { return fail(EOPNOTSUPP); }
inline std::nullptr_t refuse_null() { return fail_null(EOPNOTSUPP); }
inline ssize_t refuse_minus_one() {
  errno = EOPNOTSUPP;
  return -1;
}

}  // namespace verbena::mlx5
