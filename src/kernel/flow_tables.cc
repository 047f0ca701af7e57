#include "kernel/flow_tables.h"

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "kernel/command.h"
#include "support/bytes.h"

namespace verbena::kernel {
namespace {

constexpr std::uint32_t kLogTable = 13, kTable = 1u << kLogTable;
// Room for so many groups is set aside in equal parts; the groups behind them get an entry each.
constexpr std::uint32_t kGroups = 6, kGroupEntries = kTable / (kGroups + 1);

template <class View>
void fill_context(const View& context, std::uint32_t level, std::uint32_t miss) {
  using C = prm::FlowTableContext;
  context.template set<C::level>(level).template set<C::log_size>(kLogTable);
  if (!miss) return;
  context.template set<C::table_miss_action>(prm::FlowMissAction::forward).template set<C::table_miss_id>(miss);
}

bool same_treatment(const FlowVerdict& a, const FlowVerdict& b) {
  return a.drop == b.drop && a.allow == b.allow && a.leaves == b.leaves && a.tag == b.tag && a.has_tag == b.has_tag && a.counter == b.counter;
}

}  // namespace

std::size_t FlowHash::operator()(const FlowMatch::Bytes& bytes) const { return hash_words(bytes); }

FlowTables::Table::Table() : wide(0, kGroups), single(kGroups * kGroupEntries, kTable) {}

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
    command.in().set<In::op_mod>(to ? 0 : 1).set<In::table_id>(to ? to : own->second.id).set<In::table_type>(type_);
    return command.run(device);
  }
  using In = prm::ModifyFlowTableIn;
  Command<In, prm::ModifyFlowTableOut> command(prm::Opcode::modify_flow_table);
  command.in().set<In::table_type>(type_).set<In::table_id>(previous->id).set<In::modify_field_select>(prm::kFlowTableModifyMiss);
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
  command.in().set<In::table_type>(type_);
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
  if (!table.kinds.empty()) return;
  const unsigned priority = table.priority;
  const std::uint32_t id = table.id;
  link(device, priority, after(priority));
  tables_.erase(priority);
  write_forwarders(device);
  Command<prm::DestroyFlowTableIn, prm::DestroyFlowTableOut> command(prm::Opcode::destroy_flow_table);
  command.in().set<prm::DestroyFlowTableIn::table_type>(type_).set<prm::DestroyFlowTableIn::table_id>(id);
  command.run(device);
}

// Entries that let packets go on lead to the tables there are now.
void FlowTables::write_forwarders(device::Device& device) {
  for (const auto& [entry, table] : forwarders_) write(device, *table, *entry, true);
}

// ---- groups ----

// A group of the kind that has room.
int FlowTables::open_group(device::Device& device, Table& table, Kind& kind, Group** out) {
  if (!kind.open.empty()) {
    *out = kind.open.front();
    return 0;
  }
  const auto wide = table.wide.take();
  const auto single = wide ? std::nullopt : table.single.take();
  if (!wide && !single) return ENOSPC;
  const std::uint32_t first = wide ? *wide * kGroupEntries : *single, size = wide ? kGroupEntries : 1;
  using In = prm::CreateFlowGroupIn;
  Command<In, prm::CreateFlowGroupOut> command(prm::Opcode::create_flow_group);
  const auto in = command.in();
  in.set<In::table_type>(type_).set<In::table_id>(table.id).set<In::start_flow_index>(first).set<In::end_flow_index>(first + size - 1);
  in.set<In::match_criteria_enable>(kind.mask->criteria);
  std::memcpy(in.sub<In::match_criteria>().data(), kind.mask->bytes.data(), kind.mask->bytes.size());
  if (int error = command.run(device)) {
    wide ? table.wide.give_back(*wide) : table.single.give_back(first);
    return error;
  }
  Group& group = kind.groups.emplace_back();
  group.self = std::prev(kind.groups.end());
  group.id = command.out().get<prm::CreateFlowGroupOut::group_id>();
  group.first = first;
  group.wide = wide.has_value();
  group.indices = FreeNumbers(first, first + size);
  group.open = true;
  group.open_at = kind.open.insert(kind.open.end(), &group);
  *out = &group;
  return 0;
}

