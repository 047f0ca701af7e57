// ibv_fork_init(): keeps pages that the device may touch out of children.
//
// MADV_DONTFORK works on whole pages while regions may share them, so a count is kept for every run of pages that
// has one: a map from the start of each run to its end and count, runs disjoint, neighbours with equal counts merged.
// madvise() is called only where a count leaves or reaches zero.
#include <sys/mman.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <mutex>
#include <new>
#include <vector>

#include "support/at_fork.h"
#include "verbs/internal.h"

namespace verbena::verbs {
namespace {

class ForkGuard {
 public:
  bool enabled() const { return enabled_.load(std::memory_order_acquire); }
  bool late() const { return too_late_.load(std::memory_order_relaxed); }

  // 0 or an errno. Checks that the kernel does what we need.
  int enable() {
    std::lock_guard guard(mutex_over_fork<ForkRank::fork_ranges>());
    if (enabled()) return 0;
    if (late()) return EINVAL;  // memory is registered already, and unaccounted for
    huge_ = std::getenv("RDMAV_HUGEPAGES_SAFE") != nullptr;
    page_ = static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
    void* probe = mmap(nullptr, page_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (probe == MAP_FAILED) return ENOMEM;
    bool works = madvise(probe, page_, MADV_DONTFORK) == 0 && madvise(probe, page_, MADV_DOFORK) == 0;
    munmap(probe, page_);
    if (!works) return ENOSYS;
    enabled_.store(true, std::memory_order_release);
    return 0;
  }

  int add(std::uintptr_t base, std::size_t size, int by) {
    if (!enabled()) {
      too_late_.store(true, std::memory_order_relaxed);
      return 0;
    }
    if (base == 0 || size == 0) return 0;
    std::lock_guard guard(mutex_over_fork<ForkRank::fork_ranges>());
    std::size_t page = huge_ ? page_size_at(base) : page_;
    std::uintptr_t start = base & ~(page - 1);
    std::uintptr_t end = (base + size + page - 1) & ~(page - 1);
    try {
      return change(start, end, by);
    } catch (const std::bad_alloc&) {
      return ENOMEM;
    }
  }

 private:
  struct Run {
    std::uintptr_t end;
    int count;
  };
  using Runs = std::map<std::uintptr_t, Run>;

  // Makes `at` a boundary between runs.
  void split(std::uintptr_t at) {
    auto next = runs_.upper_bound(at);
    if (next == runs_.begin()) return;
    auto run = std::prev(next);
    if (run->first == at || run->second.end <= at) return;
    runs_.emplace_hint(next, at, run->second);
    run->second.end = at;
  }

  int change(std::uintptr_t start, std::uintptr_t end, int by) {
    split(start);
    split(end);
    if (int error = by > 0 ? raise(start, end) : lower(start, end)) return error;
    merge(start, end);
    return 0;
  }

  int raise(std::uintptr_t start, std::uintptr_t end) {
    // Advise the gaps first, so that a failure can be undone before any count changed.
    std::vector<std::pair<std::uintptr_t, std::uintptr_t>> gaps;
    std::uintptr_t at = start;
    for (auto run = runs_.lower_bound(start); run != runs_.end() && run->first < end; ++run) {
      if (at < run->first) gaps.emplace_back(at, run->first);
      at = run->second.end;
    }
    if (at < end) gaps.emplace_back(at, end);
    for (std::size_t i = 0; i < gaps.size(); ++i) {
      if (!advise(gaps[i].first, gaps[i].second, MADV_DONTFORK)) continue;
      int error = errno;
      while (i-- > 0) advise(gaps[i].first, gaps[i].second, MADV_DOFORK);
      return error;
    }
    for (auto run = runs_.lower_bound(start); run != runs_.end() && run->first < end; ++run) ++run->second.count;
    for (auto [from, to] : gaps) runs_.emplace(from, Run{to, 1});
    return 0;
  }

  int lower(std::uintptr_t start, std::uintptr_t end) {
    int error = 0;
    for (auto run = runs_.lower_bound(start); run != runs_.end() && run->first < end;) {
      if (--run->second.count > 0) {
        ++run;
        continue;
      }
      // The program may have unmapped the memory already (ENOMEM): then nothing is left to undo.
      if (advise(run->first, run->second.end, MADV_DOFORK) && errno != ENOMEM) error = errno;
      run = runs_.erase(run);
    }
    return error;
  }

  void merge(std::uintptr_t start, std::uintptr_t end) {
    auto run = runs_.lower_bound(start);
    if (run != runs_.begin()) --run;
    while (run != runs_.end() && run->first <= end) {
      auto next = std::next(run);
      if (next != runs_.end() && run->second.end == next->first && run->second.count == next->second.count) {
        run->second.end = next->second.end;
        runs_.erase(next);
      } else {
        run = next;
      }
    }
  }

  static int advise(std::uintptr_t start, std::uintptr_t end, int advice) {
    return madvise(reinterpret_cast<void*>(start), end - start, advice);
  }

  // Page size of the mapping that holds `address`: a huge page cannot be advised in parts.
  std::size_t page_size_at(std::uintptr_t address) const {
    std::FILE* smaps = std::fopen("/proc/self/smaps", "re");
    if (!smaps) return page_;
    char line[1024];
    bool inside = false;
    std::size_t result = page_;
    while (std::fgets(line, sizeof line, smaps)) {
      unsigned long from = 0, to = 0, kib = 0;
      if (std::sscanf(line, "%lx-%lx", &from, &to) == 2) {
        inside = from <= address && address < to;
      } else if (inside && std::sscanf(line, "KernelPageSize: %lu kB", &kib) == 1) {
        if (kib) result = kib * 1024;
        break;
      }
    }
    std::fclose(smaps);
    return result;
  }

  std::atomic<bool> enabled_{false};
  std::atomic<bool> too_late_{false};
  bool huge_ = false;
  std::size_t page_ = 4096;
  Runs runs_;
};

ForkGuard& fork_guard() {
  // Never destroyed: a program may free its regions from destructors of its own.
  static auto* guard = [] {
    auto* made = new ForkGuard;
    if (std::getenv("RDMAV_FORK_SAFE") || std::getenv("IBV_FORK_SAFE")) made->enable();
    return made;
  }();
  return *guard;
}

int change_range(void* base, std::size_t size, int by) {
  return report(fork_guard().add(reinterpret_cast<std::uintptr_t>(base), size, by)) ? -1 : 0;
}

}  // namespace
}  // namespace verbena::verbs

using namespace verbena::verbs;

extern "C" {

int ibv_fork_init(void) { return report(fork_guard().enable()); }

// "Unneeded" goes before both other answers (ibv_is_fork_initialized(3)).
ibv_fork_status ibv_is_fork_initialized(void) {
  if (copies_on_fork()) return IBV_FORK_UNNEEDED;
  return fork_guard().enabled() ? IBV_FORK_ENABLED : IBV_FORK_DISABLED;
}

int ibv_dontfork_range(void* base, std::size_t size) { return change_range(base, size, 1); }
int ibv_dofork_range(void* base, std::size_t size) { return change_range(base, size, -1); }

}  // extern "C"
