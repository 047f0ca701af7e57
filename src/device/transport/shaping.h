// Rates: the packet pacing table, and the tree of scheduling elements with its limits and weights.
//
// A packet that must wait has its place in a queue, not a thread that spins. Two mechanisms:
//
// * packet pacing: each send queue by itself keeps the rate of its table entry (qp.pace_ns is its clock).
// * scheduling elements: a QP asks its leaf for a turn; the packet climbs from element to element, waits at each one
//   whose limit is reached, and may leave when it has passed the root. Among those that wait at an element its children
//   get turns by weight (start-time fair queueing); the QPs of a leaf get them in the order they asked.
//
// A rate is kept on average: what waited and was woken late catches up (kCatchUpNs), so that the timer's jitter does not
// add up. Bytes are those of frames as a capture shows them.
//
// Threads: any; a mutex of its own, taken under a QP's sq_lock and never the other way round. Commands change rates
// while they are used.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <set>
#include <unordered_map>
#include <vector>

#include "device/shared/segments.h"

namespace verbena::device {

// One entry of the packet pacing table.
struct Rate {
  std::uint64_t ps_per_byte = 0;  // 0: unlimited
  std::uint64_t burst_bytes = 0;  // what may leave at once after a pause
  std::uint64_t cost_ns(std::uint64_t bytes) const;
  std::uint64_t quantum() const;  // as Shaping::quantum()
};
inline constexpr std::uint64_t kPsPerByteAtOneMbps = 8'000'000;
inline constexpr unsigned kRates = 128;  // entry 0 is "unlimited"

inline constexpr std::uint64_t kCatchUpNs = 5'000'000;
// No packet of any rate takes longer; a clock further ahead was written by somebody else.
inline constexpr std::uint64_t kFarthestNs = 40'000'000'000;

class Shaping {
 public:
  explicit Shaping(Slice& slice) : slice_(slice) {}

  // ---- packet pacing ----
  void set_rate(std::uint16_t index, const Rate& rate);
  Rate rate(std::uint16_t index) const;

  // ---- scheduling elements; numbers are the caller's, below kShapers ----
  // Makes or changes an element. `weight` 0 is the default (1).
  void set_element(std::uint32_t id, std::uint32_t parent, std::uint32_t weight, std::uint64_t ps_per_byte);
  void remove_element(std::uint32_t id);

  // A QP has a packet of so many bytes for its leaf: true if it may leave now, else it waits for serve().
  bool ask(std::uint32_t qp, std::uint32_t leaf, std::uint64_t bytes, std::uint64_t now);
  // The QP's packet waits no longer (the QP is gone or has another leaf).
  void forget(std::uint32_t qp);
  // Appends the QPs whose turn has come. While they are kicked (`serving`), nobody passes those who are still to be
  // kicked: every packet queues up, and serve() is called again.
  void serve(std::uint64_t now, std::vector<std::uint32_t>& granted);
  void set_serving(bool serving) { serving_.store(serving, std::memory_order_relaxed); }
  // When serve() is to be called next; ~0: nobody waits.
  std::uint64_t next_turn();
  // Bytes that may go as one packet where packets are not what a wire has: about 0.1 ms of the slowest element.
  std::uint64_t quantum(std::uint32_t leaf);

 private:
  struct Request {
    std::uint64_t start;  // virtual time
    std::uint64_t order;
    std::uint32_t qp;
    std::uint64_t bytes;
    bool operator<(const Request& o) const { return start != o.start ? start < o.start : order < o.order; }
  };
  struct Element {
    std::uint32_t parent = 0, weight = 1;
    std::uint64_t ps_per_byte = 0;
    std::uint64_t virtual_time = 0;
    std::uint64_t finish = 0;  // in the parent's virtual time: where its last packet ends
    unsigned depth = 0;
    std::set<Request> waiting;
  };
  Element* find(std::uint32_t id) { return id < elements_.size() ? elements_[id].get() : nullptr; }
  // Takes a packet upwards from element `id`, `from` being the child it comes from. True: it passed the root.
  bool climb(std::uint32_t id, Element* from, Request request, std::uint64_t now);
  bool due(std::uint32_t id, std::uint64_t now) const;
  void charge(std::uint32_t id, const Element& element, std::uint64_t bytes, std::uint64_t now);

  Slice& slice_;
  std::array<std::atomic<std::uint64_t>, kRates> ps_per_byte_{}, burst_bytes_{};
  std::mutex mutex_;
  std::vector<std::unique_ptr<Element>> elements_;
  std::set<std::pair<unsigned, std::uint32_t>> busy_;  // elements with a queue: (kShaperDepth - depth, number)
  std::unordered_map<std::uint32_t, std::pair<std::uint32_t, Request>> waits_;  // by QP: where, and as what
  std::uint64_t order_ = 0;
  std::atomic<bool> serving_{false};
};

// A peer's READ response of so many bytes, in the name of an element of the responder's slice: when it may come. Walks
// what the responder's process wrote; nothing of it is trusted. 0: now.
std::uint64_t reserve_response(Slice& slice, std::uint32_t leaf, std::uint64_t bytes, std::uint64_t now);
// As Shaping::quantum, for the elements of another process.
std::uint64_t response_quantum(Slice& slice, std::uint32_t leaf);

}  // namespace verbena::device
