// Two attachments in one process with QPs of every type between them, put back to the same start before each input.
// Threads: the fuzzer's thread; the engines' helper threads run beside it as they do in programs.
#pragma once

#include <cstdlib>
#include <filesystem>
#include <memory>
#include <vector>

#include "tests/fuzz/confine.h"
#include "tests/unit/device/transport_world.h"

namespace verbena::fuzz {

using device::CqContext;
using device::MkeyContext;
using device::QpContext;
using device::QpState;
using device::QpType;
using device::SrqContext;
namespace test = device::test;

class DeviceWorld {
 public:
  static constexpr std::size_t kBytes = 1 << 16;  // of each side's data memory
  static constexpr unsigned kPairs = 4;           // RC, UC, UD, RC with an SRQ at the receiver

  struct Side {
    std::unique_ptr<test::Process> process;
    test::Cq* cq = nullptr;
    SrqContext* srq = nullptr;
    std::byte* srq_ring = nullptr;
    std::byte* srq_dbrec = nullptr;
    std::array<test::Qp*, kPairs> qp{};
    test::Memory memory{};
    MkeyContext* window = nullptr;  // KLM key, UMR allowed
    std::vector<std::uint32_t> keys;
  };
  Side a, b;

  DeviceWorld() {
    // Promotion would move the fuzzer's own pages.
    setenv("VERBENA_PROMOTE", "0", 1);
    char name[] = "/dev/shm/verbena-fuzz-XXXXXX";
    if (mkdtemp(name) == nullptr) std::abort();
    dir_ = name;
    build(a);
    build(b);
  }
  ~DeviceWorld() {
    a.process.reset();
    b.process.reset();
    std::filesystem::remove_all(dir_);
  }

  void start() {
    for (Side* s : {&a, &b}) start(*s);
    for (unsigned i = 0; i < kPairs; ++i) {
      connect(a, *a.qp[i], b, *b.qp[i]);
      connect(b, *b.qp[i], a, *a.qp[i]);
    }
  }

  // Queues with work left over from an input would run in the next one.
  void stop() {
    for (Side* s : {&a, &b})
      for (test::Qp* q : s->qp) s->process->engine->reset(*q->context);
  }

 private:
  // Copies of what commands would have written: contexts behind their locks are the device's to change.
  template <class T>
  struct Saved {
    T* context;
    alignas(T) std::byte bytes[sizeof(T)];
  };
  template <class T>
  static void save(std::vector<Saved<T>>& list, T& context) {
    auto& saved = list.emplace_back();
    saved.context = &context;
    std::memcpy(saved.bytes, static_cast<const void*>(&context), sizeof(T));
  }

  void build(Side& s) {
    s.process = std::make_unique<test::Process>(dir_);
    test::Process& p = *s.process;
    confine_allow(p.nic->self().arena, kBytes * 64);
    s.cq = p.cq(8, 6);
    s.memory = p.memory(kBytes);
    s.srq_ring = p.dma(std::size_t{64} << 6);
    s.srq_dbrec = p.dma(4096);
    s.srq = p.nic->alloc_srq();
    s.srq->pdn = test::kPd;
    s.srq->cq = ~0u;
    s.srq->state = 1;
    s.srq->ring = {reinterpret_cast<std::uint64_t>(s.srq_ring), 6, 6};
    s.srq->dbrec_va = reinterpret_cast<std::uint64_t>(s.srq_dbrec);
    p.nic->publish(*s.srq);
    const std::array types{QpType::rc, QpType::uc, QpType::ud, QpType::rc};
    for (unsigned i = 0; i < kPairs; ++i) s.qp[i] = p.qp(types[i], s.cq, 6, 6, i == 3 ? s.srq : nullptr);
    // A narrow key inside the memory, a KLM list over it and a window.
    const std::uint32_t narrow = p.key(s.memory.p + 4096, 8192, test::kAllRights);
    MkeyContext* list = p.nic->alloc_mkey();
    fill_list(p, *list, {s.memory.key, narrow, s.memory.key}, device::MkeyMode::klm, test::kAllRights, s.memory.p);
    s.window = p.nic->alloc_mkey();
    fill_list(p, *s.window, {s.memory.key, s.memory.key, list->key.load()}, device::MkeyMode::klm,
              test::kAllRights | device::kMkeyUmr | device::kMkeyRemoteInvalidate, s.memory.p);
    s.window->qpn = s.qp[0]->context->qpn;
    s.keys = {s.memory.key, narrow, list->key.load(), s.window->key.load()};
    for (const std::uint32_t key : s.keys) save(mkeys_, *p.nic->own_mkey(key >> 8));
    save(cqs_, *s.cq->context);
    save(srqs_, *s.srq);
    for (test::Qp* q : s.qp) save(qps_, *q->context);
  }

