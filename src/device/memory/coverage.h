// Which addresses lie inside at least one memory region: a count for each stretch between two borders.
// Adding or removing a range costs what it overlaps, not what else is registered.
// Threads: the caller's lock.
#pragma once

#include <algorithm>
#include <cstdint>
#include <map>
#include <utility>

namespace verbena::device {

class Coverage {
 public:
  void add(std::uint64_t start, std::uint64_t end) { change(start, end, 1); }
  // A range that was added before.
  void remove(std::uint64_t start, std::uint64_t end) { change(start, end, -1); }
  bool empty() const { return counts_.empty(); }
  bool covers(std::uint64_t start, std::uint64_t end) const {
    const auto [first, last] = next(start, end);
    return first == start && last == end;
  }
  // The first covered stretch of [start, end), clipped to it; {end, end} if there is none.
  std::pair<std::uint64_t, std::uint64_t> next(std::uint64_t start, std::uint64_t end) const {
    auto at = counts_.upper_bound(start);
    if (at != counts_.begin()) --at;
    while (at != counts_.end() && (at->second == 0 || stop_of(at) <= start)) ++at;
    if (at == counts_.end() || at->first >= end) return {end, end};
    const std::uint64_t first = std::max(start, at->first);
    while (at != counts_.end() && at->second != 0 && at->first < end) ++at;
    return {first, at == counts_.end() ? end : std::min(end, at->first)};
  }

 private:
  using Counts = std::map<std::uint64_t, std::uint32_t>;  // border -> regions from there to the next border

  static std::uint64_t stop_after(Counts::const_iterator at, Counts::const_iterator end) {
    return ++at == end ? ~std::uint64_t{0} : at->first;
  }
  std::uint64_t stop_of(Counts::const_iterator at) const { return stop_after(at, counts_.end()); }
  // The border at `at`, made if need be.
  Counts::iterator border(std::uint64_t at) {
    auto after = counts_.upper_bound(at);
    const std::uint32_t count = after == counts_.begin() ? 0 : std::prev(after)->second;
    return counts_.try_emplace(after, at, count);
  }
  void change(std::uint64_t start, std::uint64_t end, int by) {
    if (start >= end) return;
    const auto last = border(end);
    auto first = border(start);
    for (auto at = first; at != last; ++at) at->second += static_cast<std::uint32_t>(by);
    drop_if_needless(first);
    drop_if_needless(last);
  }
  void drop_if_needless(Counts::iterator at) {
    const std::uint32_t before = at == counts_.begin() ? 0 : std::prev(at)->second;
    if (at->second == before) counts_.erase(at);
  }

  Counts counts_;
};

}  // namespace verbena::device
