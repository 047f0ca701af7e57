// Counting: ports by what passes through them, sets of counters (Q counters) by what befalls their QPs.
//
// What every packet does is counted in the QP, which is locked then anyway, and added up by whoever asks; what is rare
// is counted in the NIC and in the set at once. A QP that goes, or changes its set, leaves its counts behind (settle).
//
// Threads: any. Who adds up while a QP goes may see its counts twice for a moment.
#pragma once

#include <atomic>
#include <cstdint>

#include "device/shared/nic.h"

namespace verbena::device {

using EventCounter = std::atomic<std::uint64_t> EventCounters::*;

// Something befell a QP whose owner's slice this is.
inline void count(NicSegment& segment, Slice& slice, const QpContext& qp, EventCounter which) {
  (segment.events.*which).fetch_add(1, std::memory_order_relaxed);
  (slice.q_counters[qp.q_counter % kQCounters].*which).fetch_add(1, std::memory_order_relaxed);
}

inline void add(Traffic& sum, std::uint64_t packets, std::uint64_t octets) {
  sum.packets.fetch_add(packets, std::memory_order_relaxed);
  sum.octets.fetch_add(octets, std::memory_order_relaxed);
}

// Hands the counts of a QP over to the NIC and to its set, and zeroes them. Under both locks of the QP, or nobody else
// reaches it any more; without a slice the set is gone too.
void settle_counts(QpContext& qp, NicSegment& segment, Slice* slice);

// What passed through a port (from 0) since the NIC was made.
struct Passed {
  std::uint64_t packets = 0, octets = 0;
  Passed& operator+=(const Passed& more) {
    packets += more.packets;
    octets += more.octets;
    return *this;
  }
};
struct Directions {
  Passed out, in;
  Directions& operator+=(const Directions& more) {
    out += more.out;
    in += more.in;
    return *this;
  }
};
struct PortTraffic {
  Directions ib, ib_multicast, eth;
  PortTraffic& operator+=(const PortTraffic& more) {
    ib += more.ib;
    ib_multicast += more.ib_multicast;
    eth += more.eth;
    return *this;
  }
};
PortTraffic port_traffic(NicMap& nic, unsigned port);

// What befell the QPs of a set of this process (id 1 and above), or all QPs of the NIC. They are walked once.
struct Counted {
  explicit Counted(const EventCounters& settled) : settled_(settled) {}
  void add(const QpContext& qp);
  std::uint64_t operator[](EventCounter which) const;

 private:
  const EventCounters& settled_;
  std::uint64_t writes_ = 0, reads_ = 0, atomics_ = 0;  // by QPs that are there
};
Counted counted(Nic& nic, std::uint32_t set);
Counted counted(NicMap& nic);

}  // namespace verbena::device
