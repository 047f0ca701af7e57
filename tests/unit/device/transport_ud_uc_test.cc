// UD, multicast, UC, SRQ, two virtual hosts, memory windows.
#include "transport_world.h"

namespace verbena::device::test {
namespace {

using prm::CqeOpcode;
using prm::CqeSyndrome;
using prm::WqeOpcode;

class Ud : public World {
 protected:
  std::string second_host() override { return "other"; }
  void SetUp() override {
    World::SetUp();
    ca = a->cq();
    cb = b->cq();
    qa = a->qp(QpType::ud, ca);
    qb = b->qp(QpType::ud, cb);
    for (auto [p, q] : {std::pair{a.get(), qa}, std::pair{b.get(), qb}})
      for (const auto state : {QpState::init, QpState::rtr, QpState::rts}) p->engine->set_state(*q->context, state);
    mb = b->memory(8192);
    b->gid(gid);
  }
  Cq *ca, *cb;
  Qp *qa, *qb;
  Memory mb;
  std::uint8_t gid[16];
};

TEST_F(Ud, CrossesHostsWithItsHeader) {
  b->post_recv(*qb, {{mb.p, 4096, mb.key}});
  a->post(*qa, {.opcode = WqeOpcode::send_imm, .inline_data = "datagram", .imm = 9, .dgid = gid, .dqpn = qb->context->qpn});
  EXPECT_EQ(a->wait(*ca).opcode, CqeOpcode::req);
  const auto got = b->wait(*cb);
  ASSERT_EQ(got.opcode, CqeOpcode::resp_send_imm);
  EXPECT_EQ(got.bytes, 48u);
  EXPECT_EQ(got.imm, 9u);
  EXPECT_EQ(got.rqpn, qa->context->qpn);
  EXPECT_EQ(got.grh, 1u);
  EXPECT_EQ(std::memcmp(mb.p + 40, "datagram", 8), 0);
  EXPECT_EQ(mb.p[20], std::byte{0x45});  // the IPv4 header lies in the second half
  EXPECT_EQ(std::memcmp(mb.p + 36, gid + 12, 4), 0);
}

TEST_F(Ud, DropsWhatDoesNotFit) {
  // Wrong Q_Key, no receive, unknown QP, unknown address: all complete here, none arrives.
  a->post(*qa, {.inline_data = "x", .dgid = gid, .dqpn = qb->context->qpn, .qkey = 1});
  a->post(*qa, {.inline_data = "x", .dgid = gid, .dqpn = qb->context->qpn});
  a->post(*qa, {.inline_data = "x", .dgid = gid, .dqpn = 0x7fffff});
  const std::uint8_t nobody[16] = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 9, 9, 9, 9};
  a->post(*qa, {.inline_data = "x", .dgid = nobody, .dqpn = qb->context->qpn});
  for (int i = 0; i < 4; ++i) EXPECT_EQ(a->wait(*ca).opcode, CqeOpcode::req);
  b->post_recv(*qb, {{mb.p, 4096, mb.key}});
  EXPECT_FALSE(b->poll(*cb).valid);
}

// The link holds a datagram for a receiver that is late, gives up one that does not post, and then drops the next at once.
TEST_F(Ud, ALateReceiveStillGetsTheDatagram) {
  const Process::Wr send{.inline_data = "x", .dgid = gid, .dqpn = qb->context->qpn};
  a->post(*qa, send);  // it has never posted
  EXPECT_TRUE(a->poll(*ca).valid);
  b->post_recv(*qb, {{mb.p, 4096, mb.key}});
  a->post(*qa, send);
  EXPECT_TRUE(a->wait(*ca).valid);
  EXPECT_TRUE(b->wait(*cb).valid);
  a->post(*qa, send);
  EXPECT_FALSE(a->poll(*ca).valid);
  b->post_recv(*qb, {{mb.p, 4096, mb.key}});
  EXPECT_EQ(a->wait(*ca).opcode, CqeOpcode::req);
  EXPECT_TRUE(b->wait(*cb).valid);
  a->post(*qa, send);
  EXPECT_FALSE(a->poll(*ca).valid);
  EXPECT_TRUE(a->wait(*ca).valid);
  a->post(*qa, send);
  EXPECT_TRUE(a->poll(*ca).valid);
  b->post_recv(*qb, {{mb.p, 4096, mb.key}});
  EXPECT_FALSE(b->poll(*cb).valid);
  a->post(*qa, send);
  EXPECT_TRUE(a->poll(*ca).valid);
  EXPECT_TRUE(b->wait(*cb).valid);
  a->post(*qa, send);  // it posts again: worth waiting for
  EXPECT_FALSE(a->poll(*ca).valid);
}

TEST_F(Ud, TooLongIsALocalLengthErrorAndSqe) {
  Memory ma = a->memory(8192);
  a->post(*qa, {.sges = {{ma.p, 4097, ma.key}}, .dgid = gid, .dqpn = qb->context->qpn});
  EXPECT_EQ(a->wait(*ca).syndrome, static_cast<unsigned>(CqeSyndrome::local_length_err));
  EXPECT_EQ(static_cast<QpState>(qa->context->state.load()), QpState::sqer);
  a->engine->set_state(*qa->context, QpState::rts);
  b->post_recv(*qb, {{mb.p, 4096, mb.key}});
  a->post(*qa, {.inline_data = "again", .dgid = gid, .dqpn = qb->context->qpn});
  EXPECT_EQ(b->wait(*cb).bytes, 45u);
}

TEST_F(Ud, MulticastReachesEveryMemberAndTheSenderUnlessItBlocksThat) {
  std::uint8_t group[16] = {0xff, 0x0e, 1};
  Qp* second = b->qp(QpType::ud, cb);
  for (const auto state : {QpState::init, QpState::rtr, QpState::rts}) b->engine->set_state(*second->context, state);
  ASSERT_EQ(a->nic->attach_multicast(group, qa->context->qpn), 0);
  ASSERT_EQ(b->nic->attach_multicast(group, qb->context->qpn), 0);
  ASSERT_EQ(b->nic->attach_multicast(group, second->context->qpn), 0);
  Memory ma = a->memory(4096);
  a->post_recv(*qa, {{ma.p, 4096, ma.key}});
  b->post_recv(*qb, {{mb.p, 4096, mb.key}});
  b->post_recv(*second, {{mb.p + 4096, 4096, mb.key}});
  a->post(*qa, {.inline_data = "all", .dgid = group, .dqpn = 0xffffff});
  EXPECT_EQ(a->wait(*ca).bytes, 43u);  // its own copy, placed before the request completes
  EXPECT_EQ(a->wait(*ca).opcode, CqeOpcode::req);
  EXPECT_EQ(b->wait(*cb).bytes, 43u);
  EXPECT_EQ(b->wait(*cb).bytes, 43u);
  EXPECT_FALSE(a->poll(*ca).valid);

  qa->context->block_lb_mc = 1;
  a->post_recv(*qa, {{ma.p, 4096, ma.key}});
  b->post_recv(*qb, {{mb.p, 4096, mb.key}});
  b->post_recv(*second, {{mb.p + 4096, 4096, mb.key}});
  a->post(*qa, {.inline_data = "all", .dgid = group, .dqpn = 0xffffff});
  EXPECT_EQ(a->wait(*ca).opcode, CqeOpcode::req);
  EXPECT_EQ(b->wait(*cb).bytes, 43u);
  EXPECT_EQ(b->wait(*cb).bytes, 43u);
  EXPECT_FALSE(a->poll(*ca).valid);
}

class Other : public World {};

TEST_F(Other, UcLosesQuietly) {
  Cq *ca = a->cq(), *cb = b->cq();
  Qp *qa = a->qp(QpType::uc, ca), *qb = b->qp(QpType::uc, cb);
  connect(*qa, *qb);
  a->post(*qa, {.inline_data = "lost"});
  EXPECT_EQ(a->wait(*ca).opcode, CqeOpcode::req);
  Memory mb = b->memory(4096);
  b->post_recv(*qb, {{mb.p, 4096, mb.key}});
  a->post(*qa, {.opcode = WqeOpcode::rdma_write, .inline_data = "no such key", .raddr = 1, .rkey = 0x12345678});
  EXPECT_EQ(a->wait(*ca).opcode, CqeOpcode::req);
  a->post(*qa, {.inline_data = "kept"});
  EXPECT_EQ(b->wait(*cb).bytes, 4u);
}

TEST_F(Other, SrqIsSharedAndWarns) {
  Cq *ca = a->cq(), *cb = b->cq();
  SrqContext* srq = b->nic->alloc_srq();
  auto* ring = b->dma(4096);
  auto* dbrec = b->dma(4096);
  srq->pdn = kPd;
  srq->ring = {reinterpret_cast<std::uint64_t>(ring), 4, 6};
  srq->dbrec_va = reinterpret_cast<std::uint64_t>(dbrec);
  Memory mb = b->memory(65536);
  for (unsigned i = 0; i < 16; ++i) {
    prm::View<prm::SrqNextSeg>(ring + i * 64).set<prm::SrqNextSeg::next_wqe_index>((i + 1) % 16);
    prm::View<prm::DataSeg>(ring + i * 64 + 16)
        .set<prm::DataSeg::byte_count>(4096)
        .set<prm::DataSeg::lkey>(mb.key)
        .set<prm::DataSeg::addr>(reinterpret_cast<std::uint64_t>(mb.p + i * 4096));
    prm::View<prm::DataSeg>(ring + i * 64 + 32).set<prm::DataSeg::lkey>(prm::kInvalidLkey);
  }
  prm::store_be32(dbrec, 3);
  srq->limit = 2;
  b->nic->publish(*srq);
  EqContext* eq = b->nic->alloc_eq();
  auto* eqring = b->dma(4096);
  eq->ring = {reinterpret_cast<std::uint64_t>(eqring), 6, 6};
  eq->event_mask[0] = 1ull << static_cast<unsigned>(prm::EventType::srq_rq_limit) |
                      1ull << static_cast<unsigned>(prm::EventType::srq_last_wqe);
  b->nic->publish(*eq);
  std::vector<Qp*> senders;
  std::vector<Qp*> receivers;
  for (int i = 0; i < 2; ++i) {
    senders.push_back(a->qp(QpType::rc, ca));
    receivers.push_back(b->qp(QpType::rc, cb, 6, 6, srq));
    connect(*senders[i], *receivers[i]);
  }
  for (int i = 0; i < 2; ++i) {
    a->post(*senders[i], {.inline_data = "shared"});
    EXPECT_EQ(a->wait(*ca).opcode, CqeOpcode::req);
    const auto got = b->wait(*cb);
    EXPECT_EQ(got.counter, static_cast<unsigned>(i));
    EXPECT_EQ(got.qpn, receivers[i]->context->qpn);
  }
  EXPECT_EQ(srq->limit.load(), 0u);
  EXPECT_EQ(eq->pi, 1u);
  EXPECT_EQ(prm::ConstView<prm::Eqe>(eqring).get<prm::Eqe::event_type>(), prm::EventType::srq_rq_limit);
  b->engine->move_to_error(*receivers[0]->context);
  EXPECT_EQ(eq->pi, 2u);
  EXPECT_EQ(prm::ConstView<prm::Eqe>(eqring + 64).get<prm::Eqe::event_type>(), prm::EventType::srq_last_wqe);
}

TEST_F(Other, Type2WindowsBindAndInvalidate) {
  Cq *ca = a->cq(), *cb = b->cq();
  Qp *qa = a->qp(QpType::rc, ca), *qb = b->qp(QpType::rc, cb);
  connect(*qa, *qb);
  Memory mb = b->memory(8192, kMkeyLocalRead | kMkeyLocalWrite);
  MkeyContext* mw = b->nic->alloc_mkey();
  mw->pdn = kPd;
  mw->qpn = 0xffffff;
  mw->flags = kMkeyFree | kMkeyUmr | kMkeyLocalRead | kMkeyRemoteInvalidate;
  mw->mode = MkeyMode::klm;
  mw->translations = b->nic->alloc_table(1);
  mw->entries = 1;
  b->nic->publish(*mw);
  const std::uint32_t key = mw->key.load();
  alignas(64) std::byte w[192]{};
  prm::View<prm::CtrlSeg>(w).set<prm::CtrlSeg::opcode>(WqeOpcode::umr).set<prm::CtrlSeg::qpn>(qb->context->qpn).set<prm::CtrlSeg::ds>(12)
      .set<prm::CtrlSeg::ce>(prm::WqeCompletion::always).set<prm::CtrlSeg::imm>(key);
  using M = prm::UmrMkeyMask;
  const prm::View<prm::UmrCtrlSeg> umr(w + 16);
  umr.set<prm::UmrCtrlSeg::flags>(prm::UmrFlag::inline_ | prm::UmrFlag::check_free | prm::UmrFlag::translation_offset);
  umr.set<prm::UmrCtrlSeg::klm_octowords>(4);
  umr.set<prm::UmrCtrlSeg::mkey_mask>(M::free | M::key | M::qpn | M::len | M::start_addr | M::lw | M::rr | M::rw | M::a);
  const prm::View<prm::Mkc> mkc(w + 64);
  mkc.set<prm::Mkc::qpn>(qb->context->qpn).set<prm::Mkc::mkey_7_0>(1).set<prm::Mkc::rw>(1);
  mkc.set<prm::Mkc::start_addr>(reinterpret_cast<std::uint64_t>(mb.p)).set<prm::Mkc::len>(4096);
  prm::View<prm::Klm>(w + 128).set<prm::Klm::byte_count>(4096).set<prm::Klm::key>(mb.key).set<prm::Klm::address>(
      reinterpret_cast<std::uint64_t>(mb.p));
  b->raw_wqe(*qb, w, 192);
  b->engine->ring_sq(*qb->context);
  ASSERT_EQ(b->wait(*cb).opcode, CqeOpcode::req);
  const std::uint32_t rkey = (key & ~0xffu) | 1;
  a->post(*qa, {.opcode = WqeOpcode::rdma_write, .inline_data = "window", .raddr = reinterpret_cast<std::uint64_t>(mb.p), .rkey = rkey});
  ASSERT_EQ(a->wait(*ca).opcode, CqeOpcode::req);
  EXPECT_EQ(std::memcmp(mb.p, "window", 6), 0);
  b->post_recv(*qb, {});
  a->post(*qa, {.opcode = WqeOpcode::send_inval, .imm = rkey});
  ASSERT_EQ(a->wait(*ca).opcode, CqeOpcode::req);
  const auto got = b->wait(*cb);
  EXPECT_EQ(got.opcode, CqeOpcode::resp_send_inv);
  EXPECT_EQ(got.imm, rkey);
  a->post(*qa, {.opcode = WqeOpcode::rdma_write, .inline_data = "window", .raddr = reinterpret_cast<std::uint64_t>(mb.p), .rkey = rkey});
  EXPECT_EQ(a->wait(*ca).syndrome, static_cast<unsigned>(CqeSyndrome::remote_access_err));
}

TEST_F(Other, CorruptedContextsNeverCrash) {
  if (kThreadSanitizer) GTEST_SKIP() << "scribbles on shared words without a lock, which is the point";
  Cq *ca = a->cq(), *cb = b->cq();
  Qp *qa = a->qp(QpType::rc, ca), *qb = b->qp(QpType::rc, cb);
  connect(*qa, *qb);
  Memory mb = b->memory(4096);
  unsigned seed = 1;
  const auto random = [&seed] { return seed = seed * 1664525u + 1013904223u; };
  // Locks stay out: a lock word that names a live process is waited for, by design.
  for (int round = 0; round < 3000; ++round) {
    auto* words = reinterpret_cast<std::uint8_t*>(qb->context);
    const unsigned at = random() % sizeof(QpContext);
    const auto sq = offsetof(QpContext, sq_lock), rx = offsetof(QpContext, rx_lock);
    if ((at >= sq && at < sq + 4) || (at >= rx && at < rx + 4)) continue;
    words[at] = static_cast<std::uint8_t>(random() >> 8);
    qb->context->qpn = qa->context->dest_qpn;
    if (round % 3 == 0) b->post_recv(*qb, {{mb.p, 64, mb.key}});
    a->write_wqe(*qa, {.opcode = round % 2 != 0 ? WqeOpcode::send : WqeOpcode::rdma_write, .inline_data = "x",
                       .raddr = reinterpret_cast<std::uint64_t>(mb.p), .rkey = mb.key});
    a->engine->ring_sq(*qa->context);
    while (a->poll(*ca).valid) {
    }
    if (static_cast<QpState>(qa->context->state.load()) != QpState::rts || qa->context->deadline_ns != 0) {
      a->engine->reset(*qa->context);
      qa->sq_pi = 0;
      prm::store_be32(qa->dbrec + 4, 0);
      qb->context->state = static_cast<std::uint32_t>(QpState::rts);
      ready(*a, *qa, *b, *qb->context, qb->context->epsn & 0xffffff);
    }
  }
}

}  // namespace
}  // namespace verbena::device::test
