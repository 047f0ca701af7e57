// Doorbells: the records software keeps in memory and the registers of a UAR page.
// Threads: types only.
#pragma once

#include "layout.h"

namespace verbena::prm {

// Doorbell record of a QP. An SRQ or RQ has the receive word alone.
struct QpDbr : Layout<0x8> {
  using receive_counter = Field<"receive_counter", At{0x00, 15, 0}>;
  using send_counter = Field<"send_counter", At{0x04, 15, 0}>;
  using fields = Fields<receive_counter, send_counter>;
};

// Doorbell record of a CQ.
struct CqDbr : Layout<0x8> {
  using update_ci = Field<"update_ci", At{0x00, 23, 0}>;
  using arm_cmd_sn = Field<"arm_cmd_sn", At{0x04, 29, 28}>;
  using arm_solicited = Field<"arm_solicited", At{0x04, 24, 24}>;
  using arm_ci = Field<"arm_ci", At{0x04, 23, 0}>;
  using fields = Fields<update_ci, arm_cmd_sn, arm_solicited, arm_ci>;
};

// CQ arm register: one 64-bit store.
struct CqArmDoorbell : Layout<0x8> {
  using cmd_sn = Field<"cmd_sn", At{0x00, 29, 28}>;
  using solicited = Field<"solicited", At{0x00, 24, 24}>;
  using ci = Field<"ci", At{0x00, 23, 0}>;
  using cqn = Field<"cqn", At{0x04, 23, 0}>;
  using fields = Fields<cmd_sn, solicited, ci, cqn>;
};

// EQ register: one 32-bit store.
struct EqDoorbell : Layout<0x4> {
  using eqn = Field<"eqn", At{0x00, 31, 24}>;
  using ci = Field<"ci", At{0x00, 23, 0}>;
  using fields = Fields<eqn, ci>;
};

// Where the registers lie in a UAR page. A send doorbell stores the first 8 bytes of the control segment, or with
// BlueFlame the whole WQE, into one of the buffers, taking turns.
struct UarPage {
  static constexpr std::size_t size = 0x1000;
  static constexpr std::size_t cq_arm = 0x20;
  static constexpr std::size_t eq_arm = 0x40;
  static constexpr std::size_t eq_update_ci = 0x48;
  static constexpr std::size_t send_without_record = 0x600;  // for queues that have no doorbell record
  static constexpr std::size_t blueflame = 0x800;
  static constexpr std::size_t blueflame_size = 0x100;
  static constexpr std::size_t blueflame_count = 4;  // the last two are for fast-path software
};

}  // namespace verbena::prm
