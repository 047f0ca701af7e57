// mlx5dv: the way a connected QP's packets take: UDP source port and LAG port. Each is one command through the raw layer.

#include <utility>

#include "mlx5/devx/command.h"
#include "mlx5/devx/verbs_object.h"
#include "mlx5/export.h"
#include "prm/misc.h"
#include "prm/qp.h"
#include "prm/raw.h"

namespace {

using namespace verbena;
using namespace verbena::mlx5;

// RTS2RTS_QP with the one attribute that `fill` sets, as long as rdma-core's: with room for an extension it does not use.
template <class Fill>
int change_in_rts(ibv_qp* qp, Fill fill) {
  prm::Box<prm::Rts2rtsQpIn, prm::QpcExt::size> in;
  prm::Box<prm::Rts2rtsQpOut> out;
  in.set<prm::Rts2rtsQpIn::opcode>(prm::Opcode::rts2rts_qp);
  in.set<prm::Rts2rtsQpIn::qpn>(qp->qp_num);
  fill(in);
  const int error = modify_qp_by_command(qp, in.data(), in.size(), out.data(), prm::Rts2rtsQpOut::size);
  return command_errno(error, out.data());
}

// Of a raw packet QP it is its TIS that has a port.
bool sends_frames(const ibv_qp* qp) { return qp->qp_type == IBV_QPT_RAW_PACKET; }
bool has_lag_port(const ibv_qp* qp) {
  return sends_frames(qp) || qp->qp_type == IBV_QPT_RC || qp->qp_type == IBV_QPT_UD || qp->qp_type == IBV_QPT_UC ||
         qp->qp_type == IBV_QPT_XRC_SEND;
}

struct LagPorts {
  bool bonded = false;
  std::uint8_t active[2] = {};  // which port does the work of port 1, of port 2
};

int query_lag(Context* context, LagPorts* ports) {
  prm::Box<prm::QueryLagIn> in;
  prm::Box<prm::QueryLagOut> out;
  in.set<prm::QueryLagIn::opcode>(prm::Opcode::query_lag);
  const int error = general_command(context, in.data(), prm::QueryLagIn::size, out.data(), prm::QueryLagOut::size);
  if (error) return command_errno(error, out.data());
  const auto lag = std::as_const(out).view().sub<prm::QueryLagOut::ctx>();
  ports->bonded = lag.get<prm::Lagc::lag_state>() != 0;
  ports->active[0] = static_cast<std::uint8_t>(lag.get<prm::Lagc::tx_remap_affinity_1>());
  ports->active[1] = static_cast<std::uint8_t>(lag.get<prm::Lagc::tx_remap_affinity_2>());
  return 0;
}

int query_port_of(ibv_qp* qp, std::uint8_t* port) {
  prm::Box<prm::QueryQpIn> in;
  prm::Box<prm::QueryQpOut> out;
  in.set<prm::QueryQpIn::opcode>(prm::Opcode::query_qp);
  in.set<prm::QueryQpIn::qpn>(qp->qp_num);
  const int error = query_qp_by_command(qp, in.data(), prm::QueryQpIn::size, out.data(), prm::QueryQpOut::size);
  if (error) return command_errno(error, out.data());
  const auto qpc = std::as_const(out).view().sub<prm::QueryQpOut::qpc>();
  *port = static_cast<std::uint8_t>(qpc.get<prm::Qpc::lag_tx_port_affinity>());
  return 0;
}

int query_tis_port(ibv_qp* qp, std::uint8_t* port) {
  prm::Box<prm::QueryTisIn> in;
  prm::Box<prm::QueryTisOut> out;
  in.set<prm::QueryTisIn::opcode>(prm::Opcode::query_tis);
  in.set<prm::QueryTisIn::tisn>(qp_of(qp)->parts.tisn);
  const int error = query_qp_by_command(qp, in.data(), prm::QueryTisIn::size, out.data(), prm::QueryTisOut::size);
  if (error) return command_errno(error, out.data());
  const auto tis = std::as_const(out).view().sub<prm::QueryTisOut::tis_context>();
  *port = static_cast<std::uint8_t>(tis.get<prm::Tisc::lag_tx_port_affinity>());
  return 0;
}

int modify_tis_port(ibv_qp* qp, std::uint8_t port) {
  using In = prm::ModifyTisIn;
  prm::Box<In> in;
  prm::Box<prm::ModifyTisOut> out;
  in.set<In::opcode>(prm::Opcode::modify_tis).set<In::tisn>(qp_of(qp)->parts.tisn);
  in.sub<In::bitmask>().set<prm::ModifyTisBitmask::lag_tx_port_affinity>(1);
  in.sub<In::ctx>().set<prm::Tisc::lag_tx_port_affinity>(port);
  const int error = modify_qp_by_command(qp, in.data(), In::size, out.data(), prm::ModifyTisOut::size);
  return command_errno(error, out.data());
}

}  // namespace

extern "C" {

VERBENA_MLX5_EXPORT int mlx5dv_modify_qp_udp_sport(ibv_qp* qp, std::uint16_t udp_sport) {
  const Context* context = mlx5_context(qp->context);
  if (!context || (qp->qp_type != IBV_QPT_RC && qp->qp_type != IBV_QPT_UC)) return EOPNOTSUPP;
  if (qp->state != IBV_QPS_RTS || !context->hca.rts2rts_qp_udp_sport) return EOPNOTSUPP;
  return change_in_rts(qp, [&](auto& in) {
    using In = prm::Rts2rtsQpIn;
    in.template set<In::opt_param_mask_95_32>(prm::QpExtOptParam::udp_sport);
    const auto path = in.view().template sub<In::qpc>().template sub<prm::Qpc::primary_address_path>();
    path.template set<prm::Ads::udp_sport>(udp_sport);
  });
}

VERBENA_MLX5_EXPORT int mlx5dv_query_qp_lag_port(ibv_qp* qp, std::uint8_t* port, std::uint8_t* active_port) {
  Context* context = mlx5_context(qp->context);
  if (!context || context->hca.num_lag_ports <= 1 || !has_lag_port(qp)) return EOPNOTSUPP;
  LagPorts ports;
  if (int error = query_lag(context, &ports)) return error;
  if (!ports.bonded && !context->hca.lag_tx_port_affinity) return EOPNOTSUPP;
  if (int error = sends_frames(qp) ? query_tis_port(qp, port) : query_port_of(qp, port)) return error;
  if (*port != 1 && *port != 2) return EOPNOTSUPP;
  *active_port = ports.active[*port - 1];
  return 0;
}

VERBENA_MLX5_EXPORT int mlx5dv_modify_qp_lag_port(ibv_qp* qp, std::uint8_t port) {
  // A device that is not in LAG mode might grant the change and do nothing.
  std::uint8_t configured = 0, active = 0;
  if (int error = mlx5dv_query_qp_lag_port(qp, &configured, &active)) return error;
  if (sends_frames(qp)) return modify_tis_port(qp, port);
  if (qp->qp_type == IBV_QPT_XRC_SEND) return EOPNOTSUPP;  // has a port that can only be asked for
  if (!context_of(qp->context)->hca.rts2rts_lag_tx_port_affinity || qp->state != IBV_QPS_RTS) return EOPNOTSUPP;
  return change_in_rts(qp, [&](auto& in) {
    using In = prm::Rts2rtsQpIn;
    in.template set<In::opt_param_mask>(prm::QpOptParam::lag_tx_affinity);
    in.view().template sub<In::qpc>().template set<prm::Qpc::lag_tx_port_affinity>(port);
  });
}

}  // extern "C"
