// CQEs made by hand, read by ibv_poll_cq() and by the extended CQ.

#include "tests/unit/mlx5/queues.h"

namespace verbena::test {
namespace {

TEST_F(Queues, EmptyCqGivesNothing) {
  ibv_wc wc;
  EXPECT_EQ(mlx5::poll_cq(ibcq(), 1, &wc), 0);
}

TEST_F(Queues, SendCompletionRetiresAllBeforeIt) {
  ibv_send_wr wr = {};
  wr.opcode = IBV_WR_RDMA_WRITE_WITH_IMM;
  for (unsigned i = 0; i < kBlocks; ++i) {
    wr.wr_id = 100 + i;
    ASSERT_EQ(post(wr), 0);
  }
  complete(MLX5_CQE_REQ, 5, MLX5_OPCODE_RDMA_WRITE_IMM);
  ibv_wc wc[2] = {};
  ASSERT_EQ(mlx5::poll_cq(ibcq(), 2, wc), 1);
  EXPECT_EQ(wc[0].wr_id, 105u);
  EXPECT_EQ(wc[0].opcode, IBV_WC_RDMA_WRITE);
  EXPECT_EQ(wc[0].wc_flags, static_cast<unsigned>(IBV_WC_WITH_IMM));
  EXPECT_EQ(wc[0].qp_num, kQpn);
  EXPECT_EQ(qp.sq.tail.load(), 6u);
  EXPECT_EQ(be32toh(cq_doorbell[0]), 1u);
}

TEST_F(Queues, LapsOfTheRing) {
  ibv_wc wc[4];
  ibv_recv_wr recv = {}, *bad_recv;
  for (unsigned i = 0; i < 5 * kEntries; ++i) {
    recv.wr_id = i;
    ASSERT_EQ(mlx5::post_recv(ibqp(), &recv, &bad_recv), 0);
    complete(MLX5_CQE_RESP_SEND)->byte_cnt = htobe32(i);
    ASSERT_EQ(mlx5::poll_cq(ibcq(), 4, wc), 1) << i;
    EXPECT_EQ(wc[0].wr_id, i);
    EXPECT_EQ(wc[0].byte_len, i);
    EXPECT_EQ(wc[0].opcode, IBV_WC_RECV);
  }
}

TEST_F(Queues, ReceiveDetails) {
  ibv_recv_wr recv = {}, *bad_recv;
  for (int i = 0; i < 3; ++i) ASSERT_EQ(mlx5::post_recv(ibqp(), &recv, &bad_recv), 0);
  auto* imm = complete(MLX5_CQE_RESP_WR_IMM);
  imm->imm_inval_pkey = htobe32(0x01020304);
  imm->flags_rqpn = htobe32(1u << 28 | 0x55);
  complete(MLX5_CQE_RESP_SEND_INV)->imm_inval_pkey = htobe32(0x99);
  complete(MLX5_CQE_RESP_SEND_IMM)->imm_inval_pkey = htobe32(5);
  ibv_wc wc[3] = {};
  ASSERT_EQ(mlx5::poll_cq(ibcq(), 3, wc), 3);
  EXPECT_EQ(wc[0].opcode, IBV_WC_RECV_RDMA_WITH_IMM);
  EXPECT_EQ(wc[0].imm_data, htobe32(0x01020304));
  EXPECT_EQ(wc[0].wc_flags, static_cast<unsigned>(IBV_WC_WITH_IMM | IBV_WC_GRH));
  EXPECT_EQ(wc[0].src_qp, 0x55u);
  EXPECT_EQ(wc[1].invalidated_rkey, 0x99u);
  EXPECT_EQ(wc[1].wc_flags, static_cast<unsigned>(IBV_WC_WITH_INV));
  EXPECT_EQ(wc[2].wc_flags, static_cast<unsigned>(IBV_WC_WITH_IMM));
}

TEST_F(Queues, ErrorsCarryStatusAndVendorSyndrome) {
  ibv_send_wr wr = {};
  wr.opcode = IBV_WR_SEND;
  wr.wr_id = 42;
  ASSERT_EQ(post(wr), 0);
  auto* error = reinterpret_cast<mlx5_err_cqe*>(complete(MLX5_CQE_REQ_ERR));
  error->syndrome = MLX5_CQE_SYNDROME_TRANSPORT_RETRY_EXC_ERR;
  error->vendor_err_synd = 0x81;
  ibv_wc wc = {};
  ASSERT_EQ(mlx5::poll_cq(ibcq(), 1, &wc), 1);
  EXPECT_EQ(wc.status, IBV_WC_RETRY_EXC_ERR);
  EXPECT_EQ(wc.vendor_err, 0x81u);
  EXPECT_EQ(wc.wr_id, 42u);
  EXPECT_EQ(wc.qp_num, kQpn);
  EXPECT_EQ(qp.sq.tail.load(), 1u);
}

TEST_F(Queues, UnknownUserIndexIsRefused) {
  complete(MLX5_CQE_REQ)->srqn_uidx = htobe32(12345);
  ibv_wc wc;
  EXPECT_LT(mlx5::poll_cq(ibcq(), 1, &wc), 0);
}

TEST_F(Queues, ExtendedSession) {
  mlx5::Context context;
  ASSERT_EQ(mlx5::fill_cq_ex(&context, &cq, std::uint64_t{IBV_WC_STANDARD_FLAGS} | IBV_WC_EX_WITH_COMPLETION_TIMESTAMP),
            0);
  ibv_cq_ex* cq_ex = &cq.verbs.cq_ex;
  ibv_poll_cq_attr attr = {};
  EXPECT_EQ(ibv_start_poll(cq_ex, &attr), ENOENT);
  ibv_send_wr wr = {};
  wr.opcode = IBV_WR_LOCAL_INV;
  wr.wr_id = 8;
  ASSERT_EQ(post(wr), 0);
  ibv_recv_wr recv = {}, *bad_recv;
  recv.wr_id = 9;
  ASSERT_EQ(mlx5::post_recv(ibqp(), &recv, &bad_recv), 0);
  complete(MLX5_CQE_REQ, 0, MLX5_OPCODE_UMR)->timestamp = htobe64(1234567);
  complete(MLX5_CQE_RESP_SEND_INV)->imm_inval_pkey = htobe32(0x77);
  ASSERT_EQ(ibv_start_poll(cq_ex, &attr), 0);
  EXPECT_EQ(cq_ex->wr_id, 8u);
  EXPECT_EQ(ibv_wc_read_opcode(cq_ex), IBV_WC_LOCAL_INV);
  EXPECT_EQ(ibv_wc_read_completion_ts(cq_ex), 1234567u);
  ASSERT_EQ(ibv_next_poll(cq_ex), 0);
  EXPECT_EQ(cq_ex->wr_id, 9u);
  EXPECT_EQ(ibv_wc_read_invalidated_rkey(cq_ex), 0x77u);
  EXPECT_EQ(ibv_next_poll(cq_ex), ENOENT);
  ibv_end_poll(cq_ex);
  EXPECT_EQ(be32toh(cq_doorbell[0]), 2u);
}

// The device put what was received into the CQE.
TEST_F(Queues, ReceivedDataInTheCqe) {
  char first[5] = {}, second[40] = {};
  ibv_sge sges[] = {{reinterpret_cast<std::uintptr_t>(first), sizeof first, 1},
                    {reinterpret_cast<std::uintptr_t>(second), sizeof second, 2}};
  ibv_recv_wr wr = {.wr_id = 9, .next = nullptr, .sg_list = sges, .num_sge = 2}, *bad;
  const auto receive = [&](unsigned index, std::uint32_t length) {
    EXPECT_EQ(mlx5::post_recv(ibqp(), &wr, &bad), 0);
    auto* cqe = complete(MLX5_CQE_RESP_SEND, static_cast<std::uint16_t>(index));
    std::memcpy(cqe, "abcdefghijklmnopqrstuvwxyz012345", 32);
    cqe->byte_cnt = htobe32(length);
    cqe->op_own |= 1 << 2;
  };
  ibv_wc wc = {};
  receive(0, 7);
  ASSERT_EQ(mlx5::poll_cq(ibcq(), 1, &wc), 1);
  EXPECT_EQ(wc.status, IBV_WC_SUCCESS);
  EXPECT_EQ(wc.wr_id, 9u);
  EXPECT_EQ(std::string(first, sizeof first), "abcde");
  EXPECT_STREQ(second, "fg");
  receive(1, 33);  // more than a CQE holds
  ASSERT_EQ(mlx5::poll_cq(ibcq(), 1, &wc), 1);
  EXPECT_EQ(wc.status, IBV_WC_LOC_LEN_ERR);
  wr.num_sge = 1;
  receive(2, 7);  // more than the list has room for
  ASSERT_EQ(mlx5::poll_cq(ibcq(), 1, &wc), 1);
  EXPECT_EQ(wc.status, IBV_WC_LOC_LEN_ERR);
  receive(3, 4);
  cqe_at_end()->op_own ^= 3 << 2;  // in the half before it: a CQE of 64 bytes has none
  ASSERT_EQ(mlx5::poll_cq(ibcq(), 1, &wc), 1);
  EXPECT_EQ(wc.status, IBV_WC_LOC_LEN_ERR);
}

// Of an atomic operation whose list is at the start of the ring, behind the WQE's other segments at its end.
TEST_F(Queues, AtomicResultInTheCqe) {
  std::uint64_t results[kBlocks] = {};
  ibv_send_wr wr = {};
  wr.opcode = IBV_WR_ATOMIC_FETCH_AND_ADD;
  wr.num_sge = 1;
  for (unsigned i = 0; i < kBlocks; ++i) {
    ibv_sge sge = {reinterpret_cast<std::uintptr_t>(&results[i]), 8, 1};
    wr.sg_list = &sge;
    ASSERT_EQ(post(wr), 0);
    auto* cqe = complete(MLX5_CQE_REQ, static_cast<std::uint16_t>(i), MLX5_OPCODE_ATOMIC_FA);
    const std::uint64_t result = 100 + i;
    std::memcpy(cqe, &result, sizeof result);
    cqe->byte_cnt = htobe32(8);
    cqe->op_own |= 1 << 2;
    ibv_wc wc = {};
    ASSERT_EQ(mlx5::poll_cq(ibcq(), 1, &wc), 1);
    EXPECT_EQ(wc.status, IBV_WC_SUCCESS);
    EXPECT_EQ(wc.opcode, IBV_WC_FETCH_ADD);
    EXPECT_EQ(results[i], 100 + i);
  }
  wr.opcode = IBV_WR_RDMA_WRITE;
  wr.num_sge = 0;
  ASSERT_EQ(post(wr), 0);
  complete(MLX5_CQE_REQ, kBlocks, MLX5_OPCODE_RDMA_WRITE)->op_own |= 1 << 2;  // a write has no result
  ibv_wc wc = {};
  ASSERT_EQ(mlx5::poll_cq(ibcq(), 1, &wc), 1);
  EXPECT_EQ(wc.status, IBV_WC_REM_INV_REQ_ERR);
}

TEST_F(Queues, CleaningKeepsOthersInOrder) {
  mlx5::Qp other;
  table[9] = &other;
  std::uint64_t ids[8] = {21, 22, 23};
  other.rq.wr_ids = ids;
  other.rq.mask = 7;
  other.rq.count = 8;
  for (int i = 0; i < 3; ++i) {
    complete(MLX5_CQE_REQ);
    complete(MLX5_CQE_RESP_SEND)->srqn_uidx = htobe32(9);
  }
  mlx5::clean(&cq, 7, nullptr);
  ibv_wc wc[8] = {};
  ASSERT_EQ(mlx5::poll_cq(ibcq(), 8, wc), 3);
  for (std::uint64_t i = 0; i < 3; ++i) EXPECT_EQ(wc[i].wr_id, 21 + i);
  EXPECT_EQ(be32toh(cq_doorbell[0]), 6u);
}

}  // namespace
}  // namespace verbena::test
