// The flow tables of one type of a device, as the driver keeps them: one for each priority in use, chained in order.
//
// A rule is an entry of the table of its priority; rules with equal matches share an entry and all get the packet. The
// first table is the root of what this process receives, or sends; a frame that matches nowhere in the chain is
// nobody's, a RoCE packet goes its way. What a
// rule costs does not depend on how many there are.
// Threads: any; has a lock of its own, taken before the device is called.
#pragma once

#include <array>
#include <compare>
#include <cstddef>
#include <cstdint>
#include <list>
#include <map>
#include <mutex>
#include <optional>
#include <unordered_map>
#include <vector>

#include "device/device.h"
#include "prm/flow.h"
#include "support/free_numbers.h"

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
  auto operator<=>(const FlowTarget&) const = default;
};

// What becomes of a packet. Neither a target nor `next`: it is dropped.
struct FlowVerdict {
  std::optional<FlowTarget> target;
  bool next = false;          // goes on to the next priority as well
  bool leaves = false;        // goes on behind all priorities: to the leftovers
  bool drop = false;
  bool allow = false;         // goes its way: of RoCE packets
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
  explicit FlowTables(prm::FlowTableType type) : type_(type) {}
  // 0 or an errno: EEXIST (packets of this match are treated another way already), ENOSPC, or what the device says.
  int add(device::Device& device, unsigned priority, const FlowMatch& match, const FlowVerdict& verdict, Rule** out);
  void remove(device::Device& device, Rule* rule);

 private:
  struct Entry;
  struct Group;
  struct Kind;
  struct Table;

  int open(device::Device& device, unsigned priority, Table** out);
  void close_if_empty(device::Device& device, Table& table);
  int link(device::Device& device, unsigned priority, std::uint32_t to);
  Table* before(unsigned priority);
  std::uint32_t after(unsigned priority) const;
  int open_group(device::Device& device, Table& table, Kind& kind, Group** out);
  void close_group(device::Device& device, Table& table, Kind& kind, Group& group);
  void close_if_unused(Table& table, Kind& kind);
  int enter(device::Device& device, Table& table, Kind& kind, const FlowMatch::Bytes& value, const FlowVerdict& verdict, Rule** out);
  int join(device::Device& device, Table& table, Entry& entry, const FlowVerdict& verdict, Rule** out);
  Rule* add_rule(Entry& entry, const FlowVerdict& verdict);
  bool drop_rule(Entry& entry, Rule* rule);
  void note(Table& table, Entry& entry);
  void write_forwarders(device::Device& device);
  int write(device::Device& device, const Table& table, const Entry& entry, bool modify) const;

  const prm::FlowTableType type_;
  std::mutex lock_;
  std::map<unsigned, Table> tables_;
  std::unordered_map<Entry*, Table*> forwarders_;  // entries that let packets go on, and where they are
};

// What rules of one kind have in common.
struct FlowMask {
  FlowMatch::Bytes bytes{};
  std::uint8_t criteria = 0;
  bool operator==(const FlowMask&) const = default;
};
struct FlowHash {
  std::size_t operator()(const FlowMatch::Bytes& bytes) const;
  std::size_t operator()(const FlowMask& mask) const { return (*this)(mask.bytes) + mask.criteria; }
};

class FlowTables::Rule {
  friend class FlowTables;
  unsigned priority_ = 0;
  Entry* entry_ = nullptr;
  std::optional<FlowTarget> target_;
  bool next_ = false;
  std::list<Rule>::iterator self_;
};
struct FlowTables::Entry {
  const FlowMatch::Bytes* value = nullptr;  // its key
  Kind* kind = nullptr;
  Group* group = nullptr;
  std::uint32_t index = 0;
  FlowVerdict verdict;                      // of the first rule; targets apart, the others agree with it
  std::map<FlowTarget, unsigned> targets;   // and how many rules have each
  unsigned next = 0;                        // rules that let packets go on
  std::list<Rule> rules;
};
struct FlowTables::Group {
  std::uint32_t id = 0, first = 0, used = 0;
  bool wide = false;                        // has room for many entries, or for one
  FreeNumbers indices{0, 0};
  bool open = false;                        // has room; then among its kind's
  std::list<Group*>::iterator open_at;
  std::list<Group>::iterator self;
};
// Entries that compare the same bits, and the device's groups that they are in.
struct FlowTables::Kind {
  const FlowMask* mask = nullptr;           // its key
  std::unordered_map<FlowMatch::Bytes, Entry, FlowHash> entries;
  std::list<Group> groups;
  std::list<Group*> open;
};
struct FlowTables::Table {
  std::uint32_t id = 0;
  unsigned priority = 0;
  FreeNumbers wide, single;                 // places of groups
  std::unordered_map<FlowMask, Kind, FlowHash> kinds;
  Table();
};

}  // namespace verbena::kernel
