#include "device/transport/steering.h"

#include <algorithm>

#include "device/shared/flow_index.h"
#include "prm/flow.h"
#include "prm/raw.h"

namespace verbena::device {
namespace {

constexpr unsigned kHops = 64;  // tables a frame passes at most: nothing goes round for ever

// From table to table, as entries and misses lead.
class Walk {
 public:
  Walk(Steering& steering, const std::byte* match, std::uint32_t packets, std::uint64_t octets)
      : s_(steering), match_(match), packets_(packets), octets_(octets) {}

 protected:
  ~Walk() = default;

  void run(std::uint32_t root) {
    visit(root);
    while (waiting_count_ != 0 && hops_ < kHops) visit(waiting_[--waiting_count_]);
  }
  virtual void receive(std::uint32_t /*tirn*/) {}
  // What the entries allow, and what none of them has.
  bool passes() const { return passes_; }
  std::uint32_t tag() const { return tag_; }

  Steering& s_;

 private:
  // The first entry of the table that matches has the packet; if none does, the table's miss.
  void visit(std::uint32_t table) {
    for (; table != 0 && table < kMaxFlowTables && hops_ < kHops; ++hops_) {
      if (const FlowEntry* entry = find_flow_entry(s_, table, match_)) return act(*entry);
      table = s_.miss[table];
    }
    passes_ = passes_ || table == 0;
  }

  void act(const FlowEntry& entry) {
    if ((entry.action & prm::FlowAction::count) != 0 && entry.counter < kMaxFlowCounters) {
      s_.counts[entry.counter].packets.fetch_add(packets_, std::memory_order_relaxed);
      s_.counts[entry.counter].octets.fetch_add(octets_, std::memory_order_relaxed);
    }
    if ((entry.action & prm::FlowAction::allow) != 0) passes_ = true;
    if ((entry.action & prm::FlowAction::fwd_dest) == 0) return;
    if (entry.tag != 0) tag_ = entry.tag;
    for (unsigned i = 0; i < std::min(entry.destinations, kFlowDestinations); ++i) {
      const FlowDestinationShape& to = entry.destination[i];
      if (to.type == static_cast<std::uint32_t>(prm::FlowDestination::tir))
        receive(to.id);
      else if (waiting_count_ < waiting_.size())
        waiting_[waiting_count_++] = to.id;
    }
  }

  const std::byte* match_;
  const std::uint32_t packets_;
  const std::uint64_t octets_;
  std::array<std::uint32_t, 16> waiting_{};
  unsigned waiting_count_ = 0, hops_ = 0;
  std::uint32_t tag_ = 0;
  bool passes_ = false;
};

// Of an Ethernet frame: to the queues of the TIRs that it is led to.
class FrameWalk final : Walk {
 public:
  FrameWalk(Steering& steering, const FrameHeaders& headers, const FrameOrigin& origin, bool same_process,
            std::uint64_t octets, std::array<FrameTarget, kFrameTargets>& out)
      : Walk(steering, headers.match, 1, octets), headers_(headers), origin_(origin), same_process_(same_process), out_(out) {}

  unsigned run() {
    Walk::run(s_.root);
    return count_;
  }

 private:
  void receive(std::uint32_t tirn) override {
    if (tirn >= kMaxTirs || !s_.tirs[tirn].in_use || count_ == out_.size()) return;
    const TirContext& tir = s_.tirs[tirn];
    constexpr unsigned kUnicast = 1, kMulticast = 2;
    // Whatever its name says, the field lets frames of the TIR's own transport domain in: drivers set it to receive them.
    if (same_process_ && tir.transport_domain == origin_.transport_domain &&
        (tir.self_lb_block & (headers_.group ? kMulticast : kUnicast)) == 0)
      return;
    FrameTarget target{tir.rq, tag(), {}};
    if (tir.rq == ~0u) {
      if (tir.table >= kMaxRqTables) return;
      const RqTable& table = s_.rq_tables[tir.table];
      const std::uint32_t size = std::min(table.size, kRqTableEntries);
      if (size == 0) return;
      target.hash = hash_headers(tir, headers_);
      target.rq = table.rq[target.hash.value % size];
    }
    if (target.rq < kMaxQps) out_[count_++] = target;
  }

  const FrameHeaders& headers_;
  const FrameOrigin& origin_;
  const bool same_process_;
  std::array<FrameTarget, kFrameTargets>& out_;
  unsigned count_ = 0;
};

// Of a RoCE packet, which goes on to its QP or its port unless it is dropped.
class RoceWalk final : Walk {
 public:
  using Walk::Walk;
  bool run(std::uint32_t root) {
    Walk::run(root);
    return passes();
  }
};

}  // namespace

unsigned steer(Peer& owner, const FrameHeaders& headers, const FrameOrigin& origin, std::uint64_t octets,
               std::uint32_t me, std::array<FrameTarget, kFrameTargets>& out) {
  Steering& steering = owner.slice->steering;
  SharedGuard guard(steering.lock, me);
  return FrameWalk(steering, headers, origin, origin.slice == owner.slice, octets, out).run();
}

bool walk_roce(Peer& owner, RoceWay way, const fabric::Address& address, bool back, std::uint32_t packets,
               std::uint64_t octets, std::uint32_t me) {
  alignas(8) std::byte match[kMatchBytes];
  read_roce_headers(address, back, match);
  Steering& steering = owner.slice->steering;
  SharedGuard guard(steering.lock, me);
  return RoceWalk(steering, match, packets, octets).run(steering.roce_root[static_cast<unsigned>(way)].load());
}

}  // namespace verbena::device
