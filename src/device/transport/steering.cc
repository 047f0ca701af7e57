#include "device/transport/steering.h"

#include <algorithm>

#include "device/shared/flow_index.h"
#include "prm/flow.h"
#include "prm/raw.h"

namespace verbena::device {
namespace {

constexpr unsigned kHops = 64;  // tables a frame passes at most: nothing goes round for ever

class Walk {
 public:
  Walk(Steering& steering, const FrameHeaders& headers, const FrameOrigin& origin, bool same_process,
       std::uint64_t octets, std::array<FrameTarget, kFrameTargets>& out)
      : s_(steering), headers_(headers), origin_(origin), same_process_(same_process), octets_(octets), out_(out) {}

  unsigned run() {
    visit(s_.root);
    while (waiting_count_ != 0 && hops_ < kHops) visit(waiting_[--waiting_count_]);
    return count_;
  }

 private:
  // The first entry of the table that matches has the frame; if none does, the table's miss.
  void visit(std::uint32_t table) {
    for (; table != 0 && table < kMaxFlowTables && hops_ < kHops; ++hops_) {
      if (const FlowEntry* entry = find_flow_entry(s_, table, headers_.match)) return act(*entry);
      table = s_.miss[table];
    }
  }

  void act(const FlowEntry& entry) {
    if ((entry.action & prm::FlowAction::count) != 0 && entry.counter < kMaxFlowCounters) {
      s_.counts[entry.counter].packets.fetch_add(1, std::memory_order_relaxed);
      s_.counts[entry.counter].octets.fetch_add(octets_, std::memory_order_relaxed);
    }
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

  void receive(std::uint32_t tirn) {
    if (tirn >= kMaxTirs || !s_.tirs[tirn].in_use || count_ == out_.size()) return;
    const TirContext& tir = s_.tirs[tirn];
    constexpr unsigned kUnicast = 1, kMulticast = 2;
    // Whatever its name says, the field lets frames of the TIR's own transport domain in: drivers set it to receive them.
    if (same_process_ && tir.transport_domain == origin_.transport_domain &&
        (tir.self_lb_block & (headers_.group ? kMulticast : kUnicast)) == 0)
      return;
    FrameTarget target{tir.rq, tag_, {}};
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

  Steering& s_;
  const FrameHeaders& headers_;
  const FrameOrigin& origin_;
  const bool same_process_;
  const std::uint64_t octets_;
  std::array<FrameTarget, kFrameTargets>& out_;
  std::array<std::uint32_t, 16> waiting_{};
  unsigned waiting_count_ = 0, hops_ = 0, count_ = 0;
  std::uint32_t tag_ = 0;
};

}  // namespace

unsigned steer(Peer& owner, const FrameHeaders& headers, const FrameOrigin& origin, std::uint64_t octets,
               std::uint32_t me, std::array<FrameTarget, kFrameTargets>& out) {
  Steering& steering = owner.slice->steering;
  SharedGuard guard(steering.lock, me);
  return Walk(steering, headers, origin, origin.slice == owner.slice, octets, out).run();
}

}  // namespace verbena::device
