#include "kernel/watch.h"

#include <algorithm>
#include <new>
#include <utility>

#include "device/memory/guard.h"
#include "kernel/cq.h"
#include "kernel/devx.h"
#include "kernel/qp.h"
#include "support/thread_sanitizer.h"

namespace verbena::kernel {
namespace {

constexpr std::size_t kLook = 1024;  // records of one look

bool is_send_queue(const Object& object) {
  if (object.cls != MLX5_IB_OBJECT_DEVX_OBJ) return object.cls == UVERBS_OBJECT_QP;
  const prm::Opcode kind = static_cast<const DevxObject&>(object).id.kind;
  return kind == prm::Opcode::create_qp || kind == prm::Opcode::create_sq;
}

std::uint32_t number_of(const Object& object) {
  if (object.cls == MLX5_IB_OBJECT_DEVX_OBJ) return static_cast<const DevxObject&>(object).id.number;
  return object.cls == UVERBS_OBJECT_QP ? static_cast<const Qp&>(object).qpn : static_cast<const Cq&>(object).cqn;
}

// Whether the second word of the record (send counter, or what arms the CQ) changed since the last call. The program may
// have unmapped it meanwhile.
bool second_word_changed(std::uint64_t record, std::uint32_t* seen) {
  if (record == 0) return false;  // it has none
  std::uint32_t word = 0;
  const void* second = reinterpret_cast<const void*>(record + 4);
  if (device::guarded_read(&word, second, sizeof word) != 0) return false;
  loaded_in_order(second);
  return word != std::exchange(*seen, word);
}

bool record_changed(Object& object) {
  if (object.cls == MLX5_IB_OBJECT_DEVX_OBJ) {
    auto& devx = static_cast<DevxObject&>(object);
    return second_word_changed(devx.doorbell, &devx.seen_doorbell);
  }
  if (object.cls == UVERBS_OBJECT_QP) {
    auto& qp = static_cast<Qp&>(object);
    return second_word_changed(qp.doorbell, &qp.seen_doorbell);
  }
  auto& cq = static_cast<Cq&>(object);
  return second_word_changed(cq.doorbell, &cq.seen_arm);
}

}  // namespace

void WatchList::add(Object& object) {
  if (object.watched != Object::kNotWatched) return;
  entries_.push_back({&object});
  try {
    if (!is_send_queue(object)) cqs_[number_of(object)] = &object;
  } catch (const std::bad_alloc&) {
    entries_.pop_back();
    throw;
  }
  object.watched = static_cast<std::uint32_t>(entries_.size() - 1);
}

void WatchList::remove(Object& object) {
  if (object.watched == Object::kNotWatched) return;
  Entry& place = entries_[object.watched];
  place = entries_.back();
  place.object->watched = object.watched;
  entries_.pop_back();
  object.watched = Object::kNotWatched;
  if (!is_send_queue(object)) cqs_.erase(number_of(object));
}

void WatchList::look_again(const Object& object) {
  if (object.watched != Object::kNotWatched && is_send_queue(object)) entries_[object.watched].again = true;
}

bool WatchList::look(std::vector<Ring>* rings) {
  const std::size_t end = std::min(entries_.size(), next_ + kLook);
  for (; next_ < end; ++next_) {
    Entry& entry = entries_[next_];
    const bool send = is_send_queue(*entry.object), again = std::exchange(entry.again, false);
    const bool changed = record_changed(*entry.object) || again;
    if (changed) rings->push_back({send, number_of(*entry.object)});
    const bool before = std::exchange(entry.armed_before, changed);
    entry.just_armed = !send && (changed || before);
  }
  if (next_ < entries_.size()) return false;
  next_ = 0;
  return true;
}

bool WatchList::register_is_news(std::uint32_t cqn) {
  const auto cq = cqs_.find(cqn);
  return cq != cqs_.end() && !std::exchange(entries_[cq->second->watched].just_armed, false);
}

}  // namespace verbena::kernel
