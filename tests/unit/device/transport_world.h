// Two processes' worth of device in one: attachments with hand-built contexts, rings and keys.
#pragma once

#include <gtest/gtest.h>
#include <stdlib.h>

#include <chrono>
#include <cstring>
#include <filesystem>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "device/shared/nic.h"
#include "device/transport/engine.h"
#include "prm/cqe.h"
#include "prm/doorbell.h"
#include "prm/eqe.h"
#include "prm/wqe.h"

namespace verbena::device::test {

struct Cq {
  CqContext* context;
  std::byte* ring;
  std::byte* dbrec;
  std::uint32_t ci = 0;
};

struct Completion {
  bool valid = false;
  prm::CqeOpcode opcode;
  unsigned format, syndrome, vendor, bytes, counter, imm, qpn, wqe_opcode, rqpn, grh;
  std::byte raw[64];
};

struct Qp {
  QpContext* context;
  std::byte* sq;
  std::byte* rq;
  std::byte* dbrec;
  unsigned log_sq, log_rq;  // what the context says may have been scribbled over
  std::uint16_t sq_pi = 0, rq_pi = 0;
  Cq* cq;
};

struct Memory {
  std::byte* p;
  std::size_t bytes;
  std::uint32_t key;
};

#if defined(__SANITIZE_THREAD__)
inline constexpr bool kThreadSanitizer = true;
#else
inline constexpr bool kThreadSanitizer = false;
#endif
inline constexpr std::uint32_t kPd = 7;
inline constexpr std::uint32_t kAllRights = kMkeyLocalRead | kMkeyLocalWrite | kMkeyRemoteRead | kMkeyRemoteWrite | kMkeyAtomic;

// As a library rings: what the device reads must be there before.
inline void ring(std::byte* record, std::uint32_t value) {
  __atomic_store_n(reinterpret_cast<std::uint32_t*>(record), __builtin_bswap32(value), __ATOMIC_RELEASE);
}

class Process {
 public:
  Process(const std::string& dir, const std::string& host = "h") {
    NicConfig c;
    c.run_dir = dir;
    c.host = host;
    auto attached = Nic::attach(c);
    if (!attached) throw std::runtime_error(attached.error().reason);
    nic = std::move(*attached);
    engine = std::make_unique<Engine>(*nic);
  }
  ~Process() { engine.reset(); }

  std::byte* dma(std::size_t n) { return static_cast<std::byte*>(nic->alloc_dma(n)); }

  Cq* cq(unsigned log_entries = 6, unsigned log_bytes = 6) {
    auto cq = std::make_unique<Cq>();
    cq->context = nic->alloc_cq();
    cq->ring = dma(std::size_t{1} << (log_entries + log_bytes));
    cq->dbrec = dma(4096);
    for (std::size_t i = 0; i < std::size_t{1} << log_entries; ++i)
      cq->ring[((i + 1) << log_bytes) - 1] = std::byte{0xf1};
    cq->context->cqe_bytes_log = static_cast<std::uint8_t>(log_bytes);
    cq->context->ring = {reinterpret_cast<std::uint64_t>(cq->ring), log_entries, log_bytes};
    cq->context->dbrec_va = reinterpret_cast<std::uint64_t>(cq->dbrec);
    cq->context->eq = ~0u;
    nic->publish(*cq->context);
    cqs_.push_back(std::move(cq));
    return cqs_.back().get();
  }

