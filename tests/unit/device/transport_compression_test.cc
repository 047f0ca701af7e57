// CQE compression: which completions make a session, how it lies in the ring, when it is closed. The clock stands still, so
// that only what is said here ends a session.
#include <signal.h>
#include <sys/mman.h>

#include <functional>
#include <utility>

#include "device/transport/clock.h"
#include "device/transport/impl.h"
#include "prm/cq.h"
#include "transport_world.h"

namespace verbena::device::test {
namespace {

using prm::Cqe64;
using prm::CqeFormat;
using prm::CqeOpcode;
using prm::MiniCqe8;
using prm::MiniCqeFormat;

constexpr std::byte kUntouched{0xf1};

class Compression : public World {
 protected:
  void SetUp() override {
    World::SetUp();
    mb = b->memory(4096);
    stop_clock(device_clock());
    make();
  }
  void TearDown() override {
    stop_clock(0);
    World::TearDown();
  }
  void make(unsigned log_entries = 6, unsigned log_bytes = 6, MiniCqeFormat format = MiniCqeFormat::checksum) {
    ca = a->cq(8);
    cb = b->cq(log_entries, log_bytes);
    std::memset(cb->ring, std::to_integer<int>(kUntouched), std::size_t{1} << (log_entries + log_bytes));
    cb->context->features = kCqCompressed;
    cb->context->mini_format = static_cast<std::uint8_t>(format);
    ASSERT_TRUE(b->nic->back_slice(offsetof(Slice, cq_sessions) + cb->context->cqn * sizeof(CqSession), sizeof(CqSession)));
    std::tie(qa, qb) = pair();
    // Queue pairs start them: a helper that is awake closes a session in the middle of a turn, as it may.
    a->engine->impl().stop_helper();
    b->engine->impl().stop_helper();
  }
  std::pair<Qp*, Qp*> pair() {
    Qp* from = a->qp(QpType::rc, ca, 8);
    Qp* to = b->qp(QpType::rc, cb, 6, 8);
    connect(*from, *to);
    for (int i = 0; i < 150; ++i) b->post_recv(*to, {{mb.p, 64, mb.key}});
    return {from, to};
  }
  static Process::Wr message(unsigned bytes) { return {.inline_data = std::string(bytes, 'x')}; }
  // One turn of the sender: `n` messages of 1, 2, ... bytes by one doorbell.
  void turn(int n) {
    for (int i = 0; i < n; ++i) a->write_wqe(*qa, message(static_cast<unsigned>(i) + 1));
    a->engine->ring_sq(*qa->context);
    while (a->poll(*ca).valid) {
    }
  }
  std::byte* entry(std::uint32_t index) const {
    const unsigned log_bytes = cb->context->cqe_bytes_log, log = cb->context->ring.log_entries;
    return cb->ring + ((index & ((1u << log) - 1)) << log_bytes) + (log_bytes == 7 ? 64 : 0);
  }
  prm::ConstView<Cqe64> cqe(std::uint32_t index) const { return prm::ConstView<Cqe64>(entry(index)); }
  bool ready(std::uint32_t index) const {
    return cqe(index).get<Cqe64::opcode>() != CqeOpcode::invalid &&
           cqe(index).get<Cqe64::owner>() == (index >> cb->context->ring.log_entries & 1);
  }
  prm::ConstView<MiniCqe8> mini(std::uint32_t title, std::uint32_t n) const {
    return prm::ConstView<MiniCqe8>(entry(title + (n < 8 ? 1 : n & ~7u)) + (n & 7) * MiniCqe8::size);
  }
  // What begins at the consumer's index and stands for how many completions: 0 for nothing. It is taken.
  struct Group {
    std::uint32_t n = 0;
    bool compressed = false;
    std::vector<std::uint32_t> bytes;
  };
  Group next() {
    Group g;
    if (!ready(cb->ci)) return g;
    const auto title = cqe(cb->ci);
    g.compressed = title.get<Cqe64::format>() == CqeFormat::compressed;
    g.n = g.compressed ? title.get<Cqe64::byte_cnt>() : 1;
    for (std::uint32_t i = 0; i < g.n; ++i)
      g.bytes.push_back(g.compressed ? mini(cb->ci, i).get<MiniCqe8::byte_cnt>() : title.get<Cqe64::byte_cnt>());
    for (std::uint32_t i = 0; i < g.n; ++i) {
      entry(cb->ci + i)[63] = kUntouched;
      b->post_recv(*qb, {{mb.p, 64, mb.key}});
    }
    cb->ci += g.n;
    ring(cb->dbrec, cb->ci & 0xffffff);
    return g;
  }
  void expect(std::uint32_t n, std::uint32_t first_bytes = 1) {
    const Group g = next();
    ASSERT_EQ(g.n, n);
    EXPECT_EQ(g.compressed, n > 1);
    for (std::uint32_t i = 0; i < n; ++i) EXPECT_EQ(g.bytes[i], first_bytes + i) << i;
  }

