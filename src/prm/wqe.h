// Work queue entries: the segments a WQE is made of, opcodes and flags.
// A send WQE is a control segment, then segments its opcode calls for, in 16-byte units (ds of them).
// A receive WQE is data segments alone; in an SRQ, behind a next segment.
// Threads: types only.
#pragma once

#include "command.h"
#include "mkey.h"

namespace verbena::prm {

enum class WqeOpcode : std::uint8_t {
  nop = 0x00,
  send_inval = 0x01,
  rdma_write = 0x08,
  rdma_write_imm = 0x09,
  send = 0x0a,
  send_imm = 0x0b,
  tso = 0x0e,
  rdma_read = 0x10,
  atomic_cs = 0x11,
  atomic_fa = 0x12,
  atomic_masked_cs = 0x14,
  atomic_masked_fa = 0x15,
  bind_mw = 0x18,
  fmr = 0x19,
  local_inval = 0x1b,
  config_cmd = 0x1f,
  set_psv = 0x20,
  dump = 0x23,
  umr = 0x25,
  tag_matching = 0x28,
  enhanced_mpsw = 0x29,
  flow_tbl_access = 0x2c,
  mmo = 0x2f,
};

// When the WQE raises a completion (field ce).
enum class WqeCompletion : std::uint8_t { on_error = 0x0, on_first_error = 0x1, always = 0x2, always_and_event = 0x3 };

// What the WQE waits for (field fm).
enum class WqeFence : std::uint8_t {
  none = 0x0,
  initiator_small = 0x1,  // local UMR and invalidations before it
  fence = 0x2,            // earlier reads and atomics
  strong_ordering = 0x3,
  small_and_fence = 0x4,  // what drivers use for a fenced send
};

inline constexpr unsigned kLogSendWqeBasicBlock = 6;
inline constexpr std::size_t kSendWqeBasicBlock = 64;  // SQ granularity; queue positions count these
inline constexpr std::size_t kWqeOctoword = 16;        // unit of ds
inline constexpr std::uint32_t kInvalidLkey = 0x100;   // ends a short scatter list
// A byte_count of 0 in a data segment that is not inline means 2^31.
inline constexpr std::uint32_t kZeroByteCountMeans = 1u << 31;
// opmod of an MMO WQE that copies memory.
inline constexpr std::uint32_t kMmoOpModDma = 0x1;

// Head of every send WQE.
struct CtrlSeg : Layout<0x10> {
  using opmod = Field<"opmod", At{0x00, 31, 24}>;
  using wqe_index = Field<"wqe_index", At{0x00, 23, 8}>;
  using opcode = Field<"opcode", At{0x00, 7, 0}, WqeOpcode>;
  using qpn = Field<"qpn", At{0x04, 31, 8}>;
  using ds = Field<"ds", At{0x04, 5, 0}>;
  using signature = Field<"signature", At{0x08, 31, 24}>;
  using dci_stream_channel_id = Field<"dci_stream_channel_id", At{0x08, 23, 8}>;
  using fm = Field<"fm", At{0x08, 7, 5}, WqeFence>;
  using ce = Field<"ce", At{0x08, 3, 2}, WqeCompletion>;
  using se = Field<"se", At{0x08, 1, 1}>;
  using imm = Field<"imm", At{0x0c, 31, 0}>;  // immediate, key to invalidate, or the key a UMR changes
  using fields = Fields<opmod, wqe_index, opcode, qpn, ds, signature, dci_stream_channel_id, fm, ce, se, imm>;
};

// XRC: the SRQ at the far side.
struct XrcSeg : Layout<0x10> {
  using xrc_srqn = Field<"xrc_srqn", At{0x00, 23, 0}>;
  using fields = Fields<xrc_srqn>;
};

// Address vector of UD and DC (PRM "Address Vector").
struct UdAdrsVector : Layout<0x30> {
  using dc_key = Field64<"dc_key", 0x0>;
  using qkey = Field<"qkey", At{0x00, 31, 0}>;  // UD: in place of dc_key
  using ext = Field<"ext", At{0x08, 31, 31}>;
  using destination_qp_dct = Field<"destination_qp_dct", At{0x08, 23, 0}>;
  using static_rate = Field<"static_rate", At{0x0c, 31, 28}>;
  using sl_eth_prio = Field<"sl_eth_prio", At{0x0c, 27, 24}>;
  using fl = Field<"fl", At{0x0c, 23, 23}>;
  using mlid = Field<"mlid", At{0x0c, 22, 16}>;
  using rlid_udp_sport = Field<"rlid_udp_sport", At{0x0c, 15, 0}>;
  using rmac_47_16 = Field<"rmac_47_16", At{0x14, 31, 0}>;
  using rmac_15_0 = Field<"rmac_15_0", At{0x18, 31, 16}>;
  using rmac = Bytes<"rmac", 0x14, 6>;  // both parts as wire bytes
  using tclass = Field<"tclass", At{0x18, 15, 8}>;
  using hop_limit = Field<"hop_limit", At{0x18, 7, 0}>;
  using grh = Field<"grh", At{0x1c, 30, 30}>;
  using src_addr_index = Field<"src_addr_index", At{0x1c, 27, 20}>;
  using flow_label = Field<"flow_label", At{0x1c, 19, 0}>;
  using rgid_rip = Bytes<"rgid_rip", 0x20, 16>;
  using fields = Fields<dc_key, ext, destination_qp_dct, static_rate, sl_eth_prio, fl, mlid, rlid_udp_sport, rmac_47_16,
                        rmac_15_0, tclass, hop_limit, grh, src_addr_index, flow_label, rgid_rip>;
  using readings = Fields<qkey, rmac>;
};
using DatagramSeg = UdAdrsVector;

// RDMA and atomics: the remote address.
struct RaddrSeg : Layout<0x10> {
  using raddr = Field64<"raddr", 0x0>;
  using rkey = Field<"rkey", At{0x08, 31, 0}>;
  using fields = Fields<raddr, rkey>;
};

// Atomics of 8 bytes.
struct AtomicSeg : Layout<0x10> {
  using swap_add = Field64<"swap_add", 0x0>;
  using compare = Field64<"compare", 0x8>;
  using fields = Fields<swap_add, compare>;
};

// opmod of the masked atomics: this, and the logarithm of the operands' size, less 2.
inline constexpr std::uint32_t kExtendedAtomic = 8;

// Masked compare and swap of 8 bytes. A masked fetch and add is the first half: the addend, then in the place of
// `compare` the field boundaries (bits that stop a carry).
struct MaskedAtomicSeg : Layout<0x20> {
  using swap_add = Field64<"swap_add", 0x0>;
  using compare = Field64<"compare", 0x8>;
  using swap_add_mask = Field64<"swap_add_mask", 0x10>;
  using compare_mask = Field64<"compare_mask", 0x18>;
  using fields = Fields<swap_add, compare, swap_add_mask, compare_mask>;
};

// The same with operands of 4 bytes (opmod says the size); fetch and add uses the first two dwords.
struct MaskedAtomic32Seg : Layout<0x10> {
  using swap_add = Field<"swap_add", At{0x00, 31, 0}>;
  using compare = Field<"compare", At{0x04, 31, 0}>;
  using swap_add_mask = Field<"swap_add_mask", At{0x08, 31, 0}>;
  using compare_mask = Field<"compare_mask", At{0x0c, 31, 0}>;
  using fields = Fields<swap_add, compare, swap_add_mask, compare_mask>;
};

// Pointer to local memory. `inline` set means an InlineSeg instead.
struct DataSeg : Layout<0x10> {
  using inline_ = Field<"inline", At{0x00, 31, 31}>;
  using byte_count = Field<"byte_count", At{0x00, 30, 0}>;
  using lkey = Field<"lkey", At{0x04, 31, 0}>;
  using addr = Field64<"addr", 0x8>;
  using fields = Fields<inline_, byte_count, lkey, addr>;
};

// Data inside the WQE: this dword, the bytes behind it, padded to 16.
struct InlineSeg : Layout<0x4> {
  using inline_ = Field<"inline", At{0x00, 31, 31}>;
  using byte_count = Field<"byte_count", At{0x00, 30, 0}>;
  using fields = Fields<inline_, byte_count>;
};

// Raw Ethernet sends: checksum offloads, segmentation, the inlined headers.
struct EthSeg : Layout<0x10> {
  using swp_outer_l4_offset = Field<"swp_outer_l4_offset", At{0x00, 31, 24}>;
  using swp_outer_l3_offset = Field<"swp_outer_l3_offset", At{0x00, 23, 16}>;
  using swp_inner_l4_offset = Field<"swp_inner_l4_offset", At{0x00, 15, 8}>;
  using swp_inner_l3_offset = Field<"swp_inner_l3_offset", At{0x00, 7, 0}>;
  using cs_flags = Field<"cs_flags", At{0x04, 31, 24}>;
  using swp_flags = Field<"swp_flags", At{0x04, 23, 16}>;
  using mss = Field<"mss", At{0x04, 15, 0}>;
  using flow_table_metadata = Field<"flow_table_metadata", At{0x08, 31, 0}>;
  using inline_hdr_sz = Field<"inline_hdr_sz", At{0x0c, 31, 16}>;
  using inline_hdr_start = Bytes<"inline_hdr_start", 0xe, 2>;  // goes on behind the segment
  using fields = Fields<swp_outer_l4_offset, swp_outer_l3_offset, swp_inner_l4_offset, swp_inner_l3_offset, cs_flags,
                        swp_flags, mss, flow_table_metadata, inline_hdr_sz, inline_hdr_start>;
};
// Bits of EthSeg::cs_flags.
struct EthCsFlag {
  static constexpr std::uint32_t l3_inner = 1u << 4;
  static constexpr std::uint32_t l4_inner = 1u << 5;
  static constexpr std::uint32_t l3 = 1u << 6;
  static constexpr std::uint32_t l4 = 1u << 7;
};

// UMR: what changes in the memory key named by CtrlSeg::imm. A Mkc and the translation entries follow.
struct UmrCtrlSeg : Layout<0x30> {
  using flags = Field<"flags", At{0x00, 31, 24}>;
  using klm_octowords = Field<"klm_octowords", At{0x04, 31, 16}>;
  using bsf_octowords = Field<"bsf_octowords", At{0x04, 15, 0}>;
  using translation_offset = Field<"translation_offset", At{0x04, 15, 0}>;  // with the offset flag
  using mkey_mask = Field64<"mkey_mask", 0x8>;
  using xlt_offset_47_16 = Field<"xlt_offset_47_16", At{0x10, 31, 0}>;
  using fields = Fields<flags, klm_octowords, bsf_octowords, mkey_mask, xlt_offset_47_16>;
};
// Bits of UmrCtrlSeg::flags.
struct UmrFlag {
  static constexpr std::uint32_t check_qpn = 1u << 3;
  static constexpr std::uint32_t translation_offset = 1u << 4;
  static constexpr std::uint32_t check_free = 1u << 5;      // the key must be free
  static constexpr std::uint32_t check_not_free = 1u << 6;  // the key must be in use
  static constexpr std::uint32_t inline_ = 1u << 7;         // translation entries lie in the WQE
};
// Bits of mkey_mask: which fields of the Mkc the UMR takes over.
struct UmrMkeyMask {
  static constexpr std::uint64_t len = 1ull << 0;
  static constexpr std::uint64_t page_size = 1ull << 1;
  static constexpr std::uint64_t start_addr = 1ull << 6;
  static constexpr std::uint64_t pd = 1ull << 7;
  static constexpr std::uint64_t en_rinval = 1ull << 8;
  static constexpr std::uint64_t en_sigerr = 1ull << 9;
  static constexpr std::uint64_t bsf_en = 1ull << 12;
  static constexpr std::uint64_t key = 1ull << 13;
  static constexpr std::uint64_t qpn = 1ull << 14;
  static constexpr std::uint64_t lr = 1ull << 17;
  static constexpr std::uint64_t lw = 1ull << 18;
  static constexpr std::uint64_t rr = 1ull << 19;
  static constexpr std::uint64_t rw = 1ull << 20;
  static constexpr std::uint64_t a = 1ull << 21;
  static constexpr std::uint64_t small_fence = 1ull << 23;
  static constexpr std::uint64_t relaxed_ordering_write = 1ull << 25;
  static constexpr std::uint64_t free = 1ull << 29;
  static constexpr std::uint64_t relaxed_ordering_read = 1ull << 47;
};

// The Mkc of a UMR is the memory key context itself, its key bits from mkey_7_0.
using MkeyContextSeg = Mkc;
using KlmSeg = Klm;

// Where the translation entries of a UMR without UmrFlag::inline_ lie.
struct UmrPointerDescArgument : Layout<0x10> {
  using mkey = Field<"mkey", At{0x04, 31, 0}>;
  using addressh_63_32 = Field<"addressh_63_32", At{0x08, 31, 0}>;
  using addressl_31_0 = Field<"addressl_31_0", At{0x0c, 31, 0}>;
  using fields = Fields<mkey, addressh_63_32, addressl_31_0>;
};

// Interleaved memory keys: a repeat block, then num_ent entries.
struct UmrRepeatBlockSeg : Layout<0x10> {
  using byte_count = Field<"byte_count", At{0x00, 31, 0}>;
  using op = Field<"op", At{0x04, 31, 0}>;
  using repeat_count = Field<"repeat_count", At{0x08, 31, 0}>;
  using num_ent = Field<"num_ent", At{0x0c, 15, 0}>;
  using fields = Fields<byte_count, op, repeat_count, num_ent>;
};
inline constexpr std::uint32_t kUmrRepeatBlockOp = 0x400;
// One strided source of an interleaved key.
struct UmrRepeatEntSeg : Layout<0x10> {
  using stride = Field<"stride", At{0x00, 31, 16}>;
  using byte_count = Field<"byte_count", At{0x00, 15, 0}>;
  using memkey = Field<"memkey", At{0x04, 31, 0}>;
  using va = Field64<"va", 0x8>;
  using fields = Fields<stride, byte_count, memkey, va>;
};

// Head of an SRQ entry: software links the free entries, the device follows.
struct SrqNextSeg : Layout<0x10> {
  using next_wqe_index = Field<"next_wqe_index", At{0x00, 15, 0}>;
  using signature = Field<"signature", At{0x04, 31, 24}>;
  using fields = Fields<next_wqe_index, signature>;
};

// Head of a receive WQE when the work queue has signatures.
struct ReceiveSignatureSeg : Layout<0x10> {
  using signature = Field<"signature", At{0x04, 31, 24}>;
  using fields = Fields<signature>;
};

// Tag matching commands on an XRQ.
struct TmSeg : Layout<0x20> {
  using opcode = Field<"opcode", At{0x00, 31, 28}>;
  using flags = Field<"flags", At{0x00, 23, 16}>;
  using index = Field<"index", At{0x00, 15, 0}>;
  using sw_cnt = Field<"sw_cnt", At{0x04, 15, 0}>;
  using append_tag = Field64<"append_tag", 0x10>;
  using append_mask = Field64<"append_mask", 0x18>;
  using fields = Fields<opcode, flags, index, sw_cnt, append_tag, append_mask>;
};

// MMO (memory to memory copy): two data segments follow, source and destination.
struct MmoMetadataSeg : Layout<0x10> {
  using mmo_control_31_0 = Field<"mmo_control_31_0", At{0x00, 31, 0}>;
  using local_key = Field<"local_key", At{0x04, 31, 0}>;
  using local_address = Field64<"local_address", 0x8>;
  using fields = Fields<mmo_control_31_0, local_key, local_address>;
};

// SET_PSV: preset of a signature context.
struct SetPsvSeg : Layout<0x10> {
  using psv_index = Field<"psv_index", At{0x00, 23, 0}>;
  using syndrome = Field<"syndrome", At{0x04, 31, 16}>;
  using transient_signature = Field64<"transient_signature", 0x8>;
  using fields = Fields<psv_index, syndrome, transient_signature>;
};

}  // namespace verbena::prm
