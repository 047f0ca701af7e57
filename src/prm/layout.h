// Hardware layouts as types.
//
// A layout is a struct derived from Layout<size in bytes>. It names each field as the manuals print it:
// byte offset of its dword, high bit, low bit. Dwords are big-endian, as everywhere in mlx5.
//
//   struct AllocPdIn : Layout<0x10> {
//     using opcode = Field<"opcode", At{0x00, 31, 16}, Opcode>;
//     using uid    = Field<"uid",    At{0x00, 15, 0}>;
//     using op_mod = Field<"op_mod", At{0x04, 15, 0}>;
//     using fields = Fields<opcode, uid, op_mod>;
//   };
//
//   Box<AllocPdIn> in;                                     // owns zeroed bytes
//   in.set<AllocPdIn::opcode>(Opcode::alloc_pd);
//   View<AllocPdIn> v(bytes);  v.get<AllocPdIn::uid>();    // over somebody else's bytes
//
// From `fields` come the validator (validate.h) and the printer (print.h); there is no second table.
// Threads: pure functions on the caller's bytes; any thread may call.
#pragma once

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string_view>
#include <type_traits>

namespace verbena::prm {

// A string that can be a template argument.
template <std::size_t N>
struct Name {
  char text[N]{};
  constexpr Name(const char (&s)[N]) {  // NOLINT(google-explicit-constructor): reads as a literal
    for (std::size_t i = 0; i < N; ++i) text[i] = s[i];
  }
  constexpr std::string_view view() const { return {text, N - 1}; }
};

// Where a field lies: byte offset of its dword, then high and low bit, both inclusive.
struct At {
  unsigned dword;
  unsigned msb;
  unsigned lsb;
};

inline std::uint32_t load_be32(const std::byte* p) {
  std::uint32_t v;
  std::memcpy(&v, p, sizeof v);
  return std::endian::native == std::endian::little ? __builtin_bswap32(v) : v;
}
inline void store_be32(std::byte* p, std::uint32_t v) {
  if constexpr (std::endian::native == std::endian::little) v = __builtin_bswap32(v);
  std::memcpy(p, &v, sizeof v);
}
inline std::uint64_t load_be64(const std::byte* p) { return (std::uint64_t{load_be32(p)} << 32) | load_be32(p + 4); }
inline void store_be64(std::byte* p, std::uint64_t v) {
  store_be32(p, static_cast<std::uint32_t>(v >> 32));
  store_be32(p + 4, static_cast<std::uint32_t>(v));
}

// What kind of thing a member of a layout is; the validator and the printer switch on it.
enum class Kind { bits, half, wide, bytes, sub, array };

// No rule beyond "fits its width".
struct AnyValue {
  static constexpr bool accepts(std::uint64_t) { return true; }
};
// The value must lie in [Lo, Hi].
template <std::uint64_t Lo, std::uint64_t Hi>
struct InRange {
  static constexpr bool accepts(std::uint64_t v) { return v >= Lo && v <= Hi; }
};
// The value must be one of those listed.
template <auto... Values>
struct OneOf {
  static constexpr bool accepts(std::uint64_t v) { return ((v == static_cast<std::uint64_t>(Values)) || ...); }
};

// A field of at most 32 bits inside one dword.
template <Name FieldName, At Where, class T = std::uint32_t, class Rule = AnyValue>
struct Field {
  static_assert(Where.dword % 4 == 0, "a field names the byte offset of its dword (a multiple of 4)");
  static_assert(Where.msb < 32 && Where.lsb <= Where.msb, "bits run from high to low inside one dword");
  using value_type = T;
  using rule = Rule;
  static constexpr Kind kind = Kind::bits;
  static constexpr std::string_view name = FieldName.view();
  static constexpr At at = Where;
  static constexpr unsigned offset = Where.dword;
  static constexpr unsigned width = Where.msb - Where.lsb + 1;
  static constexpr unsigned bytes = 4;
  static constexpr std::uint32_t max = width == 32 ? ~0u : (1u << width) - 1;
  static constexpr std::uint32_t mask = max << Where.lsb;

