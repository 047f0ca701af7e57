// What fuzzing found in shared words and key tables: each is an answer, never a crash or a hang.
#include "transport_world.h"

namespace verbena::device::test {
namespace {

using prm::CqeOpcode;
using prm::CqeSyndrome;
using prm::WqeOpcode;

class Hostile : public World {
 protected:
  void SetUp() override {
    World::SetUp();
    ca = a->cq();
    cb = b->cq();
    qa = a->qp(QpType::rc, ca);
    qb = b->qp(QpType::rc, cb);
    connect(*qa, *qb);
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
    Nic::publish(*m);
    return m;
  }
  Cq *ca, *cb;
  Qp *qa, *qb;
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

TEST_F(Hostile, UmrChecksWhereTheTableLies) {
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
  EXPECT_EQ(b->wait(*cb).syndrome, static_cast<unsigned>(CqeSyndrome::mw_bind_err));
  m->translations = good;
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

}  // namespace
}  // namespace verbena::device::test
