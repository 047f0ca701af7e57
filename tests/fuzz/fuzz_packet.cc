// Packets of every shape into responders in every state, and words of shared memory that another process overwrote
// behind the device's back: contexts, tables, rings, locks, headers. The target's process is seen once as our own and
// once as a stranger's.
#include <array>
#include <vector>

#include "device/transport/responder.h"
#include "fabric/frame.h"
#include "tests/fuzz/device_world.h"
#include "tests/fuzz/input.h"

namespace verbena::fuzz {
namespace {

using device::CqContext;
using device::EqContext;

DeviceWorld* world = nullptr;

// Overwritten bytes, put back when the input ends.
class Vandal {
 public:
  ~Vandal() {
    for (auto it = undo_.rbegin(); it != undo_.rend(); ++it) std::memcpy(it->at, it->old, it->bytes);
  }
  void write(void* base, std::size_t offset, std::size_t bytes, std::uint64_t value) {
    Undo u{static_cast<std::byte*>(base) + offset, static_cast<unsigned>(bytes), {}};
    std::memcpy(u.old, u.at, bytes);
    undo_.push_back(u);
    std::memcpy(u.at, &value, bytes);
  }

 private:
  struct Undo {
    std::byte* at;
    unsigned bytes;
    std::byte old[8];
  };
  std::vector<Undo> undo_;
};

class Actions {
 public:
  Actions(DeviceWorld& w, Input in) : w_(w), in_(in) {}

  void run() {
    const bool strange = in_.take() & 1;
    device::Peer* peer = stranger(strange, nullptr);
    for (unsigned i = 0; i < 64 && in_.more(); ++i) one();
    if (strange) stranger(false, peer);
  }

 private:
  using Side = DeviceWorld::Side;

  // Whether a's view of b goes through the arena and process_vm, as between processes.
  device::Peer* stranger(bool on, device::Peer* peer) {
    if (peer == nullptr) peer = w_.a.process->nic->peer(w_.b.process->nic->slot());
    if (peer == nullptr) __builtin_trap();
    peer->self = !on;
    peer->dead = false;
    peer->process_vm = device::Peer::ProcessVm::unknown;
    peer->own = on ? nullptr : peer->own_kept.get();
    peer->key_facts = on ? peer->slice->mkeys : peer->own->keys();
    return peer;
  }

  void one() {
    test::Qp& q = *w_.b.qp[in_.below(DeviceWorld::kPairs)];
    device::Engine& engine = *w_.b.process->engine;
    switch (in_.below(10)) {
      case 0:
      case 1:
      case 2:
      case 3:
        return packet(q);
      case 4:
      case 5:
        return corrupt(in_.one_in(4) ? w_.a : w_.b);
      case 6:
        return receive(q);
      case 7:
        engine.set_state(*q.context, static_cast<QpState>(in_.below(7)));
        return;
      case 8:
        engine.step();
        w_.a.process->engine->step();
        return;
      default:
        return send(*w_.a.qp[in_.below(DeviceWorld::kPairs)]);
    }
  }

  std::uint32_t key(Side& s) {
    return in_.one_in(8) ? static_cast<std::uint32_t>(in_.number())
                         : s.keys[in_.below(static_cast<std::uint32_t>(s.keys.size()))];
  }
  std::uint64_t address(Side& s) {
    if (in_.one_in(8)) return in_.number();
    return (in_.one_in(4) ? 0 : reinterpret_cast<std::uint64_t>(s.memory.p)) + in_.take<std::uint16_t>();
  }
  std::uint32_t length() {
    return in_.one_in(4) ? static_cast<std::uint32_t>(in_.number()) : in_.take<std::uint16_t>() % 5000;
  }

