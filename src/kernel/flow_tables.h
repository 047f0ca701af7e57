// The flow tables of a device's receive side, as the driver keeps them: one for each priority in use, chained in order.
//
// A rule is an entry of the table of its priority; rules with equal matches share an entry and all get the packet. The
// first table is the root of what this process receives; a packet that matches nowhere in the chain is nobody's.
// Threads: any; has a lock of its own, taken before the device is called.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <list>
#include <map>
#include <mutex>
#include <optional>
#include <vector>

#include "device/device.h"
#include "prm/flow.h"

namespace verbena::kernel {

// What a rule matches: fte_match_param as mask and value, and which of its parts count (match_criteria_enable).
struct FlowMatch {
  using Bytes = std::array<std::byte, prm::FteMatchParam::size>;
  Bytes mask{}, value{};
  std::uint8_t criteria = 0;
};

// Whether only packets for groups can match: such rules have a table of their own.
bool is_multicast(const FlowMatch& match);

struct FlowTarget {
  prm::FlowDestination type{};
  std::uint32_t id = 0;
  bool operator==(const FlowTarget&) const = default;
};

// What becomes of a packet. Neither a target nor `next`: it is dropped.
struct FlowVerdict {
  std::optional<FlowTarget> target;
  bool next = false;          // goes on to the next priority as well
  bool leaves = false;        // goes on behind all priorities: to the leftovers
  bool drop = false;
  std::uint32_t tag = 0;
  bool has_tag = false;
  std::uint32_t counter = 0;  // 0: none
};

// Priorities of the chain. Verbs have 16; each is two, since rules that leave the packet to others come first.
struct FlowPriority {
  static constexpr unsigned regular = 16;
  static constexpr unsigned multicast = 2 * regular, leftovers = multicast + 1, count = leftovers + 1;
  static constexpr unsigned of(unsigned priority, bool dont_trap) { return 2 * priority + !dont_trap; }
};

class FlowTables {
 public:
  class Rule;
  // 0 or an errno: EEXIST (packets of this match are treated another way already), ENOSPC, or what the device says.
  int add(device::Device& device, unsigned priority, const FlowMatch& match, const FlowVerdict& verdict, Rule** out);
  void remove(device::Device& device, Rule* rule);

 private:
  struct Entry;
  struct Group;
  struct Table;

  int open(device::Device& device, unsigned priority, Table** out);
  void close_if_empty(device::Device& device, Table& table);
  int link(device::Device& device, unsigned priority, std::uint32_t to);
  Table* before(unsigned priority);
  std::uint32_t after(unsigned priority) const;
  int find_group(device::Device& device, Table& table, const FlowMatch& match, Group** out);
  void drop_group(device::Device& device, Table& table, const Group& group);
  int enter(device::Device& device, Table& table, Group& group, const FlowMatch& match, const FlowVerdict& verdict, Rule** out);
  int join(device::Device& device, Table& table, Group& group, Entry& entry, const FlowVerdict& verdict, Rule** out);
  void write_forwarders(device::Device& device);
  int write(device::Device& device, const Table& table, const Group& group, const Entry& entry, bool modify) const;

  std::mutex lock_;
  std::map<unsigned, Table> tables_;
};

struct FlowTables::Entry {
  std::uint32_t index = 0;
  FlowMatch::Bytes value{};
  FlowVerdict verdict;                // of the first rule; targets apart, the others agree with it
  std::list<Rule> rules;
};
class FlowTables::Rule {
  friend class FlowTables;
  unsigned priority_ = 0;
  Group* group_ = nullptr;
  std::uint32_t index_ = 0;
  std::optional<FlowTarget> target_;
  bool next_ = false;
};
struct FlowTables::Group {
  std::uint32_t id = 0, first = 0, last = 0;
  std::uint8_t criteria = 0;
  FlowMatch::Bytes mask{};
  std::map<std::uint32_t, Entry> entries;  // by index
};
struct FlowTables::Table {
  std::uint32_t id = 0;
  unsigned priority = 0;
  std::list<Group> groups;
};

}  // namespace verbena::kernel
