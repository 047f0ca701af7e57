// The entries of a slice's flow tables as frames meet them: which has a frame, whatever the number of rules.
//
// A table is a list of groups in the order of their indices. All entries of a group compare the same bits, so those
// that can match a frame are found by a hash of what the group's mask leaves of it: a frame costs one look for each
// group. Threads: any; the caller holds Steering::lock. What lies in a slice may be anything: numbers are checked,
// walks end.
#pragma once

#include <cstdint>

#include "device/shared/segments.h"

namespace verbena::device {

// Groups and entries have numbers from 1 on, below kMaxFlowEntries and kMaxFlowEntries + 1; 0: none.
FlowGroupShape* flow_group(Steering& steering, std::uint32_t number);
FlowEntry* flow_entry(Steering& steering, std::uint32_t number);

// Puts a group, whose mask is there, into its table behind `before`; 0: it is the first.
void link_flow_group(Steering& steering, std::uint32_t table, std::uint32_t before, std::uint32_t number);
void unlink_flow_group(Steering& steering, std::uint32_t table, std::uint32_t before, std::uint32_t number);

// Makes an entry, whose group, index and value are there, one that frames can meet, and again none.
void insert_flow_entry(Steering& steering, std::uint32_t number);
void remove_flow_entry(Steering& steering, std::uint32_t number);

// The entry of the table with the lowest index that matches these headers (kMatchBytes of fte_match_set_lyr_2_4); null:
// none.
const FlowEntry* find_flow_entry(Steering& steering, std::uint32_t table, const std::byte* headers);

}  // namespace verbena::device
