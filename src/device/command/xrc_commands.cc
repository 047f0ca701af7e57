// Receive queues with a completion queue of their own: XRC SRQ, to which packets are addressed, and XRQ, of which there is
// the shell only (no tag matching, no NVMe).
#include <cstring>

#include "device/command/dispatcher.h"
#include "device/command/families.h"
#include "device/command/srq_objects.h"
#include "prm/misc.h"
#include "prm/srq.h"

namespace verbena::device::command {
namespace {

using prm::Wq;
using prm::XrcSrqc;
using prm::Xrqc;

Outcome create_xrc_srq(State& state, const Call<prm::CreateXrcSrqIn, prm::CreateXrcSrqOut>& call) {
  using In = prm::CreateXrcSrqIn;
  const auto context = call.in.sub<In::xrc_srq_context_entry>();
  if (context.get<XrcSrqc::wq_signature>()) return refuse(Syndrome::srq_signature);
  if (context.get<XrcSrqc::basic_cyclic_rcv_wqe>()) return refuse(Syndrome::xrc_srq_cyclic);
  if (!context.get<XrcSrqc::cqn>()) return refuse(Syndrome::xrc_srq_no_cq);
  if (!context.get<XrcSrqc::xrcd>()) return refuse(Syndrome::xrcd_missing);
  SrqShape shape{.type = kSrqTypeXrc,
                 .cyclic = false,
                 .pdn = context.get<XrcSrqc::pd>(),
                 .log_size = context.get<XrcSrqc::log_xrc_srq_size>(),
                 .log_stride = context.get<XrcSrqc::log_rq_stride>() + 4,
                 .limit = context.get<XrcSrqc::lwm>(),
                 .dbr_addr = context.get<XrcSrqc::dbr_addr>(),
                 .dbr_umem_valid = context.get<XrcSrqc::dbr_umem_valid>() != 0,
                 .dbr_umem_id = context.get<XrcSrqc::dbr_umem_id>(),
                 .memory = {.umem_valid = call.in.get<In::xrc_srq_umem_valid>() != 0,
                            .umem_id = call.in.get<In::xrc_srq_umem_id>(),
                            .umem_offset = call.in.get<In::xrc_srq_umem_offset>(),
                            .log_page_size = context.get<XrcSrqc::log_page_size>(),
                            .page_offset = context.get<XrcSrqc::page_offset>(),
                            .pages = call.tail()}};
  shape.cqn = context.get<XrcSrqc::cqn>();
  shape.xrcd = context.get<XrcSrqc::xrcd>();
  shape.user_index = context.get<XrcSrqc::user_index>();
  const auto made = create_shared_queue(state, shape, call.uid);
  if (!made) return refuse(made.error());
  // Completions name it by its number if they are to name it at all: CQEs of version 0, or because the program says so.
  if (context.get<XrcSrqc::user_index_equal_xrc_srqn>() || shape.user_index == prm::kNoUserIndex)
    made->context->user_index = made->context->srqn;
  std::memcpy(made->record->xrc_srqc.data(), context.data(), XrcSrqc::size);
  call.out.set<prm::CreateXrcSrqOut::xrc_srqn>(made->context->srqn);
  state.nic.publish(*made->context);
  return {};
}

Outcome query_xrc_srq(State& state, const Call<prm::QueryXrcSrqIn, prm::QueryXrcSrqOut>& call) {
  const auto named = named_srq(state, call.in.get<prm::QueryXrcSrqIn::xrc_srqn>(), call.uid, kSrqTypeXrc);
  if (!named) return refuse(named.error());
  const auto [record, srq] = *named;
  const auto context = call.out.sub<prm::QueryXrcSrqOut::xrc_srq_context_entry>();
  std::memcpy(context.data(), record->xrc_srqc.data(), XrcSrqc::size);
  {
    SharedGuard guard(srq->lock, state.nic.me());
    context.set<XrcSrqc::state>(srq->state == kSrqGood ? prm::SrqState::good : prm::SrqState::error);
    context.set<XrcSrqc::lwm>(srq->limit.load(std::memory_order_relaxed));
    context.set<XrcSrqc::wqe_cnt>(waiting_wqes(*srq));
  }
  list_pages(record->backing, call.output.subspan(prm::QueryXrcSrqOut::size));
  return {};
}

Outcome arm_xrc_srq(State& state, const Call<prm::ArmXrcSrqIn, prm::ArmXrcSrqOut>& call) {
  if (static_cast<prm::ArmRqOpMod>(call.in.get<prm::ArmXrcSrqIn::op_mod>()) != prm::ArmRqOpMod::srq)
    return refuse(Syndrome::arm_xrc_srq_op_mod);
  const auto named = named_srq(state, call.in.get<prm::ArmXrcSrqIn::xrc_srqn>(), call.uid, kSrqTypeXrc);
  if (!named) return refuse(named.error());
  return set_srq_limit(state, *named->context, call.in.get<prm::ArmXrcSrqIn::lwm>());
}

Outcome destroy_xrc_srq(State& state, const Call<prm::DestroyXrcSrqIn, prm::DestroyXrcSrqOut>& call) {
  return destroy_shared_queue(state, call.in.get<prm::DestroyXrcSrqIn::xrc_srqn>(), call.uid, kSrqTypeXrc);
}

Outcome create_xrq(State& state, const Call<prm::CreateXrqIn, prm::CreateXrqOut>& call) {
  const auto context = call.in.sub<prm::CreateXrqIn::xrq_context>();
  const auto wq = context.sub<Xrqc::wq>();
  if (context.get<Xrqc::topology>() != prm::XrqTopology::none || context.get<Xrqc::offload>() != prm::XrqOffload::none)
    return refuse(Syndrome::xrq_offload);
  if (wq.get<Wq::wq_type>() != prm::WqType::linked_list) return refuse(Syndrome::rmp_wq_type);
  if (wq.get<Wq::wq_signature>()) return refuse(Syndrome::srq_signature);
  if (!context.get<Xrqc::cqn>()) return refuse(Syndrome::xrc_srq_no_cq);
  SrqShape shape = shape_of(wq, kSrqTypeXrq, call.tail());
  shape.cqn = context.get<Xrqc::cqn>();
  shape.user_index = context.get<Xrqc::user_index>();
  const auto made = create_shared_queue(state, shape, call.uid);
  if (!made) return refuse(made.error());
  std::memcpy(made->record->xrqc.data(), context.data(), Xrqc::size);
  call.out.set<prm::CreateXrqOut::xrqn>(made->context->srqn);
  state.nic.publish(*made->context);
  return {};
}

Outcome query_xrq(State& state, const Call<prm::QueryXrqIn, prm::QueryXrqOut>& call) {
  const auto named = named_srq(state, call.in.get<prm::QueryXrqIn::xrqn>(), call.uid, kSrqTypeXrq);
  if (!named) return refuse(named.error());
  const auto [record, srq] = *named;
  const auto context = call.out.sub<prm::QueryXrqOut::xrq_context>();
  std::memcpy(context.data(), record->xrqc.data(), Xrqc::size);
  SharedGuard guard(srq->lock, state.nic.me());
  context.set<Xrqc::state>(srq->state == kSrqGood ? prm::SrqState::good : prm::SrqState::error);
  read_back_wq(*srq, context.sub<Xrqc::wq>());
  return {};
}

Outcome arm_xrq(State& state, const Call<prm::ArmXrqIn, prm::ArmXrqOut>& call) {
  const auto named = named_srq(state, call.in.get<prm::ArmXrqIn::xrqn>(), call.uid, kSrqTypeXrq);
  if (!named) return refuse(named.error());
  return set_srq_limit(state, *named->context, call.in.get<prm::ArmXrqIn::lwm>());
}

Outcome destroy_xrq(State& state, const Call<prm::DestroyXrqIn, prm::DestroyXrqOut>& call) {
  return destroy_shared_queue(state, call.in.get<prm::DestroyXrqIn::xrqn>(), call.uid, kSrqTypeXrq);
}

}  // namespace

void add_xrc_commands(Registry& r) {
  using prm::Opcode;
  r.add<create_xrc_srq>(Opcode::create_xrc_srq, "CREATE_XRC_SRQ", prm::Pas::size);
  r.add<query_xrc_srq>(Opcode::query_xrc_srq, "QUERY_XRC_SRQ");
  r.add<arm_xrc_srq>(Opcode::arm_xrc_srq, "ARM_XRC_SRQ");
  r.add<destroy_xrc_srq>(Opcode::destroy_xrc_srq, "DESTROY_XRC_SRQ");
  r.add<create_xrq>(Opcode::create_xrq, "CREATE_XRQ", prm::Pas::size);
  r.add<query_xrq>(Opcode::query_xrq, "QUERY_XRQ");
  r.add<arm_xrq>(Opcode::arm_xrq, "ARM_XRQ");
  r.add<destroy_xrq>(Opcode::destroy_xrq, "DESTROY_XRQ");
}

}  // namespace verbena::device::command
