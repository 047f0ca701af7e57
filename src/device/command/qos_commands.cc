// SET_PP_RATE_LIMIT; CREATE, QUERY, MODIFY, DESTROY_SCHEDULING_ELEMENT, and the same as a general object.
//
// Both ways of making an element lead to the same numbers.
#include <cstring>
#include <new>

#include "device/command/dispatcher.h"
#include "device/command/families.h"
#include "device/command/qos.h"
#include "device/command/rules.h"

namespace verbena::device::command {
namespace {

using prm::SchedulingContext;
using prm::SchedulingElementType;
using prm::SchedulingSelect;
using ContextView = prm::ConstView<SchedulingContext>;

constexpr std::uint64_t kPsPerByteAtOneKbps = kPsPerByteAtOneMbps * 1000;

// ---- packet pacing ----

Outcome set_pp_rate_limit(State& state, const Call<prm::SetPpRateLimitIn, prm::SetPpRateLimitOut>& call) {
  using In = prm::SetPpRateLimitIn;
  using Context = prm::SetPpRateLimitContext;
  const std::uint32_t index = call.in.get<In::rate_limit_index>(), rates = state.profile.limits.packet_pacing_rates;
  if (!rates) return refuse(Syndrome::not_supported);
  if (index == 0 || index > rates) return refuse(Syndrome::pp_index);
  const auto context = call.in.sub<In::ctx>();
  const std::uint32_t kbps = context.get<Context::rate_limit>();
  if (kbps != 0 && (kbps < kMinRateKbps || kbps > kMaxRateKbps)) return refuse(Syndrome::pp_rate);
  // A rate of 0 empties the entry.
  state.rates[index] = {kbps != 0, call.uid};
  Rate rate;
  if (kbps != 0) rate = {kPsPerByteAtOneKbps / kbps, context.get<Context::burst_upper_bound>()};
  state.engine.shaping().set_rate(static_cast<std::uint16_t>(index), rate);
  return {};
}

// ---- scheduling elements ----

SchedulingElementType type_of(const ContextView& context) {
  return static_cast<SchedulingElementType>(context.get<SchedulingContext::element_type>());
}

Outcome check_element(State& state, std::uint32_t hierarchy, const ContextView& context, std::uint32_t select,
                      std::uint16_t uid) {
  using C = SchedulingContext;
  if (hierarchy != static_cast<std::uint32_t>(prm::SchedulingHierarchy::nic)) return refuse(Syndrome::sched_hierarchy);
  const auto type = type_of(context);
  if (type != SchedulingElementType::tsar && type != SchedulingElementType::queue_group)
    return refuse(Syndrome::sched_type);
  const std::uint32_t arbiter = context.get<C::element_attributes>() >> prm::kTsarTypeShift & prm::kTsarTypeMask;
  if (arbiter != static_cast<std::uint32_t>(prm::TsarType::dwrr)) return refuse(Syndrome::sched_tsar_type);
  if (select & SchedulingSelect::bw_share && context.get<C::bw_share>() > kMaxShare)
    return refuse(Syndrome::sched_share);
  const std::uint32_t parent = context.get<C::parent_element_id>();
  if (parent == 0) {
    const bool shaped = (select & SchedulingSelect::bw_share && context.get<C::bw_share>()) ||
                        (select & SchedulingSelect::max_average_bw && context.get<C::max_average_bw>());
    return type == SchedulingElementType::tsar && !shaped ? Outcome{} : refuse(Syndrome::sched_root);
  }
  const SchedulingElement* above = state.scheduling_elements.find(parent);
  if (!above || !may_use(*above, uid) || type_of(above->context.view()) != SchedulingElementType::tsar)
    return refuse(Syndrome::sched_parent);
  return above->depth + 1 < kShaperDepth ? Outcome{} : refuse(Syndrome::sched_depth);
}

// Brings the transport in step with the element's context.
void apply(State& state, std::uint32_t id, const SchedulingElement& element) {
  using C = SchedulingContext;
  const std::uint32_t mbps = element.context.get<C::max_average_bw>();
  state.engine.shaping().set_element(id, element.context.get<C::parent_element_id>(),
                                     element.context.get<C::bw_share>(),
                                     mbps != 0 ? std::max<std::uint64_t>(1, kPsPerByteAtOneMbps / mbps) : 0);
}

void copy_selected(const ContextView& from, const prm::View<SchedulingContext>& to, std::uint32_t select) {
  using C = SchedulingContext;
  if (select & SchedulingSelect::bw_share) to.set<C::bw_share>(from.get<C::bw_share>());
  if (select & SchedulingSelect::max_average_bw) to.set<C::max_average_bw>(from.get<C::max_average_bw>());
}

Maybe<std::uint32_t> create(State& state, std::uint32_t hierarchy, const ContextView& context, std::uint32_t select,
                            std::uint16_t uid) {
  using C = SchedulingContext;
  if (auto ok = check_element(state, hierarchy, context, select, uid); !ok) return refuse(ok.error());
  const auto [id, element] = state.scheduling_elements.create(uid);
  if (!element) return refuse(Syndrome::sched_none_left);
  const auto stored = element->context.view();
  stored.set<C::element_type>(context.get<C::element_type>());
  stored.set<C::parent_element_id>(context.get<C::parent_element_id>());
  copy_selected(context, stored, select);
  try {
    apply(state, id, *element);
  } catch (const std::bad_alloc&) {
    state.scheduling_elements.erase(id);
    throw;
  }
  if (SchedulingElement* above = state.scheduling_elements.find(context.get<C::parent_element_id>())) {
    ++above->uses;
    element->depth = above->depth + 1;
  }
  return id;
}

Maybe<SchedulingElement*> named(State& state, std::uint32_t hierarchy, std::uint32_t id, std::uint16_t uid) {
  if (hierarchy != static_cast<std::uint32_t>(prm::SchedulingHierarchy::nic)) return refuse(Syndrome::sched_hierarchy);
  return own(state.scheduling_elements.find(id), uid, Syndrome::sched_missing);
}

Outcome modify(State& state, std::uint32_t id, SchedulingElement& element, const ContextView& context,
               std::uint64_t select) {
  using C = SchedulingContext;
  if (select & ~std::uint64_t{SchedulingSelect::bw_share | SchedulingSelect::max_average_bw})
    return refuse(Syndrome::sched_select);
  if (select && element.context.get<C::parent_element_id>() == 0) return refuse(Syndrome::sched_root);
  if (select & SchedulingSelect::bw_share && context.get<C::bw_share>() > kMaxShare)
    return refuse(Syndrome::sched_share);
  copy_selected(context, element.context.view(), static_cast<std::uint32_t>(select));
  apply(state, id, element);
  return {};
}

Outcome destroy(State& state, std::uint32_t id, const SchedulingElement& element) {
  if (element.uses) return refuse(Syndrome::sched_busy);
  const std::uint32_t parent = element.context.get<SchedulingContext::parent_element_id>();
  if (SchedulingElement* above = state.scheduling_elements.find(parent)) --above->uses;
  state.engine.shaping().remove_element(id);
  state.scheduling_elements.erase(id);
  return {};
}

Outcome create_scheduling_element(State& state,
                                  const Call<prm::CreateSchedulingElementIn, prm::CreateSchedulingElementOut>& call) {
  using In = prm::CreateSchedulingElementIn;
  constexpr std::uint32_t all = SchedulingSelect::bw_share | SchedulingSelect::max_average_bw;
  const auto id =
      create(state, call.in.get<In::scheduling_hierarchy>(), call.in.sub<In::scheduling_context>(), all, call.uid);
  if (!id) return refuse(id.error());
  call.out.set<prm::CreateSchedulingElementOut::scheduling_element_id>(*id);
  return {};
}

Outcome query_scheduling_element(State& state,
                                 const Call<prm::QuerySchedulingElementIn, prm::QuerySchedulingElementOut>& call) {
  using In = prm::QuerySchedulingElementIn;
  const auto element =
      named(state, call.in.get<In::scheduling_hierarchy>(), call.in.get<In::scheduling_element_id>(), call.uid);
  if (!element) return refuse(element.error());
  std::memcpy(call.out.sub<prm::QuerySchedulingElementOut::scheduling_context>().data(), (*element)->context.data(),
              SchedulingContext::size);
  return {};
}

Outcome modify_scheduling_element(State& state,
                                  const Call<prm::ModifySchedulingElementIn, prm::ModifySchedulingElementOut>& call) {
  using In = prm::ModifySchedulingElementIn;
  const std::uint32_t id = call.in.get<In::scheduling_element_id>();
  const auto element = named(state, call.in.get<In::scheduling_hierarchy>(), id, call.uid);
  if (!element) return refuse(element.error());
  return modify(state, id, **element, call.in.sub<In::scheduling_context>(), call.in.get<In::modify_bitmask>());
}

Outcome destroy_scheduling_element(
    State& state, const Call<prm::DestroySchedulingElementIn, prm::DestroySchedulingElementOut>& call) {
  using In = prm::DestroySchedulingElementIn;
  const std::uint32_t id = call.in.get<In::scheduling_element_id>();
  const auto element = named(state, call.in.get<In::scheduling_hierarchy>(), id, call.uid);
  return element ? destroy(state, id, **element) : refuse(element.error());
}

// ---- as a general object ----

using Body = prm::SchedElem;

// The object behind the head of the request.
Maybe<prm::ConstView<Body>> body_of(const ObjectCall& call) {
  if (call.tail().size() != Body::size) return refuse(Syndrome::input_length);
  if (first_violation<Body>(call.tail())) return refuse(Syndrome::object_body);
  return prm::ConstView<Body>(call.tail().data());
}

Maybe<SchedulingElement*> named_object(State& state, const ObjectCall& call) {
  const auto id = call.in.get<prm::GeneralObjInCmdHdr::obj_id>();
  return own(state.scheduling_elements.find(id), call.uid, Syndrome::sched_missing);
}

}  // namespace

Outcome create_element_object(State& state, const ObjectCall& call) {
  const auto body = body_of(call);
  if (!body) return refuse(body.error());
  const std::uint64_t select = body->get<Body::modify_field_select>();
  if (select & ~std::uint64_t{SchedulingSelect::bw_share | SchedulingSelect::max_average_bw})
    return refuse(Syndrome::sched_select);
  const auto id = create(state, body->get<Body::scheduling_hierarchy>(), body->sub<Body::sched_context>(),
                         static_cast<std::uint32_t>(select), call.uid);
  if (!id) return refuse(id.error());
  call.out.set<prm::GeneralObjOutCmdHdr::obj_id>(*id);
  return {};
}

Outcome query_element_object(State& state, const ObjectCall& call) {
  const auto element = named_object(state, call);
  if (!element) return refuse(element.error());
  if (call.output.size() < ObjectCall::Out::size + Body::size) return refuse(Syndrome::output_length);
  const prm::View<Body> body(call.output.data() + ObjectCall::Out::size);
  body.set<Body::scheduling_hierarchy>(static_cast<std::uint32_t>(prm::SchedulingHierarchy::nic));
  std::memcpy(body.sub<Body::sched_context>().data(), (*element)->context.data(), SchedulingContext::size);
  return {};
}

Outcome modify_element_object(State& state, const ObjectCall& call) {
  const auto element = named_object(state, call);
  if (!element) return refuse(element.error());
  const auto body = body_of(call);
  if (!body) return refuse(body.error());
  return modify(state, call.in.get<prm::GeneralObjInCmdHdr::obj_id>(), **element, body->sub<Body::sched_context>(),
                body->get<Body::modify_field_select>());
}

Outcome destroy_element_object(State& state, const ObjectCall& call) {
  const auto element = named_object(state, call);
  if (!element) return refuse(element.error());
  return destroy(state, call.in.get<prm::GeneralObjInCmdHdr::obj_id>(), **element);
}

// ---- who uses them ----

bool may_use_rate(const State& state, std::uint32_t index, std::uint16_t uid) {
  if (index == 0) return true;
  if (index >= kRates || !state.rates[index].set) return false;
  const std::uint16_t owner = state.rates[index].uid;
  return uid == 0 || owner == uid || owner == prm::kSharedResourceUid;
}

SchedulingElement* usable_leaf(State& state, std::uint32_t id, std::uint16_t uid) {
  SchedulingElement* element = state.scheduling_elements.find(id);
  const bool usable =
      element && may_use(*element, uid) && type_of(element->context.view()) == SchedulingElementType::queue_group;
  return usable ? element : nullptr;
}

Outcome take_leaves(State& state, QpRecord& record, const QpContext& qp, const std::byte* extension,
                    std::uint16_t uid) {
  if (!extension) return refuse(Syndrome::qp_extension);
  const prm::ConstView<prm::QpcExt> ext(extension);
  const std::uint32_t requester = ext.get<prm::QpcExt::qos_queue_group_id_requester>();
  const std::uint32_t responder = ext.get<prm::QpcExt::qos_queue_group_id_responder>();
  if (responder && !is_reliable(qp.type)) return refuse(Syndrome::qp_responder_leaf);
  SchedulingElement* const sends = usable_leaf(state, requester, uid);
  SchedulingElement* const answers = usable_leaf(state, responder, uid);
  if ((requester && !sends) || (responder && !answers)) return refuse(Syndrome::qp_leaf);
  leave_leaves(state, record);
  if (sends) ++sends->uses;
  if (answers) ++answers->uses;
  record.leaf = requester;
  record.responder_leaf = responder;
  return {};
}

void leave_leaves(State& state, QpRecord& record) {
  for (std::uint32_t* id : {&record.leaf, &record.responder_leaf}) {
    if (SchedulingElement* element = state.scheduling_elements.find(*id)) --element->uses;
    *id = 0;
  }
}

void apply_leaves(const QpRecord& record, QpContext& qp) {
  qp.leaf = record.leaf;
  qp.shaped = static_cast<std::uint8_t>(record.leaf ? qp.shaped | kShapedLeaf : qp.shaped & ~kShapedLeaf);
  qp.responder_leaf.store(static_cast<std::uint16_t>(record.responder_leaf), std::memory_order_relaxed);
}

void add_qos_commands(Registry& r) {
  using prm::Opcode;
  // The driver's, in the name of whoever it allocates the entry for.
  r.add<set_pp_rate_limit>(Opcode::set_pp_rate_limit, "SET_PP_RATE_LIMIT");
  r.add<create_scheduling_element>(Opcode::create_scheduling_element, "CREATE_SCHEDULING_ELEMENT");
  r.add<query_scheduling_element>(Opcode::query_scheduling_element, "QUERY_SCHEDULING_ELEMENT");
  r.add<modify_scheduling_element>(Opcode::modify_scheduling_element, "MODIFY_SCHEDULING_ELEMENT");
  r.add<destroy_scheduling_element>(Opcode::destroy_scheduling_element, "DESTROY_SCHEDULING_ELEMENT");
  r.allow_short_reply(Opcode::destroy_scheduling_element);  // as the kernel's driver asks: for the head alone
}

}  // namespace verbena::device::command
