// CREATE_QP, DESTROY_QP, QUERY_QP and the commands of the state machine.
//
//              RST2INIT      INIT2RTR      RTR2RTS
//      RST  ----------> INIT --------> RTR --------> RTS <---- SQERR2RTS --- SQER
//       ^               INIT2INIT                    RTS2RTS
//       |                                            RTS2SQD -> SQD -> SQD_RTS -> RTS
//       +-- 2RST_QP, from every state; 2ERR_QP leads from every state to ERR
//
// What each transition takes stands in qp_attributes.cc; creation in qp_create.cc.
#include <cstring>

#include "device/command/dispatcher.h"
#include "device/command/families.h"
#include "device/command/qp_attributes.h"
#include "device/command/qos.h"
#include "device/command/qp_objects.h"
#include "device/command/queues.h"
#include "device/command/state.h"
#include "device/shared/counters.h"
#include "prm/qp.h"

namespace verbena::device::command {
namespace {

using prm::Qpc;

QpState state_of(const QpContext& qp) { return static_cast<QpState>(qp.state.load(std::memory_order_acquire)); }

// Runs the transition of `opcode` with the context in the request, and its extension if there is one.
Outcome transit(State& state, prm::Opcode opcode, std::uint32_t qpn, Attributes mask, const prm::ConstView<Qpc>& qpc,
                const std::byte* extension, std::uint16_t uid) {
  const Transition& t = *find_transition(opcode);
  const auto named = named_qp(state, qpn, uid);
  if (!named) return refuse(named.error());
  const auto [record, qp] = *named;
  if (state_of(*qp) != t.from) return refuse(Syndrome::qp_state);
  const auto& set = t.set(qp->type);
  if (mask & ~(set.optional | set.required)) return refuse(Syndrome::qp_opt_param_mask);
  const Attributes taken = set.required | (set.optional & mask);
  if (auto ok = check_attributes(state, qp->type, qpc, taken, uid); !ok) return ok;
  if (taken & attr::leaf)
    if (auto ok = take_leaves(state, *record, *qp, extension, uid); !ok) return ok;

  copy_attributes(qpc, record->context.view(), taken);
  record->context.view().set<Qpc::state>(static_cast<prm::QpState>(t.to));
  const auto stored = std::as_const(record->context).view();
  state.engine.set_state(
      *qp, t.to,
      [&](QpContext& context) {
        if (taken & attr::Opt::counter_set_id) settle_counts(context, state.nic.segment(), &state.nic.slice());
        apply_attributes(stored, taken, context);
        if (taken & attr::leaf) apply_leaves(*record, context);
      },
      t.to == QpState::sqd);
  return {};
}

template <class In, class Out>
Outcome transition(State& state, const Call<In, Out>& call, prm::Opcode opcode) {
  Attributes mask = call.in.template get<typename In::opt_param_mask>();
  const std::byte* extension = nullptr;
  if constexpr (requires { typename In::opt_param_mask_95_32; }) {
    const std::uint64_t more = call.in.template get<typename In::opt_param_mask_95_32>();
    if (more & ~(prm::QpExtOptParam::udp_sport | prm::QpExtOptParam::qos_queue_group_id))
      return refuse(Syndrome::qp_ext_opt_param_mask);
    if (more & prm::QpExtOptParam::udp_sport) mask |= attr::udp_sport;
    if (more & prm::QpExtOptParam::qos_queue_group_id) mask |= attr::leaf;
    if (call.in.template get<typename In::qpc_ext>() && call.tail().size() >= prm::QpcExt::size)
      extension = call.tail().data();
  }
  return transit(state, opcode, call.in.template get<typename In::qpn>(), mask,
                 call.in.template sub<typename In::qpc>(), extension, call.uid);
}

Outcome rst2init_qp(State& state, const Call<prm::Rst2initQpIn, prm::Rst2initQpOut>& call) {
  return transition(state, call, prm::Opcode::rst2init_qp);
}
Outcome init2init_qp(State& state, const Call<prm::Init2initQpIn, prm::Init2initQpOut>& call) {
  return transition(state, call, prm::Opcode::init2init_qp);
}
Outcome init2rtr_qp(State& state, const Call<prm::Init2rtrQpIn, prm::Init2rtrQpOut>& call) {
  return transition(state, call, prm::Opcode::init2rtr_qp);
}
Outcome rtr2rts_qp(State& state, const Call<prm::Rtr2rtsQpIn, prm::Rtr2rtsQpOut>& call) {
  return transition(state, call, prm::Opcode::rtr2rts_qp);
}
Outcome rts2rts_qp(State& state, const Call<prm::Rts2rtsQpIn, prm::Rts2rtsQpOut>& call) {
  return transition(state, call, prm::Opcode::rts2rts_qp);
}
Outcome sqerr2rts_qp(State& state, const Call<prm::Sqerr2rtsQpIn, prm::Sqerr2rtsQpOut>& call) {
  return transition(state, call, prm::Opcode::sqerr2rts_qp);
}
Outcome sqd_rts_qp(State& state, const Call<prm::Sqd2rtsQpIn, prm::Sqd2rtsQpOut>& call) {
  return transition(state, call, prm::Opcode::sqd_rts_qp);
}
// The two commands of early firmware have the layout of SQD_RTS_QP.
Outcome rts2sqd_qp(State& state, const Call<prm::Sqd2rtsQpIn, prm::Sqd2rtsQpOut>& call) {
  return transition(state, call, prm::Opcode::rts2sqd_qp);
}
Outcome sqd2sqd_qp(State& state, const Call<prm::Sqd2rtsQpIn, prm::Sqd2rtsQpOut>& call) {
  return transition(state, call, prm::Opcode::sqd2sqd_qp);
}

Outcome qp_2err(State& state, const Call<prm::Qp2errIn, prm::Qp2errOut>& call) {
  const auto named = named_qp(state, call.in.get<prm::Qp2errIn::qpn>(), call.uid);
  if (!named) return refuse(named.error());
  state.engine.move_to_error(*named->qp);
  return {};
}

Outcome qp_2rst(State& state, const Call<prm::Qp2rstIn, prm::Qp2rstOut>& call) {
  const auto named = named_qp(state, call.in.get<prm::Qp2rstIn::qpn>(), call.uid);
  if (!named) return refuse(named.error());
  leave_leaves(state, *named->record);
  state.engine.set_state(*named->qp, QpState::rst,
                         [&](QpContext& context) {
                           context.shaped = 0;
                           apply_leaves(*named->record, context);
                         });
  return {};
}

// What the device changes while it works.
void read_back(const QpContext& qp, prm::View<Qpc> qpc) {
  const auto current = state_of(qp);
  const bool drained = qp.sq_head == qp.sq_done;
  qpc.set<Qpc::state>(current != QpState::sqd ? static_cast<prm::QpState>(current)
                      : drained               ? prm::QpState::sq_drained
                                              : prm::QpState::sqd);
  qpc.set<Qpc::next_send_psn>(qp.next_psn & 0xffffff);
  qpc.set<Qpc::last_acked_psn>((qp.una_psn - 1) & 0xffffff);
  qpc.set<Qpc::ssn>(qp.ssn & 0xffffff);
  qpc.set<Qpc::next_rcv_psn>(qp.epsn & 0xffffff);
  qpc.set<Qpc::rmsn>(qp.msn & 0xffffff);
  qpc.set<Qpc::cur_retry_count>(qp.retries_left);
  qpc.set<Qpc::cur_rnr_retry>(qp.rnr_left);
  qpc.set<Qpc::hw_sq_wqebb_counter>(qp.sq_head);
  qpc.set<Qpc::hw_rq_counter>(qp.rq_head);
  const auto receive = read_record(qp.dbrec_va), send = read_record(qp.dbrec_va + 4);
  if (receive && send) {
    qpc.set<Qpc::sw_rq_counter>(*receive & 0xffff);
    qpc.set<Qpc::sw_sq_wqebb_counter>(*send & 0xffff);
  }
}

Outcome query_qp(State& state, const Call<prm::QueryQpIn, prm::QueryQpOut>& call) {
  const auto named = named_qp(state, call.in.get<prm::QueryQpIn::qpn>(), call.uid);
  if (!named) return refuse(named.error());
  const auto [record, qp] = *named;
  const auto qpc = call.out.sub<prm::QueryQpOut::qpc>();
  std::memcpy(qpc.data(), record->context.data(), Qpc::size);
  {
    SharedGuard sq(qp->sq_lock, state.nic.me());
    SharedGuard rx(qp->rx_lock, state.nic.me());
    read_back(*qp, qpc);
  }
  list_pages(record->backing, call.output.subspan(prm::QueryQpOut::size));
  return {};
}

Outcome destroy_qp(State& state, const Call<prm::DestroyQpIn, prm::DestroyQpOut>& call) {
  const auto number = call.in.get<prm::DestroyQpIn::qpn>();
  const auto named = named_qp(state, number, call.uid);
  if (!named) return refuse(named.error());
  if (!named->record->groups.empty()) return refuse(Syndrome::qp_attached);
  if (named->record->uses) return refuse(Syndrome::qp_busy);
  release_parts(state, *named->record);
  state.engine.remove(*named->qp);
  state.nic.free_qp(*named->qp);
  state.qps.erase(number);
  return {};
}

}  // namespace

Maybe<NamedQp> named_qp(State& state, std::uint32_t qpn, std::uint16_t uid) {
  QpRecord* record = state.qps.find(qpn);
  QpContext* qp = state.nic.own_qp(qpn);
  if (!record || !qp || !may_use(*record, uid)) return refuse(Syndrome::qp_missing);
  return NamedQp{record, qp};
}

void add_qp_commands(Registry& r) {
  using prm::Opcode;
  r.add<create_qp>(Opcode::create_qp, "CREATE_QP", prm::Pas::size);
  r.add<destroy_qp>(Opcode::destroy_qp, "DESTROY_QP");
  r.add<query_qp>(Opcode::query_qp, "QUERY_QP");
  r.add<rst2init_qp>(Opcode::rst2init_qp, "RST2INIT_QP");
  r.add<init2init_qp>(Opcode::init2init_qp, "INIT2INIT_QP", prm::QpcExt::size);
  r.add<init2rtr_qp>(Opcode::init2rtr_qp, "INIT2RTR_QP");
  r.add<rtr2rts_qp>(Opcode::rtr2rts_qp, "RTR2RTS_QP");
  r.add<rts2rts_qp>(Opcode::rts2rts_qp, "RTS2RTS_QP", prm::QpcExt::size);
  r.add<sqerr2rts_qp>(Opcode::sqerr2rts_qp, "SQERR2RTS_QP");
  r.add<rts2sqd_qp>(Opcode::rts2sqd_qp, "RTS2SQD_QP");
  r.add<sqd2sqd_qp>(Opcode::sqd2sqd_qp, "SQD2SQD_QP");
  r.add<sqd_rts_qp>(Opcode::sqd_rts_qp, "SQD_RTS_QP");
  r.add<qp_2err>(Opcode::qp_2err, "2ERR_QP");
  r.add<qp_2rst>(Opcode::qp_2rst, "2RST_QP");
}

}  // namespace verbena::device::command
