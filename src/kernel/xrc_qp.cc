// XRC queue pairs: targets, which have no rings, belong to no program and may have many handles; and what initiators have in
// their contexts beside what all have.
#include <rdma/ib_user_verbs.h>

#include <cerrno>

#include "kernel/command.h"
#include "kernel/method.h"
#include "kernel/qp.h"
#include "prm/misc.h"

namespace verbena::kernel {
namespace {

Qp* add_handle(File& file, const XrcTarget& params, std::shared_ptr<TargetQp> target) {
  auto qp = std::make_unique<Qp>();
  qp->qpn = target->qpn;
  qp->type = QpType::xrc_tgt;
  qp->state = target->state;
  qp->sq_sig_all = params.sq_sig_all;
  qp->user_handle = params.user_handle;
  qp->xrcd = params.xrcd;
  qp->target = std::move(target);
  ++qp->xrcd->users;
  file.node().events().add(EventSource::qp, qp->qpn, {nullptr, params.async, params.user_handle, 0, 0});
  Qp* handle = qp.get();
  file.objects().add(std::move(qp));
  return handle;
}

}  // namespace

int fill_initiator(File& file, const prm::View<prm::Qpc>& qpc) {
  XrcDefaults driver;
  if (int error = file.node().xrc().defaults(file.node(), &driver)) return error;
  qpc.set<prm::Qpc::rq_type>(prm::RqType::srq_rmp_xrq);
  qpc.set<prm::Qpc::cqn_rcv>(driver.cqn).set<prm::Qpc::srqn_rmpn_xrqn>(driver.srqn);
  qpc.set<prm::Qpc::xrcd>(driver.initiator_xrcd);
  return 0;
}

int create_target_qp(File& file, const XrcTarget& params, Qp** out) {
  using prm::Qpc;
  XrcDefaults driver;
  if (int error = file.node().xrc().defaults(file.node(), &driver)) return error;
  Command<prm::CreateQpIn, prm::CreateQpOut> command(prm::Opcode::create_qp);
  const auto qpc = command.in().sub<prm::CreateQpIn::qpc>();
  qpc.set<Qpc::st>(prm::QpServiceType::xrc).set<Qpc::pm_state>(prm::PathMigrationState::migrated);
  qpc.set<Qpc::pd>(driver.pdn).set<Qpc::rq_type>(prm::RqType::srq_rmp_xrq).set<Qpc::no_sq>(1);
  qpc.set<Qpc::cqn_rcv>(driver.cqn).set<Qpc::cqn_snd>(driver.cqn).set<Qpc::srqn_rmpn_xrqn>(driver.srqn);
  qpc.set<Qpc::xrcd>(params.xrcd->xrcdn).set<Qpc::user_index>(prm::kNoUserIndex);
  if (int error = command.run(file.device())) return error;
  auto target = std::make_shared<TargetQp>();
  target->qpn = command.out().get<prm::CreateQpOut::qpn>();
  target->xrcdn = params.xrcd->xrcdn;
  file.node().xrc().add_target(target);
  *out = add_handle(file, params, std::move(target));
  return 0;
}

int destroy_target_qp(File& file, Qp& qp) {
  const bool elsewhere = qp.target->elsewhere;
  if (file.node().xrc().leave_target(qp.target) && !elsewhere) {
    Command<prm::Qp2rstIn, prm::Qp2rstOut> reset(prm::Opcode::qp_2rst);
    reset.in().set<prm::Qp2rstIn::qpn>(qp.qpn);
    reset.run(file.device());
    Command<prm::DestroyQpIn, prm::DestroyQpOut> destroy(prm::Opcode::destroy_qp);
    destroy.in().set<prm::DestroyQpIn::qpn>(qp.qpn);
    destroy.run(file.device());
  }
  file.node().drain_events();
  qp.reported = file.node().events().remove(EventSource::qp, qp.qpn, &qp.user_handle);
  --qp.xrcd->users;
  return 0;
}

int write_open_qp(File& file, WriteCall& call) {
  const auto cmd = call.read<ib_uverbs_open_qp>();
  int error = 0;
  XrcTarget params;
  params.xrcd = file.find<Xrcd>(cmd.pd_handle, UVERBS_OBJECT_XRCD, &error);
  if (!params.xrcd) return EINVAL;
  if (static_cast<QpType>(cmd.qp_type) != QpType::xrc_tgt) return EINVAL;
  auto target = file.node().xrc().find_target(file.node(), cmd.qpn, params.xrcd->xrcdn);
  if (!target) return EINVAL;
  params.user_handle = cmd.user_handle;
  params.async = file.default_async();
  Qp* qp = add_handle(file, params, std::move(target));
  qp->opened = true;
  ib_uverbs_create_qp_resp response{};
  response.qpn = qp->qpn;
  response.qp_handle = qp->handle;
  call.write(&response, sizeof response);
  return 0;
}

}  // namespace verbena::kernel