  void packet(test::Qp& q) {
    fabric::Address address_on_wire;
    in_.bytes(address_on_wire.sgid.data(), 4);
    address_on_wire.carrier = static_cast<fabric::Carrier>(in_.below(3));
    address_on_wire.hop_limit = in_.take();
    fabric::Packet p;
    p.address = &address_on_wire;
    p.dest_qpn = in_.one_in(16) ? static_cast<std::uint32_t>(in_.number()) : q.context->qpn;
    const unsigned service = q.context->type == QpType::rc ? 0 : q.context->type == QpType::uc ? 1 : 3;
    p.opcode = static_cast<std::uint8_t>((in_.one_in(16) ? in_.take() & 0xe0u : service << 5) | (in_.take() & 0x1f));
    p.psn = (q.context->epsn + (in_.one_in(4) ? static_cast<std::uint32_t>(in_.number()) : 0)) & 0xffffff;
    p.solicited = in_.take() & 1;
    p.ack_request = in_.take() & 1;
    p.qkey = in_.one_in(8) ? 0 : 0x11111111;
    p.src_qpn = w_.a.qp[0]->context->qpn;
    p.va = address(w_.b);
    p.rkey = key(w_.b);
    p.invalidate = p.immediate = key(w_.b);
    p.swap_add = in_.take();
    const std::uint64_t bytes = in_.one_in(4) ? 0 : in_.take<std::uint16_t>() % (16 << 10);
    p.length = in_.one_in(4) ? length() : static_cast<std::uint32_t>(bytes);
    p.payload_bytes = static_cast<std::uint32_t>(bytes);
    device::PieceList from;
    from.add(in_.take() & 1 ? &w_.a.process->nic->self() : nullptr, reinterpret_cast<std::uint64_t>(w_.a.memory.p),
             in_.one_in(8) ? bytes / 2 : bytes);
    device::Nic& nic = *w_.a.process->nic;
    const auto found = nic.find_qp(q.context->qpn);
    device::Reply reply;
    if (found) {
      device::Deferred deferred(&nic.self());
      device::Responder(nic, *found.peer, *found.context, nic.me(), deferred).receive(p, {&from, 0, bytes}, reply);
    }
    frame(p, bytes);
  }

  // What a capture makes of it.
  void frame(fabric::Packet& p, std::uint64_t bytes) {
    std::vector<std::byte> out;
    p.payload = {w_.a.memory.p, static_cast<std::size_t>(in_.one_in(8) ? std::size_t{DeviceWorld::kBytes} : bytes)};
    p.payload_bytes = static_cast<std::uint32_t>(p.payload.size());
    if (!fabric::encode_frame(p, out) && !out.empty()) __builtin_trap();
  }

  void receive(test::Qp& q) {
    Side& s = w_.b;
    std::byte* w = q.rq + (q.rq_pi & 63) * 64u;
    for (unsigned n = 1 + in_.below(4), at = 0; n != 0; --n, at += 16)
      prm::View<prm::DataSeg>(w + at)
          .set<prm::DataSeg::byte_count>(length())
          .set<prm::DataSeg::lkey>(key(s))
          .set<prm::DataSeg::addr>(address(s));
    prm::store_be32(q.dbrec, ++q.rq_pi);
    prm::View<prm::SrqNextSeg>(s.srq_ring).set<prm::SrqNextSeg::next_wqe_index>(in_.take());
    std::memcpy(s.srq_ring + 16, w, 48);
    prm::store_be32(s.srq_dbrec, in_.take() & 63);
  }

  // Real traffic, so that the requester meets the overwritten words too.
  void send(test::Qp& q) {
    using O = prm::WqeOpcode;
    static constexpr std::array opcodes{O::send,           O::send_imm,  O::send_inval, O::rdma_write,
                                        O::rdma_write_imm, O::rdma_read, O::atomic_fa};
    test::Process::Wr wr;
    wr.opcode = opcodes[in_.below(opcodes.size())];
    std::uint8_t gid[16];
    w_.b.process->gid(gid);
    wr.dgid = gid;
    wr.dqpn = w_.b.qp[2]->context->qpn;
    wr.imm = wr.rkey = key(w_.b);
    wr.raddr = address(w_.b);
    const std::uint32_t bytes = wr.opcode == O::atomic_fa ? 8 : 1 + in_.take<std::uint16_t>() % 8192;
    wr.sges.push_back({w_.a.memory.p, bytes, w_.a.memory.key});
    {
      Vandal sane;  // the fixture takes the ring's size and the type from the context
      sane.write(&q.context->sq, offsetof(device::Ring, log_entries), 4, 6);
      w_.a.process->write_wqe(q, wr);
    }
    w_.a.process->engine->ring_sq(*q.context);
  }

  // ---- overwritten shared memory ----