  static T get(const std::byte* base) { return static_cast<T>((load_be32(base + Where.dword) & mask) >> Where.lsb); }
  static void set(std::byte* base, T value) {
    const auto bits = (static_cast<std::uint32_t>(value) << Where.lsb) & mask;
    if constexpr (width == 32)
      store_be32(base + Where.dword, bits);
    else
      store_be32(base + Where.dword, (load_be32(base + Where.dword) & ~mask) | bits);
  }
};

// A 16-bit field at any even offset, for the packet headers that are not whole dwords long.
template <Name FieldName, unsigned Offset, class T = std::uint32_t, class Rule = AnyValue>
struct Field16 {
  static_assert(Offset % 2 == 0, "a 16-bit field starts on an even byte");
  using value_type = T;
  using rule = Rule;
  static constexpr Kind kind = Kind::half;
  static constexpr std::string_view name = FieldName.view();
  static constexpr unsigned offset = Offset;
  static constexpr unsigned width = 16;
  static constexpr unsigned bytes = 2;
  static T get(const std::byte* base) {
    return static_cast<T>(std::to_integer<std::uint32_t>(base[Offset]) << 8 |
                          std::to_integer<std::uint32_t>(base[Offset + 1]));
  }
  static void set(std::byte* base, T value) {
    const auto v = static_cast<std::uint32_t>(value);
    base[Offset] = static_cast<std::byte>(v >> 8);
    base[Offset + 1] = static_cast<std::byte>(v);
  }
};

// A 64-bit field: two dwords, high one first.
template <Name FieldName, unsigned Offset, class T = std::uint64_t, class Rule = AnyValue>
struct Field64 {
  static_assert(Offset % 4 == 0, "a 64-bit field starts on a dword");
  using value_type = T;
  using rule = Rule;
  static constexpr Kind kind = Kind::wide;
  static constexpr std::string_view name = FieldName.view();
  static constexpr unsigned offset = Offset;
  static constexpr unsigned width = 64;
  static constexpr unsigned bytes = 8;
  static T get(const std::byte* base) { return static_cast<T>(load_be64(base + Offset)); }
  static void set(std::byte* base, T value) { store_be64(base + Offset, static_cast<std::uint64_t>(value)); }
};

// Raw bytes (addresses, keys).
template <Name FieldName, unsigned Offset, std::size_t Length>
struct Bytes {
  static constexpr Kind kind = Kind::bytes;
  static constexpr std::string_view name = FieldName.view();
  static constexpr unsigned offset = Offset;
  static constexpr std::size_t bytes = Length;
};

// Another layout at an offset. Unions are Subs that overlap; a method of the layout says which one holds.
template <Name FieldName, unsigned Offset, class L>
struct Sub {
  using layout = L;
  static constexpr Kind kind = Kind::sub;
  static constexpr std::string_view name = FieldName.view();
  static constexpr unsigned offset = Offset;
  static constexpr std::size_t bytes = L::size;
};

// A run of equal layouts. Count 0: as many as the bytes hold (command tails such as pas[]).
template <Name FieldName, unsigned Offset, class L, std::size_t Count = 0>
struct Array {
  using layout = L;
  static constexpr Kind kind = Kind::array;
  static constexpr std::string_view name = FieldName.view();
  static constexpr unsigned offset = Offset;
  static constexpr std::size_t count = Count;
  static constexpr std::size_t bytes = L::size * Count;
};

// Arrays, not fold expressions: a capability page has over 256 members, which is as deep as clang nests a fold.
template <class... F>
struct Fields {
  static constexpr std::size_t count = sizeof...(F);
  template <class Other>
  static constexpr bool has = [] {
    for (const bool same : {false, std::is_same_v<F, Other>...}) {
      if (same) return true;
    }
    return false;
  }();
  // Calls visit.template operator()<F>() for each member, in order.
  template <class Visitor>
  static constexpr void each([[maybe_unused]] Visitor&& visit) {
    [[maybe_unused]] const bool in_order[] = {true, (visit.template operator()<F>(), true)...};
  }
};

template <std::size_t Size>
struct Layout {
  static_assert(Size % 2 == 0, "layouts are whole dwords; an Ethernet header is the one exception");
  using readings = Fields<>;
  static constexpr std::size_t size = Size;
};

// A member of the layout L: one of its fields, or of its `readings`, which are other names for the same bits. The field of
// another layout is an error to the compiler wherever a layout is read or written.
template <class F, class L>
concept MemberOf = L::fields::template has<F> || L::readings::template has<F>;

// A layout over somebody else's bytes. The span must be at least L::size long; callers that hold guest
// input check that first (fits()).
template <class L, class Byte>
class BasicView {
 public:
  explicit BasicView(Byte* base) : base_(base) {}
  explicit BasicView(std::span<Byte> bytes) : base_(bytes.data()) {}
  template <class Other>
  requires(!std::is_same_v<Other, Byte> && std::is_convertible_v<Other*, Byte*>) BasicView(BasicView<L, Other> other)
      : base_(other.data()) {}  // NOLINT: adds const

  static bool fits(std::span<const std::byte> bytes) { return bytes.size() >= L::size; }

  template <MemberOf<L> F>
  typename F::value_type get() const {
    static_assert(F::offset + F::bytes <= L::size, "the field lies outside this layout");
    return F::get(base_);
  }
  template <MemberOf<L> F>
  const BasicView& set(typename F::value_type value) const {
    static_assert(F::offset + F::bytes <= L::size, "the field lies outside this layout");
    F::set(base_, value);
    return *this;
  }
  template <MemberOf<L> S>
  auto sub() const {
    return BasicView<typename S::layout, Byte>(base_ + S::offset);
  }
  // The i-th element of an array; the caller checks i against the bytes at hand for a Count of 0.
  template <MemberOf<L> A>
  auto at(std::size_t i) const {
    return BasicView<typename A::layout, Byte>(base_ + A::offset + i * A::layout::size);
  }
  template <MemberOf<L> B>
  std::span<Byte, B::bytes> bytes() const {
    return std::span<Byte, B::bytes>(base_ + B::offset, B::bytes);
  }
  Byte* data() const { return base_; }

 private:
  Byte* base_;
};
template <class L>
using View = BasicView<L, std::byte>;
template <class L>
using ConstView = BasicView<L, const std::byte>;

// Owns the bytes of one layout, zeroed, with room for `Tail` bytes behind it (command arrays).
template <class L, std::size_t Tail = 0>
class Box {
 public:
  Box() = default;
  template <class F>
  typename F::value_type get() const {
    return ConstView<L>(bytes_.data()).template get<F>();
  }
  template <class F>
  Box& set(typename F::value_type value) {
    view().template set<F>(value);
    return *this;
  }
  template <class S>
  auto sub() {
    return view().template sub<S>();
  }
  template <class A>
  auto at(std::size_t i) {
    return view().template at<A>(i);
  }
  template <class B>
  auto bytes() {
    return view().template bytes<B>();
  }
  View<L> view() { return View<L>(bytes_.data()); }
  ConstView<L> view() const { return ConstView<L>(bytes_.data()); }
  std::span<std::byte> span() { return bytes_; }
  std::span<const std::byte> span() const { return bytes_; }
  std::byte* data() { return bytes_.data(); }
  static constexpr std::size_t size() { return L::size + Tail; }

 private:
  alignas(8) std::array<std::byte, L::size + Tail> bytes_{};
};

}  // namespace verbena::prm