void FlowTables::close_group(device::Device& device, Table& table, Kind& kind, Group& group) {
  using In = prm::DestroyFlowGroupIn;
  Command<In, prm::DestroyFlowGroupOut> command(prm::Opcode::destroy_flow_group);
  command.in().set<In::table_type>(type_).set<In::table_id>(table.id).set<In::group_id>(group.id);
  command.run(device);
  group.wide ? table.wide.give_back(group.first / kGroupEntries) : table.single.give_back(group.first);
  if (group.open) kind.open.erase(group.open_at);
  kind.groups.erase(group.self);
}

void FlowTables::close_if_unused(Table& table, Kind& kind) {
  if (kind.groups.empty()) table.kinds.erase(FlowMask(*kind.mask));
}

// ---- entries ----

int FlowTables::write(device::Device& device, const Table& table, const Entry& entry, bool modify) const {
  std::vector<FlowTarget> targets;
  for (const auto& [target, rules] : entry.targets) targets.push_back(target);
  if (const std::uint32_t to = entry.next ? after(table.priority) : 0) targets.push_back({prm::FlowDestination::flow_table, to});
  const FlowVerdict& verdict = entry.verdict;
  if (const auto last = tables_.find(FlowPriority::leftovers); verdict.leaves && last != tables_.end())
    targets.push_back({prm::FlowDestination::flow_table, last->second.id});
  // What nobody wants goes: a packet that is let on, with no table behind, too.
  const bool drop = verdict.drop || (targets.empty() && !verdict.allow);
  if (drop || verdict.allow) targets.clear();
  using In = prm::SetFteIn;
  using C = prm::FlowContext;
  Command<In, prm::SetFteOut> command(prm::Opcode::set_flow_table_entry, 0, (targets.size() + 1) * prm::DestFormatStruct::size);
  const auto in = command.in();
  in.set<In::op_mod>(modify).set<In::table_type>(type_).set<In::table_id>(table.id).set<In::flow_index>(entry.index);
  in.set<In::modify_enable_mask>(modify ? prm::FteModify::all : 0u);
  const auto context = in.sub<In::flow_context>();
  context.set<C::group_id>(entry.group->id).set<C::flow_tag>(verdict.tag);
  context.set<C::action>((drop            ? prm::FlowAction::drop
                          : verdict.allow ? prm::FlowAction::allow
                                          : prm::FlowAction::fwd_dest) |
                         (verdict.counter ? prm::FlowAction::count : 0u));
  context.set<C::destination_list_size>(static_cast<std::uint32_t>(targets.size()));
  context.set<C::flow_counter_list_size>(verdict.counter ? 1 : 0);
  std::memcpy(context.sub<C::match_value>().data(), entry.value->data(), entry.value->size());
  std::byte* at = in.data() + In::size;
  for (const FlowTarget& target : targets) {
    using D = prm::DestFormatStruct;
    prm::View<D>(at).set<D::destination_type>(static_cast<std::uint32_t>(target.type)).set<D::destination_id>(target.id);
    at += D::size;
  }
  if (verdict.counter) prm::View<prm::FlowCounterList>(at).set<prm::FlowCounterList::flow_counter_id>(verdict.counter);
  return command.run(device);
}

// Entries that let packets go on are written again when the chain changes.
void FlowTables::note(Table& table, Entry& entry) {
  if (entry.next || entry.verdict.leaves)
    forwarders_[&entry] = &table;
  else
    forwarders_.erase(&entry);
}

FlowTables::Rule* FlowTables::add_rule(Entry& entry, const FlowVerdict& verdict) {
  Rule& rule = entry.rules.emplace_back();
  rule.self_ = std::prev(entry.rules.end());
  rule.entry_ = &entry;
  rule.target_ = verdict.target;
  rule.next_ = verdict.next;
  if (verdict.target) ++entry.targets[*verdict.target];
  entry.next += verdict.next;
  return &rule;
}

