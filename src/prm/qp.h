// Queue pairs: address path, context and the commands of the state machine.
// Threads: types only.
#pragma once

#include "command.h"
#include "wq.h"

namespace verbena::prm {

enum class QpState : std::uint8_t {
  rst = 0x0,
  init = 0x1,
  rtr = 0x2,
  rts = 0x3,
  sqer = 0x4,
  sq_drained = 0x5,
  err = 0x6,
  sqd = 0x7,  // draining
  suspended = 0x9,
};

// Where the device learns what was posted: the doorbell record, or the store to the UAR page alone.
enum class SendDbrMode : std::uint8_t { dbr_valid = 0x0, no_dbr_ext = 0x1, no_dbr_int = 0x2 };
enum class QpServiceType : std::uint8_t {
  rc = 0x0,
  uc = 0x1,
  ud = 0x2,
  xrc = 0x3,
  mlx = 0x4,
  dci = 0x5,
  dct = 0x6,
  qp0 = 0x7,
  qp1 = 0x8,
  raw_ethertype = 0x9,
  raw_ipv6 = 0xa,
  sniffer = 0xb,
  reg_umr = 0xc,
  ptp_1588 = 0xd,
};

enum class PathMigrationState : std::uint8_t { armed = 0x0, rearm = 0x1, migrated = 0x3 };
enum class QpMtu : std::uint8_t { mtu_256 = 1, mtu_512 = 2, mtu_1k = 3, mtu_2k = 4, mtu_4k = 5, raw_ethernet = 7 };
// Where receives come from.
enum class RqType : std::uint8_t { regular = 0x0, srq_rmp_xrq = 0x1, zero_size = 0x3 };
enum class QpOffload : std::uint8_t { none = 0x0, rendezvous = 0x1 };
enum class AtomicMode : std::uint8_t {
  none = 0x0,
  ib_spec = 0x1,
  only_8b = 0x2,
  up_to_8b = 0x3,
  up_to_16b = 0x4,
  up_to_32b = 0x5,
  up_to_64b = 0x6,
  up_to_128b = 0x7,
  up_to_256b = 0x8,
};
// Values of cs_req and cs_res: inline scatter of small results into the CQE.
struct ScatterToCqe {
  static constexpr std::uint32_t req_disable = 0x00;
  static constexpr std::uint32_t req_up_to_32b = 0x11;
  static constexpr std::uint32_t req_up_to_64b = 0x22;
  static constexpr std::uint32_t res_disable = 0x0;
  static constexpr std::uint32_t res_up_to_32b = 0x1;
  static constexpr std::uint32_t res_up_to_64b = 0x2;
};

// Bits of opt_param_mask: which optional parameters a transition carries.
struct QpOptParam {
  static constexpr std::uint32_t alt_addr_path = 1u << 0;
  static constexpr std::uint32_t rre = 1u << 1;
  static constexpr std::uint32_t rae = 1u << 2;
  static constexpr std::uint32_t rwe = 1u << 3;
  static constexpr std::uint32_t pkey_index = 1u << 4;
  static constexpr std::uint32_t q_key = 1u << 5;
  static constexpr std::uint32_t rnr_timeout = 1u << 6;
  static constexpr std::uint32_t primary_addr_path = 1u << 7;
  static constexpr std::uint32_t sra_max = 1u << 8;
  static constexpr std::uint32_t rra_max = 1u << 9;
  static constexpr std::uint32_t pm_state = 1u << 10;
  static constexpr std::uint32_t drain_sigerr = 1u << 11;
  static constexpr std::uint32_t retry_count = 1u << 12;
  static constexpr std::uint32_t rnr_retry = 1u << 13;
  static constexpr std::uint32_t ack_timeout = 1u << 14;
  static constexpr std::uint32_t lag_tx_affinity = 1u << 15;
  static constexpr std::uint32_t primary_port = 1u << 16;
  static constexpr std::uint32_t srqn = 1u << 18;
  static constexpr std::uint32_t cqn_rcv = 1u << 19;
  static constexpr std::uint32_t dc_hs = 1u << 20;
  static constexpr std::uint32_t dc_key = 1u << 21;
  static constexpr std::uint32_t counter_set_id = 1u << 25;
};
// Bits of opt_param_mask_95_32, for the extension.
struct QpExtOptParam {
  static constexpr std::uint64_t dci_stream_channel_id = 1u << 0;
  static constexpr std::uint64_t qos_queue_group_id = 1u << 1;
  static constexpr std::uint64_t udp_sport = 1u << 2;
  static constexpr std::uint64_t mmo = 1u << 3;
};

// ads.stat_rate, and the same nibble of a datagram's address vector: how fast packets may follow one another, in Mbit/s by
// code. 0: as the link goes.
inline constexpr std::uint32_t kStatRateMbps[16] = {0,     56000, 25000, 100000, 200000, 50000, 400000, 2500,
                                                    10000, 30000, 5000,  20000,  40000,  60000, 80000,  120000};

// Address path (PRM "Address Path Format"): route of a connected QP. RoCE uses rgid_rip, rmac, udp_sport, dscp.
struct Ads : Layout<0x2c> {
  using fl = Field<"fl", At{0x00, 31, 31}>;
  using free_ar = Field<"free_ar", At{0x00, 30, 30}>;
  using pkey_index = Field<"pkey_index", At{0x00, 15, 0}>;
  using grh = Field<"grh", At{0x04, 23, 23}>;
  using mlid = Field<"mlid", At{0x04, 22, 16}>;
  using rlid = Field<"rlid", At{0x04, 15, 0}>;
  using ack_timeout = Field<"ack_timeout", At{0x08, 31, 27}>;
  using src_addr_index = Field<"src_addr_index", At{0x08, 23, 16}>;
  using stat_rate = Field<"stat_rate", At{0x08, 11, 8}>;
  using hop_limit = Field<"hop_limit", At{0x08, 7, 0}>;
  using tclass = Field<"tclass", At{0x0c, 27, 20}>;
  using flow_label = Field<"flow_label", At{0x0c, 19, 0}>;
  using rgid_rip = Bytes<"rgid_rip", 0x10, 16>;
  using f_dscp = Field<"f_dscp", At{0x20, 27, 27}>;
  using f_ecn = Field<"f_ecn", At{0x20, 26, 26}>;
  using f_eth_prio = Field<"f_eth_prio", At{0x20, 24, 24}>;
  using ecn = Field<"ecn", At{0x20, 23, 22}>;
  using dscp = Field<"dscp", At{0x20, 21, 16}>;
  using udp_sport = Field<"udp_sport", At{0x20, 15, 0}>;
  using dei_cfi = Field<"dei_cfi", At{0x24, 31, 31}>;
  using eth_prio = Field<"eth_prio", At{0x24, 30, 28}>;
  using sl = Field<"sl", At{0x24, 27, 24}>;
  using vhca_port_num = Field<"vhca_port_num", At{0x24, 23, 16}>;
  using rmac_47_32 = Field<"rmac_47_32", At{0x24, 15, 0}>;
  using rmac_31_0 = Field<"rmac_31_0", At{0x28, 31, 0}>;
  using fields = Fields<fl, free_ar, pkey_index, grh, mlid, rlid, ack_timeout, src_addr_index, stat_rate, hop_limit,
                        tclass, flow_label, rgid_rip, f_dscp, f_ecn, f_eth_prio, ecn, dscp, udp_sport, dei_cfi,
                        eth_prio, sl, vhca_port_num, rmac_47_32, rmac_31_0>;
};

// QP context (PRM "Queue Pair Context").
struct Qpc : Layout<0xe8> {
  using state = Field<"state", At{0x00, 31, 28}, QpState>;
  using lag_tx_port_affinity = Field<"lag_tx_port_affinity", At{0x00, 27, 24}>;
  using st = Field<"st", At{0x00, 23, 16}, QpServiceType>;
  using isolate_vl_tc = Field<"isolate_vl_tc", At{0x00, 13, 13}>;
  using pm_state = Field<"pm_state", At{0x00, 12, 11}, PathMigrationState>;
  using req_e2e_credit_mode = Field<"req_e2e_credit_mode", At{0x00, 9, 8}>;
  using offload_type = Field<"offload_type", At{0x00, 7, 4}, QpOffload>;
  using end_padding_mode = Field<"end_padding_mode", At{0x00, 3, 2}, EndPaddingMode>;
  using wq_signature = Field<"wq_signature", At{0x04, 31, 31}>;
  using block_lb_mc = Field<"block_lb_mc", At{0x04, 30, 30}>;
  using atomic_like_write_en = Field<"atomic_like_write_en", At{0x04, 29, 29}>;
  using latency_sensitive = Field<"latency_sensitive", At{0x04, 28, 28}>;
  using drain_sigerr = Field<"drain_sigerr", At{0x04, 26, 26}>;
  using pd = Field<"pd", At{0x04, 23, 0}>;
  using mtu = Field<"mtu", At{0x08, 31, 29}, QpMtu>;
  using log_msg_max = Field<"log_msg_max", At{0x08, 28, 24}>;
  using log_rq_size = Field<"log_rq_size", At{0x08, 22, 19}>;
  using log_rq_stride = Field<"log_rq_stride", At{0x08, 18, 16}>;
  using no_sq = Field<"no_sq", At{0x08, 15, 15}>;
  using log_sq_size = Field<"log_sq_size", At{0x08, 14, 11}>;
  using ts_format = Field<"ts_format", At{0x08, 7, 6}, TimestampFormat>;
  using data_in_order = Field<"data_in_order", At{0x08, 5, 5}>;
  using rlky = Field<"rlky", At{0x08, 4, 4}>;
  using ulp_stateless_offload_mode = Field<"ulp_stateless_offload_mode", At{0x08, 3, 0}>;
  using counter_set_id = Field<"counter_set_id", At{0x0c, 31, 24}>;
  using uar_page = Field<"uar_page", At{0x0c, 23, 0}>;
  using send_dbr_mode = Field<"send_dbr_mode", At{0x10, 31, 30}, SendDbrMode>;
  using user_index = Field<"user_index", At{0x10, 23, 0}>;
  using log_page_size = Field<"log_page_size", At{0x14, 28, 24}>;
  using remote_qpn = Field<"remote_qpn", At{0x14, 23, 0}>;
  using primary_address_path = Sub<"primary_address_path", 0x18, Ads>;
  using secondary_address_path = Sub<"secondary_address_path", 0x44, Ads>;
  using log_ack_req_freq = Field<"log_ack_req_freq", At{0x70, 31, 28}>;
  using log_sra_max = Field<"log_sra_max", At{0x70, 23, 21}>;
  using retry_count = Field<"retry_count", At{0x70, 18, 16}>;
  using rnr_retry = Field<"rnr_retry", At{0x70, 15, 13}>;
  using fre = Field<"fre", At{0x70, 11, 11}>;
  using cur_rnr_retry = Field<"cur_rnr_retry", At{0x70, 10, 8}>;
  using cur_retry_count = Field<"cur_retry_count", At{0x70, 7, 5}>;
  using next_send_psn = Field<"next_send_psn", At{0x78, 23, 0}>;
  using log_num_dci_stream_channels = Field<"log_num_dci_stream_channels", At{0x7c, 28, 24}>;
  using cqn_snd = Field<"cqn_snd", At{0x7c, 23, 0}>;
  using log_num_dci_errored_streams = Field<"log_num_dci_errored_streams", At{0x80, 28, 24}>;
  using deth_sqpn = Field<"deth_sqpn", At{0x80, 23, 0}>;
  using last_acked_psn = Field<"last_acked_psn", At{0x88, 23, 0}>;
  using ssn = Field<"ssn", At{0x8c, 23, 0}>;
  using log_rra_max = Field<"log_rra_max", At{0x90, 23, 21}>;
  using atomic_mode = Field<"atomic_mode", At{0x90, 19, 16}, AtomicMode>;
  using rre = Field<"rre", At{0x90, 15, 15}>;
  using rwe = Field<"rwe", At{0x90, 14, 14}>;
  using rae = Field<"rae", At{0x90, 13, 13}>;
  using page_offset = Field<"page_offset", At{0x90, 11, 6}>;
  using cd_slave_receive = Field<"cd_slave_receive", At{0x90, 2, 2}>;
  using cd_slave_send = Field<"cd_slave_send", At{0x90, 1, 1}>;
  using cd_master = Field<"cd_master", At{0x90, 0, 0}>;
  using min_rnr_nak = Field<"min_rnr_nak", At{0x94, 28, 24}>;
  using next_rcv_psn = Field<"next_rcv_psn", At{0x94, 23, 0}>;
  using xrcd = Field<"xrcd", At{0x98, 23, 0}>;
  using cqn_rcv = Field<"cqn_rcv", At{0x9c, 23, 0}>;
  using dbr_addr = Field64<"dbr_addr", 0xa0>;
  using q_key = Field<"q_key", At{0xa8, 31, 0}>;
  using rq_type = Field<"rq_type", At{0xac, 26, 24}, RqType>;
  using srqn_rmpn_xrqn = Field<"srqn_rmpn_xrqn", At{0xac, 23, 0}>;
  using rmsn = Field<"rmsn", At{0xb0, 23, 0}>;
  using hw_sq_wqebb_counter = Field<"hw_sq_wqebb_counter", At{0xb4, 31, 16}>;
  using sw_sq_wqebb_counter = Field<"sw_sq_wqebb_counter", At{0xb4, 15, 0}>;
  using hw_rq_counter = Field<"hw_rq_counter", At{0xb8, 31, 0}>;
  using sw_rq_counter = Field<"sw_rq_counter", At{0xbc, 31, 0}>;
  using cgs = Field<"cgs", At{0xc4, 16, 16}>;
  using cs_req = Field<"cs_req", At{0xc4, 15, 8}>;
  using cs_res = Field<"cs_res", At{0xc4, 7, 0}>;
  using dc_access_key = Field64<"dc_access_key", 0xc8>;
  using dbr_umem_valid = Field<"dbr_umem_valid", At{0xd0, 28, 28}>;
  using dbr_umem_id = Field<"dbr_umem_id", At{0xe4, 31, 0}>;
  using fields =
      Fields<state, lag_tx_port_affinity, st, isolate_vl_tc, pm_state, req_e2e_credit_mode, offload_type,
             end_padding_mode, wq_signature, block_lb_mc, atomic_like_write_en, latency_sensitive, drain_sigerr, pd,
             mtu, log_msg_max, log_rq_size, log_rq_stride, no_sq, log_sq_size, ts_format, data_in_order, rlky,
             ulp_stateless_offload_mode, counter_set_id, uar_page, send_dbr_mode, user_index, log_page_size, remote_qpn,
             primary_address_path, secondary_address_path, log_ack_req_freq, log_sra_max, retry_count, rnr_retry, fre,
             cur_rnr_retry, cur_retry_count, next_send_psn, log_num_dci_stream_channels, cqn_snd,
             log_num_dci_errored_streams, deth_sqpn, last_acked_psn, ssn, log_rra_max, atomic_mode, rre, rwe, rae,
             page_offset, cd_slave_receive, cd_slave_send, cd_master, min_rnr_nak, next_rcv_psn, xrcd, cqn_rcv,
             dbr_addr, q_key, rq_type, srqn_rmpn_xrqn, rmsn, hw_sq_wqebb_counter, sw_sq_wqebb_counter, hw_rq_counter,
             sw_rq_counter, cgs, cs_req, cs_res, dc_access_key, dbr_umem_valid, dbr_umem_id>;
};

// Extension of the QP context, behind it in commands whose qpc_ext bit is set.
struct QpcExt : Layout<0xc0> {
  using mmo = Field<"mmo", At{0x00, 29, 29}>;
  using dci_stream_channel_id = Field<"dci_stream_channel_id", At{0x00, 15, 0}>;
  using qos_queue_group_id_requester = Field<"qos_queue_group_id_requester", At{0x04, 31, 0}>;
  using qos_queue_group_id_responder = Field<"qos_queue_group_id_responder", At{0x08, 31, 0}>;
  using fields = Fields<mmo, dci_stream_channel_id, qos_queue_group_id_requester, qos_queue_group_id_responder>;
};

// CREATE_QP: request.
struct CreateQpIn : Layout<0x110> {
  using opcode = Field<"opcode", At{0x00, 31, 16}, Opcode>;
  using uid = Field<"uid", At{0x00, 15, 0}>;
  using op_mod = Field<"op_mod", At{0x04, 15, 0}>;
  using input_qpn = Field<"input_qpn", At{0x08, 23, 0}>;
  using opt_param_mask = Field<"opt_param_mask", At{0x10, 31, 0}>;
  using ece = Field<"ece", At{0x14, 31, 0}>;
  using qpc = Sub<"qpc", 0x18, Qpc>;
  using wq_umem_offset = Field64<"wq_umem_offset", 0x100>;
  using wq_umem_id = Field<"wq_umem_id", At{0x108, 31, 0}>;
  using wq_umem_valid = Field<"wq_umem_valid", At{0x10c, 31, 31}>;
  using pas = Array<"pas", 0x110, Pas>;
  using fields =
      Fields<opcode, uid, op_mod, input_qpn, opt_param_mask, ece, qpc, wq_umem_offset, wq_umem_id, wq_umem_valid, pas>;
};

// CREATE_QP: reply.
struct CreateQpOut : Layout<0x10> {
  using status = Field<"status", At{0x00, 31, 24}, Status>;
  using syndrome = Field<"syndrome", At{0x04, 31, 0}>;
  using qpn = Field<"qpn", At{0x08, 23, 0}>;
  using ece = Field<"ece", At{0x0c, 31, 0}>;
  using fields = Fields<status, syndrome, qpn, ece>;
};

// DESTROY_QP: request.
struct DestroyQpIn : Layout<0x10> {
  using opcode = Field<"opcode", At{0x00, 31, 16}, Opcode>;
  using uid = Field<"uid", At{0x00, 15, 0}>;
  using op_mod = Field<"op_mod", At{0x04, 15, 0}>;
  using qpn = Field<"qpn", At{0x08, 23, 0}>;
  using fields = Fields<opcode, uid, op_mod, qpn>;
};

// DESTROY_QP: reply.
struct DestroyQpOut : CommandOut {};

// QUERY_QP: request.
struct QueryQpIn : Layout<0x10> {
  using opcode = Field<"opcode", At{0x00, 31, 16}, Opcode>;
  using op_mod = Field<"op_mod", At{0x04, 15, 0}>;
  using qpn = Field<"qpn", At{0x08, 23, 0}>;
  using fields = Fields<opcode, op_mod, qpn>;
};

// QUERY_QP: reply.
struct QueryQpOut : Layout<0x110> {
  using status = Field<"status", At{0x00, 31, 24}, Status>;
  using syndrome = Field<"syndrome", At{0x04, 31, 0}>;
  using opt_param_mask = Field<"opt_param_mask", At{0x10, 31, 0}>;
  using ece = Field<"ece", At{0x14, 31, 0}>;
  using qpc = Sub<"qpc", 0x18, Qpc>;
  using pas = Array<"pas", 0x110, Pas>;
  using fields = Fields<status, syndrome, opt_param_mask, ece, qpc, pas>;
};

// RST2INIT_QP: request.
struct Rst2initQpIn : Layout<0x110> {
  using opcode = Field<"opcode", At{0x00, 31, 16}, Opcode>;
  using uid = Field<"uid", At{0x00, 15, 0}>;
  using op_mod = Field<"op_mod", At{0x04, 15, 0}>;
  using qpn = Field<"qpn", At{0x08, 23, 0}>;
  using opt_param_mask = Field<"opt_param_mask", At{0x10, 31, 0}>;
  using ece = Field<"ece", At{0x14, 31, 0}>;
  using qpc = Sub<"qpc", 0x18, Qpc>;
  using fields = Fields<opcode, uid, op_mod, qpn, opt_param_mask, ece, qpc>;
};

// RST2INIT_QP: reply.
struct Rst2initQpOut : Layout<0x10> {
  using status = Field<"status", At{0x00, 31, 24}, Status>;
  using syndrome = Field<"syndrome", At{0x04, 31, 0}>;
  using ece = Field<"ece", At{0x0c, 31, 0}>;
  using fields = Fields<status, syndrome, ece>;
};

// INIT2INIT_QP: request.
struct Init2initQpIn : Layout<0x110> {
  using opcode = Field<"opcode", At{0x00, 31, 16}, Opcode>;
  using uid = Field<"uid", At{0x00, 15, 0}>;
  using op_mod = Field<"op_mod", At{0x04, 15, 0}>;
  using qpc_ext = Field<"qpc_ext", At{0x08, 31, 31}>;
  using qpn = Field<"qpn", At{0x08, 23, 0}>;
  using opt_param_mask = Field<"opt_param_mask", At{0x10, 31, 0}>;
  using ece = Field<"ece", At{0x14, 31, 0}>;
  using qpc = Sub<"qpc", 0x18, Qpc>;
  using opt_param_mask_95_32 = Field64<"opt_param_mask_95_32", 0x108>;
  using qpc_data_ext = Array<"qpc_data_ext", 0x110, QpcExt>;
  using fields =
      Fields<opcode, uid, op_mod, qpc_ext, qpn, opt_param_mask, ece, qpc, opt_param_mask_95_32, qpc_data_ext>;
};

// INIT2INIT_QP: reply.
struct Init2initQpOut : Layout<0x10> {
  using status = Field<"status", At{0x00, 31, 24}, Status>;
  using syndrome = Field<"syndrome", At{0x04, 31, 0}>;
  using ece = Field<"ece", At{0x0c, 31, 0}>;
  using fields = Fields<status, syndrome, ece>;
};

// INIT2RTR_QP: request.
struct Init2rtrQpIn : Layout<0x110> {
  using opcode = Field<"opcode", At{0x00, 31, 16}, Opcode>;
  using uid = Field<"uid", At{0x00, 15, 0}>;
  using op_mod = Field<"op_mod", At{0x04, 15, 0}>;
  using qpn = Field<"qpn", At{0x08, 23, 0}>;
  using opt_param_mask = Field<"opt_param_mask", At{0x10, 31, 0}>;
  using ece = Field<"ece", At{0x14, 31, 0}>;
  using qpc = Sub<"qpc", 0x18, Qpc>;
  using fields = Fields<opcode, uid, op_mod, qpn, opt_param_mask, ece, qpc>;
};

// INIT2RTR_QP: reply.
struct Init2rtrQpOut : Layout<0x10> {
  using status = Field<"status", At{0x00, 31, 24}, Status>;
  using syndrome = Field<"syndrome", At{0x04, 31, 0}>;
  using ece = Field<"ece", At{0x0c, 31, 0}>;
  using fields = Fields<status, syndrome, ece>;
};

// RTR2RTS_QP: request.
struct Rtr2rtsQpIn : Layout<0x110> {
  using opcode = Field<"opcode", At{0x00, 31, 16}, Opcode>;
  using uid = Field<"uid", At{0x00, 15, 0}>;
  using op_mod = Field<"op_mod", At{0x04, 15, 0}>;
  using qpn = Field<"qpn", At{0x08, 23, 0}>;
  using opt_param_mask = Field<"opt_param_mask", At{0x10, 31, 0}>;
  using ece = Field<"ece", At{0x14, 31, 0}>;
  using qpc = Sub<"qpc", 0x18, Qpc>;
  using fields = Fields<opcode, uid, op_mod, qpn, opt_param_mask, ece, qpc>;
};

// RTR2RTS_QP: reply.
struct Rtr2rtsQpOut : Layout<0x10> {
  using status = Field<"status", At{0x00, 31, 24}, Status>;
  using syndrome = Field<"syndrome", At{0x04, 31, 0}>;
  using ece = Field<"ece", At{0x0c, 31, 0}>;
  using fields = Fields<status, syndrome, ece>;
};

// RTS2RTS_QP: request.
struct Rts2rtsQpIn : Layout<0x110> {
  using opcode = Field<"opcode", At{0x00, 31, 16}, Opcode>;
  using uid = Field<"uid", At{0x00, 15, 0}>;
  using op_mod = Field<"op_mod", At{0x04, 15, 0}>;
  using qpc_ext = Field<"qpc_ext", At{0x08, 31, 31}>;
  using qpn = Field<"qpn", At{0x08, 23, 0}>;
  using opt_param_mask = Field<"opt_param_mask", At{0x10, 31, 0}>;
  using ece = Field<"ece", At{0x14, 31, 0}>;
  using qpc = Sub<"qpc", 0x18, Qpc>;
  using opt_param_mask_95_32 = Field64<"opt_param_mask_95_32", 0x108>;
  using qpc_data_ext = Array<"qpc_data_ext", 0x110, QpcExt>;
  using fields =
      Fields<opcode, uid, op_mod, qpc_ext, qpn, opt_param_mask, ece, qpc, opt_param_mask_95_32, qpc_data_ext>;
};

// RTS2RTS_QP: reply.
struct Rts2rtsQpOut : Layout<0x10> {
  using status = Field<"status", At{0x00, 31, 24}, Status>;
  using syndrome = Field<"syndrome", At{0x04, 31, 0}>;
  using ece = Field<"ece", At{0x0c, 31, 0}>;
  using fields = Fields<status, syndrome, ece>;
};

// SQERR2RTS_QP: request.
struct Sqerr2rtsQpIn : Layout<0x110> {
  using opcode = Field<"opcode", At{0x00, 31, 16}, Opcode>;
  using uid = Field<"uid", At{0x00, 15, 0}>;
  using op_mod = Field<"op_mod", At{0x04, 15, 0}>;
  using qpn = Field<"qpn", At{0x08, 23, 0}>;
  using opt_param_mask = Field<"opt_param_mask", At{0x10, 31, 0}>;
  using qpc = Sub<"qpc", 0x18, Qpc>;
  using fields = Fields<opcode, uid, op_mod, qpn, opt_param_mask, qpc>;
};

// SQERR2RTS_QP: reply.
struct Sqerr2rtsQpOut : CommandOut {};

// SQD_RTS_QP: request.
struct Sqd2rtsQpIn : Layout<0x110> {
  using opcode = Field<"opcode", At{0x00, 31, 16}, Opcode>;
  using uid = Field<"uid", At{0x00, 15, 0}>;
  using op_mod = Field<"op_mod", At{0x04, 15, 0}>;
  using qpn = Field<"qpn", At{0x08, 23, 0}>;
  using opt_param_mask = Field<"opt_param_mask", At{0x10, 31, 0}>;
  using qpc = Sub<"qpc", 0x18, Qpc>;
  using fields = Fields<opcode, uid, op_mod, qpn, opt_param_mask, qpc>;
};

// SQD_RTS_QP: reply.
struct Sqd2rtsQpOut : CommandOut {};

// 2ERR_QP: request.
struct Qp2errIn : Layout<0x10> {
  using opcode = Field<"opcode", At{0x00, 31, 16}, Opcode>;
  using uid = Field<"uid", At{0x00, 15, 0}>;
  using op_mod = Field<"op_mod", At{0x04, 15, 0}>;
  using qpn = Field<"qpn", At{0x08, 23, 0}>;
  using fields = Fields<opcode, uid, op_mod, qpn>;
};

// 2ERR_QP: reply.
struct Qp2errOut : CommandOut {};

// 2RST_QP: request.
struct Qp2rstIn : Layout<0x10> {
  using opcode = Field<"opcode", At{0x00, 31, 16}, Opcode>;
  using uid = Field<"uid", At{0x00, 15, 0}>;
  using op_mod = Field<"op_mod", At{0x04, 15, 0}>;
  using qpn = Field<"qpn", At{0x08, 23, 0}>;
  using fields = Fields<opcode, uid, op_mod, qpn>;
};

// 2RST_QP: reply.
struct Qp2rstOut : CommandOut {};

}  // namespace verbena::prm
