// Completion queue entries.
// A 64-byte entry is Cqe64; a 128-byte one is Cqe128, the Cqe64 in its second half. The owner bit flips each time
// round the queue: an entry is new when it equals the parity software expects and the opcode is not `invalid`.
// Threads: types only.
#pragma once

#include "command.h"

namespace verbena::prm {

enum class CqeOpcode : std::uint8_t {
  req = 0x0,
  resp_wr_imm = 0x1,
  resp_send = 0x2,
  resp_send_imm = 0x3,
  resp_send_inv = 0x4,
  resize_cq = 0x5,
  no_packet = 0x6,
  sig_err = 0xc,
  req_err = 0xd,
  resp_err = 0xe,
  invalid = 0xf,
};

// Whether the entry carries data (scatter to CQE) or heads a compressed block.
enum class CqeFormat : std::uint8_t { no_inline = 0x0, inline_32 = 0x1, inline_64 = 0x2, compressed = 0x3 };

// Syndrome of an error entry.
enum class CqeSyndrome : std::uint8_t {
  local_length_err = 0x01,
  local_qp_op_err = 0x02,
  local_prot_err = 0x04,
  wr_flush_err = 0x05,
  mw_bind_err = 0x06,
  bad_resp_err = 0x10,
  local_access_err = 0x11,
  remote_inval_req_err = 0x12,
  remote_access_err = 0x13,
  remote_op_err = 0x14,
  transport_retry_exc_err = 0x15,
  rnr_retry_exc_err = 0x16,
  remote_aborted_err = 0x22,
};

// vendor_err_synd values that software looks at.
inline constexpr std::uint32_t kVendorSyndromeOdpPageFault = 0x93;
// vendor_err_synd values that ConnectX hardware reports with these syndromes.
inline constexpr std::uint32_t kVendorSyndromeLocalProtection = 0x51;
inline constexpr std::uint32_t kVendorSyndromeTransportRetry = 0x81;
inline constexpr std::uint32_t kVendorSyndromeRemoteAccess = 0x88;
inline constexpr std::uint32_t kVendorSyndromeRemoteInvalidRequest = 0x8a;
inline constexpr std::uint32_t kVendorSyndromeFlushed = 0xf9;

// Network header of a received RoCE packet (roce_packet_type) and of an Ethernet one (l3_hdr_type).
enum class CqeRocePacket : std::uint8_t { grh = 0x0, ipv6 = 0x1, ipv4 = 0x2 };
enum class CqeL3Header : std::uint8_t { none = 0x0, ipv6 = 0x1, ipv4 = 0x2 };

// A completion. Which fields mean something depends on the opcode.
struct Cqe64 : Layout<0x40> {
  using tls_outer_l3_tunneled = Field<"tls_outer_l3_tunneled", At{0x00, 31, 24}>;
  using wqe_id = Field<"wqe_id", At{0x00, 15, 0}>;  // striding RQ
  using lro_tcppsh_abort_dupack = Field<"lro_tcppsh_abort_dupack", At{0x04, 31, 24}>;
  using lro_min_ttl = Field<"lro_min_ttl", At{0x04, 23, 16}>;
  using lro_tcp_win = Field<"lro_tcp_win", At{0x04, 15, 0}>;
  using lro_ack_seq_num = Field<"lro_ack_seq_num", At{0x08, 31, 0}>;
  using rss_hash_result = Field<"rss_hash_result", At{0x0c, 31, 0}>;
  using rss_hash_type = Field<"rss_hash_type", At{0x10, 31, 24}>;
  using ml_path = Field<"ml_path", At{0x10, 23, 16}>;
  using check_sum = Field<"check_sum", At{0x14, 31, 16}>;
  using slid = Field<"slid", At{0x14, 15, 0}>;
  using g = Field<"g", At{0x18, 29, 28}, std::uint32_t>;  // a GRH or IP header lies in front of the data
  using sl = Field<"sl", At{0x18, 27, 24}>;
  using roce_packet_type = Field<"roce_packet_type", At{0x18, 25, 24}, CqeRocePacket>;  // RoCE: low bits of sl
  using rqpn = Field<"rqpn", At{0x18, 23, 0}>;
  using l4_ok = Field<"l4_ok", At{0x1c, 26, 26}>;
  using l3_ok = Field<"l3_ok", At{0x1c, 25, 25}>;
  using l2_ok = Field<"l2_ok", At{0x1c, 24, 24}>;
  using l4_hdr_type = Field<"l4_hdr_type", At{0x1c, 22, 20}>;
  using l3_hdr_type = Field<"l3_hdr_type", At{0x1c, 19, 18}, CqeL3Header>;
  using ip_frag = Field<"ip_frag", At{0x1c, 17, 17}>;
  using cv = Field<"cv", At{0x1c, 16, 16}>;  // vlan_info is valid
  using vlan_info = Field<"vlan_info", At{0x1c, 15, 0}>;
  using lro_num_seg = Field<"lro_num_seg", At{0x20, 31, 24}>;
  using srqn_uidx = Field<"srqn_uidx", At{0x20, 23, 0}>;
  using imm_inval_pkey = Field<"imm_inval_pkey", At{0x24, 31, 0}>;
  using app = Field<"app", At{0x28, 31, 24}>;
  using app_op = Field<"app_op", At{0x28, 23, 16}>;
  using app_info = Field<"app_info", At{0x28, 15, 0}>;
  using byte_cnt = Field<"byte_cnt", At{0x2c, 31, 0}>;
  using timestamp = Field64<"timestamp", 0x30>;
  using send_wqe_opcode = Field<"send_wqe_opcode", At{0x38, 31, 24}>;  // requester; responder: drop counter
  using qpn = Field<"qpn", At{0x38, 23, 0}>;
  using wqe_counter = Field<"wqe_counter", At{0x3c, 31, 16}>;
  using signature = Field<"signature", At{0x3c, 15, 8}>;
  using opcode = Field<"opcode", At{0x3c, 7, 4}, CqeOpcode>;
  using format = Field<"format", At{0x3c, 3, 2}, CqeFormat>;
  using se = Field<"se", At{0x3c, 1, 1}>;
  using owner = Field<"owner", At{0x3c, 0, 0}>;
  using inline_32 = Bytes<"inline_32", 0x0, 32>;  // with CqeFormat::inline_32, in place of the first half
  using fields =
      Fields<tls_outer_l3_tunneled, wqe_id, lro_tcppsh_abort_dupack, lro_min_ttl, lro_tcp_win, lro_ack_seq_num,
             rss_hash_result, rss_hash_type, ml_path, check_sum, slid, g, sl, rqpn, l4_ok, l3_ok, l2_ok, l4_hdr_type,
             l3_hdr_type, ip_frag, cv, vlan_info, lro_num_seg, srqn_uidx, imm_inval_pkey, app, app_op, app_info,
             byte_cnt, timestamp, send_wqe_opcode, qpn, wqe_counter, signature, opcode, format, se, owner>;
  using readings = Fields<roce_packet_type>;
};

// 128-byte entry: data of CqeFormat::inline_64 first, then the entry proper.
struct Cqe128 : Layout<0x80> {
  using inline_64 = Bytes<"inline_64", 0x0, 64>;
  using cqe64 = Sub<"cqe64", 0x40, Cqe64>;
  using fields = Fields<inline_64, cqe64>;
};

// The entry when its opcode is req_err or resp_err.
struct ErrCqe : Layout<0x40> {
  using srqn = Field<"srqn", At{0x20, 23, 0}>;
  using hw_err_synd = Field<"hw_err_synd", At{0x34, 31, 24}>;
  using hw_synd_type = Field<"hw_synd_type", At{0x34, 23, 16}>;
  using vendor_err_synd = Field<"vendor_err_synd", At{0x34, 15, 8}>;
  using syndrome = Field<"syndrome", At{0x34, 7, 0}, CqeSyndrome>;
  using s_wqe_opcode = Field<"s_wqe_opcode", At{0x38, 31, 24}>;
  using qpn = Field<"qpn", At{0x38, 23, 0}>;
  using wqe_counter = Field<"wqe_counter", At{0x3c, 31, 16}>;
  using signature = Field<"signature", At{0x3c, 15, 8}>;
  using opcode = Field<"opcode", At{0x3c, 7, 4}, CqeOpcode>;
  using format = Field<"format", At{0x3c, 3, 2}, CqeFormat>;
  using se = Field<"se", At{0x3c, 1, 1}>;
  using owner = Field<"owner", At{0x3c, 0, 0}>;
  using fields = Fields<srqn, hw_err_synd, hw_synd_type, vendor_err_synd, syndrome, s_wqe_opcode, qpn, wqe_counter,
                        signature, opcode, format, se, owner>;
};

// The entry when its opcode is sig_err: a signature check failed.
struct SigErrCqe : Layout<0x40> {
  using expected_trans_sig = Field<"expected_trans_sig", At{0x10, 31, 0}>;
  using actual_trans_sig = Field<"actual_trans_sig", At{0x14, 31, 0}>;
  using expected_ref_tag = Field<"expected_ref_tag", At{0x18, 31, 0}>;
  using actual_ref_tag = Field<"actual_ref_tag", At{0x1c, 31, 0}>;
  using syndrome = Field<"syndrome", At{0x20, 31, 16}>;
  using sig_type = Field<"sig_type", At{0x20, 15, 8}>;
  using domain = Field<"domain", At{0x20, 7, 0}>;
  using mkey = Field<"mkey", At{0x24, 31, 0}>;
  using sig_err_offset = Field64<"sig_err_offset", 0x28>;
  using signature = Field<"signature", At{0x3c, 15, 8}>;
  using opcode = Field<"opcode", At{0x3c, 7, 4}, CqeOpcode>;
  using owner = Field<"owner", At{0x3c, 0, 0}>;
  using fields = Fields<expected_trans_sig, actual_trans_sig, expected_ref_tag, actual_ref_tag, syndrome, sig_type,
                        domain, mkey, sig_err_offset, signature, opcode, owner>;
};

// Element of a compressed block.
struct MiniCqe8 : Layout<0x8> {
  using rx_hash_result = Field<"rx_hash_result", At{0x00, 31, 0}>;
  using checksum = Field<"checksum", At{0x00, 31, 16}>;
  using stridx = Field<"stridx", At{0x00, 15, 0}>;
  using wqe_counter = Field<"wqe_counter", At{0x00, 31, 16}>;
  using s_wqe_opcode = Field<"s_wqe_opcode", At{0x00, 15, 8}>;
  using byte_cnt = Field<"byte_cnt", At{0x04, 31, 0}>;
  using fields = Fields<rx_hash_result, byte_cnt>;
  using readings = Fields<checksum, stridx, wqe_counter, s_wqe_opcode>;
};

}  // namespace verbena::prm
