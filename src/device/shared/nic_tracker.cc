#include "device/shared/nic_tracker.h"

#include <algorithm>
#include <cstddef>

namespace verbena::device {
namespace {

constexpr std::uint32_t kBackStep = (64u << 10) / sizeof(TrackRecord);

void write(TrackRecord& record, const TrackFacts& facts) {
  record.kind = static_cast<std::uint32_t>(facts.kind);
  record.id = facts.id;
  record.context = facts.context;
  record.pd = facts.pd;
  record.cq = facts.cq;
  record.srq = facts.srq;
  record.key = facts.key;
  record.entries = facts.entries;
  record.type = facts.type;
  record.length = facts.length;
}

// False if the record was free, of another kind, or changed meanwhile.
bool read(const TrackRecord& record, TrackKind kind, Tracked* out) {
  const std::uint32_t generation = record.generation.load(std::memory_order_acquire);
  if (!(generation & 1) || record.kind != static_cast<std::uint32_t>(kind)) return false;
  out->facts = {kind,       record.id,  record.context, record.pd,   record.cq,
                record.srq, record.key, record.entries, record.type, record.length};
  out->users = record.users.load(std::memory_order_acquire);
  return record.generation.load(std::memory_order_acquire) == generation;
}

}  // namespace

std::uint32_t Tracker::id_of(const TrackRecord* record) { return record ? record->id.get() : 0; }

std::uint32_t NicTracker::new_id(TrackKind kind) {
  auto& last = nic_.segment().track_ids[static_cast<std::uint32_t>(kind)];
  std::uint32_t id = 0;
  while (id == 0) id = last.fetch_add(1, std::memory_order_relaxed) + 1;
  return id;
}

TrackRecord* NicTracker::add(const TrackFacts& facts) {
  const std::lock_guard guard(mutex_);
  Slice& slice = nic_.slice();
  std::uint32_t index = next_;
  if (!free_.empty()) {
    index = free_.back();
    free_.pop_back();
  } else if (next_ == kMaxTracked) {
    return nullptr;
  } else {
    if (next_ == backed_) {
      if (!nic_.back_slice(offsetof(Slice, tracked) + backed_ * sizeof(TrackRecord), kBackStep * sizeof(TrackRecord)))
        return nullptr;
      backed_ += kBackStep;
    }
    slice.header.track_top.store(++next_, std::memory_order_release);
  }
  TrackRecord& record = slice.tracked[index];
  TrackFacts numbered = facts;
  if (numbered.id == 0) numbered.id = new_id(facts.kind);
  record.users.store(0, std::memory_order_relaxed);
  write(record, numbered);
  record.generation.fetch_add(1, std::memory_order_acq_rel);
  return &record;
}

void NicTracker::change(TrackRecord* record, const TrackFacts& facts) {
  if (record == nullptr) return;
  const std::lock_guard guard(mutex_);
  TrackFacts same = facts;
  same.id = record->id;
  record->generation.fetch_add(1, std::memory_order_acq_rel);
  write(*record, same);
  record->generation.fetch_add(1, std::memory_order_acq_rel);
}

void NicTracker::set_users(TrackRecord* record, std::uint32_t users) {
  if (record != nullptr) record->users.store(users, std::memory_order_release);
}

void NicTracker::remove(TrackRecord* record) {
  if (record == nullptr) return;
  const std::lock_guard guard(mutex_);
  record->generation.fetch_add(1, std::memory_order_acq_rel);
  free_.push_back(static_cast<std::uint32_t>(record - nic_.slice().tracked));
}

void NicTracker::add_transport(Tracked& qp) {
  const Found<QpContext> found = nic_.find_qp(qp.facts.id);
  if (!found || !Nic::in_use(*found.context) || found.context->qpn != qp.facts.id) return;
  const QpContext& context = *found.context;
  qp.has_transport = true;
  qp.state = static_cast<prm::QpState>(context.state.load(std::memory_order_relaxed));
  // Of a queue in motion, as of one that is asked about over a bus: what is read may be old by the time it is shown.
  const auto peek = [](const auto& word) { return __atomic_load_n(&word, __ATOMIC_RELAXED); };
  qp.dest_qpn = peek(context.dest_qpn) & 0xffffff;
  qp.rq_psn = peek(context.epsn) & 0xffffff;
  qp.sq_psn = peek(context.next_psn) & 0xffffff;
  qp.port = peek(context.port);
  qp.path_migration = static_cast<prm::PathMigrationState>(peek(context.pm_state) & 3);
}

std::vector<Tracked> NicTracker::list(TrackKind kind) {
  std::vector<Tracked> all;
  NicSegment& segment = nic_.segment();
  for (std::uint32_t slot = 0; slot < kMaxSlots; ++slot) {
    if (segment.slots[slot].state.load(std::memory_order_acquire) != kSlotLive) continue;
    Peer* peer = nic_.peer(slot);
    if (peer == nullptr || !nic_.alive(*peer)) continue;
    const std::uint32_t top = std::min(peer->slice->header.track_top.load(std::memory_order_acquire), kMaxTracked);
    for (std::uint32_t i = 0; i < top; ++i) {
      Tracked object;
      if (!read(peer->slice->tracked[i], kind, &object)) continue;
      object.pid = peer->pid;
      if (kind == TrackKind::qp) add_transport(object);
      all.push_back(object);
    }
  }
  return all;
}

}  // namespace verbena::device
