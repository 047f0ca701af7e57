#include "kernel/caps.h"

#include <algorithm>

#include "kernel/command.h"
#include "prm/caps.h"
#include "prm/general_object.h"

namespace verbena::kernel {
namespace {

template <class View>
void read_limits(const View& cap, Caps* caps) {
  using C = prm::CmdHcaCap;
  caps->log_max_qp = cap.template get<C::log_max_qp>();
  caps->log_max_qp_sz = cap.template get<C::log_max_qp_sz>();
  caps->log_max_cq = cap.template get<C::log_max_cq>();
  caps->log_max_cq_sz = cap.template get<C::log_max_cq_sz>();
  caps->log_max_wq_sz = cap.template get<C::log_max_wq_sz>();
  caps->log_max_rq = cap.template get<C::log_max_rq>();
  caps->log_max_rqt = cap.template get<C::log_max_rqt>();
  caps->log_max_rqt_size = cap.template get<C::log_max_rqt_size>();
  caps->log_max_srq = cap.template get<C::log_max_srq>();
  caps->log_max_srq_sz = cap.template get<C::log_max_srq_sz>();
  caps->log_max_mkey = cap.template get<C::log_max_mkey>();
  caps->log_max_pd = cap.template get<C::log_max_pd>();
  caps->log_max_msg = cap.template get<C::log_max_msg>();
  caps->log_max_mcg = cap.template get<C::log_max_mcg>();
  caps->max_qp_mcg = cap.template get<C::max_qp_mcg>();
  caps->log_max_ra_req_qp = cap.template get<C::log_max_ra_req_qp>();
  caps->log_max_ra_res_qp = cap.template get<C::log_max_ra_res_qp>();
  caps->max_wqe_sz_sq = cap.template get<C::max_wqe_sz_sq>();
  caps->max_wqe_sz_rq = cap.template get<C::max_wqe_sz_rq>();
  caps->log_bf_reg_size = cap.template get<C::log_bf_reg_size>();
  caps->cqe_version = cap.template get<C::cqe_version>();
  caps->local_ca_ack_delay = cap.template get<C::local_ca_ack_delay>();
  caps->frequency_khz = cap.template get<C::device_frequency_khz>();
  caps->stat_rates = cap.template get<C::stat_rate_support>();
  caps->vhca_id = static_cast<std::uint16_t>(cap.template get<C::vhca_id>());
}

template <class View>
void read_features(const View& cap, Caps* caps) {
  using C = prm::CmdHcaCap;
  caps->memory_windows = cap.template get<C::imaicl>();
  caps->xrc = cap.template get<C::xrc>();
  caps->cq_moderation = cap.template get<C::cq_moderation>();
  caps->cq_overrun_ignore = cap.template get<C::cq_oi>();
  caps->cqe_compression = cap.template get<C::cqe_compression>();
  caps->cqe_128 = cap.template get<C::cqe_128_always>();
  caps->cqe_compression_128 = cap.template get<C::cqe_compression_128>();
  caps->cqe_compression_max = cap.template get<C::cqe_compression_max_num>();
  caps->mini_cqe_stride_index = cap.template get<C::mini_cqe_resp_stride_index>();
  caps->cq_resize = cap.template get<C::cq_resize>();
  caps->block_lb_mc = cap.template get<C::block_lb_mc>();
  if (cap.template get<C::lag_tx_port_affinity>())
    caps->lag_ports = static_cast<std::uint8_t>(std::max(1u, std::uint32_t{cap.template get<C::num_lag_ports>()}));
  caps->devx = cap.template get<C::log_max_uctx>() != 0;
  caps->scatter_to_cqe = cap.template get<C::sctr_data_cqe>();
  caps->pkey_violations = cap.template get<C::pkv>();
  caps->qkey_violations = cap.template get<C::qkv>();
  caps->path_migration = cap.template get<C::apm>();
  caps->relaxed_write = cap.template get<C::relaxed_ordering_write>();
  caps->relaxed_read = cap.template get<C::relaxed_ordering_read>();
}

}  // namespace

int query_caps(device::Device& device, const device::Profile& profile, Caps* caps) {
  using Query = Command<prm::QueryHcaCapIn, prm::QueryHcaCapOut>;
  auto query = [&](prm::CapType type, auto&& use) {
    Query command(prm::Opcode::query_hca_cap);
    command.in().set<prm::QueryHcaCapIn::op_mod>(prm::cap_op_mod(type, prm::CapMode::current));
    if (int error = command.run(device)) return error;
    use(command.out().sub<prm::QueryHcaCapOut::capability>());
    return 0;
  };
  bool atomic = false, device_memory = false, virtio = false, qos = false;
  int error = query(prm::CapType::general, [&](auto pages) {
    auto cap = pages.template sub<prm::HcaCapUnion::cmd_hca_cap>();
    read_limits(cap, caps);
    read_features(cap, caps);
    atomic = cap.template get<prm::CmdHcaCap::atomic>();
    qos = cap.template get<prm::CmdHcaCap::qos>();
    caps->raw_ethernet = cap.template get<prm::CmdHcaCap::eth_net_offloads>();
    device_memory = cap.template get<prm::CmdHcaCap::device_memory>();
    virtio = cap.template get<prm::CmdHcaCap::general_obj_types>() >>
                 static_cast<unsigned>(prm::GeneralObjectType::virtio_net_q) & 1;
  });
  if (error) return error;
  if (atomic) {
    error = query(prm::CapType::atomic, [&](auto pages) {
      auto cap = pages.template sub<prm::HcaCapUnion::atomic_caps>();
      using Operation = prm::AtomicOperation;
      constexpr auto ib = Operation::compare_swap | Operation::fetch_add;
      constexpr auto extended = Operation::masked_compare_swap | Operation::masked_fetch_add;
      const auto has = cap.template get<prm::AtomicCaps::atomic_operations>();
      caps->atomics = (has & ib) == ib;
      caps->extended_atomics = (has & extended) && cap.template get<prm::AtomicCaps::atomic_size_qp>();
    });
    if (error) return error;
  }
  if (device_memory) {
    error = query(prm::CapType::device_mem, [&](auto pages) {
      using C = prm::DeviceMemCap;
      auto cap = pages.template sub<prm::HcaCapUnion::device_mem_cap>();
      caps->memic = cap.template get<C::memic>();
      caps->memic_bar_start = cap.template get<C::memic_bar_start_addr>();
      caps->memic_bar_size = cap.template get<C::memic_bar_size>();
      caps->max_memic = cap.template get<C::max_memic_size>();
      caps->memic_operations = cap.template get<C::memic_operations>();
      caps->log_max_memic_alignment = cap.template get<C::log_max_memic_addr_alignment>();
    });
    if (error) return error;
  }
  if (caps->raw_ethernet) {
    error = query(prm::CapType::ethernet_offloads, [&](auto pages) {
      using C = prm::PerProtocolNetworkingOffloadCaps;
      auto cap = pages.template sub<prm::HcaCapUnion::per_protocol_networking_offload_caps>();
      caps->checksums = cap.template get<C::csum_cap>();
      caps->strips_vlan = cap.template get<C::vlan_cap>();
    });
    if (error) return error;
  }
  if (qos) {
    error = query(prm::CapType::qos, [&](auto pages) {
      using C = prm::QosCap;
      auto cap = pages.template sub<prm::HcaCapUnion::qos_cap>();
      if (!cap.template get<C::packet_pacing>()) return;
      caps->min_rate_kbps = cap.template get<C::packet_pacing_min_rate>();
      caps->max_rate_kbps = cap.template get<C::packet_pacing_max_rate>();
      // The first entry stands for no limit.
      caps->rate_entries = std::max(1u, std::uint32_t{cap.template get<C::packet_pacing_rate_table_size>()}) - 1;
      caps->rates_of_users = cap.template get<C::packet_pacing_uid>();
      caps->rate_bursts =
          cap.template get<C::packet_pacing_burst_bound>() && cap.template get<C::packet_pacing_typical_size>();
    });
    if (error) return error;
  }
  if (virtio) {
    error = query(prm::CapType::vdpa_emulation, [&](auto pages) {
      using C = prm::VirtioEmulationCap;
      auto cap = pages.template sub<prm::HcaCapUnion::virtio_emulation_cap>();
      const unsigned size = cap.template get<C::log_doorbell_bar_size>(), stride = cap.template get<C::log_doorbell_stride>();
      if (stride >= 12 && size >= stride && size < 32) caps->virtio_pages = 1u << (size - stride);
    });
    if (error) return error;
  }
  caps->gid_table_size = profile.gid_table_size;
  caps->pkey_table_size = profile.pkey_table_size;
  return query(prm::CapType::roce, [&](auto pages) {
    auto cap = pages.template sub<prm::HcaCapUnion::roce_cap>();
    caps->gid_table_size = cap.template get<prm::RoceCap::roce_address_table_size>();
  });
}

}  // namespace verbena::kernel
