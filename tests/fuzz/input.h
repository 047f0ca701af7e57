// Reads a fuzz input front to back; at its end everything is zero.
// Threads: a value of one thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>

namespace verbena::fuzz {

class Input {
 public:
  Input(const std::uint8_t* data, std::size_t size) : left_(data, size) {}

  bool more() const { return !left_.empty(); }
  template <class T = std::uint8_t>
  T take() {
    T value{};
    bytes(&value, sizeof value);
    return value;
  }
  // A number in [0, limit).
  std::uint32_t below(std::uint32_t limit) { return limit <= 256 ? take() % limit : take<std::uint16_t>() % limit; }
  bool one_in(unsigned n) { return take() % n == n - 1; }  // false at the end of the input
  void bytes(void* to, std::size_t n) {
    const std::size_t have = n < left_.size() ? n : left_.size();
    std::memset(to, 0, n);
    if (have != 0) std::memcpy(to, left_.data(), have);
    left_ = left_.subspan(have);
  }
  // A number of `bits` bits: small, near the top, a power of two, or anything.
  std::uint64_t number() {
    const std::uint8_t kind = take();
    const std::uint64_t v = take();
    switch (kind % 6) {
      case 0:
        return v;
      case 1:
        return ~v;
      case 2:
        return std::uint64_t{1} << (v & 63);
      case 3:
        return (std::uint64_t{1} << (v & 63)) - 1;
      case 4:
        return take<std::uint32_t>();
      default:
        return take<std::uint64_t>();
    }
  }

 private:
  std::span<const std::uint8_t> left_;
};

}  // namespace verbena::fuzz
