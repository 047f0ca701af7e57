// Send and receive rings: WQEs of every shape, raw bytes, absurd doorbell records, on live QPs of every type.
#include "tests/fuzz/device_world.h"
#include "tests/fuzz/input.h"

namespace verbena::fuzz {
namespace {

DeviceWorld* world = nullptr;

class Actions {
 public:
  Actions(DeviceWorld& w, Input in) : w_(w), in_(in) {}

  void run() {
    for (unsigned i = 0; i < 64 && in_.more(); ++i) one();
  }

 private:
  using Side = DeviceWorld::Side;

  void one() {
    Side& s = in_.one_in(4) ? w_.b : w_.a;
    test::Qp& q = *s.qp[in_.below(DeviceWorld::kPairs)];
    device::Engine& engine = *s.process->engine;
    switch (in_.below(12)) {
      case 0:
      case 1:
      case 2:
      case 3:
        return post(s, q);
      case 4:
        engine.ring_sq(*q.context);
        return;
      case 5:
        return receive(q);
      case 6:  // a doorbell record that says anything
        prm::store_be32(q.dbrec + (in_.take() & 4), static_cast<std::uint32_t>(in_.number()));
        engine.ring_sq(*q.context);
        return;
      case 7: {  // bytes anywhere in a ring
        std::byte* ring = in_.take() & 1 ? q.sq : q.rq;
        ring[in_.take<std::uint16_t>() % 4096] = static_cast<std::byte>(in_.take());
        return;
      }
      case 8:
        engine.step();
        return;
      case 9:
        prm::store_be32(s.cq->dbrec + (in_.take() & 4), static_cast<std::uint32_t>(in_.number()));
        engine.arm_cq(*s.cq->context);
        return;
      case 10:
        return srq(s);
      default:
        engine.set_state(*q.context, static_cast<QpState>(in_.below(7)));
    }
  }

  std::uint32_t key() {
    Side& s = in_.take() & 1 ? w_.a : w_.b;
    const std::uint32_t known = s.keys[in_.below(static_cast<std::uint32_t>(s.keys.size()))];
    return in_.one_in(16) ? static_cast<std::uint32_t>(in_.number()) : known;
  }
  std::uint64_t address() {
    if (in_.one_in(8)) return in_.number();
    const Side& s = in_.take() & 1 ? w_.a : w_.b;
    const std::uint64_t base = in_.one_in(4) ? 0 : reinterpret_cast<std::uint64_t>(s.memory.p);
    return base + in_.take<std::uint16_t>();
  }
  std::uint32_t length() {
    switch (in_.below(4)) {
      case 0:
        return static_cast<std::uint32_t>(in_.number());
      case 1:
        return in_.take<std::uint16_t>();
      default:
        return in_.take();
    }
  }

  unsigned data_segments(std::byte* w, unsigned at, unsigned end) {
    for (unsigned n = in_.below(6); n != 0 && at + 16 <= end; --n) {
      if (in_.one_in(4)) {
        const std::uint32_t bytes = in_.one_in(8) ? length() : in_.take() % 96;
        prm::View<prm::InlineSeg>(w + at).set<prm::InlineSeg::inline_>(1).set<prm::InlineSeg::byte_count>(bytes);
        at += std::min(112u, (4 + bytes % 96 + 15) / 16 * 16);
        continue;
      }
      prm::View<prm::DataSeg>(w + at)
          .set<prm::DataSeg::byte_count>(length())
          .set<prm::DataSeg::lkey>(key())
          .set<prm::DataSeg::addr>(address());
      at += 16;
    }
    return std::min(at, end);
  }

  unsigned umr(std::byte* w, unsigned at) {
    const prm::View<prm::UmrCtrlSeg> ctrl(w + at);
    ctrl.set<prm::UmrCtrlSeg::flags>(in_.take()).set<prm::UmrCtrlSeg::klm_octowords>(in_.take() % 8);
    ctrl.set<prm::UmrCtrlSeg::mkey_mask>(in_.take<std::uint32_t>());
    at += prm::UmrCtrlSeg::size;
    const prm::View<prm::Mkc> mkc(w + at);
    mkc.set<prm::Mkc::start_addr>(address()).set<prm::Mkc::len>(length()).set<prm::Mkc::lr>(1).set<prm::Mkc::lw>(1);
    mkc.set<prm::Mkc::rr>(in_.take() & 1).set<prm::Mkc::rw>(1).set<prm::Mkc::a>(1).set<prm::Mkc::free>(in_.take() & 1);
    mkc.set<prm::Mkc::pd>(test::kPd).set<prm::Mkc::mkey_7_0>(in_.take() & 1);
    at += prm::Mkc::size;
    for (unsigned n = in_.below(5); n != 0; --n, at += prm::Klm::size)
      prm::View<prm::Klm>(w + at).set<prm::Klm::byte_count>(length()).set<prm::Klm::key>(key()).set<prm::Klm::address>(
          address());
    return at;
  }