// Whether what the entry does is not the same without it.
bool FlowTables::drop_rule(Entry& entry, Rule* rule) {
  bool changes = rule->next_ && --entry.next == 0;
  if (rule->target_) {
    const auto target = entry.targets.find(*rule->target_);
    if (--target->second == 0) {
      entry.targets.erase(target);
      changes = true;
    }
  }
  entry.rules.erase(rule->self_);
  return changes;
}

int FlowTables::enter(device::Device& device, Table& table, Kind& kind, const FlowMatch::Bytes& value, const FlowVerdict& verdict,
                      Rule** out) {
  Group* group = nullptr;
  if (int error = open_group(device, table, kind, &group)) return error;
  const auto at = kind.entries.try_emplace(value).first;
  Entry& entry = at->second;
  entry.value = &at->first;
  entry.kind = &kind;
  entry.group = group;
  entry.index = *group->indices.take();
  entry.verdict = verdict;
  *out = add_rule(entry, verdict);
  (*out)->priority_ = table.priority;
  if (int error = write(device, table, entry, false)) {
    group->indices.give_back(entry.index);
    kind.entries.erase(at);
    if (group->used == 0) close_group(device, table, kind, *group);
    return error;
  }
  note(table, entry);
  if (++group->used == (group->wide ? kGroupEntries : 1)) {
    kind.open.erase(group->open_at);
    group->open = false;
  }
  return 0;
}

int FlowTables::join(device::Device& device, Table& table, Entry& entry, const FlowVerdict& verdict, Rule** out) {
  if (!same_treatment(entry.verdict, verdict)) return EEXIST;
  const std::size_t targets = entry.targets.size();
  const bool goes_on = entry.next;
  Rule* rule = add_rule(entry, verdict);
  rule->priority_ = table.priority;
  const bool changes = entry.targets.size() != targets || (entry.next != 0) != goes_on;
  if (int error = changes ? write(device, table, entry, true) : 0) {
    drop_rule(entry, rule);
    return error;
  }
  note(table, entry);
  *out = rule;
  return 0;
}

int FlowTables::add(device::Device& device, unsigned priority, const FlowMatch& match, const FlowVerdict& verdict, Rule** out) {
  std::lock_guard guard(lock_);
  Table* table = nullptr;
  if (int error = open(device, priority, &table)) return error;
  FlowMatch::Bytes value = match.value;
  for (std::size_t i = 0; i < value.size(); ++i) value[i] &= match.mask[i];
  const auto at = table->kinds.try_emplace({match.mask, match.criteria}).first;
  Kind& kind = at->second;
  kind.mask = &at->first;
  const auto same = kind.entries.find(value);
  const int error = same == kind.entries.end() ? enter(device, *table, kind, value, verdict, out)
                                               : join(device, *table, same->second, verdict, out);
  if (!error) return 0;
  close_if_unused(*table, kind);
  close_if_empty(device, *table);
  return error;
}

void FlowTables::remove(device::Device& device, Rule* rule) {
  std::lock_guard guard(lock_);
  Table& table = tables_.at(rule->priority_);
  Entry& entry = *rule->entry_;
  const bool changes = drop_rule(entry, rule);
  if (!entry.rules.empty()) {
    note(table, entry);
    if (changes) write(device, table, entry, true);
    return;
  }
  {
    Command<prm::DeleteFteIn, prm::DeleteFteOut> command(prm::Opcode::delete_flow_table_entry);
    using In = prm::DeleteFteIn;
    command.in().set<In::table_type>(type_).set<In::table_id>(table.id).set<In::flow_index>(entry.index);
    command.run(device);
  }
  forwarders_.erase(&entry);
  Kind& kind = *entry.kind;
  Group& group = *entry.group;
  group.indices.give_back(entry.index);
  if (!group.open) {
    group.open = true;
    group.open_at = kind.open.insert(kind.open.end(), &group);
  }
  kind.entries.erase(FlowMatch::Bytes(*entry.value));
  if (--group.used == 0) close_group(device, table, kind, group);
  close_if_unused(table, kind);
  close_if_empty(device, table);
}

}  // namespace verbena::kernel
