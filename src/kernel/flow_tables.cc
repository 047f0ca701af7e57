#include "kernel/flow_tables.h"

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "kernel/command.h"

namespace verbena::kernel {
namespace {

constexpr std::uint32_t kLogTable = 13, kTable = 1u << kLogTable;
// Room for so many kinds of match is set aside in equal parts; the kinds behind them get an entry each.
constexpr std::uint32_t kGroups = 6, kGroupEntries = kTable / (kGroups + 1);

template <class View>
void fill_context(const View& context, std::uint32_t level, std::uint32_t miss) {
  using C = prm::FlowTableContext;
  context.template set<C::level>(level).template set<C::log_size>(kLogTable);
  if (!miss) return;
  context.template set<C::table_miss_action>(prm::FlowMissAction::forward).template set<C::table_miss_id>(miss);
}

bool same_treatment(const FlowVerdict& a, const FlowVerdict& b) {
  return a.drop == b.drop && a.leaves == b.leaves && a.tag == b.tag && a.has_tag == b.has_tag && a.counter == b.counter;
}

}  // namespace

bool is_multicast(const FlowMatch& match) {
  using Match = prm::FteMatchSetLyr24;
  if (!(match.criteria & prm::kMatchOuterHeaders)) return false;
  const auto both = [&](std::size_t at, std::byte mask, std::byte value) {
    return (match.mask[at] & mask) == value && (match.value[at] & mask) == value;
  };
  return both(Match::dmac_47_16::offset, std::byte{1}, std::byte{1}) ||
         both(Match::dst_ipv4_dst_ipv6::offset + 12, std::byte{0xf0}, std::byte{0xe0});
}

// ---- the chain ----

FlowTables::Table* FlowTables::before(unsigned priority) {
  const auto it = tables_.lower_bound(priority);
  return it == tables_.begin() ? nullptr : &std::prev(it)->second;
}
std::uint32_t FlowTables::after(unsigned priority) const {
  const auto it = tables_.upper_bound(priority);
  return it == tables_.end() ? 0 : it->second.id;
}

// Leads what misses before `priority` to the table `to`; 0: nowhere.
int FlowTables::link(device::Device& device, unsigned priority, std::uint32_t to) {
  Table* const previous = before(priority);
  if (!previous) {
    using In = prm::SetFlowTableRootIn;
    Command<In, prm::SetFlowTableRootOut> command(prm::Opcode::set_flow_table_root);
    const auto own = tables_.find(priority);
    command.in().set<In::op_mod>(to ? 0 : 1).set<In::table_id>(to ? to : own->second.id);
    return command.run(device);
  }
  using In = prm::ModifyFlowTableIn;
  Command<In, prm::ModifyFlowTableOut> command(prm::Opcode::modify_flow_table);
  command.in().set<In::table_id>(previous->id).set<In::modify_field_select>(prm::kFlowTableModifyMiss);
  fill_context(command.in().sub<In::flow_table_context>(), previous->priority + 1, to);
  return command.run(device);
}

int FlowTables::open(device::Device& device, unsigned priority, Table** out) {
  const auto known = tables_.find(priority);
  if (known != tables_.end()) {
    *out = &known->second;
    return 0;
  }
  using In = prm::CreateFlowTableIn;
  Command<In, prm::CreateFlowTableOut> command(prm::Opcode::create_flow_table);
  fill_context(command.in().sub<In::flow_table_context>(), priority + 1, after(priority));
  if (int error = command.run(device)) return error;
  Table& table = tables_[priority];
  table.id = command.out().get<prm::CreateFlowTableOut::table_id>();
  table.priority = priority;
  if (int error = link(device, priority, table.id)) {
    close_if_empty(device, table);
    return error;
  }
  write_forwarders(device);
  *out = &table;
  return 0;
}

void FlowTables::close_if_empty(device::Device& device, Table& table) {
  if (!table.groups.empty()) return;
  const unsigned priority = table.priority;
  const std::uint32_t id = table.id;
  link(device, priority, after(priority));
  tables_.erase(priority);
  write_forwarders(device);
  Command<prm::DestroyFlowTableIn, prm::DestroyFlowTableOut> command(prm::Opcode::destroy_flow_table);
  command.in().set<prm::DestroyFlowTableIn::table_id>(id);
  command.run(device);
}

// Rules that let packets go on lead to the tables there are now.
void FlowTables::write_forwarders(device::Device& device) {
  for (auto& [priority, table] : tables_)
    for (Group& group : table.groups)
      for (auto& [index, entry] : group.entries)
        if (entry.verdict.leaves || std::ranges::any_of(entry.rules, [](const Rule& rule) { return rule.next_; }))
          write(device, table, group, entry, true);
}

// ---- groups ----

int FlowTables::find_group(device::Device& device, Table& table, const FlowMatch& match, Group** out) {
  for (Group& group : table.groups) {
    if (group.criteria != match.criteria || group.mask != match.mask) continue;
    const bool full = group.entries.size() > group.last - group.first;
    const bool shared = std::ranges::any_of(group.entries, [&](const auto& e) { return e.second.value == match.value; });
    if (full && !shared) continue;
    *out = &group;
    return 0;
  }
  const std::uint32_t size = table.groups.size() < kGroups ? kGroupEntries : 1;
  // The first gap that is wide enough.
  std::uint32_t first = 0;
  std::vector<std::pair<std::uint32_t, std::uint32_t>> taken;
  for (const Group& group : table.groups) taken.emplace_back(group.first, group.last);
  std::ranges::sort(taken);
  for (const auto& [from, to] : taken) {
    if (from - first >= size) break;
    first = to + 1;
  }
  if (kTable - first < size) return ENOSPC;
  using In = prm::CreateFlowGroupIn;
  Command<In, prm::CreateFlowGroupOut> command(prm::Opcode::create_flow_group);
  const auto in = command.in();
  in.set<In::table_id>(table.id).set<In::start_flow_index>(first).set<In::end_flow_index>(first + size - 1);
  in.set<In::match_criteria_enable>(match.criteria);
  std::memcpy(in.sub<In::match_criteria>().data(), match.mask.data(), match.mask.size());
  if (int error = command.run(device)) return error;
  Group& group = table.groups.emplace_back();
  group.id = command.out().get<prm::CreateFlowGroupOut::group_id>();
  group.first = first;
  group.last = first + size - 1;
  group.criteria = match.criteria;
  group.mask = match.mask;
  *out = &group;
  return 0;
}

void FlowTables::drop_group(device::Device& device, Table& table, const Group& group) {
  using In = prm::DestroyFlowGroupIn;
  Command<In, prm::DestroyFlowGroupOut> command(prm::Opcode::destroy_flow_group);
  command.in().set<In::table_id>(table.id).set<In::group_id>(group.id);
  command.run(device);
  table.groups.remove_if([&](const Group& g) { return &g == &group; });
}

// ---- entries ----

int FlowTables::write(device::Device& device, const Table& table, const Group& group, const Entry& entry, bool modify) const {
  std::vector<FlowTarget> targets;
  bool next = false;
  for (const Rule& rule : entry.rules) {
    if (rule.target_ && std::ranges::find(targets, *rule.target_) == targets.end()) targets.push_back(*rule.target_);
    next |= rule.next_;
  }
  if (const std::uint32_t to = next ? after(table.priority) : 0) targets.push_back({prm::FlowDestination::flow_table, to});
  const FlowVerdict& verdict = entry.verdict;
  if (const auto last = tables_.find(FlowPriority::leftovers); verdict.leaves && last != tables_.end())
    targets.push_back({prm::FlowDestination::flow_table, last->second.id});
  // What nobody wants goes: a packet that is let on, with no table behind, too.
  const bool drop = verdict.drop || targets.empty();
  if (drop) targets.clear();
  using In = prm::SetFteIn;
  using C = prm::FlowContext;
  Command<In, prm::SetFteOut> command(prm::Opcode::set_flow_table_entry, 0, (targets.size() + 1) * prm::DestFormatStruct::size);
  const auto in = command.in();
  in.set<In::op_mod>(modify).set<In::table_id>(table.id).set<In::flow_index>(entry.index);
  in.set<In::modify_enable_mask>(modify ? prm::FteModify::all : 0u);
  const auto context = in.sub<In::flow_context>();
  context.set<C::group_id>(group.id).set<C::flow_tag>(verdict.tag);
  context.set<C::action>((drop ? prm::FlowAction::drop : prm::FlowAction::fwd_dest) |
                         (verdict.counter ? prm::FlowAction::count : 0u));
  context.set<C::destination_list_size>(static_cast<std::uint32_t>(targets.size()));
  context.set<C::flow_counter_list_size>(verdict.counter ? 1 : 0);
  std::memcpy(context.sub<C::match_value>().data(), entry.value.data(), entry.value.size());
  std::byte* at = in.data() + In::size;
  for (const FlowTarget& target : targets) {
    using D = prm::DestFormatStruct;
    prm::View<D>(at).set<D::destination_type>(static_cast<std::uint32_t>(target.type)).set<D::destination_id>(target.id);
    at += D::size;
  }
  if (verdict.counter) prm::View<prm::FlowCounterList>(at).set<prm::FlowCounterList::flow_counter_id>(verdict.counter);
  return command.run(device);
}

int FlowTables::enter(device::Device& device, Table& table, Group& group, const FlowMatch& match, const FlowVerdict& verdict,
                      Rule** out) {
  std::uint32_t index = group.first;
  while (group.entries.contains(index)) ++index;
  Entry& entry = group.entries[index];
  entry.index = index;
  entry.value = match.value;
  entry.verdict = verdict;
  Rule& rule = entry.rules.emplace_back();
  rule.priority_ = table.priority;
  rule.group_ = &group;
  rule.index_ = index;
  rule.target_ = verdict.target;
  rule.next_ = verdict.next;
  if (int error = write(device, table, group, entry, false)) {
    group.entries.erase(index);
    return error;
  }
  *out = &rule;
  return 0;
}

int FlowTables::join(device::Device& device, Table& table, Group& group, Entry& entry, const FlowVerdict& verdict, Rule** out) {
  if (!same_treatment(entry.verdict, verdict)) return EEXIST;
  Rule& rule = entry.rules.emplace_back(entry.rules.front());
  rule.target_ = verdict.target;
  rule.next_ = verdict.next;
  if (int error = write(device, table, group, entry, true)) {
    entry.rules.pop_back();
    return error;
  }
  *out = &rule;
  return 0;
}

int FlowTables::add(device::Device& device, unsigned priority, const FlowMatch& match, const FlowVerdict& verdict, Rule** out) {
  std::lock_guard guard(lock_);
  Table* table = nullptr;
  if (int error = open(device, priority, &table)) return error;
  FlowMatch wanted = match;
  for (std::size_t i = 0; i < wanted.value.size(); ++i) wanted.value[i] &= wanted.mask[i];
  Group* group = nullptr;
  int error = find_group(device, *table, wanted, &group);
  if (!error) {
    const auto same = std::ranges::find_if(group->entries, [&](const auto& e) { return e.second.value == wanted.value; });
    error = same == group->entries.end() ? enter(device, *table, *group, wanted, verdict, out)
                                         : join(device, *table, *group, same->second, verdict, out);
  }
  if (error && group && group->entries.empty()) drop_group(device, *table, *group);
  if (error) close_if_empty(device, *table);
  return error;
}

void FlowTables::remove(device::Device& device, Rule* rule) {
  std::lock_guard guard(lock_);
  Table& table = tables_.at(rule->priority_);
  Group& group = *rule->group_;
  Entry& entry = group.entries.at(rule->index_);
  entry.rules.remove_if([&](const Rule& r) { return &r == rule; });
  if (!entry.rules.empty()) {
    write(device, table, group, entry, true);
    return;
  }
  {
    Command<prm::DeleteFteIn, prm::DeleteFteOut> command(prm::Opcode::delete_flow_table_entry);
    command.in().set<prm::DeleteFteIn::table_id>(table.id).set<prm::DeleteFteIn::flow_index>(entry.index);
    command.run(device);
  }
  group.entries.erase(entry.index);
  if (group.entries.empty()) drop_group(device, table, group);
  close_if_empty(device, table);
}

}  // namespace verbena::kernel
