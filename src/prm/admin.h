// Bring-up of a function: pages, initialisation, interface version, driver version.
// Threads: types only.
#pragma once

#include "command.h"

namespace verbena::prm {

// op_mod of QUERY_PAGES and MANAGE_PAGES.
enum class QueryPagesOpMod : std::uint16_t { boot = 0x1, init = 0x2, regular = 0x3 };
enum class ManagePagesOpMod : std::uint16_t { cannot_give = 0x0, give = 0x1, take = 0x2 };

// ENABLE_HCA: request.
struct EnableHcaIn : Layout<0x10> {
  using opcode = Field<"opcode", At{0x00, 31, 16}, Opcode>;
  using op_mod = Field<"op_mod", At{0x04, 15, 0}>;
  using embedded_cpu_function = Field<"embedded_cpu_function", At{0x08, 31, 31}>;
  using function_id = Field<"function_id", At{0x08, 15, 0}>;
  using fields = Fields<opcode, op_mod, embedded_cpu_function, function_id>;
};

// ENABLE_HCA: reply.
struct EnableHcaOut : Layout<0xc> {
  using status = Field<"status", At{0x00, 31, 24}, Status>;
  using syndrome = Field<"syndrome", At{0x04, 31, 0}>;
  using fields = Fields<status, syndrome>;
};

// DISABLE_HCA: request.
struct DisableHcaIn : Layout<0x10> {
  using opcode = Field<"opcode", At{0x00, 31, 16}, Opcode>;
  using op_mod = Field<"op_mod", At{0x04, 15, 0}>;
  using embedded_cpu_function = Field<"embedded_cpu_function", At{0x08, 31, 31}>;
  using function_id = Field<"function_id", At{0x08, 15, 0}>;
  using fields = Fields<opcode, op_mod, embedded_cpu_function, function_id>;
};

// DISABLE_HCA: reply.
struct DisableHcaOut : Layout<0xc> {
  using status = Field<"status", At{0x00, 31, 24}, Status>;
  using syndrome = Field<"syndrome", At{0x04, 31, 0}>;
  using fields = Fields<status, syndrome>;
};

// INIT_HCA: request.
struct InitHcaIn : Layout<0x20> {
  using opcode = Field<"opcode", At{0x00, 31, 16}, Opcode>;
  using op_mod = Field<"op_mod", At{0x04, 15, 0}>;
  using sw_vhca_id = Field<"sw_vhca_id", At{0x0c, 29, 16}>;
  using sw_owner_id = Array<"sw_owner_id", 0x10, Dword, 4>;
  using fields = Fields<opcode, op_mod, sw_vhca_id, sw_owner_id>;
};

// INIT_HCA: reply.
struct InitHcaOut : CommandOut {};

// TEARDOWN_HCA: request.
struct TeardownHcaIn : Layout<0x10> {
  using opcode = Field<"opcode", At{0x00, 31, 16}, Opcode>;
  using op_mod = Field<"op_mod", At{0x04, 15, 0}>;
  using profile = Field<"profile", At{0x08, 15, 0}>;
  using fields = Fields<opcode, op_mod, profile>;
};

// TEARDOWN_HCA: reply.
struct TeardownHcaOut : Layout<0x10> {
  using status = Field<"status", At{0x00, 31, 24}, Status>;
  using syndrome = Field<"syndrome", At{0x04, 31, 0}>;
  using state = Field<"state", At{0x0c, 0, 0}>;
  using fields = Fields<status, syndrome, state>;
};

// QUERY_PAGES: request.
struct QueryPagesIn : Layout<0x10> {
  using opcode = Field<"opcode", At{0x00, 31, 16}, Opcode>;
  using op_mod = Field<"op_mod", At{0x04, 15, 0}>;
  using embedded_cpu_function = Field<"embedded_cpu_function", At{0x08, 31, 31}>;
  using function_id = Field<"function_id", At{0x08, 15, 0}>;
  using fields = Fields<opcode, op_mod, embedded_cpu_function, function_id>;
};

// QUERY_PAGES: reply.
struct QueryPagesOut : Layout<0x10> {
  using status = Field<"status", At{0x00, 31, 24}, Status>;
  using syndrome = Field<"syndrome", At{0x04, 31, 0}>;
  using embedded_cpu_function = Field<"embedded_cpu_function", At{0x08, 31, 31}>;
  using function_id = Field<"function_id", At{0x08, 15, 0}>;
  using num_pages = Field<"num_pages", At{0x0c, 31, 0}>;
  using fields = Fields<status, syndrome, embedded_cpu_function, function_id, num_pages>;
};

// MANAGE_PAGES: request.
struct ManagePagesIn : Layout<0x10> {
  using opcode = Field<"opcode", At{0x00, 31, 16}, Opcode>;
  using op_mod = Field<"op_mod", At{0x04, 15, 0}>;
  using embedded_cpu_function = Field<"embedded_cpu_function", At{0x08, 31, 31}>;
  using function_id = Field<"function_id", At{0x08, 15, 0}>;
  using input_num_entries = Field<"input_num_entries", At{0x0c, 31, 0}>;
  using pas = Array<"pas", 0x10, Pas>;
  using fields = Fields<opcode, op_mod, embedded_cpu_function, function_id, input_num_entries, pas>;
};

// MANAGE_PAGES: reply.
struct ManagePagesOut : Layout<0x10> {
  using status = Field<"status", At{0x00, 31, 24}, Status>;
  using syndrome = Field<"syndrome", At{0x04, 31, 0}>;
  using output_num_entries = Field<"output_num_entries", At{0x08, 31, 0}>;
  using pas = Array<"pas", 0x10, Pas>;
  using fields = Fields<status, syndrome, output_num_entries, pas>;
};

// QUERY_ISSI: request.
struct QueryIssiIn : Layout<0x10> {
  using opcode = Field<"opcode", At{0x00, 31, 16}, Opcode>;
  using op_mod = Field<"op_mod", At{0x04, 15, 0}>;
  using fields = Fields<opcode, op_mod>;
};

// QUERY_ISSI: reply.
struct QueryIssiOut : Layout<0x70> {
  using status = Field<"status", At{0x00, 31, 24}, Status>;
  using syndrome = Field<"syndrome", At{0x04, 31, 0}>;
  using current_issi = Field<"current_issi", At{0x08, 15, 0}>;
  using supported_issi_dw0 = Field<"supported_issi_dw0", At{0x6c, 31, 0}>;
  using fields = Fields<status, syndrome, current_issi, supported_issi_dw0>;
};

// SET_ISSI: request.
struct SetIssiIn : Layout<0x10> {
  using opcode = Field<"opcode", At{0x00, 31, 16}, Opcode>;
  using op_mod = Field<"op_mod", At{0x04, 15, 0}>;
  using current_issi = Field<"current_issi", At{0x08, 15, 0}>;
  using fields = Fields<opcode, op_mod, current_issi>;
};

// SET_ISSI: reply.
struct SetIssiOut : CommandOut {};

// SET_DRIVER_VERSION: request.
struct SetDriverVersionIn : Layout<0x50> {
  using opcode = Field<"opcode", At{0x00, 31, 16}, Opcode>;
  using op_mod = Field<"op_mod", At{0x04, 15, 0}>;
  using driver_version = Bytes<"driver_version", 0x10, 64>;
  using fields = Fields<opcode, op_mod, driver_version>;
};

// SET_DRIVER_VERSION: reply.
struct SetDriverVersionOut : CommandOut {};

}  // namespace verbena::prm
