// Event queues: context and commands. The entries themselves are in eqe.h.
// Threads: types only.
#pragma once

#include "command.h"

namespace verbena::prm {

enum class EqStatus : std::uint8_t { ok = 0x0, write_failure = 0xa };
enum class EqArmState : std::uint8_t { none = 0x0, armed = 0x9, fired = 0xa };

// EQ context (PRM "Event Queue Context").
struct Eqc : Layout<0x40> {
  using status = Field<"status", At{0x00, 31, 28}, EqStatus>;
  using ec = Field<"ec", At{0x00, 18, 18}>;
  using oi = Field<"oi", At{0x00, 17, 17}>;
  using st = Field<"st", At{0x00, 11, 8}, EqArmState>;
  using page_offset = Field<"page_offset", At{0x08, 11, 6}>;
  using log_eq_size = Field<"log_eq_size", At{0x0c, 28, 24}>;
  using uar_page = Field<"uar_page", At{0x0c, 23, 0}>;
  using intr = Field<"intr", At{0x14, 11, 0}>;
  using log_page_size = Field<"log_page_size", At{0x18, 28, 24}>;
  using consumer_counter = Field<"consumer_counter", At{0x28, 23, 0}>;
  using producer_counter = Field<"producer_counter", At{0x2c, 23, 0}>;
  using fields = Fields<status, ec, oi, st, page_offset, log_eq_size, uar_page, intr, log_page_size, consumer_counter,
                        producer_counter>;
};

// CREATE_EQ: request.
struct CreateEqIn : Layout<0x110> {
  using opcode = Field<"opcode", At{0x00, 31, 16}, Opcode>;
  using uid = Field<"uid", At{0x00, 15, 0}>;
  using op_mod = Field<"op_mod", At{0x04, 15, 0}>;
  using eq_context_entry = Sub<"eq_context_entry", 0x10, Eqc>;
  using event_bitmask = Array<"event_bitmask", 0x58, Qword, 4>;
  using pas = Array<"pas", 0x110, Pas>;
  using fields = Fields<opcode, uid, op_mod, eq_context_entry, event_bitmask, pas>;
};

// CREATE_EQ: reply.
struct CreateEqOut : Layout<0x10> {
  using status = Field<"status", At{0x00, 31, 24}, Status>;
  using syndrome = Field<"syndrome", At{0x04, 31, 0}>;
  using eq_number = Field<"eq_number", At{0x08, 7, 0}>;
  using fields = Fields<status, syndrome, eq_number>;
};

// DESTROY_EQ: request.
struct DestroyEqIn : Layout<0x10> {
  using opcode = Field<"opcode", At{0x00, 31, 16}, Opcode>;
  using op_mod = Field<"op_mod", At{0x04, 15, 0}>;
  using eq_number = Field<"eq_number", At{0x08, 7, 0}>;
  using fields = Fields<opcode, op_mod, eq_number>;
};

// DESTROY_EQ: reply.
struct DestroyEqOut : CommandOut {};

// QUERY_EQ: request.
struct QueryEqIn : Layout<0x10> {
  using opcode = Field<"opcode", At{0x00, 31, 16}, Opcode>;
  using op_mod = Field<"op_mod", At{0x04, 15, 0}>;
  using eq_number = Field<"eq_number", At{0x08, 7, 0}>;
  using fields = Fields<opcode, op_mod, eq_number>;
};

// QUERY_EQ: reply.
struct QueryEqOut : Layout<0x110> {
  using status = Field<"status", At{0x00, 31, 24}, Status>;
  using syndrome = Field<"syndrome", At{0x04, 31, 0}>;
  using eq_context_entry = Sub<"eq_context_entry", 0x10, Eqc>;
  using event_bitmask = Field64<"event_bitmask", 0x58>;
  using pas = Array<"pas", 0x110, Pas>;
  using fields = Fields<status, syndrome, eq_context_entry, event_bitmask, pas>;
};

// GEN_EQE: request.
struct GenEqeIn : Layout<0x50> {
  using opcode = Field<"opcode", At{0x00, 31, 16}, Opcode>;
  using op_mod = Field<"op_mod", At{0x04, 15, 0}>;
  using eq_number = Field<"eq_number", At{0x08, 7, 0}>;
  using eqe = Bytes<"eqe", 0x10, 64>;
  using fields = Fields<opcode, op_mod, eq_number, eqe>;
};

// GEN_EQ: reply.
struct GenEqOut : CommandOut {};

}  // namespace verbena::prm
