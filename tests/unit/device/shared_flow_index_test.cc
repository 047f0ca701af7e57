// Which entry of a flow table has a frame; and that walks over a slice that somebody has spoilt come to an end.
#include <gtest/gtest.h>

#include <cstring>
#include <memory>

#include "device/shared/flow_index.h"

namespace verbena::device {
namespace {

constexpr std::uint32_t kTable = 5;

class FlowIndex : public ::testing::Test {
 protected:
  // Compares the first `bytes` bytes.
  void group(std::uint32_t number, std::uint32_t before, unsigned bytes) {
    std::memset(s_->groups[number].mask, 0, kMatchBytes);
    std::memset(s_->groups[number].mask, 0xff, bytes);
    link_flow_group(*s_, kTable, before, number);
  }
  void entry(std::uint32_t number, std::uint32_t group, std::uint32_t index, unsigned first, unsigned second = 0) {
    FlowEntry& e = *flow_entry(*s_, number);
    e = {};
    e.group = group;
    e.index = index;
    e.value[0] = static_cast<std::byte>(first);
    e.value[1] = static_cast<std::byte>(second);
    insert_flow_entry(*s_, number);
  }
  // The index of the entry that a frame of these bytes meets; -1: none.
  int meets(unsigned first, unsigned second = 0) {
    std::byte headers[kMatchBytes]{static_cast<std::byte>(first), static_cast<std::byte>(second)};
    headers[40] = std::byte{9};  // nobody compares it
    const FlowEntry* e = find_flow_entry(*s_, kTable, headers);
    return e ? static_cast<int>(e->index) : -1;
  }
  std::unique_ptr<Steering> s_ = std::make_unique<Steering>();
};

TEST_F(FlowIndex, TheFirstGroupThatHasAMatchWins) {
  group(1, 0, 2);
  group(3, 1, 1);
  group(2, 1, 0);  // between them
  EXPECT_EQ(meets(7, 8), -1);
  entry(10, 3, 300, 7);
  EXPECT_EQ(meets(7, 8), 300);
  entry(11, 2, 200, 0);
  EXPECT_EQ(meets(7, 8), 200) << "a group that compares nothing takes all";
  entry(12, 1, 100, 7, 8);
  EXPECT_EQ(meets(7, 8), 100);
  EXPECT_EQ(meets(7, 9), 200);
  unlink_flow_group(*s_, kTable, 1, 2);
  EXPECT_EQ(meets(7, 9), 300);
  EXPECT_EQ(meets(8, 9), -1);
  unlink_flow_group(*s_, kTable, 0, 1);
  EXPECT_EQ(meets(7, 8), 300);
}

TEST_F(FlowIndex, OfEqualEntriesTheLowestIndexWins) {
  group(1, 0, 1);
  entry(1, 1, 5, 7);
  entry(2, 1, 3, 7);
  entry(3, 1, 4, 7);
  EXPECT_EQ(meets(7), 3);
  remove_flow_entry(*s_, 2);
  EXPECT_EQ(meets(7), 4);
  remove_flow_entry(*s_, 2);  // it is none any more
  EXPECT_EQ(meets(7), 4);
  remove_flow_entry(*s_, 1);
  remove_flow_entry(*s_, 3);
  EXPECT_EQ(meets(7), -1);
  EXPECT_EQ(s_->groups[1].entries, 0u);
}

TEST_F(FlowIndex, AllEntriesAreFound) {
  group(1, 0, 2);
  for (std::uint32_t i = 0; i < kMaxFlowEntries; ++i) entry(i + 1, 1, i, i & 0xff, i >> 8);
  for (std::uint32_t i = 0; i < kMaxFlowEntries; ++i) ASSERT_EQ(meets(i & 0xff, i >> 8), static_cast<int>(i));
}

TEST_F(FlowIndex, SpoiltListsEnd) {
  group(1, 0, 1);
  entry(1, 1, 1, 7);
  s_->entries[0].next = 1;
  s_->groups[1].next = 1;
  EXPECT_EQ(meets(7), 1);
  EXPECT_EQ(meets(8), -1);
  s_->entries[0].group = 2;
  EXPECT_EQ(meets(7), -1);
  entry(2, 1, 2, 7);
  remove_flow_entry(*s_, 3);
  s_->first_group[kTable] = ~0u;
  EXPECT_EQ(meets(7), -1);
  for (std::uint32_t& bucket : s_->buckets) bucket = ~0u;
  s_->first_group[kTable] = 1;
  EXPECT_EQ(meets(7), -1);
  EXPECT_EQ(flow_entry(*s_, kMaxFlowEntries + 1), nullptr);
  EXPECT_EQ(flow_group(*s_, kMaxFlowEntries), nullptr);
}

}  // namespace
}  // namespace verbena::device
