// Raw packet QPs: a receive queue behind a TIR and a send queue on a TIS, made, moved and asked as one.
#include <rdma/ib_user_ioctl_verbs.h>
#include <rdma/mlx5-abi.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "kernel/context.h"
#include "kernel/frame_queues.h"
#include "kernel/qp.h"
#include "kernel/wq.h"
#include "prm/misc.h"

namespace verbena::kernel {
namespace {

std::uint32_t self_loopback(std::uint32_t flags) {
  return (flags & MLX5_QP_FLAG_TIR_ALLOW_SELF_LB_UC ? 1u : 0u) | (flags & MLX5_QP_FLAG_TIR_ALLOW_SELF_LB_MC ? 2u : 0u);
}

int make_send_parts(File& file, const QpParams& params, const mlx5_ib_create_qp& request, std::uint32_t entries,
                    std::uint32_t domain, RawParts& parts) {
  if (int error = make_tis(file, domain, 0, &parts.tisn)) return error;
  const SqRequest sq{.ring = {request.sq_buf_addr, request.db_addr, entries, prm::kLogSendWqeBasicBlock},
                     .pdn = params.pd->pdn,
                     .cqn = params.send_cq->cqn,
                     .user_index = request.uidx,
                     .uar = request.bfreg_index,
                     .tisn = parts.tisn};
  return make_sq(file, sq, &parts.sqn);
}

int make_receive_parts(File& file, const QpParams& params, const mlx5_ib_create_qp& request, const Rings& rings,
                       std::uint32_t domain, RawParts& parts) {
  const RqRequest rq{.ring = {request.buf_addr, request.db_addr, rings.rq_entries, rings.rq_shift},
                     .pdn = params.pd->pdn,
                     .cqn = params.recv_cq->cqn,
                     .user_index = request.uidx,
                     .strip_vlan = (params.flags & IB_UVERBS_QP_CREATE_CVLAN_STRIPPING) != 0};
  if (int error = make_rq(file, rq, &parts.rqn)) return error;
  return make_direct_tir(file, domain, parts.rqn, self_loopback(request.flags), &parts.tirn);
}

// ---- hashing ----

int check_hash_request(const QpParams& params, const Udata& driver, mlx5_ib_create_qp_rss* out) {
  if (params.type != QpType::raw_packet) return EOPNOTSUPP;
  if (params.flags || params.send_cq) return EINVAL;
  if (driver.out_length < sizeof(std::uint32_t)) return EINVAL;
  if (driver.in.size() < sizeof *out) return EINVAL;
  if (!driver.tail_is_zero(sizeof *out)) return EOPNOTSUPP;
  *out = driver.read<mlx5_ib_create_qp_rss>();
  if (out->comp_mask) return EOPNOTSUPP;
  constexpr std::uint32_t known = MLX5_QP_FLAG_TIR_ALLOW_SELF_LB_UC | MLX5_QP_FLAG_TIR_ALLOW_SELF_LB_MC;
  if (out->flags & ~known) return EOPNOTSUPP;  // tunnel offloads among them
  if (out->rx_hash_fields_mask & (MLX5_RX_HASH_INNER | MLX5_RX_HASH_IPSEC_SPI)) return EOPNOTSUPP;
  if (out->rx_hash_function != MLX5_RX_HASH_FUNC_TOEPLITZ) return EOPNOTSUPP;
  return out->rx_key_len == sizeof(TirKey) ? 0 : EINVAL;
}

// The device's selector for the fields of the verbs. 0 or EINVAL: two protocols at one level.
int select_fields(std::uint64_t fields, const prm::View<prm::RxHashFieldSelect>& selector) {
  using Select = prm::RxHashFieldSelect;
  const auto any = [&](std::uint64_t mask) { return (fields & mask) != 0; };
  const bool ipv4 = any(MLX5_RX_HASH_SRC_IPV4 | MLX5_RX_HASH_DST_IPV4), ipv6 = any(MLX5_RX_HASH_SRC_IPV6 | MLX5_RX_HASH_DST_IPV6);
  const bool tcp = any(MLX5_RX_HASH_SRC_PORT_TCP | MLX5_RX_HASH_DST_PORT_TCP);
  const bool udp = any(MLX5_RX_HASH_SRC_PORT_UDP | MLX5_RX_HASH_DST_PORT_UDP);
  if ((ipv4 && ipv6) || (tcp && udp)) return EINVAL;
  selector.set<Select::l3_prot_type>(ipv6).set<Select::l4_prot_type>(udp);
  selector.set<Select::selected_fields>(
      (any(MLX5_RX_HASH_SRC_IPV4 | MLX5_RX_HASH_SRC_IPV6) ? Select::src_ip : 0u) |
      (any(MLX5_RX_HASH_DST_IPV4 | MLX5_RX_HASH_DST_IPV6) ? Select::dst_ip : 0u) |
      (any(MLX5_RX_HASH_SRC_PORT_TCP | MLX5_RX_HASH_SRC_PORT_UDP) ? Select::l4_sport : 0u) |
      (any(MLX5_RX_HASH_DST_PORT_TCP | MLX5_RX_HASH_DST_PORT_UDP) ? Select::l4_dport : 0u));
  return 0;
}

// ---- rates ----

int rate_contents(const Caps& caps, const RateRequest& request, RateContents* out) {
  if ((request.burst || request.packet) && (!request.kbps || !caps.rate_bursts)) return EINVAL;
  using C = prm::SetPpRateLimitContext;
  const prm::View<C> context(out->data());
  context.set<C::rate_limit>(request.kbps).set<C::burst_upper_bound>(request.burst).set<C::typical_packet_size>(request.packet);
  return 0;
}

// Moves the SQ, and its rate with it: the new one is taken before and the old one given back behind.
int move_sq(File& file, RawParts& parts, prm::SqState next, const RateRequest* wanted) {
  RateTable& table = file.node().rates();
  RateContents contents = next == prm::SqState::rdy ? parts.rate : RateContents{};
  if (wanted && next == prm::SqState::rdy) {
    contents = {};
    if (int error = rate_contents(file.node().caps(), *wanted, &contents)) return error;
  }
  const bool changes = contents != parts.rate;
  std::uint16_t index = 0;
  if (changes && contents != RateContents{})
    if (int error = table.take(file.device(), contents, prm::kSharedResourceUid, false, &index)) return error;
  if (int error = modify_sq(file, parts.sqn, parts.sq_state, next, changes ? &index : nullptr)) {
    table.give_back(file.device(), index);
    return error;
  }
  if (changes) {
    table.give_back(file.device(), parts.rate_index);
    parts.rate = contents;
    parts.rate_index = index;
  }
  parts.sq_state = next;
  return 0;
}

int move_rq(File& file, RawParts& parts, prm::RqState next) {
  RqChange change;
  if (parts.rq_state == prm::RqState::rst && next == prm::RqState::rdy) {
    change.mask = prm::RqModify::counter_set_id;
    change.counter_set = file.node().counter_set();
  }
  if (int error = modify_rq(file, parts.rqn, parts.rq_state, next, change)) return error;
  parts.rq_state = next;
  return 0;
}

}  // namespace

int make_raw_parts(File& file, const QpParams& params, const mlx5_ib_create_qp& request, const Rings& rings, Qp& qp) {
  if (!file.node().caps().raw_ethernet) return EOPNOTSUPP;
  if (!rings.sq_entries && !rings.rq_entries) return EINVAL;
  std::uint32_t domain = 0;
  if (int error = transport_domain(file, &domain)) return error;
  qp.raw = std::make_unique<RawParts>();
  RawParts& parts = *qp.raw;
  int error = rings.sq_entries ? make_send_parts(file, params, request, rings.sq_entries, domain, parts) : 0;
  if (!error && rings.rq_entries) error = make_receive_parts(file, params, request, rings, domain, parts);
  if (error) {
    destroy_raw_parts(file, qp);
    return error;
  }
  qp.qpn = parts.sqn ? parts.sqn : parts.rqn;
  return 0;
}

int make_hash_parts(File& file, const QpParams& params, const Udata& driver, Qp& qp) {
  mlx5_ib_create_qp_rss request;
  if (int error = check_hash_request(params, driver, &request)) return error;
  // Without fields to hash, the TIR leads to one queue.
  if (!request.rx_hash_fields_mask && params.table->queues.size() > 1) return EINVAL;
  prm::Box<prm::RxHashFieldSelect> selector;
  if (int error = select_fields(request.rx_hash_fields_mask, selector.view())) return error;
  std::uint32_t domain = 0;
  if (int error = transport_domain(file, &domain)) return error;
  qp.raw = std::make_unique<RawParts>();
  return make_tir(
      file, domain,
      [&](const prm::View<prm::Tirc>& tirc) {
        using prm::Tirc;
        tirc.set<Tirc::disp_type>(prm::TirDispType::indirect).set<Tirc::indirect_table>(params.table->rqtn);
        tirc.set<Tirc::rx_hash_fn>(prm::RxHashFn::toeplitz).set<Tirc::rx_hash_symmetric>(1);
        tirc.set<Tirc::self_lb_block>(self_loopback(request.flags));
        std::memcpy(tirc.data() + Tirc::rx_hash_toeplitz_key::offset, request.rx_hash_key, sizeof(TirKey));
        std::memcpy(tirc.sub<Tirc::rx_hash_field_selector_outer>().data(), selector.data(), selector.size());
      },
      &qp.raw->tirn);
}

int destroy_raw_parts(File& file, Qp& qp) {
  RawParts& parts = *qp.raw;
  const auto drop = [&](std::uint32_t& number, int (*destroy)(File&, std::uint32_t)) {
    if (!number) return 0;
    const int error = destroy(file, number);
    if (!error) number = 0;
    return error;
  };
  if (int error = drop(parts.tirn, destroy_tir)) return error;
  // The number of a queue is wanted for its events behind this.
  const std::uint32_t rqn = parts.rqn;
  if (int error = drop(parts.rqn, destroy_rq)) return error;
  parts.rqn = rqn;
  if (int error = drop(parts.sqn, destroy_sq)) return error;
  if (int error = drop(parts.tisn, destroy_tis)) return error;
  file.node().rates().give_back(file.device(), parts.rate_index);
  parts.rate_index = 0;
  return 0;
}

void describe_parts(File& file, const Qp& qp, mlx5_ib_create_qp_resp* response) {
  if (!qp.raw || !file.context().uid) return;
  const RawParts& parts = *qp.raw;
  const auto say = [&](std::uint32_t number, std::uint32_t bit, __u32* out) {
    if (!number) return;
    response->comp_mask |= bit;
    *out = number;
  };
  say(parts.tirn, MLX5_IB_CREATE_QP_RESP_MASK_TIRN, &response->tirn);
  say(parts.tisn, MLX5_IB_CREATE_QP_RESP_MASK_TISN, &response->tisn);
  say(parts.rqn, MLX5_IB_CREATE_QP_RESP_MASK_RQN, &response->rqn);
  say(parts.sqn, MLX5_IB_CREATE_QP_RESP_MASK_SQN, &response->sqn);
}

// The states of the queues follow those of the QP: receiving from INIT on, sending from RTS on.
int modify_raw_parts(File& file, Qp& qp, QpState current, QpState next, const RateRequest* rate) {
  RawParts& parts = *qp.raw;
  if (next == QpState::rts) {
    if (current != QpState::rtr && current != QpState::rts) return EINVAL;
    return parts.sqn ? move_sq(file, parts, prm::SqState::rdy, rate) : 0;
  }
  if (rate) return EINVAL;
  if (current != QpState::reset && (next == QpState::init || next == QpState::rtr)) return 0;
  const bool err = next == QpState::err;
  const auto rq_state = err ? prm::RqState::err : next == QpState::reset ? prm::RqState::rst : prm::RqState::rdy;
  if (parts.rqn)
    if (int error = move_rq(file, parts, rq_state)) return error;
  if (!parts.sqn) return 0;
  // In a bond, each new QP of a context takes the next port.
  if (const unsigned ports = file.node().caps().lag_ports; next == QpState::init && ports > 1)
    if (int error = set_lag_port(file, parts.tisn, static_cast<std::uint8_t>(++file.context().lag_turn % ports + 1)))
      return error;
  return move_sq(file, parts, err ? prm::SqState::err : prm::SqState::rst, nullptr);
}

// What the states of the two queues make of the QP's: the device may have moved one of them to an error.
int query_raw_state(File& file, Qp& qp) {
  RawParts& parts = *qp.raw;
  if (parts.sqn)
    if (int error = query_sq_state(file, parts.sqn, &parts.sq_state)) return error;
  if (parts.rqn)
    if (int error = query_rq_state(file, parts.rqn, &parts.rq_state)) return error;
  const bool sq_err = parts.sqn && parts.sq_state == prm::SqState::err;
  const bool rq_err = parts.rqn && parts.rq_state == prm::RqState::err;
  if (rq_err || (sq_err && !parts.rqn))
    qp.state = QpState::err;
  else if (sq_err)
    qp.state = QpState::sqe;
  return 0;
}

}  // namespace verbena::kernel
