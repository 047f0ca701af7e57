#include <gtest/gtest.h>
#include <infiniband/verbs.h>

#include "reference.h"

namespace verbena::test {
namespace {

template <class Enum>
void expect_same_names(const char* name, const char* (*ours)(Enum)) {
  auto* theirs = reference_function<const char* (*)(Enum)>(name);
  ASSERT_NE(theirs, nullptr);
  for (int value = -2; value < 64; ++value)
    EXPECT_STREQ(ours(static_cast<Enum>(value)), theirs(static_cast<Enum>(value))) << name << ' ' << value;
}

TEST(Names, AreWhatProgramsPrint) {
  EXPECT_STREQ(ibv_wc_status_str(IBV_WC_RNR_RETRY_EXC_ERR), "RNR retry counter exceeded");
  EXPECT_STREQ(ibv_event_type_str(IBV_EVENT_QP_LAST_WQE_REACHED), "last WQE reached");
  if (!have_reference()) GTEST_SKIP() << "no libibverbs1 package here";
  expect_same_names<ibv_node_type>("ibv_node_type_str", ibv_node_type_str);
  expect_same_names<ibv_port_state>("ibv_port_state_str", ibv_port_state_str);
  expect_same_names<ibv_event_type>("ibv_event_type_str", ibv_event_type_str);
  expect_same_names<ibv_wc_status>("ibv_wc_status_str", ibv_wc_status_str);
}

TEST(Rates, AreDebians) {
  EXPECT_EQ(ibv_rate_to_mbps(IBV_RATE_100_GBPS), 103125);
  EXPECT_EQ(mbps_to_ibv_rate(103125), IBV_RATE_100_GBPS);
  EXPECT_EQ(mult_to_ibv_rate(3), IBV_RATE_MAX);
  if (!have_reference()) GTEST_SKIP() << "no libibverbs1 package here";
  auto* to_mult = reference_function<int (*)(ibv_rate)>("ibv_rate_to_mult");
  auto* to_mbps = reference_function<int (*)(ibv_rate)>("ibv_rate_to_mbps");
  auto* from_mult = reference_function<ibv_rate (*)(int)>("mult_to_ibv_rate");
  auto* from_mbps = reference_function<ibv_rate (*)(int)>("mbps_to_ibv_rate");
  for (int code = 0; code < 64; ++code) {
    auto rate = static_cast<ibv_rate>(code);
    EXPECT_EQ(ibv_rate_to_mult(rate), to_mult(rate)) << code;
    EXPECT_EQ(ibv_rate_to_mbps(rate), to_mbps(rate)) << code;
    EXPECT_EQ(mbps_to_ibv_rate(to_mbps(rate)), from_mbps(to_mbps(rate))) << code;
  }
  for (int mult = -2; mult < 512; ++mult) EXPECT_EQ(mult_to_ibv_rate(mult), from_mult(mult)) << mult;
}

}  // namespace
}  // namespace verbena::test