  void post(Side& s, test::Qp& q) {
    using O = prm::WqeOpcode;
    static constexpr std::array opcodes{O::nop,        O::send,           O::send_imm,  O::send_inval,
                                        O::rdma_write, O::rdma_write_imm, O::rdma_read, O::atomic_cs,
                                        O::atomic_fa,  O::local_inval,    O::umr};
    alignas(64) std::byte w[2048]{};
    const O opcode = in_.one_in(16) ? static_cast<O>(in_.take()) : opcodes[in_.below(opcodes.size())];
    unsigned at = prm::CtrlSeg::size;
    if (q.context->type == QpType::ud) {
      const prm::View<prm::UdAdrsVector> av(w + at);
      const Side& to = in_.take() & 1 ? w_.a : w_.b;
      av.set<prm::UdAdrsVector::qkey>(in_.one_in(8) ? length() : 0x11111111);
      av.set<prm::UdAdrsVector::destination_qp_dct>(in_.one_in(8) ? length() & 0xffffff : to.qp[2]->context->qpn);
      av.set<prm::UdAdrsVector::src_addr_index>(in_.one_in(8) ? in_.take() : 3).set<prm::UdAdrsVector::hop_limit>(64);
      to.process->gid(reinterpret_cast<std::uint8_t*>(av.bytes<prm::UdAdrsVector::rgid_rip>().data()));
      if (in_.one_in(8)) av.bytes<prm::UdAdrsVector::rgid_rip>()[0] = std::byte{0xff};
      at += prm::UdAdrsVector::size;
    }
    if (opcode == O::umr) {
      at = umr(w, at);
    } else {
      if (opcode >= O::rdma_write && opcode <= O::atomic_fa && opcode != O::send && opcode != O::send_imm) {
        prm::View<prm::RaddrSeg>(w + at).set<prm::RaddrSeg::raddr>(address()).set<prm::RaddrSeg::rkey>(key());
        at += prm::RaddrSeg::size;
      }
      if (opcode == O::atomic_cs || opcode == O::atomic_fa) {
        prm::View<prm::AtomicSeg>(w + at).set<prm::AtomicSeg::swap_add>(in_.number()).set<prm::AtomicSeg::compare>(0);
        at += prm::AtomicSeg::size;
        prm::View<prm::DataSeg>(w + at)
            .set<prm::DataSeg::byte_count>(8)
            .set<prm::DataSeg::lkey>(s.memory.key)
            .set<prm::DataSeg::addr>(reinterpret_cast<std::uint64_t>(s.memory.p));
        at += prm::DataSeg::size;
      }
      at = data_segments(w, at, 1008);
    }
    const prm::View<prm::CtrlSeg> ctrl(w);
    ctrl.set<prm::CtrlSeg::opcode>(opcode).set<prm::CtrlSeg::wqe_index>(q.sq_pi);
    ctrl.set<prm::CtrlSeg::qpn>(in_.one_in(32) ? length() & 0xffffff : q.context->qpn);
    ctrl.set<prm::CtrlSeg::ds>(in_.one_in(16) ? in_.take() & 63 : at / 16);
    ctrl.set<prm::CtrlSeg::se>(in_.take() & 1).set<prm::CtrlSeg::imm>(in_.take() & 1 ? key() : s.window->key.load());
    ctrl.set<prm::CtrlSeg::ce>(static_cast<prm::WqeCompletion>(in_.take() & 3));
    ctrl.set<prm::CtrlSeg::fm>(static_cast<prm::WqeFence>(in_.one_in(8) ? in_.take() & 7 : 0));
    s.process->raw_wqe(q, w, at);
    if (!in_.one_in(4)) s.process->engine->ring_sq(*q.context);
  }

  void receive(test::Qp& q) {
    std::byte* w = q.rq + (q.rq_pi & 63) * 64u;
    std::memset(w, 0, 64);
    for (unsigned n = in_.below(5), at = 0; n != 0; --n, at += 16)
      prm::View<prm::DataSeg>(w + at)
          .set<prm::DataSeg::byte_count>(length())
          .set<prm::DataSeg::lkey>(in_.one_in(8) ? prm::kInvalidLkey : key())
          .set<prm::DataSeg::addr>(address());
    prm::store_be32(q.dbrec, ++q.rq_pi);
  }

  void srq(Side& s) {
    std::byte* w = s.srq_ring + in_.below(64) * 64;
    prm::View<prm::SrqNextSeg>(w).set<prm::SrqNextSeg::next_wqe_index>(in_.take<std::uint16_t>());
    for (unsigned at = 16; at < 64; at += 16)
      prm::View<prm::DataSeg>(w + at)
          .set<prm::DataSeg::byte_count>(length())
          .set<prm::DataSeg::lkey>(key())
          .set<prm::DataSeg::addr>(address());
    prm::store_be32(s.srq_dbrec, in_.take() & 1 ? 64 : static_cast<std::uint32_t>(in_.number()));
    s.srq->limit.store(in_.take());
    s.process->engine->check_srq_limit(*s.srq);
  }

  DeviceWorld& w_;
  Input in_;
};

}  // namespace
}  // namespace verbena::fuzz

extern "C" int LLVMFuzzerInitialize(int*, char***) {
  using verbena::fuzz::world;
  world = new verbena::fuzz::DeviceWorld;
  std::atexit([] {
    delete world;
    world = nullptr;
  });
  return 0;
}

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  auto& world = *verbena::fuzz::world;
  world.start();
  verbena::fuzz::Actions(world, {data, size}).run();
  world.stop();
  return 0;
}
