#include "kernel/object.h"

#include <cerrno>

namespace verbena::kernel {

std::uint32_t HandleTable::add(std::unique_ptr<Object> object) {
  std::uint32_t handle = static_cast<std::uint32_t>(slots_.size());
  if (free_.empty()) {
    slots_.emplace_back();
  } else {
    handle = free_.top();
    free_.pop();
  }
  object->handle = handle;
  slots_[handle] = std::move(object);
  ++count_;
  return handle;
}

Object* HandleTable::find(std::uint32_t handle, std::uint16_t cls, int* error) const {
  if (handle >= slots_.size() || !slots_[handle]) {
    *error = ENOENT;
    return nullptr;
  }
  if (slots_[handle]->cls != cls) {
    *error = EINVAL;
    return nullptr;
  }
  *error = 0;
  return slots_[handle].get();
}

void HandleTable::remove(std::uint32_t handle) {
  if (handle >= slots_.size() || !slots_[handle]) return;
  std::unique_ptr<Object> dying = std::move(slots_[handle]);
  free_.push(handle);
  --count_;
}

std::vector<std::uint32_t> HandleTable::of_class(std::uint16_t cls) const {
  std::vector<std::uint32_t> handles;
  for (std::uint32_t i = 0; i < slots_.size(); ++i)
    if (slots_[i] && slots_[i]->cls == cls) handles.push_back(i);
  return handles;
}

std::vector<Object*> HandleTable::all() const {
  std::vector<Object*> objects;
  for (const auto& slot : slots_)
    if (slot) objects.push_back(slot.get());
  return objects;
}

}  // namespace verbena::kernel
