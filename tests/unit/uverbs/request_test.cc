#include "uverbs/request.h"

#include <gtest/gtest.h>

#include <cerrno>

#include "uverbs/bundle.h"

namespace verbena::uverbs {
namespace {

constexpr AttrSpec kAttrs[] = {
    in_attr(1, 4),
    {2, AttrKind::ptr_in, false, 4, 12, true, 0, AttrAccess::read},
    out_attr(3, 8, false),
    object_attr(4, 1, AttrAccess::read, false),
    flags_attr(5),
};
constexpr MethodSpec kMethod{1, 2, kAttrs, true};

TEST(Request, InlineAndPointerData) {
  const std::uint32_t words[3] = {1, 2, 3};
  Bundle bundle(1, 2);
  bundle.in_u32(1, 0xabcd);
  bundle.in(2, words, sizeof words);
  Request request;
  ASSERT_EQ(request.parse(bundle.finish(1), kMethod), 0);
  EXPECT_EQ(request.value<std::uint32_t>(1), 0xabcdu);
  EXPECT_EQ(request.in(2).size(), sizeof words);
  EXPECT_FALSE(request.has(4));
  EXPECT_EQ(request.write(3, std::uint64_t{1}), ENOENT);
}

TEST(Request, LengthsAreExactUnlessTheTailIsZero) {
  Bundle too_short(1, 2);
  const std::uint16_t half = 1;
  too_short.in_struct(1, half);
  Request request;
  EXPECT_EQ(request.parse(too_short.finish(1), kMethod), EINVAL);

  std::uint32_t tail[4] = {1, 2, 3, 0};
  Bundle zero(1, 2);
  zero.in_u32(1, 0);
  zero.in(2, tail, sizeof tail);
  EXPECT_EQ(request.parse(zero.finish(1), kMethod), 0);
  tail[3] = 1;
  EXPECT_EQ(request.parse(zero.finish(1), kMethod), EOPNOTSUPP);
}

TEST(Request, UnknownDuplicateAndMissing) {
  Request request;
  Bundle unknown(1, 2);
  unknown.in_u32(1, 0);
  auto slot = unknown.in_u32(99, 0);
  EXPECT_EQ(request.parse(unknown.finish(1), kMethod), EPROTONOSUPPORT);
  unknown.optional(slot);
  EXPECT_EQ(request.parse(unknown.finish(1), kMethod), 0);
  Bundle twice(1, 2);
  twice.in_u32(1, 0);
  twice.in_u32(1, 0);
  EXPECT_EQ(request.parse(twice.finish(1), kMethod), EINVAL);
  Bundle missing(1, 2);
  EXPECT_EQ(request.parse(missing.finish(1), kMethod), EINVAL);
}

TEST(Request, NamesThatNothingHas) {
  const AttrSpec attrs[] = {object_attr(1, 1, AttrAccess::read, false), fd_attr(2, 1, AttrAccess::read, false),
                            object_attr(3, 1, AttrAccess::create, false)};
  const MethodSpec method{1, 2, attrs};
  const auto parsed = [&](std::uint16_t id, std::int64_t name) {
    Bundle bundle(1, 2);
    bundle.in_object(id, 0);
    ib_uverbs_ioctl_hdr* call = bundle.finish(1);
    call->attrs[0].data_s64 = name;
    Request request;
    return request.parse(call, method);
  };
  for (const std::int64_t name : {std::int64_t{-1}, INT64_MIN}) EXPECT_EQ(parsed(1, name), EINVAL);
  for (const std::int64_t name : {std::int64_t{0}, std::int64_t{1} << 32, INT64_MAX}) EXPECT_EQ(parsed(1, name), 0);
  for (const std::int64_t name : {std::int64_t{1} << 31, INT64_MIN}) EXPECT_EQ(parsed(2, name), EINVAL);
  for (const std::int64_t name : {-1, INT32_MIN, INT32_MAX}) EXPECT_EQ(parsed(2, name), 0) << "no file, if need be";
  EXPECT_EQ(parsed(3, -1), 0) << "the kernel fills it in";
}

TEST(Request, OutputIsMarked) {
  std::uint64_t result = 0;
  Bundle bundle(1, 2);
  bundle.in_u32(1, 0);
  auto slot = bundle.out_struct(3, result);
  Request request;
  ASSERT_EQ(request.parse(bundle.finish(1), kMethod), 0);
  EXPECT_EQ(request.write(3, std::uint64_t{42}), 0);
  EXPECT_EQ(result, 42u);
  EXPECT_TRUE(bundle.valid_output(slot));
}

TEST(Request, Flags) {
  Bundle bundle(1, 2);
  bundle.in_u32(1, 0);
  bundle.in_u64(5, 6);
  Request request;
  ASSERT_EQ(request.parse(bundle.finish(1), kMethod), 0);
  std::uint32_t flags = 0;
  EXPECT_EQ(request.flags(5, 7, &flags), 0);
  EXPECT_EQ(flags, 6u);
  EXPECT_EQ(request.flags(5, 3, &flags), EINVAL);
}

// Nothing of a program is used before it was copied, and results that have no place are known before there are any.
TEST(Request, PointersOfAProgram) {
  static std::uint64_t there[8];
  const UserMemory user{[](void* to, const void* from, std::size_t n) {
                          if (from == nullptr || reinterpret_cast<std::uintptr_t>(from) < 4096) return false;
                          std::memcpy(to, from, n);
                          return true;
                        },
                        [](void* to, const void* from, std::size_t n) {
                          if (reinterpret_cast<std::uintptr_t>(to) < 4096) return false;
                          std::memcpy(to, from, n);
                          return true;
                        }};
  Bundle bundle(1, 2);
  bundle.in_u32(1, 7);
  bundle.in(2, there, 12);
  const auto out = bundle.out(3, there, 8);
  Request request(user);
  ASSERT_EQ(request.fetch(bundle.finish(1), 1), 0);
  ASSERT_EQ(request.parse(kMethod), 0);
  there[0] = 0x55;
  EXPECT_EQ(request.in(2)[0], std::byte{0}) << "the copy does not change";
  EXPECT_EQ(request.write(3, std::uint64_t{9}), 0);
  EXPECT_EQ(there[0], 9u);
  EXPECT_FALSE(bundle.valid_output(out));
  EXPECT_EQ(request.finish(), 0);
  EXPECT_TRUE(bundle.valid_output(out));

  for (const bool in : {true, false}) {
    Bundle bad(1, 2);
    bad.in_u32(1, 7);
    auto* nowhere = reinterpret_cast<void*>(64);
    in ? bad.in(2, nowhere, 12) : bad.out(3, nowhere, 8);
    Request r(user);
    ASSERT_EQ(r.fetch(bad.finish(1), 1), 0);
    EXPECT_EQ(r.parse(kMethod), EFAULT);
  }
  EXPECT_EQ(Request(user).fetch(reinterpret_cast<ib_uverbs_ioctl_hdr*>(16), 1), EFAULT);
}

TEST(Request, Header) {
  Bundle bundle(1, 2);
  ib_uverbs_ioctl_hdr* header = bundle.finish(1);
  EXPECT_EQ(Request().fetch(header, 1), 0);
  EXPECT_EQ(Request().fetch(header, 2), EINVAL);
  header->reserved1 = 1;
  EXPECT_EQ(Request().fetch(header, 1), EPROTONOSUPPORT);
  header->reserved1 = 0;
  ++header->num_attrs;
  EXPECT_EQ(Request().fetch(header, 1), EINVAL);
}

}  // namespace
}  // namespace verbena::uverbs
