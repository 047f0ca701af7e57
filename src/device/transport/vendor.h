// vendor_err_synd values beside those of prm/cqe.h, as ConnectX reports them in public bug reports and logs.
// Threads: constants.
#pragma once

#include <cstdint>

#include "prm/cqe.h"

namespace verbena::device {

inline constexpr std::uint8_t kVendorQpOperation = 0x68;   // a WQE the device cannot execute
inline constexpr std::uint8_t kVendorLocalLength = 0x32;
inline constexpr std::uint8_t kVendorLocalAccess = 0x52;
inline constexpr std::uint8_t kVendorBind = 0x57;
inline constexpr std::uint8_t kVendorRnrRetry = 0x87;
inline constexpr std::uint8_t kVendorRemoteOperation = 0x89;
inline constexpr std::uint8_t kVendorBadResponse = 0x84;

}  // namespace verbena::device
