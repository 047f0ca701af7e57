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

void add_to(Passed& sum, const Traffic& more) {
  sum.packets += more.packets.load(std::memory_order_relaxed);
  sum.octets += more.octets.load(std::memory_order_relaxed);
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

// The number that a QP counts by itself; null: none.
const std::atomic<std::uint64_t>* own_count(const QpContext& qp, EventCounter which) {
  if (which == &EventCounters::rx_write_requests) return &qp.rx_writes;
  if (which == &EventCounters::rx_read_requests) return &qp.rx_reads;
  if (which == &EventCounters::rx_atomic_requests) return &qp.rx_atomics;
  return nullptr;
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
  PortTraffic sum;
  for_each_qp(nic, [&](const QpContext& qp) {
    auto& kind = is_ethernet(qp) ? sum.eth : sum.ib;
    for (const TwoWays* part : {&qp.requests[port], &qp.responses[port]}) {
      add_to(kind.out, part->out);
      add_to(kind.in, part->in);
    }
  });
  const PortCounters& counters = nic.segment().ports[port].counters;
  const auto add_both = [](auto& to, const TwoWays& from) {
    add_to(to.out, from.out);
    add_to(to.in, from.in);
  };
  add_both(sum.ib, counters.ib);
  add_both(sum.ib_multicast, counters.ib_multicast);
  add_both(sum.eth, counters.eth);
  return sum;
}

std::uint64_t counted(NicMap& nic, EventCounter which) {
  std::uint64_t sum = (nic.segment().events.*which).load(std::memory_order_relaxed);
  for_each_qp(nic, [&](const QpContext& qp) {
    if (const auto* own = own_count(qp, which)) sum += own->load(std::memory_order_relaxed);
  });
  return sum;
}

std::uint64_t counted(Nic& nic, std::uint32_t set, EventCounter which) {
  std::uint64_t sum = (nic.slice().q_counters[set % kQCounters].*which).load(std::memory_order_relaxed);
  const std::uint32_t top = nic.qp_high_water();
  for (std::uint32_t i = 0; i < top; ++i) {
    const QpContext& qp = nic.slice().qps[i];
    const auto* own = own_count(qp, which);
    if (own != nullptr && Nic::in_use(qp) && qp.q_counter == set) sum += own->load(std::memory_order_relaxed);
  }
  return sum;
}

}  // namespace verbena::device