  Qp* qp(QpType type, Cq* c, unsigned log_sq = 6, unsigned log_rq = 6, SrqContext* srq = nullptr) {
    auto q = std::make_unique<Qp>();
    q->context = nic->alloc_qp();
    q->sq = dma(std::size_t{64} << log_sq);
    q->rq = dma(std::size_t{64} << log_rq);
    q->dbrec = dma(4096);
    q->cq = c;
    q->log_sq = log_sq;
    q->log_rq = log_rq;
    QpContext& x = *q->context;
    x.type = type;
    x.pdn = kPd;
    x.port = 1;
    x.log_mtu = 10;
    x.retry_count = 2;
    x.rnr_retry = 2;
    x.ack_timeout = 8;
    x.min_rnr_nak = 1;
    x.rre = x.rwe = x.rae = true;
    x.send_cq = x.recv_cq = c->context->cqn;
    x.user_index = 0x1000 + x.qpn;
    x.qkey = 0x11111111;
    x.sq = {reinterpret_cast<std::uint64_t>(q->sq), log_sq, 6};
    x.rq = {reinterpret_cast<std::uint64_t>(q->rq), log_rq, 6};
    x.dbrec_va = reinterpret_cast<std::uint64_t>(q->dbrec);
    if (srq != nullptr) {
      x.srq = nic->index_of(*srq);
      x.rq_type = kRqTypeSrq;
    }
    nic->publish(x);
    engine->reset(x);
    qps_.push_back(std::move(q));
    return qps_.back().get();
  }

  // Memory in the arena (or, `private_memory`, malloc'ed) under a key.
  Memory memory(std::size_t n, std::uint32_t rights = kAllRights, bool private_memory = false) {
    if (private_memory) private_.emplace_back(nullptr, &std::free);
    Memory m{private_memory ? static_cast<std::byte*>(aligned_alloc(4096, (n + 4095) & ~std::size_t{4095})) : dma(n), n, 0};
    if (private_memory) private_.back().reset(m.p);
    std::memset(m.p, 0, n);
    m.key = key(m.p, n, rights);
    return m;
  }
  std::uint32_t key(void* p, std::size_t n, std::uint32_t rights, std::uint32_t pdn = kPd) {
    MkeyContext* k = nic->alloc_mkey();
    k->key.store(k->key.load() | 0x5a);
    k->pdn = pdn;
    k->qpn = 0xffffff;
    k->flags = rights;
    k->mode = MkeyMode::pa;
    k->start = reinterpret_cast<std::uint64_t>(p);
    k->length = n;
    engine->registered(k->start, n);
    nic->publish(*k);
    return k->key;
  }

  void gid(std::uint8_t out[16], unsigned index = 3) { std::memcpy(out, nic->segment().gids[0][index].gid, 16); }

