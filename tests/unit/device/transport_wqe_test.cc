// Work requests of every wrong shape: one CQE that says what is wrong, and a queue that works again after a reset.
#include <algorithm>
#include <numeric>
#include <utility>

#include "transport_world.h"

namespace verbena::device::test {
namespace {

using prm::CqeOpcode;
using prm::CqeSyndrome;
using prm::WqeOpcode;

class Wqe : public World {
 protected:
  void SetUp() override {
    World::SetUp();
    // Only `b` would look at its receive queue in the error state; the CQs are large enough for what the tests flush.
    ca = a->cq(12);
    cb = b->cq(12);
    ma = a->memory(1 << 16);
    mb = b->memory(1 << 16);
    for (std::size_t i = 0; i < ma.bytes; ++i) ma.p[i] = static_cast<std::byte>(i * 7 + 3);
  }
  void pair(QpType type, unsigned log_sq = 6) {
    qa = a->qp(type, ca, log_sq);
    qb = b->qp(type, cb);
    again();
  }
  // Both queues empty and connected.
  void again() {
    for (auto* p : {a.get(), b.get()}) {
      Qp& q = p == a.get() ? *qa : *qb;
      p->engine->reset(*q.context);
      std::memset(q.dbrec, 0, 8);
      q.sq_pi = q.rq_pi = 0;
    }
    connect(*qa, *qb);
    drain();
  }
  void drain() {
    while (a->poll(*ca).valid) {
    }
    while (b->poll(*cb).valid) {
    }
  }
  // A WQE of `ds` octowords of which the first `bytes` are given; the rest is zero.
  void raw(WqeOpcode opcode, unsigned ds, std::span<const std::byte> body = {},
           prm::WqeCompletion completion = prm::WqeCompletion::always) {
    alignas(64) std::byte w[1024]{};
    if (!body.empty()) std::memcpy(w + 16, body.data(), std::min(body.size(), sizeof w - 16));
    prm::View<prm::CtrlSeg>(w)
        .set<prm::CtrlSeg::opcode>(opcode)
        .set<prm::CtrlSeg::wqe_index>(qa->sq_pi)
        .set<prm::CtrlSeg::qpn>(qa->context->qpn)
        .set<prm::CtrlSeg::ds>(ds)
        .set<prm::CtrlSeg::ce>(completion);
    a->raw_wqe(*qa, w, std::max(ds, 1u) * 16);
    a->engine->ring_sq(*qa->context);
  }
  void receives(unsigned n = 8) {
    for (unsigned i = 0; i < n; ++i) b->post_recv(*qb, {{mb.p, 4096, mb.key}});
  }
  Process::Wr to_b(WqeOpcode opcode, std::uint32_t bytes = 64) {
    Process::Wr wr{.opcode = opcode, .sges = {{ma.p, bytes, ma.key}}};
    wr.raddr = reinterpret_cast<std::uint64_t>(mb.p);
    wr.rkey = mb.key;
    b->gid(gid_);
    wr.dgid = gid_;
    wr.dqpn = qb->context->qpn;
    return wr;
  }
  // The next CQE of `a` is this error, the next one `b`'s if it has one.
  void fails(CqeSyndrome syndrome, const char* what) {
    const auto done = a->wait(*ca);
    ASSERT_TRUE(done.valid) << what;
    EXPECT_EQ(done.opcode, CqeOpcode::req_err) << what;
    EXPECT_EQ(done.syndrome, static_cast<unsigned>(syndrome)) << what;
    EXPECT_EQ(done.counter, 0u) << what;
    EXPECT_FALSE(a->poll(*ca).valid) << what << ": a second CQE";
    const auto state = static_cast<QpState>(qa->context->state.load());
    EXPECT_EQ(state, qa->context->type == QpType::rc ? QpState::err : QpState::sqer) << what;
  }
  void works() {
    again();
    receives(1);
    auto wr = to_b(WqeOpcode::send);
    a->post(*qa, wr);
    const auto done = a->wait(*ca);
    ASSERT_TRUE(done.valid);
    EXPECT_EQ(done.opcode, CqeOpcode::req) << done.syndrome;
  }

