#include "device/command/mkey_update.h"

#include <cerrno>

namespace verbena::device::command {
namespace {

using prm::Mkc;

constexpr std::uint32_t kRights =
    kMkeyLocalRead | kMkeyLocalWrite | kMkeyRemoteRead | kMkeyRemoteWrite | kMkeyAtomic | kMkeyRelaxed;

std::uint32_t rights_of(const prm::ConstView<Mkc>& mkc) {
  return (mkc.get<Mkc::lr>() ? kMkeyLocalRead : 0) | (mkc.get<Mkc::lw>() ? kMkeyLocalWrite : 0) |
         (mkc.get<Mkc::rr>() ? kMkeyRemoteRead : 0) | (mkc.get<Mkc::rw>() ? kMkeyRemoteWrite : 0) |
         (mkc.get<Mkc::a>() ? kMkeyAtomic : 0) | (mkc.get<Mkc::relaxed_ordering_write>() ? kMkeyRelaxed : 0);
}

}  // namespace

int update_mkey(State& state, std::uint32_t key, const prm::ConstView<Mkc>& mkc, bool range) {
  std::lock_guard guard(state.mutex);
  MkeyRecord* record = state.mkeys.find(key >> 8);
  MkeyContext* context = state.nic.own_mkey(key >> 8);
  Pd* pd = state.pds.find(mkc.get<Mkc::pd>());
  if (!record || !context || !pd || context->key.load(std::memory_order_relaxed) != key) return EINVAL;
  const std::uint64_t start = mkc.get<Mkc::start_addr>(), length = mkc.get<Mkc::len>();
  MkeyContext& facts = state.nic.facts(*context);
  if (range && (facts.mode != MkeyMode::pa || record->umem != Backing::kNone || start + length < start))
    return EINVAL;

  if (Pd* old = state.pds.find(record->context.get<Mkc::pd>()); old && old->uses) --old->uses;
  ++pd->uses;
  record->context.set<Mkc::pd>(mkc.get<Mkc::pd>());
  {
    SharedGuard lock(context->lock, state.nic.me());
    context->generation.fetch_add(1, std::memory_order_acq_rel);  // nobody uses it meanwhile
    context->pdn = mkc.get<Mkc::pd>();
    const std::uint32_t flags = (facts.flags.load(std::memory_order_relaxed) & ~kRights) | rights_of(mkc);
    facts.flags.store(flags);
    context->flags.store(flags | (context->flags.load(std::memory_order_relaxed) & kMkeyFree));
    if (range) {
      context->start = facts.start = start;
      context->length = facts.length = length;
    }
    context->generation.fetch_add(1, std::memory_order_release);
  }
  if (range) {
    state.engine.unregistered(record->memory_va, record->memory_bytes);
    record->memory_va = start + context->translations;
    record->memory_bytes = length;
    state.engine.registered(record->memory_va, length);
  }
  return 0;
}

}  // namespace verbena::device::command