  // ---- posting ----
  struct Sge {
    const void* p;
    std::uint32_t bytes;
    std::uint32_t key;
  };
  struct Wr {
    prm::WqeOpcode opcode = prm::WqeOpcode::send;
    std::vector<Sge> sges;
    std::string inline_data;
    std::uint32_t imm = 0;
    std::uint64_t raddr = 0;
    std::uint32_t rkey = 0;
    std::uint64_t swap_add = 0, compare = 0;
    bool signaled = true, solicited = false;
    std::uint32_t xrc_srqn = 0;  // XRC
    // UD
    const std::uint8_t* dgid = nullptr;
    std::uint32_t dqpn = 0, qkey = 0x11111111, sgid_index = 3;
  };
  void write_wqe(Qp& q, const Wr& wr) {
    alignas(64) std::byte w[1024]{};
    unsigned at = 16;
    if (q.context->type == QpType::ud) {
      const prm::View<prm::UdAdrsVector> av(w + at);
      av.set<prm::UdAdrsVector::qkey>(wr.qkey).set<prm::UdAdrsVector::destination_qp_dct>(wr.dqpn);
      av.set<prm::UdAdrsVector::src_addr_index>(wr.sgid_index).set<prm::UdAdrsVector::hop_limit>(64);
      if (wr.dgid != nullptr) std::memcpy(av.bytes<prm::UdAdrsVector::rgid_rip>().data(), wr.dgid, 16);
      at += 48;
    }
    if (q.context->type == QpType::xrc) {
      prm::View<prm::XrcSeg>(w + at).set<prm::XrcSeg::xrc_srqn>(wr.xrc_srqn);
      at += 16;
    }
    using O = prm::WqeOpcode;
    if (wr.opcode == O::rdma_write || wr.opcode == O::rdma_write_imm || wr.opcode == O::rdma_read ||
        wr.opcode == O::atomic_cs || wr.opcode == O::atomic_fa) {
      prm::View<prm::RaddrSeg>(w + at).set<prm::RaddrSeg::raddr>(wr.raddr).set<prm::RaddrSeg::rkey>(wr.rkey);
      at += 16;
    }
    if (wr.opcode == O::atomic_cs || wr.opcode == O::atomic_fa) {
      prm::View<prm::AtomicSeg>(w + at).set<prm::AtomicSeg::swap_add>(wr.swap_add).set<prm::AtomicSeg::compare>(wr.compare);
      at += 16;
    }
    if (!wr.inline_data.empty()) {
      prm::View<prm::InlineSeg>(w + at).set<prm::InlineSeg::inline_>(1).set<prm::InlineSeg::byte_count>(
          static_cast<std::uint32_t>(wr.inline_data.size()));
      std::memcpy(w + at + 4, wr.inline_data.data(), wr.inline_data.size());
      at += (4 + static_cast<unsigned>(wr.inline_data.size()) + 15) / 16 * 16;
    }
    for (const Sge& s : wr.sges) {
      prm::View<prm::DataSeg>(w + at)
          .set<prm::DataSeg::byte_count>(s.bytes)
          .set<prm::DataSeg::lkey>(s.key)
          .set<prm::DataSeg::addr>(reinterpret_cast<std::uint64_t>(s.p));
      at += 16;
    }
    prm::View<prm::CtrlSeg>(w)
        .set<prm::CtrlSeg::opcode>(wr.opcode)
        .set<prm::CtrlSeg::wqe_index>(q.sq_pi)
        .set<prm::CtrlSeg::qpn>(q.context->qpn)
        .set<prm::CtrlSeg::ds>(at / 16)
        .set<prm::CtrlSeg::se>(wr.solicited)
        .set<prm::CtrlSeg::ce>(wr.signaled ? prm::WqeCompletion::always : prm::WqeCompletion::on_error)
        .set<prm::CtrlSeg::imm>(wr.imm);
    raw_wqe(q, w, at);
  }
  void raw_wqe(Qp& q, const std::byte* w, unsigned bytes) {
    const unsigned size = 64u << q.log_sq;
    for (unsigned i = 0; i < bytes; ++i) q.sq[(q.sq_pi * 64u + i) % size] = w[i];
    q.sq_pi = static_cast<std::uint16_t>(q.sq_pi + (bytes + 63) / 64);
    ring(q.dbrec + 4, q.sq_pi);
  }
  void post(Qp& q, const Wr& wr) {
    write_wqe(q, wr);
    engine->ring_sq(*q.context);
  }
  void post_recv(Qp& q, const std::vector<Sge>& sges) {
    std::byte* w = q.rq + (q.rq_pi & ((1u << q.log_rq) - 1)) * 64u;
    std::memset(w, 0, 64);
    unsigned at = 0;
    for (const Sge& s : sges) {
      prm::View<prm::DataSeg>(w + at)
          .set<prm::DataSeg::byte_count>(s.bytes)
          .set<prm::DataSeg::lkey>(s.key)
          .set<prm::DataSeg::addr>(reinterpret_cast<std::uint64_t>(s.p));
      at += 16;
    }
    if (at < 64) prm::View<prm::DataSeg>(w + at).set<prm::DataSeg::lkey>(prm::kInvalidLkey);
    ring(q.dbrec, ++q.rq_pi);
  }