  Cq *ca, *cb;
  Memory ma, mb;
  Qp *qa, *qb;
  std::uint8_t gid_[16];
};

// Every opcode with every number of octowords, all of them zero but the control segment.
TEST_F(Wqe, EveryOpcodeAndSize) {
  for (const QpType type : {QpType::rc, QpType::uc, QpType::ud}) {
    pair(type);
    for (unsigned opcode = 0; opcode < 256; ++opcode) {
      for (unsigned ds = 0; ds < 64; ++ds) {
        SCOPED_TRACE("type " + std::to_string(static_cast<unsigned>(type)) + " opcode " + std::to_string(opcode) + " ds " +
                     std::to_string(ds));
        receives(1);
        raw(static_cast<WqeOpcode>(opcode), ds);
        const auto done = a->poll(*ca);
        ASSERT_TRUE(done.valid);
        EXPECT_EQ(done.counter, 0u);
        EXPECT_FALSE(a->poll(*ca).valid);
        const auto o = static_cast<WqeOpcode>(opcode);
        const bool sends = o == WqeOpcode::send || o == WqeOpcode::send_imm || (o == WqeOpcode::send_inval && type != QpType::ud);
        const bool remote = type != QpType::ud && (o == WqeOpcode::rdma_write || o == WqeOpcode::rdma_write_imm ||
                                                   (o == WqeOpcode::rdma_read && type == QpType::rc));
        const bool local = type != QpType::ud && (o == WqeOpcode::umr || o == WqeOpcode::local_inval);
        const bool atomic = type == QpType::rc && (o == WqeOpcode::atomic_cs || o == WqeOpcode::atomic_fa);
        const unsigned head = type == QpType::ud ? 4 : remote ? 2 : atomic ? 3 : o == WqeOpcode::umr ? 8 : 1;
        if (o == WqeOpcode::nop && ds != 0) {
          EXPECT_EQ(done.opcode, CqeOpcode::req);
        } else if (ds < head || !(sends || remote || local || atomic)) {
          EXPECT_EQ(done.syndrome, static_cast<unsigned>(CqeSyndrome::local_qp_op_err));
        } else if (local) {
          EXPECT_EQ(done.syndrome, static_cast<unsigned>(CqeSyndrome::mw_bind_err)) << "no such key";
        } else if (atomic) {
          EXPECT_EQ(done.syndrome, static_cast<unsigned>(CqeSyndrome::local_qp_op_err)) << "eight bytes, no more or less";
        } else if (ds == head) {
          // Nothing to carry, which is no error; to invalidate key 0 is, and UC does not hear of it.
          if (o == WqeOpcode::send_inval && type == QpType::rc) {
            EXPECT_EQ(done.syndrome, static_cast<unsigned>(CqeSyndrome::remote_access_err));
          } else {
            EXPECT_EQ(done.opcode, CqeOpcode::req) << done.syndrome;
          }
        } else {
          // A byte count of zero means 2^31 bytes, here of a key that is not there.
          const bool too_long = type == QpType::ud || ds > head + 1;
          EXPECT_EQ(done.syndrome, static_cast<unsigned>(too_long ? CqeSyndrome::local_length_err : CqeSyndrome::local_prot_err));
        }
        again();
      }
    }
    works();
  }
}

TEST_F(Wqe, EachWrongPart) {
  pair(QpType::rc);
  const auto wrong = [&](const char* what, CqeSyndrome syndrome, WqeOpcode opcode, auto change) {
    again();
    receives();
    auto wr = to_b(opcode, opcode == WqeOpcode::atomic_cs || opcode == WqeOpcode::atomic_fa ? 8 : 64);
    change(wr);
    a->post(*qa, wr);
    fails(syndrome, what);
  };
  using S = CqeSyndrome;
  const std::uint32_t read_only = a->key(ma.p, ma.bytes, kMkeyLocalRead);
  const std::uint32_t foreign = a->key(ma.p, ma.bytes, kAllRights, kPd + 1);
  const std::uint32_t local_only = b->key(mb.p, mb.bytes, kMkeyLocalRead | kMkeyLocalWrite);
  for (const auto opcode : {WqeOpcode::send, WqeOpcode::send_imm, WqeOpcode::rdma_write, WqeOpcode::rdma_write_imm,
                            WqeOpcode::rdma_read, WqeOpcode::atomic_cs, WqeOpcode::atomic_fa}) {
    wrong("no such lkey", S::local_prot_err, opcode, [](auto& wr) { wr.sges[0].key = 0xdead00; });
    wrong("another variant of the lkey", S::local_prot_err, opcode, [](auto& wr) { wr.sges[0].key ^= 1; });
    wrong("lkey of another domain", S::local_prot_err, opcode, [&](auto& wr) { wr.sges[0].key = foreign; });
    wrong("lkey of another process", S::local_prot_err, opcode, [&](auto& wr) { wr.sges[0].key = mb.key; });
    wrong("before the region", S::local_prot_err, opcode, [&](auto& wr) { wr.sges[0].p = ma.p - 8; });
    wrong("behind the region", S::local_prot_err, opcode, [&](auto& wr) { wr.sges[0].p = ma.p + ma.bytes; });
    wrong("at the end of the address space", S::local_prot_err, opcode,
          [](auto& wr) { wr.sges[0].p = reinterpret_cast<void*>(~std::uint64_t{0} - 3); });
  }
  for (const auto opcode : {WqeOpcode::rdma_read, WqeOpcode::atomic_cs, WqeOpcode::atomic_fa})
    wrong("read-only lkey", S::local_prot_err, opcode, [&](auto& wr) { wr.sges[0].key = read_only; });
  for (const auto opcode : {WqeOpcode::rdma_write, WqeOpcode::rdma_write_imm, WqeOpcode::rdma_read, WqeOpcode::atomic_cs,
                            WqeOpcode::atomic_fa}) {
    wrong("no such rkey", S::remote_access_err, opcode, [](auto& wr) { wr.rkey = 0xdead00; });
    wrong("another variant of the rkey", S::remote_access_err, opcode, [](auto& wr) { wr.rkey ^= 1; });
    wrong("rkey without remote rights", S::remote_access_err, opcode, [&](auto& wr) { wr.rkey = local_only; });
    wrong("rkey of our own", S::remote_access_err, opcode, [&](auto& wr) { wr.rkey = ma.key; });
    wrong("before the remote region", S::remote_access_err, opcode, [](auto& wr) { wr.raddr -= 8; });
    wrong("behind the remote region", S::remote_access_err, opcode, [&](auto& wr) { wr.raddr += mb.bytes; });
    wrong("remote end of the address space", S::remote_access_err, opcode, [](auto& wr) { wr.raddr = ~std::uint64_t{0} & ~7ull; });
  }
  for (const auto opcode : {WqeOpcode::atomic_cs, WqeOpcode::atomic_fa}) {
    for (unsigned bytes : {4u, 7u, 9u, 16u})
      wrong("atomic of another size", S::local_qp_op_err, opcode, [=](auto& wr) { wr.sges[0].bytes = bytes; });
    for (unsigned off = 1; off < 8; ++off)
      wrong("unaligned atomic", S::remote_inval_req_err, opcode, [=](auto& wr) { wr.raddr += off; });
    wrong("atomic without a place for the answer", S::local_qp_op_err, opcode, [](auto& wr) { wr.sges.clear(); });
    wrong("atomic with inline data", S::local_qp_op_err, opcode, [](auto& wr) { wr.inline_data = "12345678"; });
  }
  wrong("READ into inline data", S::local_prot_err, WqeOpcode::rdma_read, [](auto& wr) {
    wr.sges.clear();
    wr.inline_data = "12345678";
  });
  wrong("READ of more than a message", S::local_length_err, WqeOpcode::rdma_read, [](auto& wr) {
    wr.sges = {{wr.sges[0].p, 0x7fffffff, wr.sges[0].key}, {wr.sges[0].p, 0x7fffffff, wr.sges[0].key}};
  });
  wrong("invalidates a key that is not there", S::remote_access_err, WqeOpcode::send_inval, [](auto& wr) { wr.imm = 0xdead00; });
  works();
}

TEST_F(Wqe, InlineDataThatLies) {
  for (const QpType type : {QpType::rc, QpType::uc, QpType::ud}) {
    pair(type);
    // (the body of a UD WQE begins with an address vector)
    const unsigned at = type == QpType::ud ? sizeof(std::byte) * prm::UdAdrsVector::size : 0;
    for (unsigned ds = 2 + at / 16; ds < 20; ++ds) {
      const unsigned room = ds * 16 - 16 - at - 4;
      for (std::uint32_t claims : {room + 1, room + 16, 0x3ffu, 0x7fffffffu}) {
        if (claims <= room) continue;
        again();
        receives();
        std::byte body[1008]{};
        prm::View<prm::InlineSeg>(body + at).set<prm::InlineSeg::inline_>(1).set<prm::InlineSeg::byte_count>(claims);
        raw(WqeOpcode::send, ds, body);
        fails(CqeSyndrome::local_qp_op_err, "inline data past the end of the WQE");
      }
    }
    works();
  }
}

TEST_F(Wqe, ControlSegment) {
  pair(QpType::rc);
  // Another queue's number.
  for (std::uint32_t qpn : {0u, 1u, qb->context->qpn, qa->context->qpn ^ 0x800000, 0xffffffu}) {
    again();
    alignas(64) std::byte w[64]{};
    prm::View<prm::CtrlSeg>(w).set<prm::CtrlSeg::opcode>(WqeOpcode::nop).set<prm::CtrlSeg::qpn>(qpn).set<prm::CtrlSeg::ds>(1);
    a->raw_wqe(*qa, w, 64);
    a->engine->ring_sq(*qa->context);
    fails(CqeSyndrome::local_qp_op_err, "qpn");
  }
  // More octowords than are posted.
  for (unsigned ds = 5; ds < 64; ++ds) {
    again();
    alignas(64) std::byte w[64]{};
    prm::View<prm::CtrlSeg>(w)
        .set<prm::CtrlSeg::opcode>(WqeOpcode::nop)
        .set<prm::CtrlSeg::qpn>(qa->context->qpn)
        .set<prm::CtrlSeg::ds>(ds);
    a->raw_wqe(*qa, w, 64);
    a->engine->ring_sq(*qa->context);
    fails(CqeSyndrome::local_qp_op_err, "past what is posted");
  }
  works();
}

// ---- extended atomics: masked, of 8 and of 4 bytes ----

class ExtendedAtomics : public Wqe {
 protected:
  void SetUp() override {
    Wqe::SetUp();
    pair(QpType::rc);
    qb->context->atomic_mode = static_cast<std::uint8_t>(prm::AtomicMode::up_to_8b);
  }
  // Executes one; `operands` as they lie in the WQE.
  Completion run(WqeOpcode opcode, std::uint32_t opmod, std::span<const std::byte> operands, unsigned bytes, std::size_t at = 0) {
    again();
    alignas(64) std::byte w[128]{};
    const unsigned octowords = 3 + static_cast<unsigned>(operands.size() / 16);
    prm::View<prm::CtrlSeg>(w)
        .set<prm::CtrlSeg::opmod>(opmod)
        .set<prm::CtrlSeg::opcode>(opcode)
        .set<prm::CtrlSeg::qpn>(qa->context->qpn)
        .set<prm::CtrlSeg::ds>(octowords)
        .set<prm::CtrlSeg::ce>(prm::WqeCompletion::always);
    prm::View<prm::RaddrSeg>(w + 16).set<prm::RaddrSeg::raddr>(reinterpret_cast<std::uint64_t>(mb.p) + at).set<prm::RaddrSeg::rkey>(mb.key);
    std::memcpy(w + 32, operands.data(), operands.size());
    prm::View<prm::DataSeg>(w + 32 + operands.size())
        .set<prm::DataSeg::byte_count>(bytes)
        .set<prm::DataSeg::lkey>(ma.key)
        .set<prm::DataSeg::addr>(reinterpret_cast<std::uint64_t>(ma.p));
    a->raw_wqe(*qa, w, octowords * 16);
    a->engine->ring_sq(*qa->context);
    return a->wait(*ca);
  }
  auto swap64(std::uint64_t swap, std::uint64_t compare, std::uint64_t swap_mask, std::uint64_t compare_mask) {
    using S = prm::MaskedAtomicSeg;
    prm::Box<S> box;
    box.set<S::swap_add>(swap).set<S::compare>(compare).set<S::swap_add_mask>(swap_mask).set<S::compare_mask>(compare_mask);
    return box;
  }
  auto operands32(std::uint32_t swap, std::uint32_t compare, std::uint32_t swap_mask = 0, std::uint32_t compare_mask = 0) {
    using S = prm::MaskedAtomic32Seg;
    prm::Box<S> box;
    box.set<S::swap_add>(swap).set<S::compare>(compare).set<S::swap_add_mask>(swap_mask).set<S::compare_mask>(compare_mask);
    return box;
  }
  auto add64(std::uint64_t add, std::uint64_t boundaries) {
    prm::Box<prm::AtomicSeg> box;
    box.set<prm::AtomicSeg::swap_add>(add).set<prm::AtomicSeg::compare>(boundaries);
    return box;
  }
  template <class T>
  void put(T value, std::size_t at = 0) {
    std::memcpy(mb.p + at, &value, sizeof value);
  }
  template <class T>
  T there(std::size_t at = 0) const {
    T value;
    std::memcpy(&value, mb.p + at, sizeof value);
    return value;
  }
  std::uint64_t result64() const {
    std::uint64_t value;
    std::memcpy(&value, ma.p, sizeof value);
    return value;
  }
  static constexpr std::uint32_t kOf4 = prm::kExtendedAtomic, kOf8 = prm::kExtendedAtomic | 1;
};

TEST_F(ExtendedAtomics, MaskedCompareAndSwap) {
  put<std::uint64_t>(0x1122334455667788);
  auto done = run(WqeOpcode::atomic_masked_cs, kOf8, swap64(0xaaaaaaaaaaaaaaaa, 0x0000000055000000, 0xff000000000000ff, 0x00000000ff000000).span(), 8);
  EXPECT_EQ(done.opcode, CqeOpcode::req) << done.syndrome;
  EXPECT_EQ(result64(), 0x1122334455667788u);
  EXPECT_EQ(there<std::uint64_t>(), 0xaa223344556677aau);
  done = run(WqeOpcode::atomic_masked_cs, kOf8, swap64(0, 0x0000000056000000, ~0ull, 0x00000000ff000000).span(), 8);
  EXPECT_EQ(done.opcode, CqeOpcode::req);
  EXPECT_EQ(there<std::uint64_t>(), 0xaa223344556677aau) << "the masked bits differ";
  put<std::uint64_t>(0x1122334455667788);
  done = run(WqeOpcode::atomic_masked_cs, kOf4, operands32(0x0000beef, 0x55660000, 0x0000ffff, 0xffff0000).span(), 4);
  EXPECT_EQ(done.opcode, CqeOpcode::req) << done.syndrome;
  EXPECT_EQ(done.bytes, 4u);
  EXPECT_EQ(prm::load_be32(ma.p), 0x55667788u) << "four bytes come as they travel";
  EXPECT_EQ(there<std::uint64_t>(), 0x112233445566beefu) << "and no others change";
}

TEST_F(ExtendedAtomics, MaskedFetchAndAdd) {
  put<std::uint64_t>(0x00ff'00ff'ffff'fffe);
  // Two fields of 16 bits and one of 32: no carry leaves them.
  auto done = run(WqeOpcode::atomic_masked_fa, kOf8, add64(0x0001'ff02'0000'0003, 0x8000'8000'8000'0000).span(), 8);
  EXPECT_EQ(done.opcode, CqeOpcode::req) << done.syndrome;
  EXPECT_EQ(result64(), 0x00ff00fffffffffeu);
  EXPECT_EQ(there<std::uint64_t>(), 0x0100'0001'0000'0001u);
  put<std::uint64_t>(~0ull);
  run(WqeOpcode::atomic_masked_fa, kOf8, add64(1, 0).span(), 8);
  EXPECT_EQ(there<std::uint64_t>(), 0u) << "without boundaries it is the plain one";
  put<std::uint64_t>(0x11223344'fffffff0);
  done = run(WqeOpcode::atomic_masked_fa, kOf4, operands32(0x20, 0).span(), 4);
  EXPECT_EQ(prm::load_be32(ma.p), 0xfffffff0u);
  EXPECT_EQ(there<std::uint64_t>(), 0x1122334400000010u);
  put<std::uint32_t>(7, 4);
  done = run(WqeOpcode::atomic_masked_fa, kOf4, operands32(1, 0).span(), 4, 4);
  EXPECT_EQ(there<std::uint32_t>(4), 8u) << "aligned to its own size";
}

TEST_F(ExtendedAtomics, Refusals) {
  const auto add = add64(1, 0);
  for (const std::uint32_t opmod : {0u, 1u, 7u, 10u, 15u, 0x18u, 0x88u})
    EXPECT_EQ(run(WqeOpcode::atomic_masked_fa, opmod, add.span(), 8).syndrome, static_cast<unsigned>(CqeSyndrome::local_qp_op_err)) << opmod;
  EXPECT_EQ(run(WqeOpcode::atomic_masked_fa, kOf8, add.span(), 4).syndrome, static_cast<unsigned>(CqeSyndrome::local_qp_op_err));
  EXPECT_EQ(run(WqeOpcode::atomic_masked_fa, kOf4, add.span(), 8).syndrome, static_cast<unsigned>(CqeSyndrome::local_qp_op_err));
  EXPECT_EQ(run(WqeOpcode::atomic_masked_cs, kOf8, add.span(), 8).syndrome, static_cast<unsigned>(CqeSyndrome::local_qp_op_err)) << "half of the operands";
  EXPECT_EQ(run(WqeOpcode::atomic_masked_fa, kOf8, add.span(), 8, 4).syndrome, static_cast<unsigned>(CqeSyndrome::remote_inval_req_err)) << "unaligned";
  EXPECT_EQ(run(WqeOpcode::atomic_masked_fa, kOf4, add.span(), 4, 2).syndrome, static_cast<unsigned>(CqeSyndrome::remote_inval_req_err));
  put<std::uint64_t>(1);
  for (const auto mode : {prm::AtomicMode::none, prm::AtomicMode::ib_spec, prm::AtomicMode::only_8b}) {
    qb->context->atomic_mode = static_cast<std::uint8_t>(mode);
    EXPECT_EQ(run(WqeOpcode::atomic_masked_fa, kOf4, add.span(), 4).syndrome, static_cast<unsigned>(CqeSyndrome::remote_inval_req_err));
    const auto wide = run(WqeOpcode::atomic_masked_fa, kOf8, add.span(), 8);
    EXPECT_EQ(wide.opcode, mode == prm::AtomicMode::only_8b ? CqeOpcode::req : CqeOpcode::req_err);
  }
  EXPECT_EQ(there<std::uint64_t>(), 2u);
}

// Completion modes: none, only if it fails (0, 1), always (2), and one that counts as solicited (3).
TEST_F(Wqe, CompletionModes) {
  using Mode = prm::WqeCompletion;
  pair(QpType::rc);
  for (const Mode mode : {Mode::on_error, Mode::on_first_error, Mode::always, Mode::always_and_event}) {
    again();
    const bool always = mode == Mode::always || mode == Mode::always_and_event;
    ca->context->arm.store(kCqArmedSolicited);
    raw(WqeOpcode::nop, 1, {}, mode);
    EXPECT_EQ(a->poll(*ca).valid, always) << static_cast<unsigned>(mode);
    EXPECT_EQ(ca->context->arm.load() == 0, mode == Mode::always_and_event) << static_cast<unsigned>(mode);
    again();
    ca->context->arm.store(kCqArmedSolicited);
    raw(WqeOpcode::rdma_write, 1, {}, mode);
    const auto failed = a->poll(*ca);
    EXPECT_EQ(failed.opcode, CqeOpcode::req_err) << static_cast<unsigned>(mode);
    EXPECT_EQ(ca->context->arm.load(), 0u) << "an error counts as solicited";
  }
  ca->context->arm.store(0);
  works();
}

// A doorbell record that says anything: what is not there is not executed, and nothing waits for it.
TEST_F(Wqe, DoorbellRecords) {
  pair(QpType::rc, 4);
  for (std::uint32_t counter = 0; counter < 0x10000; counter += counter < 40 ? 1 : 97) {
    again();
    std::memset(qa->sq, 0, 64 << 4);
    ring(qa->dbrec + 4, counter | 0xabc00000u);
    ring(qa->dbrec, counter);
    a->engine->ring_sq(*qa->context);
    a->engine->step();
    const bool there = counter != 0 && counter <= 16;
    EXPECT_EQ(a->poll(*ca).valid, there) << counter;
  }
  works();
}

// Rings of every size, WQEs of every size, at every place in the ring: across its end, too.
TEST_F(Wqe, EveryPlaceInEveryRing) {
  for (unsigned log_sq = 0; log_sq <= 5; ++log_sq) {
    pair(QpType::rc, log_sq);
    const unsigned entries = 1u << log_sq;
    for (unsigned blocks = 1; blocks <= std::min(entries, 15u); ++blocks) {
      for (unsigned start = 0; start < entries; ++start) {
        again();
        for (unsigned i = 0; i < start; ++i) {
          raw(WqeOpcode::nop, 1);
          ASSERT_EQ(a->poll(*ca).opcode, CqeOpcode::req);
        }
        const unsigned bytes = blocks * 64 - 16 - 16 - 4;  // control, remote address, inline header
        std::memset(mb.p, 0, 1024);
        Process::Wr wr = to_b(WqeOpcode::rdma_write);
        wr.sges.clear();
        for (unsigned i = 0; i < bytes; ++i) wr.inline_data.push_back(static_cast<char>(i * 5 + start + 1));
        a->post(*qa, wr);
        const auto done = a->poll(*ca);
        ASSERT_TRUE(done.valid) << log_sq << " " << blocks << " " << start;
        ASSERT_EQ(done.opcode, CqeOpcode::req) << done.syndrome;
        EXPECT_EQ(done.counter, start);
        EXPECT_EQ(std::memcmp(mb.p, wr.inline_data.data(), bytes), 0) << log_sq << " " << blocks << " " << start;
      }
    }
    // Larger than the ring.
    if (entries < 15) {
      again();
      ring(qa->dbrec + 4, entries);
      alignas(64) std::byte w[64]{};
      prm::View<prm::CtrlSeg>(w).set<prm::CtrlSeg::opcode>(WqeOpcode::nop).set<prm::CtrlSeg::qpn>(qa->context->qpn);
      prm::View<prm::CtrlSeg>(w).set<prm::CtrlSeg::ds>(entries * 4 + 1);
      std::memcpy(qa->sq, w, sizeof w);
      a->engine->ring_sq(*qa->context);
      EXPECT_EQ(a->wait(*ca).syndrome, static_cast<unsigned>(CqeSyndrome::local_qp_op_err)) << "larger than the ring";
    }
  }
}

// Rings that start anywhere (a command refuses them; a context that was overwritten does not), and rings that are not
// there.
TEST_F(Wqe, RingsAtOddAddresses) {
  pair(QpType::rc);
  const std::uint64_t sq = qa->context->sq.va, rq = qb->context->rq.va;
  for (unsigned shift = 1; shift < 64; ++shift) {
    again();
    qa->context->sq.va = sq + shift;
    qb->context->rq.va = rq + shift;
    receives(1);
    a->post(*qa, to_b(WqeOpcode::send));
    const auto done = a->poll(*ca);
    ASSERT_TRUE(done.valid) << shift;
  }
  for (const std::uint64_t nowhere : {std::uint64_t{0}, std::uint64_t{4096}, std::uint64_t{1} << 47, ~std::uint64_t{0} - 63}) {
    again();
    qa->context->sq.va = nowhere;
    a->post(*qa, to_b(WqeOpcode::send));
    fails(CqeSyndrome::local_prot_err, "the send ring is not there");
    again();
    qa->context->sq.va = sq;
    qb->context->rq.va = nowhere;
    receives(1);
    qa->context->rnr_retry = 0;
    a->post(*qa, to_b(WqeOpcode::send));
    fails(CqeSyndrome::rnr_retry_exc_err, "the receive ring is not there");
  }
  qa->context->sq.va = sq;
  qb->context->rq.va = rq;
  for (unsigned log = 0; log < 256; ++log) {
    again();
    const auto set_log = [&](unsigned value) {  // the helper thread may be flushing the last one
      SharedGuard hold(qa->context->sq_lock, a->nic->me());
      return std::exchange(qa->context->sq.log_entries, value);
    };
    const unsigned good = set_log(log);
    ring(qa->dbrec + 4, 1);
    a->engine->ring_sq(*qa->context);
    a->engine->step();
    a->engine->move_to_error(*qa->context);
    set_log(good);
  }
  works();
}

// ---- receive WQEs ----

TEST_F(Wqe, ReceiveListsOfEveryShape) {
  pair(QpType::rc);
  struct Case {
    const char* what;
    std::vector<Process::Sge> list;
    CqeSyndrome receiver, sender;
  };
  const std::uint32_t read_only = b->key(mb.p, mb.bytes, kMkeyLocalRead);
  using S = CqeSyndrome;
  const S none{};
  const std::vector<Case> cases = {
      {"empty", {}, S::local_length_err, S::remote_inval_req_err},
      {"too short", {{mb.p, 63, mb.key}}, S::local_length_err, S::remote_inval_req_err},
      {"no such key", {{mb.p, 64, 0xdead00}}, S::local_prot_err, S::remote_op_err},
      {"read-only", {{mb.p, 64, read_only}}, S::local_prot_err, S::remote_op_err},
      {"sender's key", {{ma.p, 64, ma.key}}, S::local_prot_err, S::remote_op_err},
      {"behind the region", {{mb.p + mb.bytes - 63, 64, mb.key}}, S::local_prot_err, S::remote_op_err},
      {"second part bad", {{mb.p, 32, mb.key}, {mb.p, 32, 0xdead00}}, S::local_prot_err, S::remote_op_err},
      {"exact", {{mb.p, 64, mb.key}}, none, none},
      {"with empty parts", {{mb.p, 0, 0}, {mb.p, 32, mb.key}, {nullptr, 0, 7}, {mb.p + 32, 32, mb.key}}, none, none},
      {"bad part that is not needed", {{mb.p, 64, mb.key}, {mb.p, 64, 0xdead00}}, none, none},
  };
  for (const Case& c : cases) {
    again();
    b->post_recv(*qb, c.list);
    a->post(*qa, to_b(WqeOpcode::send));
    const auto sent = a->wait(*ca), received = b->wait(*cb);
    ASSERT_TRUE(sent.valid && received.valid) << c.what;
    EXPECT_EQ(sent.syndrome, static_cast<unsigned>(c.sender)) << c.what;
    EXPECT_EQ(received.syndrome, static_cast<unsigned>(c.receiver)) << c.what;
    EXPECT_EQ(received.counter, 0u);
    if (c.receiver == none) {
      EXPECT_EQ(std::memcmp(mb.p, ma.p, 64), 0) << c.what;
    }
  }
  works();
}

TEST_F(Wqe, ReceiveRingsOfEveryStrideAndPlace) {
  pair(QpType::rc);
  const Ring good = qb->context->rq;
  for (unsigned log_stride = 0; log_stride < 64; ++log_stride)
    for (unsigned log_entries = 0; log_entries <= 4; ++log_entries)
      for (unsigned place = 0; place < 1u << log_entries; ++place) {
        again();
        qb->context->rq = {good.va, log_entries, log_stride};
        qa->context->rnr_retry = 0;
        const bool sound = log_stride >= 4 && log_stride <= 12 && (std::size_t{1} << (log_stride + log_entries)) <= 4096;
        const bool usable = log_stride >= 4 && log_stride <= 12;
        if (usable && !sound) continue;
        if (sound) {
          std::memset(qb->rq, 0, 4096);
          for (unsigned i = 0; i < 1u << log_entries; ++i)
            prm::View<prm::DataSeg>(qb->rq + (i << log_stride))
                .set<prm::DataSeg::byte_count>(64)
                .set<prm::DataSeg::lkey>(mb.key)
                .set<prm::DataSeg::addr>(reinterpret_cast<std::uint64_t>(mb.p));
        }
        bool arrived = true;
        for (unsigned i = 0; i <= place && arrived; ++i) {
          ring(qb->dbrec, i + 1);
          a->post(*qa, to_b(WqeOpcode::send));
          const auto sent = a->wait(*ca);
          ASSERT_TRUE(sent.valid);
          arrived = sent.opcode == CqeOpcode::req;
          EXPECT_EQ(arrived, sound) << log_stride << " " << log_entries << " " << i;
          if (arrived) {
            EXPECT_EQ(b->wait(*cb).counter, i);
          }
        }
      }
  qb->context->rq = good;
  works();
}

}  // namespace
}  // namespace verbena::device::test
