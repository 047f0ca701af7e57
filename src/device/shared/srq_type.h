// What SrqContext.type says.
#pragma once

#include <cstdint>

namespace verbena::device {

inline constexpr std::uint8_t kSrqTypeSrq = 0, kSrqTypeXrc = 1, kSrqTypeRmp = 2, kSrqTypeXrq = 3;

}  // namespace verbena::device