  Cq *ca, *cb;
  Qp *qa, *qb;
  Memory mb;
};

TEST_F(Compression, ASessionLiesAsDriversReadIt) {
  for (const unsigned log_bytes : {6u, 7u}) {
    make(6, log_bytes);
    turn(20);
    const auto title = cqe(0);
    EXPECT_TRUE(ready(0));
    EXPECT_EQ(title.get<Cqe64::format>(), CqeFormat::compressed);
    EXPECT_EQ(title.get<Cqe64::opcode>(), CqeOpcode::resp_send);
    EXPECT_EQ(title.get<Cqe64::byte_cnt>(), 20u);
    EXPECT_EQ(title.get<Cqe64::wqe_counter>(), 0u);
    EXPECT_EQ(title.get<Cqe64::qpn>(), qb->context->qpn);
    EXPECT_EQ(cb->context->pi, 20u);
    for (std::uint32_t i = 0; i < 20; ++i) EXPECT_EQ(mini(0, i).get<MiniCqe8::byte_cnt>(), i + 1) << i;
    // Arrays in 1, 8 and 16, the last half full; nothing else.
    for (std::uint32_t i = 0; i < 64; ++i) {
      const bool used = i == 0 || i == 1 || i == 8 || i == 16;
      for (unsigned at = i == 16 ? 32 : 0; at < 64 && (!used || i == 16); ++at)
        ASSERT_EQ(entry(i)[at], kUntouched) << i << " " << at;
      for (int at = log_bytes == 7 ? -64 : 0; at < 0; ++at) ASSERT_EQ(entry(i)[at], kUntouched) << i << " " << at;
    }
    expect(20);
    turn(1);
    expect(1);
  }
}

TEST_F(Compression, SessionsAreWhatATurnCompletes) {
  for (int i = 0; i < 3; ++i) {
    turn(1);
    expect(1);
    turn(2);
    expect(2);
    turn(8);
    expect(8);
    turn(9);
    expect(9);
  }
  EXPECT_EQ(next().n, 0u);
  EXPECT_EQ(cb->context->gathered, 0u);
}

TEST_F(Compression, TheRingsEndEndsASession) {
  for (int lap = 0; lap < 5; ++lap) {
    turn(40);
    expect(40);
    turn(30);
    expect(24);
    expect(6, 25);
    turn(57);
    expect(57);
    turn(2);  // one place is left: no session fits
    expect(1);
    expect(1, 2);
    turn(63);
    expect(63);
    EXPECT_EQ(cb->ci & 63, 0u);
  }
}

TEST_F(Compression, AFullSessionIsFollowedByAnother) {
  make(8);
  Deferred turn_of_one(&a->nic->self());
  Completer completer(*a->nic->peer(b->nic->slot()), a->nic->me(), turn_of_one);
  for (unsigned i = 0; i < 100; ++i) {
    CqeBuffer entry_of;
    entry_of.view().set<Cqe64::opcode>(CqeOpcode::resp_send).set<Cqe64::byte_cnt>(i + 1).set<Cqe64::wqe_counter>(i);
    ASSERT_TRUE(completer.post(cb->context->cqn, entry_of, false));
  }
  turn_of_one.run();
  expect(64);
  expect(36, 65);
}

TEST_F(Compression, WhatDiffersIsWrittenApart) {
  auto [qc, qd] = pair();
  const auto send = [&](Qp* from, Process::Wr wr) { a->write_wqe(*from, wr); };
  send(qa, message(1));
  send(qa, message(2));
  auto imm = message(3);
  imm.opcode = prm::WqeOpcode::send_imm;
  imm.imm = 5;
  send(qa, imm);
  send(qa, imm);
  imm.imm = 6;
  send(qa, imm);
  auto solicited = message(3);
  solicited.solicited = true;
  send(qa, solicited);
  send(qa, solicited);
  a->engine->ring_sq(*qa->context);
  expect(2);
  EXPECT_EQ(next().n, 2u);
  EXPECT_EQ(next().n, 1u);
  EXPECT_EQ(next().n, 2u);
  // Of another queue pair.
  send(qc, message(1));
  a->engine->ring_sq(*qc->context);
  turn(2);
  expect(1);
  expect(2);
  EXPECT_EQ(next().n, 0u);
}

TEST_F(Compression, ErrorsCloseASession) {
  turn(3);
  for (int i = 0; i < 2; ++i) a->write_wqe(*qa, message(1));
  a->write_wqe(*qa, message(100));  // more than a receive takes
  a->engine->ring_sq(*qa->context);
  expect(3);
  EXPECT_EQ(next().n, 2u);
  EXPECT_TRUE(ready(cb->ci));
  EXPECT_EQ(cqe(cb->ci).get<Cqe64::opcode>(), CqeOpcode::resp_err);
  EXPECT_EQ(cqe(cb->ci).get<Cqe64::format>(), CqeFormat::no_inline);
}

TEST_F(Compression, Formats) {
  make(6, 6, MiniCqeFormat::checksum_stride_index);
  turn(3);
  for (std::uint32_t i = 0; i < 3; ++i) EXPECT_EQ(mini(0, i).get<MiniCqe8::stridx>(), i);
  expect(3);
  make(6, 6, MiniCqeFormat::hash);
  turn(3);
  for (std::uint32_t i = 0; i < 3; ++i) EXPECT_EQ(mini(0, i).get<MiniCqe8::rx_hash_result>(), 0u);
  expect(3);
}

TEST_F(Compression, EventsTellOfClosedSessions) {
  EqContext* eq = b->nic->alloc_eq();
  auto* eq_ring = b->dma(4096);
  eq->ring = {reinterpret_cast<std::uint64_t>(eq_ring), 6, 6};
  b->nic->publish(*eq);
  cb->context->eq = eq->eqn;
  const auto arm = [&] {
    prm::View<prm::CqDbr>(cb->dbrec).set<prm::CqDbr::arm_ci>(cb->ci);
    b->engine->arm_cq(*cb->context);
  };
  arm();
  turn(5);
  EXPECT_EQ(eq->pi, 1u);
  expect(5);
  cb->context->features |= kCqModerated;
  cb->context->max_count = 6;
  cb->context->period_us = 4000;
  arm();
  turn(5);
  EXPECT_EQ(eq->pi, 1u);
  turn(1);
  EXPECT_EQ(eq->pi, 2u);
}

// A sender that stops, or dies, in its turn: the owner closes what it left open.
TEST_F(Compression, TheOwnerClosesWhatWasLeftOpen) {
  Deferred turn_of_another(&a->nic->self());
  {
    Peer* owner = a->nic->peer(b->nic->slot());
    Completer completer(*owner, a->nic->me(), turn_of_another);
    for (unsigned i = 0; i < 3; ++i) {
      CqeBuffer entry_of;
      entry_of.view().set<Cqe64::opcode>(CqeOpcode::resp_send).set<Cqe64::byte_cnt>(i + 1).set<Cqe64::wqe_counter>(i);
      ASSERT_TRUE(completer.post(cb->context->cqn, entry_of, false));
    }
  }
  EXPECT_EQ(next().n, 0u);
  EXPECT_EQ(cb->context->gathered, 3u);
  b->engine->step();
  expect(3);
  EXPECT_EQ(cb->context->gathered, 0u);
}

// The same by the helper thread: nobody polls, and the sender, who is stopped, wakes nobody.
TEST_F(Compression, TheHelperClosesWhatWasLeftOpen) {
  stop_clock(0);
  b->engine->watch_sessions(1);
  b->engine->start_helper();
  Deferred turn_of_another(&a->nic->self());
  Completer completer(*a->nic->peer(b->nic->slot()), a->nic->me(), turn_of_another);
  CqeBuffer first;
  first.view().set<Cqe64::opcode>(CqeOpcode::resp_send).set<Cqe64::byte_cnt>(1);
  ASSERT_TRUE(completer.post(cb->context->cqn, first, false));
  const auto* own = reinterpret_cast<const std::atomic<std::uint8_t>*>(entry(0) + 63);
  for (int i = 0; i < 3000 && own->load(std::memory_order_acquire) == std::to_integer<std::uint8_t>(kUntouched); ++i)
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  b->engine->impl().stop_helper();
  expect(1);
  b->engine->watch_sessions(-1);
}

// One who is stopped while it holds the CQ's lock loses it in the end (SharedLock), and goes on later as if it had it: here
// at its first store to the ring, where the page sends it into `meanwhile` first.
class LateHolder : public Compression {
 protected:
  void SetUp() override {
    Compression::SetUp();
    page_ = reinterpret_cast<void*>(reinterpret_cast<std::uintptr_t>(cb->ring) & ~std::uintptr_t{4095});
    struct sigaction action {};
    action.sa_handler = [](int) {
      mprotect(page_, 4096, PROT_READ | PROT_WRITE);
      if (!meanwhile_) {
        signal(SIGSEGV, SIG_DFL);
        return;
      }
      (*std::exchange(meanwhile_, nullptr))();
    };
    action.sa_flags = SA_NODEFER;
    sigaction(SIGSEGV, &action, &before_);
  }
  void TearDown() override {
    sigaction(SIGSEGV, &before_, nullptr);
    Compression::TearDown();
  }
  // `work` by one who comes late, and `others` by those who took the lock from it.
  template <class Work, class Others>
  void late(Work&& work, Others&& others) {
    Deferred of_late(&b->nic->self()), of_others(&b->nic->self());
    Completer first(b->nic->self(), b->nic->me(), of_late), second(b->nic->self(), a->nic->me(), of_others);
    bool came = false;
    const std::function<void()> meanwhile = [&] {
      came = true;
      std::memset(static_cast<void*>(&cb->context->lock), 0, sizeof cb->context->lock);
      others(second);
    };
    meanwhile_ = &meanwhile;  // a handler must not free memory, so it owns none
    mprotect(page_, 4096, PROT_READ);
    work(first);
    EXPECT_TRUE(came);
    EXPECT_EQ(cb->context->lock.holder(), 0u);
  }
  bool post(Completer& completer, unsigned i) {
    CqeBuffer one;
    one.view().set<Cqe64::opcode>(CqeOpcode::resp_send).set<Cqe64::byte_cnt>(i + 1).set<Cqe64::wqe_counter>(i);
    return completer.post(cb->context->cqn, one, false);
  }

