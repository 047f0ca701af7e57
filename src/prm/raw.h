// Raw Ethernet queues: TIS, TIR, RQ, SQ and RQ tables.
// Threads: types only.
#pragma once

#include "command.h"
#include "wq.h"

namespace verbena::prm {

enum class RqState : std::uint8_t { rst = 0x0, rdy = 0x1, err = 0x3 };
enum class SqState : std::uint8_t { rst = 0x0, rdy = 0x1, err = 0x3 };
enum class MemRqType : std::uint8_t { inline_ = 0x0, rmp = 0x1 };
enum class TirDispType : std::uint8_t { direct = 0x0, indirect = 0x1 };
enum class RxHashFn : std::uint8_t { none = 0x0, inverted_xor8 = 0x1, toeplitz = 0x2 };

// TIS context: transport parameters of a raw send queue.
struct Tisc : Layout<0xa0> {
  using strict_lag_tx_port_affinity = Field<"strict_lag_tx_port_affinity", At{0x00, 31, 31}>;
  using tls_en = Field<"tls_en", At{0x00, 30, 30}>;
  using lag_tx_port_affinity = Field<"lag_tx_port_affinity", At{0x00, 27, 24}>;
  using prio = Field<"prio", At{0x00, 19, 16}>;
  using transport_domain = Field<"transport_domain", At{0x24, 23, 0}>;
  using underlay_qpn = Field<"underlay_qpn", At{0x28, 23, 0}>;
  using pd = Field<"pd", At{0x2c, 23, 0}>;
  using fields =
      Fields<strict_lag_tx_port_affinity, tls_en, lag_tx_port_affinity, prio, transport_domain, underlay_qpn, pd>;
};

// Fields that MODIFY_TIS changes.
struct ModifyTisBitmask : Layout<0x8> {
  using lag_tx_port_affinity = Field<"lag_tx_port_affinity", At{0x04, 2, 2}>;
  using strict_lag_tx_port_affinity = Field<"strict_lag_tx_port_affinity", At{0x04, 1, 1}>;
  using prio = Field<"prio", At{0x04, 0, 0}>;
  using fields = Fields<lag_tx_port_affinity, strict_lag_tx_port_affinity, prio>;
};

// CREATE_TIS: request.
struct CreateTisIn : Layout<0xc0> {
  using opcode = Field<"opcode", At{0x00, 31, 16}, Opcode>;
  using uid = Field<"uid", At{0x00, 15, 0}>;
  using op_mod = Field<"op_mod", At{0x04, 15, 0}>;
  using ctx = Sub<"ctx", 0x20, Tisc>;
  using fields = Fields<opcode, uid, op_mod, ctx>;
};

// CREATE_TIS: reply.
struct CreateTisOut : Layout<0x10> {
  using status = Field<"status", At{0x00, 31, 24}, Status>;
  using syndrome = Field<"syndrome", At{0x04, 31, 0}>;
  using tisn = Field<"tisn", At{0x08, 23, 0}>;
  using fields = Fields<status, syndrome, tisn>;
};

// MODIFY_TIS: request.
struct ModifyTisIn : Layout<0xc0> {
  using opcode = Field<"opcode", At{0x00, 31, 16}, Opcode>;
  using uid = Field<"uid", At{0x00, 15, 0}>;
  using op_mod = Field<"op_mod", At{0x04, 15, 0}>;
  using tisn = Field<"tisn", At{0x08, 23, 0}>;
  using bitmask = Sub<"bitmask", 0x10, ModifyTisBitmask>;
  using ctx = Sub<"ctx", 0x20, Tisc>;
  using fields = Fields<opcode, uid, op_mod, tisn, bitmask, ctx>;
};

// MODIFY_TIS: reply.
struct ModifyTisOut : CommandOut {};

// DESTROY_TIS: request.
struct DestroyTisIn : Layout<0x10> {
  using opcode = Field<"opcode", At{0x00, 31, 16}, Opcode>;
  using uid = Field<"uid", At{0x00, 15, 0}>;
  using op_mod = Field<"op_mod", At{0x04, 15, 0}>;
  using tisn = Field<"tisn", At{0x08, 23, 0}>;
  using fields = Fields<opcode, uid, op_mod, tisn>;
};

// DESTROY_TIS: reply.
struct DestroyTisOut : CommandOut {};

// QUERY_TIS: request.
struct QueryTisIn : Layout<0x10> {
  using opcode = Field<"opcode", At{0x00, 31, 16}, Opcode>;
  using op_mod = Field<"op_mod", At{0x04, 15, 0}>;
  using tisn = Field<"tisn", At{0x08, 23, 0}>;
  using fields = Fields<opcode, op_mod, tisn>;
};

// QUERY_TIS: reply.
struct QueryTisOut : Layout<0xb0> {
  using status = Field<"status", At{0x00, 31, 24}, Status>;
  using syndrome = Field<"syndrome", At{0x04, 31, 0}>;
  using tis_context = Sub<"tis_context", 0x10, Tisc>;
  using fields = Fields<status, syndrome, tis_context>;
};

// Packet fields that go into the receive hash.
struct RxHashFieldSelect : Layout<0x4> {
  static constexpr std::uint32_t src_ip = 1u << 0, dst_ip = 1u << 1, l4_sport = 1u << 2, l4_dport = 1u << 3;
  using l3_prot_type = Field<"l3_prot_type", At{0x00, 31, 31}>;
  using l4_prot_type = Field<"l4_prot_type", At{0x00, 30, 30}>;
  using selected_fields = Field<"selected_fields", At{0x00, 29, 0}>;
  using fields = Fields<l3_prot_type, l4_prot_type, selected_fields>;
};

// TIR context: how received packets spread over receive queues.
struct Tirc : Layout<0xf0> {
  using disp_type = Field<"disp_type", At{0x04, 31, 28}, TirDispType>;
  using tls_en = Field<"tls_en", At{0x04, 27, 27}>;
  using lro_timeout_period_usecs = Field<"lro_timeout_period_usecs", At{0x10, 27, 12}>;
  using packet_merge_mask = Field<"packet_merge_mask", At{0x10, 11, 8}>;
  using lro_max_ip_payload_size = Field<"lro_max_ip_payload_size", At{0x10, 7, 0}>;
  using inline_rqn = Field<"inline_rqn", At{0x1c, 23, 0}>;
  using rx_hash_symmetric = Field<"rx_hash_symmetric", At{0x20, 31, 31}>;
  using tunneled_offload_en = Field<"tunneled_offload_en", At{0x20, 29, 29}>;
  using indirect_table = Field<"indirect_table", At{0x20, 23, 0}>;
  using rx_hash_fn = Field<"rx_hash_fn", At{0x24, 31, 28}, RxHashFn>;
  using self_lb_block = Field<"self_lb_block", At{0x24, 25, 24}>;
  using transport_domain = Field<"transport_domain", At{0x24, 23, 0}>;
  using rx_hash_toeplitz_key = Array<"rx_hash_toeplitz_key", 0x28, Dword, 10>;
  using rx_hash_field_selector_outer = Sub<"rx_hash_field_selector_outer", 0x50, RxHashFieldSelect>;
  using rx_hash_field_selector_inner = Sub<"rx_hash_field_selector_inner", 0x54, RxHashFieldSelect>;
  using fields =
      Fields<disp_type, tls_en, lro_timeout_period_usecs, packet_merge_mask, lro_max_ip_payload_size, inline_rqn,
             rx_hash_symmetric, tunneled_offload_en, indirect_table, rx_hash_fn, self_lb_block, transport_domain,
             rx_hash_toeplitz_key, rx_hash_field_selector_outer, rx_hash_field_selector_inner>;
};

// Fields that MODIFY_TIR changes.
struct ModifyTirBitmask : Layout<0x8> {
  using self_lb_en = Field<"self_lb_en", At{0x04, 4, 4}>;
  using hash = Field<"hash", At{0x04, 2, 2}>;
  using packet_merge = Field<"packet_merge", At{0x04, 0, 0}>;
  using fields = Fields<self_lb_en, hash, packet_merge>;
};

// CREATE_TIR: request.
struct CreateTirIn : Layout<0x110> {
  using opcode = Field<"opcode", At{0x00, 31, 16}, Opcode>;
  using uid = Field<"uid", At{0x00, 15, 0}>;
  using op_mod = Field<"op_mod", At{0x04, 15, 0}>;
  using ctx = Sub<"ctx", 0x20, Tirc>;
  using fields = Fields<opcode, uid, op_mod, ctx>;
};

// CREATE_TIR: reply.
struct CreateTirOut : Layout<0x10> {
  using status = Field<"status", At{0x00, 31, 24}, Status>;
  using icm_address_63_40 = Field<"icm_address_63_40", At{0x00, 23, 0}>;
  using syndrome = Field<"syndrome", At{0x04, 31, 0}>;
  using icm_address_39_32 = Field<"icm_address_39_32", At{0x08, 31, 24}>;
  using tirn = Field<"tirn", At{0x08, 23, 0}>;
  using icm_address_31_0 = Field<"icm_address_31_0", At{0x0c, 31, 0}>;
  using fields = Fields<status, icm_address_63_40, syndrome, icm_address_39_32, tirn, icm_address_31_0>;
};

// MODIFY_TIR: request.
struct ModifyTirIn : Layout<0x110> {
  using opcode = Field<"opcode", At{0x00, 31, 16}, Opcode>;
  using uid = Field<"uid", At{0x00, 15, 0}>;
  using op_mod = Field<"op_mod", At{0x04, 15, 0}>;
  using tirn = Field<"tirn", At{0x08, 23, 0}>;
  using bitmask = Sub<"bitmask", 0x10, ModifyTirBitmask>;
  using ctx = Sub<"ctx", 0x20, Tirc>;
  using fields = Fields<opcode, uid, op_mod, tirn, bitmask, ctx>;
};

// MODIFY_TIR: reply.
struct ModifyTirOut : CommandOut {};

// DESTROY_TIR: request.
struct DestroyTirIn : Layout<0x10> {
  using opcode = Field<"opcode", At{0x00, 31, 16}, Opcode>;
  using uid = Field<"uid", At{0x00, 15, 0}>;
  using op_mod = Field<"op_mod", At{0x04, 15, 0}>;
  using tirn = Field<"tirn", At{0x08, 23, 0}>;
  using fields = Fields<opcode, uid, op_mod, tirn>;
};

// DESTROY_TIR: reply.
struct DestroyTirOut : CommandOut {};

// QUERY_TIR: request.
struct QueryTirIn : Layout<0x10> {
  using opcode = Field<"opcode", At{0x00, 31, 16}, Opcode>;
  using op_mod = Field<"op_mod", At{0x04, 15, 0}>;
  using tirn = Field<"tirn", At{0x08, 23, 0}>;
  using fields = Fields<opcode, op_mod, tirn>;
};

// QUERY_TIR: reply.
struct QueryTirOut : Layout<0x110> {
  using status = Field<"status", At{0x00, 31, 24}, Status>;
  using syndrome = Field<"syndrome", At{0x04, 31, 0}>;
  using tir_context = Sub<"tir_context", 0x20, Tirc>;
  using fields = Fields<status, syndrome, tir_context>;
};

// SQ context of raw Ethernet.
struct Sqc : Layout<0xf0> {
  using rlky = Field<"rlky", At{0x00, 31, 31}>;
  using cd_master = Field<"cd_master", At{0x00, 30, 30}>;
  using fre = Field<"fre", At{0x00, 29, 29}>;
  using flush_in_error_en = Field<"flush_in_error_en", At{0x00, 28, 28}>;
  using allow_multi_pkt_send_wqe = Field<"allow_multi_pkt_send_wqe", At{0x00, 27, 27}>;
  using min_wqe_inline_mode = Field<"min_wqe_inline_mode", At{0x00, 26, 24}>;
  using state = Field<"state", At{0x00, 23, 20}, SqState>;
  using reg_umr = Field<"reg_umr", At{0x00, 19, 19}>;
  using allow_swp = Field<"allow_swp", At{0x00, 18, 18}>;
  using hairpin = Field<"hairpin", At{0x00, 17, 17}>;
  using ts_format = Field<"ts_format", At{0x00, 5, 4}, TimestampFormat>;
  using user_index = Field<"user_index", At{0x04, 23, 0}>;
  using cqn = Field<"cqn", At{0x08, 23, 0}>;
  using hairpin_peer_rq = Field<"hairpin_peer_rq", At{0x0c, 23, 0}>;
  using hairpin_peer_vhca = Field<"hairpin_peer_vhca", At{0x10, 15, 0}>;
  using ts_cqe_to_dest_cqn = Field<"ts_cqe_to_dest_cqn", At{0x18, 23, 0}>;
  using packet_pacing_rate_limit_index = Field<"packet_pacing_rate_limit_index", At{0x1c, 15, 0}>;
  using tis_lst_sz = Field<"tis_lst_sz", At{0x20, 31, 16}>;
  using qos_queue_group_id = Field<"qos_queue_group_id", At{0x20, 15, 0}>;
  using tis_num_0 = Field<"tis_num_0", At{0x2c, 23, 0}>;
  using wq = Sub<"wq", 0x30, Wq>;
  using fields =
      Fields<rlky, cd_master, fre, flush_in_error_en, allow_multi_pkt_send_wqe, min_wqe_inline_mode, state, reg_umr,
             allow_swp, hairpin, ts_format, user_index, cqn, hairpin_peer_rq, hairpin_peer_vhca, ts_cqe_to_dest_cqn,
             packet_pacing_rate_limit_index, tis_lst_sz, qos_queue_group_id, tis_num_0, wq>;
};

// Bits of MODIFY_SQ's modify_bitmask.
struct SqModify {
  static constexpr std::uint64_t packet_pacing_rate_limit_index = 1u << 0;
  static constexpr std::uint64_t qos_queue_group_id = 1u << 2;
};

// CREATE_SQ: request.
struct CreateSqIn : Layout<0x110> {
  using opcode = Field<"opcode", At{0x00, 31, 16}, Opcode>;
  using uid = Field<"uid", At{0x00, 15, 0}>;
  using op_mod = Field<"op_mod", At{0x04, 15, 0}>;
  using ctx = Sub<"ctx", 0x20, Sqc>;
  using fields = Fields<opcode, uid, op_mod, ctx>;
};

// CREATE_SQ: reply.
struct CreateSqOut : Layout<0x10> {
  using status = Field<"status", At{0x00, 31, 24}, Status>;
  using syndrome = Field<"syndrome", At{0x04, 31, 0}>;
  using sqn = Field<"sqn", At{0x08, 23, 0}>;
  using fields = Fields<status, syndrome, sqn>;
};

// MODIFY_SQ: request.
struct ModifySqIn : Layout<0x110> {
  using opcode = Field<"opcode", At{0x00, 31, 16}, Opcode>;
  using uid = Field<"uid", At{0x00, 15, 0}>;
  using op_mod = Field<"op_mod", At{0x04, 15, 0}>;
  using sq_state = Field<"sq_state", At{0x08, 31, 28}, SqState>;
  using sqn = Field<"sqn", At{0x08, 23, 0}>;
  using modify_bitmask = Field64<"modify_bitmask", 0x10>;
  using ctx = Sub<"ctx", 0x20, Sqc>;
  using fields = Fields<opcode, uid, op_mod, sq_state, sqn, modify_bitmask, ctx>;
};

// MODIFY_SQ: reply.
struct ModifySqOut : CommandOut {};

// DESTROY_SQ: request.
struct DestroySqIn : Layout<0x10> {
  using opcode = Field<"opcode", At{0x00, 31, 16}, Opcode>;
  using uid = Field<"uid", At{0x00, 15, 0}>;
  using op_mod = Field<"op_mod", At{0x04, 15, 0}>;
  using sqn = Field<"sqn", At{0x08, 23, 0}>;
  using fields = Fields<opcode, uid, op_mod, sqn>;
};

// DESTROY_SQ: reply.
struct DestroySqOut : CommandOut {};

// QUERY_SQ: request.
struct QuerySqIn : Layout<0x10> {
  using opcode = Field<"opcode", At{0x00, 31, 16}, Opcode>;
  using op_mod = Field<"op_mod", At{0x04, 15, 0}>;
  using sqn = Field<"sqn", At{0x08, 23, 0}>;
  using fields = Fields<opcode, op_mod, sqn>;
};

// QUERY_SQ: reply.
struct QuerySqOut : Layout<0x110> {
  using status = Field<"status", At{0x00, 31, 24}, Status>;
  using syndrome = Field<"syndrome", At{0x04, 31, 0}>;
  using sq_context = Sub<"sq_context", 0x20, Sqc>;
  using fields = Fields<status, syndrome, sq_context>;
};

// RQ context of raw Ethernet.
struct Rqc : Layout<0xf0> {
  using rlky = Field<"rlky", At{0x00, 31, 31}>;
  using delay_drop_en = Field<"delay_drop_en", At{0x00, 30, 30}>;
  using scatter_fcs = Field<"scatter_fcs", At{0x00, 29, 29}>;
  using vsd = Field<"vsd", At{0x00, 28, 28}>;
  using mem_rq_type = Field<"mem_rq_type", At{0x00, 27, 24}, MemRqType>;
  using state = Field<"state", At{0x00, 23, 20}, RqState>;
  using flush_in_error_en = Field<"flush_in_error_en", At{0x00, 18, 18}>;
  using hairpin = Field<"hairpin", At{0x00, 17, 17}>;
  using ts_format = Field<"ts_format", At{0x00, 5, 4}, TimestampFormat>;
  using user_index = Field<"user_index", At{0x04, 23, 0}>;
  using cqn = Field<"cqn", At{0x08, 23, 0}>;
  using counter_set_id = Field<"counter_set_id", At{0x0c, 31, 24}>;
  using rmpn = Field<"rmpn", At{0x10, 23, 0}>;
  using hairpin_peer_sq = Field<"hairpin_peer_sq", At{0x14, 23, 0}>;
  using hairpin_peer_vhca = Field<"hairpin_peer_vhca", At{0x18, 15, 0}>;
  using shampo_no_match_alignment_granularity = Field<"shampo_no_match_alignment_granularity", At{0x24, 25, 24}>;
  using shampo_match_criteria_type = Field<"shampo_match_criteria_type", At{0x24, 17, 16}>;
  using reservation_timeout = Field<"reservation_timeout", At{0x24, 15, 0}>;
  using wq = Sub<"wq", 0x30, Wq>;
  using fields = Fields<rlky, delay_drop_en, scatter_fcs, vsd, mem_rq_type, state, flush_in_error_en, hairpin,
                        ts_format, user_index, cqn, counter_set_id, rmpn, hairpin_peer_sq, hairpin_peer_vhca,
                        shampo_no_match_alignment_granularity, shampo_match_criteria_type, reservation_timeout, wq>;
};

// Bits of MODIFY_RQ's modify_bitmask.
struct RqModify {
  static constexpr std::uint64_t vsd = 1u << 1;
  static constexpr std::uint64_t scatter_fcs = 1u << 2;
  static constexpr std::uint64_t counter_set_id = 1u << 3;
};

// CREATE_RQ: request.
struct CreateRqIn : Layout<0x110> {
  using opcode = Field<"opcode", At{0x00, 31, 16}, Opcode>;
  using uid = Field<"uid", At{0x00, 15, 0}>;
  using op_mod = Field<"op_mod", At{0x04, 15, 0}>;
  using ctx = Sub<"ctx", 0x20, Rqc>;
  using fields = Fields<opcode, uid, op_mod, ctx>;
};

// CREATE_RQ: reply.
struct CreateRqOut : Layout<0x10> {
  using status = Field<"status", At{0x00, 31, 24}, Status>;
  using syndrome = Field<"syndrome", At{0x04, 31, 0}>;
  using rqn = Field<"rqn", At{0x08, 23, 0}>;
  using fields = Fields<status, syndrome, rqn>;
};

// MODIFY_RQ: request.
struct ModifyRqIn : Layout<0x110> {
  using opcode = Field<"opcode", At{0x00, 31, 16}, Opcode>;
  using uid = Field<"uid", At{0x00, 15, 0}>;
  using op_mod = Field<"op_mod", At{0x04, 15, 0}>;
  using rq_state = Field<"rq_state", At{0x08, 31, 28}, RqState>;
  using rqn = Field<"rqn", At{0x08, 23, 0}>;
  using modify_bitmask = Field64<"modify_bitmask", 0x10>;
  using ctx = Sub<"ctx", 0x20, Rqc>;
  using fields = Fields<opcode, uid, op_mod, rq_state, rqn, modify_bitmask, ctx>;
};

// MODIFY_RQ: reply.
struct ModifyRqOut : CommandOut {};

// DESTROY_RQ: request.
struct DestroyRqIn : Layout<0x10> {
  using opcode = Field<"opcode", At{0x00, 31, 16}, Opcode>;
  using uid = Field<"uid", At{0x00, 15, 0}>;
  using op_mod = Field<"op_mod", At{0x04, 15, 0}>;
  using rqn = Field<"rqn", At{0x08, 23, 0}>;
  using fields = Fields<opcode, uid, op_mod, rqn>;
};

// DESTROY_RQ: reply.
struct DestroyRqOut : CommandOut {};

// QUERY_RQ: request.
struct QueryRqIn : Layout<0x10> {
  using opcode = Field<"opcode", At{0x00, 31, 16}, Opcode>;
  using op_mod = Field<"op_mod", At{0x04, 15, 0}>;
  using rqn = Field<"rqn", At{0x08, 23, 0}>;
  using fields = Fields<opcode, op_mod, rqn>;
};

// QUERY_RQ: reply.
struct QueryRqOut : Layout<0x110> {
  using status = Field<"status", At{0x00, 31, 24}, Status>;
  using syndrome = Field<"syndrome", At{0x04, 31, 0}>;
  using rq_context = Sub<"rq_context", 0x20, Rqc>;
  using fields = Fields<status, syndrome, rq_context>;
};

// An entry of an RQ table.
struct RqNum : Layout<0x4> {
  using rq_num = Field<"rq_num", At{0x00, 23, 0}>;
  using fields = Fields<rq_num>;
};

// RQT context: a table of receive queues.
struct Rqtc : Layout<0xf0> {
  using list_q_type = Field<"list_q_type", At{0x14, 26, 24}>;
  using rqt_max_size = Field<"rqt_max_size", At{0x14, 15, 0}>;
  using rq_vhca_id_format = Field<"rq_vhca_id_format", At{0x18, 31, 31}>;
  using rqt_actual_size = Field<"rqt_actual_size", At{0x18, 15, 0}>;
  using rq_num = Array<"rq_num", 0xf0, RqNum>;
  using fields = Fields<list_q_type, rqt_max_size, rq_vhca_id_format, rqt_actual_size, rq_num>;
};

// Fields that MODIFY_RQT changes.
struct RqtBitmask : Layout<0x8> {
  using rqn_list = Field<"rqn_list", At{0x04, 0, 0}>;
  using fields = Fields<rqn_list>;
};

// CREATE_RQT: request.
struct CreateRqtIn : Layout<0x110> {
  using opcode = Field<"opcode", At{0x00, 31, 16}, Opcode>;
  using uid = Field<"uid", At{0x00, 15, 0}>;
  using op_mod = Field<"op_mod", At{0x04, 15, 0}>;
  using rqt_context = Sub<"rqt_context", 0x20, Rqtc>;
  using fields = Fields<opcode, uid, op_mod, rqt_context>;
};

// CREATE_RQT: reply.
struct CreateRqtOut : Layout<0x10> {
  using status = Field<"status", At{0x00, 31, 24}, Status>;
  using syndrome = Field<"syndrome", At{0x04, 31, 0}>;
  using rqtn = Field<"rqtn", At{0x08, 23, 0}>;
  using fields = Fields<status, syndrome, rqtn>;
};

// MODIFY_RQT: request.
struct ModifyRqtIn : Layout<0x110> {
  using opcode = Field<"opcode", At{0x00, 31, 16}, Opcode>;
  using uid = Field<"uid", At{0x00, 15, 0}>;
  using op_mod = Field<"op_mod", At{0x04, 15, 0}>;
  using rqtn = Field<"rqtn", At{0x08, 23, 0}>;
  using bitmask = Sub<"bitmask", 0x10, RqtBitmask>;
  using ctx = Sub<"ctx", 0x20, Rqtc>;
  using fields = Fields<opcode, uid, op_mod, rqtn, bitmask, ctx>;
};

// MODIFY_RQT: reply.
struct ModifyRqtOut : CommandOut {};

// DESTROY_RQT: request.
struct DestroyRqtIn : Layout<0x10> {
  using opcode = Field<"opcode", At{0x00, 31, 16}, Opcode>;
  using uid = Field<"uid", At{0x00, 15, 0}>;
  using op_mod = Field<"op_mod", At{0x04, 15, 0}>;
  using rqtn = Field<"rqtn", At{0x08, 23, 0}>;
  using fields = Fields<opcode, uid, op_mod, rqtn>;
};

// DESTROY_RQT: reply.
struct DestroyRqtOut : CommandOut {};

// QUERY_RQT: request.
struct QueryRqtIn : Layout<0x10> {
  using opcode = Field<"opcode", At{0x00, 31, 16}, Opcode>;
  using op_mod = Field<"op_mod", At{0x04, 15, 0}>;
  using rqtn = Field<"rqtn", At{0x08, 23, 0}>;
  using fields = Fields<opcode, op_mod, rqtn>;
};

// QUERY_RQT: reply.
struct QueryRqtOut : Layout<0x110> {
  using status = Field<"status", At{0x00, 31, 24}, Status>;
  using syndrome = Field<"syndrome", At{0x04, 31, 0}>;
  using rqt_context = Sub<"rqt_context", 0x20, Rqtc>;
  using fields = Fields<status, syndrome, rqt_context>;
};

}  // namespace verbena::prm
