#include "device/memory/coverage.h"

#include <gtest/gtest.h>

#include <random>
#include <vector>

namespace verbena::device {
namespace {

TEST(Coverage, AgreesWithCountingEveryAddress) {
  Coverage coverage;
  std::vector<int> counts(64);
  std::vector<std::pair<unsigned, unsigned>> ranges;
  std::mt19937 random(7);
  for (int round = 0; round < 4000; ++round) {
    if (ranges.size() < 12 && (ranges.empty() || random() % 2 != 0)) {
      const unsigned start = random() % 64, end = start + random() % (65 - start);
      ranges.emplace_back(start, end);
      coverage.add(start, end);
      for (unsigned i = start; i < end; ++i) ++counts[i];
    } else {
      const auto at = random() % ranges.size();
      coverage.remove(ranges[at].first, ranges[at].second);
      for (unsigned i = ranges[at].first; i < ranges[at].second; ++i) --counts[i];
      ranges.erase(ranges.begin() + static_cast<long>(at));
    }
    const unsigned from = random() % 64, to = from + random() % (65 - from);
    unsigned first = from;
    while (first < to && counts[first] == 0) ++first;
    unsigned last = first;
    while (last < to && counts[last] != 0) ++last;
    ASSERT_EQ(coverage.next(from, to), (std::pair<std::uint64_t, std::uint64_t>(first, last)));
    ASSERT_EQ(coverage.covers(from, to), first == from && last == to);
    ASSERT_EQ(coverage.empty(), ranges.empty() || std::all_of(counts.begin(), counts.end(), [](int n) { return n == 0; }));
  }
}

}  // namespace
}  // namespace verbena::device
