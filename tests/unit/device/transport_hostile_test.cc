// What fuzzing found in shared words and key tables: each is an answer, never a crash or a hang.
#include <algorithm>

#include "transport_world.h"

namespace verbena::device::test {
namespace {

using prm::CqeOpcode;
using prm::CqeSyndrome;
using prm::WqeOpcode;

class Hostile : public RcPair {
 protected:
  void SetUp() override {
    RcPair::SetUp();
    mb = b->memory(8192);
  }
  // A key over a table of `entries` equal entries.
  MkeyContext* list(Process& p, std::uint32_t entries, const Translation& entry) {
    MkeyContext* m = p.nic->alloc_mkey();
    m->pdn = kPd;
    m->qpn = 0xffffff;
    m->flags = kAllRights | kMkeyUmr;
    m->mode = MkeyMode::klm;
    m->entries = entries;
    m->length = std::uint64_t{entries} * entry.bytes;
    m->translations = p.nic->alloc_table(entries);
    for (std::uint32_t i = 0; i < entries; ++i) p.nic->table(m->translations)[i] = entry;
    p.nic->publish(*m);
    return m;
  }
  // Memory that the program never gave to the device.
  struct Bystander {
    std::byte bytes[8192];
    Bystander() { std::memset(bytes, 0x77, sizeof bytes); }
    bool untouched() const { return std::ranges::all_of(bytes, [](std::byte b) { return b == std::byte{0x77}; }); }
    std::uint64_t va() const { return reinterpret_cast<std::uint64_t>(bytes); }
  };
  Memory mb;
};

// Every byte at the end of the outer list walks the whole of the inner one: 2^32 steps for 64 KiB without a bound.
TEST_F(Hostile, ListsOfListsHaveABound) {
  constexpr std::uint32_t kEntries = 1 << 16;
  MkeyContext* inner = list(*b, kEntries, {reinterpret_cast<std::uint64_t>(mb.p), 1, mb.key});
  MkeyContext* outer = list(*b, kEntries, {kEntries - 1, 1, inner->key.load()});
  const Memory ma = a->memory(kEntries);
  a->post(*qa,
          {.opcode = WqeOpcode::rdma_write, .sges = {{ma.p, kEntries, ma.key}}, .raddr = 0, .rkey = outer->key.load()});
  const auto done = a->wait(*ca);
  ASSERT_TRUE(done.valid);
  EXPECT_EQ(done.syndrome, static_cast<unsigned>(CqeSyndrome::remote_access_err));
}

// By its own account: another process may write what it likes into the shared one.
TEST_F(Hostile, UmrKnowsWhereTheTableLies) {
  MkeyContext* m = list(*b, 4, {0, 64, mb.key});
  alignas(64) std::byte w[192]{};
  prm::View<prm::CtrlSeg>(w)
      .set<prm::CtrlSeg::opcode>(WqeOpcode::umr)
      .set<prm::CtrlSeg::qpn>(qb->context->qpn)
      .set<prm::CtrlSeg::ds>(12)
      .set<prm::CtrlSeg::ce>(prm::WqeCompletion::always)
      .set<prm::CtrlSeg::imm>(m->key.load());
  prm::View<prm::UmrCtrlSeg>(w + 16)
      .set<prm::UmrCtrlSeg::flags>(prm::UmrFlag::inline_)
      .set<prm::UmrCtrlSeg::klm_octowords>(4);
  prm::View<prm::Klm>(w + 128).set<prm::Klm::byte_count>(64).set<prm::Klm::key>(mb.key).set<prm::Klm::address>(
      reinterpret_cast<std::uint64_t>(mb.p));
  const std::uint64_t good = m->translations;
  m->translations = kSliceBytes + (std::uint64_t{1} << 40);  // another process wrote it
  b->raw_wqe(*qb, w, sizeof w);
  b->engine->ring_sq(*qb->context);
  EXPECT_EQ(b->wait(*cb).opcode, CqeOpcode::req);
  EXPECT_EQ(b->nic->table(good)[0].va, reinterpret_cast<std::uint64_t>(mb.p));
}

TEST_F(Hostile, OffsetBehindTheMessageStartsItAgain) {
  qa->context->req_flags = kReqStarted;
  qa->context->wqe_offset = 1 << 20;
  qa->context->msg_psn = qa->context->next_psn;
  const Memory ma = a->memory(4096);
  mb.p[0] = std::byte{42};
  a->post(*qa, {.opcode = WqeOpcode::rdma_read,
                .sges = {{ma.p, 64, ma.key}},
                .raddr = reinterpret_cast<std::uint64_t>(mb.p),
                .rkey = mb.key});
  const auto done = a->wait(*ca);
  ASSERT_EQ(done.opcode, CqeOpcode::req) << done.syndrome;
  EXPECT_EQ(ma.p[0], std::byte{42});
}

// ---- a peer overwrites where our objects lie: our own thread must not follow it ----

TEST_F(Hostile, CompletionQueueOverwritten) {
  const auto bystander = std::make_unique<Bystander>();
  const std::uint64_t good = ca->context->ring.va;
  const Memory ma = a->memory(64);
  for (const std::uint64_t va : {bystander->va(), good - 64, std::uint64_t{0}, ~std::uint64_t{63}}) {
    Cq* cq = a->cq();
    Qp *from = a->qp(QpType::rc, cq), *to = b->qp(QpType::rc, cb);
    connect(*from, *to);
    cq->context->ring.va = va;
    cq->context->cqe_bytes_log = 7;
    from->context->cs_req = 0x22;  // data into the CQE, too
    a->post(*from, {.opcode = WqeOpcode::rdma_read,
                    .sges = {{ma.p, 60, ma.key}},
                    .raddr = reinterpret_cast<std::uint64_t>(mb.p),
                    .rkey = mb.key});
    EXPECT_TRUE(bystander->untouched());
  }
}

TEST_F(Hostile, EventQueueOverwritten) {
  const auto bystander = std::make_unique<Bystander>();
  EqContext* eq = a->nic->alloc_eq();
  eq->ring = {reinterpret_cast<std::uint64_t>(a->dma(4096)), 6, 6};
  a->nic->publish(*eq);
  ca->context->eq = eq->eqn;
  ca->context->arm = kCqArmed;
  eq->ring.va = bystander->va();
  const Memory ma = a->memory(64);
  a->post(*qa, {.opcode = WqeOpcode::rdma_write, .sges = {{ma.p, 8, ma.key}}, .raddr = reinterpret_cast<std::uint64_t>(mb.p), .rkey = mb.key});
  EXPECT_EQ(a->wait(*ca).opcode, CqeOpcode::req);
  EXPECT_EQ(eq->pi, 0u);
  EXPECT_TRUE(bystander->untouched());
}

// Every word of our key, and of its page list, says something else: READs land in the region or fail.
TEST_F(Hostile, KeyOverwritten) {
  const auto bystander = std::make_unique<Bystander>();
  mb.p[0] = std::byte{0x55};
  for (const bool list : {false, true})
    for (std::size_t word = 0; word < sizeof(MkeyContext); word += 8)
      for (const bool all : {false, true}) {
        Cq* cq = a->cq();
        Qp *from = a->qp(QpType::rc, cq), *to = b->qp(QpType::rc, cb);
        connect(*from, *to);
        const Memory ma = a->memory(4096);
        MkeyContext* key = a->nic->own_mkey(ma.key >> 8);
        std::uint32_t lkey = ma.key;
        std::uint64_t va = reinterpret_cast<std::uint64_t>(ma.p);
        if (list) {
          key = a->nic->alloc_mkey();
          key->pdn = kPd;
          key->qpn = 0xffffff;
          key->flags = kAllRights;
          key->mode = MkeyMode::mtt;
          key->log_page = 12;
          key->length = 4096;
          key->entries = 1;
          key->translations = a->nic->alloc_table(1);
          a->nic->table(key->translations)[0] = {va, 4096, 0};
          a->nic->publish(*key);
          a->nic->table(key->translations)[0].va = bystander->va();
          lkey = key->key.load();
          va = 0;
        }
        const std::uint64_t value = all ? ~std::uint64_t{0} : bystander->va() - va;
        std::memcpy(reinterpret_cast<std::byte*>(key) + word, &value, sizeof value);
        a->post(*from, {.opcode = WqeOpcode::rdma_read,
                        .sges = {{reinterpret_cast<void*>(va), 64, lkey}},
                        .raddr = reinterpret_cast<std::uint64_t>(mb.p),
                        .rkey = mb.key});
        const auto done = a->wait(*cq);
        ASSERT_TRUE(done.valid);
        if (done.opcode == CqeOpcode::req) {
          EXPECT_EQ(ma.p[0], std::byte{0x55}) << word;
        } else {
          EXPECT_EQ(done.syndrome, static_cast<unsigned>(CqeSyndrome::local_prot_err)) << word;
        }
        EXPECT_TRUE(bystander->untouched()) << word;
      }
}

// A lock that names a process which lives, and has nothing to do with it.
TEST_F(Hostile, LocksThatNobodyHolds) {
  set_lock_patience(20'000'000);
  const std::uint32_t other = b->nic->me();
  const Memory ma = a->memory(64);
  const auto overwrite = [other](SharedLock& lock) { std::memcpy(static_cast<void*>(&lock), &other, sizeof other); };
  SharedLock* locks[] = {&qa->context->sq_lock,  &qa->context->rx_lock, &qb->context->rx_lock, &ca->context->lock,
                         &cb->context->lock,     &b->nic->slice().header.atomic_lock,
                         &a->nic->segment().lock};
  for (SharedLock* lock : locks) {
    overwrite(*lock);
    a->post(*qa, {.opcode = WqeOpcode::atomic_fa,
                  .sges = {{ma.p, 8, ma.key}},
                  .raddr = reinterpret_cast<std::uint64_t>(mb.p),
                  .rkey = mb.key,
                  .swap_add = 1});
    EXPECT_EQ(a->wait(*ca).opcode, CqeOpcode::req);
    const std::uint8_t group[16] = {0xff, 1};
    EXPECT_EQ(a->nic->attach_multicast(group, qa->context->qpn), 0);
  }
  a->engine->move_to_error(*qa->context);
  set_lock_patience(1'000'000'000);
}

}  // namespace
}  // namespace verbena::device::test
