// Rates that hold packets back: packet pacing of a queue, limits and weights of scheduling elements. What is measured is
// when data arrives, by a clock that the test moves: how busy the machine is does not matter.
#include <map>

#include "device/transport/clock.h"
#include "device/transport/impl.h"
#include "transport_world.h"

namespace verbena::device::test {
namespace {

using prm::WqeOpcode;
constexpr std::int64_t kLate = 50;      // microseconds: the step of the clock, and the pauses that timers are rounded to
constexpr std::uint64_t kStepNs = 2'000;

constexpr std::uint64_t ps_per_byte(std::uint64_t kbps) { return 8'000'000'000ull / kbps; }

class Pace : public World {
 protected:
  struct Pair {
    Qp *from, *to;
    Cq *from_cq, *to_cq;
  };
  Pair pair(QpType type = QpType::rc) {
    Pair p{nullptr, nullptr, a->cq(8), b->cq(8)};
    p.from = a->qp(type, p.from_cq, 8);
    p.to = b->qp(type, p.to_cq);
    connect(*p.from, *p.to);
    quiet();
    return p;
  }
  // Helper threads wait for the machine's clock: here the test does their work, by polling.
  void quiet() {
    a->engine->impl().stop_helper();
    b->engine->impl().stop_helper();
  }
  void SetUp() override {
    World::SetUp();
    ma = a->memory(1 << 20);
    mb = b->memory(1 << 20);
    stop_clock(device_clock());
  }
  void TearDown() override {
    stop_clock(0);
    World::TearDown();
  }
  static std::int64_t now_us() { return static_cast<std::int64_t>(device_clock() / 1000); }
  // The next completion; the clock goes on while there is none.
  Completion wait(Cq& cq) {
    const std::int64_t give_up = now_us() + 5'000'000;
    for (;;) {
      const Completion done = a->poll(cq);
      if (done.valid || now_us() > give_up) return done;
      tick();
    }
  }
  static void tick() { stop_clock(device_clock() + kStepNs); }
  Shaping& shaping() { return a->engine->impl().shaping; }
  void under(Process& p, Qp& q, std::uint32_t leaf) {
    p.engine->set_state(*q.context, QpState::rts, [&](QpContext& x) {
      x.leaf = leaf;
      x.shaped = leaf != 0 ? kShapedLeaf : 0;
    });
  }
  void paced(Qp& q, std::uint16_t index) {
    a->engine->set_state(*q.context, QpState::rts, [&](QpContext& x) {
      x.rate_index = index;
      x.shaped = index != 0 ? kShapedRate : 0;
    });
  }
  Process::Wr write(std::uint32_t bytes) {
    return {.opcode = WqeOpcode::rdma_write, .sges = {{ma.p, bytes, ma.key}},
            .raddr = reinterpret_cast<std::uint64_t>(mb.p), .rkey = mb.key};
  }
  // Microseconds from `begin` until `n` completions are there.
  std::int64_t time_of(Cq& cq, int n, std::int64_t begin = now_us()) {
    for (int i = 0; i < n; ++i) EXPECT_TRUE(wait(cq).valid) << i;
    return now_us() - begin;
  }

  Memory ma, mb;
};

// 40 frames of 1024 bytes and their headers (74 or 94 bytes by IP version) at 16 Mbit/s: about 0.55 ms each.
TEST_F(Pace, AQueueKeepsItsRate) {
  const Pair p = pair();
  shaping().set_rate(5, {ps_per_byte(16'000), 0});
  paced(*p.from, 5);
  const auto begin = now_us();
  for (int i = 0; i < 40; ++i) a->post(*p.from, write(1024));
  const auto us = time_of(*p.from_cq, 40, begin);
  EXPECT_GE(us, 39 * 540);
  EXPECT_LE(us, 39 * 560 + kLate);
  // The rate of an entry in use can change; entry 0 is no limit.
  shaping().set_rate(5, {ps_per_byte(160'000), 0});
  for (int i = 0; i < 40; ++i) a->post(*p.from, write(1024));
  EXPECT_LE(time_of(*p.from_cq, 40), 560 + 39 * 56 + kLate);  // the last packet takes its time yet
  paced(*p.from, 0);
  for (int i = 0; i < 40; ++i) a->post(*p.from, write(1024));
  EXPECT_LE(time_of(*p.from_cq, 40), kLate);
}

TEST_F(Pace, ABurstGoesAtOnceAndTheRestAtTheRate) {
  const Pair p = pair();
  shaping().set_rate(5, {ps_per_byte(8'000), 11 * 1110});
  paced(*p.from, 5);
  const auto begin = now_us();
  for (int i = 0; i < 20; ++i) a->post(*p.from, write(1024));
  int at_once = 0;
  while (a->poll(*p.from_cq).valid) ++at_once;
  EXPECT_GE(at_once, 11);
  EXPECT_LE(at_once, 16);
  const auto us = time_of(*p.from_cq, 20 - at_once, begin);
  EXPECT_GE(us, (20 - at_once - 1) * 1050);
}

// Nobody polls: the helper thread does it, and sleeps in between.
TEST_F(Pace, APacedQueueNeedsNobodyAndBurnsNothing) {
  const Pair p = pair();
  stop_clock(0);
  a->engine->start_helper();
  shaping().set_rate(5, {ps_per_byte(4'000), 0});
  paced(*p.from, 5);
  for (int i = 0; i < 50; ++i) a->post(*p.from, write(1024));
  timespec before{}, after{};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &before);
  std::this_thread::sleep_for(std::chrono::milliseconds(160));
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &after);
  unsigned done = 0;
  while (a->poll(*p.from_cq).valid) ++done;
  EXPECT_GE(done, 60u * 1000 / 2300);
  EXPECT_LE(done, 50u);
  const auto burnt = (after.tv_sec - before.tv_sec) * 1000 + (after.tv_nsec - before.tv_nsec) / 1'000'000;
  if (!kThreadSanitizer) { EXPECT_LE(burnt, 60); }
}

// Two queues of one leaf share its rate.
TEST_F(Pace, TheQueuesOfALeafShareItsRate) {
  const Pair p = pair(), q = pair();
  shaping().set_element(1, 0, 1, 0);
  shaping().set_element(2, 1, 1, ps_per_byte(16'000));
  under(*a, *p.from, 2);
  under(*a, *q.from, 2);
  const auto begin = now_us();
  for (int i = 0; i < 20; ++i) {
    a->post(*p.from, write(1024));
    a->post(*q.from, write(1024));
  }
  unsigned first = 0, second = 0;
  while ((first < 20 || second < 20) && now_us() - begin < 3'000'000) {
    if (a->poll(*p.from_cq).valid) ++first;
    if (a->poll(*q.from_cq).valid) ++second;
    tick();
    EXPECT_NEAR(first, second, 2);
  }
  const auto us = now_us() - begin;
  EXPECT_GE(us, 29 * 540);  // less what the average may be ahead
  EXPECT_LE(us, 40 * 570 + kLate);
  // Out of the tree, nothing holds.
  under(*a, *q.from, 0);
  for (int i = 0; i < 20; ++i) a->post(*q.from, write(1024));
  EXPECT_LE(time_of(*q.from_cq, 20), kLate);
}

// Three to one, as their weights; and what one leaves, the other takes.
TEST_F(Pace, SiblingsShareByWeight) {
  const Pair p = pair(), q = pair();
  shaping().set_element(1, 0, 1, 0);
  shaping().set_element(2, 1, 1, ps_per_byte(32'000));
  shaping().set_element(3, 2, 3, 0);
  shaping().set_element(4, 2, 1, 0);
  under(*a, *p.from, 3);
  under(*a, *q.from, 4);
  for (int i = 0; i < 200; ++i) {
    a->post(*p.from, write(1024));
    a->post(*q.from, write(1024));
  }
  unsigned heavy = 0, light = 0;
  const auto begin = now_us();
  while (heavy < 120 && now_us() - begin < 3'000'000) {
    if (a->poll(*p.from_cq).valid) ++heavy;
    if (a->poll(*q.from_cq).valid) ++light;
    tick();
  }
  EXPECT_EQ(heavy, 120u);
  EXPECT_NEAR(light, 40, 6);
  while (heavy < 200 && now_us() - begin < 3'000'000)
    a->poll(*p.from_cq).valid ? static_cast<void>(++heavy) : tick();
  while (a->poll(*q.from_cq).valid) ++light;
  const auto alone = now_us();
  for (; light < 200; ++light) ASSERT_TRUE(wait(*q.from_cq).valid);
  const auto us = now_us() - alone;
  EXPECT_LE(us, 160 * 280 + kLate);  // all of 32 Mbit/s, not a quarter
}

// A limit inside a limit: the smaller one holds.
TEST_F(Pace, EveryLimitOnTheWayUpHolds) {
  const Pair p = pair();
  shaping().set_element(1, 0, 1, 0);
  shaping().set_element(2, 1, 1, ps_per_byte(8'000));
  shaping().set_element(3, 2, 1, ps_per_byte(80'000));
  under(*a, *p.from, 3);
  const auto begin = now_us();
  for (int i = 0; i < 30; ++i) a->post(*p.from, write(1024));
  const auto us = time_of(*p.from_cq, 30, begin);
  EXPECT_GE(us, 24 * 1080);
  EXPECT_LE(us, 30 * 1120 + kLate);
}

TEST_F(Pace, DatagramsAndAtomicsToo) {
  Pair p{nullptr, nullptr, a->cq(8), b->cq(8)};
  p.from = a->qp(QpType::ud, p.from_cq, 8);
  p.to = b->qp(QpType::ud, p.to_cq);
  connect(*p.from, *p.to);
  quiet();
  shaping().set_element(1, 0, 1, 0);
  shaping().set_element(2, 1, 1, ps_per_byte(16'000));
  under(*a, *p.from, 2);
  std::uint8_t gid[16];
  b->gid(gid);
  const auto begin = now_us();
  for (int i = 0; i < 40; ++i) {
    b->post_recv(*p.to, {{mb.p, 1064, mb.key}});
    a->post(*p.from, {.opcode = WqeOpcode::send, .sges = {{ma.p, 1024, ma.key}}, .dgid = gid, .dqpn = p.to->context->qpn});
  }
  EXPECT_GE(time_of(*p.from_cq, 40, begin), 29 * 530);
  for (int i = 0; i < 40; ++i) ASSERT_EQ(b->wait(*p.to_cq).bytes, 1064u);

  const Pair q = pair();
  shaping().set_element(3, 1, 1, ps_per_byte(1'000));
  under(*a, *q.from, 3);
  const auto start = now_us();
  for (int i = 0; i < 30; ++i)
    a->post(*q.from, {.opcode = WqeOpcode::atomic_fa, .sges = {{ma.p, 8, ma.key}},
                      .raddr = reinterpret_cast<std::uint64_t>(mb.p), .rkey = mb.key, .swap_add = 1});
  EXPECT_GE(time_of(*q.from_cq, 30, start), 20 * 680);  // 86 bytes each
  EXPECT_EQ(*reinterpret_cast<std::uint64_t*>(mb.p + 0), 30u);
}

// The responder's element holds READ data back, in the requester's own turn.
TEST_F(Pace, ResponsesKeepTheRateOfTheRespondersElement) {
  const Pair p = pair();
  Shaping& there = b->engine->impl().shaping;
  there.set_element(1, 0, 1, 0);
  there.set_element(2, 1, 1, ps_per_byte(16'000));
  b->engine->set_state(*p.to->context, QpState::rts, [](QpContext& x) { x.responder_leaf = 2; });
  for (int i = 0; i < 64 * 1024; ++i) mb.p[i] = static_cast<std::byte>(i * 7 + i / 256);
  const auto begin = now_us();
  a->post(*p.from, {.opcode = WqeOpcode::rdma_read, .sges = {{ma.p, 64 * 1024, ma.key}},
                    .raddr = reinterpret_cast<std::uint64_t>(mb.p), .rkey = mb.key});
  ASSERT_EQ(wait(*p.from_cq).opcode, prm::CqeOpcode::req);
  const auto us = now_us() - begin;
  EXPECT_EQ(std::memcmp(ma.p, mb.p, 64 * 1024), 0);
  EXPECT_GE(us, 54 * 530);
  EXPECT_LE(us, 64 * 570 + kLate);
}

// A state change, a reset and a destroyed queue leave nothing behind that would hold others back.
TEST_F(Pace, WhoLeavesTheQueueMakesRoom) {
  const Pair p = pair(), q = pair(), r = pair();
  shaping().set_element(1, 0, 1, 0);
  shaping().set_element(2, 1, 1, ps_per_byte(8'000));
  for (const Pair& each : {p, q, r}) under(*a, *each.from, 2);
  for (int i = 0; i < 10; ++i)
    for (const Pair& each : {p, q, r}) a->post(*each.from, write(1024));
  a->engine->move_to_error(*p.from->context);
  a->engine->remove(*q.from->context);
  a->nic->free_qp(*q.from->context);
  EXPECT_LE(time_of(*r.from_cq, 10), 12 * 1120 + kLate);
  unsigned flushed = 0;
  while (a->poll(*p.from_cq).valid) ++flushed;
  EXPECT_EQ(flushed, 10u);
}

TEST_F(Pace, SharedWordsAreNotTrusted) {
  const Pair p = pair();
  shaping().set_element(1, 0, 1, 0);
  shaping().set_element(2, 1, 1, ps_per_byte(80'000));
  under(*a, *p.from, 2);
  b->nic->peer(a->nic->slot());
  a->nic->slice().shapers[2].next_ns = ~0ull;  // a clock that never comes
  a->nic->slice().shapers[2].parent = 2;
  for (int i = 0; i < 10; ++i) a->post(*p.from, write(1024));
  EXPECT_LE(time_of(*p.from_cq, 10), 2 * kLate);
  // The same for responses: a circle, and an element that does not exist.
  Slice& there = b->nic->slice();
  there.shapers[7].parent = 7;
  there.shapers[7].ps_per_byte = 1;
  for (const unsigned leaf : {7u, kShapers, 0xffffu}) {
    p.to->context->responder_leaf = static_cast<std::uint16_t>(leaf);
    a->post(*p.from, {.opcode = WqeOpcode::rdma_read, .sges = {{ma.p, 4096, ma.key}},
                      .raddr = reinterpret_cast<std::uint64_t>(mb.p), .rkey = mb.key});
    ASSERT_EQ(wait(*p.from_cq).opcode, prm::CqeOpcode::req);
  }
}

}  // namespace
}  // namespace verbena::device::test
