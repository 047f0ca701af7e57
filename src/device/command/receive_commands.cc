// CREATE, MODIFY, QUERY, DESTROY of RQ, RQT and TIR: what receives Ethernet frames, and how they spread over it.
//
// An RQ is a receive queue without a queue pair around it; its live context is a QpContext of type `raw_rq`. TIRs and
// tables of queues lie in the slice (Steering), where whoever sends a frame reads them.
#include <bit>
#include <cstring>

#include "device/command/dispatcher.h"
#include "device/command/families.h"
#include "device/command/frame_queues.h"
#include "device/command/queues.h"
#include "device/command/srq_objects.h"
#include "device/command/state.h"
#include "prm/raw.h"

namespace verbena::device::command {
namespace {

using prm::Rqc;
using prm::Rqtc;
using prm::RqState;
using prm::Tirc;
using prm::Wq;

// ---- RQ ----

bool is_pool(const prm::ConstView<Rqc>& rqc) { return rqc.get<Rqc::mem_rq_type>() == prm::MemRqType::rmp; }

struct Parts {
  Pd* pd;  // of a queue of its own
  CqRecord* cq;
  SrqRecord* pool;
};
Parts parts_of(State& state, const prm::ConstView<Rqc>& rqc) {
  const bool pool = is_pool(rqc);
  SrqRecord* srq = pool ? state.srqs.find(rqc.get<Rqc::rmpn>()) : nullptr;
  const SrqContext* live = srq ? state.nic.own_srq(rqc.get<Rqc::rmpn>()) : nullptr;
  return {pool ? nullptr : state.pds.find(rqc.sub<Rqc::wq>().get<Wq::pd>()), state.cqs.find(rqc.get<Rqc::cqn>()),
          live && live->type == kSrqTypeRmp ? srq : nullptr};
}
void count_uses(const Parts& parts, int step) {
  for (Owned* object : std::initializer_list<Owned*>{parts.pd, parts.cq, parts.pool})
    if (object) object->uses += static_cast<std::uint32_t>(step);
}

Outcome check_counter(State& state, std::uint32_t id, std::uint16_t uid) {
  const QCounter* set = state.q_counters.find(id);
  return id == 0 || (set && may_use_shared(*set, uid)) ? Outcome{} : refuse(Syndrome::rq_counter);
}

Outcome check_parts(State& state, const Parts& parts, const prm::ConstView<Rqc>& rqc, std::uint16_t uid) {
  if (is_pool(rqc) ? !parts.pool || !may_use(*parts.pool, uid) : false) return refuse(Syndrome::rq_rmp);
  if (!is_pool(rqc) && (!parts.pd || !may_use(*parts.pd, uid))) return refuse(Syndrome::rq_pd);
  if (!parts.cq || !may_use(*parts.cq, uid)) return refuse(Syndrome::rq_cq);
  return check_counter(state, rqc.get<Rqc::counter_set_id>(), uid);
}

Outcome check_context(const State& state, const prm::ConstView<Rqc>& rqc) {
  if (rqc.get<Rqc::state>() != RqState::rst) return refuse(Syndrome::rq_initial_state);
  if (rqc.get<Rqc::hairpin>() || rqc.get<Rqc::scatter_fcs>() || rqc.get<Rqc::delay_drop_en>() || rqc.get<Rqc::rlky>())
    return refuse(Syndrome::rq_offload);
  if (rqc.get<Rqc::ts_format>() > prm::TimestampFormat::standard) return refuse(Syndrome::rq_ts_format);
  if (is_pool(rqc)) return {};
  if (rqc.get<Rqc::mem_rq_type>() != prm::MemRqType::inline_) return refuse(Syndrome::rq_mem_type);
  const auto wq = rqc.sub<Rqc::wq>();
  if (wq.get<Wq::wq_type>() != prm::WqType::cyclic || wq.get<Wq::wq_signature>()) return refuse(Syndrome::rq_wq_type);
  const auto& limits = state.profile.limits;
  if (wq.get<Wq::log_wq_sz>() > limits.log_max_qp_sz || wq.get<Wq::log_wq_stride>() < 4 ||
      1u << wq.get<Wq::log_wq_stride>() > limits.max_wqe_sz_rq)
    return refuse(Syndrome::rq_size);
  return {};
}

void apply_rq(const prm::ConstView<Rqc>& rqc, QpContext& rq) {
  rq.keep_vlan = rqc.get<Rqc::vsd>();
  rq.q_counter = rqc.get<Rqc::counter_set_id>();
}

Outcome create_rq(State& state, const Call<prm::CreateRqIn, prm::CreateRqOut>& call) {
  const auto rqc = call.in.sub<prm::CreateRqIn::ctx>();
  const auto wq = rqc.sub<Rqc::wq>();
  if (auto ok = check_context(state, rqc); !ok) return ok;
  const Parts parts = parts_of(state, rqc);
  if (auto ok = check_parts(state, parts, rqc, call.uid); !ok) return ok;
  if (state.rqs.size() >= 1ull << state.profile.limits.log_max_qp) return refuse(Syndrome::rq_none_left);
  Maybe<Backing> backing = Backing{};
  if (!is_pool(rqc)) backing = locate_work_queue(state, wq, wq.get<Wq::log_wq_stride>(), call.tail(), call.uid);
  if (!backing) return refuse(backing.error());
  QpContext* rq = state.nic.alloc_qp();
  if (!rq) return refuse(Syndrome::rq_none_left);
  rq->type = QpType::raw_rq;
  rq->uid = call.uid;
  rq->pdn = wq.get<Wq::pd>();
  rq->rq_type = is_pool(rqc) ? kRqTypeSrq : kRqTypeRegular;
  rq->srq = is_pool(rqc) ? state.nic.index_of(*state.nic.own_srq(rqc.get<Rqc::rmpn>())) : ~0u;
  rq->send_cq = rq->recv_cq = rqc.get<Rqc::cqn>();
  rq->quiet_flush = !rqc.get<Rqc::flush_in_error_en>();
  rq->user_index = rqc.get<Rqc::user_index>();
  rq->port = 1;
  if (!is_pool(rqc)) rq->rq = {backing->va, wq.get<Wq::log_wq_sz>(), wq.get<Wq::log_wq_stride>()};
  rq->dbrec_va = backing->dbr;
  apply_rq(rqc, *rq);
  RqRecord& record = state.rqs.create(rq->qpn, call.uid);
  std::memcpy(record.context.data(), rqc.data(), Rqc::size);
  record.backing = *backing;
  count_uses(parts, 1);
  hold(state, *backing);
  call.out.set<prm::CreateRqOut::rqn>(rq->qpn);
  state.engine.reset(*rq);
  state.nic.publish(*rq);
  return {};
}

Maybe<Live<RqRecord, QpContext>> named_rq(State& state, std::uint32_t rqn, std::uint16_t uid) {
  return live(state.rqs.find(rqn), state.nic.own_qp(rqn), uid, Syndrome::rq_missing);
}

Outcome modify_rq(State& state, const Call<prm::ModifyRqIn, prm::ModifyRqOut>& call) {
  using In = prm::ModifyRqIn;
  const auto found = named_rq(state, call.in.get<In::rqn>(), call.uid);
  if (!found) return refuse(found.error());
  const auto [record, rq] = *found;
  const auto rqc = call.in.sub<In::ctx>();
  const RqState current = state_of<RqState>(*rq), next = rqc.get<Rqc::state>();
  if (call.in.get<In::rq_state>() != current) return refuse(Syndrome::rq_current_state);
  if (!may_become(current, next)) return refuse(Syndrome::rq_new_state);
  const std::uint64_t mask = call.in.get<In::modify_bitmask>();
  if (mask & ~(prm::RqModify::vsd | prm::RqModify::counter_set_id)) return refuse(Syndrome::rq_bitmask);
  const auto stored = record->context.view();
  if (mask & prm::RqModify::counter_set_id) {
    if (auto ok = check_counter(state, rqc.get<Rqc::counter_set_id>(), call.uid); !ok) return ok;
    stored.set<Rqc::counter_set_id>(rqc.get<Rqc::counter_set_id>());
  }
  if (mask & prm::RqModify::vsd) stored.set<Rqc::vsd>(rqc.get<Rqc::vsd>());
  state.engine.set_state(*rq, live_state(next), [&](QpContext& context) { apply_rq(std::as_const(record->context).view(), context); });
  return {};
}

Outcome query_rq(State& state, const Call<prm::QueryRqIn, prm::QueryRqOut>& call) {
  const auto found = named_rq(state, call.in.get<prm::QueryRqIn::rqn>(), call.uid);
  if (!found) return refuse(found.error());
  const auto rqc = call.out.sub<prm::QueryRqOut::rq_context>();
  std::memcpy(rqc.data(), found->record->context.data(), Rqc::size);
  SharedGuard guard(found->context->rx_lock, state.nic.me());
  rqc.set<Rqc::state>(state_of<RqState>(*found->context));
  if (found->context->srq != ~0u) return {};
  const auto wq = rqc.sub<Rqc::wq>();
  wq.set<Wq::hw_counter>(found->context->rq_head);
  if (const auto posted = read_record(found->context->dbrec_va)) wq.set<Wq::sw_counter>(*posted & 0xffff);
  return {};
}

Outcome destroy_rq(State& state, const Call<prm::DestroyRqIn, prm::DestroyRqOut>& call) {
  const auto number = call.in.get<prm::DestroyRqIn::rqn>();
  const auto found = named_rq(state, number, call.uid);
  if (!found) return refuse(found.error());
  if (found->record->uses) return refuse(Syndrome::rq_busy);
  count_uses(parts_of(state, std::as_const(found->record->context).view()), -1);
  let_go(state, found->record->backing);
  state.engine.remove(*found->context);
  state.nic.free_qp(*found->context);
  state.rqs.erase(number);
  return {};
}

// ---- RQT ----

Outcome check_table(const prm::ConstView<Rqtc>& rqtc, std::uint32_t max_size) {
  if (rqtc.get<Rqtc::list_q_type>() || rqtc.get<Rqtc::rq_vhca_id_format>()) return refuse(Syndrome::rqt_kind);
  if (max_size == 0 || max_size > kRqTableEntries) return refuse(Syndrome::rqt_size);
  const std::uint32_t size = rqtc.get<Rqtc::rqt_actual_size>();
  return std::has_single_bit(size) && size <= max_size ? Outcome{} : refuse(Syndrome::rqt_actual_size);
}

Maybe<std::vector<std::uint32_t>> read_list(State& state, std::uint32_t size, std::span<const std::byte> list,
                                            std::uint16_t uid) {
  if (list.size() / prm::RqNum::size < size) return refuse(Syndrome::rqt_list_short);
  std::vector<std::uint32_t> rqns(size);
  for (std::uint32_t i = 0; i < size; ++i) {
    rqns[i] = prm::ConstView<prm::RqNum>(list.data() + i * prm::RqNum::size).get<prm::RqNum::rq_num>();
    if (const RqRecord* rq = state.rqs.find(rqns[i]); !rq || !may_use(*rq, uid)) return refuse(Syndrome::rqt_rq);
  }
  return rqns;
}

void take_list(State& state, std::uint32_t number, RqtRecord& record, std::vector<std::uint32_t> rqns) {
  for (const std::uint32_t rqn : rqns) ++state.rqs.find(rqn)->uses;
  for (const std::uint32_t rqn : record.rqns) --state.rqs.find(rqn)->uses;
  record.rqns = std::move(rqns);
  record.context.set<Rqtc::rqt_actual_size>(static_cast<std::uint32_t>(record.rqns.size()));
  SharedGuard guard(state.steering().lock, state.nic.me());
  RqTable& table = state.steering().rq_tables[number];
  table.size = static_cast<std::uint32_t>(record.rqns.size());
  for (std::size_t i = 0; i < record.rqns.size(); ++i) table.rq[i] = state.nic.index_of(*state.nic.own_qp(record.rqns[i]));
}

Outcome create_rqt(State& state, const Call<prm::CreateRqtIn, prm::CreateRqtOut>& call) {
  const auto rqtc = call.in.sub<prm::CreateRqtIn::rqt_context>();
  if (auto ok = check_table(rqtc, rqtc.get<Rqtc::rqt_max_size>()); !ok) return ok;
  auto rqns = read_list(state, rqtc.get<Rqtc::rqt_actual_size>(), call.tail(), call.uid);
  if (!rqns) return refuse(rqns.error());
  const auto [number, record] = state.rqts.create(call.uid);
  if (!record) return refuse(Syndrome::rqt_none_left);
  std::memcpy(record->context.data(), rqtc.data(), Rqtc::size);
  take_list(state, number, *record, std::move(*rqns));
  call.out.set<prm::CreateRqtOut::rqtn>(number);
  return {};
}

Outcome modify_rqt(State& state, const Call<prm::ModifyRqtIn, prm::ModifyRqtOut>& call) {
  using In = prm::ModifyRqtIn;
  const auto number = call.in.get<In::rqtn>();
  const auto found = own(state.rqts.find(number), call.uid, Syndrome::rqt_missing);
  if (!found) return refuse(found.error());
  if (!call.in.sub<In::bitmask>().get<prm::RqtBitmask::rqn_list>()) return {};
  const auto rqtc = call.in.sub<In::ctx>();
  if (auto ok = check_table(rqtc, (*found)->context.get<Rqtc::rqt_max_size>()); !ok) return ok;
  auto rqns = read_list(state, rqtc.get<Rqtc::rqt_actual_size>(), call.tail(), call.uid);
  if (!rqns) return refuse(rqns.error());
  take_list(state, number, **found, std::move(*rqns));
  return {};
}

Outcome query_rqt(State& state, const Call<prm::QueryRqtIn, prm::QueryRqtOut>& call) {
  const auto found = own(state.rqts.find(call.in.get<prm::QueryRqtIn::rqtn>()), call.uid, Syndrome::rqt_missing);
  if (!found) return refuse(found.error());
  std::memcpy(call.out.sub<prm::QueryRqtOut::rqt_context>().data(), (*found)->context.data(), Rqtc::size);
  const auto list = call.output.subspan(prm::QueryRqtOut::size);
  for (std::size_t i = 0; i < std::min((*found)->rqns.size(), list.size() / prm::RqNum::size); ++i)
    prm::View<prm::RqNum>(list.data() + i * prm::RqNum::size).set<prm::RqNum::rq_num>((*found)->rqns[i]);
  return {};
}

Outcome destroy_rqt(State& state, const Call<prm::DestroyRqtIn, prm::DestroyRqtOut>& call) {
  const auto number = call.in.get<prm::DestroyRqtIn::rqtn>();
  const auto found = own(state.rqts.find(number), call.uid, Syndrome::rqt_missing);
  if (!found) return refuse(found.error());
  if ((*found)->uses) return refuse(Syndrome::rqt_busy);
  take_list(state, number, **found, {});
  state.rqts.erase(number);
  return {};
}

// ---- TIR ----

constexpr std::uint32_t kHashFields = prm::RxHashFieldSelect::src_ip | prm::RxHashFieldSelect::dst_ip |
                                      prm::RxHashFieldSelect::l4_sport | prm::RxHashFieldSelect::l4_dport;

Outcome check_hash(const prm::ConstView<Tirc>& tirc) {
  using Select = prm::RxHashFieldSelect;
  if (tirc.sub<Tirc::rx_hash_field_selector_inner>().get<Select::selected_fields>()) return refuse(Syndrome::tir_hash);
  if (tirc.get<Tirc::disp_type>() == prm::TirDispType::direct) return {};
  const auto function = tirc.get<Tirc::rx_hash_fn>();
  const bool hashes = function == prm::RxHashFn::inverted_xor8 || function == prm::RxHashFn::toeplitz;
  const std::uint32_t fields = tirc.sub<Tirc::rx_hash_field_selector_outer>().get<Select::selected_fields>();
  return hashes && !(fields & ~kHashFields) ? Outcome{} : refuse(Syndrome::tir_hash);
}

// What a TIR stands on: exactly one of queue and table.
struct Under {
  TransportDomain* domain;
  RqRecord* rq;
  RqtRecord* table;
};
Under under(State& state, const prm::ConstView<Tirc>& tirc) {
  const bool direct = tirc.get<Tirc::disp_type>() == prm::TirDispType::direct;
  return {state.transport_domains.find(tirc.get<Tirc::transport_domain>()),
          direct ? state.rqs.find(tirc.get<Tirc::inline_rqn>()) : nullptr,
          direct ? nullptr : state.rqts.find(tirc.get<Tirc::indirect_table>())};
}
void count_uses(const Under& parts, int step) {
  for (Owned* object : std::initializer_list<Owned*>{parts.domain, parts.rq, parts.table})
    if (object) object->uses += static_cast<std::uint32_t>(step);
}

// Brings the TIR in the slice in step with the record.
void apply_tir(State& state, std::uint32_t number, const TirRecord& record) {
  const auto tirc = record.context.view();
  const auto selector = tirc.sub<Tirc::rx_hash_field_selector_outer>();
  const bool direct = tirc.get<Tirc::disp_type>() == prm::TirDispType::direct;
  SharedGuard guard(state.steering().lock, state.nic.me());
  TirContext& tir = state.steering().tirs[number];
  tir.rq = direct ? state.nic.index_of(*state.nic.own_qp(tirc.get<Tirc::inline_rqn>())) : ~0u;
  tir.table = tirc.get<Tirc::indirect_table>();
  tir.transport_domain = tirc.get<Tirc::transport_domain>();
  tir.hash_fields = selector.get<prm::RxHashFieldSelect::selected_fields>();
  tir.hash_ipv6 = static_cast<std::uint8_t>(selector.get<prm::RxHashFieldSelect::l3_prot_type>());
  tir.hash_udp = static_cast<std::uint8_t>(selector.get<prm::RxHashFieldSelect::l4_prot_type>());
  tir.hash_fn = static_cast<std::uint8_t>(tirc.get<Tirc::rx_hash_fn>());
  tir.hash_symmetric = static_cast<std::uint8_t>(tirc.get<Tirc::rx_hash_symmetric>());
  tir.self_lb_block = static_cast<std::uint8_t>(tirc.get<Tirc::self_lb_block>());
  std::memcpy(tir.key, tirc.data() + Tirc::rx_hash_toeplitz_key::offset, sizeof tir.key);
  tir.in_use = 1;
}

Outcome create_tir(State& state, const Call<prm::CreateTirIn, prm::CreateTirOut>& call) {
  const auto tirc = call.in.sub<prm::CreateTirIn::ctx>();
  if (tirc.get<Tirc::tls_en>() || tirc.get<Tirc::tunneled_offload_en>() || tirc.get<Tirc::packet_merge_mask>())
    return refuse(Syndrome::tir_offload);
  if (tirc.get<Tirc::disp_type>() > prm::TirDispType::indirect) return refuse(Syndrome::tir_disp_type);
  if (auto ok = check_hash(tirc); !ok) return ok;
  const Under parts = under(state, tirc);
  // Domain 0 is no domain: such a TIR sees none of its frames as its own.
  const bool no_domain = tirc.get<Tirc::transport_domain>() == 0;
  if (!no_domain && (!parts.domain || !may_use(*parts.domain, call.uid))) return refuse(Syndrome::tir_domain);
  const bool direct = tirc.get<Tirc::disp_type>() == prm::TirDispType::direct;
  if (direct && (!parts.rq || !may_use(*parts.rq, call.uid))) return refuse(Syndrome::tir_rq);
  if (!direct && (!parts.table || !may_use(*parts.table, call.uid))) return refuse(Syndrome::tir_rqt);
  const auto [number, record] = state.tirs.create(call.uid);
  if (!record) return refuse(Syndrome::tir_none_left);
  std::memcpy(record->context.data(), tirc.data(), Tirc::size);
  count_uses(parts, 1);
  apply_tir(state, number, *record);
  call.out.set<prm::CreateTirOut::tirn>(number);
  return {};
}

Outcome modify_tir(State& state, const Call<prm::ModifyTirIn, prm::ModifyTirOut>& call) {
  using In = prm::ModifyTirIn;
  using Bits = prm::ModifyTirBitmask;
  const auto number = call.in.get<In::tirn>();
  const auto found = own(state.tirs.find(number), call.uid, Syndrome::tir_missing);
  if (!found) return refuse(found.error());
  const auto bits = call.in.sub<In::bitmask>();
  if (bits.get<Bits::packet_merge>()) return refuse(Syndrome::tir_bitmask);
  const auto from = call.in.sub<In::ctx>();
  prm::Box<Tirc> changed = (*found)->context;
  const auto to = changed.view();
  if (bits.get<Bits::self_lb_en>()) to.set<Tirc::self_lb_block>(from.get<Tirc::self_lb_block>());
  if (bits.get<Bits::hash>()) {
    to.set<Tirc::rx_hash_fn>(from.get<Tirc::rx_hash_fn>()).set<Tirc::rx_hash_symmetric>(
        from.get<Tirc::rx_hash_symmetric>());
    constexpr std::size_t key = Tirc::rx_hash_toeplitz_key::offset;  // and the selectors behind it
    std::memcpy(to.data() + key, from.data() + key, Tirc::rx_hash_field_selector_inner::offset + 4 - key);
  }
  if (auto ok = check_hash(std::as_const(changed).view()); !ok) return ok;
  (*found)->context = changed;
  apply_tir(state, number, **found);
  return {};
}

Outcome query_tir(State& state, const Call<prm::QueryTirIn, prm::QueryTirOut>& call) {
  const auto found = own(state.tirs.find(call.in.get<prm::QueryTirIn::tirn>()), call.uid, Syndrome::tir_missing);
  if (!found) return refuse(found.error());
  std::memcpy(call.out.sub<prm::QueryTirOut::tir_context>().data(), (*found)->context.data(), Tirc::size);
  return {};
}

Outcome destroy_tir(State& state, const Call<prm::DestroyTirIn, prm::DestroyTirOut>& call) {
  const auto number = call.in.get<prm::DestroyTirIn::tirn>();
  const auto found = own(state.tirs.find(number), call.uid, Syndrome::tir_missing);
  if (!found) return refuse(found.error());
  if ((*found)->uses) return refuse(Syndrome::tir_busy);
  count_uses(under(state, std::as_const((*found)->context).view()), -1);
  {
    SharedGuard guard(state.steering().lock, state.nic.me());
    state.steering().tirs[number].in_use = 0;
  }
  state.tirs.erase(number);
  return {};
}

}  // namespace

void add_receive_commands(Registry& r) {
  using prm::Opcode;
  r.add<create_rq>(Opcode::create_rq, "CREATE_RQ", prm::Pas::size);
  r.add<modify_rq>(Opcode::modify_rq, "MODIFY_RQ", prm::Pas::size);
  r.add<query_rq>(Opcode::query_rq, "QUERY_RQ");
  r.add<destroy_rq>(Opcode::destroy_rq, "DESTROY_RQ");
  r.add<create_rqt>(Opcode::create_rqt, "CREATE_RQT", prm::RqNum::size);
  r.add<modify_rqt>(Opcode::modify_rqt, "MODIFY_RQT", prm::RqNum::size);
  r.add<query_rqt>(Opcode::query_rqt, "QUERY_RQT");
  r.add<destroy_rqt>(Opcode::destroy_rqt, "DESTROY_RQT");
  r.add<create_tir>(Opcode::create_tir, "CREATE_TIR");
  r.add<modify_tir>(Opcode::modify_tir, "MODIFY_TIR");
  r.add<query_tir>(Opcode::query_tir, "QUERY_TIR");
  r.add<destroy_tir>(Opcode::destroy_tir, "DESTROY_TIR");
}

}  // namespace verbena::device::command
