// Shared receive queues: what all kinds share, and the two that any queue pair can stand on, SRQ (CREATE_SRQ) and receive
// memory pool (CREATE_RMP). ARM_RQ sets the limit of an SRQ or an XRQ.
#include <cstring>

#include "device/command/dispatcher.h"
#include "device/command/families.h"
#include "device/command/srq_objects.h"
#include "prm/srq.h"

namespace verbena::device::command {
namespace {

using prm::Rmpc;
using prm::Srqc;
using prm::Wq;

}  // namespace

Maybe<LiveSrq> create_shared_queue(State& state, const SrqShape& shape, std::uint16_t uid) {
  if (shape.log_size > state.profile.limits.log_max_srq_sz) return refuse(Syndrome::srq_size);
  if (shape.log_stride < 5 || (1u << shape.log_stride) > state.profile.limits.max_wqe_sz_rq)
    return refuse(Syndrome::srq_stride);
  if (shape.limit >= 1u << shape.log_size && shape.limit) return refuse(Syndrome::srq_limit);
  Pd* pd = state.pds.find(shape.pdn);
  if (!pd || !may_use(*pd, uid)) return refuse(Syndrome::srq_pd);
  CqRecord* cq = shape.cqn ? state.cqs.find(shape.cqn) : nullptr;
  if (shape.cqn && (!cq || !may_use(*cq, uid))) return refuse(Syndrome::srq_cq);
  Xrcd* xrcd = shape.xrcd ? state.xrcds.find(shape.xrcd) : nullptr;
  if (shape.xrcd && (!xrcd || !may_use_shared(*xrcd, uid))) return refuse(Syndrome::xrcd_missing);
  if (state.srqs.size() >= 1ull << state.profile.limits.log_max_srq) return refuse(Syndrome::srq_none_left);
  auto located = locate_queue(state, shape.memory, 1ull << (shape.log_size + shape.log_stride), uid);
  if (!located) return refuse(located.error());
  const auto dbr = locate_doorbell(state, shape.dbr_umem_valid, shape.dbr_umem_id, shape.dbr_addr, uid, *located);
  if (!dbr) return refuse(dbr.error());

  SrqContext* srq = state.nic.alloc_srq();
  if (!srq) return refuse(Syndrome::srq_none_left);
  srq->pdn = shape.pdn;
  srq->cq = cq ? shape.cqn : ~0u;
  srq->xrcd = shape.xrcd;
  srq->user_index = shape.user_index;
  srq->type = shape.type;
  srq->cyclic = shape.cyclic;
  srq->state = kSrqGood;
  srq->uid = uid;
  srq->ring = {located->va, shape.log_size, shape.log_stride};
  srq->dbrec_va = *dbr;
  srq->limit.store(shape.limit, std::memory_order_relaxed);
  SrqRecord& record = state.srqs.create(srq->srqn, uid);
  record.backing = *located;
  record.pdn = shape.pdn;
  record.cqn = shape.cqn;
  record.xrcd = shape.xrcd;
  ++pd->uses;
  if (cq) ++cq->uses;
  if (xrcd) ++xrcd->uses;
  hold(state, *located);
  return LiveSrq{&record, srq};
}

Maybe<LiveSrq> named_srq(State& state, std::uint32_t number, std::uint16_t uid, std::uint8_t type) {
  SrqContext* srq = state.nic.own_srq(number);
  return live(state.srqs.find(number), srq && srq->type == type ? srq : nullptr, uid, Syndrome::srq_missing);
}

Outcome destroy_shared_queue(State& state, std::uint32_t number, std::uint16_t uid, std::uint8_t type) {
  const auto named = named_srq(state, number, uid, type);
  if (!named) return refuse(named.error());
  SrqRecord& record = *named->record;
  if (record.uses) return refuse(Syndrome::srq_busy);
  if (Pd* pd = state.pds.find(record.pdn)) --pd->uses;
  if (CqRecord* cq = record.cqn ? state.cqs.find(record.cqn) : nullptr) --cq->uses;
  if (Xrcd* xrcd = record.xrcd ? state.xrcds.find(record.xrcd) : nullptr) --xrcd->uses;
  let_go(state, record.backing);
  state.nic.free_srq(*named->context);
  state.srqs.erase(number);
  return {};
}

Outcome set_srq_limit(State& state, SrqContext& srq, std::uint32_t limit) {
  if (limit >= 1u << srq.ring.log_entries && limit) return refuse(Syndrome::srq_limit);
  srq.limit.store(limit, std::memory_order_release);
  state.engine.check_srq_limit(srq);
  return {};
}

std::uint32_t waiting_wqes(const SrqContext& srq) {
  const auto posted = read_record(srq.dbrec_va);
  return posted ? static_cast<std::uint16_t>(*posted - srq.consumed) : 0;
}

void read_back_wq(const SrqContext& srq, const prm::View<Wq>& wq) {
  wq.set<Wq::lwm>(srq.limit.load(std::memory_order_relaxed));
  wq.set<Wq::hw_counter>(srq.consumed);
  if (const auto posted = read_record(srq.dbrec_va)) wq.set<Wq::sw_counter>(*posted);
}

SrqShape shape_of(const prm::ConstView<Wq>& wq, std::uint8_t type, std::span<const std::byte> pages) {
  return {.type = type,
          .cyclic = wq.get<Wq::wq_type>() == prm::WqType::cyclic,
          .pdn = wq.get<Wq::pd>(),
          .log_size = wq.get<Wq::log_wq_sz>(),
          .log_stride = wq.get<Wq::log_wq_stride>(),
          .limit = wq.get<Wq::lwm>(),
          .dbr_addr = wq.get<Wq::dbr_addr>(),
          .dbr_umem_valid = wq.get<Wq::dbr_umem_valid>() != 0,
          .dbr_umem_id = wq.get<Wq::dbr_umem_id>(),
          .memory = memory_of(wq, pages)};
}

namespace {

Outcome create_srq(State& state, const Call<prm::CreateSrqIn, prm::CreateSrqOut>& call) {
  const auto srqc = call.in.sub<prm::CreateSrqIn::srq_context_entry>();
  if (srqc.get<Srqc::wq_signature>()) return refuse(Syndrome::srq_signature);
  const SrqShape shape{.type = kSrqTypeSrq,
                       .cyclic = false,
                       .pdn = srqc.get<Srqc::pd>(),
                       .log_size = srqc.get<Srqc::log_srq_size>(),
                       .log_stride = srqc.get<Srqc::log_rq_stride>() + 4,
                       .limit = srqc.get<Srqc::lwm>(),
                       .dbr_addr = srqc.get<Srqc::dbr_addr>(),
                       .dbr_umem_valid = false,
                       .dbr_umem_id = 0,
                       .memory = {.log_page_size = srqc.get<Srqc::log_page_size>(),
                                  .page_offset = srqc.get<Srqc::page_offset>(),
                                  .pages = call.tail()}};
  const auto made = create_shared_queue(state, shape, call.uid);
  if (!made) return refuse(made.error());
  std::memcpy(made->record->srqc.data(), srqc.data(), Srqc::size);
  call.out.set<prm::CreateSrqOut::srqn>(made->context->srqn);
  state.nic.publish(*made->context);
  return {};
}

Outcome create_rmp(State& state, const Call<prm::CreateRmpIn, prm::CreateRmpOut>& call) {
  const auto rmpc = call.in.sub<prm::CreateRmpIn::ctx>();
  const auto wq = rmpc.sub<Rmpc::wq>();
  if (rmpc.get<Rmpc::state>() != prm::RmpState::rdy) return refuse(Syndrome::rmp_initial_state);
  const auto type = wq.get<Wq::wq_type>();
  if (rmpc.get<Rmpc::basic_cyclic_rcv_wqe>() || (type != prm::WqType::linked_list && type != prm::WqType::cyclic))
    return refuse(Syndrome::rmp_wq_type);
  if (wq.get<Wq::wq_signature>()) return refuse(Syndrome::srq_signature);
  const auto made = create_shared_queue(state, shape_of(wq, kSrqTypeRmp, call.tail()), call.uid);
  if (!made) return refuse(made.error());
  std::memcpy(made->record->rmpc.data(), rmpc.data(), Rmpc::size);
  call.out.set<prm::CreateRmpOut::rmpn>(made->context->srqn);
  state.nic.publish(*made->context);
  return {};
}

Outcome query_srq(State& state, const Call<prm::QuerySrqIn, prm::QuerySrqOut>& call) {
  const auto named = named_srq(state, call.in.get<prm::QuerySrqIn::srqn>(), call.uid, kSrqTypeSrq);
  if (!named) return refuse(named.error());
  const auto [record, srq] = *named;
  const auto srqc = call.out.sub<prm::QuerySrqOut::srq_context_entry>();
  std::memcpy(srqc.data(), record->srqc.data(), Srqc::size);
  SharedGuard guard(srq->lock, state.nic.me());
  srqc.set<Srqc::state>(srq->state == kSrqGood ? prm::SrqState::good : prm::SrqState::error);
  srqc.set<Srqc::lwm>(srq->limit.load(std::memory_order_relaxed));
  srqc.set<Srqc::wqe_cnt>(waiting_wqes(*srq));
  list_pages(record->backing, call.output.subspan(prm::QuerySrqOut::size));
  return {};
}

Outcome query_rmp(State& state, const Call<prm::QueryRmpIn, prm::QueryRmpOut>& call) {
  const auto named = named_srq(state, call.in.get<prm::QueryRmpIn::rmpn>(), call.uid, kSrqTypeRmp);
  if (!named) return refuse(named.error());
  const auto [record, srq] = *named;
  const auto rmpc = call.out.sub<prm::QueryRmpOut::rmp_context>();
  std::memcpy(rmpc.data(), record->rmpc.data(), Rmpc::size);
  SharedGuard guard(srq->lock, state.nic.me());
  rmpc.set<Rmpc::state>(srq->state == kSrqGood ? prm::RmpState::rdy : prm::RmpState::err);
  read_back_wq(*srq, rmpc.sub<Rmpc::wq>());
  return {};
}

Outcome arm_rq(State& state, const Call<prm::ArmRqIn, prm::ArmRqOut>& call) {
  const auto what = static_cast<prm::ArmRqOpMod>(call.in.get<prm::ArmRqIn::op_mod>());
  if (what != prm::ArmRqOpMod::srq && what != prm::ArmRqOpMod::xrq) return refuse(Syndrome::arm_rq_op_mod);
  const auto number = call.in.get<prm::ArmRqIn::srq_number>();
  const auto named = named_srq(state, number, call.uid, what == prm::ArmRqOpMod::srq ? kSrqTypeSrq : kSrqTypeXrq);
  if (!named) return refuse(named.error());
  return set_srq_limit(state, *named->context, call.in.get<prm::ArmRqIn::lwm>());
}

Outcome modify_rmp(State& state, const Call<prm::ModifyRmpIn, prm::ModifyRmpOut>& call) {
  using In = prm::ModifyRmpIn;
  const auto named = named_srq(state, call.in.get<In::rmpn>(), call.uid, kSrqTypeRmp);
  if (!named) return refuse(named.error());
  const auto current = named->context->state == kSrqGood ? prm::RmpState::rdy : prm::RmpState::err;
  if (call.in.get<In::rmp_state>() != current) return refuse(Syndrome::rmp_current_state);
  const auto rmpc = call.in.sub<In::ctx>();
  const auto wanted = rmpc.get<Rmpc::state>();
  if (wanted != prm::RmpState::rdy && wanted != prm::RmpState::err) return refuse(Syndrome::rmp_new_state);
  if (current == prm::RmpState::err && wanted == prm::RmpState::rdy) return refuse(Syndrome::rmp_new_state);
  if (call.in.sub<In::bitmask>().get<prm::RmpBitmask::lwm>())
    if (auto ok = set_srq_limit(state, *named->context, rmpc.sub<Rmpc::wq>().get<Wq::lwm>()); !ok) return ok;
  if (wanted == prm::RmpState::err) {
    SharedGuard guard(named->context->lock, state.nic.me());
    named->context->state = kSrqError;
  }
  return {};
}

Outcome destroy_srq(State& state, const Call<prm::DestroySrqIn, prm::DestroySrqOut>& call) {
  return destroy_shared_queue(state, call.in.get<prm::DestroySrqIn::srqn>(), call.uid, kSrqTypeSrq);
}
Outcome destroy_rmp(State& state, const Call<prm::DestroyRmpIn, prm::DestroyRmpOut>& call) {
  return destroy_shared_queue(state, call.in.get<prm::DestroyRmpIn::rmpn>(), call.uid, kSrqTypeRmp);
}

}  // namespace

void add_srq_commands(Registry& r) {
  using prm::Opcode;
  // It knows page lists only, and those are the driver's: user contexts name memory by UMEMs.
  r.add<create_srq>(Opcode::create_srq, "CREATE_SRQ", prm::Pas::size, Access::privileged);
  r.add<query_srq>(Opcode::query_srq, "QUERY_SRQ");
  r.add<arm_rq>(Opcode::arm_rq, "ARM_RQ");
  r.add<destroy_srq>(Opcode::destroy_srq, "DESTROY_SRQ");
  r.add<create_rmp>(Opcode::create_rmp, "CREATE_RMP", prm::Pas::size);
  r.add<query_rmp>(Opcode::query_rmp, "QUERY_RMP");
  r.add<modify_rmp>(Opcode::modify_rmp, "MODIFY_RMP");
  r.add<destroy_rmp>(Opcode::destroy_rmp, "DESTROY_RMP");
}

}  // namespace verbena::device::command
