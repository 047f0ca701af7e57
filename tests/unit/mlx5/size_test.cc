// Ring sizes against the figures rdma-core gives for the same attributes on a ConnectX-7.

#include <gtest/gtest.h>

#include "mlx5/heap.h"
#include "mlx5/qp_size.h"

namespace verbena::test {
namespace {

using mlx5::QpSize;

constexpr mlx5::QpLimits kLimits{1008, 512, 65536, 32768};

QpSize size_of(ibv_qp_type type, ibv_qp_cap cap, int expect = 0) {
  ibv_qp_init_attr_ex attr = {};
  attr.qp_type = type;
  attr.cap = cap;
  QpSize size;
  EXPECT_EQ(compute_size(kLimits, attr, nullptr, &size), expect);
  return size;
}

TEST(QpSize, ReliableWithoutInline) {
  // 192 bytes of fixed segments (window bind) and one gather entry: four blocks a WQE.
  const QpSize size = size_of(IBV_QPT_RC, {1, 512, 1, 1, 0});
  EXPECT_EQ(size.send_blocks, 4u);
  EXPECT_EQ(size.max_post, 1u);
  EXPECT_EQ(size.max_inline, 60u);
  EXPECT_EQ(size.recv_count, 512u);
  EXPECT_EQ(size.recv_shift, 4u);
}

TEST(QpSize, DatagramAndInline) {
  const QpSize size = size_of(IBV_QPT_UD, {128, 0, 1, 0, 236});
  EXPECT_EQ(size.send_blocks, 128u * 8);  // 64 fixed + 240 inline: five blocks, rounded to eight
  EXPECT_EQ(size.max_inline, 320u - 64 - 4);
  EXPECT_EQ(size.max_post, 204u);
}

TEST(QpSize, SmallReceiveRingsFillABlock) {
  const QpSize size = size_of(IBV_QPT_RC, {0, 1, 0, 1, 0});
  EXPECT_EQ(size.recv_count, 4u);
  EXPECT_EQ(size.send_blocks, 0u);
}

TEST(QpSize, Refusals) {
  size_of(IBV_QPT_RC, {1, 0, 60, 0, 0}, EINVAL);
  size_of(IBV_QPT_RC, {1, 0, 1, 0, 1000}, EINVAL);
  size_of(IBV_QPT_RC, {65536, 0, 1, 0, 0}, EINVAL);
  size_of(IBV_QPT_RC, {0, 32769, 0, 1, 0}, EINVAL);
  size_of(IBV_QPT_RC, {0, 1, 0, 33, 0}, EINVAL);
}

TEST(Heap, BlocksAreAlignedZeroedAndReused) {
  uverbs::Backend backend = {};
  mlx5::Heap heap(&backend);
  auto* small = static_cast<char*>(heap.take(-1, 100));
  ASSERT_NE(small, nullptr);
  EXPECT_EQ(reinterpret_cast<std::uintptr_t>(small) % 128, 0u);
  small[0] = 1;
  heap.give(small, 100);
  EXPECT_EQ(heap.take(-1, 128), small);
  EXPECT_EQ(small[0], 0);
  auto* pages = static_cast<char*>(heap.take(-1, 5000));
  EXPECT_EQ(reinterpret_cast<std::uintptr_t>(pages) % 4096, 0u);
  heap.give(pages, 5000);
  auto* large = heap.take(-1, std::size_t{4} << 20);
  ASSERT_NE(large, nullptr);
  heap.give(large, std::size_t{4} << 20);
  heap.give(small, 128);
}

}  // namespace
}  // namespace verbena::test
