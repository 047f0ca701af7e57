// Raw send queues: frames whose head lies in the WQE or not, and WQEs that are wrong.
#include "device/shared/flow_index.h"
#include "prm/cqe.h"
#include "prm/flow.h"
#include "transport_world.h"

namespace verbena::device::test {
namespace {

class RawQueue : public World {
 protected:
  void SetUp() override {
    World::SetUp();
    cq = a->cq();
    memory = a->memory(1 << 16);
    fresh();
  }
  void fresh() {
    sq = a->qp(QpType::raw, cq);
    sq->context->rq_type = kRqTypeNone;
    a->engine->set_state(*sq->context, QpState::rts);
  }
  // Control, Ethernet segment with so much head, and `data` bytes of memory; `ds` as the WQE claims.
  Completion send(unsigned head, std::uint32_t data, unsigned ds, std::uint32_t key = 0,
                  prm::WqeOpcode opcode = prm::WqeOpcode::send) {
    alignas(64) std::byte w[512]{};
    prm::View<prm::CtrlSeg>(w)
        .set<prm::CtrlSeg::opcode>(opcode)
        .set<prm::CtrlSeg::wqe_index>(sq->sq_pi)
        .set<prm::CtrlSeg::qpn>(sq->context->qpn)
        .set<prm::CtrlSeg::ds>(ds)
        .set<prm::CtrlSeg::ce>(prm::WqeCompletion::always);
    prm::View<prm::EthSeg>(w + 16).set<prm::EthSeg::inline_hdr_sz>(head);
    const unsigned at = (std::max(30 + head, 32u) + 15) / 16 * 16;
    if (data != 0 && at + 16 <= sizeof w)
      prm::View<prm::DataSeg>(w + at)
          .set<prm::DataSeg::byte_count>(data)
          .set<prm::DataSeg::lkey>(key ? key : memory.key)
          .set<prm::DataSeg::addr>(reinterpret_cast<std::uint64_t>(memory.p));
    a->raw_wqe(*sq, w, std::min<unsigned>(ds * 16, sizeof w));
    a->engine->ring_sq(*sq->context);
    return a->wait(*cq, 500);
  }
  void refused(prm::CqeSyndrome why, const Completion& got) {
    EXPECT_EQ(got.opcode, prm::CqeOpcode::req_err);
    EXPECT_EQ(got.syndrome, static_cast<unsigned>(why));
    EXPECT_EQ(static_cast<QpState>(sq->context->state.load()), QpState::sqer);
    fresh();
  }
  Cq* cq;
  Qp* sq;
  Memory memory;
};

TEST_F(RawQueue, FramesLeave) {
  for (const unsigned head : {0u, 2u, 14u, 18u, 34u}) {
    const unsigned data_at = (std::max(30 + head, 32u) + 15) / 16;
    const auto done = send(head, 1000, data_at + 1);
    ASSERT_TRUE(done.valid) << head;
    EXPECT_EQ(done.opcode, prm::CqeOpcode::req) << head << " " << done.syndrome;
    EXPECT_EQ(done.qpn, sq->context->qpn);
  }
  EXPECT_EQ(send(60, 0, 6).opcode, prm::CqeOpcode::req) << "all of it in the WQE";
  EXPECT_EQ(send(0, 0, 1, 0, prm::WqeOpcode::nop).opcode, prm::CqeOpcode::req);
}

TEST_F(RawQueue, WrongFramesDoNot) {
  using prm::CqeSyndrome;
  refused(CqeSyndrome::local_qp_op_err, send(14, 100, 1));      // no Ethernet segment
  refused(CqeSyndrome::local_qp_op_err, send(35, 0, 4));        // the head ends behind the WQE
  refused(CqeSyndrome::local_qp_op_err, send(0xffff, 0, 4));
  refused(CqeSyndrome::local_qp_op_err, send(0, 100, 3, 0, prm::WqeOpcode::rdma_write));
  refused(CqeSyndrome::local_length_err, send(2, 0, 2));        // shorter than its addresses
  refused(CqeSyndrome::local_length_err, send(0, 10241, 3));
  refused(CqeSyndrome::local_prot_err, send(0, 1000, 3, memory.key ^ 0xff));
  refused(CqeSyndrome::local_prot_err, send(0, 1000, 3, 0x123400));
}

// Without flush_in_error_en what an error leaves in the queue is not told of.
TEST_F(RawQueue, AQuietQueueIsNotFlushed) {
  for (const bool quiet : {false, true}) {
    sq->context->quiet_flush = quiet;
    EXPECT_EQ(send(0xffff, 0, 4).syndrome, static_cast<unsigned>(prm::CqeSyndrome::local_qp_op_err));
    const Completion flushed = send(0, 0, 1, 0, prm::WqeOpcode::nop);
    EXPECT_EQ(flushed.valid, !quiet);
    if (!quiet) EXPECT_EQ(flushed.syndrome, static_cast<unsigned>(prm::CqeSyndrome::wr_flush_err));
    fresh();
  }
}

// A frame finds the receive queue of another process: of the same NIC, and of another host by its address.
class RawToOthers : public RawQueue {
 protected:
  // Every frame that arrives for b goes to this queue.
  Qp* receiver(Cq* to) {
    Qp* rq = b->qp(QpType::raw_rq, to);
    Steering& s = b->nic->slice().steering;
    s.tirs[1] = {.in_use = 1, .rq = b->nic->index_of(*rq->context)};
    s.entries[0] = {.group = 1, .action = prm::FlowAction::fwd_dest, .destinations = 1};
    s.entries[0].destination[0] = {static_cast<std::uint32_t>(prm::FlowDestination::tir), 1};
    if (!s.root) {
      link_flow_group(s, 1, 0, 1);
      insert_flow_entry(s, 1);
    }
    s.root = 1;
    b->nic->take_frames(true);
    b->engine->set_state(*rq->context, QpState::rts);
    return rq;
  }
  // Whether a frame for this address comes.
  bool reaches(const std::uint8_t (&mac)[6]) {
    Cq* to = b->cq();
    Qp* rq = receiver(to);
    const Memory landing = b->memory(4096);
    b->post_recv(*rq, {{landing.p, 2048, landing.key}});
    std::memcpy(memory.p, mac, 6);
    memory.p[999] = std::byte{0x5c};
    EXPECT_EQ(send(0, 1000, 3).opcode, prm::CqeOpcode::req);
    const auto came = b->wait(*to, 100);
    if (!came.valid) return false;
    EXPECT_EQ(came.bytes, 1000u);
    EXPECT_EQ(landing.p[999], std::byte{0x5c});
    return true;
  }
  static constexpr std::uint8_t kGroup[6] = {0xff, 0xff, 0xff, 0xff, 0xff, 0xff}, kNobody[6] = {0x02, 9, 9, 9, 9, 9};
};
class RawToOtherHost : public RawToOthers {
  std::string second_host() override { return "other"; }
};

TEST_F(RawToOthers, OfTheSameNic) {
  EXPECT_TRUE(reaches(a->nic->segment().ports[0].mac));
  EXPECT_TRUE(reaches(kGroup));
}
TEST_F(RawToOtherHost, ByItsAddress) {
  EXPECT_TRUE(reaches(b->nic->segment().ports[0].mac));
  EXPECT_TRUE(reaches(kGroup));
  EXPECT_TRUE(reaches(kNobody)) << "flooded";
  EXPECT_FALSE(reaches(a->nic->segment().ports[0].mac)) << "another's";
}

}  // namespace
}  // namespace verbena::device::test
