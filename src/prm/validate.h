// Checks a layout's bytes: bits no field covers must be zero, and values must obey the rules of their fields.
// Where fields overlap (unions), a bit is covered if any of them covers it, and the rules inside the overlapping
// sub-layouts are left to the caller, who knows which one holds and can check it alone.
// Threads: pure functions on the caller's bytes; any thread may call.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

#include "layout.h"

namespace verbena::prm {

struct Violation {
  unsigned dword = 0;      // byte offset from the start of the layout
  std::uint32_t bits = 0;  // offending bits of that dword
  // The field whose rule fails; for reserved bits the sub-layout they lie in, or empty.
  std::string_view field;
  std::string_view reason;
};

namespace detail {

template <std::size_t Bytes>
using DwordMask = std::array<std::uint32_t, (Bytes + 3) / 4>;

constexpr void cover_bytes(std::span<std::uint32_t> mask, std::size_t first, std::size_t count) {
  for (std::size_t i = first; i < first + count && i / 4 < mask.size(); ++i) mask[i / 4] |= 0xffu << (24 - i % 4 * 8);
}

// Marks the bits that the fields of L cover, L lying `base` bytes into the mask.
template <class L>
constexpr void cover(std::span<std::uint32_t> mask, std::size_t base) {
  L::fields::each([&]<class F>() {
    if constexpr (F::kind == Kind::bits) {
      if ((base + F::offset) / 4 < mask.size()) mask[(base + F::offset) / 4] |= F::mask;
    } else if constexpr (F::kind == Kind::sub) {
      cover<typename F::layout>(mask, base + F::offset);
    } else if constexpr (F::kind == Kind::array) {
      for (std::size_t i = 0; i < F::count; ++i)
        cover<typename F::layout>(mask, base + F::offset + i * F::layout::size);
    } else {
      cover_bytes(mask, base + F::offset, F::bytes);
    }
  });
}

template <class L>
constexpr DwordMask<L::size> covered() {
  DwordMask<L::size> mask{};
  cover<L>(mask, 0);
  // The half dword behind an Ethernet header does not exist.
  if constexpr (L::size % 4 != 0) mask.back() |= 0xffffu;
  return mask;
}

template <class F, class G>
constexpr bool overlap() {
  return !std::is_same_v<F, G> && F::offset < G::offset + G::bytes && G::offset < F::offset + F::bytes;
}

// Whether the member F of L shares bytes with another member.
template <class L, class F>
constexpr bool is_union_member() {
  bool found = false;
  L::fields::each([&]<class G>() { found = found || overlap<F, G>(); });
  return found;
}

// Whether a member listed before F shares bytes with it.
template <class L, class F>
constexpr bool overlaps_earlier() {
  bool found = false;
  bool before = true;
  L::fields::each([&]<class G>() {
    before = before && !std::is_same_v<F, G>;
    found = found || (before && overlap<F, G>());
  });
  return found;
}

// The sub-layout of L that holds the dword, or empty.
template <class L>
constexpr std::string_view member_at(std::size_t dword) {
  std::string_view name;
  L::fields::each([&]<class F>() {
    if constexpr (F::kind == Kind::sub || F::kind == Kind::array) {
      if (name.empty() && dword >= F::offset && dword < F::offset + F::bytes) name = F::name;
    }
  });
  return name;
}

template <class L>
void check_rules(const std::byte* base, unsigned at, std::optional<Violation>& found) {
  L::fields::each([&]<class F>() {
    if (found) return;
    if constexpr (F::kind == Kind::sub) {
      if constexpr (!is_union_member<L, F>()) check_rules<typename F::layout>(base + F::offset, at + F::offset, found);
    } else if constexpr (F::kind == Kind::array) {
      for (unsigned i = 0; i < F::count && !found; ++i) {
        const auto step = static_cast<unsigned>(F::offset + i * F::layout::size);
        check_rules<typename F::layout>(base + step, at + step, found);
      }
    } else if constexpr (F::kind != Kind::bytes) {
      if (F::rule::accepts(static_cast<std::uint64_t>(F::get(base)))) return;
      found = Violation{(at + F::offset) & ~3u, ~0u, F::name, "value not allowed"};
      if constexpr (F::kind == Kind::bits) found->bits = F::mask;
    }
  });
}

}  // namespace detail

// Bits of L, dword by dword, that some field covers.
template <class L>
inline constexpr auto kCoveredBits = detail::covered<L>();

// The first reserved bit that is set, if any. `bytes` may go on behind the layout (command tails); the tail is not
// looked at.
template <class L>
std::optional<Violation> check_reserved(std::span<const std::byte> bytes) {
  if (bytes.size() < L::size)
    return Violation{static_cast<unsigned>(bytes.size() & ~std::size_t{3}), 0, {}, "too short"};
  for (std::size_t i = 0; i < L::size / 4; ++i) {
    const std::uint32_t stray = load_be32(bytes.data() + i * 4) & ~kCoveredBits<L>[i];
    if (stray != 0)
      return Violation{static_cast<unsigned>(i * 4), stray, detail::member_at<L>(i * 4), "reserved bits must be zero"};
  }
  return std::nullopt;
}

// The first field whose value breaks its rule, if any.
template <class L>
std::optional<Violation> check_rules(std::span<const std::byte> bytes) {
  if (bytes.size() < L::size)
    return Violation{static_cast<unsigned>(bytes.size() & ~std::size_t{3}), 0, {}, "too short"};
  std::optional<Violation> found;
  detail::check_rules<L>(bytes.data(), 0, found);
  return found;
}

template <class L>
std::optional<Violation> validate(std::span<const std::byte> bytes) {
  if (auto stray = check_reserved<L>(bytes)) return stray;
  return check_rules<L>(bytes);
}

}  // namespace verbena::prm