  template <class T>
  void overwrite(T& context) {
    anywhere(&context, sizeof(T), 1 + in_.below(3));
  }
  void anywhere(void* base, std::size_t size, unsigned times) {
    for (; times != 0; --times) {
      static constexpr std::array<std::size_t, 4> sizes{1, 2, 4, 8};
      const std::size_t bytes = sizes[in_.below(sizes.size())];
      const std::size_t at = in_.take<std::uint32_t>() % (size / bytes) * bytes;
      const std::uint64_t value = in_.one_in(4) ? address(w_.b) : in_.number();
      vandal_.write(base, at, bytes, value);
    }
  }
  // Names one of the two processes, nobody, or a process that never was.
  void lock(device::SharedLock& l) {
    const std::uint32_t holders[] = {w_.a.process->nic->me(), w_.b.process->nic->me(), 0, ~0u};
    vandal_.write(&l, 0, 4, in_.one_in(5) ? in_.number() : holders[in_.below(4)]);
  }
  void any_lock(Side& s) {
    device::Nic& nic = *s.process->nic;
    test::Qp& q = *s.qp[in_.below(DeviceWorld::kPairs)];
    switch (in_.below(7)) {
      case 0:
        return lock(q.context->sq_lock);
      case 1:
        return lock(q.context->rx_lock);
      case 2:
        return lock(s.cq->context->lock);
      case 3:
        return lock(s.srq->lock);
      case 4:
        return lock(nic.slice().eqs[in_.below(2)].lock);
      case 5:
        return lock(nic.slice().header.atomic_lock);
      default:
        return lock(nic.segment().lock);
    }
  }

  void corrupt(Side& s) {
    device::Nic& nic = *s.process->nic;
    device::NicSegment& segment = nic.segment();
    device::Slice& slice = nic.slice();
    switch (in_.below(14)) {
      case 10:
        return any_lock(s);
      case 11:  // counts, hints, the slots of processes that are not there
        if (in_.take() & 1) return anywhere(&segment, offsetof(device::NicSegment, slots), 2);
        return anywhere(&segment.slots[2], sizeof segment.slots - sizeof segment.slots[0] * 2, 2);
      case 12:
        return anywhere(&slice.header, sizeof slice.header, 2);
      case 13:  // rings and doorbell records
        return anywhere(in_.take() & 1 ? s.cq->ring : s.qp[in_.below(DeviceWorld::kPairs)]->sq, 4096, 3);
      case 0:
      case 1:
      case 2:
        return overwrite(*s.qp[in_.below(DeviceWorld::kPairs)]->context);
      case 3:
        return overwrite(*s.cq->context);
      case 4:
        return overwrite(*s.srq);
      case 5: {
        MkeyContext* m = nic.own_mkey(s.keys[in_.below(static_cast<std::uint32_t>(s.keys.size()))] >> 8);
        if (m != nullptr) overwrite(*m);
        return;
      }
      case 6: {  // the table of a list key
        const std::uint64_t table = s.window->translations;
        if (table < device::kArenaOffset || table > device::kSliceBytes - 64) return;
        vandal_.write(&slice, table + in_.below(12) * 4, 4, in_.number());
        return;
      }
      case 7:  // where numbers lead
        if (in_.take() & 1)
          vandal_.write(&segment.qpn_block[s.qp[0]->context->qpn % (1u << 24) >> device::kLogBlock], 0, 4, block());
        else
          vandal_.write(&segment.mkey_block[s.memory.key >> 8 >> device::kLogBlock], 0, 4, block());
        return;
      case 8:
        switch (in_.below(4)) {
          case 0:
            return overwrite(segment.ports[in_.below(device::kMaxPorts)]);
          case 1:
            return overwrite(segment.gids[0][in_.below(8)]);
          case 2:
            return overwrite(segment.multicast[in_.below(2)]);
          default:
            vandal_.write(&segment.multicast_top, 0, 4, in_.number());
            return vandal_.write(&segment.ports_count, 0, 4, in_.number());
        }
      default: {
        // An event queue that was never made, a table of promoted memory that lies, work that is not there.
        if (in_.take() & 1) return overwrite(slice.eqs[in_.below(2)]);
        if (in_.take() & 1) {
          vandal_.write(&slice.header.promoted_count, 0, 8, in_.number());
          vandal_.write(&slice.promoted[in_.below(64)], in_.take() & 8, 8, in_.number());
          return;
        }
        slice.attention[in_.below(2)].store(in_.number());
        slice.header.attention_summary[0].store(in_.number());
        slice.header.irq.store(static_cast<std::uint32_t>(in_.number()));
        slice.header.pending.fetch_or(static_cast<std::uint32_t>(in_.number()) & 31);
      }
    }
  }

  std::uint32_t block() {
    return in_.take() & 1 ? static_cast<std::uint32_t>(in_.number()) : in_.take() % 4 + (in_.take() & 3u) * 0x10000u;
  }

  DeviceWorld& w_;
  Input in_;
  Vandal vandal_;
};

}  // namespace
}  // namespace verbena::fuzz

extern "C" int LLVMFuzzerInitialize(int*, char***) {
  using verbena::fuzz::world;
  world = new verbena::fuzz::DeviceWorld;
  verbena::device::set_lock_patience(0);  // an input has no seconds to wait
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
