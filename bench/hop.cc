// One cache-line hop between two cores: half the median round trip of a flag between two pinned processes. The unit in
// which same-host latencies can be compared between machines.
#include <sched.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>
#include <x86intrin.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <vector>

namespace {

struct Lines {
  alignas(128) std::atomic<unsigned> ping;
  alignas(128) std::atomic<unsigned> pong;
};

void pin(int cpu) {
  cpu_set_t set;
  CPU_ZERO(&set);
  CPU_SET(static_cast<unsigned>(cpu), &set);
  sched_setaffinity(0, sizeof set, &set);
}

double tsc_per_ns() {
  const auto start = std::chrono::steady_clock::now();
  const auto tsc = __rdtsc();
  usleep(50000);
  const auto ns = std::chrono::duration<double, std::nano>(std::chrono::steady_clock::now() - start).count();
  return static_cast<double>(__rdtsc() - tsc) / ns;
}

}  // namespace

int main() {
  constexpr unsigned kRounds = 300000;
  void* memory = mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  auto* lines = static_cast<Lines*>(memory);
  const double rate = tsc_per_ns();
  const pid_t child = fork();
  pin(child ? 0 : 1);
  if (child == 0) {
    for (unsigned i = 1; i <= kRounds; ++i) {
      while (lines->ping.load(std::memory_order_acquire) != i) {
      }
      lines->pong.store(i, std::memory_order_release);
    }
    _exit(0);
  }
  std::vector<double> trips;
  trips.reserve(kRounds);
  for (unsigned i = 1; i <= kRounds; ++i) {
    const auto start = __rdtsc();
    lines->ping.store(i, std::memory_order_release);
    while (lines->pong.load(std::memory_order_acquire) != i) {
    }
    trips.push_back(static_cast<double>(__rdtsc() - start) / rate);
  }
  waitpid(child, nullptr, 0);
  std::nth_element(trips.begin(), trips.begin() + kRounds / 2, trips.end());
  std::printf("%.1f\n", trips[kRounds / 2] / 2);
}
