// XRC: the target queue pair is one process's, the receive queue that a packet names another's, and both must be of one
// domain. Remote memory is the receive queue's process's.
#include "device/transport/responder.h"
#include "transport_world.h"

namespace verbena::device::test {
namespace {

using prm::CqeOpcode;
using prm::CqeSyndrome;
using prm::WqeOpcode;

constexpr std::uint32_t kDomain = 3;
constexpr std::uint32_t kUserIndex = 0x777;

struct XrcSrq {
  SrqContext* context;
  std::byte *ring, *dbrec;
  std::uint32_t posted = 0;
};

class Xrc : public World {
 protected:
  void SetUp() override {
    World::SetUp();
    c = std::make_unique<Process>(dir_);
    ca = a->cq();
    cc = c->cq();
    initiator = a->qp(QpType::xrc, ca);
    target = b->qp(QpType::xrc, b->cq());
    for (Qp* q : {initiator, target}) {
      q->context->rq = {};
      q->context->rq_type = kRqTypeSrq;
    }
    initiator->context->xrcd = 1;
    target->context->xrcd = kDomain;
    target->context->sq = {};
    target->context->dbrec_va = 0;
    connect(*initiator, *target);
    mc = c->memory(8192);
    srq = make_srq(kDomain);
  }
  void TearDown() override {
    c.reset();
    World::TearDown();
  }
  XrcSrq make_srq(std::uint32_t domain) {
    XrcSrq s{c->nic->alloc_srq(), c->dma(4096), c->dma(4096)};
    SrqContext& x = *s.context;
    x.pdn = kPd;
    x.cq = cc->context->cqn;
    x.xrcd = domain;
    x.user_index = kUserIndex;
    x.type = 1;
    x.state = 1;
    x.ring = {reinterpret_cast<std::uint64_t>(s.ring), 4, 6};
    x.dbrec_va = reinterpret_cast<std::uint64_t>(s.dbrec);
    c->nic->publish(x);
    return s;
  }
  void post_recv(XrcSrq& s, const Process::Sge& sge) {
    std::byte* w = s.ring + (s.posted & 15) * 64;
    std::memset(w, 0, 64);
    prm::View<prm::SrqNextSeg>(w).set<prm::SrqNextSeg::next_wqe_index>((s.posted + 1) & 15);
    prm::View<prm::DataSeg>(w + 16).set<prm::DataSeg::byte_count>(sge.bytes).set<prm::DataSeg::lkey>(sge.key).set<prm::DataSeg::addr>(
        reinterpret_cast<std::uint64_t>(sge.p));
    prm::View<prm::DataSeg>(w + 32).set<prm::DataSeg::lkey>(prm::kInvalidLkey);
    ring(s.dbrec, ++s.posted);
  }
  std::uint32_t srqn() const { return srq.context->srqn; }
  std::uint64_t there(std::size_t at) const { return reinterpret_cast<std::uint64_t>(mc.p + at); }