  static void fill_list(test::Process& p, MkeyContext& m, const std::vector<std::uint32_t>& keys, device::MkeyMode mode,
                        std::uint32_t rights, const std::byte* memory) {
    m.pdn = test::kPd;
    m.qpn = 0xffffff;
    m.flags = rights;
    m.mode = mode;
    m.log_page = 12;
    m.start = 0;
    m.entries = static_cast<std::uint32_t>(keys.size());
    m.length = keys.size() * 2048;
    m.translations = p.nic->alloc_table(m.entries);
    for (unsigned i = 0; i < keys.size(); ++i)
      p.nic->table(m.translations)[i] = {reinterpret_cast<std::uint64_t>(memory) + 4096, 2048, keys[i]};
    p.nic->publish(m);
  }

  template <class T>
  static void restore(const Saved<T>& saved) {
    std::memcpy(static_cast<void*>(saved.context), saved.bytes, sizeof(T));
  }
  static void restore(device::Nic& nic, const Saved<MkeyContext>& saved) {
    restore(saved);
    nic.note(*saved.context);
  }

  void start(Side& s) {
    test::Process& p = *s.process;
    const auto mine = [&](const auto& saved) {
      const auto* at = reinterpret_cast<const std::byte*>(saved.context);
      const auto* slice = reinterpret_cast<const std::byte*>(&p.nic->slice());
      return at >= slice && at < slice + device::kArenaOffset;
    };
    for (const auto& m : mkeys_)
      if (mine(m)) restore(*p.nic, m);
    for (const auto& c : srqs_)
      if (mine(c)) restore(c);
    for (const auto& c : cqs_)
      if (mine(c)) restore(c);
    for (const auto& q : qps_) {
      if (!mine(q)) continue;
      // What commands wrote; the two halves that the engine owns are emptied by reset().
      std::memcpy(static_cast<void*>(&q.context->qpn), q.bytes + offsetof(QpContext, qpn),
                  offsetof(QpContext, sq_lock) - offsetof(QpContext, qpn));
      p.engine->reset(*q.context);
    }
    for (std::size_t i = 0; i < 256; ++i) s.cq->ring[((i + 1) << 6) - 1] = std::byte{0xf1};
    std::memset(s.cq->dbrec, 0, 64);
    s.cq->ci = 0;
    std::memset(s.srq_dbrec, 0, 64);
    for (test::Qp* q : s.qp) {
      std::memset(q->sq, 0, std::size_t{64} << 6);
      std::memset(q->rq, 0, std::size_t{64} << 6);
      std::memset(q->dbrec, 0, 64);
      q->sq_pi = q->rq_pi = 0;
    }
  }

  static void connect(Side& s, test::Qp& q, Side& other, test::Qp& to) {
    s.process->engine->set_state(*q.context, QpState::init);
    s.process->engine->set_state(*q.context, QpState::rtr, [&](QpContext& x) {
      x.dest_qpn = to.context->qpn;
      x.path.port = 1;
      x.path.sgid_index = 3;
      x.path.hop_limit = 64;
      other.process->gid(x.path.rgid);
      x.epsn = 0xfffff0;
    });
    s.process->engine->set_state(*q.context, QpState::rts, [](QpContext& x) { x.next_psn = 0xfffff0; });
  }

  std::string dir_;
  std::vector<Saved<QpContext>> qps_;
  std::vector<Saved<CqContext>> cqs_;
  std::vector<Saved<SrqContext>> srqs_;
  std::vector<Saved<MkeyContext>> mkeys_;
};

}  // namespace verbena::fuzz
