// What a failed call throws: the errno and, when the device refused a command, its status, its syndrome and the reason.
//
// Threads: plain values; any thread.
#pragma once

#include <dlfcn.h>

#include <cerrno>
#include <cstdint>
#include <cstdio>
#include <string>
#include <string_view>
#include <system_error>

#include "prm/command.h"

namespace verbena {

namespace detail {

constexpr std::string_view meaning(prm::Status status) {
  switch (status) {
    case prm::Status::ok:
      return "";
    case prm::Status::internal_err:
      return "internal error of the device";
    case prm::Status::bad_op:
      return "the device has no such command, or not for this caller";
    case prm::Status::bad_param:
      return "a field has a value that is not allowed, or a reserved bit is set";
    case prm::Status::bad_sys_state:
      return "the device is not in a state for this command";
    case prm::Status::bad_resource:
      return "an object that the command names does not exist, or is another's";
    case prm::Status::resource_busy:
      return "the object is in use";
    case prm::Status::exceed_lim:
      return "a limit of the device is reached";
    case prm::Status::bad_res_state:
      return "an object is in a state that does not allow this";
    case prm::Status::bad_index:
      return "an index is out of range";
    case prm::Status::no_resources:
      return "nothing is left of what the command needs";
    case prm::Status::bad_qp_state:
      return "the queue pair is in a state that does not allow this";
    case prm::Status::bad_pkt:
      return "a malformed management packet";
    case prm::Status::bad_size:
      return "a size is out of range";
    case prm::Status::bad_input_len:
      return "the request has the wrong length";
    case prm::Status::bad_output_len:
      return "the room for the reply is too small";
  }
  return "an unknown status";
}

// The emulated device can say which field was wrong. It is asked only if it lives in this process; the syndromes of
// hardware are its firmware's own, and there the status must do.
inline std::string reason_of(prm::Status status, std::uint32_t syndrome) {
  if (status == prm::Status::ok) return {};
  if (void* nic = dlopen("libverbena-nic.so", RTLD_LAZY | RTLD_NOLOAD)) {
    using Explain = int (*)(std::uint32_t, char*, std::size_t);
    char text[256];
    const auto explain = reinterpret_cast<Explain>(dlsym(nic, "verbena_explain"));
    const bool known = explain && explain(syndrome, text, sizeof text) == 0;
    dlclose(nic);
    if (known) return text;
  }
  return std::string(meaning(status));
}

}  // namespace detail

class Error : public std::system_error {
 public:
  // A call failed with an errno and there is no reply of the device.
  Error(std::string_view call, int error) : std::system_error(error, std::generic_category(), std::string(call)) {}
  // The device refused a command.
  Error(std::string_view call, int error, prm::Status status, std::uint32_t syndrome)
      : Error(call, error, status, syndrome, detail::reason_of(status, syndrome)) {}

  int error() const { return code().value(); }           // errno
  prm::Status status() const { return status_; }         // ok: no command was refused
  std::uint32_t syndrome() const { return syndrome_; }   // 0: no command was refused
  const std::string& reason() const { return reason_; }  // which field and why; or what the status means

 private:
  Error(std::string_view call, int error, prm::Status status, std::uint32_t syndrome, std::string reason)
      : std::system_error(error, std::generic_category(), text(call, status, syndrome, reason)),
        status_(status),
        syndrome_(syndrome),
        reason_(std::move(reason)) {}
  static std::string text(std::string_view call, prm::Status status, std::uint32_t syndrome,
                          const std::string& reason) {
    char numbers[64];
    std::snprintf(numbers, sizeof numbers, ": status 0x%x, syndrome 0x%x: ", static_cast<unsigned>(status), syndrome);
    return std::string(call) + numbers + reason;
  }

  prm::Status status_ = prm::Status::ok;
  std::uint32_t syndrome_ = 0;
  std::string reason_;
};

}  // namespace verbena
