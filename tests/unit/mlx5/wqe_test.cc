// Send and receive WQEs, read back through the layouts of src/prm.

#include <algorithm>

#include "tests/unit/mlx5/queues.h"

namespace verbena::test {
namespace {

using namespace verbena::prm;
using verbena::mlx5::kWqeBlock;

ibv_sge sge_of(std::uint64_t addr, std::uint32_t length, std::uint32_t lkey = 0xabc) { return {addr, length, lkey}; }

TEST_F(Queues, WriteHasControlRemoteAndData) {
  ibv_sge sge = sge_of(0x1122334455667788, 64);
  ibv_send_wr wr = {};
  wr.wr_id = 5;
  wr.opcode = IBV_WR_RDMA_WRITE;
  wr.send_flags = IBV_SEND_SIGNALED | IBV_SEND_FENCE;
  wr.sg_list = &sge;
  wr.num_sge = 1;
  wr.wr.rdma = {0x8877665544332211, 0xdef};
  ASSERT_EQ(post(wr), 0);
  const auto c = control(0);
  EXPECT_EQ(c.get<CtrlSeg::opcode>(), WqeOpcode::rdma_write);
  EXPECT_EQ(c.get<CtrlSeg::wqe_index>(), 0u);
  EXPECT_EQ(c.get<CtrlSeg::qpn>(), kQpn);
  EXPECT_EQ(c.get<CtrlSeg::ds>(), 3u);
  EXPECT_EQ(c.get<CtrlSeg::ce>(), WqeCompletion::always);
  EXPECT_EQ(c.get<CtrlSeg::fm>(), WqeFence::small_and_fence);
  EXPECT_EQ(c.get<CtrlSeg::se>(), 0u);
  const auto r = segment<RaddrSeg>(0, 1);
  EXPECT_EQ(r.get<RaddrSeg::raddr>(), 0x8877665544332211u);
  EXPECT_EQ(r.get<RaddrSeg::rkey>(), 0xdefu);
  const auto d = segment<DataSeg>(0, 2);
  EXPECT_EQ(d.get<DataSeg::byte_count>(), 64u);
  EXPECT_EQ(d.get<DataSeg::lkey>(), 0xabcu);
  EXPECT_EQ(d.get<DataSeg::addr>(), 0x1122334455667788u);
  EXPECT_EQ(be32toh(doorbell[1]), 1u);
  EXPECT_EQ(kicks, 1);
}

TEST_F(Queues, InlineDataMayStraddleTheRingsEnd) {
  char text[100];
  for (int i = 0; i < 100; ++i) text[i] = static_cast<char>(i + 1);
  qp.sq.cur_post = kBlocks - 1;  // last block; 100 bytes need two
  ibv_sge parts[2] = {sge_of(reinterpret_cast<std::uintptr_t>(text), 9),
                      sge_of(reinterpret_cast<std::uintptr_t>(text + 9), 91)};
  ibv_send_wr wr = {};
  wr.opcode = IBV_WR_SEND_WITH_IMM;
  wr.send_flags = IBV_SEND_INLINE | IBV_SEND_SOLICITED;
  wr.imm_data = htobe32(0xa1b2c3d4);
  wr.sg_list = parts;
  wr.num_sge = 2;
  ASSERT_EQ(post(wr), 0);
  const auto c = control(kBlocks - 1);
  EXPECT_EQ(c.get<CtrlSeg::ds>(), 1 + (100 + 4 + 15) / 16u);
  EXPECT_EQ(c.get<CtrlSeg::imm>(), 0xa1b2c3d4u);
  EXPECT_EQ(c.get<CtrlSeg::se>(), 1u);
  EXPECT_EQ(segment<InlineSeg>(kBlocks - 1, 1).get<InlineSeg::byte_count>(), 100u);
  EXPECT_EQ(segment<InlineSeg>(kBlocks - 1, 1).get<InlineSeg::inline_>(), 1u);
  char back[100];
  for (unsigned i = 0; i < 100; ++i) back[i] = send_ring[(64 * (kBlocks - 1) + 20 + i) % sizeof send_ring];
  EXPECT_EQ(std::memcmp(back, text, 100), 0);
  EXPECT_EQ(qp.sq.cur_post, kBlocks + 1);
  EXPECT_EQ(be32toh(doorbell[1]), kBlocks + 1);
}

TEST_F(Queues, InlineOfEveryShortLength) {
  std::vector<char> source(128);
  for (std::size_t i = 0; i < source.size(); ++i) source[i] = static_cast<char>(i * 7 + 1);
  for (std::uint32_t length = 0; length <= 40; ++length) {
    std::vector<char> exact(source.begin(), source.begin() + length);  // ASan guards its end
    qp.sq.cur_post = 0;
    qp.sq.tail.store(qp.sq.head);
    ibv_sge sge = sge_of(reinterpret_cast<std::uintptr_t>(exact.data()), length);
    ibv_send_wr wr = {};
    wr.opcode = IBV_WR_SEND;
    wr.send_flags = IBV_SEND_INLINE;
    wr.sg_list = &sge;
    wr.num_sge = 1;
    ASSERT_EQ(post(wr), 0);
    EXPECT_EQ(control(0).get<CtrlSeg::ds>(), length ? 1 + (length + 19) / 16 : 1u);
    EXPECT_TRUE(std::equal(exact.begin(), exact.end(), send_ring + 20)) << length;
  }
}

TEST_F(Queues, AtomicsCarryBothOperands) {
  std::uint64_t result = 0;
  ibv_sge sge = sge_of(reinterpret_cast<std::uintptr_t>(&result), 8);
  ibv_send_wr wr = {};
  wr.opcode = IBV_WR_ATOMIC_CMP_AND_SWP;
  wr.sg_list = &sge;
  wr.num_sge = 1;
  wr.wr.atomic.compare_add = 11;
  wr.wr.atomic.swap = 22;
  ASSERT_EQ(post(wr), 0);
  EXPECT_EQ(segment<AtomicSeg>(0, 2).get<AtomicSeg::swap_add>(), 22u);
  EXPECT_EQ(segment<AtomicSeg>(0, 2).get<AtomicSeg::compare>(), 11u);
  EXPECT_EQ(control(0).get<CtrlSeg::ds>(), 4u);
  wr.opcode = IBV_WR_ATOMIC_FETCH_AND_ADD;
  ASSERT_EQ(post(wr), 0);
  EXPECT_EQ(segment<AtomicSeg>(1, 2).get<AtomicSeg::swap_add>(), 11u);
  EXPECT_EQ(control(1).get<CtrlSeg::opcode>(), WqeOpcode::atomic_fa);
  qp.atomics = false;
  EXPECT_EQ(post(wr), EOPNOTSUPP);
}

TEST_F(Queues, WindowBindWrapsAndFencesTheNext) {
  ibv_mr mr = {};
  mr.lkey = 0x777;
  ibv_mw mw = {};
  mw.rkey = 0x5500;
  mw.type = IBV_MW_TYPE_2;
  qp.sq.cur_post = kBlocks - 2;  // UMR control in the last blocks, key and KLM at the start
  ibv_send_wr wr = {}, send = {};
  wr.opcode = IBV_WR_BIND_MW;
  wr.bind_mw.mw = &mw;
  wr.bind_mw.rkey = 0x5501;
  wr.bind_mw.bind_info = {&mr, 0x10000, 4096, IBV_ACCESS_REMOTE_WRITE};
  send.opcode = IBV_WR_SEND;
  wr.next = &send;
  ASSERT_EQ(post(wr), 0);
  const auto c = control(kBlocks - 2);
  EXPECT_EQ(c.get<CtrlSeg::opcode>(), WqeOpcode::umr);
  EXPECT_EQ(c.get<CtrlSeg::ds>(), 12u);
  EXPECT_EQ(c.get<CtrlSeg::imm>(), 0x5500u);
  const auto umr = segment<UmrCtrlSeg>(kBlocks - 2, 1);
  EXPECT_EQ(umr.get<UmrCtrlSeg::flags>(), UmrFlag::inline_ | UmrFlag::translation_offset | UmrFlag::check_free);
  const auto mask = umr.get<UmrCtrlSeg::mkey_mask>();
  EXPECT_TRUE(mask & UmrMkeyMask::free && mask & UmrMkeyMask::key && mask & UmrMkeyMask::qpn &&
              mask & UmrMkeyMask::len && mask & UmrMkeyMask::rw);
  const auto key = segment<Mkc>(kBlocks - 1, 0);
  EXPECT_EQ(key.get<Mkc::start_addr>(), 0x10000u);
  EXPECT_EQ(key.get<Mkc::len>(), 4096u);
  EXPECT_EQ(key.get<Mkc::qpn>(), kQpn);
  EXPECT_EQ(key.get<Mkc::mkey_7_0>(), 1u);
  EXPECT_EQ(key.get<Mkc::rw>(), 1u);
  EXPECT_EQ(key.get<Mkc::rr>(), 0u);
  const auto klm = segment<DataSeg>(0, 0);
  EXPECT_EQ(klm.get<DataSeg::byte_count>(), 4096u);
  EXPECT_EQ(klm.get<DataSeg::lkey>(), 0x777u);
  EXPECT_EQ(control(1).get<CtrlSeg::fm>(), WqeFence::initiator_small);
}

TEST_F(Queues, DatagramBeginsItsDataInTheNextBlock) {
  make(IBV_QPT_UD);
  mlx5::Ah ah = {};
  ah.av.rlid = htobe16(0xc123);
  ah.av.hop_limit = 64;
  qp.sq.cur_post = kBlocks - 1;
  ibv_sge sge = sge_of(0x4000, 32);
  ibv_send_wr wr = {};
  wr.opcode = IBV_WR_SEND;
  wr.sg_list = &sge;
  wr.num_sge = 1;
  wr.wr.ud = {&ah.ah, 0x99, 0x11111111};
  ASSERT_EQ(post(wr), 0);
  const auto av = segment<UdAdrsVector>(kBlocks - 1, 1);
  EXPECT_EQ(av.get<UdAdrsVector::destination_qp_dct>(), 0x99u);
  EXPECT_EQ(av.get<UdAdrsVector::ext>(), 1u);
  EXPECT_EQ(av.get<UdAdrsVector::qkey>(), 0x11111111u);
  EXPECT_EQ(av.get<UdAdrsVector::rlid_udp_sport>(), 0xc123u);
  EXPECT_EQ(av.get<UdAdrsVector::hop_limit>(), 64u);
  EXPECT_EQ(segment<DataSeg>(0, 0).get<DataSeg::addr>(), 0x4000u);
  EXPECT_EQ(control(kBlocks - 1).get<CtrlSeg::ds>(), 5u);
}

TEST_F(Queues, RefusalsNameTheBadRequestAndKeepTheRest) {
  ibv_send_wr first = {}, second = {};
  first.opcode = IBV_WR_SEND;
  first.next = &second;
  second.opcode = static_cast<ibv_wr_opcode>(99);
  EXPECT_EQ(post(first), EINVAL);
  EXPECT_EQ(bad, &second);
  EXPECT_EQ(qp.sq.head, 1u);
  EXPECT_EQ(kicks, 1);
  second.opcode = IBV_WR_SEND;
  second.num_sge = 5;
  EXPECT_EQ(post(second), ENOMEM);
  second.num_sge = 0;
  for (unsigned i = 1; i < kBlocks; ++i) EXPECT_EQ(post(second), 0);
  EXPECT_EQ(post(second), ENOMEM);  // full
  qp.sq.tail.store(1);
  EXPECT_EQ(post(second), 0);
  set_operational(&qp, IBV_QPS_RESET);
  EXPECT_EQ(post(second), ENOMEM);
}

TEST_F(Queues, BuildersMakeTheSameWqes) {
  ibv_sge sge = sge_of(0x7000, 48);
  ibv_send_wr wr = {};
  wr.opcode = IBV_WR_RDMA_WRITE_WITH_IMM;
  wr.send_flags = IBV_SEND_SIGNALED;
  wr.imm_data = htobe32(77);
  wr.sg_list = &sge;
  wr.num_sge = 1;
  wr.wr.rdma = {0x9000, 0x55};
  ASSERT_EQ(post(wr), 0);
  char expected[64];
  std::memcpy(expected, send_ring, 64);
  qp.sq.cur_post = 0;
  std::memset(send_ring, 0, 64);
  ibv_wr_start(ex());
  ex()->wr_id = 9;
  ex()->wr_flags = IBV_SEND_SIGNALED;
  ibv_wr_rdma_write_imm(ex(), 0x55, 0x9000, htobe32(77));
  ibv_wr_set_sge(ex(), 0xabc, 0x7000, 48);
  ASSERT_EQ(ibv_wr_complete(ex()), 0);
  EXPECT_EQ(std::memcmp(expected, send_ring, 48), 0);
  EXPECT_EQ(entries[0].wr_id, 9u);
}

TEST_F(Queues, BuilderErrorsRollBack) {
  std::vector<char> big(200);
  ibv_wr_start(ex());
  ibv_wr_send(ex());
  ibv_wr_set_sge(ex(), 1, 2, 3);
  ibv_wr_send(ex());
  ibv_wr_set_inline_data(ex(), big.data(), big.size());
  EXPECT_EQ(ibv_wr_complete(ex()), ENOMEM);
  EXPECT_EQ(qp.sq.cur_post, 0u);
  EXPECT_EQ(qp.sq.head, 0u);
  EXPECT_EQ(kicks, 0);
  ibv_wr_start(ex());
  for (unsigned i = 0; i <= kBlocks; ++i) {
    ibv_wr_send(ex());
    ibv_wr_set_sge(ex(), 1, 2, 3);
  }
  EXPECT_EQ(ibv_wr_complete(ex()), ENOMEM);
  ibv_wr_start(ex());
  ibv_wr_send(ex());
  ibv_wr_set_sge(ex(), 1, 2, 3);
  ibv_wr_abort(ex());
  EXPECT_EQ(qp.sq.cur_post, 0u);
  set_operational(&qp, IBV_QPS_RESET);
  ibv_wr_start(ex());
  EXPECT_EQ(ibv_wr_complete(ex()), EINVAL);
}

TEST_F(Queues, ReceivesEndShortListsAndSkipEmptyEntries) {
  ibv_sge list[2] = {sge_of(0x100, 0), sge_of(0x200, 16)};
  ibv_recv_wr wr = {}, *bad_recv = nullptr;
  wr.wr_id = 3;
  wr.sg_list = list;
  wr.num_sge = 2;
  ASSERT_EQ(mlx5::post_recv(ibqp(), &wr, &bad_recv), 0);
  const auto* ring = reinterpret_cast<const std::byte*>(recv_ring);
  EXPECT_EQ(ConstView<DataSeg>(ring).get<DataSeg::addr>(), 0x200u);
  EXPECT_EQ(ConstView<DataSeg>(ring + 16).get<DataSeg::lkey>(), kInvalidLkey);
  EXPECT_EQ(be32toh(doorbell[0]), 1u);
  wr.num_sge = 3;
  EXPECT_EQ(mlx5::post_recv(ibqp(), &wr, &bad_recv), EINVAL);
  wr.num_sge = 1;
  for (unsigned i = 1; i < kEntries; ++i) EXPECT_EQ(mlx5::post_recv(ibqp(), &wr, &bad_recv), 0);
  EXPECT_EQ(mlx5::post_recv(ibqp(), &wr, &bad_recv), ENOMEM);
}

}  // namespace
}  // namespace verbena::test
