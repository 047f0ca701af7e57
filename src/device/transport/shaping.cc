#include "device/transport/shaping.h"

#include <algorithm>

namespace verbena::device {

namespace {

constexpr std::uint64_t kNever = ~0ull;
constexpr std::uint64_t kVirtualScale = 1 << 16;
constexpr std::uint64_t kQuantumNs = 100'000;

std::uint64_t cost_ns(std::uint64_t ps_per_byte, std::uint64_t bytes) {
  const auto cost = (static_cast<unsigned __int128>(ps_per_byte) * bytes + 500) / 1000;
  return static_cast<std::uint64_t>(std::min<unsigned __int128>(cost, kFarthestNs));
}

std::uint64_t next_of(const ShaperClock& clock, std::uint64_t now) {
  const std::uint64_t next = clock.next_ns.load(std::memory_order_relaxed);
  return next > now + kFarthestNs ? 0 : next;
}

// Books a packet; what it returns is when the packet begins.
std::uint64_t book(ShaperClock& clock, std::uint64_t ps_per_byte, std::uint64_t bytes, std::uint64_t now) {
  const std::uint64_t cost = cost_ns(ps_per_byte, bytes);
  std::uint64_t seen = clock.next_ns.load(std::memory_order_relaxed);
  for (;;) {
    const std::uint64_t next = seen > now + kFarthestNs ? 0 : seen;
    const std::uint64_t begin = std::max(next, now > kCatchUpNs ? now - kCatchUpNs : 0);
    if (clock.next_ns.compare_exchange_weak(seen, begin + cost, std::memory_order_relaxed)) return begin;
  }
}

std::uint64_t quantum_of(std::uint64_t slowest) { return slowest == 0 ? kNever : kQuantumNs * 1000 / slowest; }

}  // namespace

std::uint64_t Rate::cost_ns(std::uint64_t bytes) const { return verbena::device::cost_ns(ps_per_byte, bytes); }
std::uint64_t Rate::quantum() const { return quantum_of(ps_per_byte); }

void Shaping::set_rate(std::uint16_t index, const Rate& rate) {
  if (index >= kRates) return;
  ps_per_byte_[index].store(rate.ps_per_byte, std::memory_order_relaxed);
  burst_bytes_[index].store(rate.burst_bytes, std::memory_order_relaxed);
}

Rate Shaping::rate(std::uint16_t index) const {
  if (index >= kRates) return {};
  return {ps_per_byte_[index].load(std::memory_order_relaxed), burst_bytes_[index].load(std::memory_order_relaxed)};
}

void Shaping::set_element(std::uint32_t id, std::uint32_t parent, std::uint32_t weight, std::uint64_t ps_per_byte) {
  if (id == 0 || id >= kShapers) return;
  std::lock_guard guard(mutex_);
  if (id >= elements_.size()) elements_.resize(id + 1);
  const bool fresh = elements_[id] == nullptr;
  if (fresh) elements_[id] = std::make_unique<Element>();
  Element& e = *elements_[id];
  ShaperClock& clock = slice_.shapers[id];
  if (fresh) {
    const Element* above = find(parent);
    e.parent = parent;
    e.depth = above != nullptr ? above->depth + 1 : 0;
    clock.parent.store(parent, std::memory_order_relaxed);
    clock.next_ns.store(0, std::memory_order_relaxed);
  }
  e.weight = std::max(1u, weight);
  e.ps_per_byte = ps_per_byte;
  clock.ps_per_byte.store(ps_per_byte, std::memory_order_relaxed);
}

void Shaping::remove_element(std::uint32_t id) {
  std::lock_guard guard(mutex_);
  if (find(id) == nullptr) return;
  for (const Request& r : elements_[id]->waiting) waits_.erase(r.qp);
  busy_.erase({kShaperDepth - elements_[id]->depth, id});
  elements_[id].reset();
  slice_.shapers[id].ps_per_byte.store(0, std::memory_order_relaxed);
  slice_.shapers[id].parent.store(0, std::memory_order_relaxed);
}

bool Shaping::due(std::uint32_t id, std::uint64_t now) const { return next_of(slice_.shapers[id], now) <= now; }

void Shaping::charge(std::uint32_t id, const Element& element, std::uint64_t bytes, std::uint64_t now) {
  book(slice_.shapers[id], element.ps_per_byte, bytes, now);
}

bool Shaping::climb(std::uint32_t id, Element* from, Request request, std::uint64_t now) {
  for (Element* e = find(id); e != nullptr; from = e, id = e->parent, e = find(id)) {
    // Its place among the siblings: behind what its child sent last, the longer the smaller the child's weight.
    request.start = e->virtual_time;
    if (from != nullptr) {
      request.start = std::max(request.start, from->finish);
      from->finish = request.start + request.bytes * kVirtualScale / from->weight;
    }
    if (e->ps_per_byte == 0 && e->waiting.empty()) continue;
    if (!e->waiting.empty() || !due(id, now) || (from == nullptr && serving_.load(std::memory_order_relaxed))) {
      request.order = ++order_;
      e->waiting.insert(request);
      busy_.insert({kShaperDepth - e->depth, id});
      waits_[request.qp] = {id, request};
      return false;
    }
    e->virtual_time = request.start;
    charge(id, *e, request.bytes, now);
  }
  return true;
}

bool Shaping::ask(std::uint32_t qp, std::uint32_t leaf, std::uint64_t bytes, std::uint64_t now) {
  std::lock_guard guard(mutex_);
  if (waits_.contains(qp)) return false;
  return climb(leaf, nullptr, {0, 0, qp, bytes}, now);
}

void Shaping::forget(std::uint32_t qp) {
  std::lock_guard guard(mutex_);
  const auto found = waits_.find(qp);
  if (found == waits_.end()) return;
  const auto [id, request] = found->second;
  waits_.erase(found);
  Element* e = find(id);
  if (e == nullptr) return;
  e->waiting.erase(request);
  if (e->waiting.empty()) busy_.erase({kShaperDepth - e->depth, id});
}

void Shaping::serve(std::uint64_t now, std::vector<std::uint32_t>& granted) {
  std::lock_guard guard(mutex_);
  // The deepest first, so that whoever competes at a node is there when the node chooses.
  std::vector<std::uint32_t> ids;
  for (auto it = busy_.begin(); it != busy_.end();) {
    const auto [level, id] = *it;
    Element& e = *elements_[id];
    // One at a time: who is granted a turn competes for the next one too.
    if (due(id, now)) {
      const Request request = *e.waiting.begin();
      e.waiting.erase(e.waiting.begin());
      waits_.erase(request.qp);
      e.virtual_time = std::max(e.virtual_time, request.start);
      charge(id, e, request.bytes, now);
      if (climb(e.parent, &e, request, now)) granted.push_back(request.qp);
    }
    const auto next = busy_.upper_bound({level, id});
    if (e.waiting.empty()) busy_.erase({level, id});
    it = next;
  }
}

std::uint64_t Shaping::next_turn() {
  std::lock_guard guard(mutex_);
  std::uint64_t next = kNever;
  for (const auto& [level, id] : busy_)
    next = std::min(next, slice_.shapers[id].next_ns.load(std::memory_order_relaxed));
  return next;
}

std::uint64_t Shaping::quantum(std::uint32_t leaf) {
  std::lock_guard guard(mutex_);
  std::uint64_t slowest = 0;
  for (const Element* e = find(leaf); e != nullptr; e = find(e->parent)) slowest = std::max(slowest, e->ps_per_byte);
  return quantum_of(slowest);
}

// ---- in another process's name ----

std::uint64_t reserve_response(Slice& slice, std::uint32_t leaf, std::uint64_t bytes, std::uint64_t now) {
  std::uint64_t begin = 0;
  for (unsigned depth = 0; leaf != 0 && leaf < kShapers && depth <= kShaperDepth; ++depth) {
    ShaperClock& clock = slice.shapers[leaf];
    const std::uint64_t rate = clock.ps_per_byte.load(std::memory_order_relaxed);
    if (rate != 0) begin = std::max(begin, book(clock, rate, bytes, now));
    leaf = clock.parent.load(std::memory_order_relaxed);
  }
  return begin > now ? std::min(begin, now + kFarthestNs) : 0;
}

std::uint64_t response_quantum(Slice& slice, std::uint32_t leaf) {
  std::uint64_t slowest = 0;
  for (unsigned depth = 0; leaf != 0 && leaf < kShapers && depth <= kShaperDepth; ++depth) {
    slowest = std::max(slowest, slice.shapers[leaf].ps_per_byte.load(std::memory_order_relaxed));
    leaf = slice.shapers[leaf].parent.load(std::memory_order_relaxed);
  }
  return quantum_of(slowest);
}

}  // namespace verbena::device
