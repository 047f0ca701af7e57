// A QP and a CQ over plain memory, as the data path sees them: no kernel, no device.
#pragma once

#include <gtest/gtest.h>

#include <cstring>
#include <vector>

#include "mlx5/cq_ex.h"
#include "mlx5/cqe.h"
#include "mlx5/ops.h"
#include "mlx5/qp_state.h"
#include "mlx5/wr.h"
#include "prm/wqe.h"

namespace verbena::mlx5 {
int post_connected(Qp* qp, ibv_send_wr* wr, ibv_send_wr** bad);
int post_datagram(Qp* qp, ibv_send_wr* wr, ibv_send_wr** bad);
}  // namespace verbena::mlx5

namespace verbena::test {

class Queues : public ::testing::Test {
 protected:
  static constexpr std::uint32_t kQpn = 0x1234;
  static constexpr std::uint32_t kBlocks = 8;
  static constexpr std::uint32_t kEntries = 8;  // of the RQ and the CQ

  void SetUp() override { make(IBV_QPT_RC); }
  void make(ibv_qp_type type) {
    qp.verbs.qp.qp_num = kQpn;
    qp.verbs.qp.qp_type = type;
    qp.atomics = true;
    auto& sq = qp.sq;
    sq.start = send_ring;
    sq.end = send_ring + sizeof send_ring;
    sq.blocks = kBlocks;
    sq.mask = kBlocks - 1;
    sq.max_post = kBlocks;
    sq.max_inline = 128;
    sq.max_sge = 4;
    sq.entries = entries;
    sq.qpn_field = kQpn << 8;
    sq.dbrec = &doorbell[1];
    sq.ring = [](void* count) { ++*static_cast<int*>(count); };
    sq.ring_token = &kicks;
    qp.post_send = type == IBV_QPT_UD ? mlx5::post_datagram : mlx5::post_connected;
    auto& rq = qp.rq;
    rq.start = recv_ring;
    rq.count = kEntries;
    rq.mask = kEntries - 1;
    rq.shift = 5;
    rq.max_sge = 2;
    rq.wr_ids = wr_ids;
    rq.dbrec = &doorbell[0];
    set_operational(&qp, IBV_QPS_RESET);
    EXPECT_EQ(mlx5::fill_builders(&qp, type, 0), 0);
    set_operational(&qp, IBV_QPS_INIT);
    set_operational(&qp, IBV_QPS_RTS);
    cq.buf = cq_ring;
    cq.mask = kEntries - 1;
    cq.count_bit = kEntries;
    cq.shift = 6;
    cq.dbrec = cq_doorbell;
    cq.pending = &pending;
    table[7] = &qp;
    cq.qps = table.data();
    cq.verbs.cq.context = nullptr;
    for (std::size_t i = 63; i < sizeof cq_ring; i += 64) cq_ring[i] = static_cast<char>(mlx5::kOpcodeInvalid);
  }

  prm::ConstView<prm::CtrlSeg> control(unsigned block) const {
    return prm::ConstView<prm::CtrlSeg>(reinterpret_cast<const std::byte*>(send_ring + 64 * block));
  }
  template <class Segment>
  prm::ConstView<Segment> segment(unsigned block, unsigned index) const {
    const unsigned at = (64 * block + 16 * index) % sizeof send_ring;
    return prm::ConstView<Segment>(reinterpret_cast<const std::byte*>(send_ring + at));
  }
  ibv_qp* ibqp() { return &qp.verbs.qp; }
  ibv_qp_ex* ex() { return &qp.verbs.qp_ex; }
  ibv_cq* ibcq() { return &cq.verbs.cq; }

  int post(ibv_send_wr& wr) { return mlx5::post_send(ibqp(), &wr, &bad); }

  // Appends a CQE as the device would.
  mlx5_cqe64* complete(std::uint8_t opcode, std::uint16_t wqe_counter = 0, std::uint8_t wqe_opcode = 0) {
    auto* cqe = reinterpret_cast<mlx5_cqe64*>(cq_ring + 64 * (produced & cq.mask));
    std::memset(cqe, 0, sizeof *cqe);
    cqe->srqn_uidx = htobe32(7);
    cqe->sop_drop_qpn = htobe32(std::uint32_t{wqe_opcode} << 24 | kQpn);
    cqe->wqe_counter = htobe16(wqe_counter);
    cqe->op_own = static_cast<std::uint8_t>(opcode << 4 | ((produced & cq.count_bit) ? 1 : 0));
    ++produced;
    return cqe;
  }

  mlx5_cqe64* cqe_at_end() { return reinterpret_cast<mlx5_cqe64*>(cq_ring + 64 * ((produced - 1) & cq.mask)); }

  mlx5::Qp qp;
  mlx5::Cq cq;
  std::vector<mlx5::Qp*> table = std::vector<mlx5::Qp*>(1u << 16);
  mlx5::SendEntry entries[kBlocks] = {};
  std::uint64_t wr_ids[kEntries] = {};
  __be32 doorbell[2] = {}, cq_doorbell[2] = {};
  std::uint32_t pending = 0, produced = 0;
  int kicks = 0;
  ibv_send_wr* bad = nullptr;
  alignas(64) char send_ring[64 * kBlocks] = {};
  alignas(64) char recv_ring[32 * kEntries] = {};
  alignas(64) char cq_ring[64 * kEntries] = {};
};

}  // namespace verbena::test
