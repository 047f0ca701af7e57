// Numbered objects that live in this process only (PD, UAR, UMEM ...) and this process's notes on shared contexts.
//
// Both kinds cost the same at the first object and at the hundred-thousandth. Numbers are reused oldest first, so that
// a stale number is seen as such for as long as possible.
// Threads: the caller holds State::mutex.
#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <unordered_map>
#include <utility>
#include <vector>

namespace verbena::device::command {

// What every object has: the user context that owns it, and how many objects stand on it.
struct Owned {
  std::uint16_t uid = 0;
  std::uint32_t uses = 0;
};

// Objects per user context; a context with objects left cannot be destroyed.
class UidCounts {
 public:
  void add(std::uint16_t uid) { ++counts_[uid]; }
  void drop(std::uint16_t uid) {
    if (auto it = counts_.find(uid); it != counts_.end() && --it->second == 0) counts_.erase(it);
  }
  std::uint32_t of(std::uint16_t uid) const {
    const auto it = counts_.find(uid);
    return it == counts_.end() ? 0 : it->second;
  }

 private:
  std::unordered_map<std::uint16_t, std::uint32_t> counts_;
};

// Objects that the table itself numbers: [first, limit).
template <class T>
class Table {
 public:
  Table(UidCounts& counts, std::uint32_t first, std::uint32_t limit) : counts_(counts), first_(first), limit_(limit) {}

  // The new object and its number; null if all numbers are taken.
  std::pair<std::uint32_t, T*> create(std::uint16_t uid) {
    std::uint32_t number;
    if (slots_.size() < limit_ - first_) {
      number = first_ + static_cast<std::uint32_t>(slots_.size());
      slots_.emplace_back();
    } else if (!free_.empty()) {
      number = free_.front();
      free_.pop_front();
    } else {
      return {0, nullptr};
    }
    T& object = slots_[number - first_].emplace();
    object.uid = uid;
    counts_.add(uid);
    return {number, &object};
  }
  // `count` objects with numbers in a row, and the first of these; null if there is no such row.
  std::pair<std::uint32_t, T*> create_row(std::uint16_t uid, std::uint32_t count) {
    std::size_t start = 0;
    if (limit_ - first_ - slots_.size() >= count) {
      start = slots_.size();
      slots_.resize(start + count);
    } else if (const auto hole = find_hole(count); hole) {
      start = *hole;
      std::erase_if(free_, [&](std::uint32_t number) { return number - first_ - start < count; });
    } else {
      return {0, nullptr};
    }
    for (std::size_t i = start; i < start + count; ++i) {
      slots_[i].emplace().uid = uid;
      counts_.add(uid);
    }
    return {first_ + static_cast<std::uint32_t>(start), &*slots_[start]};
  }
  T* find(std::uint32_t number) {
    return number >= first_ && number - first_ < slots_.size() && slots_[number - first_] ? &*slots_[number - first_]
                                                                                          : nullptr;
  }
  const T* find(std::uint32_t number) const { return const_cast<Table*>(this)->find(number); }
  template <class Visit>
  void for_each(Visit visit) const {
    for (const auto& slot : slots_)
      if (slot) visit(*slot);
  }
  void erase(std::uint32_t number) {
    T* object = find(number);
    if (!object) return;
    counts_.drop(object->uid);
    slots_[number - first_].reset();
    free_.push_back(number);
  }

 private:
  std::optional<std::size_t> find_hole(std::uint32_t count) {
    std::size_t length = 0;
    for (std::size_t i = 0; i < limit_ - first_; ++i) {
      length = i < slots_.size() && slots_[i] ? 0 : length + 1;
      if (length < count) continue;
      if (slots_.size() <= i) slots_.resize(i + 1);
      return i + 1 - count;
    }
    return std::nullopt;
  }

  UidCounts& counts_;
  std::uint32_t first_, limit_;
  std::deque<std::optional<T>> slots_;  // objects never move
  std::deque<std::uint32_t> free_;
};

// Notes on objects whose number comes from elsewhere (Nic).
template <class T>
class Records {
 public:
  explicit Records(UidCounts& counts) : counts_(counts) {}
  T& create(std::uint32_t number, std::uint16_t uid) {
    auto& slot = map_[number];
    slot = std::make_unique<T>();
    slot->uid = uid;
    counts_.add(uid);
    return *slot;
  }
  T* find(std::uint32_t number) const {
    const auto it = map_.find(number);
    return it == map_.end() ? nullptr : it->second.get();
  }
  template <class Visit>
  void for_each(Visit visit) const {
    for (const auto& [number, record] : map_) visit(number, *record);
  }
  void erase(std::uint32_t number) {
    const auto it = map_.find(number);
    if (it == map_.end()) return;
    counts_.drop(it->second->uid);
    map_.erase(it);
  }
  std::size_t size() const { return map_.size(); }

 private:
  UidCounts& counts_;
  std::unordered_map<std::uint32_t, std::unique_ptr<T>> map_;
};

}  // namespace verbena::device::command
