// CREATE_EQ, QUERY_EQ, DESTROY_EQ.
#include <cstring>

#include "device/command/dispatcher.h"
#include "device/command/families.h"
#include "device/command/queues.h"
#include "device/command/state.h"
#include "prm/eq.h"

namespace verbena::device::command {
namespace {

constexpr unsigned kLogEqe = 6;

Outcome create_eq(State& state, const Call<prm::CreateEqIn, prm::CreateEqOut>& call) {
  const auto eqc = call.in.sub<prm::CreateEqIn::eq_context_entry>();
  const unsigned log_size = eqc.get<prm::Eqc::log_eq_size>();
  if (log_size > state.profile.limits.log_max_eq_sz) return refuse(Syndrome::eq_size);
  if (eqc.get<prm::Eqc::intr>() > state.profile.limits.completion_vectors) return refuse(Syndrome::eq_vector);
  Uar* uar = state.uars.find(eqc.get<prm::Eqc::uar_page>());
  if (!uar || !may_use_shared(*uar, call.uid)) return refuse(Syndrome::eq_uar);
  if (state.eqs.size() >= 1ull << state.profile.limits.log_max_eq) return refuse(Syndrome::eq_none_left);

  const QueueMemory memory{.log_page_size = eqc.get<prm::Eqc::log_page_size>(),
                           .page_offset = eqc.get<prm::Eqc::page_offset>(),
                           .pages = call.tail()};
  const auto backing = locate_queue(state, memory, 1ull << (log_size + kLogEqe), call.uid);
  if (!backing) return refuse(backing.error());

  EqContext* eq = state.nic.alloc_eq();
  if (!eq) return refuse(Syndrome::eq_none_left);
  eq->intr = eqc.get<prm::Eqc::intr>();
  eq->uid = call.uid;
  eq->ring = {backing->va, log_size, kLogEqe};
  for (unsigned i = 0; i < 4; ++i)
    eq->event_mask[i] = call.in.at<prm::CreateEqIn::event_bitmask>(i).get<prm::Qword::value>();
  EqRecord& record = state.eqs.create(eq->eqn, call.uid);
  std::memcpy(record.context.data(), eqc.data(), prm::Eqc::size);
  record.backing = *backing;
  ++uar->uses;
  call.out.set<prm::CreateEqOut::eq_number>(eq->eqn);
  state.nic.publish(*eq);
  return {};
}

Outcome query_eq(State& state, const Call<prm::QueryEqIn, prm::QueryEqOut>& call) {
  const auto number = call.in.get<prm::QueryEqIn::eq_number>();
  const EqRecord* record = state.eqs.find(number);
  EqContext* eq = state.nic.own_eq(number);
  if (!record || !eq || !may_use_shared(*record, call.uid)) return refuse(Syndrome::eq_missing);
  const auto eqc = call.out.sub<prm::QueryEqOut::eq_context_entry>();
  std::memcpy(eqc.data(), record->context.view().data(), prm::Eqc::size);
  SharedGuard guard(eq->lock, state.nic.me());
  eqc.set<prm::Eqc::status>(eq->status ? prm::EqStatus::write_failure : prm::EqStatus::ok);
  eqc.set<prm::Eqc::consumer_counter>(eq->ci.load(std::memory_order_relaxed));
  eqc.set<prm::Eqc::producer_counter>(eq->pi);
  call.out.set<prm::QueryEqOut::event_bitmask>(eq->event_mask[0]);
  list_pages(record->backing, call.output.subspan(prm::QueryEqOut::size));
  return {};
}

Outcome destroy_eq(State& state, const Call<prm::DestroyEqIn, prm::DestroyEqOut>& call) {
  const auto number = call.in.get<prm::DestroyEqIn::eq_number>();
  EqRecord* record = state.eqs.find(number);
  EqContext* eq = state.nic.own_eq(number);
  if (!record || !eq || !may_use(*record, call.uid)) return refuse(Syndrome::eq_missing);
  if (record->uses) return refuse(Syndrome::eq_busy);
  if (Uar* uar = state.uars.find(record->context.get<prm::Eqc::uar_page>())) --uar->uses;
  state.nic.free_eq(*eq);
  state.eqs.erase(number);
  return {};
}

}  // namespace

void add_eq_commands(Registry& r) {
  using prm::Opcode;
  r.add<create_eq>(Opcode::create_eq, "CREATE_EQ", prm::Pas::size);
  r.add<query_eq>(Opcode::query_eq, "QUERY_EQ");
  r.add<destroy_eq>(Opcode::destroy_eq, "DESTROY_EQ");
}

}  // namespace verbena::device::command
