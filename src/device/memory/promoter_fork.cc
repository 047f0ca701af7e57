#include "device/memory/promoter_fork.h"

#include <algorithm>
#include <mutex>
#include <vector>

#include "device/memory/promoter_state.h"
#include "support/at_fork.h"

namespace verbena::device {

namespace {

std::mutex& roll_mutex() {
  static auto* m = new std::mutex;
  return *m;
}
std::vector<Promoter::State*>& roll() {
  static auto* r = new std::vector<Promoter::State*>;
  return *r;
}

void before_fork() {
  roll_mutex().lock();
  for (auto* state : roll()) {
    state->mutex.lock();
    state->demote(0, ~std::uint64_t{0}, false);
  }
}
void in_parent() {
  for (auto* state : roll()) state->mutex.unlock();
  roll_mutex().unlock();
}
void in_child() {
  for (auto* state : roll()) state->mutex.unlock();
  roll().clear();
  roll_mutex().unlock();
}

}  // namespace

void enroll(Promoter::State& state) {
  at_fork(ForkRank::promoter, {before_fork, in_parent, in_child});
  std::lock_guard guard(roll_mutex());
  roll().push_back(&state);
}

void strike_off(Promoter::State& state) {
  std::lock_guard guard(roll_mutex());
  std::erase(roll(), &state);
}

}  // namespace verbena::device
