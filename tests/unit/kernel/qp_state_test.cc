#include "kernel/qp_state.h"

#include <gtest/gtest.h>

namespace verbena::kernel {
namespace {

using A = QpAttr;
constexpr std::uint32_t kRcInit = A::state | A::pkey_index | A::port | A::access_flags;
constexpr std::uint32_t kRcRtr =
    A::state | A::av | A::path_mtu | A::dest_qpn | A::rq_psn | A::max_dest_rd_atomic | A::min_rnr_timer;
constexpr std::uint32_t kRcRts =
    A::state | A::timeout | A::retry_cnt | A::rnr_retry | A::sq_psn | A::max_qp_rd_atomic;

TEST(QpState, ConnectedPathToSend) {
  EXPECT_TRUE(modify_is_ok(QpState::reset, QpState::init, QpType::rc, kRcInit));
  EXPECT_TRUE(modify_is_ok(QpState::init, QpState::rtr, QpType::rc, kRcRtr));
  EXPECT_TRUE(modify_is_ok(QpState::rtr, QpState::rts, QpType::rc, kRcRts));
}

TEST(QpState, EveryRequiredAttributeIsRequired) {
  for (std::uint32_t all : {kRcRtr, kRcRts}) {
    const QpState from = all == kRcRtr ? QpState::init : QpState::rtr, to = all == kRcRtr ? QpState::rtr : QpState::rts;
    for (std::uint32_t bit = 2; bit; bit <<= 1) {
      if (all & bit) {
        EXPECT_FALSE(modify_is_ok(from, to, QpType::rc, all & ~bit)) << std::hex << bit;
      }
    }
  }
}

TEST(QpState, WhatATransitionDoesNotKnowIsRefused) {
  EXPECT_FALSE(modify_is_ok(QpState::reset, QpState::init, QpType::rc, kRcInit | A::qkey));
  EXPECT_FALSE(modify_is_ok(QpState::reset, QpState::init, QpType::ud, kRcInit));
  EXPECT_TRUE(modify_is_ok(QpState::reset, QpState::init, QpType::ud, A::state | A::pkey_index | A::port | A::qkey));
  EXPECT_TRUE(modify_is_ok(QpState::init, QpState::rtr, QpType::ud, A::state));
  EXPECT_FALSE(modify_is_ok(QpState::init, QpState::rtr, QpType::uc, kRcRtr)) << "UC has no responder resources";
  EXPECT_FALSE(modify_is_ok(QpState::reset, QpState::rtr, QpType::rc, kRcRtr));
  EXPECT_FALSE(modify_is_ok(QpState::rts, QpState::init, QpType::rc, kRcInit));
}

TEST(QpState, ResetAndErrorFromAnywhereWithNothingElse) {
  for (unsigned from = 0; from <= static_cast<unsigned>(QpState::err); ++from) {
    EXPECT_TRUE(modify_is_ok(static_cast<QpState>(from), QpState::err, QpType::uc, A::state));
    EXPECT_TRUE(modify_is_ok(static_cast<QpState>(from), QpState::reset, QpType::ud, A::state));
    EXPECT_FALSE(modify_is_ok(static_cast<QpState>(from), QpState::reset, QpType::rc, A::state | A::port));
  }
}

TEST(QpState, CurrentStateOnlyWhereTheDeviceMayHaveMovedIt) {
  EXPECT_TRUE(modify_is_ok(QpState::rts, QpState::rts, QpType::rc, A::state | A::cur_state | A::min_rnr_timer));
  EXPECT_FALSE(modify_is_ok(QpState::init, QpState::init, QpType::rc, A::cur_state));
}

}  // namespace
}  // namespace verbena::kernel
