// Packet headers of RoCE: Ethernet, IP, UDP, and the InfiniBand transport headers (IBTA volume 1, chapter 9).
// Threads: types only.
#pragma once

#include "layout.h"

namespace verbena::prm {

inline constexpr std::uint32_t kEtherTypeIpv4 = 0x0800;
inline constexpr std::uint32_t kEtherTypeIpv6 = 0x86dd;
inline constexpr std::uint32_t kEtherTypeVlan = 0x8100;
inline constexpr std::uint32_t kEtherTypeRoce = 0x8915;  // RoCE v1: a GRH follows
inline constexpr std::uint32_t kUdpPortRoceV2 = 4791;
inline constexpr std::uint32_t kIpProtocolUdp = 17;
inline constexpr std::uint32_t kGrhNextHeaderIba = 0x1b;
inline constexpr std::size_t kIcrcSize = 4;

// Opcode of the base transport header: service in the top three bits, operation in the low five.
enum class BthService : std::uint8_t { rc = 0x0, uc = 0x1, rd = 0x2, ud = 0x3, cnp = 0x4, xrc = 0x5 };
enum class BthOperation : std::uint8_t {
  send_first = 0x00,
  send_middle = 0x01,
  send_last = 0x02,
  send_last_imm = 0x03,
  send_only = 0x04,
  send_only_imm = 0x05,
  rdma_write_first = 0x06,
  rdma_write_middle = 0x07,
  rdma_write_last = 0x08,
  rdma_write_last_imm = 0x09,
  rdma_write_only = 0x0a,
  rdma_write_only_imm = 0x0b,
  rdma_read_request = 0x0c,
  rdma_read_response_first = 0x0d,
  rdma_read_response_middle = 0x0e,
  rdma_read_response_last = 0x0f,
  rdma_read_response_only = 0x10,
  acknowledge = 0x11,
  atomic_acknowledge = 0x12,
  compare_swap = 0x13,
  fetch_add = 0x14,
  resync = 0x15,
  send_last_inv = 0x16,
  send_only_inv = 0x17,
  flush = 0x1c,
  atomic_write = 0x1d,
};
constexpr std::uint8_t bth_opcode(BthService service, BthOperation operation) {
  return static_cast<std::uint8_t>(static_cast<unsigned>(service) << 5 | static_cast<unsigned>(operation));
}
enum class BthOpcode : std::uint8_t {
  rc_send_first = 0x00,
  rc_send_middle = 0x01,
  rc_send_last = 0x02,
  rc_send_last_imm = 0x03,
  rc_send_only = 0x04,
  rc_send_only_imm = 0x05,
  rc_rdma_write_first = 0x06,
  rc_rdma_write_middle = 0x07,
  rc_rdma_write_last = 0x08,
  rc_rdma_write_last_imm = 0x09,
  rc_rdma_write_only = 0x0a,
  rc_rdma_write_only_imm = 0x0b,
  rc_rdma_read_request = 0x0c,
  rc_rdma_read_response_first = 0x0d,
  rc_rdma_read_response_middle = 0x0e,
  rc_rdma_read_response_last = 0x0f,
  rc_rdma_read_response_only = 0x10,
  rc_acknowledge = 0x11,
  rc_atomic_acknowledge = 0x12,
  rc_compare_swap = 0x13,
  rc_fetch_add = 0x14,
  rc_send_last_inv = 0x16,
  rc_send_only_inv = 0x17,
  rc_flush = 0x1c,
  rc_atomic_write = 0x1d,
  uc_send_first = 0x20,
  uc_send_middle = 0x21,
  uc_send_last = 0x22,
  uc_send_last_imm = 0x23,
  uc_send_only = 0x24,
  uc_send_only_imm = 0x25,
  uc_rdma_write_first = 0x26,
  uc_rdma_write_middle = 0x27,
  uc_rdma_write_last = 0x28,
  uc_rdma_write_last_imm = 0x29,
  uc_rdma_write_only = 0x2a,
  uc_rdma_write_only_imm = 0x2b,
  ud_send_only = 0x64,
  ud_send_only_imm = 0x65,
  cnp = 0x81,
};

// What an acknowledge says (bits 6:5 of its syndrome) and the negative codes (bits 4:0).
enum class AethKind : std::uint8_t { ack = 0x0, rnr_nak = 0x1, nak = 0x3 };
enum class NakCode : std::uint8_t {
  psn_sequence_error = 0x0,
  invalid_request = 0x1,
  remote_access_error = 0x2,
  remote_operational_error = 0x3,
  invalid_rd_request = 0x4,
};
inline constexpr std::uint32_t kAethCreditsUnlimited = 0x1f;

// Ethernet header.
struct Eth : Layout<0xe> {
  using dst = Bytes<"dst", 0x0, 6>;
  using src = Bytes<"src", 0x6, 6>;
  using ethertype = Field16<"ethertype", 0xc>;
  using fields = Fields<dst, src, ethertype>;
};

// 802.1Q tag, behind the source address.
struct VlanTag : Layout<0x4> {
  using tci = Field16<"tci", 0x0>;
  using ethertype = Field16<"ethertype", 0x2>;
  using fields = Fields<tci, ethertype>;
};

struct Ipv4 : Layout<0x14> {
  using version = Field<"version", At{0x00, 31, 28}>;
  using ihl = Field<"ihl", At{0x00, 27, 24}>;
  using dscp = Field<"dscp", At{0x00, 23, 18}>;
  using ecn = Field<"ecn", At{0x00, 17, 16}>;
  using total_length = Field<"total_length", At{0x00, 15, 0}>;
  using id = Field<"id", At{0x04, 31, 16}>;
  using dont_fragment = Field<"dont_fragment", At{0x04, 14, 14}>;
  using more_fragments = Field<"more_fragments", At{0x04, 13, 13}>;
  using fragment_offset = Field<"fragment_offset", At{0x04, 12, 0}>;
  using ttl = Field<"ttl", At{0x08, 31, 24}>;
  using protocol = Field<"protocol", At{0x08, 23, 16}>;
  using checksum = Field<"checksum", At{0x08, 15, 0}>;
  using src = Bytes<"src", 0xc, 4>;
  using dst = Bytes<"dst", 0x10, 4>;
  using fields = Fields<version, ihl, dscp, ecn, total_length, id, dont_fragment, more_fragments, fragment_offset, ttl,
                        protocol, checksum, src, dst>;
};

struct Ipv6 : Layout<0x28> {
  using version = Field<"version", At{0x00, 31, 28}>;
  using traffic_class = Field<"traffic_class", At{0x00, 27, 20}>;
  using flow_label = Field<"flow_label", At{0x00, 19, 0}>;
  using payload_length = Field<"payload_length", At{0x04, 31, 16}>;
  using next_header = Field<"next_header", At{0x04, 15, 8}>;
  using hop_limit = Field<"hop_limit", At{0x04, 7, 0}>;
  using src = Bytes<"src", 0x8, 16>;
  using dst = Bytes<"dst", 0x18, 16>;
  using fields = Fields<version, traffic_class, flow_label, payload_length, next_header, hop_limit, src, dst>;
};

// Global route header: an IPv6 header by other names.
struct Grh : Layout<0x28> {
  using ip_version = Field<"ip_version", At{0x00, 31, 28}>;
  using tclass = Field<"tclass", At{0x00, 27, 20}>;
  using flow_label = Field<"flow_label", At{0x00, 19, 0}>;
  using pay_len = Field<"pay_len", At{0x04, 31, 16}>;
  using next_header = Field<"next_header", At{0x04, 15, 8}>;
  using hop_limit = Field<"hop_limit", At{0x04, 7, 0}>;
  using sgid = Bytes<"sgid", 0x8, 16>;
  using dgid = Bytes<"dgid", 0x18, 16>;
  using fields = Fields<ip_version, tclass, flow_label, pay_len, next_header, hop_limit, sgid, dgid>;
};

struct Udp : Layout<0x8> {
  using sport = Field<"sport", At{0x00, 31, 16}>;
  using dport = Field<"dport", At{0x00, 15, 0}>;
  using length = Field<"length", At{0x04, 31, 16}>;
  using checksum = Field<"checksum", At{0x04, 15, 0}>;
  using fields = Fields<sport, dport, length, checksum>;
};

// Base transport header.
struct Bth : Layout<0xc> {
  using opcode = Field<"opcode", At{0x00, 31, 24}, BthOpcode>;
  using service = Field<"service", At{0x00, 31, 29}, BthService>;        // of the opcode
  using operation = Field<"operation", At{0x00, 28, 24}, BthOperation>;  // of the opcode
  using se = Field<"se", At{0x00, 23, 23}>;
  using migreq = Field<"migreq", At{0x00, 22, 22}>;
  using padcnt = Field<"padcnt", At{0x00, 21, 20}>;
  using tver = Field<"tver", At{0x00, 19, 16}>;
  using pkey = Field<"pkey", At{0x00, 15, 0}>;
  using fecn = Field<"fecn", At{0x04, 31, 31}>;
  using becn = Field<"becn", At{0x04, 30, 30}>;
  using variant = Field<"variant", At{0x04, 31, 24}>;  // fecn, becn and reserved bits: what the ICRC masks
  using destqp = Field<"destqp", At{0x04, 23, 0}>;
  using ackreq = Field<"ackreq", At{0x08, 31, 31}>;
  using psn = Field<"psn", At{0x08, 23, 0}>;
  using fields = Fields<opcode, se, migreq, padcnt, tver, pkey, fecn, becn, destqp, ackreq, psn>;
  using readings = Fields<service, operation, variant>;
};

// RDMA extended transport header.
struct Reth : Layout<0x10> {
  using va = Field64<"va", 0x0>;
  using rkey = Field<"rkey", At{0x08, 31, 0}>;
  using dma_length = Field<"dma_length", At{0x0c, 31, 0}>;
  using fields = Fields<va, rkey, dma_length>;
};

// Atomic extended transport header.
struct AtomicEth : Layout<0x1c> {
  using va = Field64<"va", 0x0>;
  using rkey = Field<"rkey", At{0x08, 31, 0}>;
  using swap_add = Field64<"swap_add", 0xc>;
  using compare = Field64<"compare", 0x14>;
  using fields = Fields<va, rkey, swap_add, compare>;
};

// ACK extended transport header.
struct Aeth : Layout<0x4> {
  using syndrome = Field<"syndrome", At{0x00, 31, 24}>;
  using kind = Field<"kind", At{0x00, 30, 29}, AethKind>;  // of the syndrome
  using value = Field<"value", At{0x00, 28, 24}>;          // of the syndrome: credits, RNR timer or NakCode
  using msn = Field<"msn", At{0x00, 23, 0}>;
  using fields = Fields<syndrome, msn>;
  using readings = Fields<kind, value>;
};

// Atomic ACK extended transport header: the value before the operation.
struct AtomicAckEth : Layout<0x8> {
  using original = Field64<"original", 0x0>;
  using fields = Fields<original>;
};

// Datagram extended transport header.
struct Deth : Layout<0x8> {
  using qkey = Field<"qkey", At{0x00, 31, 0}>;
  using srcqp = Field<"srcqp", At{0x04, 23, 0}>;
  using fields = Fields<qkey, srcqp>;
};

// Immediate extended transport header.
struct ImmDt : Layout<0x4> {
  using imm = Field<"imm", At{0x00, 31, 0}>;
  using fields = Fields<imm>;
};

// Invalidate extended transport header.
struct Ieth : Layout<0x4> {
  using rkey = Field<"rkey", At{0x00, 31, 0}>;
  using fields = Fields<rkey>;
};

// XRC extended transport header.
struct XrcEth : Layout<0x4> {
  using xrcsrq = Field<"xrcsrq", At{0x00, 23, 0}>;
  using fields = Fields<xrcsrq>;
};

// Payload of a congestion notification packet.
struct CnpPayload : Layout<0x10> {
  using fields = Fields<>;
};

}  // namespace verbena::prm
