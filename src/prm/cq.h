// Completion queues: context and commands.
// Threads: types only.
#pragma once

#include "command.h"

namespace verbena::prm {

enum class CqStatus : std::uint8_t { ok = 0x0, overflow = 0x9, write_fail = 0xa };
enum class CqArmState : std::uint8_t { none = 0x0, solicited_armed = 0x6, armed = 0x9, fired = 0xa };
enum class CqeSize : std::uint8_t { bytes_64 = 0, bytes_128 = 1, bytes_128_padded = 2 };
// Whether moderation counts from the last event or from the last completion.
enum class CqPeriodMode : std::uint8_t { from_eqe = 0, from_cqe = 1 };
// What mini CQEs tell besides the length. (mini_cqe_res_format_ext makes more of `hash`.)
enum class MiniCqeFormat : std::uint8_t { hash = 0, checksum = 1, flow_tag_stride_index = 2, checksum_stride_index = 3 };
enum class CqeCompressionLayout : std::uint8_t { basic = 0, enhanced = 1 };

// CQ context (PRM "Completion Queue Context").
struct Cqc : Layout<0x40> {
  using status = Field<"status", At{0x00, 31, 28}, CqStatus>;
  using dbr_umem_valid = Field<"dbr_umem_valid", At{0x00, 25, 25}>;
  using apu_cq = Field<"apu_cq", At{0x00, 24, 24}>;
  using cqe_sz = Field<"cqe_sz", At{0x00, 23, 21}, CqeSize>;
  using cc = Field<"cc", At{0x00, 20, 20}>;
  using scqe_break_moderation_en = Field<"scqe_break_moderation_en", At{0x00, 18, 18}>;
  using oi = Field<"oi", At{0x00, 17, 17}>;
  using cq_period_mode = Field<"cq_period_mode", At{0x00, 16, 15}, CqPeriodMode>;
  using cqe_comp_en = Field<"cqe_comp_en", At{0x00, 14, 14}>;
  using mini_cqe_res_format = Field<"mini_cqe_res_format", At{0x00, 13, 12}, MiniCqeFormat>;
  using st = Field<"st", At{0x00, 11, 8}, CqArmState>;
  using cqe_compression_layout = Field<"cqe_compression_layout", At{0x00, 1, 0}, CqeCompressionLayout>;
  using dbr_umem_id = Field<"dbr_umem_id", At{0x04, 31, 0}>;
  using page_offset = Field<"page_offset", At{0x08, 11, 6}>;
  using mini_cqe_res_format_ext = Field<"mini_cqe_res_format_ext", At{0x08, 3, 2}>;
  using log_cq_size = Field<"log_cq_size", At{0x0c, 28, 24}>;
  using uar_page = Field<"uar_page", At{0x0c, 23, 0}>;
  using cq_period = Field<"cq_period", At{0x10, 27, 16}>;
  using cq_max_count = Field<"cq_max_count", At{0x10, 15, 0}>;
  using c_eqn_or_apu_element = Field<"c_eqn_or_apu_element", At{0x14, 31, 0}>;
  using log_page_size = Field<"log_page_size", At{0x18, 28, 24}>;
  using last_notified_index = Field<"last_notified_index", At{0x20, 23, 0}>;
  using last_solicit_index = Field<"last_solicit_index", At{0x24, 23, 0}>;
  using consumer_counter = Field<"consumer_counter", At{0x28, 23, 0}>;
  using producer_counter = Field<"producer_counter", At{0x2c, 23, 0}>;
  using dbr_addr = Field64<"dbr_addr", 0x38>;
  using fields = Fields<status, dbr_umem_valid, apu_cq, cqe_sz, cc, scqe_break_moderation_en, oi, cq_period_mode,
                        cqe_comp_en, mini_cqe_res_format, st, cqe_compression_layout, dbr_umem_id, page_offset,
                        mini_cqe_res_format_ext,
                        log_cq_size, uar_page, cq_period, cq_max_count, c_eqn_or_apu_element, log_page_size, last_notified_index,
                        last_solicit_index, consumer_counter, producer_counter, dbr_addr>;
};

// CREATE_CQ: request.
struct CreateCqIn : Layout<0x110> {
  using opcode = Field<"opcode", At{0x00, 31, 16}, Opcode>;
  using uid = Field<"uid", At{0x00, 15, 0}>;
  using op_mod = Field<"op_mod", At{0x04, 15, 0}>;
  using cq_context = Sub<"cq_context", 0x10, Cqc>;
  using cq_umem_offset = Field64<"cq_umem_offset", 0x50>;
  using cq_umem_id = Field<"cq_umem_id", At{0x58, 31, 0}>;
  using cq_umem_valid = Field<"cq_umem_valid", At{0x5c, 31, 31}>;
  using pas = Array<"pas", 0x110, Pas>;
  using fields = Fields<opcode, uid, op_mod, cq_context, cq_umem_offset, cq_umem_id, cq_umem_valid, pas>;
};

// CREATE_CQ: reply.
struct CreateCqOut : Layout<0x10> {
  using status = Field<"status", At{0x00, 31, 24}, Status>;
  using syndrome = Field<"syndrome", At{0x04, 31, 0}>;
  using cqn = Field<"cqn", At{0x08, 23, 0}>;
  using fields = Fields<status, syndrome, cqn>;
};

// DESTROY_CQ: request.
struct DestroyCqIn : Layout<0x10> {
  using opcode = Field<"opcode", At{0x00, 31, 16}, Opcode>;
  using uid = Field<"uid", At{0x00, 15, 0}>;
  using op_mod = Field<"op_mod", At{0x04, 15, 0}>;
  using cqn = Field<"cqn", At{0x08, 23, 0}>;
  using fields = Fields<opcode, uid, op_mod, cqn>;
};

// DESTROY_CQ: reply.
struct DestroyCqOut : CommandOut {};

// QUERY_CQ: request.
struct QueryCqIn : Layout<0x10> {
  using opcode = Field<"opcode", At{0x00, 31, 16}, Opcode>;
  using op_mod = Field<"op_mod", At{0x04, 15, 0}>;
  using cqn = Field<"cqn", At{0x08, 23, 0}>;
  using fields = Fields<opcode, op_mod, cqn>;
};

// QUERY_CQ: reply.
struct QueryCqOut : Layout<0x110> {
  using status = Field<"status", At{0x00, 31, 24}, Status>;
  using syndrome = Field<"syndrome", At{0x04, 31, 0}>;
  using cq_context = Sub<"cq_context", 0x10, Cqc>;
  using pas = Array<"pas", 0x110, Pas>;
  using fields = Fields<status, syndrome, cq_context, pas>;
};

// modify_field_select of MODIFY_CQ (op_mod 0).
struct ModifyCqSelect {
  static constexpr std::uint32_t period = 1u << 0;
  static constexpr std::uint32_t max_count = 1u << 1;
  static constexpr std::uint32_t overrun_ignore = 1u << 2;
  static constexpr std::uint32_t eqn = 1u << 3;
  static constexpr std::uint32_t period_mode = 1u << 4;
};
// op_mod of MODIFY_CQ, and the field select of a resize.
enum class ModifyCqOpMod : std::uint16_t { modify = 0, resize = 1 };
struct ResizeCqSelect {
  static constexpr std::uint32_t log_cq_size = 1u << 0;
  static constexpr std::uint32_t page_offset = 1u << 1;
  static constexpr std::uint32_t log_page_size = 1u << 2;
};

// MODIFY_CQ: request.
struct ModifyCqIn : Layout<0x110> {
  using opcode = Field<"opcode", At{0x00, 31, 16}, Opcode>;
  using uid = Field<"uid", At{0x00, 15, 0}>;
  using op_mod = Field<"op_mod", At{0x04, 15, 0}>;
  using cqn = Field<"cqn", At{0x08, 23, 0}>;
  using modify_field_select_resize_field_select = Field<"modify_field_select_resize_field_select", At{0x0c, 31, 0}>;
  using cq_context = Sub<"cq_context", 0x10, Cqc>;
  using cq_umem_offset = Field64<"cq_umem_offset", 0x50>;
  using cq_umem_id = Field<"cq_umem_id", At{0x58, 31, 0}>;
  using cq_umem_valid = Field<"cq_umem_valid", At{0x5c, 31, 31}>;
  using pas = Array<"pas", 0x110, Pas>;
  using fields = Fields<opcode, uid, op_mod, cqn, modify_field_select_resize_field_select, cq_context, cq_umem_offset,
                        cq_umem_id, cq_umem_valid, pas>;
};

// MODIFY_CQ: reply.
struct ModifyCqOut : CommandOut {};

}  // namespace verbena::prm