  std::unique_ptr<Process> c;
  Cq *ca, *cc;
  Qp *initiator, *target;
  Memory mc;
  XrcSrq srq;
};

TEST_F(Xrc, ASendArrivesInTheQueueThatItNames) {
  post_recv(srq, {mc.p, 4096, mc.key});
  a->post(*initiator, {.opcode = WqeOpcode::send_imm, .inline_data = "to a third process", .imm = 7, .xrc_srqn = srqn()});
  EXPECT_EQ(a->wait(*ca).opcode, CqeOpcode::req);
  const auto got = c->wait(*cc);
  ASSERT_EQ(got.opcode, CqeOpcode::resp_send_imm);
  EXPECT_EQ(got.bytes, 18u);
  EXPECT_EQ(got.imm, 7u);
  EXPECT_EQ(got.qpn, target->context->qpn);
  EXPECT_EQ(prm::ConstView<prm::Cqe64>(got.raw).get<prm::Cqe64::srqn_uidx>(), kUserIndex);
  EXPECT_EQ(std::memcmp(mc.p, "to a third process", 18), 0);
  EXPECT_FALSE(b->poll(*target->cq).valid);
}

TEST_F(Xrc, OneConnectionServesSeveralQueues) {
  XrcSrq second = make_srq(kDomain);
  post_recv(srq, {mc.p, 64, mc.key});
  post_recv(second, {mc.p + 64, 64, mc.key});
  a->post(*initiator, {.inline_data = "two", .xrc_srqn = second.context->srqn});
  a->post(*initiator, {.inline_data = "one", .xrc_srqn = srqn()});
  for (int i = 0; i < 2; ++i) EXPECT_EQ(a->wait(*ca).opcode, CqeOpcode::req);
  for (int i = 0; i < 2; ++i) EXPECT_EQ(c->wait(*cc).opcode, CqeOpcode::resp_send);
  EXPECT_EQ(std::memcmp(mc.p, "one", 3), 0);
  EXPECT_EQ(std::memcmp(mc.p + 64, "two", 3), 0);
}

TEST_F(Xrc, RemoteMemoryIsThatOfTheQueuesProcess) {
  a->post(*initiator, {.opcode = WqeOpcode::rdma_write, .inline_data = "written", .raddr = there(100), .rkey = mc.key, .xrc_srqn = srqn()});
  EXPECT_EQ(a->wait(*ca).opcode, CqeOpcode::req);
  EXPECT_EQ(std::memcmp(mc.p + 100, "written", 7), 0);
  Memory ma = a->memory(4096);
  a->post(*initiator, {.opcode = WqeOpcode::rdma_read, .sges = {{ma.p, 7, ma.key}}, .raddr = there(100), .rkey = mc.key, .xrc_srqn = srqn()});
  EXPECT_EQ(a->wait(*ca).opcode, CqeOpcode::req);
  EXPECT_EQ(std::memcmp(ma.p, "written", 7), 0);
  a->post(*initiator, {.opcode = WqeOpcode::atomic_fa, .sges = {{ma.p, 8, ma.key}}, .raddr = there(0), .rkey = mc.key, .swap_add = 5, .xrc_srqn = srqn()});
  EXPECT_EQ(a->wait(*ca).opcode, CqeOpcode::req);
  EXPECT_EQ(*reinterpret_cast<std::uint64_t*>(mc.p), 5u);
  post_recv(srq, {});
  a->post(*initiator, {.opcode = WqeOpcode::rdma_write_imm, .inline_data = "and told", .imm = 3, .raddr = there(200), .rkey = mc.key, .xrc_srqn = srqn()});
  EXPECT_EQ(c->wait(*cc).opcode, CqeOpcode::resp_wr_imm);
  // A key of the target's own process is not one of the queue's.
  Memory mb = b->memory(4096);
  const auto elsewhere = reinterpret_cast<std::uint64_t>(mb.p);
  a->post(*initiator, {.opcode = WqeOpcode::rdma_write, .inline_data = "x", .raddr = elsewhere, .rkey = mb.key, .xrc_srqn = srqn()});
  EXPECT_EQ(a->wait(*ca).opcode, CqeOpcode::req);
  EXPECT_EQ(a->wait(*ca).syndrome, static_cast<unsigned>(CqeSyndrome::remote_access_err));
}

TEST_F(Xrc, AnotherDomainAndAMissingQueueAreInvalidRequests) {
  XrcSrq foreign = make_srq(kDomain + 1);
  post_recv(foreign, {mc.p, 64, mc.key});
  a->post(*initiator, {.inline_data = "x", .xrc_srqn = foreign.context->srqn});
  const auto refused = a->wait(*ca);
  EXPECT_EQ(refused.syndrome, static_cast<unsigned>(CqeSyndrome::remote_inval_req_err));
  EXPECT_EQ(static_cast<QpState>(target->context->state.load()), QpState::err);
  EXPECT_FALSE(c->poll(*cc).valid);
  for (Qp* q : {initiator, target}) (q == initiator ? a : b)->engine->reset(*q->context);
  initiator->sq_pi = 0;
  ring(initiator->dbrec + 4, 0);
  connect(*initiator, *target);
  a->post(*initiator, {.inline_data = "x", .xrc_srqn = 0xabcdef});
  EXPECT_EQ(a->wait(*ca).syndrome, static_cast<unsigned>(CqeSyndrome::remote_inval_req_err));
}

// The target and its queue are one process's, which dies: whichever is seen to be gone first, nobody answers.
TEST_F(Xrc, ADyingProcessAnswersNothing) {
  const auto found = a->nic->find_qp(target->context->qpn);
  ASSERT_TRUE(found);
  found.peer->dead.store(true);
  Deferred deferred(&a->nic->self());
  fabric::Packet packet{};
  packet.opcode = prm::bth_opcode(prm::BthService::xrc, prm::BthOperation::send_only);
  packet.dest_qpn = target->context->qpn;
  packet.psn = target->context->epsn;
  packet.xrc_srqn = 0xabcdef;
  const PieceList nothing{};
  Reply reply;
  EXPECT_EQ(Responder(*a->nic, *found.peer, *found.context, a->nic->me(), deferred).receive(packet, {&nothing, 0, 0}, reply), Answer::none);
  EXPECT_NE(static_cast<QpState>(target->context->state.load()), QpState::err);
}

TEST_F(Xrc, AnEmptyQueueIsNotReady) {
  a->post(*initiator, {.inline_data = "late", .xrc_srqn = srqn()});
  EXPECT_FALSE(a->poll(*ca).valid);
  post_recv(srq, {mc.p, 64, mc.key});
  EXPECT_EQ(a->wait(*ca).opcode, CqeOpcode::req);
  EXPECT_EQ(c->wait(*cc).opcode, CqeOpcode::resp_send);
  a->post(*initiator, {.inline_data = "never", .xrc_srqn = srqn()});
  EXPECT_EQ(a->wait(*ca).syndrome, static_cast<unsigned>(CqeSyndrome::rnr_retry_exc_err));
}

TEST_F(Xrc, WhatDoesNotFitIsToldToTheQueuesOwner) {
  post_recv(srq, {mc.p, 2, mc.key});
  a->post(*initiator, {.inline_data = "long", .xrc_srqn = srqn()});
  EXPECT_EQ(a->wait(*ca).syndrome, static_cast<unsigned>(CqeSyndrome::remote_inval_req_err));
  const auto got = c->wait(*cc);
  EXPECT_EQ(got.syndrome, static_cast<unsigned>(CqeSyndrome::local_length_err));
  EXPECT_EQ(prm::ConstView<prm::ErrCqe>(got.raw).get<prm::ErrCqe::srqn>(), kUserIndex);
}

TEST_F(Xrc, ALongMessageKeepsItsReceiveWhenTheLinkBreaksItUp) {
  Memory ma = a->memory(1 << 20), big = c->memory(1 << 20);
  for (std::size_t i = 0; i < big.bytes; ++i) ma.p[i] = static_cast<std::byte>(i * 7);
  post_recv(srq, {big.p, 1 << 20, big.key});
  a->post(*initiator, {.sges = {{ma.p, 1 << 20, ma.key}}, .xrc_srqn = srqn()});
  EXPECT_EQ(a->wait(*ca).opcode, CqeOpcode::req);
  EXPECT_EQ(c->wait(*cc).bytes, 1u << 20);
  EXPECT_EQ(std::memcmp(ma.p, big.p, big.bytes), 0);
}

}  // namespace
}  // namespace verbena::device::test
