// RC between two attachments: every operation, every NAK, retries, flushes.
#include <signal.h>
#include <sys/mman.h>

#include "transport_world.h"

namespace verbena::device::test {
namespace {

using prm::CqeOpcode;
using prm::CqeSyndrome;
using prm::WqeOpcode;

unsigned syn(CqeSyndrome s) { return static_cast<unsigned>(s); }

class Rc : public RcPair {
 protected:
  void SetUp() override {
    RcPair::SetUp();
    ma = a->memory(1 << 20);
    mb = b->memory(1 << 20);
  }
  Memory ma, mb;
};

TEST_F(Rc, SendCarriesDataAndImmediate) {
  for (int i = 0; i < 300; ++i) {  // wraps every ring and the PSN
    std::memset(ma.p, i, 5000);
    b->post_recv(*qb, {{mb.p, 1000, mb.key}, {mb.p + 8192, 4000, mb.key}});
    a->post(*qa, {.opcode = WqeOpcode::send_imm, .sges = {{ma.p, 5000, ma.key}}, .imm = 77});
    const auto sent = a->wait(*ca);
    ASSERT_TRUE(sent.valid);
    ASSERT_EQ(sent.opcode, CqeOpcode::req) << sent.syndrome;
    const auto got = b->wait(*cb);
    ASSERT_EQ(got.opcode, CqeOpcode::resp_send_imm);
    EXPECT_EQ(got.bytes, 5000u);
    EXPECT_EQ(got.imm, 77u);
    EXPECT_EQ(got.counter, static_cast<unsigned>(i));
    EXPECT_EQ(mb.p[999], static_cast<std::byte>(i));
    EXPECT_EQ(mb.p[8192 + 3999], static_cast<std::byte>(i));
  }
}

// DPDK's senders count the entries they have taken by 16 bits.
TEST_F(Rc, ConsumerIndexOfSixteenBits) {
  constexpr std::uint32_t kTurn = 1u << 16;
  const std::uint32_t entries = 1u << ca->context->ring.log_entries;
  ca->context->pi = kTurn + entries - 1;
  ca->context->ci_seen = kTurn;
  prm::View<prm::CqDbr>(ca->dbrec).set<prm::CqDbr::update_ci>(entries - 2);
  a->post(*qa, {.opcode = WqeOpcode::rdma_write, .inline_data = "one"});
  a->post(*qa, {.opcode = WqeOpcode::rdma_write, .inline_data = "two"});
  EXPECT_EQ(ca->context->pi, kTurn + entries + 1);
  EXPECT_EQ(ca->context->status, 0);
}

TEST_F(Rc, LargeMessagesTakeSeveralTurns) {
  for (std::size_t i = 0; i < ma.bytes; ++i) ma.p[i] = static_cast<std::byte>(i * 7);
  a->post(*qa, {.opcode = WqeOpcode::rdma_write, .sges = {{ma.p, 1 << 20, ma.key}},
                .raddr = reinterpret_cast<std::uint64_t>(mb.p), .rkey = mb.key});
  ASSERT_EQ(a->wait(*ca).opcode, CqeOpcode::req);
  EXPECT_EQ(std::memcmp(ma.p, mb.p, 1 << 20), 0);
  std::memset(ma.p, 0, 1 << 20);
  a->post(*qa, {.opcode = WqeOpcode::rdma_read, .sges = {{ma.p, 1 << 20, ma.key}},
                .raddr = reinterpret_cast<std::uint64_t>(mb.p), .rkey = mb.key});
  const auto read = a->wait(*ca);
  ASSERT_EQ(read.opcode, CqeOpcode::req) << read.syndrome;
  EXPECT_EQ(read.bytes, 1u << 20);
  EXPECT_EQ(std::memcmp(ma.p, mb.p, 1 << 20), 0);
  EXPECT_EQ(qa->context->next_psn, qb->context->epsn);
}

// Also where the way was known before it went down.
TEST_F(Rc, APortThatIsDownCarriesNothing) {
  const auto write = [&] {
    a->post(*qa, {.opcode = WqeOpcode::rdma_write, .sges = {{ma.p, 8, ma.key}},
                  .raddr = reinterpret_cast<std::uint64_t>(mb.p), .rkey = mb.key});
    return a->wait(*ca);
  };
  ASSERT_EQ(write().opcode, CqeOpcode::req);
  EXPECT_TRUE(a->nic->set_port(0, false));
  const auto failed = write();
  EXPECT_EQ(failed.opcode, CqeOpcode::req_err);
  EXPECT_EQ(failed.syndrome, syn(CqeSyndrome::transport_retry_exc_err));
  EXPECT_FALSE(a->nic->set_port(0, true));
  connect(*qa, *qb);
  EXPECT_EQ(write().opcode, CqeOpcode::req);
}

TEST_F(Rc, AtomicsReturnTheOriginal) {
  auto* word = reinterpret_cast<std::uint64_t*>(mb.p);
  *word = 40;
  const auto raddr = reinterpret_cast<std::uint64_t>(mb.p);
  a->post(*qa, {.opcode = WqeOpcode::atomic_fa, .sges = {{ma.p, 8, ma.key}}, .raddr = raddr, .rkey = mb.key, .swap_add = 2});
  ASSERT_EQ(a->wait(*ca).opcode, CqeOpcode::req);
  EXPECT_EQ(*word, 42u);
  EXPECT_EQ(*reinterpret_cast<std::uint64_t*>(ma.p), 40u);
  a->post(*qa, {.opcode = WqeOpcode::atomic_cs, .sges = {{ma.p, 8, ma.key}}, .raddr = raddr, .rkey = mb.key, .swap_add = 1, .compare = 42});
  ASSERT_EQ(a->wait(*ca).opcode, CqeOpcode::req);
  EXPECT_EQ(*word, 1u);
  a->post(*qa, {.opcode = WqeOpcode::atomic_cs, .sges = {{ma.p, 8, ma.key}}, .raddr = raddr, .rkey = mb.key, .swap_add = 9, .compare = 42});
  ASSERT_EQ(a->wait(*ca).opcode, CqeOpcode::req);
  EXPECT_EQ(*word, 1u);
  EXPECT_EQ(*reinterpret_cast<std::uint64_t*>(ma.p), 1u);
}

TEST_F(Rc, InlineAndWriteWithImmediate) {
  b->post_recv(*qb, {});
  a->post(*qa, {.opcode = WqeOpcode::rdma_write_imm, .inline_data = "hello, verbena: twenty-six", .imm = 5,
                .raddr = reinterpret_cast<std::uint64_t>(mb.p), .rkey = mb.key});
  ASSERT_EQ(a->wait(*ca).opcode, CqeOpcode::req);
  const auto got = b->wait(*cb);
  EXPECT_EQ(got.opcode, CqeOpcode::resp_wr_imm);
  EXPECT_EQ(got.imm, 5u);
  EXPECT_EQ(got.bytes, 26u);
  EXPECT_EQ(std::memcmp(mb.p, "hello, verbena: twenty-six", 26), 0);
}

TEST_F(Rc, SmallPayloadScattersIntoTheCqe) {
  qb->context->cs_res = 1;
  b->post_recv(*qb, {{mb.p, 64, mb.key}});
  a->post(*qa, {.inline_data = "in the cqe"});
  const auto got = b->wait(*cb);
  ASSERT_EQ(got.opcode, CqeOpcode::resp_send);
  EXPECT_EQ(got.format, 1u);
  EXPECT_EQ(std::memcmp(got.raw, "in the cqe", 10), 0);
  EXPECT_EQ(mb.p[0], std::byte{0});
}

TEST_F(Rc, ReceiverNotReadyRetriesThenGivesUp) {
  a->post(*qa, {.inline_data = "late"});
  EXPECT_FALSE(a->poll(*ca).valid);
  b->post_recv(*qb, {{mb.p, 64, mb.key}});
  EXPECT_EQ(a->wait(*ca).opcode, CqeOpcode::req);
  EXPECT_EQ(b->wait(*cb).opcode, CqeOpcode::resp_send);
  a->post(*qa, {.inline_data = "never"});
  const auto failed = a->wait(*ca);
  EXPECT_EQ(failed.opcode, CqeOpcode::req_err);
  EXPECT_EQ(failed.syndrome, syn(CqeSyndrome::rnr_retry_exc_err));
  EXPECT_EQ(failed.vendor, 0x87u);
  EXPECT_EQ(static_cast<QpState>(qa->context->state.load()), QpState::err);
}

TEST_F(Rc, RemoteAccessErrorEndsBothSides) {
  b->post_recv(*qb, {{mb.p, 64, mb.key}});
  a->write_wqe(*qa, {.opcode = WqeOpcode::rdma_write, .inline_data = "x", .raddr = reinterpret_cast<std::uint64_t>(mb.p) + mb.bytes, .rkey = mb.key});
  a->post(*qa, {.inline_data = "flushed", .signaled = false});
  auto done = a->wait(*ca);
  EXPECT_EQ(done.syndrome, syn(CqeSyndrome::remote_access_err));
  EXPECT_EQ(done.vendor, 0x88u);
  done = a->wait(*ca);
  EXPECT_EQ(done.syndrome, syn(CqeSyndrome::wr_flush_err));
  EXPECT_EQ(done.vendor, 0xf9u);
  EXPECT_EQ(done.counter, 1u);
  EXPECT_EQ(b->wait(*cb).syndrome, syn(CqeSyndrome::wr_flush_err));
  EXPECT_EQ(static_cast<QpState>(qb->context->state.load()), QpState::err);
  // Whatever is posted later is flushed too, sends by the doorbell, receives by looking.
  a->post(*qa, {.inline_data = "later"});
  EXPECT_EQ(a->wait(*ca).syndrome, syn(CqeSyndrome::wr_flush_err));
  b->post_recv(*qb, {{mb.p, 64, mb.key}});
  EXPECT_EQ(b->wait(*cb).syndrome, syn(CqeSyndrome::wr_flush_err));
}

TEST_F(Rc, TooLongForTheReceiver) {
  b->post_recv(*qb, {{mb.p, 16, mb.key}});
  a->post(*qa, {.sges = {{ma.p, 17, ma.key}}});
  EXPECT_EQ(b->wait(*cb).syndrome, syn(CqeSyndrome::local_length_err));
  EXPECT_EQ(a->wait(*ca).syndrome, syn(CqeSyndrome::remote_inval_req_err));
}

TEST_F(Rc, LocalProtection) {
  a->post(*qa, {.sges = {{ma.p, 16, ma.key ^ 1}}});
  EXPECT_EQ(a->wait(*ca).syndrome, syn(CqeSyndrome::local_prot_err));
}

TEST_F(Rc, UnmappedMemoryIsAnErrorNotASignal) {
  void* hole = mmap(nullptr, 8192, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  const std::uint32_t key = a->key(hole, 8192, kAllRights);
  b->post_recv(*qb, {{mb.p, 8192, mb.key}});
  a->post(*qa, {.sges = {{hole, 8192, key}}});
  EXPECT_EQ(a->wait(*ca).syndrome, syn(CqeSyndrome::local_prot_err));
  munmap(hole, 8192);
}

TEST_F(Rc, UnmappedRemoteMemoryFailsTheOperation) {
  void* hole = mmap(nullptr, 8192, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  const std::uint32_t key = b->key(hole, 8192, kAllRights);
  a->post(*qa, {.opcode = WqeOpcode::rdma_write, .inline_data = "x", .raddr = reinterpret_cast<std::uint64_t>(hole), .rkey = key});
  EXPECT_EQ(a->wait(*ca).syndrome, syn(CqeSyndrome::remote_op_err));
  munmap(hole, 8192);
}

TEST_F(Rc, PeerInResetTimesOut) {
  b->engine->reset(*qb->context);
  a->post(*qa, {.inline_data = "anyone?"});
  const auto done = a->wait(*ca);
  EXPECT_EQ(done.syndrome, syn(CqeSyndrome::transport_retry_exc_err));
  EXPECT_EQ(done.vendor, 0x81u);
}

TEST_F(Rc, PeerThatComesBackInTimeIsNotNoticed) {
  qa->context->ack_timeout = 12;  // 17 ms
  qa->context->retry_count = 7;
  b->engine->reset(*qb->context);
  b->post_recv(*qb, {});
  qb->rq_pi = 0;
  prm::store_be32(qb->dbrec, 0);
  a->post(*qa, {.opcode = WqeOpcode::rdma_write, .inline_data = "again", .raddr = reinterpret_cast<std::uint64_t>(mb.p), .rkey = mb.key});
  ready(*b, *qb, *a, *qa->context);
  EXPECT_EQ(a->wait(*ca).opcode, CqeOpcode::req);
  EXPECT_EQ(std::memcmp(mb.p, "again", 5), 0);
}

TEST_F(Rc, SequenceMismatchEndsInRetryExceeded) {
  qb->context->epsn = 0xff0000;
  a->post(*qa, {.opcode = WqeOpcode::rdma_write, .inline_data = "x", .raddr = reinterpret_cast<std::uint64_t>(mb.p), .rkey = mb.key});
  EXPECT_EQ(a->wait(*ca).syndrome, syn(CqeSyndrome::transport_retry_exc_err));
}

TEST_F(Rc, RightsOfTheQpCount) {
  qb->context->rre = false;
  a->post(*qa, {.opcode = WqeOpcode::rdma_read, .sges = {{ma.p, 8, ma.key}}, .raddr = reinterpret_cast<std::uint64_t>(mb.p), .rkey = mb.key});
  EXPECT_EQ(a->wait(*ca).syndrome, syn(CqeSyndrome::remote_inval_req_err));
}

TEST_F(Rc, EveryWrongSegmentIsRefused) {
  for (unsigned opcode = 0; opcode < 0x40; ++opcode)
    for (const unsigned ds : {0u, 1u, 2u, 3u, 63u}) {
      Cq* c = a->cq();
      Qp* q = a->qp(QpType::rc, c);
      ready(*a, *q, *b, *qb->context);
      alignas(64) std::byte w[1024];
      std::memset(w, 0xff, sizeof w);
      prm::View<prm::CtrlSeg>(w)
          .set<prm::CtrlSeg::opcode>(static_cast<WqeOpcode>(opcode))
          .set<prm::CtrlSeg::ds>(ds)
          .set<prm::CtrlSeg::ce>(prm::WqeCompletion::always)
          .set<prm::CtrlSeg::qpn>(q->context->qpn);
      a->raw_wqe(*q, w, ds == 0 ? 16 : ds * 16);
      a->engine->ring_sq(*q->context);
      const auto done = a->wait(*c, 100);
      // NOP, and SEND and WRITE of no bytes, are right as they are.
      if (ds != 0 && (opcode == 0 || ((opcode == 0x0a || opcode == 0x0b) && ds == 1) ||
                      ((opcode == 0x08 || opcode == 0x09) && ds == 2)))
        continue;
      ASSERT_TRUE(done.valid || static_cast<QpState>(q->context->state.load()) == QpState::rts) << opcode << " " << ds;
      if (done.valid) {
        EXPECT_NE(done.syndrome, 0u) << opcode << " " << ds;
      }
      a->engine->remove(*q->context);
      a->nic->free_qp(*q->context);
    }
}

TEST_F(Rc, BudgetsShareTheDevice) {
  Qp* other = a->qp(QpType::rc, ca);
  Qp* sink = b->qp(QpType::rc, cb);
  ready(*a, *other, *b, *sink->context);
  ready(*b, *sink, *a, *other->context);
  const auto raddr = reinterpret_cast<std::uint64_t>(mb.p);
  for (int i = 0; i < 62; ++i)
    a->write_wqe(*qa, {.opcode = WqeOpcode::rdma_write, .sges = {{ma.p, 1 << 20, ma.key}}, .raddr = raddr, .rkey = mb.key, .signaled = i == 61});
  a->engine->ring_sq(*qa->context);
  a->post(*other, {.opcode = WqeOpcode::rdma_write, .inline_data = "quick", .raddr = raddr, .rkey = mb.key});
  EXPECT_EQ(a->wait(*ca).opcode, CqeOpcode::req);
  EXPECT_EQ(a->wait(*ca).opcode, CqeOpcode::req);
}

TEST_F(Rc, CompletionEventsFireOncePerArm) {
  EqContext* eq = b->nic->alloc_eq();
  auto* ring = b->dma(4096);
  for (int i = 0; i < 64; ++i) ring[i * 64 + 63] = std::byte{1};
  eq->ring = {reinterpret_cast<std::uint64_t>(ring), 6, 6};
  eq->intr = 3;
  b->nic->publish(*eq);
  cb->context->eq = eq->eqn;
  std::atomic<int> interrupts{0};
  b->engine->set_interrupt_handler([&](unsigned vector) { interrupts += vector == 3 ? 1 : 100; });
  const auto arm = [&](bool solicited) {
    prm::View<prm::CqDbr>(cb->dbrec).set<prm::CqDbr::arm_ci>(cb->ci).set<prm::CqDbr::arm_solicited>(solicited);
    b->engine->arm_cq(*cb->context);
  };
  const auto settle = [&] { std::this_thread::sleep_for(std::chrono::milliseconds(20)); };
  for (int i = 0; i < 8; ++i) b->post_recv(*qb, {{mb.p, 64, mb.key}});
  arm(false);
  a->post(*qa, {.inline_data = "1"});
  a->post(*qa, {.inline_data = "2"});
  settle();
  EXPECT_EQ(interrupts, 1);
  EXPECT_EQ(prm::ConstView<prm::Eqe>(ring).sub<prm::Eqe::event_data>().sub<prm::EventAuto::comp_event>().get<prm::CompEvent::cq_number>(), cb->context->cqn);
  arm(false);  // entries are there already
  settle();
  EXPECT_EQ(interrupts, 2);
  while (b->poll(*cb).valid) {
  }
  arm(true);
  a->post(*qa, {.inline_data = "3"});
  settle();
  EXPECT_EQ(interrupts, 2);
  a->post(*qa, {.inline_data = "4", .solicited = true});
  settle();
  EXPECT_EQ(interrupts, 3);
}

}  // namespace
}  // namespace verbena::device::test
