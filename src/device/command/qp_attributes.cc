#include "device/command/qp_attributes.h"

#include <array>
#include <cstring>

namespace verbena::device::command {
namespace {

using attr::access;
using attr::Opt;
using prm::Ads;
using prm::Opcode;
using prm::Qpc;

constexpr Attributes kRate = Opt::rnr_timeout;
constexpr Attributes kRetry = Opt::ack_timeout | Opt::retry_count | Opt::rnr_retry | Opt::sra_max;
constexpr Attributes kPath = Opt::primary_addr_path;

// IBTA 10.3.1 in the device's terms. A command that is not here has no attributes (2ERR_QP, 2RST_QP).
constexpr std::array<Transition, 9> kTransitions{{
    {Opcode::rst2init_qp,
     QpState::rst,
     QpState::init,
     {access | Opt::pkey_index | Opt::primary_port | Opt::pm_state | Opt::lag_tx_affinity | Opt::counter_set_id,
      Opt::drain_sigerr},
     {Opt::rwe | Opt::pkey_index | Opt::primary_port | Opt::pm_state | Opt::lag_tx_affinity | Opt::counter_set_id, 0},
     {Opt::q_key | Opt::pkey_index | Opt::primary_port | Opt::lag_tx_affinity | Opt::counter_set_id, 0}},
    {Opcode::init2init_qp,
     QpState::init,
     QpState::init,
     {0, access | Opt::pkey_index | Opt::primary_port | Opt::lag_tx_affinity | Opt::counter_set_id | Opt::drain_sigerr |
             attr::leaf},
     {0, Opt::rwe | Opt::pkey_index | Opt::primary_port | Opt::lag_tx_affinity | Opt::counter_set_id | attr::leaf},
     {0, Opt::q_key | Opt::pkey_index | Opt::primary_port | Opt::lag_tx_affinity | Opt::counter_set_id | attr::leaf}},
    {Opcode::init2rtr_qp,
     QpState::init,
     QpState::rtr,
     {kPath | attr::mtu | attr::remote_qpn | attr::receive_psn | Opt::rra_max | kRate,
      Opt::alt_addr_path | access | Opt::pkey_index | Opt::lag_tx_affinity | Opt::primary_port},
     {kPath | attr::mtu | attr::remote_qpn | attr::receive_psn,
      Opt::alt_addr_path | Opt::rwe | Opt::pkey_index | Opt::lag_tx_affinity | Opt::primary_port},
     {attr::mtu, Opt::pkey_index | Opt::q_key | Opt::lag_tx_affinity}},
    {Opcode::rtr2rts_qp,
     QpState::rtr,
     QpState::rts,
     {attr::send_psn | attr::ack_request | kRetry,
      Opt::alt_addr_path | access | Opt::pm_state | Opt::rnr_timeout | Opt::lag_tx_affinity | Opt::counter_set_id},
     {attr::send_psn, Opt::alt_addr_path | Opt::rwe | Opt::pm_state | Opt::lag_tx_affinity | Opt::counter_set_id},
     {attr::send_psn, Opt::q_key | Opt::counter_set_id}},
    {Opcode::rts2rts_qp,
     QpState::rts,
     QpState::rts,
     {0, Opt::alt_addr_path | access | Opt::pm_state | Opt::rnr_timeout | Opt::lag_tx_affinity | Opt::counter_set_id |
             attr::udp_sport | attr::leaf},
     {0, Opt::alt_addr_path | Opt::rwe | Opt::pm_state | Opt::lag_tx_affinity | Opt::counter_set_id | attr::udp_sport |
             attr::leaf},
     {0, Opt::q_key | Opt::counter_set_id | Opt::lag_tx_affinity | attr::leaf}},
    {Opcode::sqerr2rts_qp, QpState::sqer, QpState::rts, {0, access | Opt::rnr_timeout}, {0, Opt::rwe}, {0, Opt::q_key}},
    {Opcode::rts2sqd_qp, QpState::rts, QpState::sqd, {0, 0}, {0, 0}, {0, 0}},
    {Opcode::sqd2sqd_qp,
     QpState::sqd,
     QpState::sqd,
     {0, kPath | kRetry | Opt::rra_max | access | Opt::pkey_index | Opt::primary_port | Opt::rnr_timeout |
             Opt::alt_addr_path | Opt::pm_state | Opt::lag_tx_affinity},
     {0, kPath | Opt::rwe | Opt::pkey_index | Opt::primary_port | Opt::alt_addr_path | Opt::pm_state |
             Opt::lag_tx_affinity},
     {0, Opt::q_key | Opt::pkey_index | Opt::primary_port}},
    {Opcode::sqd_rts_qp,
     QpState::sqd,
     QpState::rts,
     {0, access | Opt::rnr_timeout | Opt::alt_addr_path | Opt::pm_state},
     {0, Opt::rwe | Opt::alt_addr_path | Opt::pm_state},
     {0, Opt::q_key}},
}};

Outcome check_path(const State& state, const prm::ConstView<Ads>& path) {
  if (path.get<Ads::src_addr_index>() >= state.profile.gid_table_size) return refuse(Syndrome::qp_sgid_index);
  if (path.get<Ads::pkey_index>() >= state.profile.pkey_table_size) return refuse(Syndrome::qp_pkey_index);
  return {};
}

Outcome check_port(const State& state, unsigned port) {
  if (port < 1 || port > state.profile.lag_ports()) return refuse(Syndrome::qp_port);
  return {};
}

Outcome check_counter(State& state, std::uint32_t id, std::uint16_t uid) {
  if (id == 0) return {};
  const QCounter* counter = state.q_counters.find(id);
  if (!counter || !may_use_shared(*counter, uid)) return refuse(Syndrome::qp_counter);
  return {};
}

// IB messages are carried by physical ports; the live context keeps what the packets need.
void load_path(const prm::ConstView<Ads>& ads, Path& path) {
  std::memcpy(path.rgid, ads.bytes<Ads::rgid_rip>().data(), 16);
  const std::uint64_t mac = std::uint64_t{ads.get<Ads::rmac_47_32>()} << 32 | ads.get<Ads::rmac_31_0>();
  for (int i = 0; i < 6; ++i) path.rmac[i] = static_cast<std::uint8_t>(mac >> (40 - 8 * i));
  path.sgid_index = static_cast<std::uint8_t>(ads.get<Ads::src_addr_index>());
  path.hop_limit = static_cast<std::uint8_t>(ads.get<Ads::hop_limit>());
  // RoCE states the DSCP and ECN bits apart; InfiniBand-style callers give the traffic class as a whole.
  const std::uint32_t dscp = ads.get<Ads::dscp>() << 2 | ads.get<Ads::ecn>();
  path.traffic_class = static_cast<std::uint8_t>(dscp ? dscp : ads.get<Ads::tclass>());
  path.sl = static_cast<std::uint8_t>(ads.get<Ads::eth_prio>() ? ads.get<Ads::eth_prio>() : ads.get<Ads::sl>());
  path.flow_label = ads.get<Ads::flow_label>();
  path.udp_sport = static_cast<std::uint16_t>(ads.get<Ads::udp_sport>());
  path.rlid = static_cast<std::uint16_t>(ads.get<Ads::rlid>());
  path.stat_rate = static_cast<std::uint8_t>(ads.get<Ads::stat_rate>());
}

// Copies one field if its attribute is among those wanted.
template <class F, class From, class To>
void copy(const From& from, const To& to) {
  to.template set<F>(from.template get<F>());
}

}  // namespace

const Transition* find_transition(prm::Opcode opcode) {
  for (const Transition& t : kTransitions)
    if (t.opcode == opcode) return &t;
  return nullptr;
}

Outcome check_attributes(State& state, QpType type, const prm::ConstView<Qpc>& qpc, Attributes which,
                         std::uint16_t uid) {
  const auto path = qpc.sub<Qpc::primary_address_path>();
  const auto& limits = state.profile.limits;
  if (which & Opt::alt_addr_path) return refuse(Syndrome::qp_alternate_path);
  if (which & Opt::drain_sigerr && qpc.get<Qpc::drain_sigerr>()) return refuse(Syndrome::qp_drain_sigerr);
  if (which & Opt::pkey_index && path.get<Ads::pkey_index>() >= state.profile.pkey_table_size)
    return refuse(Syndrome::qp_pkey_index);
  if (which & Opt::primary_port)
    if (auto ok = check_port(state, path.get<Ads::vhca_port_num>()); !ok) return ok;
  if (which & Opt::primary_addr_path)
    if (auto ok = check_path(state, path); !ok) return ok;
  if (which & Opt::lag_tx_affinity && !state.profile.has_lag_port(qpc.get<Qpc::lag_tx_port_affinity>()))
    return refuse(Syndrome::qp_lag_port);
  if (which & Opt::counter_set_id)
    if (auto ok = check_counter(state, qpc.get<Qpc::counter_set_id>(), uid); !ok) return ok;
  if (which & attr::mtu) {
    const auto mtu = static_cast<unsigned>(qpc.get<Qpc::mtu>());
    if (mtu < 1 || mtu > 5) return refuse(Syndrome::qp_mtu);
    if (qpc.get<Qpc::log_msg_max>() > limits.log_max_msg) return refuse(Syndrome::qp_log_msg_max);
  }
  if (which & Opt::rra_max && qpc.get<Qpc::log_rra_max>() > limits.log_max_rd_atomic)
    return refuse(Syndrome::qp_log_rra_max);
  if (which & Opt::sra_max && qpc.get<Qpc::log_sra_max>() > limits.log_max_rd_atomic)
    return refuse(Syndrome::qp_log_sra_max);
  if (which & access && is_reliable(type) &&
      static_cast<unsigned>(qpc.get<Qpc::atomic_mode>()) > static_cast<unsigned>(prm::AtomicMode::up_to_8b))
    return refuse(Syndrome::qp_atomic_mode);
  return {};
}

void copy_attributes(const prm::ConstView<Qpc>& from, const prm::View<Qpc>& to, Attributes which) {
  const auto source = from.sub<Qpc::primary_address_path>();
  const auto target = to.sub<Qpc::primary_address_path>();
  if (which & Opt::primary_addr_path) {
    // The path as a whole, except for what has an attribute of its own.
    const auto port = target.get<Ads::vhca_port_num>();
    const auto pkey = target.get<Ads::pkey_index>();
    const auto timeout = target.get<Ads::ack_timeout>();
    std::memcpy(target.data(), source.data(), Ads::size);
    if (source.get<Ads::vhca_port_num>() == 0) target.set<Ads::vhca_port_num>(port);
    if (!(which & Opt::pkey_index)) target.set<Ads::pkey_index>(pkey);
    if (!(which & Opt::ack_timeout)) target.set<Ads::ack_timeout>(timeout);
  }
  if (which & Opt::primary_port) copy<Ads::vhca_port_num>(source, target);
  if (which & Opt::pkey_index) copy<Ads::pkey_index>(source, target);
  if (which & Opt::ack_timeout) copy<Ads::ack_timeout>(source, target);
  if (which & attr::udp_sport) copy<Ads::udp_sport>(source, target);
  if (which & Opt::rre) copy<Qpc::rre>(from, to);
  if (which & Opt::rwe) copy<Qpc::rwe>(from, to);
  if (which & Opt::rae) {
    copy<Qpc::rae>(from, to);
    copy<Qpc::atomic_mode>(from, to);
  }
  if (which & Opt::q_key) copy<Qpc::q_key>(from, to);
  if (which & Opt::rnr_timeout) copy<Qpc::min_rnr_nak>(from, to);
  if (which & Opt::sra_max) copy<Qpc::log_sra_max>(from, to);
  if (which & Opt::rra_max) copy<Qpc::log_rra_max>(from, to);
  if (which & Opt::pm_state) copy<Qpc::pm_state>(from, to);
  if (which & Opt::retry_count) copy<Qpc::retry_count>(from, to);
  if (which & Opt::rnr_retry) copy<Qpc::rnr_retry>(from, to);
  if (which & Opt::lag_tx_affinity) copy<Qpc::lag_tx_port_affinity>(from, to);
  if (which & Opt::counter_set_id) copy<Qpc::counter_set_id>(from, to);
  if (which & attr::mtu) {
    copy<Qpc::mtu>(from, to);
    copy<Qpc::log_msg_max>(from, to);
  }
  if (which & attr::remote_qpn) copy<Qpc::remote_qpn>(from, to);
  if (which & attr::receive_psn) copy<Qpc::next_rcv_psn>(from, to);
  if (which & attr::send_psn) copy<Qpc::next_send_psn>(from, to);
  if (which & attr::ack_request) copy<Qpc::log_ack_req_freq>(from, to);
}

void apply_attributes(const prm::ConstView<Qpc>& qpc, Attributes which, QpContext& qp) {
  const auto ads = qpc.sub<Qpc::primary_address_path>();
  if (which & Opt::primary_addr_path) {
    load_path(ads, qp.path);
    qp.shaped = static_cast<std::uint8_t>(qp.path.stat_rate ? qp.shaped | kShapedPath : qp.shaped & ~kShapedPath);
  }
  if (which & (Opt::primary_port | Opt::primary_addr_path))
    qp.port = qp.path.port = static_cast<std::uint8_t>(ads.get<Ads::vhca_port_num>());
  if (which & (Opt::pkey_index | Opt::primary_addr_path))
    qp.path.pkey_index = static_cast<std::uint16_t>(ads.get<Ads::pkey_index>());
  if (which & attr::udp_sport) qp.path.udp_sport = static_cast<std::uint16_t>(ads.get<Ads::udp_sport>());
  if (which & Opt::ack_timeout) qp.ack_timeout = static_cast<std::uint8_t>(ads.get<Ads::ack_timeout>());
  if (which & Opt::rre) qp.rre = qpc.get<Qpc::rre>();
  if (which & Opt::rwe) qp.rwe = qpc.get<Qpc::rwe>();
  if (which & Opt::rae) {
    qp.rae = qpc.get<Qpc::rae>();
    qp.atomic_mode = static_cast<std::uint8_t>(qpc.get<Qpc::atomic_mode>());
  }
  if (which & Opt::q_key) qp.qkey = qpc.get<Qpc::q_key>();
  if (which & Opt::rnr_timeout) qp.min_rnr_nak = static_cast<std::uint8_t>(qpc.get<Qpc::min_rnr_nak>());
  if (which & Opt::sra_max) qp.log_sra_max = static_cast<std::uint8_t>(qpc.get<Qpc::log_sra_max>());
  if (which & Opt::rra_max) qp.log_rra_max = static_cast<std::uint8_t>(qpc.get<Qpc::log_rra_max>());
  if (which & Opt::pm_state) qp.pm_state = static_cast<std::uint8_t>(qpc.get<Qpc::pm_state>());
  if (which & Opt::retry_count)
    qp.retry_count = qp.retries_left = static_cast<std::uint8_t>(qpc.get<Qpc::retry_count>());
  if (which & Opt::rnr_retry) qp.rnr_retry = qp.rnr_left = static_cast<std::uint8_t>(qpc.get<Qpc::rnr_retry>());
  if (which & Opt::lag_tx_affinity)
    qp.path.lag_tx_port_affinity = static_cast<std::uint8_t>(qpc.get<Qpc::lag_tx_port_affinity>());
  if (which & Opt::counter_set_id) qp.q_counter = qpc.get<Qpc::counter_set_id>();
  if (which & attr::mtu) {
    qp.log_mtu = static_cast<std::uint8_t>(static_cast<unsigned>(qpc.get<Qpc::mtu>()) + 7);
    qp.log_msg_max = static_cast<std::uint8_t>(qpc.get<Qpc::log_msg_max>());
  }
  if (which & attr::remote_qpn) qp.dest_qpn = qpc.get<Qpc::remote_qpn>();
  if (which & attr::receive_psn) qp.epsn = qpc.get<Qpc::next_rcv_psn>();
  if (which & attr::send_psn) qp.next_psn = qp.una_psn = qpc.get<Qpc::next_send_psn>();
}

}  // namespace verbena::device::command
