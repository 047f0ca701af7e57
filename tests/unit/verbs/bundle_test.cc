#include "uverbs/bundle.h"

#include <gtest/gtest.h>

namespace verbena::uverbs {
namespace {

TEST(Bundle, LaysTheRequestOutAsTheKernelReadsIt) {
  std::uint32_t result = 0;
  char text[9] = "12345678";
  Bundle bundle(3, 5);
  auto handle = bundle.out_object(0x10);
  bundle.in_u32(0x11, 0xa1b2c3d4);
  bundle.in(0x12, text, sizeof text);
  auto last = bundle.out_struct(0x13, result);
  bundle.optional(last);

  ib_uverbs_ioctl_hdr* head = bundle.finish(0xd1);
  ASSERT_NE(head, nullptr);
  EXPECT_EQ(head->length, sizeof(ib_uverbs_ioctl_hdr) + 4 * sizeof(ib_uverbs_attr));
  EXPECT_EQ(head->object_id, 3);
  EXPECT_EQ(head->method_id, 5);
  EXPECT_EQ(head->num_attrs, 4);
  EXPECT_EQ(head->driver_id, 0xd1u);
  EXPECT_EQ(head->attrs[0].len, 0);
  EXPECT_EQ(head->attrs[1].len, 4);
  EXPECT_EQ(head->attrs[1].data, 0xa1b2c3d4u) << "up to eight bytes travel inside";
  EXPECT_EQ(head->attrs[2].data, reinterpret_cast<std::uintptr_t>(text)) << "nine do not";
  EXPECT_EQ(head->attrs[3].data, reinterpret_cast<std::uintptr_t>(&result)) << "results never do";
  EXPECT_EQ(head->attrs[2].flags, UVERBS_ATTR_F_MANDATORY);
  EXPECT_EQ(head->attrs[3].flags, 0);
  head->attrs[0].data = 42;
  EXPECT_EQ(bundle.object(handle), 42u);
}

TEST(Bundle, RefusesWhatDoesNotFit) {
  Bundle too_long(1, 1);
  EXPECT_EQ(too_long.in(1, nullptr, 0x10000), Bundle::kNone);
  EXPECT_EQ(too_long.finish(0), nullptr);

  Bundle too_many(1, 1);
  for (unsigned i = 0; i <= Bundle::kMaxAttrs; ++i) too_many.in_u32(static_cast<std::uint16_t>(i), i);
  EXPECT_EQ(too_many.finish(0), nullptr);
  EXPECT_EQ(Bundle::array_bytes(8, SIZE_MAX / 4), SIZE_MAX);
}

TEST(Bundle, BringsResultsBackToTheBundleThatWasAppended) {
  Bundle driver(1, 1);
  auto slot = driver.out_object(0x1000);
  Bundle core(1, 1);
  core.in_u32(1, 1);
  auto first = core.append(driver);
  core.finish(0)->attrs[1].data = 9;
  core.read_back(first, driver);
  EXPECT_EQ(driver.object(slot), 9u);
}

TEST(Bundle, LeavesOutADescriptorThatIsNotThere) {
  Bundle bundle(1, 1);
  EXPECT_EQ(bundle.in_fd(1, -1), Bundle::kNone);
  bundle.optional(Bundle::kNone);
  EXPECT_EQ(bundle.count(), 0u);
}

}  // namespace
}  // namespace verbena::uverbs
