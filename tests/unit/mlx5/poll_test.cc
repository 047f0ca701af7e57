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