 private:
  static inline void* page_;
  static inline const std::function<void()>* meanwhile_ = nullptr;
  struct sigaction before_ {};
};

TEST_F(LateHolder, ClosesNoSessionTwice) {
  Deferred turn_of_another(&b->nic->self());
  {
    Completer completer(b->nic->self(), a->nic->me(), turn_of_another);
    for (unsigned i = 0; i < 4; ++i) ASSERT_TRUE(post(completer, i));
  }
  const std::uint32_t index = cb->context->cqn;
  late([&](Completer& c) { c.close_session(index); }, [&](Completer& c) { c.close_session(index); });
  EXPECT_EQ(cb->context->pi, 4u);
  expect(4);
  turn(3);
  expect(3);
}

TEST_F(LateHolder, LeavesNoGap) {
  cb->context->features = 0;
  late([&](Completer& c) { EXPECT_TRUE(post(c, 0)); }, [&](Completer& c) { EXPECT_TRUE(post(c, 1)); });
  EXPECT_EQ(cb->context->pi, 1u);
  EXPECT_EQ(next().n, 1u);
  turn(2);
  expect(1);
  expect(1, 2);
}

TEST_F(Compression, NothingIsLostWhenTheRingIsFull) {
  for (int i = 0; i < 2; ++i) turn(32);
  turn(1);
  EXPECT_EQ(cb->context->status, 9u);
  expect(32);
  expect(32);
}

TEST_F(Compression, ScribbledSessionsStayInTheRing) {
  const std::uint32_t index = cb->context->cqn;
  for (const std::uint32_t garbage : {~0u, 65u, 1u << 31, 7u}) {
    cb->context->gathered = garbage;
    std::memset(&b->nic->slice().cq_sessions[index], 0xff, sizeof(CqSession));
    turn(3);
    b->engine->close_session(*cb->context);
    EXPECT_EQ(cb->context->gathered, 0u);
    cb->context->status = 0;
    cb->ci = cb->context->pi;
    ring(cb->dbrec, cb->ci & 0xffffff);
  }
  std::tie(qa, qb) = pair();  // the others may have lost a completion, and gone to the error state
  cb->ci = cb->context->pi;
  turn(2);
  EXPECT_EQ(next().n, 2u);
}

}  // namespace
}  // namespace verbena::device::test
