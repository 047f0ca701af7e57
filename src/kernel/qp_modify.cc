// MODIFY_QP: checks as ib_uverbs and mlx5_ib make them, then one command of the device's state machine.
#include <rdma/ib_user_verbs.h>
#include <rdma/mlx5-abi.h>

#include <bit>
#include <cerrno>
#include <mutex>
#include <optional>

#include "kernel/address.h"
#include "kernel/command.h"
#include "kernel/method.h"
#include "kernel/qp.h"
#include "kernel/qp_state.h"

namespace verbena::kernel {
namespace {

using A = QpAttr;
using Opt = prm::QpOptParam;

constexpr std::uint32_t kPsnMask = 0xffffff;
constexpr std::uint32_t kAckRequestFrequency = 8;

// The command of a transition, and which optional parameters it takes for RC and XRC, for UC, and for UD.
struct Edge {
  QpState from, to;
  prm::Opcode opcode;
  std::uint32_t rc, uc, ud;
};
constexpr std::uint32_t kAccessBits = Opt::rre | Opt::rae | Opt::rwe;
constexpr Edge kEdges[] = {
    {QpState::reset, QpState::init, prm::Opcode::rst2init_qp, 0, 0, 0},
    {QpState::init, QpState::init, prm::Opcode::init2init_qp, kAccessBits | Opt::pkey_index | Opt::primary_port,
     Opt::rwe | Opt::pkey_index | Opt::primary_port, Opt::pkey_index | Opt::q_key | Opt::primary_port},
    {QpState::init, QpState::rtr, prm::Opcode::init2rtr_qp, Opt::alt_addr_path | kAccessBits | Opt::pkey_index,
     Opt::alt_addr_path | Opt::rwe | Opt::pkey_index, Opt::pkey_index | Opt::q_key},
    {QpState::rtr, QpState::rts, prm::Opcode::rtr2rts_qp,
     Opt::alt_addr_path | kAccessBits | Opt::pm_state | Opt::rnr_timeout, Opt::alt_addr_path | Opt::rwe | Opt::pm_state,
     Opt::q_key},
    {QpState::rts, QpState::rts, prm::Opcode::rts2rts_qp, kAccessBits | Opt::rnr_timeout | Opt::pm_state | Opt::alt_addr_path,
     Opt::rwe | Opt::pm_state | Opt::alt_addr_path, Opt::q_key | Opt::srqn | Opt::cqn_rcv},
    {QpState::sqe, QpState::rts, prm::Opcode::sqerr2rts_qp, kAccessBits | Opt::rnr_timeout, Opt::rwe, Opt::q_key},
    {QpState::sqd, QpState::rts, prm::Opcode::sqd_rts_qp, kAccessBits | Opt::rnr_timeout, Opt::rwe, Opt::q_key},
};

std::optional<Edge> edge_of(QpState from, QpState to) {
  if (to == QpState::reset) return Edge{from, to, prm::Opcode::qp_2rst, 0, 0, 0};
  if (to == QpState::err) return Edge{from, to, prm::Opcode::qp_2err, 0, 0, 0};
  for (const Edge& edge : kEdges)
    if (edge.from == from && edge.to == to) return edge;
  // mlx5 has no command to drain a send queue.
  return std::nullopt;
}

std::uint32_t optional_params(std::uint32_t mask) {
  std::uint32_t out = 0;
  if (mask & A::access_flags) out |= kAccessBits;
  if (mask & A::pkey_index) out |= Opt::pkey_index;
  if (mask & A::port) out |= Opt::primary_port;
  if (mask & A::qkey) out |= Opt::q_key;
  if (mask & A::av) out |= Opt::primary_addr_path;
  if (mask & A::timeout) out |= Opt::ack_timeout;
  if (mask & A::retry_cnt) out |= Opt::retry_count;
  if (mask & A::rnr_retry) out |= Opt::rnr_retry;
  if (mask & A::min_rnr_timer) out |= Opt::rnr_timeout;
  if (mask & A::max_qp_rd_atomic) out |= Opt::sra_max;
  if (mask & A::max_dest_rd_atomic) out |= Opt::rra_max | Opt::rae | Opt::rre | Opt::rwe;
  if (mask & A::path_mig_state) out |= Opt::pm_state;
  return out;
}

// Port and state fields, which are checked before the QP's own rules.
int check_ports(const Qp& qp, const ib_uverbs_modify_qp& cmd) {
  if (cmd.attr_mask & A::port && cmd.port_num != 1) return EINVAL;
  if (cmd.attr_mask & A::av) {
    const std::uint8_t port = cmd.attr_mask & A::port ? cmd.port_num : qp.port;
    if (cmd.dest.port_num != port) return EINVAL;
  }
  // Alternate paths are for InfiniBand links.
  if (cmd.attr_mask & A::alt_path) return EINVAL;
  constexpr auto last = static_cast<std::uint8_t>(QpState::err);
  if (cmd.attr_mask & A::cur_state && cmd.cur_qp_state > last) return EINVAL;
  return cmd.attr_mask & A::state && cmd.qp_state > last ? EINVAL : 0;
}

int check_ranges(const Caps& caps, const ib_uverbs_modify_qp& cmd) {
  const std::uint32_t mask = cmd.attr_mask;
  if (mask & A::pkey_index && cmd.pkey_index >= caps.pkey_table_size) return EINVAL;
  if (mask & A::max_qp_rd_atomic && cmd.max_rd_atomic > 1u << caps.log_max_ra_res_qp) return EINVAL;
  if (mask & A::max_dest_rd_atomic && cmd.max_dest_rd_atomic > 1u << caps.log_max_ra_req_qp) return EINVAL;
  if (mask & A::path_mtu && (cmd.path_mtu < 1 || cmd.path_mtu > 5)) return EINVAL;
  if (mask & A::dest_qpn && cmd.dest_qp_num > 0xffffff) return EINVAL;
  if (mask & A::timeout && cmd.timeout > 31) return EINVAL;
  if (mask & A::min_rnr_timer && cmd.min_rnr_timer > 31) return EINVAL;
  if (mask & A::retry_cnt && cmd.retry_cnt > 7) return EINVAL;
  if (mask & A::rnr_retry && cmd.rnr_retry > 7) return EINVAL;
  return 0;
}

void set_access(const prm::View<prm::Qpc>& qpc, const Caps& caps, const Qp& qp, const ib_uverbs_modify_qp& cmd) {
  std::uint32_t access = cmd.attr_mask & A::access_flags ? cmd.qp_access_flags : qp.access;
  const unsigned depth = cmd.attr_mask & A::max_dest_rd_atomic ? cmd.max_dest_rd_atomic : qp.dest_rd_atomic;
  // Without responder resources, neither reads nor atomics can be served.
  if (!depth) access &= Access::remote_write;
  qpc.set<prm::Qpc::rre>(access & Access::remote_read ? 1 : 0);
  qpc.set<prm::Qpc::rwe>(access & Access::remote_write ? 1 : 0);
  if (!(access & Access::remote_atomic)) return;
  qpc.set<prm::Qpc::rae>(1);
  // As get_atomic_mode() of mlx5_ib: what the device has beyond the specification is on.
  qpc.set<prm::Qpc::atomic_mode>(caps.extended_atomics ? prm::AtomicMode::up_to_8b : prm::AtomicMode::ib_spec);
}

// Depths that are no power of two are rounded up.
std::uint32_t log2_of(std::uint32_t v) { return static_cast<std::uint32_t>(std::bit_width(v - 1)); }

int fill_path(const prm::View<prm::Qpc>& qpc, File& file, const Qp& qp, const ib_uverbs_modify_qp& cmd) {
  auto path = qpc.sub<prm::Qpc::primary_address_path>();
  if (cmd.attr_mask & A::av) {
    ResolvedAddress address;
    if (int error = resolve_address(file.node(), from_abi(cmd.dest), &address)) return error;
    set_path(path, address, qp.qpn, cmd.dest_qp_num);
    std::uint8_t rate = 0;
    if (int error = stat_rate_of(file.node().caps(), cmd.dest.static_rate, &rate)) return error;
    path.set<prm::Ads::stat_rate>(rate);
  }
  if (cmd.attr_mask & A::pkey_index) path.set<prm::Ads::pkey_index>(cmd.pkey_index);
  if (cmd.attr_mask & A::port) path.set<prm::Ads::vhca_port_num>(cmd.port_num);
  if (cmd.attr_mask & A::timeout) path.set<prm::Ads::ack_timeout>(cmd.timeout);
  return 0;
}

int fill_context(const prm::View<prm::Qpc>& qpc, File& file, const Qp& qp, const ib_uverbs_modify_qp& cmd) {
  using prm::Qpc;
  const std::uint32_t mask = cmd.attr_mask;
  qpc.set<Qpc::st>(service_of(qp.type));
  qpc.set<Qpc::pm_state>(prm::PathMigrationState::migrated);
  if (qp.pd) qpc.set<Qpc::pd>(qp.pd->pdn);
  if (qp.send_cq) qpc.set<Qpc::cqn_snd>(qp.send_cq->cqn);
  if (qp.recv_cq) qpc.set<Qpc::cqn_rcv>(qp.recv_cq->cqn);
  qpc.set<Qpc::log_ack_req_freq>(kAckRequestFrequency);
  if (qp.srq) qpc.set<Qpc::srqn_rmpn_xrqn>(qp.srq->srqn);
  if (int error = fill_path(qpc, file, qp, cmd)) return error;
  if (qp.type == QpType::ud) {
    qpc.set<Qpc::mtu>(prm::QpMtu::mtu_4k);
    qpc.set<Qpc::log_msg_max>(12);
  } else if (mask & A::path_mtu) {
    qpc.set<Qpc::mtu>(static_cast<prm::QpMtu>(cmd.path_mtu));
    qpc.set<Qpc::log_msg_max>(file.node().caps().log_max_msg);
  }
  if (qp.state == QpState::reset) {
    qpc.set<Qpc::counter_set_id>(file.node().counter_set());
    // In a bond, each new QP of a context takes the next port.
    if (const unsigned ports = file.node().caps().lag_ports; ports > 1)
      qpc.set<Qpc::lag_tx_port_affinity>(++file.context().lag_turn % ports + 1);
  }
  if (mask & A::dest_qpn) qpc.set<Qpc::remote_qpn>(cmd.dest_qp_num);
  if (mask & A::rnr_retry) qpc.set<Qpc::rnr_retry>(cmd.rnr_retry);
  if (mask & A::retry_cnt) qpc.set<Qpc::retry_count>(cmd.retry_cnt);
  if (mask & A::max_qp_rd_atomic && cmd.max_rd_atomic) qpc.set<Qpc::log_sra_max>(log2_of(cmd.max_rd_atomic));
  if (mask & A::max_dest_rd_atomic && cmd.max_dest_rd_atomic)
    qpc.set<Qpc::log_rra_max>(log2_of(cmd.max_dest_rd_atomic));
  if (mask & A::sq_psn) qpc.set<Qpc::next_send_psn>(cmd.sq_psn & kPsnMask);
  if (mask & A::rq_psn) qpc.set<Qpc::next_rcv_psn>(cmd.rq_psn & kPsnMask);
  if (mask & (A::access_flags | A::max_dest_rd_atomic)) set_access(qpc, file.node().caps(), qp, cmd);
  if (mask & A::min_rnr_timer) qpc.set<Qpc::min_rnr_nak>(cmd.min_rnr_timer);
  if (mask & A::qkey) qpc.set<Qpc::q_key>(cmd.qkey);
  return 0;
}

// All transitions have one layout; the shared head is RST2INIT's.
int run_edge(File& file, Qp& qp, const Edge& edge, const ib_uverbs_modify_qp& cmd) {
  if (edge.to == QpState::reset || edge.to == QpState::err) {
    // 2RST and 2ERR say nothing more than the number.
    Command<prm::Qp2rstIn, prm::Qp2rstOut> brief(edge.opcode, qp.uid);
    brief.in().set<prm::Qp2rstIn::qpn>(qp.qpn);
    return brief.run(file.device());
  }
  using In = prm::Rst2initQpIn;
  Command<In, prm::Rst2initQpOut> command(edge.opcode, qp.uid);
  auto in = command.in();
  in.set<In::qpn>(qp.qpn);
  const std::uint32_t allowed = qp.type == QpType::ud ? edge.ud : qp.type == QpType::uc ? edge.uc : edge.rc;
  in.set<In::opt_param_mask>(optional_params(cmd.attr_mask) & allowed);
  if (int error = fill_context(in.sub<In::qpc>(), file, qp, cmd)) return error;
  return command.run(file.device());
}

void remember(Qp& qp, QpState next, const ib_uverbs_modify_qp& cmd) {
  qp.state = next;
  if (cmd.attr_mask & A::access_flags) qp.access = cmd.qp_access_flags;
  if (cmd.attr_mask & A::max_dest_rd_atomic) qp.dest_rd_atomic = cmd.max_dest_rd_atomic;
  if (cmd.attr_mask & A::port) qp.port = cmd.port_num;
  if (next != QpState::reset) return;
  qp.access = 0;
  qp.dest_rd_atomic = 0;
}

int check_driver(const Udata& driver) {
  if (driver.in.empty()) return 0;
  if (driver.in.size() < offsetof(mlx5_ib_modify_qp, ece_options)) return EINVAL;
  const auto request = driver.read<mlx5_ib_modify_qp>();
  if (!driver.tail_is_zero(sizeof request) || request.comp_mask || request.burst_info.reserved) return EOPNOTSUPP;
  return 0;  // ECE options are a hint that this device has no use for
}

// A rate limit comes with the extended command; its bursts with the driver's part.
RateRequest rate_request(std::uint32_t kbps, const Udata& driver) {
  const auto request = driver.read<mlx5_ib_modify_qp>();
  return {kbps, request.burst_info.max_burst_sz, request.burst_info.typical_pkt_sz};
}

// What one half of an XRC connection does not have is ignored.
std::uint32_t without_ignored(QpType type, std::uint32_t mask) {
  if (type == QpType::xrc_ini) return mask & ~(A::max_dest_rd_atomic | A::min_rnr_timer);
  if (type == QpType::xrc_tgt) return mask & ~(A::max_qp_rd_atomic | A::retry_cnt | A::rnr_retry);
  return mask;
}

// The handles of a target know what any of them did.
void take_over(Qp& qp, const TargetQp& from) {
  qp.state = from.state;
  qp.port = from.port;
  qp.access = from.access;
  qp.dest_rd_atomic = from.dest_rd_atomic;
}
void hand_on(const Qp& qp, TargetQp& to) {
  to.state = qp.state;
  to.port = qp.port;
  to.access = qp.access;
  to.dest_rd_atomic = qp.dest_rd_atomic;
}

int modify_qp(File& file, ib_uverbs_modify_qp cmd, const Udata& driver, std::uint32_t rate_limit = 0) {
  int error = 0;
  Qp* qp = file.find<Qp>(cmd.qp_handle, UVERBS_OBJECT_QP, &error);
  if (!qp) return EINVAL;
  std::unique_lock<std::mutex> shared;
  if (qp->target) {
    if (qp->target->elsewhere) return EOPNOTSUPP;
    shared = std::unique_lock(qp->target->lock);
    take_over(*qp, *qp->target);
  }
  if ((error = check_ports(*qp, cmd)) || (error = check_driver(driver))) return error;
  if (qp->table) return ENOSYS;  // it only hashes: there is nothing to move
  cmd.attr_mask = without_ignored(qp->type, cmd.attr_mask);
  const QpState current = cmd.attr_mask & A::cur_state ? static_cast<QpState>(cmd.cur_qp_state) : qp->state;
  const QpState next = cmd.attr_mask & A::state ? static_cast<QpState>(cmd.qp_state) : current;
  if (!modify_is_ok(current, next, qp->type, cmd.attr_mask)) return EINVAL;
  if ((error = check_ranges(file.node().caps(), cmd))) return error;
  if (current == QpState::reset && next == QpState::reset) return 0;
  const std::optional<Edge> edge = edge_of(current, next);
  if (!edge) return EINVAL;
  if (qp->raw) {
    const RateRequest rate = rate_request(rate_limit, driver);
    error = modify_raw_parts(file, *qp, current, next, cmd.attr_mask & A::rate_limit ? &rate : nullptr);
  } else {
    error = run_edge(file, *qp, *edge, cmd);
  }
  if (error) return error;
  file.queue_modified(*qp);
  remember(*qp, next, cmd);
  if (qp->target) hand_on(*qp, *qp->target);
  if (driver.out_length >= sizeof(std::uint32_t)) {
    mlx5_ib_modify_qp_resp response{};
    response.response_length = static_cast<std::uint32_t>(std::min(sizeof response, driver.out_length));
    driver.write(response);
  }
  return 0;
}

}  // namespace

int reset_qp(File& file, Qp& qp) {
  ib_uverbs_modify_qp cmd{};
  const Edge edge{qp.state, QpState::reset, prm::Opcode::qp_2rst, 0, 0, 0};
  if (int error = run_edge(file, qp, edge, cmd)) return error;
  remember(qp, QpState::reset, cmd);
  return 0;
}

int write_modify_qp(File& file, WriteCall& call) {
  const auto cmd = call.read<ib_uverbs_modify_qp>();
  if (cmd.attr_mask & ~A::legacy) return EOPNOTSUPP;
  return modify_qp(file, cmd, call.driver);
}

int write_modify_qp_ex(File& file, WriteCall& call) {
  const auto cmd = call.read<ib_uverbs_ex_modify_qp>();
  if (!call.tail_is_zero(sizeof cmd)) return EOPNOTSUPP;
  if (cmd.base.attr_mask & ~(A::legacy | A::rate_limit)) return EOPNOTSUPP;
  if (int error = modify_qp(file, cmd.base, call.driver, cmd.rate_limit)) return error;
  ib_uverbs_ex_modify_qp_resp response{};
  response.response_length = static_cast<std::uint32_t>(std::min(sizeof response, call.out_length));
  call.write(&response, sizeof response);
  return 0;
}

}  // namespace verbena::kernel
