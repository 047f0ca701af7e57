#include <gtest/gtest.h>
#include <infiniband/verbs.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <random>
#include <vector>

extern "C" {
int ibv_dontfork_range(void* base, size_t size);
int ibv_dofork_range(void* base, size_t size);
}

namespace {

constexpr std::size_t kPage = 4096;

// Whether a child would get each page: asked of a real child, by mincore() on its own mappings.
std::vector<bool> inherited(char* base, std::size_t pages) {
  int ends[2];
  EXPECT_EQ(pipe(ends), 0);
  pid_t child = fork();
  if (child == 0) {
    for (std::size_t i = 0; i < pages; ++i) {
      unsigned char present;
      char answer = mincore(base + i * kPage, kPage, &present) == 0 ? 1 : 0;
      if (write(ends[1], &answer, 1) != 1) _exit(1);
    }
    _exit(0);
  }
  close(ends[1]);
  std::vector<bool> result;
  char answer;
  while (read(ends[0], &answer, 1) == 1) result.push_back(answer != 0);
  close(ends[0]);
  waitpid(child, nullptr, 0);
  return result;
}

TEST(Fork, CountsPagesThatRegionsShare) {
  ASSERT_EQ(ibv_fork_init(), 0);
  EXPECT_EQ(ibv_is_fork_initialized(), IBV_FORK_UNNEEDED) << "the embedded device copies on fork, which goes before all else";
  constexpr std::size_t kPages = 16;
  auto* base =
      static_cast<char*>(mmap(nullptr, kPages * kPage, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
  ASSERT_NE(base, MAP_FAILED);

  // Random regions, against a plain count per page.
  std::mt19937 random(7);
  std::vector<int> counts(kPages);
  std::vector<std::pair<std::size_t, std::size_t>> live;
  for (int step = 0; step < 60; ++step) {
    if (live.empty() || random() % 3) {
      std::size_t start = random() % (kPages * kPage - 1);
      std::size_t length = 1 + random() % (kPages * kPage - start);
      live.emplace_back(start, length);
      ASSERT_EQ(ibv_dontfork_range(base + start, length), 0);
      for (std::size_t page = start / kPage; page <= (start + length - 1) / kPage; ++page) ++counts[page];
    } else {
      std::size_t which = random() % live.size();
      auto [start, length] = live[which];
      live.erase(live.begin() + static_cast<long>(which));
      ASSERT_EQ(ibv_dofork_range(base + start, length), 0);
      for (std::size_t page = start / kPage; page <= (start + length - 1) / kPage; ++page) --counts[page];
    }
    std::vector<bool> expected;
    for (int count : counts) expected.push_back(count == 0);
    ASSERT_EQ(inherited(base, kPages), expected) << "step " << step;
  }
  munmap(base, kPages * kPage);
  for (auto [start, length] : live) EXPECT_EQ(ibv_dofork_range(base + start, length), 0) << "unmapped before";
}

TEST(Fork, RefusesWhatCannotBeAdvised) {
  ASSERT_EQ(ibv_fork_init(), 0);
  auto* hole = static_cast<char*>(mmap(nullptr, 2 * kPage, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
  ASSERT_NE(hole, MAP_FAILED);
  munmap(hole, 2 * kPage);
  EXPECT_EQ(ibv_dontfork_range(hole, kPage), -1);
  EXPECT_EQ(ibv_dontfork_range(nullptr, 0), 0);
}

}  // namespace