  Completion poll(Cq& c) {
    engine->step();
    const unsigned log_bytes = c.context->cqe_bytes_log, log_entries = c.context->ring.log_entries;
    const std::byte* e = c.ring + ((c.ci & ((1u << log_entries) - 1)) << log_bytes) + (log_bytes == 7 ? 64 : 0);
    Completion out;
    const auto own = reinterpret_cast<const std::atomic<std::uint8_t>*>(e + 63)->load(std::memory_order_acquire);
    if (own >> 4 == 0xf || (own & 1) != (c.ci >> log_entries & 1)) return out;
    const prm::ConstView<prm::Cqe64> v(e);
    const prm::ConstView<prm::ErrCqe> err(e);
    out.valid = true;
    out.opcode = v.get<prm::Cqe64::opcode>();
    out.format = static_cast<unsigned>(v.get<prm::Cqe64::format>());
    const bool bad = out.opcode == prm::CqeOpcode::req_err || out.opcode == prm::CqeOpcode::resp_err;
    out.syndrome = bad ? static_cast<unsigned>(err.get<prm::ErrCqe::syndrome>()) : 0;
    out.vendor = bad ? err.get<prm::ErrCqe::vendor_err_synd>() : 0;
    out.bytes = v.get<prm::Cqe64::byte_cnt>();
    out.counter = v.get<prm::Cqe64::wqe_counter>();
    out.imm = v.get<prm::Cqe64::imm_inval_pkey>();
    out.qpn = v.get<prm::Cqe64::qpn>();
    out.wqe_opcode = v.get<prm::Cqe64::send_wqe_opcode>();
    out.rqpn = v.get<prm::Cqe64::rqpn>();
    out.grh = v.get<prm::Cqe64::g>();
    std::memcpy(out.raw, e, 64);
    ++c.ci;
    ring(c.dbrec, c.ci & 0xffffff);
    return out;
  }
  Completion wait(Cq& c, unsigned ms = 3000) {
    const auto end = std::chrono::steady_clock::now() + std::chrono::milliseconds(ms);
    for (;;) {
      Completion done = poll(c);
      if (done.valid || std::chrono::steady_clock::now() > end) return done;
      std::this_thread::yield();
    }
  }

  std::unique_ptr<Nic> nic;
  std::unique_ptr<Engine> engine;

 private:
  std::vector<std::unique_ptr<Cq>> cqs_;
  std::vector<std::unique_ptr<Qp>> qps_;
  std::vector<std::unique_ptr<void, decltype(&std::free)>> private_;
};

class World : public ::testing::Test {
 protected:
  void SetUp() override {
    char name[] = "/dev/shm/verbena-test-XXXXXX";
    ASSERT_NE(mkdtemp(name), nullptr);
    dir_ = name;
    a = std::make_unique<Process>(dir_);
    b = std::make_unique<Process>(dir_, second_host());
  }
  void TearDown() override {
    a.reset();
    b.reset();
    std::filesystem::remove_all(dir_);
  }
  virtual std::string second_host() { return "h"; }

  static void ready(Process& p, Qp& q, Process& peer_process, const QpContext& peer, std::uint32_t psn = 0xfffff0) {
    p.engine->set_state(*q.context, QpState::init);
    p.engine->set_state(*q.context, QpState::rtr, [&](QpContext& x) {
      x.dest_qpn = peer.qpn;
      x.path.port = 1;
      x.path.sgid_index = 3;
      x.path.hop_limit = 64;
      peer_process.gid(x.path.rgid);
      x.epsn = psn;
    });
    p.engine->set_state(*q.context, QpState::rts, [&](QpContext& x) { x.next_psn = psn; });
  }
  void connect(Qp& qa, Qp& qb) {
    ready(*a, qa, *b, *qb.context);
    ready(*b, qb, *a, *qa.context);
  }

  std::string dir_;
  std::unique_ptr<Process> a, b;
};

// A connected pair of RC QPs.
class RcPair : public World {
 protected:
  void SetUp() override {
    World::SetUp();
    ca = a->cq();
    cb = b->cq();
    qa = a->qp(QpType::rc, ca);
    qb = b->qp(QpType::rc, cb);
    connect(*qa, *qb);
  }
  Cq *ca, *cb;
  Qp *qa, *qb;
};

}  // namespace verbena::device::test
