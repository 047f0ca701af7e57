#include "kernel/object.h"

#include <algorithm>
#include <cerrno>

namespace verbena::kernel {

void HandleTable::make_room() {
  if (slots_.size() == slots_.capacity()) slots_.reserve(std::max<std::size_t>(16, slots_.size() * 2));
}

std::uint32_t HandleTable::add(std::unique_ptr<Object> object) {
  std::uint32_t slot = static_cast<std::uint32_t>(slots_.size());
  if (free_.empty()) {
    slots_.emplace_back();
  } else {
    slot = free_.top();
    free_.pop();
  }
  object->handle = first_ + slot;
  start_tracking(*object);
  slots_[slot] = std::move(object);
  ++count_;
  return first_ + slot;
}

Object* HandleTable::find(std::uint32_t handle, std::uint16_t cls, int* error) const {
  Object* object = find(handle);
  *error = !object ? ENOENT : object->cls != cls ? EINVAL : 0;
  return *error ? nullptr : object;
}

void HandleTable::start_tracking(Object& object) {
  device::TrackFacts facts;
  if (tracker_ == nullptr || !object.track(&facts)) return;
  facts.context = context_;
  object.record = tracker_->add(facts);
  object.users.tracker_ = tracker_;
  object.users.record_ = object.record;
  object.users.set(object.users);
}

void HandleTable::changed(Object& object) {
  device::TrackFacts facts;
  if (object.record == nullptr || !object.track(&facts)) return;
  facts.context = context_;
  tracker_->change(object.record, facts);
}

void HandleTable::remove(std::uint32_t handle) {
  if (!find(handle)) return;
  std::unique_ptr<Object> dying = std::move(slots_[handle - first_]);
  if (dying->record != nullptr) tracker_->remove(dying->record);
  free_.push(handle - first_);
  --count_;
}

std::vector<std::uint32_t> HandleTable::of_class(std::uint16_t cls) const {
  std::vector<std::uint32_t> handles;
  for (std::uint32_t i = 0; i < slots_.size(); ++i)
    if (slots_[i] && slots_[i]->cls == cls) handles.push_back(first_ + i);
  return handles;
}

std::vector<Object*> HandleTable::all() const {
  std::vector<Object*> objects;
  for (const auto& slot : slots_)
    if (slot) objects.push_back(slot.get());
  return objects;
}

}  // namespace verbena::kernel
