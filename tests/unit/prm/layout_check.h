// What the generated C++ half of the layout check is made of: where our fields lie, and the tests that compare.
#pragma once

#include <gtest/gtest.h>

#include <cstddef>
#include <iterator>

#include "prm/layout.h"
#include "tests/unit/prm/layout_check_kernel.h"

namespace verbena::prm::layout_check {

// Runs of bytes are one field of ours and an array of bytes of the kernel's: compare as the kernel counts.
template <class F>
constexpr KernelPlace place_of(bool kernel_has_bytes) {
  const std::size_t bit = F::offset * std::size_t{8};
  if constexpr (F::kind == Kind::bits)
    return {bit + 31 - F::at.msb, F::width, 1};
  else if constexpr (F::kind == Kind::array)
    return {bit, F::layout::size * 8, F::count};
  else if constexpr (F::kind == Kind::bytes)
    return kernel_has_bytes ? KernelPlace{bit, 8, F::bytes} : KernelPlace{bit, F::bytes * 8, 1};
  else
    return {bit, F::bytes * 8, 1};
}

struct Row {
  const char* name;
  KernelPlace (*ours)(bool kernel_has_bytes);
};
struct Size {
  const char* name;
  std::size_t ours;
};
#define ROW(layout, field) \
  { #layout "::" #field, place_of < layout::field> }
#define SIZE(layout) \
  { #layout, layout::size * 8 }

inline void expect_same(const Row& row, const KernelPlace& kernel) {
  const KernelPlace ours = row.ours(kernel.count > 1 && kernel.width == 8);
  EXPECT_EQ(ours.bit, kernel.bit) << row.name;
  EXPECT_EQ(ours.width, kernel.width) << row.name;
  EXPECT_EQ(ours.count, kernel.count) << row.name;
}

#define LAYOUT_CHECK_TESTS()                                                                                          \
  TEST(LayoutCheck, EveryFieldLiesWhereTheKernelPutsIt) {                                                             \
    static_assert(std::size(kRows) > 2500, "the generator has lost fields");                                          \
    for (std::size_t i = 0; i < std::size(kRows); ++i) expect_same(kRows[i], kKernelPlaces[i]);                       \
  }                                                                                                                   \
  TEST(LayoutCheck, EveryLayoutIsAsLongAsTheKernels) {                                                                \
    for (std::size_t i = 0; i < std::size(kSizes); ++i) EXPECT_EQ(kSizes[i].ours, kKernelSizes[i]) << kSizes[i].name; \
  }                                                                                                                   \
  TEST(LayoutCheck, EveryOpcodeIsTheKernels) {                                                                        \
    for (std::size_t i = 0; i < std::size(kOpcodes); ++i)                                                             \
      EXPECT_EQ(static_cast<unsigned>(kOpcodes[i]), kKernelOpcodes[i]) << "opcode number " << i;                      \
  }                                                                                                                   \
  TEST(LayoutCheck, NoFieldIsForgotten) {                                                                             \
    for (const char* const* p = kProblems; *p != nullptr; ++p) ADD_FAILURE() << *p;                                   \
  }

}  // namespace verbena::prm::layout_check
