// CREATE_CQ, QUERY_CQ, MODIFY_CQ (moderation, EQ, resize), DESTROY_CQ.
#include <cstring>
#include <utility>

#include "device/command/dispatcher.h"
#include "device/command/families.h"
#include "device/command/queues.h"
#include "device/command/state.h"
#include "device/memory/transfer.h"
#include "device/transport/completion.h"
#include "prm/cq.h"

namespace verbena::device::command {
namespace {

using prm::Cqc;
using prm::CqeSize;

constexpr std::uint8_t kResizeCqe = 5;  // CQE opcode: "the rest is in the new buffer"

unsigned log_cqe(CqeSize size) { return size == CqeSize::bytes_64 ? 6 : 7; }

// Checks what CREATE_CQ and MODIFY_CQ have in common.
Outcome check_size(const State& state, const prm::ConstView<Cqc>& cqc) {
  if (cqc.get<Cqc::log_cq_size>() > state.profile.limits.log_max_cq_sz) return refuse(Syndrome::cq_size);
  return {};
}

// Whether CQEs can be compressed as it says.
bool compresses(const State& state, const prm::ConstView<Cqc>& cqc) {
  return state.profile.limits.cqe_compression != 0 &&
         cqc.get<Cqc::cqe_compression_layout>() == prm::CqeCompressionLayout::basic &&
         cqc.get<Cqc::mini_cqe_res_format>() != prm::MiniCqeFormat::flow_tag_stride_index &&
         cqc.get<Cqc::mini_cqe_res_format_ext>() == 0;
}

Outcome check_context(const State& state, const prm::ConstView<Cqc>& cqc) {
  if (static_cast<unsigned>(cqc.get<Cqc::cqe_sz>()) > static_cast<unsigned>(CqeSize::bytes_128_padded))
    return refuse(Syndrome::cq_cqe_size);
  if (cqc.get<Cqc::cqe_comp_en>() && !compresses(state, cqc)) return refuse(Syndrome::cq_compression);
  if (cqc.get<Cqc::apu_cq>()) return refuse(Syndrome::cq_apu);
  if (static_cast<unsigned>(cqc.get<Cqc::cq_period_mode>()) > 1) return refuse(Syndrome::cq_period_mode);
  return check_size(state, cqc);
}

// What makes a CQ more than a ring whose every entry is told of. Either of the two being 0, nothing is moderated.
std::uint8_t features_of(const prm::ConstView<Cqc>& cqc) {
  const std::uint8_t compressed = cqc.get<Cqc::cqe_comp_en>() ? kCqCompressed : 0;
  if (cqc.get<Cqc::cq_period>() == 0 || cqc.get<Cqc::cq_max_count>() == 0) return compressed;
  return static_cast<std::uint8_t>(
      compressed | kCqModerated | (cqc.get<Cqc::cq_period_mode>() == prm::CqPeriodMode::from_cqe ? kCqPeriodFromCqe : 0) |
      (cqc.get<Cqc::scqe_break_moderation_en>() ? kCqSolicitedBreaks : 0));
}

// The EQ that the context names, if this uid may use it.
Maybe<EqRecord*> named_eq(State& state, std::uint32_t eqn, std::uint16_t uid) {
  EqRecord* eq = state.eqs.find(eqn);
  if (!eq || !may_use_shared(*eq, uid)) return refuse(Syndrome::cq_eqn);
  return eq;
}

QueueMemory memory_of(const prm::ConstView<Cqc>& cqc, bool umem_valid, std::uint32_t umem_id, std::uint64_t umem_offset,
                      std::span<const std::byte> pages) {
  return {.written = true,
          .umem_valid = umem_valid,
          .umem_id = umem_id,
          .umem_offset = umem_offset,
          .log_page_size = cqc.get<Cqc::log_page_size>(),
          .page_offset = cqc.get<Cqc::page_offset>(),
          .pages = pages};
}

Outcome create_cq(State& state, const Call<prm::CreateCqIn, prm::CreateCqOut>& call) {
  using In = prm::CreateCqIn;
  const auto cqc = call.in.sub<In::cq_context>();
  if (auto ok = check_context(state, cqc); !ok) return ok;
  const std::uint32_t eqn = cqc.get<Cqc::c_eqn_or_apu_element>();
  const auto eq = named_eq(state, eqn, call.uid);
  if (!eq) return refuse(eq.error());
  Uar* uar = state.uars.find(cqc.get<Cqc::uar_page>());
  if (!uar || !may_use_shared(*uar, call.uid)) return refuse(Syndrome::cq_uar);
  if (state.cqs.size() >= 1ull << state.profile.limits.log_max_cq) return refuse(Syndrome::cq_none_left);

  const unsigned stride = log_cqe(cqc.get<Cqc::cqe_sz>());
  const unsigned log_size = cqc.get<Cqc::log_cq_size>();
  auto backing = locate_queue(state,
                              memory_of(cqc, call.in.get<In::cq_umem_valid>(), call.in.get<In::cq_umem_id>(),
                                        call.in.get<In::cq_umem_offset>(), call.tail()),
                              1ull << (log_size + stride), call.uid);
  if (!backing) return refuse(backing.error());
  const auto dbr = locate_doorbell(state, cqc.get<Cqc::dbr_umem_valid>(), cqc.get<Cqc::dbr_umem_id>(),
                                   cqc.get<Cqc::dbr_addr>(), call.uid, *backing);
  if (!dbr) return refuse(dbr.error());

  CqContext* cq = state.nic.alloc_cq();
  if (!cq) return refuse(Syndrome::cq_none_left);
  if (cqc.get<Cqc::cqe_comp_en>() &&
      !state.nic.back_slice(offsetof(Slice, cq_sessions) + cq->cqn * sizeof(CqSession), sizeof(CqSession))) {
    state.nic.free_cq(*cq);
    return refuse(Syndrome::cq_none_left);
  }
  cq->eq = eqn;
  cq->cqe_bytes_log = static_cast<std::uint8_t>(stride);
  cq->overrun_ignore = cqc.get<Cqc::oi>();
  cq->ring = {backing->va, log_size, stride};
  cq->dbrec_va = *dbr;
  cq->uid = call.uid;
  cq->period_us = static_cast<std::uint16_t>(cqc.get<Cqc::cq_period>());
  cq->max_count = static_cast<std::uint16_t>(cqc.get<Cqc::cq_max_count>());
  cq->features = features_of(cqc);
  cq->padded = cqc.get<Cqc::cqe_sz>() == CqeSize::bytes_128_padded;
  cq->mini_format = static_cast<std::uint8_t>(cqc.get<Cqc::mini_cqe_res_format>());
  CqRecord& record = state.cqs.create(cq->cqn, call.uid);
  std::memcpy(record.context.data(), cqc.data(), Cqc::size);
  record.backing = *backing;
  record.uar = cqc.get<Cqc::uar_page>();
  ++(*eq)->uses;
  ++uar->uses;
  hold(state, *backing);
  call.out.set<prm::CreateCqOut::cqn>(cq->cqn);
  state.nic.publish(*cq);
  if (cqc.get<Cqc::cqe_comp_en>()) state.engine.watch_sessions(1);
  return {};
}

using Named = Live<CqRecord, CqContext>;
Maybe<Named> named_cq(State& state, std::uint32_t cqn, std::uint16_t uid) {
  return live(state.cqs.find(cqn), state.nic.own_cq(cqn), uid, Syndrome::cq_missing);
}

Outcome query_cq(State& state, const Call<prm::QueryCqIn, prm::QueryCqOut>& call) {
  const auto named = named_cq(state, call.in.get<prm::QueryCqIn::cqn>(), call.uid);
  if (!named) return refuse(named.error());
  const auto [record, cq] = *named;
  const auto cqc = call.out.sub<prm::QueryCqOut::cq_context>();
  std::memcpy(cqc.data(), record->context.data(), Cqc::size);
  state.engine.close_session(*cq);
  SharedGuard guard(cq->lock, state.nic.me());
  cqc.set<Cqc::status>(static_cast<prm::CqStatus>(cq->status));
  cqc.set<Cqc::log_cq_size>(cq->ring.log_entries);
  cqc.set<Cqc::producer_counter>(cq->pi);
  cqc.set<Cqc::last_solicit_index>(cq->last_solicited_pi);
  cqc.set<Cqc::last_notified_index>(cq->last_notified_pi);
  if (const auto ci = read_record(cq->dbrec_va)) cqc.set<Cqc::consumer_counter>(*ci);
  const std::uint32_t arm = cq->arm.load(std::memory_order_relaxed);
  cqc.set<Cqc::st>(arm == kCqArmed            ? prm::CqArmState::armed
                   : arm == kCqArmedSolicited ? prm::CqArmState::solicited_armed
                                              : prm::CqArmState::fired);
  list_pages(record->backing, call.output.subspan(prm::QueryCqOut::size));
  return {};
}

Outcome modify_fields(State& state, const Call<prm::ModifyCqIn, prm::ModifyCqOut>& call, const Named& named) {
  using Select = prm::ModifyCqSelect;
  constexpr std::uint32_t kKnown =
      Select::period | Select::max_count | Select::overrun_ignore | Select::eqn | Select::period_mode;
  const auto select = call.in.get<prm::ModifyCqIn::modify_field_select_resize_field_select>();
  if (select & ~kKnown) return refuse(Syndrome::cq_modify_select);
  const auto cqc = call.in.sub<prm::ModifyCqIn::cq_context>();
  if ((select & Select::period_mode) && static_cast<unsigned>(cqc.get<Cqc::cq_period_mode>()) > 1)
    return refuse(Syndrome::cq_period_mode);
  EqRecord* eq = nullptr;
  if (select & Select::eqn) {
    const auto found = named_eq(state, cqc.get<Cqc::c_eqn_or_apu_element>(), call.uid);
    if (!found) return refuse(found.error());
    eq = *found;
  }
  auto stored = named.record->context.view();
  CqContext& cq = *named.context;
  {
    SharedGuard guard(cq.lock, state.nic.me());
    if (select & Select::period) stored.set<Cqc::cq_period>(cqc.get<Cqc::cq_period>());
    if (select & Select::max_count) stored.set<Cqc::cq_max_count>(cqc.get<Cqc::cq_max_count>());
    if (select & Select::period_mode) stored.set<Cqc::cq_period_mode>(cqc.get<Cqc::cq_period_mode>());
    cq.period_us = static_cast<std::uint16_t>(stored.get<Cqc::cq_period>());
    cq.max_count = static_cast<std::uint16_t>(stored.get<Cqc::cq_max_count>());
    cq.features = features_of(std::as_const(named.record->context).view());
    if (select & Select::overrun_ignore) {
      stored.set<Cqc::oi>(cqc.get<Cqc::oi>());
      cq.overrun_ignore = cqc.get<Cqc::oi>();
    }
    if (eq) {
      if (EqRecord* old = state.eqs.find(cq.eq)) --old->uses;
      ++eq->uses;
      cq.eq = cqc.get<Cqc::c_eqn_or_apu_element>();
      stored.set<Cqc::c_eqn_or_apu_element>(cq.eq);
    }
  }
  if (select & (Select::period | Select::max_count | Select::period_mode)) state.engine.moderate(cq);
  return {};
}

// Marks the end of the old ring and goes on in the new one. The marker takes one index; the library moves what is still
// unread behind it. False if the old ring cannot be written any more.
bool switch_ring(CqContext& cq, const Ring& old, const Ring& ring) {
  std::uint64_t slot = old.va + (std::uint64_t{cq.pi & ((1u << old.log_entries) - 1)} << old.log_stride);
  if (old.log_stride == 7) slot += 64;
  std::byte marker[64]{};
  marker[63] = static_cast<std::byte>(kResizeCqe << 4 | (cq.pi >> old.log_entries & 1));
  // The byte that says so becomes visible last (what copies is opaque to the compiler).
  if (write_memory(nullptr, slot, marker, 56) != Moved::ok) return false;
  if (write_memory(nullptr, slot + 56, marker + 56, 8) != Moved::ok) return false;
  ++cq.pi;
  cq.ring = ring;
  cq.cqe_bytes_log = static_cast<std::uint8_t>(ring.log_stride);
  return true;
}

// From the ring as commands made it, not as shared memory has it now.
Outcome move_to_ring(State& state, const Named& named, const Ring& ring, CqeSize size) {
  CqContext& cq = *named.context;
  Deferred deferred(&state.nic.self());
  SharedGuard guard(cq.lock, state.nic.me());
  Completer(state.nic.self(), state.nic.me(), deferred).close(cq);
  const auto made = std::as_const(named.record->context).view();
  const Ring old{named.record->backing.va, made.get<Cqc::log_cq_size>(), log_cqe(made.get<Cqc::cqe_sz>())};
  const std::uint32_t ci = read_record(cq.dbrec_va).value_or(cq.pi);
  const std::uint32_t unread = (cq.pi - ci) & 0xffffff;
  if (unread + 1 > (1u << ring.log_entries)) return refuse(Syndrome::cq_resize_unread);
  if (unread + 1 > (1u << old.log_entries)) return refuse(Syndrome::cq_resize_full);
  if (!switch_ring(cq, old, ring)) return refuse(Syndrome::queue_not_mapped);
  cq.padded = size == CqeSize::bytes_128_padded;
  state.nic.note(cq);
  return {};
}

Outcome resize(State& state, const Call<prm::ModifyCqIn, prm::ModifyCqOut>& call, const Named& named) {
  using In = prm::ModifyCqIn;
  using Select = prm::ResizeCqSelect;
  const auto select = call.in.get<In::modify_field_select_resize_field_select>();
  if (!(select & Select::log_cq_size) ||
      (select & ~(Select::log_cq_size | Select::page_offset | Select::log_page_size)))
    return refuse(Syndrome::cq_resize_select);
  const auto cqc = call.in.sub<In::cq_context>();
  if (auto ok = check_size(state, cqc); !ok) return ok;
  const CqeSize size = cqc.get<Cqc::cqe_sz>();
  if (static_cast<unsigned>(size) > static_cast<unsigned>(CqeSize::bytes_128_padded))
    return refuse(Syndrome::cq_cqe_size);
  const unsigned stride = log_cqe(size);
  const unsigned log_size = cqc.get<Cqc::log_cq_size>();
  auto backing = locate_queue(state,
                              memory_of(cqc, call.in.get<In::cq_umem_valid>(), call.in.get<In::cq_umem_id>(),
                                        call.in.get<In::cq_umem_offset>(), call.tail()),
                              1ull << (log_size + stride), call.uid);
  if (!backing) return refuse(backing.error());
  backing->dbr = named.record->backing.dbr;
  backing->dbr_umem = named.record->backing.dbr_umem;
  const Outcome moved = move_to_ring(state, named, {backing->va, log_size, stride}, size);
  state.engine.close_session(*named.context);  // whatever became of it: tells of what was closed with it
  if (!moved) return moved;
  hold(state, *backing);
  let_go(state, named.record->backing);
  named.record->backing = *backing;
  auto stored = named.record->context.view();
  stored.set<Cqc::log_cq_size>(log_size).set<Cqc::cqe_sz>(size);
  stored.set<Cqc::log_page_size>(cqc.get<Cqc::log_page_size>()).set<Cqc::page_offset>(cqc.get<Cqc::page_offset>());
  return {};
}

Outcome modify_cq(State& state, const Call<prm::ModifyCqIn, prm::ModifyCqOut>& call) {
  const auto named = named_cq(state, call.in.get<prm::ModifyCqIn::cqn>(), call.uid);
  if (!named) return refuse(named.error());
  switch (static_cast<prm::ModifyCqOpMod>(call.in.get<prm::ModifyCqIn::op_mod>())) {
    case prm::ModifyCqOpMod::modify:
      return modify_fields(state, call, *named);
    case prm::ModifyCqOpMod::resize:
      return resize(state, call, *named);
  }
  return refuse(Syndrome::cq_op_mod);
}

Outcome destroy_cq(State& state, const Call<prm::DestroyCqIn, prm::DestroyCqOut>& call) {
  const auto number = call.in.get<prm::DestroyCqIn::cqn>();
  const auto named = named_cq(state, number, call.uid);
  if (!named) return refuse(named.error());
  if (named->record->uses) return refuse(Syndrome::cq_busy);
  if (EqRecord* eq = state.eqs.find(named->context->eq)) --eq->uses;
  if (Uar* uar = state.uars.find(named->record->uar)) --uar->uses;
  let_go(state, named->record->backing);
  if (std::as_const(named->record->context).view().get<Cqc::cqe_comp_en>()) state.engine.watch_sessions(-1);
  state.nic.free_cq(*named->context);
  state.cqs.erase(number);
  return {};
}

}  // namespace

void add_cq_commands(Registry& r) {
  using prm::Opcode;
  r.add<create_cq>(Opcode::create_cq, "CREATE_CQ", prm::Pas::size);
  r.add<query_cq>(Opcode::query_cq, "QUERY_CQ");
  r.add<modify_cq>(Opcode::modify_cq, "MODIFY_CQ", prm::Pas::size);
  r.add<destroy_cq>(Opcode::destroy_cq, "DESTROY_CQ");
}

}  // namespace verbena::device::command
