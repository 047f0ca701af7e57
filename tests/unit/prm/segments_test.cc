// WQE segments and CQEs against the public mlx5dv.h: its inline writers fill a segment and our views read it back;
// where it has no writer, offsets are compared.
#include <gtest/gtest.h>
#include <infiniband/mlx5dv.h>

#include <cstddef>
#include <cstring>
#include <numeric>

#include "prm/cqe.h"
#include "prm/eqe.h"
#include "prm/wqe.h"

namespace verbena::prm {
namespace {

template <class L, class Struct>
ConstView<L> over(const Struct& s) {
  static_assert(sizeof(Struct) >= L::size);
  return ConstView<L>(reinterpret_cast<const std::byte*>(&s));
}
// The byte at which a field starts.
template <class F>
constexpr std::size_t byte_of() {
  if constexpr (F::kind == Kind::bits)
    return F::offset + (31 - F::at.msb) / 8;
  else
    return F::offset;
}
#define EXPECT_AT(field, type, member) EXPECT_EQ(byte_of<field>(), offsetof(type, member)) << #field

TEST(Segments, ControlSegmentReadsBack) {
  mlx5_wqe_ctrl_seg seg{};
  const std::uint8_t flags = MLX5_WQE_CTRL_CQ_UPDATE | MLX5_WQE_CTRL_SOLICITED | MLX5_WQE_CTRL_FENCE;
  mlx5dv_set_ctrl_seg(&seg, 0xabcd, MLX5_OPCODE_RDMA_READ, 0x12, 0x345678, flags, 0x2a, 0x9b, htobe32(0xdeadbeef));
  const auto v = over<CtrlSeg>(seg);
  EXPECT_EQ(v.get<CtrlSeg::wqe_index>(), 0xabcdu);
  EXPECT_EQ(v.get<CtrlSeg::opcode>(), WqeOpcode::rdma_read);
  EXPECT_EQ(v.get<CtrlSeg::opmod>(), 0x12u);
  EXPECT_EQ(v.get<CtrlSeg::qpn>(), 0x345678u);
  EXPECT_EQ(v.get<CtrlSeg::ds>(), 0x2au);
  EXPECT_EQ(v.get<CtrlSeg::signature>(), 0x9bu);
  EXPECT_EQ(v.get<CtrlSeg::fm>(), WqeFence::small_and_fence);
  EXPECT_EQ(v.get<CtrlSeg::ce>(), WqeCompletion::always);
  EXPECT_EQ(v.get<CtrlSeg::se>(), 1u);
  EXPECT_EQ(v.get<CtrlSeg::imm>(), 0xdeadbeefu);
  EXPECT_AT(CtrlSeg::dci_stream_channel_id, mlx5_wqe_ctrl_seg, dci_stream_channel_id);
}

TEST(Segments, DatagramSegmentReadsBack) {
  mlx5_wqe_datagram_seg seg{};
  std::uint8_t mac[6] = {1, 2, 3, 4, 5, 6};
  std::uint8_t gid[16];
  std::iota(gid, gid + 16, std::uint8_t{0x10});
  mlx5dv_set_dgram_seg(&seg, std::uint64_t{0x11223344} << 32, 0x654321, 1, 0x5c, 0x80 | 0x13, 0xc0de, mac, 0x77, 0x40,
                       (1u << 30) | (0x2bu << 20) | 0xfacee, gid);
  using Av = DatagramSeg;
  const auto v = over<Av>(seg);
  EXPECT_EQ(v.get<Av::qkey>(), 0x11223344u);
  EXPECT_EQ(v.get<Av::dc_key>(), std::uint64_t{0x11223344} << 32);
  EXPECT_EQ(v.get<Av::ext>(), 1u);
  EXPECT_EQ(v.get<Av::destination_qp_dct>(), 0x654321u);
  EXPECT_EQ(v.get<Av::static_rate>(), 0x5u);
  EXPECT_EQ(v.get<Av::sl_eth_prio>(), 0xcu);
  EXPECT_EQ(v.get<Av::fl>(), 1u);
  EXPECT_EQ(v.get<Av::mlid>(), 0x13u);
  EXPECT_EQ(v.get<Av::rlid_udp_sport>(), 0xc0deu);
  EXPECT_EQ(std::memcmp(v.bytes<Av::rmac>().data(), mac, 6), 0);
  EXPECT_EQ(v.get<Av::rmac_47_16>(), 0x01020304u);
  EXPECT_EQ(v.get<Av::rmac_15_0>(), 0x0506u);
  EXPECT_EQ(v.get<Av::tclass>(), 0x77u);
  EXPECT_EQ(v.get<Av::hop_limit>(), 0x40u);
  EXPECT_EQ(v.get<Av::grh>(), 1u);
  EXPECT_EQ(v.get<Av::src_addr_index>(), 0x2bu);
  EXPECT_EQ(v.get<Av::flow_label>(), 0xfaceeu);
  EXPECT_EQ(std::memcmp(v.bytes<Av::rgid_rip>().data(), gid, 16), 0);
}

TEST(Segments, DataAndEthernetSegmentsReadBack) {
  mlx5_wqe_data_seg data{};
  mlx5dv_set_data_seg(&data, 0x12345678, 0xabcdef01, 0x1122334455667788);
  const auto v = over<DataSeg>(data);
  EXPECT_EQ(v.get<DataSeg::inline_>(), 0u);
  EXPECT_EQ(v.get<DataSeg::byte_count>(), 0x12345678u);
  EXPECT_EQ(v.get<DataSeg::lkey>(), 0xabcdef01u);
  EXPECT_EQ(v.get<DataSeg::addr>(), 0x1122334455667788u);

  mlx5_wqe_inl_data_seg inl{htobe32(MLX5_INLINE_SEG | 28)};
  EXPECT_EQ(over<InlineSeg>(inl).get<InlineSeg::inline_>(), 1u);
  EXPECT_EQ(over<InlineSeg>(inl).get<InlineSeg::byte_count>(), 28u);

  mlx5_wqe_eth_seg eth{};
  std::uint8_t header[18] = {0xaa, 0xbb};
  mlx5dv_set_eth_seg(&eth, MLX5_ETH_WQE_L3_CSUM | MLX5_ETH_WQE_L4_CSUM, 1400, 18, header);
  const auto e = over<EthSeg>(eth);
  EXPECT_EQ(e.get<EthSeg::cs_flags>(), EthCsFlag::l3 | EthCsFlag::l4);
  EXPECT_EQ(e.get<EthSeg::mss>(), 1400u);
  EXPECT_EQ(e.get<EthSeg::inline_hdr_sz>(), 18u);
  EXPECT_EQ(e.bytes<EthSeg::inline_hdr_start>()[1], std::byte{0xbb});
}

TEST(Segments, RemoteAddressAtomicsAndReceiveHeads) {
  EXPECT_AT(RaddrSeg::raddr, mlx5_wqe_raddr_seg, raddr);
  EXPECT_AT(RaddrSeg::rkey, mlx5_wqe_raddr_seg, rkey);
  EXPECT_EQ(RaddrSeg::size, sizeof(mlx5_wqe_raddr_seg));
  EXPECT_AT(AtomicSeg::swap_add, mlx5_wqe_atomic_seg, swap_add);
  EXPECT_AT(AtomicSeg::compare, mlx5_wqe_atomic_seg, compare);
  EXPECT_EQ(AtomicSeg::size, sizeof(mlx5_wqe_atomic_seg));
  EXPECT_AT(SrqNextSeg::next_wqe_index, mlx5_wqe_srq_next_seg, next_wqe_index);
  EXPECT_AT(SrqNextSeg::signature, mlx5_wqe_srq_next_seg, signature);
  EXPECT_EQ(SrqNextSeg::size, sizeof(mlx5_wqe_srq_next_seg));
  EXPECT_AT(TmSeg::opcode, mlx5_wqe_tm_seg, opcode);
  EXPECT_AT(TmSeg::flags, mlx5_wqe_tm_seg, flags);
  EXPECT_AT(TmSeg::index, mlx5_wqe_tm_seg, index);
  EXPECT_AT(TmSeg::sw_cnt, mlx5_wqe_tm_seg, sw_cnt);
  EXPECT_AT(TmSeg::append_tag, mlx5_wqe_tm_seg, append_tag);
  EXPECT_AT(TmSeg::append_mask, mlx5_wqe_tm_seg, append_mask);
  EXPECT_EQ(TmSeg::size, sizeof(mlx5_wqe_tm_seg));
}

TEST(Segments, UmrSegments) {
  EXPECT_AT(UmrCtrlSeg::flags, mlx5_wqe_umr_ctrl_seg, flags);
  EXPECT_AT(UmrCtrlSeg::klm_octowords, mlx5_wqe_umr_ctrl_seg, klm_octowords);
  EXPECT_AT(UmrCtrlSeg::bsf_octowords, mlx5_wqe_umr_ctrl_seg, bsf_octowords);
  EXPECT_AT(UmrCtrlSeg::translation_offset, mlx5_wqe_umr_ctrl_seg, translation_offset);
  EXPECT_AT(UmrCtrlSeg::mkey_mask, mlx5_wqe_umr_ctrl_seg, mkey_mask);
  EXPECT_EQ(UmrCtrlSeg::size, sizeof(mlx5_wqe_umr_ctrl_seg));
  EXPECT_EQ(UmrFlag::inline_, unsigned{MLX5_WQE_UMR_CTRL_FLAG_INLINE});
  EXPECT_EQ(UmrFlag::check_free, unsigned{MLX5_WQE_UMR_CTRL_FLAG_CHECK_FREE});
  EXPECT_EQ(UmrMkeyMask::len, unsigned{MLX5_WQE_UMR_CTRL_MKEY_MASK_LEN});
  EXPECT_EQ(UmrMkeyMask::rw, unsigned{MLX5_WQE_UMR_CTRL_MKEY_MASK_ACCESS_REMOTE_WRITE});
  EXPECT_EQ(UmrMkeyMask::free, unsigned{MLX5_WQE_UMR_CTRL_MKEY_MASK_FREE});

  EXPECT_AT(Klm::byte_count, mlx5_wqe_umr_klm_seg, byte_count);
  EXPECT_AT(Klm::key, mlx5_wqe_umr_klm_seg, mkey);
  EXPECT_AT(Klm::address, mlx5_wqe_umr_klm_seg, address);
  EXPECT_EQ(Klm::size, sizeof(mlx5_wqe_umr_klm_seg));
  EXPECT_AT(UmrRepeatBlockSeg::byte_count, mlx5_wqe_umr_repeat_block_seg, byte_count);
  EXPECT_AT(UmrRepeatBlockSeg::op, mlx5_wqe_umr_repeat_block_seg, op);
  EXPECT_AT(UmrRepeatBlockSeg::repeat_count, mlx5_wqe_umr_repeat_block_seg, repeat_count);
  // num_ent is a dword of ours: its low half is the header's 16-bit field.
  EXPECT_AT(UmrRepeatBlockSeg::num_ent, mlx5_wqe_umr_repeat_block_seg, num_ent);
  EXPECT_EQ(UmrRepeatBlockSeg::size, offsetof(mlx5_wqe_umr_repeat_block_seg, entries));
  EXPECT_AT(UmrRepeatEntSeg::stride, mlx5_wqe_umr_repeat_ent_seg, stride);
  EXPECT_AT(UmrRepeatEntSeg::byte_count, mlx5_wqe_umr_repeat_ent_seg, byte_count);
  EXPECT_AT(UmrRepeatEntSeg::memkey, mlx5_wqe_umr_repeat_ent_seg, memkey);
  EXPECT_AT(UmrRepeatEntSeg::va, mlx5_wqe_umr_repeat_ent_seg, va);
  EXPECT_EQ(UmrRepeatEntSeg::size, sizeof(mlx5_wqe_umr_repeat_ent_seg));
}

// The memory key context of a UMR is the one of CREATE_MKEY.
TEST(Segments, UmrMemoryKeyContextIsTheCommandsContext) {
  mlx5_wqe_mkey_context_seg seg{};
  seg.free = MLX5_WQE_MKEY_CONTEXT_FREE;
  seg.access_flags = MLX5_WQE_MKEY_CONTEXT_ACCESS_FLAGS_ATOMIC | MLX5_WQE_MKEY_CONTEXT_ACCESS_FLAGS_REMOTE_READ |
                     MLX5_WQE_MKEY_CONTEXT_ACCESS_FLAGS_LOCAL_READ;
  seg.qpn_mkey = htobe32(0xabcdef12);
  seg.flags_pd = htobe32((1u << 30) | 0x1234);
  const auto v = over<MkeyContextSeg>(seg);
  EXPECT_EQ(v.get<Mkc::free>(), 1u);
  EXPECT_EQ(v.get<Mkc::a>(), 1u);
  EXPECT_EQ(v.get<Mkc::rw>(), 0u);
  EXPECT_EQ(v.get<Mkc::rr>(), 1u);
  EXPECT_EQ(v.get<Mkc::lw>(), 0u);
  EXPECT_EQ(v.get<Mkc::lr>(), 1u);
  EXPECT_EQ(v.get<Mkc::qpn>(), 0xabcdefu);
  EXPECT_EQ(v.get<Mkc::mkey_7_0>(), 0x12u);
  EXPECT_EQ(v.get<Mkc::bsf_en>(), 1u);
  EXPECT_EQ(v.get<Mkc::pd>(), 0x1234u);
  EXPECT_AT(Mkc::start_addr, mlx5_wqe_mkey_context_seg, start_addr);
  EXPECT_AT(Mkc::len, mlx5_wqe_mkey_context_seg, len);
  EXPECT_AT(Mkc::bsf_octword_size, mlx5_wqe_mkey_context_seg, bsf_octword_size);
  EXPECT_AT(Mkc::translations_octword_size, mlx5_wqe_mkey_context_seg, translations_octword_size);
  EXPECT_EQ(Mkc::size, sizeof(mlx5_wqe_mkey_context_seg));
}

TEST(Cqe, LastDwordIsWhatSoftwareTakesApart) {
  Box<Cqe64> cqe;
  cqe.set<Cqe64::opcode>(CqeOpcode::resp_send_imm).set<Cqe64::format>(CqeFormat::inline_32);
  cqe.set<Cqe64::se>(1).set<Cqe64::owner>(1).set<Cqe64::wqe_counter>(0xbeef).set<Cqe64::qpn>(0x123456);
  auto* raw = reinterpret_cast<mlx5_cqe64*>(cqe.data());
  EXPECT_EQ(mlx5dv_get_cqe_opcode(raw), MLX5_CQE_RESP_SEND_IMM);
  EXPECT_EQ(mlx5dv_get_cqe_format(raw), static_cast<int>(CqeFormat::inline_32));
  EXPECT_EQ(mlx5dv_get_cqe_se(raw), 1);
  EXPECT_EQ(mlx5dv_get_cqe_owner(raw), 1);
  EXPECT_EQ(be16toh(raw->wqe_counter), 0xbeef);
  EXPECT_EQ(be32toh(raw->sop_drop_qpn) & 0xffffff, 0x123456u);
}

TEST(Cqe, FieldsLieWhereThePublicHeaderPutsThem) {
  EXPECT_AT(Cqe64::wqe_id, mlx5_cqe64, wqe_id);
  EXPECT_AT(Cqe64::ml_path, mlx5_cqe64, ml_path);
  EXPECT_AT(Cqe64::slid, mlx5_cqe64, slid);
  EXPECT_EQ(Cqe64::rqpn::offset, offsetof(mlx5_cqe64, flags_rqpn));
  EXPECT_AT(Cqe64::l2_ok, mlx5_cqe64, hds_ip_ext);
  EXPECT_AT(Cqe64::l3_hdr_type, mlx5_cqe64, l4_hdr_type_etc);
  EXPECT_AT(Cqe64::vlan_info, mlx5_cqe64, vlan_info);
  EXPECT_EQ(Cqe64::srqn_uidx::offset, offsetof(mlx5_cqe64, srqn_uidx));
  EXPECT_AT(Cqe64::imm_inval_pkey, mlx5_cqe64, imm_inval_pkey);
  EXPECT_AT(Cqe64::app, mlx5_cqe64, app);
  EXPECT_AT(Cqe64::app_op, mlx5_cqe64, app_op);
  EXPECT_AT(Cqe64::app_info, mlx5_cqe64, app_info);
  EXPECT_AT(Cqe64::byte_cnt, mlx5_cqe64, byte_cnt);
  EXPECT_AT(Cqe64::timestamp, mlx5_cqe64, timestamp);
  EXPECT_AT(Cqe64::send_wqe_opcode, mlx5_cqe64, sop_drop_qpn);
  EXPECT_AT(Cqe64::signature, mlx5_cqe64, signature);
  EXPECT_AT(Cqe64::opcode, mlx5_cqe64, op_own);
  EXPECT_EQ(Cqe64::size, sizeof(mlx5_cqe64));

  EXPECT_EQ(ErrCqe::srqn::offset, offsetof(mlx5_err_cqe, srqn));
  EXPECT_AT(ErrCqe::vendor_err_synd, mlx5_err_cqe, vendor_err_synd);
  EXPECT_AT(ErrCqe::syndrome, mlx5_err_cqe, syndrome);
  EXPECT_AT(ErrCqe::s_wqe_opcode, mlx5_err_cqe, s_wqe_opcode_qpn);
  EXPECT_AT(ErrCqe::wqe_counter, mlx5_err_cqe, wqe_counter);
  EXPECT_AT(ErrCqe::signature, mlx5_err_cqe, signature);
  EXPECT_EQ(ErrCqe::size, sizeof(mlx5_err_cqe));
}

TEST(Cqe, EnumsAreThePublicOnes) {
  EXPECT_EQ(static_cast<int>(CqeOpcode::sig_err), MLX5_CQE_SIG_ERR);
  EXPECT_EQ(static_cast<int>(CqeOpcode::invalid), MLX5_CQE_INVALID);
  EXPECT_EQ(static_cast<int>(CqeSyndrome::wr_flush_err), MLX5_CQE_SYNDROME_WR_FLUSH_ERR);
  EXPECT_EQ(static_cast<int>(CqeSyndrome::rnr_retry_exc_err), MLX5_CQE_SYNDROME_RNR_RETRY_EXC_ERR);
  EXPECT_EQ(static_cast<int>(CqeSyndrome::remote_aborted_err), MLX5_CQE_SYNDROME_REMOTE_ABORTED_ERR);
  EXPECT_EQ(static_cast<int>(WqeOpcode::umr), MLX5_OPCODE_UMR);
  EXPECT_EQ(static_cast<int>(WqeOpcode::atomic_masked_fa), MLX5_OPCODE_ATOMIC_MASKED_FA);
  EXPECT_EQ(static_cast<int>(WqeOpcode::mmo), MLX5_OPCODE_MMO);
}

}  // namespace
}  // namespace verbena::prm
