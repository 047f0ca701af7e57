#include "device/shared/counters.h"

#include <algorithm>

namespace verbena::device {

namespace {

std::uint64_t take(std::atomic<std::uint64_t>& count) { return count.exchange(0, std::memory_order_relaxed); }

bool is_ethernet(const QpContext& qp) { return qp.type == QpType::raw || qp.type == QpType::raw_rq; }

void move_to(Traffic& sum, Traffic& from) {
  const std::uint64_t packets = take(from.packets), octets = take(from.octets);
  if (packets != 0) add(sum, packets, octets);
}

Directions read(const TwoWays& counts) {
  const auto one = [](const Traffic& t) {
    return Passed{t.packets.load(std::memory_order_relaxed), t.octets.load(std::memory_order_relaxed)};
  };
  return {one(counts.out), one(counts.in)};
}

// Calls `visit` for every QP of the NIC that is in use.
template <class F>
void for_each_qp(NicMap& nic, F&& visit) {
  const NicSegment& segment = nic.segment();
  const std::uint32_t top = std::min(segment.qpn_top.load(std::memory_order_acquire), kBlocks);
  for (std::uint32_t block = 0; block < top; ++block) {
    if (segment.qpn_block[block].load(std::memory_order_acquire) == 0) continue;
    for (std::uint32_t i = 0; i < 1u << kLogBlock; ++i) {
      const auto found = nic.find_qp(block << kLogBlock | i);
      if (!found) break;
      if (Nic::in_use(*found.context)) visit(*found.context);
    }
  }
}

}  // namespace

void settle_counts(QpContext& qp, NicSegment& segment, Slice* slice) {
  for (unsigned port = 0; port < kMaxPorts; ++port) {
    PortCounters& counters = segment.ports[port].counters;
    TwoWays& sum = is_ethernet(qp) ? counters.eth : counters.ib;
    for (TwoWays* part : {&qp.requests[port], &qp.responses[port]}) {
      move_to(sum.out, part->out);
      move_to(sum.in, part->in);
    }
  }
  const auto hand_over = [&](std::atomic<std::uint64_t>& from, EventCounter which) {
    const std::uint64_t n = take(from);
    if (n == 0) return;
    (segment.events.*which).fetch_add(n, std::memory_order_relaxed);
    if (slice != nullptr) (slice->q_counters[qp.q_counter % kQCounters].*which).fetch_add(n, std::memory_order_relaxed);
  };
  hand_over(qp.rx_writes, &EventCounters::rx_write_requests);
  hand_over(qp.rx_reads, &EventCounters::rx_read_requests);
  hand_over(qp.rx_atomics, &EventCounters::rx_atomic_requests);
}

PortTraffic port_traffic(NicMap& nic, unsigned port) {
  const PortCounters& counters = nic.segment().ports[port].counters;
  PortTraffic sum{read(counters.ib), read(counters.ib_multicast), read(counters.eth)};
  for_each_qp(nic, [&](const QpContext& qp) {
    Directions& kind = is_ethernet(qp) ? sum.eth : sum.ib;
    kind += read(qp.requests[port]);
    kind += read(qp.responses[port]);
  });
  return sum;
}

void Counted::add(const QpContext& qp) {
  writes_ += qp.rx_writes.load(std::memory_order_relaxed);
  reads_ += qp.rx_reads.load(std::memory_order_relaxed);
  atomics_ += qp.rx_atomics.load(std::memory_order_relaxed);
}

std::uint64_t Counted::operator[](EventCounter which) const {
  const std::uint64_t settled = (settled_.*which).load(std::memory_order_relaxed);
  if (which == &EventCounters::rx_write_requests) return settled + writes_;
  if (which == &EventCounters::rx_read_requests) return settled + reads_;
  if (which == &EventCounters::rx_atomic_requests) return settled + atomics_;
  return settled;
}

Counted counted(NicMap& nic) {
  Counted all(nic.segment().events);
  for_each_qp(nic, [&](const QpContext& qp) { all.add(qp); });
  return all;
}

Counted counted(Nic& nic, std::uint32_t set) {
  Counted all(nic.slice().q_counters[set % kQCounters]);
  const std::uint32_t top = nic.qp_high_water();
  for (std::uint32_t i = 0; i < top; ++i) {
    const QpContext& qp = nic.slice().qps[i];
    if (Nic::in_use(qp) && qp.q_counter == set) all.add(qp);
  }
  return all;
}

}  // namespace verbena::device
