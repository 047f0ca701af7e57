// Big-endian stores and what the public WQE and CQE structures leave unnamed.
#pragma once

#include <infiniband/mlx5dv.h>

#include <bit>
#include <concepts>
#include <cstdint>
#include <cstring>

namespace verbena::mlx5 {

template <std::unsigned_integral T>
constexpr T be(T value) {
  return std::byteswap(value);
}

inline void store64(void* at, std::uint64_t value) { std::memcpy(at, &value, sizeof value); }
inline void store32(void* at, std::uint32_t value) { std::memcpy(at, &value, sizeof value); }
inline std::uint64_t load64(const void* at) {
  std::uint64_t value;
  std::memcpy(&value, at, sizeof value);
  return value;
}
inline std::uint32_t load32(const void* at) {
  std::uint32_t value;
  std::memcpy(&value, at, sizeof value);
  return value;
}

inline constexpr unsigned kWqeBlock = MLX5_SEND_WQE_BB;
inline constexpr unsigned kSegment = 16;  // ds counts these
inline constexpr std::uint32_t kInlineFlag = MLX5_INLINE_SEG;
inline constexpr std::uint8_t kFenceFull = 4 << 5;
inline constexpr std::uint8_t kFenceInitiatorSmall = 1 << 5;
inline constexpr std::uint8_t kCqUpdate = 2 << 2;
inline constexpr std::uint8_t kSolicited = 1 << 1;

// A UMR WQE that changes one memory window: control, UMR control, key context, one inline KLM padded to 64 bytes.
inline constexpr unsigned kUmrKlmBlock = 64;

// Device page of doorbells: BlueFlame registers begin here.
inline constexpr unsigned kUarPage = 4096;
inline constexpr unsigned kBlueFlameOffset = 0x800;

}  // namespace verbena::mlx5
