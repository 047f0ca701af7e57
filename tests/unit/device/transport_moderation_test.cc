// Event moderation: which completions make an armed CQ tell, and when. By a clock that the test moves.
#include "device/transport/clock.h"
#include "device/transport/impl.h"
#include "transport_world.h"

namespace verbena::device::test {
namespace {

constexpr std::uint64_t kUs = 1000;

class Moderation : public RcPair {
 protected:
  void SetUp() override {
    RcPair::SetUp();
    mb = b->memory(4096);
    eq = events(*cb);
    for (int i = 0; i < 40; ++i) b->post_recv(*qb, {{mb.p, 64, mb.key}});
    // Helper threads wait for the machine's clock: here the test does their work.
    a->engine->impl().stop_helper();
    b->engine->impl().stop_helper();
    stop_clock(device_clock());
  }
  void TearDown() override {
    stop_clock(0);
    RcPair::TearDown();
  }
  // An EQ for the CQ's completions and all asynchronous events.
  EqContext* events(Cq& cq) {
    EqContext* made = b->nic->alloc_eq();
    auto* ring = b->dma(4096);
    for (int i = 0; i < 64; ++i) ring[i * 64 + 63] = std::byte{1};
    made->ring = {reinterpret_cast<std::uint64_t>(ring), 6, 6};
    made->event_mask[0] = ~1ull;
    b->nic->publish(*made);
    cq.context->eq = made->eqn;
    return made;
  }
  void moderate(std::uint16_t count, std::uint16_t period_us, std::uint8_t more = 0) {
    cb->context->max_count = count;
    cb->context->period_us = period_us;
    cb->context->features = static_cast<std::uint8_t>(kCqModerated | more);
  }
  void arm(bool solicited = false) {
    prm::View<prm::CqDbr>(cb->dbrec).set<prm::CqDbr::arm_ci>(cb->ci).set<prm::CqDbr::arm_solicited>(solicited);
    b->engine->arm_cq(*cb->context);
  }
  void send(int n = 1, bool solicited = false) {
    for (; n != 0; --n) {
      a->post(*qa, {.inline_data = "x", .solicited = solicited});
      ASSERT_TRUE(a->poll(*ca).valid);
    }
  }
  void receive(int n) {
    for (; n != 0; --n) ASSERT_TRUE(b->poll(*cb).valid);
  }
  // Microseconds go by; the owner looks at its timers.
  void pass(std::uint64_t us) {
    b->engine->step();
    stop_clock(device_clock() + us * kUs);
    b->engine->step();
  }
  // Raises an event now, so that the period of START_FROM_EQE begins.
  void begin() {
    pass(5000);
    arm();
    send();
    receive(1);
    ASSERT_EQ(eq->pi, ++told);
  }

