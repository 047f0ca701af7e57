// QUERY_QP: from the device's context to verbs attributes.
#include <rdma/ib_user_verbs.h>

#include <cerrno>
#include <mutex>

#include "kernel/address.h"
#include "kernel/command.h"
#include "kernel/method.h"
#include "kernel/qp.h"

namespace verbena::kernel {

QpState verbs_state(prm::QpState state) {
  switch (state) {
    case prm::QpState::rst: return QpState::reset;
    case prm::QpState::init: return QpState::init;
    case prm::QpState::rtr: return QpState::rtr;
    case prm::QpState::rts: return QpState::rts;
    case prm::QpState::sqer: return QpState::sqe;
    case prm::QpState::sq_drained:
    case prm::QpState::sqd: return QpState::sqd;
    default: return QpState::err;
  }
}

std::uint8_t verbs_migration(prm::PathMigrationState state) {
  constexpr std::uint8_t migrated = 0, rearm = 1, armed = 2;  // IB_MIG_*
  if (state == prm::PathMigrationState::armed) return armed;
  return state == prm::PathMigrationState::rearm ? rearm : migrated;
}

namespace {

// Of a raw packet QP: its queues know of none of the rest.
int query_raw(File& file, Qp& qp, WriteCall& call) {
  if (int error = query_raw_state(file, qp)) return error;
  ib_uverbs_query_qp_resp r{};
  r.qp_state = r.cur_qp_state = static_cast<std::uint8_t>(qp.state);
  r.max_recv_wr = qp.rq_entries;
  r.max_recv_sge = qp.rq_sge;
  r.max_inline_data = qp.max_inline;
  r.port_num = 1;
  r.sq_sig_all = qp.sq_sig_all;
  call.write(&r, sizeof r);
  return 0;
}

}  // namespace

int write_query_qp(File& file, WriteCall& call) {
  using prm::Qpc;
  int error = 0;
  Qp* qp = file.find<Qp>(call.read<ib_uverbs_query_qp>().qp_handle, UVERBS_OBJECT_QP, &error);
  if (!qp) return EINVAL;
  if (qp->table) return ENOSYS;
  if (qp->raw) return query_raw(file, *qp, call);
  if (qp->target && qp->target->elsewhere) return EOPNOTSUPP;
  Command<prm::QueryQpIn, prm::QueryQpOut> command(prm::Opcode::query_qp);
  command.in().set<prm::QueryQpIn::qpn>(qp->qpn);
  if ((error = command.run(file.device()))) return error;
  auto qpc = command.out().sub<prm::QueryQpOut::qpc>();
  auto path = qpc.sub<Qpc::primary_address_path>();
  qp->state = verbs_state(qpc.get<Qpc::state>());
  if (qp->target) {
    std::lock_guard shared(qp->target->lock);
    qp->target->state = qp->state;
  }

  ib_uverbs_query_qp_resp r{};
  const bool connected = qp->type != QpType::ud;
  const bool has_path = connected && qp->state != QpState::reset;  // from INIT on there is a port
  if (has_path) r.dest = to_abi(get_path(path, qp->port));
  r.max_recv_wr = qp->rq_entries;
  r.max_recv_sge = qp->rq_sge;
  r.max_inline_data = qp->max_inline;
  r.qkey = qpc.get<Qpc::q_key>();
  r.rq_psn = qpc.get<Qpc::next_rcv_psn>();
  r.sq_psn = qpc.get<Qpc::next_send_psn>();
  r.dest_qp_num = qpc.get<Qpc::remote_qpn>();
  r.qp_access_flags = (qpc.get<Qpc::rre>() ? Access::remote_read : 0) | (qpc.get<Qpc::rwe>() ? Access::remote_write : 0) |
                      (qpc.get<Qpc::rae>() ? Access::remote_atomic : 0);
  r.pkey_index = static_cast<std::uint16_t>(path.get<prm::Ads::pkey_index>());
  r.qp_state = r.cur_qp_state = static_cast<std::uint8_t>(qp->state);
  r.path_mtu = static_cast<std::uint8_t>(qpc.get<Qpc::mtu>());
  r.path_mig_state = verbs_migration(qpc.get<Qpc::pm_state>());
  r.sq_draining = qpc.get<Qpc::state>() == prm::QpState::sqd;
  r.max_rd_atomic = static_cast<std::uint8_t>(1u << qpc.get<Qpc::log_sra_max>());
  r.max_dest_rd_atomic = static_cast<std::uint8_t>(1u << qpc.get<Qpc::log_rra_max>());
  r.min_rnr_timer = static_cast<std::uint8_t>(qpc.get<Qpc::min_rnr_nak>());
  r.port_num = static_cast<std::uint8_t>(path.get<prm::Ads::vhca_port_num>());
  r.timeout = static_cast<std::uint8_t>(path.get<prm::Ads::ack_timeout>());
  r.retry_cnt = static_cast<std::uint8_t>(qpc.get<Qpc::retry_count>());
  r.rnr_retry = static_cast<std::uint8_t>(qpc.get<Qpc::rnr_retry>());
  r.sq_sig_all = qp->sq_sig_all;
  call.write(&r, sizeof r);
  return 0;
}

}  // namespace verbena::kernel
