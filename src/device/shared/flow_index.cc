#include "device/shared/flow_index.h"

#include <cstring>
#include <span>

#include "support/bytes.h"

namespace verbena::device {

namespace {

constexpr unsigned kWords = kMatchBytes / 8;
constexpr unsigned kSteps = 4 * kMaxFlowEntries;  // no walk over a sound slice takes as many

struct Value {
  std::uint64_t word[kWords];
  bool operator==(const Value&) const = default;
};

Value value_at(const std::byte* bytes) {
  Value value;
  std::memcpy(value.word, bytes, kMatchBytes);
  return value;
}

std::uint32_t& bucket(Steering& steering, std::uint32_t group, const Value& value) {
  const std::uint64_t h = hash_words(std::as_bytes(std::span(value.word)), group);
  return steering.buckets[h % kFlowBuckets];
}

}  // namespace

FlowGroupShape* flow_group(Steering& steering, std::uint32_t number) {
  return number != 0 && number < kMaxFlowEntries ? &steering.groups[number] : nullptr;
}

FlowEntry* flow_entry(Steering& steering, std::uint32_t number) {
  return number != 0 && number <= kMaxFlowEntries ? &steering.entries[number - 1] : nullptr;
}

void link_flow_group(Steering& steering, std::uint32_t table, std::uint32_t before, std::uint32_t number) {
  FlowGroupShape* const group = flow_group(steering, number);
  if (!group) return;
  FlowGroupShape* const previous = flow_group(steering, before);
  std::uint32_t& next = previous ? previous->next : steering.first_group[table];
  group->next = next;
  group->entries = 0;
  next = number;
}

void unlink_flow_group(Steering& steering, std::uint32_t table, std::uint32_t before, std::uint32_t number) {
  FlowGroupShape* const previous = flow_group(steering, before);
  if (const FlowGroupShape* const group = flow_group(steering, number))
    (previous ? previous->next : steering.first_group[table]) = group->next;
}

void insert_flow_entry(Steering& steering, std::uint32_t number) {
  FlowEntry* const named = flow_entry(steering, number);
  if (!named) return;
  FlowEntry& entry = *named;
  // Of equal entries the one with the lowest index stands first.
  std::uint32_t* at = &bucket(steering, entry.group, value_at(entry.value));
  for (unsigned steps = 0; steps < kSteps; ++steps) {
    FlowEntry* const other = flow_entry(steering, *at);
    if (!other || other->index > entry.index) break;
    at = &other->next;
  }
  entry.next = *at;
  *at = number;
  if (FlowGroupShape* const group = flow_group(steering, entry.group)) ++group->entries;
}

void remove_flow_entry(Steering& steering, std::uint32_t number) {
  FlowEntry* const named = flow_entry(steering, number);
  if (!named) return;
  FlowEntry& entry = *named;
  std::uint32_t* at = &bucket(steering, entry.group, value_at(entry.value));
  for (unsigned steps = 0; steps < kSteps; ++steps) {
    if (*at == number) {
      *at = entry.next;
      if (FlowGroupShape* const group = flow_group(steering, entry.group)) --group->entries;
      return;
    }
    FlowEntry* const other = flow_entry(steering, *at);
    if (!other) return;
    at = &other->next;
  }
}

const FlowEntry* find_flow_entry(Steering& steering, std::uint32_t table, const std::byte* headers) {
  unsigned steps = 0;
  for (std::uint32_t g = steering.first_group[table]; steps < kSteps; ++steps) {
    const FlowGroupShape* const group = flow_group(steering, g);
    if (!group) return nullptr;
    if (group->entries != 0) {
      Value value = value_at(headers);
      const Value mask = value_at(group->mask);
      for (unsigned i = 0; i < kWords; ++i) value.word[i] &= mask.word[i];
      const FlowEntry* entry = flow_entry(steering, bucket(steering, g, value));
      for (; entry && steps < kSteps; entry = flow_entry(steering, entry->next), ++steps)
        if (entry->group == g && value_at(entry->value) == value) return entry;
    }
    g = group->next;
  }
  return nullptr;
}

}  // namespace verbena::device
