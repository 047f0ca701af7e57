// CREATE, MODIFY, QUERY, DESTROY of TIS and SQ: send queues of Ethernet frames.
//
// An SQ is a send queue without a queue pair around it; its live context is a QpContext of type `raw`.
#include <cstring>

#include "device/command/dispatcher.h"
#include "device/command/families.h"
#include "device/command/frame_queues.h"
#include "device/command/qos.h"
#include "device/command/queues.h"
#include "device/command/state.h"
#include "prm/raw.h"
#include "prm/wqe.h"

namespace verbena::device::command {
namespace {

using prm::Sqc;
using prm::SqState;
using prm::Tisc;
using prm::Wq;

// ---- TIS ----

Outcome create_tis(State& state, const Call<prm::CreateTisIn, prm::CreateTisOut>& call) {
  const auto tisc = call.in.sub<prm::CreateTisIn::ctx>();
  if (tisc.get<Tisc::tls_en>()) return refuse(Syndrome::tis_tls);
  TransportDomain* domain = state.transport_domains.find(tisc.get<Tisc::transport_domain>());
  if (!domain || !may_use(*domain, call.uid)) return refuse(Syndrome::tis_domain);
  if (!state.profile.has_lag_port(tisc.get<Tisc::lag_tx_port_affinity>())) return refuse(Syndrome::tis_lag_port);
  const auto [number, tis] = state.tiss.create(call.uid);
  if (!tis) return refuse(Syndrome::tis_none_left);
  std::memcpy(tis->context.data(), tisc.data(), Tisc::size);
  ++domain->uses;
  call.out.set<prm::CreateTisOut::tisn>(number);
  return {};
}

Outcome modify_tis(State& state, const Call<prm::ModifyTisIn, prm::ModifyTisOut>& call) {
  using In = prm::ModifyTisIn;
  const auto tis = own(state.tiss.find(call.in.get<In::tisn>()), call.uid, Syndrome::tis_missing);
  if (!tis) return refuse(tis.error());
  const auto bits = call.in.sub<In::bitmask>();
  const auto from = call.in.sub<In::ctx>();
  const auto to = (*tis)->context.view();
  if (bits.get<prm::ModifyTisBitmask::lag_tx_port_affinity>() &&
      !state.profile.has_lag_port(from.get<Tisc::lag_tx_port_affinity>()))
    return refuse(Syndrome::tis_lag_port);
  if (bits.get<prm::ModifyTisBitmask::prio>()) to.set<Tisc::prio>(from.get<Tisc::prio>());
  if (!bits.get<prm::ModifyTisBitmask::lag_tx_port_affinity>()) return {};
  to.set<Tisc::lag_tx_port_affinity>(from.get<Tisc::lag_tx_port_affinity>());
  // The queues on it leave by that port from their next frame on.
  state.sqs.for_each([&](std::uint32_t sqn, const SqRecord& record) {
    if (record.context.view().get<Sqc::tis_num_0>() != call.in.get<In::tisn>()) return;
    QpContext* const sq = state.nic.own_qp(sqn);
    SharedGuard guard(sq->sq_lock, state.nic.me());
    sq->path.lag_tx_port_affinity = static_cast<std::uint8_t>(from.get<Tisc::lag_tx_port_affinity>());
  });
  return {};
}

Outcome query_tis(State& state, const Call<prm::QueryTisIn, prm::QueryTisOut>& call) {
  const auto tis = own(state.tiss.find(call.in.get<prm::QueryTisIn::tisn>()), call.uid, Syndrome::tis_missing);
  if (!tis) return refuse(tis.error());
  std::memcpy(call.out.sub<prm::QueryTisOut::tis_context>().data(), (*tis)->context.data(), Tisc::size);
  return {};
}

Outcome destroy_tis(State& state, const Call<prm::DestroyTisIn, prm::DestroyTisOut>& call) {
  const auto number = call.in.get<prm::DestroyTisIn::tisn>();
  const auto tis = own(state.tiss.find(number), call.uid, Syndrome::tis_missing);
  if (!tis) return refuse(tis.error());
  if ((*tis)->uses) return refuse(Syndrome::tis_busy);
  if (TransportDomain* domain = state.transport_domains.find((*tis)->context.get<Tisc::transport_domain>()))
    --domain->uses;
  state.tiss.erase(number);
  return {};
}

// ---- SQ ----

struct Parts {
  Pd* pd;
  Uar* uar;
  CqRecord* cq;
  Tis* tis;
};

Parts parts_of(State& state, const prm::ConstView<Sqc>& sqc) {
  const auto wq = sqc.sub<Sqc::wq>();
  return {state.pds.find(wq.get<Wq::pd>()), state.uars.find(wq.get<Wq::uar_page>()),
          state.cqs.find(sqc.get<Sqc::cqn>()), state.tiss.find(sqc.get<Sqc::tis_num_0>())};
}

void count_uses(const Parts& parts, int step) {
  for (Owned* object : std::initializer_list<Owned*>{parts.pd, parts.uar, parts.cq, parts.tis})
    if (object) object->uses += static_cast<std::uint32_t>(step);
}

Outcome check_parts(const Parts& parts, std::uint16_t uid) {
  if (!parts.pd || !may_use(*parts.pd, uid)) return refuse(Syndrome::sq_pd);
  if (!parts.uar || !may_use_shared(*parts.uar, uid)) return refuse(Syndrome::sq_uar);
  if (!parts.cq || !may_use(*parts.cq, uid)) return refuse(Syndrome::sq_cq);
  return parts.tis && may_use(*parts.tis, uid) ? Outcome{} : refuse(Syndrome::sq_tis);
}

Outcome check_rates(State& state, const prm::ConstView<Sqc>& sqc, std::uint16_t uid, bool rate, bool leaf) {
  if (rate && !may_use_rate(state, sqc.get<Sqc::packet_pacing_rate_limit_index>(), uid))
    return refuse(Syndrome::sq_rate);
  const std::uint32_t group = sqc.get<Sqc::qos_queue_group_id>();
  return leaf && group && !usable_leaf(state, group, uid) ? refuse(Syndrome::sq_leaf) : Outcome{};
}

Outcome check_context(const State& state, const prm::ConstView<Sqc>& sqc) {
  const auto wq = sqc.sub<Sqc::wq>();
  if (sqc.get<Sqc::state>() != SqState::rst) return refuse(Syndrome::sq_initial_state);
  if (sqc.get<Sqc::hairpin>() || sqc.get<Sqc::rlky>() || sqc.get<Sqc::cd_master>() || wq.get<Wq::wq_signature>())
    return refuse(Syndrome::sq_offload);
  if (sqc.get<Sqc::ts_format>() > prm::TimestampFormat::standard) return refuse(Syndrome::sq_ts_format);
  if (wq.get<Wq::wq_type>() != prm::WqType::cyclic || wq.get<Wq::log_wq_stride>() != prm::kLogSendWqeBasicBlock)
    return refuse(Syndrome::sq_wq_type);
  if (wq.get<Wq::log_wq_sz>() > state.profile.limits.log_max_qp_sz) return refuse(Syndrome::sq_size);
  return {};
}

// Brings the live context in step with the rates that the record names, and counts users of queue groups.
void move_to_leaf(State& state, SqRecord& record, std::uint32_t id) {
  if (SchedulingElement* old = state.scheduling_elements.find(record.leaf)) --old->uses;
  record.leaf = id;
  if (SchedulingElement* element = state.scheduling_elements.find(id)) ++element->uses;
}
void apply_rates(const SqRecord& record, QpContext& sq) {
  sq.rate_index = static_cast<std::uint16_t>(record.context.get<Sqc::packet_pacing_rate_limit_index>());
  sq.leaf = record.leaf;
  sq.shaped = static_cast<std::uint8_t>((sq.rate_index ? kShapedRate : 0) | (sq.leaf ? kShapedLeaf : 0));
}

Outcome create_sq(State& state, const Call<prm::CreateSqIn, prm::CreateSqOut>& call) {
  const auto sqc = call.in.sub<prm::CreateSqIn::ctx>();
  const auto wq = sqc.sub<Sqc::wq>();
  if (auto ok = check_context(state, sqc); !ok) return ok;
  const Parts parts = parts_of(state, sqc);
  if (auto ok = check_parts(parts, call.uid); !ok) return ok;
  if (auto ok = check_rates(state, sqc, call.uid, true, true); !ok) return ok;
  if (state.sqs.size() >= 1ull << state.profile.limits.log_max_qp) return refuse(Syndrome::sq_none_left);
  const auto backing = locate_work_queue(state, wq, prm::kLogSendWqeBasicBlock, call.tail(), call.uid);
  if (!backing) return refuse(backing.error());
  QpContext* sq = state.nic.alloc_qp();
  if (!sq) return refuse(Syndrome::sq_none_left);
  sq->pdn = wq.get<Wq::pd>();
  sq->type = QpType::raw;
  sq->rq_type = kRqTypeNone;
  sq->uid = call.uid;
  sq->send_cq = sq->recv_cq = sqc.get<Sqc::cqn>();
  sq->srq = ~0u;
  sq->quiet_flush = !sqc.get<Sqc::flush_in_error_en>();
  sq->user_index = sqc.get<Sqc::user_index>();
  sq->port = sq->path.port = 1;
  sq->path.lag_tx_port_affinity = static_cast<std::uint8_t>(parts.tis->context.get<Tisc::lag_tx_port_affinity>());
  sq->transport_domain = parts.tis->context.get<Tisc::transport_domain>();
  sq->sq = {backing->va, wq.get<Wq::log_wq_sz>(), prm::kLogSendWqeBasicBlock};
  sq->dbrec_va = backing->dbr;
  SqRecord& record = state.sqs.create(sq->qpn, call.uid);
  std::memcpy(record.context.data(), sqc.data(), Sqc::size);
  record.backing = *backing;
  count_uses(parts, 1);
  hold(state, *backing);
  move_to_leaf(state, record, sqc.get<Sqc::qos_queue_group_id>());
  apply_rates(record, *sq);
  call.out.set<prm::CreateSqOut::sqn>(sq->qpn);
  state.engine.reset(*sq);
  state.nic.publish(*sq);
  return {};
}

Maybe<Live<SqRecord, QpContext>> named(State& state, std::uint32_t sqn, std::uint16_t uid) {
  return live(state.sqs.find(sqn), state.nic.own_qp(sqn), uid, Syndrome::sq_missing);
}

Outcome modify_sq(State& state, const Call<prm::ModifySqIn, prm::ModifySqOut>& call) {
  using In = prm::ModifySqIn;
  const auto found = named(state, call.in.get<In::sqn>(), call.uid);
  if (!found) return refuse(found.error());
  const auto [record, sq] = *found;
  const auto sqc = call.in.sub<In::ctx>();
  const SqState current = state_of<SqState>(*sq), next = sqc.get<Sqc::state>();
  if (call.in.get<In::sq_state>() != current) return refuse(Syndrome::sq_current_state);
  if (!may_become(current, next)) return refuse(Syndrome::sq_new_state);
  const std::uint64_t mask = call.in.get<In::modify_bitmask>();
  if (mask & ~(prm::SqModify::packet_pacing_rate_limit_index | prm::SqModify::qos_queue_group_id))
    return refuse(Syndrome::sq_bitmask);
  const bool rate = mask & prm::SqModify::packet_pacing_rate_limit_index, leaf = mask & prm::SqModify::qos_queue_group_id;
  if (auto ok = check_rates(state, sqc, call.uid, rate, leaf); !ok) return ok;
  const auto stored = record->context.view();
  if (rate)
    stored.set<Sqc::packet_pacing_rate_limit_index>(sqc.get<Sqc::packet_pacing_rate_limit_index>());
  if (leaf) {
    stored.set<Sqc::qos_queue_group_id>(sqc.get<Sqc::qos_queue_group_id>());
    move_to_leaf(state, *record, sqc.get<Sqc::qos_queue_group_id>());
  }
  state.engine.set_state(*sq, live_state(next), [&](QpContext& context) { apply_rates(*record, context); });
  return {};
}

Outcome query_sq(State& state, const Call<prm::QuerySqIn, prm::QuerySqOut>& call) {
  const auto found = named(state, call.in.get<prm::QuerySqIn::sqn>(), call.uid);
  if (!found) return refuse(found.error());
  const auto sqc = call.out.sub<prm::QuerySqOut::sq_context>();
  std::memcpy(sqc.data(), found->record->context.data(), Sqc::size);
  SharedGuard guard(found->context->sq_lock, state.nic.me());
  sqc.set<Sqc::state>(state_of<SqState>(*found->context));
  const auto wq = sqc.sub<Sqc::wq>();
  wq.set<Wq::hw_counter>(found->context->sq_head);
  if (const auto posted = read_record(found->context->dbrec_va + 4)) wq.set<Wq::sw_counter>(*posted & 0xffff);
  return {};
}

Outcome destroy_sq(State& state, const Call<prm::DestroySqIn, prm::DestroySqOut>& call) {
  const auto number = call.in.get<prm::DestroySqIn::sqn>();
  const auto found = named(state, number, call.uid);
  if (!found) return refuse(found.error());
  count_uses(parts_of(state, std::as_const(found->record->context).view()), -1);
  move_to_leaf(state, *found->record, 0);
  let_go(state, found->record->backing);
  state.engine.remove(*found->context);
  state.nic.free_qp(*found->context);
  state.sqs.erase(number);
  return {};
}

}  // namespace

void add_raw_commands(Registry& r) {
  using prm::Opcode;
  r.add<create_tis>(Opcode::create_tis, "CREATE_TIS");
  r.add<modify_tis>(Opcode::modify_tis, "MODIFY_TIS");
  r.add<query_tis>(Opcode::query_tis, "QUERY_TIS");
  r.add<destroy_tis>(Opcode::destroy_tis, "DESTROY_TIS");
  r.add<create_sq>(Opcode::create_sq, "CREATE_SQ", prm::Pas::size);
  r.add<modify_sq>(Opcode::modify_sq, "MODIFY_SQ", prm::Pas::size);
  r.add<query_sq>(Opcode::query_sq, "QUERY_SQ");
  r.add<destroy_sq>(Opcode::destroy_sq, "DESTROY_SQ");
}

}  // namespace verbena::device::command