  Memory mb;
  EqContext* eq;
  std::uint32_t told = 0;
};

TEST_F(Moderation, CountGathers) {
  moderate(4, 4000);
  begin();
  for (int round = 1; round < 3; ++round) {
    arm();
    send(3);
    EXPECT_EQ(eq->pi, told);
    EXPECT_EQ(cb->context->arm, kCqArmed);
    send();
    EXPECT_EQ(eq->pi, ++told);
    send(2);  // not armed: they count for the next event
    receive(6);
    arm();
    EXPECT_EQ(eq->pi, told);
    send(2);
    EXPECT_EQ(eq->pi, ++told);
    receive(2);
  }
  pass(10'000);
  EXPECT_EQ(eq->pi, told) << "the timers that were set owe nothing any more";
}

TEST_F(Moderation, PeriodFromTheLastEvent) {
  moderate(100, 50);
  begin();
  arm();
  pass(10);
  send();
  pass(39);
  send();
  EXPECT_EQ(eq->pi, told);
  pass(1);
  EXPECT_EQ(eq->pi, ++told);
  receive(2);
  arm();
  pass(1000);
  EXPECT_EQ(eq->pi, told) << "nothing to tell of";
  send();
  EXPECT_EQ(eq->pi, ++told) << "the period is over";
}

TEST_F(Moderation, PeriodFromTheNewestCompletion) {
  moderate(5, 50, kCqPeriodFromCqe);
  pass(5000);
  arm();
  for (int i = 0; i < 4; ++i) {
    send();
    pass(40);
    EXPECT_EQ(eq->pi, told);
  }
  pass(9);
  EXPECT_EQ(eq->pi, told);
  pass(1);
  EXPECT_EQ(eq->pi, ++told);
  receive(4);
  arm();
  for (int i = 0; i < 5; ++i) {
    pass(40);
    EXPECT_EQ(eq->pi, told);
    send();
  }
  EXPECT_EQ(eq->pi, ++told) << "the count";
}

TEST_F(Moderation, ArmedAfterTheFact) {
  moderate(4, 50);
  begin();
  send(3);
  arm();
  EXPECT_EQ(eq->pi, told) << "three are too few";
  pass(50);
  EXPECT_EQ(eq->pi, ++told);
  send(4);
  arm();
  EXPECT_EQ(eq->pi, ++told) << "enough are there";
  arm();
  pass(60);
  EXPECT_EQ(eq->pi, told) << "each is told of once";
  moderate(4, 50, kCqPeriodFromCqe);
  receive(7);
  send();
  arm();
  pass(30);
  EXPECT_EQ(eq->pi, told);
  pass(20);
  EXPECT_EQ(eq->pi, ++told) << "50 us after the completion";
}

TEST_F(Moderation, SolicitedCompletions) {
  moderate(4, 50, kCqSolicitedBreaks);
  begin();
  arm();
  send(1);
  EXPECT_EQ(eq->pi, told);
  send(1, true);
  EXPECT_EQ(eq->pi, ++told);
  receive(2);
  send(1, true);
  arm();
  EXPECT_EQ(eq->pi, ++told) << "armed after it";
  receive(1);
  moderate(4, 50);
  arm(true);
  send(3);
  pass(100);
  EXPECT_EQ(eq->pi, told) << "none of them counts for who waits for solicited ones";
  EXPECT_EQ(cb->context->event_due_ns, 0u);
  receive(3);
  pass(100);
  arm();
  send(1);
  EXPECT_EQ(eq->pi, ++told);
  receive(1);
  arm(true);
  send(1, true);
  EXPECT_EQ(eq->pi, told) << "without the bit they wait as others do";
  pass(50);
  EXPECT_EQ(eq->pi, ++told);
}

TEST_F(Moderation, ChangesWhileAnEventIsOwed) {
  moderate(100, 4000);
  begin();
  arm();
  send();
  pass(1);
  cb->context->period_us = 20;
  b->engine->moderate(*cb->context);
  pass(10);
  EXPECT_EQ(eq->pi, told);
  pass(10);
  EXPECT_EQ(eq->pi, ++told) << "the new period counts";
  moderate(100, 4000);
  receive(1);
  arm();
  send(2);
  cb->context->max_count = 2;
  b->engine->moderate(*cb->context);
  EXPECT_EQ(eq->pi, ++told) << "enough by the new count";
  moderate(100, 4000);
  receive(2);
  arm();
  send();
  cb->context->features = 0;
  b->engine->moderate(*cb->context);
  EXPECT_EQ(eq->pi, ++told) << "moderated no more";
  b->engine->moderate(*cb->context);
  EXPECT_EQ(eq->pi, told);
}

TEST_F(Moderation, TheWriterMayDie) {
  moderate(100, 50);
  begin();
  arm();
  send();
  a.reset();
  pass(50);
  EXPECT_EQ(eq->pi, ++told);
}

TEST_F(Moderation, ADestroyedQueueOwesNothing) {
  moderate(100, 50);
  begin();
  arm();
  send();
  b->engine->step();
  EXPECT_NE(cb->context->event_due_ns, 0u);
  const std::uint32_t index = cb->context->cqn;
  b->nic->free_cq(*cb->context);
  pass(100);
  EXPECT_EQ(eq->pi, told);
  CqContext* next = nullptr;
  while (next == nullptr || next->cqn != index) {
    next = b->nic->alloc_cq();
    ASSERT_NE(next, nullptr);
  }
  EXPECT_EQ(next->event_due_ns | next->due_asked | next->features, 0u);
}

TEST_F(Moderation, AnOverflowIsToldOfAtOnce) {
  Cq* small = b->cq(1);
  qb->context->recv_cq = small->context->cqn;
  small->context->eq = eq->eqn;
  cb = small;
  moderate(100, 50);
  begin();
  arm();
  send();
  EXPECT_EQ(eq->pi, told);
  send();
  EXPECT_EQ(eq->pi, told);
  a->post(*qa, {.inline_data = "x"});
  EXPECT_EQ(small->context->status, 9u);
  const std::uint32_t seen = eq->pi;
  EXPECT_GT(seen, told) << "the overflow";
  pass(50);
  EXPECT_EQ(eq->pi, seen + 1) << "and what was owed";
}

TEST_F(Moderation, OneTimerAQueue) {
  moderate(2, 4000);
  begin();
  for (int i = 0; i < 8; ++i) {
    arm();
    send();
    b->engine->step();
    b->engine->moderate(*cb->context);
    b->engine->step();
    send();
    EXPECT_EQ(eq->pi, ++told);
    receive(2);
  }
  EXPECT_EQ(b->engine->impl().cq_timer_count(), 1u);
  pass(4000);
  EXPECT_EQ(b->engine->impl().cq_timer_count(), 0u);
}

// By the helper thread and the machine's clock: nobody polls.
TEST_F(RcPair, AnOwedEventComesToAProcessThatSleeps) {
  const Memory mb = b->memory(4096);
  EqContext* eq = b->nic->alloc_eq();
  auto* ring = b->dma(4096);
  for (int i = 0; i < 64; ++i) ring[i * 64 + 63] = std::byte{1};
  eq->ring = {reinterpret_cast<std::uint64_t>(ring), 6, 6};
  b->nic->publish(*eq);
  cb->context->eq = eq->eqn;
  cb->context->max_count = 100;
  cb->context->period_us = 4000;
  cb->context->features = kCqModerated | kCqPeriodFromCqe;
  std::atomic<std::uint64_t> came{0};
  b->engine->set_interrupt_handler([&](unsigned) { came = monotonic_ns(); });
  b->post_recv(*qb, {{mb.p, 64, mb.key}});
  b->engine->arm_cq(*cb->context);
  b->engine->step();
  const std::uint64_t sent = monotonic_ns();
  a->post(*qa, {.inline_data = "x"});
  EXPECT_EQ(came, 0u);
  for (int i = 0; i < 3000 && came == 0; ++i) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  ASSERT_NE(came, 0u);
  EXPECT_GE(came - sent, 3'900'000u);
}

}  // namespace
}  // namespace verbena::device::test
