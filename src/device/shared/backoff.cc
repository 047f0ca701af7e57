#include "device/shared/backoff.h"

#include <errno.h>
#include <sched.h>
#include <time.h>

#include <algorithm>

namespace verbena::device {

void Backoff::pause() {
  constexpr unsigned kYields = 32, kDoublings = 5;
  constexpr long kFirstNs = 50'000, kLongestNs = 1'000'000;
  const int error = errno;
  if (turns_++ < kYields) {
    sched_yield();
  } else {
    const timespec t{0, std::min(kFirstNs << std::min(turns_ - kYields - 1, kDoublings), kLongestNs)};
    nanosleep(&t, nullptr);
  }
  errno = error;
}

}  // namespace verbena::device
