#include "device/transport/clock.h"

#include <time.h>
#include <x86intrin.h>

#include <atomic>

namespace verbena::device {

namespace {

// ns = base_ns + (tsc - base_tsc) * multiplier / 2^32. Anchors are immutable once published; a thread that read
// the pointer long ago still finds a consistent one, because they are reused in turn about once a second.
struct Anchor {
  std::uint64_t base_ns, base_tsc, multiplier, renew_tsc;
};
constexpr unsigned kAnchors = 8;
Anchor anchors[kAnchors];
std::atomic<const Anchor*> current{nullptr};
std::atomic<std::uint64_t> first_ns{0}, first_tsc{0};
std::atomic<unsigned> next{0};
std::atomic_flag renewing = ATOMIC_FLAG_INIT;
// A clock that stands still has no multiplier and is never renewed.
std::atomic<bool> stopped{false};
Anchor standing[2];

std::uint64_t slow_clock() {
  const std::uint64_t ns = monotonic_ns(), tsc = __rdtsc();
  std::uint64_t zero = 0;
  if (first_tsc.load() == 0 && first_ns.compare_exchange_strong(zero, ns)) first_tsc.store(tsc);
  const std::uint64_t tsc0 = first_tsc.load(), ns0 = first_ns.load();
  if (tsc0 == 0 || ns - ns0 < 20'000'000 || tsc <= tsc0) return ns;  // too early to know the rate
  if (renewing.test_and_set(std::memory_order_acquire)) return ns;
  Anchor& a = anchors[next.fetch_add(1) % kAnchors];
  a.base_ns = ns;
  a.base_tsc = tsc;
  a.multiplier = static_cast<std::uint64_t>((static_cast<unsigned __int128>(ns - ns0) << 32) / (tsc - tsc0));
  a.renew_tsc = tsc + (static_cast<unsigned __int128>(1'000'000'000) << 32) / (a.multiplier != 0 ? a.multiplier : 1);
  if (!stopped.load(std::memory_order_acquire)) current.store(&a, std::memory_order_release);
  renewing.clear(std::memory_order_release);
  return ns;
}

}  // namespace

std::uint64_t monotonic_ns() {
  timespec t{};
  clock_gettime(CLOCK_MONOTONIC, &t);
  return static_cast<std::uint64_t>(t.tv_sec) * 1'000'000'000u + static_cast<std::uint64_t>(t.tv_nsec);
}

void stop_clock(std::uint64_t ns) {
  stopped.store(ns != 0, std::memory_order_release);
  Anchor& a = standing[current.load() == &standing[0] ? 1 : 0];
  a = {ns, 0, 0, ~std::uint64_t{0}};
  current.store(ns != 0 ? &a : nullptr, std::memory_order_release);
}

std::uint64_t device_clock() {
  const Anchor* a = current.load(std::memory_order_acquire);
  if (a == nullptr) [[unlikely]]
    return slow_clock();
  const std::uint64_t tsc = __rdtsc();
  if (tsc >= a->renew_tsc) [[unlikely]]
    return slow_clock();
  return a->base_ns + static_cast<std::uint64_t>((static_cast<unsigned __int128>(tsc - a->base_tsc) * a->multiplier) >> 32);
}

}  // namespace verbena::device
