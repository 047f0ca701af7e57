// Result<T>: a value or an errno with a reason. For failures of the host (files, memory, system calls);
// refusals of the device use prm status + syndrome instead (device/command/refusal.h).
#pragma once

#include <expected>
#include <string>

namespace verbena {

struct Error {
  int code = 0;        // errno
  std::string reason;  // one line: what was attempted and why it failed
};

template <class T>
using Result = std::expected<T, Error>;

inline std::unexpected<Error> fail(int code, std::string reason) {
  return std::unexpected(Error{code, std::move(reason)});
}

}  // namespace verbena
