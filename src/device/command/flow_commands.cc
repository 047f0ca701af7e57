// Flow tables, their groups and entries, and flow counters: CREATE, MODIFY, QUERY, DESTROY of each.
//
// What a command says is kept here; what packets need of it lies in the slice (Steering), where whoever sends a frame
// reads it. This device has NIC receive tables, which lead frames to TIRs or further tables, and tables of RoCE packets,
// received or sent, which let packets pass or drop them. All match by outer headers.
#include <algorithm>
#include <bit>
#include <cstring>

#include "device/command/dispatcher.h"
#include "device/command/families.h"
#include "device/command/flow.h"
#include "device/command/state.h"
#include "device/shared/flow_index.h"
#include "device/transport/steering.h"
#include "prm/flow.h"
#include "support/bytes.h"

namespace verbena::device::command {
namespace {

using prm::FlowAction;
using prm::FlowContext;
using prm::FlowDestination;
using prm::FlowTableContext;
using Group = prm::CreateFlowGroupIn;

RoceWay way_of(prm::FlowTableType type) { return type == prm::FlowTableType::rdma_tx ? RoceWay::out : RoceWay::in; }
bool of_roce(prm::FlowTableType type) { return type == prm::FlowTableType::rdma_rx || type == prm::FlowTableType::rdma_tx; }

// What all commands on tables name in the same places.
template <class In>
Outcome check_place(const prm::ConstView<In>& in) {
  if constexpr (requires { typename In::vport_number; })
    if (in.template get<typename In::other_vport>() || in.template get<typename In::vport_number>())
      return refuse(Syndrome::flow_vport);
  const auto type = in.template get<typename In::table_type>();
  return type == prm::FlowTableType::nic_rx || of_roce(type) ? Outcome{} : refuse(Syndrome::flow_table_type);
}
template <class In>
Maybe<FlowTable*> named_table(State& state, const prm::ConstView<In>& in, std::uint16_t uid) {
  if (auto ok = check_place(in); !ok) return refuse(ok.error());
  FlowTable* const table = state.flow_tables.find(in.template get<typename In::table_id>());
  if (table && table->type != in.template get<typename In::table_type>()) return refuse(Syndrome::flow_table_missing);
  return own(table, uid, Syndrome::flow_table_missing);
}

// ---- tables ----

Outcome check_table(const prm::ConstView<FlowTableContext>& context, prm::FlowTableType type) {
  using C = FlowTableContext;
  if (context.get<C::reformat_en>() || context.get<C::decap_en>() || context.get<C::sw_owner>() ||
      context.get<C::termination_table>() || context.get<C::table_miss_action>() > prm::FlowMissAction::forward)
    return refuse(Syndrome::flow_table_flags);
  if (context.get<C::log_size>() > kLogFlowTable || context.get<C::level>() > (of_roce(type) ? kRoceFlowLevels : kFlowLevels))
    return refuse(Syndrome::flow_table_size);
  return {};
}

// The table that packets go to which no entry matches; null: none.
Maybe<FlowTable*> miss_table(State& state, const prm::ConstView<FlowTableContext>& context, prm::FlowTableType type,
                             std::uint32_t level, std::uint16_t uid) {
  if (context.get<FlowTableContext::table_miss_action>() != prm::FlowMissAction::forward) return nullptr;
  FlowTable* to = state.flow_tables.find(context.get<FlowTableContext::table_miss_id>());
  if (!to || to->type != type || !may_use(*to, uid) || to->context.get<FlowTableContext::level>() <= level)
    return refuse(Syndrome::flow_miss_table);
  return to;
}

void set_miss(State& state, std::uint32_t number, FlowTable& table, FlowTable* to, std::uint32_t id) {
  SharedGuard guard(state.steering().lock, state.nic.me());
  std::uint32_t& miss = state.steering().miss[number];
  if (FlowTable* old = state.flow_tables.find(miss)) --old->uses;
  if (to) ++to->uses;
  miss = to ? id : 0;
  table.context.set<FlowTableContext::table_miss_id>(miss);
}

Outcome create_table(State& state, const Call<prm::CreateFlowTableIn, prm::CreateFlowTableOut>& call) {
  if (auto ok = check_place(call.in); !ok) return ok;
  const auto context = call.in.sub<prm::CreateFlowTableIn::flow_table_context>();
  const auto type = call.in.get<prm::CreateFlowTableIn::table_type>();
  if (auto ok = check_table(context, type); !ok) return ok;
  const auto to = miss_table(state, context, type, context.get<FlowTableContext::level>(), call.uid);
  if (!to) return refuse(to.error());
  const auto [number, table] = state.flow_tables.create(call.uid);
  if (!table) return refuse(Syndrome::flow_table_none_left);
  table->type = type;
  std::memcpy(table->context.data(), context.data(), FlowTableContext::size);
  set_miss(state, number, *table, *to, context.get<FlowTableContext::table_miss_id>());
  call.out.set<prm::CreateFlowTableOut::table_id>(number);
  return {};
}

Outcome modify_table(State& state, const Call<prm::ModifyFlowTableIn, prm::ModifyFlowTableOut>& call) {
  using In = prm::ModifyFlowTableIn;
  const auto table = named_table(state, call.in, call.uid);
  if (!table) return refuse(table.error());
  if (call.in.get<In::modify_field_select>() & ~prm::kFlowTableModifyMiss) return refuse(Syndrome::flow_modify_select);
  if (!call.in.get<In::modify_field_select>()) return {};
  const auto from = call.in.sub<In::flow_table_context>();
  if (from.get<FlowTableContext::table_miss_action>() > prm::FlowMissAction::forward)
    return refuse(Syndrome::flow_table_flags);
  const auto to = miss_table(state, from, (*table)->type, (*table)->context.get<FlowTableContext::level>(), call.uid);
  if (!to) return refuse(to.error());
  (*table)->context.set<FlowTableContext::table_miss_action>(from.get<FlowTableContext::table_miss_action>());
  set_miss(state, call.in.get<In::table_id>(), **table, *to, from.get<FlowTableContext::table_miss_id>());
  return {};
}

Outcome query_table(State& state, const Call<prm::QueryFlowTableIn, prm::QueryFlowTableOut>& call) {
  const auto table = named_table(state, call.in, call.uid);
  if (!table) return refuse(table.error());
  const auto context = call.out.sub<prm::QueryFlowTableOut::flow_table_context>();
  std::memcpy(context.data(), (*table)->context.data(), FlowTableContext::size);
  return {};
}

bool is_root(State& state, std::uint32_t number) {
  const Steering& s = state.steering();
  return s.root == number || s.roce_root[0].load() == number || s.roce_root[1].load() == number;
}

Outcome destroy_table(State& state, const Call<prm::DestroyFlowTableIn, prm::DestroyFlowTableOut>& call) {
  const auto table = named_table(state, call.in, call.uid);
  if (!table) return refuse(table.error());
  const auto number = call.in.get<prm::DestroyFlowTableIn::table_id>();
  if ((*table)->uses || !(*table)->groups.empty() || is_root(state, number))
    return refuse(Syndrome::flow_table_busy);
  set_miss(state, number, **table, nullptr, 0);
  state.flow_tables.erase(number);
  return {};
}

// The driver's: where the frames begin that arrive for this process, or its RoCE packets.
Outcome set_root(State& state, const Call<prm::SetFlowTableRootIn, prm::SetFlowTableRootOut>& call) {
  using In = prm::SetFlowTableRootIn;
  const auto table = named_table(state, call.in, call.uid);
  if (!table) return refuse(table.error());
  const bool connect = call.in.get<In::op_mod>() == 0;
  if (call.in.get<In::op_mod>() > 1 || call.in.get<In::underlay_qpn>()) return refuse(Syndrome::flow_root);
  const std::uint32_t number = call.in.get<In::table_id>();
  {
    Steering& s = state.steering();
    SharedGuard guard(s.lock, state.nic.me());
    if (of_roce((*table)->type)) {
      auto& root = s.roce_root[static_cast<unsigned>(way_of((*table)->type))];
      if (connect || root.load() == number) root.store(connect ? number : 0);
      return {};
    }
    if (!connect && s.root != number) return {};
    s.root = connect ? number : 0;
  }
  state.nic.take_frames(connect);
  return {};
}

// ---- groups ----

std::uint32_t first_of(const FlowGroup& group) { return group.context.get<Group::start_flow_index>(); }
std::uint32_t last_of(const FlowGroup& group) { return group.context.get<Group::end_flow_index>(); }

Outcome check_group(State& state, const prm::ConstView<Group>& in, const FlowTable& table) {
  if (in.get<Group::group_type>() || in.get<Group::match_definer_id>() || in.get<Group::source_eswitch_owner_vhca_id_valid>())
    return refuse(Syndrome::flow_group_type);
  const std::uint32_t enabled = in.get<Group::match_criteria_enable>();
  const auto outer = in.sub<Group::match_criteria>().sub<prm::FteMatchParam::outer_headers>();
  if (enabled & ~prm::kMatchOuterHeaders || (!enabled && !is_zero({outer.data(), prm::FteMatchSetLyr24::size})))
    return refuse(Syndrome::flow_criteria);
  const std::uint32_t first = in.get<Group::start_flow_index>(), last = in.get<Group::end_flow_index>();
  if (first > last || last >= 1u << table.context.get<FlowTableContext::log_size>()) return refuse(Syndrome::flow_group_range);
  // The others are apart, so only the nearest below its end can reach into it.
  const auto behind = table.groups.upper_bound(last);
  const FlowGroup* other = behind == table.groups.begin() ? nullptr : state.flow_groups.find(std::prev(behind)->second);
  return other && first <= last_of(*other) ? refuse(Syndrome::flow_group_range) : Outcome{};
}

// The group of the table that comes before one that begins there; 0: none.
std::uint32_t group_before(const FlowTable& table, std::uint32_t first) {
  const auto at = table.groups.lower_bound(first);
  return at == table.groups.begin() ? 0 : std::prev(at)->second;
}

Outcome create_group(State& state, const Call<Group, prm::CreateFlowGroupOut>& call) {
  const auto table = named_table(state, call.in, call.uid);
  if (!table) return refuse(table.error());
  if (auto ok = check_group(state, call.in, **table); !ok) return ok;
  const auto [number, group] = state.flow_groups.create(call.uid);
  if (!group) return refuse(Syndrome::flow_group_none_left);
  std::memcpy(group->context.data(), call.in.data(), Group::size);
  {
    Steering& s = state.steering();
    SharedGuard guard(s.lock, state.nic.me());
    std::memcpy(flow_group(s, number)->mask, call.in.data() + Group::match_criteria::offset, kMatchBytes);
    link_flow_group(s, call.in.get<Group::table_id>(), group_before(**table, first_of(*group)), number);
  }
  (*table)->groups[first_of(*group)] = number;
  call.out.set<prm::CreateFlowGroupOut::group_id>(number);
  return {};
}

FlowGroup* group_in(State& state, std::uint32_t number, std::uint32_t table, std::uint16_t uid) {
  FlowGroup* group = state.flow_groups.find(number);
  return group && may_use(*group, uid) && group->context.get<Group::table_id>() == table ? group : nullptr;
}

Outcome query_group(State& state, const Call<prm::QueryFlowGroupIn, prm::QueryFlowGroupOut>& call) {
  using In = prm::QueryFlowGroupIn;
  using Out = prm::QueryFlowGroupOut;
  if (const auto table = named_table(state, call.in, call.uid); !table) return refuse(table.error());
  const FlowGroup* group = group_in(state, call.in.get<In::group_id>(), call.in.get<In::table_id>(), call.uid);
  if (!group) return refuse(Syndrome::flow_group_missing);
  call.out.set<Out::start_flow_index>(first_of(*group)).set<Out::end_flow_index>(last_of(*group));
  call.out.set<Out::match_criteria_enable>(group->context.get<Group::match_criteria_enable>());
  std::memcpy(call.out.data() + Out::match_criteria::offset, group->context.view().data() + Group::match_criteria::offset,
              prm::FteMatchParam::size);
  return {};
}

Outcome destroy_group(State& state, const Call<prm::DestroyFlowGroupIn, prm::DestroyFlowGroupOut>& call) {
  using In = prm::DestroyFlowGroupIn;
  const auto table = named_table(state, call.in, call.uid);
  if (!table) return refuse(table.error());
  const std::uint32_t number = call.in.get<In::group_id>();
  const FlowGroup* group = group_in(state, number, call.in.get<In::table_id>(), call.uid);
  if (!group) return refuse(Syndrome::flow_group_missing);
  if (group->uses) return refuse(Syndrome::flow_group_busy);
  (*table)->groups.erase(first_of(*group));
  {
    SharedGuard guard(state.steering().lock, state.nic.me());
    unlink_flow_group(state.steering(), call.in.get<In::table_id>(), group_before(**table, first_of(*group)), number);
  }
  state.flow_groups.erase(number);
  return {};
}

// ---- entries ----

using Dest = prm::DestFormatStruct;

// What a flow context asks for, once it is found to be possible.
struct Wanted {
  std::vector<std::uint64_t> destinations;
  std::uint32_t counter = 0;
};

Outcome check_destination(State& state, const prm::ConstView<Dest>& dest, const FlowTable& from, std::uint16_t uid) {
  const std::uint32_t id = dest.get<Dest::destination_id>();
  if (dest.get<Dest::destination_eswitch_owner_vhca_id_valid>() || dest.get<Dest::packet_reformat>())
    return refuse(Syndrome::flow_unsupported);
  switch (static_cast<FlowDestination>(dest.get<Dest::destination_type>())) {
    case FlowDestination::tir: {
      if (of_roce(from.type)) return refuse(Syndrome::flow_destination);
      const TirRecord* tir = state.tirs.find(id);
      return tir && may_use(*tir, uid) ? Outcome{} : refuse(Syndrome::flow_destination_missing);
    }
    case FlowDestination::flow_table: {
      const FlowTable* table = state.flow_tables.find(id);
      if (!table || !may_use(*table, uid)) return refuse(Syndrome::flow_destination_missing);
      return table->type == from.type &&
                     table->context.get<FlowTableContext::level>() > from.context.get<FlowTableContext::level>()
                 ? Outcome{}
                 : refuse(Syndrome::flow_destination);
    }
    default:
      return refuse(Syndrome::flow_destination);
  }
}

Outcome check_actions(const prm::ConstView<FlowContext>& flow, prm::FlowTableType type) {
  const std::uint32_t action = flow.get<FlowContext::action>();
  const std::uint32_t one_of = FlowAction::drop | FlowAction::fwd_dest | (of_roce(type) ? FlowAction::allow : 0);
  if (action & ~(one_of | FlowAction::count) || !std::has_single_bit(action & one_of)) return refuse(Syndrome::flow_action);
  const bool plain = prm::load_be32(flow.data() + FlowContext::push_vlan::offset) == 0 &&
                     prm::load_be32(flow.data() + FlowContext::push_vlan_2::offset) == 0 &&
                     !flow.get<FlowContext::extended_destination>() && !flow.get<FlowContext::encrypt_decrypt_type>() &&
                     !flow.get<FlowContext::packet_reformat_id>() && !flow.get<FlowContext::modify_header_id>() &&
                     !flow.get<FlowContext::encrypt_decrypt_obj_id>() && !flow.get<FlowContext::flow_source>();
  return plain ? Outcome{} : refuse(Syndrome::flow_unsupported);
}

// Destinations, then the counter, stand behind the context.
Maybe<Wanted> read_lists(State& state, const prm::ConstView<FlowContext>& flow, std::span<const std::byte> lists,
                         const FlowTable& from, std::uint16_t uid) {
  const std::uint32_t action = flow.get<FlowContext::action>();
  const std::uint32_t to = flow.get<FlowContext::destination_list_size>();
  const std::uint32_t counters = flow.get<FlowContext::flow_counter_list_size>();
  const bool forwards = action & FlowAction::fwd_dest, counts = action & FlowAction::count;
  if (forwards != (to > 0) || to > kFlowDestinations || counters != (counts ? 1u : 0u) ||
      lists.size() / Dest::size < to + counters)
    return refuse(Syndrome::flow_lists);
  Wanted wanted;
  for (std::uint32_t i = 0; i < to; ++i) {
    const prm::ConstView<Dest> dest(lists.data() + i * Dest::size);
    if (auto ok = check_destination(state, dest, from, uid); !ok) return refuse(ok.error());
    wanted.destinations.push_back(prm::load_be64(dest.data()));
  }
  if (!counts) return wanted;
  wanted.counter = prm::ConstView<prm::FlowCounterList>(lists.data() + to * Dest::size).get<prm::FlowCounterList::flow_counter_id>();
  const FlowCounter* counter = state.flow_counters.find(wanted.counter);
  if (!counter || !may_use(*counter, uid)) return refuse(Syndrome::flow_counter_missing);
  return wanted;
}

FlowDestinationShape shape_of(std::uint64_t dest) {
  return {static_cast<std::uint32_t>(dest >> 56), static_cast<std::uint32_t>(dest >> 32 & 0xffffff)};
}
void count_uses(State& state, const FlowEntryRecord& entry, int step) {
  const auto add = [&](Owned* object) {
    if (object) object->uses += static_cast<std::uint32_t>(step);
  };
  for (const std::uint64_t dest : entry.destinations) {
    const auto to = shape_of(dest);
    if (to.type == static_cast<std::uint32_t>(FlowDestination::tir))
      add(state.tirs.find(to.id));
    else
      add(state.flow_tables.find(to.id));
  }
  add(state.flow_counters.find(entry.counter));
}

// The entry as packets meet it.
FlowEntry compile(std::uint32_t index, const FlowEntryRecord& record, const FlowGroup& group) {
  FlowEntry entry{};
  const auto flow = record.context.view();
  entry.group = flow.get<FlowContext::group_id>();
  entry.index = index;
  entry.action = flow.get<FlowContext::action>();
  entry.tag = flow.get<FlowContext::flow_tag>();
  entry.counter = record.counter;
  entry.destinations = static_cast<std::uint32_t>(record.destinations.size());
  for (std::size_t i = 0; i < record.destinations.size(); ++i) entry.destination[i] = shape_of(record.destinations[i]);
  const std::byte* mask = group.context.view().data() + Group::match_criteria::offset;
  const std::byte* value = flow.data() + FlowContext::match_value::offset;
  for (unsigned i = 0; i < kMatchBytes; ++i) entry.value[i] = value[i] & mask[i];
  return entry;
}

void enter(State& state, std::uint32_t number, const FlowEntry& entry) {
  Steering& s = state.steering();
  SharedGuard guard(s.lock, state.nic.me());
  *flow_entry(s, number) = entry;
  insert_flow_entry(s, number);
}
// What frames compare stays as it is.
void change(State& state, std::uint32_t number, const FlowEntry& entry) {
  Steering& s = state.steering();
  SharedGuard guard(s.lock, state.nic.me());
  FlowEntry& there = *flow_entry(s, number);
  const std::uint32_t next = there.next;
  there = entry;
  there.next = next;
}
void remove(State& state, std::uint32_t number) {
  {
    SharedGuard guard(state.steering().lock, state.nic.me());
    remove_flow_entry(state.steering(), number);
  }
  state.flow_entry_numbers.give_back(number);
}

// The context that an entry will have: the new one, or the old one with what the mask names.
prm::Box<FlowContext> merged(const prm::ConstView<FlowContext>& from, const FlowEntryRecord* old, std::uint32_t mask) {
  prm::Box<FlowContext> flow;
  if (!old) {
    std::memcpy(flow.data(), from.data(), FlowContext::size);
    return flow;
  }
  flow = old->context;
  if (mask & prm::FteModify::action) flow.set<FlowContext::action>(from.get<FlowContext::action>());
  if (mask & prm::FteModify::flow_tag) flow.set<FlowContext::flow_tag>(from.get<FlowContext::flow_tag>());
  if (mask & prm::FteModify::destination_list)
    flow.set<FlowContext::destination_list_size>(from.get<FlowContext::destination_list_size>());
  if (mask & prm::FteModify::flow_counters)
    flow.set<FlowContext::flow_counter_list_size>(from.get<FlowContext::flow_counter_list_size>());
  return flow;
}

// The lists that go with it: of the request, or those that the entry has.
std::vector<std::byte> merged_lists(const prm::ConstView<FlowContext>& from, std::span<const std::byte> tail,
                                    const FlowEntryRecord& old, std::uint32_t mask) {
  std::vector<std::byte> lists;
  const std::size_t given = std::min<std::size_t>(from.get<FlowContext::destination_list_size>() * Dest::size, tail.size());
  const auto append = [&](std::uint64_t qword) {
    lists.resize(lists.size() + 8);
    prm::store_be64(lists.data() + lists.size() - 8, qword);
  };
  if (mask & prm::FteModify::destination_list)
    lists.assign(tail.begin(), tail.begin() + static_cast<std::ptrdiff_t>(given));
  else
    for (const std::uint64_t dest : old.destinations) append(dest);
  if (mask & prm::FteModify::flow_counters)
    lists.insert(lists.end(), tail.begin() + static_cast<std::ptrdiff_t>(given), tail.end());
  else if (old.counter)
    append(std::uint64_t{old.counter} << 32);
  return lists;
}

Outcome set_entry(State& state, const Call<prm::SetFteIn, prm::SetFteOut>& call) {
  using In = prm::SetFteIn;
  const auto table = named_table(state, call.in, call.uid);
  if (!table) return refuse(table.error());
  const std::uint32_t op = call.in.get<In::op_mod>(), index = call.in.get<In::flow_index>(), number = call.in.get<In::table_id>();
  const std::uint32_t mask = call.in.get<In::modify_enable_mask>();
  if (op > 1) return refuse(Syndrome::flow_op_mod);
  auto& entries = (*table)->entries;
  const auto old = entries.find(index);
  if (op == 0 && old != entries.end()) return refuse(Syndrome::flow_entry_exists);
  if (op == 1 && old == entries.end()) return refuse(Syndrome::flow_entry_missing);
  if (op == 1 && mask & ~prm::FteModify::all) return refuse(Syndrome::flow_modify_mask);
  const auto from = call.in.sub<In::flow_context>();
  FlowEntryRecord record;
  record.context = merged(from, op ? &old->second : nullptr, mask);
  const auto flow = std::as_const(record.context).view();
  FlowGroup* group = group_in(state, flow.get<FlowContext::group_id>(), number, call.uid);
  if (!group) return refuse(Syndrome::flow_group_missing);
  if (index < first_of(*group) || index > last_of(*group)) return refuse(Syndrome::flow_index);
  if (auto ok = check_actions(flow, (*table)->type); !ok) return ok;
  const auto lists = op ? merged_lists(from, call.tail(), old->second, mask) : std::vector<std::byte>(call.tail().begin(), call.tail().end());
  auto wanted = read_lists(state, flow, lists, **table, call.uid);
  if (!wanted) return refuse(wanted.error());
  if (op == 0 && !state.flow_entry_numbers.any()) return refuse(Syndrome::flow_entry_none_left);
  record.destinations = std::move(wanted->destinations);
  record.counter = wanted->counter;
  count_uses(state, record, 1);
  if (op) {
    count_uses(state, old->second, -1);
    record.number = old->second.number;
    change(state, record.number, compile(index, record, *group));
    old->second = std::move(record);
    return {};
  }
  ++group->uses;
  record.number = *state.flow_entry_numbers.take();
  enter(state, record.number, compile(index, record, *group));
  entries.emplace(index, std::move(record));
  return {};
}

Outcome query_entry(State& state, const Call<prm::QueryFteIn, prm::QueryFteOut>& call) {
  const auto table = named_table(state, call.in, call.uid);
  if (!table) return refuse(table.error());
  const auto entry = (*table)->entries.find(call.in.get<prm::QueryFteIn::flow_index>());
  if (entry == (*table)->entries.end()) return refuse(Syndrome::flow_entry_missing);
  const FlowEntryRecord& record = entry->second;
  std::memcpy(call.out.data() + prm::QueryFteOut::flow_context::offset, record.context.view().data(), FlowContext::size);
  auto room = call.output.subspan(prm::QueryFteOut::size);
  const auto append = [&](std::uint64_t qword) {
    if (room.size() < 8) return;
    prm::store_be64(room.data(), qword);
    room = room.subspan(8);
  };
  for (const std::uint64_t dest : record.destinations) append(dest);
  if (record.counter) append(std::uint64_t{record.counter} << 32);
  return {};
}

Outcome delete_entry(State& state, const Call<prm::DeleteFteIn, prm::DeleteFteOut>& call) {
  using In = prm::DeleteFteIn;
  const auto table = named_table(state, call.in, call.uid);
  if (!table) return refuse(table.error());
  const auto entry = (*table)->entries.find(call.in.get<In::flow_index>());
  if (entry == (*table)->entries.end()) return refuse(Syndrome::flow_entry_missing);
  remove(state, entry->second.number);
  count_uses(state, entry->second, -1);
  if (FlowGroup* group = state.flow_groups.find(entry->second.context.get<FlowContext::group_id>())) --group->uses;
  (*table)->entries.erase(entry);
  return {};
}

// ---- counters ----

// Counters of a bulk: by its logarithm, or one bit of the older field, where the lowest stands for 128; else one.
std::optional<std::uint32_t> bulk_size(std::uint32_t bits, std::uint32_t log_size) {
  if (log_size) return bits || log_size > kLogCounterBulk ? std::nullopt : std::optional(1u << log_size);
  if (!bits) return 1;
  if (!std::has_single_bit(bits) || !(bits & kCounterBulks)) return std::nullopt;
  return bits * prm::kFlowCounterBulkUnit;
}

Outcome alloc_counter(State& state, const Call<prm::AllocFlowCounterIn, prm::AllocFlowCounterOut>& call) {
  using In = prm::AllocFlowCounterIn;
  const auto size = bulk_size(call.in.get<In::flow_counter_bulk>(), call.in.get<In::flow_counter_bulk_log_size>());
  if (!size) return refuse(Syndrome::flow_counter_bulk);
  const auto [number, counter] =
      *size == 1 ? state.flow_counters.create(call.uid) : state.flow_counters.create_row(call.uid, *size);
  if (!counter) return refuse(Syndrome::flow_counter_none_left);
  for (std::uint32_t i = number; i < number + *size; ++i) {
    FlowCounter& one = *state.flow_counters.find(i);
    one.bulk = number;
    one.size = *size;
    state.steering().counts[i].packets.store(0);
    state.steering().counts[i].octets.store(0);
  }
  call.out.set<prm::AllocFlowCounterOut::flow_counter_id>(number);
  return {};
}

Outcome dealloc_counter(State& state, const Call<prm::DeallocFlowCounterIn, prm::DeallocFlowCounterOut>& call) {
  const auto number = call.in.get<prm::DeallocFlowCounterIn::flow_counter_id>();
  const auto counter = own(state.flow_counters.find(number), call.uid, Syndrome::flow_counter_missing);
  if (!counter) return refuse(counter.error());
  if ((*counter)->bulk != number) return refuse(Syndrome::flow_counter_missing);
  const std::uint32_t end = number + (*counter)->size;
  for (std::uint32_t i = number; i < end; ++i)
    if (state.flow_counters.find(i)->uses) return refuse(Syndrome::flow_counter_busy);
  for (std::uint32_t i = number; i < end; ++i) state.flow_counters.erase(i);
  return {};
}

Outcome query_counter(State& state, const Call<prm::QueryFlowCounterIn, prm::QueryFlowCounterOut>& call) {
  using In = prm::QueryFlowCounterIn;
  const auto number = call.in.get<In::flow_counter_id>();
  const auto counter = own(state.flow_counters.find(number), call.uid, Syndrome::flow_counter_missing);
  if (!counter) return refuse(counter.error());
  const std::uint32_t wanted = std::max(call.in.get<In::num_of_counters>(), std::uint32_t{1});
  if (wanted > (*counter)->size - (number - (*counter)->bulk)) return refuse(Syndrome::flow_counter_bulk);
  if (call.output.size() < prm::QueryFlowCounterOut::size + std::size_t{wanted} * prm::TrafficCounter::size)
    return refuse(Syndrome::output_length);
  const bool clear = call.in.get<In::clear>();
  std::byte* at = call.output.data() + prm::QueryFlowCounterOut::size;
  for (std::uint32_t i = number; i < number + wanted; ++i, at += prm::TrafficCounter::size) {
    FlowCount& count = state.steering().counts[i];
    const prm::View<prm::TrafficCounter> shown(at);
    shown.set<prm::TrafficCounter::packets>(clear ? count.packets.exchange(0) : count.packets.load());
    shown.set<prm::TrafficCounter::octets>(clear ? count.octets.exchange(0) : count.octets.load());
  }
  return {};
}

}  // namespace

void add_flow_commands(Registry& r) {
  using prm::Opcode;
  r.add<set_root>(Opcode::set_flow_table_root, "SET_FLOW_TABLE_ROOT", 0, Access::privileged);
  r.add<create_table>(Opcode::create_flow_table, "CREATE_FLOW_TABLE");
  r.add<modify_table>(Opcode::modify_flow_table, "MODIFY_FLOW_TABLE");
  r.add<query_table>(Opcode::query_flow_table, "QUERY_FLOW_TABLE");
  r.add<destroy_table>(Opcode::destroy_flow_table, "DESTROY_FLOW_TABLE");
  r.add<create_group>(Opcode::create_flow_group, "CREATE_FLOW_GROUP");
  r.add<query_group>(Opcode::query_flow_group, "QUERY_FLOW_GROUP");
  r.add<destroy_group>(Opcode::destroy_flow_group, "DESTROY_FLOW_GROUP");
  r.add<set_entry>(Opcode::set_flow_table_entry, "SET_FLOW_TABLE_ENTRY", prm::DestFormatStruct::size);
  r.add<query_entry>(Opcode::query_flow_table_entry, "QUERY_FLOW_TABLE_ENTRY");
  r.add<delete_entry>(Opcode::delete_flow_table_entry, "DELETE_FLOW_TABLE_ENTRY");
  r.add<alloc_counter>(Opcode::alloc_flow_counter, "ALLOC_FLOW_COUNTER");
  r.add<dealloc_counter>(Opcode::dealloc_flow_counter, "DEALLOC_FLOW_COUNTER");
  r.add<query_counter>(Opcode::query_flow_counter, "QUERY_FLOW_COUNTER");
}

}  // namespace verbena::device::command
