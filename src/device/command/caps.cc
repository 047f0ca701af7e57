#include "device/command/caps.h"

#include <algorithm>
#include <bit>

#include "device/command/eswitch.h"
#include "device/command/flow.h"
#include "device/command/memic.h"
#include "device/command/qos.h"
#include "device/command/state.h"
#include "prm/general_object.h"

namespace verbena::device::command {
namespace {

using prm::CapType;
using prm::CmdHcaCap;

constexpr std::uint32_t kNoInlineNeeded = 2;  // of wqe_inline_mode: headers may stay where they are
constexpr std::uint64_t kVirtioBarStart = 0x4000000;

void general_limits(const Profile& p, const prm::View<CmdHcaCap>& cap) {
  const Limits& l = p.limits;
  cap.set<CmdHcaCap::log_max_qp>(l.log_max_qp).set<CmdHcaCap::log_max_qp_sz>(l.log_max_qp_sz);
  cap.set<CmdHcaCap::log_max_cq>(l.log_max_cq).set<CmdHcaCap::log_max_cq_sz>(l.log_max_cq_sz);
  cap.set<CmdHcaCap::log_max_srq>(l.log_max_srq).set<CmdHcaCap::log_max_srq_sz>(l.log_max_srq_sz);
  cap.set<CmdHcaCap::log_max_rmp>(l.log_max_srq).set<CmdHcaCap::log_max_wq_sz>(l.log_max_srq_sz);
  cap.set<CmdHcaCap::log_max_xrq>(l.log_max_srq).set<CmdHcaCap::log_max_xrcd>(std::bit_width(kXrcDomains) - 1);
  cap.set<CmdHcaCap::log_max_eq>(l.log_max_eq).set<CmdHcaCap::log_max_eq_sz>(l.log_max_eq_sz);
  cap.set<CmdHcaCap::log_max_mkey>(l.log_max_mkey).set<CmdHcaCap::log_max_klm_list_size>(l.log_max_klm_list_size);
  cap.set<CmdHcaCap::log_max_pd>(l.log_max_pd).set<CmdHcaCap::log_max_transport_domain>(l.log_max_transport_domain);
  cap.set<CmdHcaCap::log_max_tis>(kLogTis).set<CmdHcaCap::log_max_sq>(l.log_max_qp);
  cap.set<CmdHcaCap::log_max_rq>(l.log_max_qp).set<CmdHcaCap::log_max_tir>(std::bit_width(kMaxTirs) - 1);
  cap.set<CmdHcaCap::log_max_rqt>(std::bit_width(kMaxRqTables) - 1);
  cap.set<CmdHcaCap::log_max_rqt_size>(std::bit_width(kRqTableEntries) - 1);
  cap.set<CmdHcaCap::max_flow_counter_15_0>(kMaxFlowCounters - 1);
  cap.set<CmdHcaCap::flow_counter_bulk_alloc>(kCounterBulks).set<CmdHcaCap::log_max_flow_counter_bulk>(kLogCounterBulk);
  cap.set<CmdHcaCap::log_max_uctx>(l.log_max_uctx).set<CmdHcaCap::log_max_umem>(l.log_max_umem);
  cap.set<CmdHcaCap::log_max_mcg>(l.log_max_mcg).set<CmdHcaCap::max_qp_mcg>(l.max_qp_mcg);
  cap.set<CmdHcaCap::log_max_msg>(l.log_max_msg).set<CmdHcaCap::log_max_mrw_sz>(61);
  cap.set<CmdHcaCap::log_max_ra_req_qp>(l.log_max_rd_atomic).set<CmdHcaCap::log_max_ra_res_qp>(l.log_max_rd_atomic);
  cap.set<CmdHcaCap::max_wqe_sz_sq>(l.max_wqe_sz_sq).set<CmdHcaCap::max_wqe_sz_rq>(l.max_wqe_sz_rq);
  cap.set<CmdHcaCap::max_qp_cnt>(l.max_q_counters);
  cap.set<CmdHcaCap::max_sgl_for_optimized_performance>(30);
  cap.set<CmdHcaCap::max_indirection>(4);
  cap.set<CmdHcaCap::log_max_stride_sz_rq>(std::bit_width(l.max_wqe_sz_rq) - 1);
  cap.set<CmdHcaCap::log_min_stride_sz_rq>(4);
}

void general_port(const CapFacts& facts, const prm::View<CmdHcaCap>& cap) {
  const Profile& p = facts.profile;
  cap.set<CmdHcaCap::port_type>(1);  // Ethernet
  cap.set<CmdHcaCap::num_ports>(1);  // a two-port NIC shows one device a port, or one for both in LAG mode
  cap.set<CmdHcaCap::native_port_num>(1);
  cap.set<CmdHcaCap::vhca_id>(facts.device_index);
  cap.set<CmdHcaCap::vport_group_manager>(1).set<CmdHcaCap::eswitch_manager>(1);
  cap.set<CmdHcaCap::gid_table_size>(std::min<unsigned>(4, std::bit_width(p.gid_table_size / 8) - 1));
  cap.set<CmdHcaCap::local_ca_ack_delay>(16);
  if (p.lag_ports() > 1) {
    cap.set<CmdHcaCap::lag_master>(1).set<CmdHcaCap::num_lag_ports>(p.lag_ports());
    cap.set<CmdHcaCap::lag_tx_port_affinity>(1).set<CmdHcaCap::init2_lag_tx_port_affinity>(1);
    cap.set<CmdHcaCap::rts2rts_lag_tx_port_affinity>(1);
  }
}

void general_features(const Profile& p, const prm::View<CmdHcaCap>& cap) {
  cap.set<CmdHcaCap::hca_cap_2>(1).set<CmdHcaCap::event_cap>(1).set<CmdHcaCap::device_memory>(1);
  const auto type_bit = [](prm::GeneralObjectType type) { return 1ull << static_cast<unsigned>(type); };
  cap.set<CmdHcaCap::general_obj_types>(type_bit(prm::GeneralObjectType::reserved_qpn) |
                                        type_bit(prm::GeneralObjectType::scheduling_element) |
                                        type_bit(prm::GeneralObjectType::av_qp_mapping) |
                                        type_bit(prm::GeneralObjectType::virtio_net_q));
  cap.set<CmdHcaCap::stat_rate_support>(0xfffe);  // every code but 0, which is no limit
  cap.set<CmdHcaCap::nic_flow_table>(1).set<CmdHcaCap::eth_net_offloads>(1);
  cap.set<CmdHcaCap::modify_rq_counter_set_id>(1);
  cap.set<CmdHcaCap::qos>(1).set<CmdHcaCap::qpc_extension>(1);
  cap.set<CmdHcaCap::rc>(1).set<CmdHcaCap::uc>(1).set<CmdHcaCap::ud>(1).set<CmdHcaCap::xrc>(1);
  cap.set<CmdHcaCap::roce>(1).set<CmdHcaCap::atomic>(1);
  cap.set<CmdHcaCap::pkv>(1).set<CmdHcaCap::qkv>(1);
  cap.set<CmdHcaCap::compact_address_vector>(1).set<CmdHcaCap::cqe_version>(1);
  cap.set<CmdHcaCap::cq_oi>(1).set<CmdHcaCap::cq_resize>(1);
  cap.set<CmdHcaCap::cq_moderation>(1).set<CmdHcaCap::cq_eq_remap>(1).set<CmdHcaCap::cq_period_start_from_cqe>(1);
  cap.set<CmdHcaCap::scqe_break_moderation>(1);
  if (p.limits.cqe_compression != 0) {
    cap.set<CmdHcaCap::cqe_compression>(1).set<CmdHcaCap::cqe_compression_128>(1).set<CmdHcaCap::mini_cqe_resp_stride_index>(1);
    cap.set<CmdHcaCap::cqe_compression_max_num>(kMaxSession).set<CmdHcaCap::cqe_compression_timeout>(kSessionNs / 1000);
  }
  cap.set<CmdHcaCap::cqe_128_always>(1).set<CmdHcaCap::sctr_data_cqe>(1);
  cap.set<CmdHcaCap::block_lb_mc>(1);
  cap.set<CmdHcaCap::imaicl>(1);  // memory windows and local invalidation
  cap.set<CmdHcaCap::fixed_buffer_size>(1).set<CmdHcaCap::umr_extended_translation_offset>(1);
  cap.set<CmdHcaCap::relaxed_ordering_write>(1).set<CmdHcaCap::relaxed_ordering_read>(1);
  cap.set<CmdHcaCap::relaxed_ordering_write_umr>(1).set<CmdHcaCap::relaxed_ordering_read_umr>(1);
  cap.set<CmdHcaCap::rts2rts_qp_udp_sport>(1).set<CmdHcaCap::rts2rts_qp_counters_set_id>(1);
  cap.set<CmdHcaCap::out_of_seq_cnt>(1).set<CmdHcaCap::vport_counters>(1);
  cap.set<CmdHcaCap::retransmission_q_counters>(1).set<CmdHcaCap::enhanced_error_q_counters>(1);
  // Doorbells: 4 KiB UAR pages with BlueFlame registers of two 256-byte halves.
  cap.set<CmdHcaCap::uar_4k>(1).set<CmdHcaCap::bf>(1).set<CmdHcaCap::log_bf_reg_size>(9);
  cap.set<CmdHcaCap::log_uar_page_sz>(0).set<CmdHcaCap::num_of_uars_per_page>(1).set<CmdHcaCap::log_pg_sz>(12);
  cap.set<CmdHcaCap::device_frequency_khz>(p.frequency_khz)
      .set<CmdHcaCap::device_frequency_mhz>(p.frequency_khz / 1000);
}

void general_page(const CapFacts& facts, const prm::View<prm::HcaCapUnion>& page) {
  const auto cap = page.sub<prm::HcaCapUnion::cmd_hca_cap>();
  general_limits(facts.profile, cap);
  general_port(facts, cap);
  general_features(facts.profile, cap);
}

void atomic_page(const prm::View<prm::HcaCapUnion>& page) {
  using prm::AtomicCaps;
  using Op = prm::AtomicOperation;
  const auto cap = page.sub<prm::HcaCapUnion::atomic_caps>();
  // Results are in the host's byte order, of 8 bytes.
  cap.set<AtomicCaps::atomic_req_8B_endianness_mode>(1).set<AtomicCaps::supported_atomic_req_8B_endianness_mode_1>(1);
  cap.set<AtomicCaps::atomic_operations>(Op::compare_swap | Op::fetch_add | Op::masked_compare_swap | Op::masked_fetch_add);
  cap.set<AtomicCaps::atomic_size_qp>(1u << 2 | 1u << 3);  // extended ones of 4 bytes, too
}

void roce_page(const Profile& p, const prm::View<prm::HcaCapUnion>& page) {
  using prm::RoceCap;
  const auto cap = page.sub<prm::HcaCapUnion::roce_cap>();
  cap.set<RoceCap::sw_r_roce_src_udp_port>(1);
  cap.set<RoceCap::l3_type>(3);       // IPv4 and IPv6
  cap.set<RoceCap::roce_version>(5);  // v1 (bit 0) and v2 (bit 2)
  cap.set<RoceCap::r_roce_dest_udp_port>(4791);
  cap.set<RoceCap::r_roce_min_src_udp_port>(0xc000).set<RoceCap::r_roce_max_src_udp_port>(0xffff);
  cap.set<RoceCap::roce_address_table_size>(p.gid_table_size);
}

void general_2_page(const Profile& p, const prm::View<prm::HcaCapUnion>& page) {
  const auto cap_2 = page.sub<prm::HcaCapUnion::cmd_hca_cap_2>();
  cap_2.set<prm::CmdHcaCap2::log_reserved_qpn_granularity>(kLogReservedQpns);
  cap_2.set<prm::CmdHcaCap2::send_dbr_mode_no_dbr_ext>(1);
  cap_2.set<prm::CmdHcaCap2::log_max_send_dbr_less_qp_sq>(p.limits.log_max_qp);
  cap_2.set<prm::CmdHcaCap2::flow_counter_bulk_log_max_alloc>(kLogCounterBulk);
}

void device_memory_page(const prm::View<prm::HcaCapUnion>& page) {
  using prm::DeviceMemCap;
  const auto cap = page.sub<prm::HcaCapUnion::device_mem_cap>();
  cap.set<DeviceMemCap::memic>(1).set<DeviceMemCap::log_min_memic_alloc_size>(std::bit_width(kMemicGranule) - 1);
  cap.set<DeviceMemCap::log_max_memic_addr_alignment>(kMemicMaxAlignment);
  cap.set<DeviceMemCap::memic_bar_start_addr>(kMemicBarStart).set<DeviceMemCap::memic_bar_size>(kMemicBarBytes);
  cap.set<DeviceMemCap::max_memic_size>(kMemicBytes);
  cap.set<DeviceMemCap::memic_operations>(kMemicOperations);
  cap.set<DeviceMemCap::memic_increment_sizes>(kMemicOperationSizes);
  cap.set<DeviceMemCap::memic_test_and_set_sizes>(kMemicOperationSizes);
}

// Doorbell pages of virtio queues exist, the queues do not.
void virtio_page(const prm::View<prm::HcaCapUnion>& page) {
  using prm::VirtioEmulationCap;
  const auto cap = page.sub<prm::HcaCapUnion::virtio_emulation_cap>();
  cap.set<VirtioEmulationCap::log_doorbell_stride>(12).set<VirtioEmulationCap::log_doorbell_bar_size>(22);
  cap.set<VirtioEmulationCap::doorbell_bar_offset>(kVirtioBarStart);
}

void qos_page(const Profile& p, const prm::View<prm::HcaCapUnion>& page) {
  using prm::QosCap;
  const auto cap = page.sub<prm::HcaCapUnion::qos_cap>();
  if (const unsigned rates = p.limits.packet_pacing_rates) {
    cap.set<QosCap::packet_pacing>(1).set<QosCap::packet_pacing_uid>(1);
    cap.set<QosCap::packet_pacing_burst_bound>(1).set<QosCap::packet_pacing_typical_size>(1);
    cap.set<QosCap::packet_pacing_min_rate>(kMinRateKbps).set<QosCap::packet_pacing_max_rate>(kMaxRateKbps);
    cap.set<QosCap::packet_pacing_rate_table_size>(1 + rates);  // the first one stands for "unlimited"
  }
  const auto bit = [](auto type) { return 1u << static_cast<unsigned>(type); };
  cap.set<QosCap::nic_sq_scheduling>(1).set<QosCap::nic_qp_scheduling>(1);
  cap.set<QosCap::nic_bw_share>(1).set<QosCap::nic_rate_limit>(1);
  cap.set<QosCap::nic_element_type>(bit(prm::SchedulingElementType::tsar) |
                                    bit(prm::SchedulingElementType::queue_group));
  cap.set<QosCap::nic_tsar_type>(bit(prm::TsarType::dwrr));
  cap.set<QosCap::max_tsar_bw_share>(kMaxShare);
  cap.set<QosCap::log_max_qos_nic_queue_group>(std::bit_width(kShapers) - 1);
}

// Tables that match by what FrameHeaders reads.
void flow_table_properties(const prm::View<prm::FlowTablePropLayout>& table, std::uint32_t levels) {
  using Prop = prm::FlowTablePropLayout;
  using Field = prm::FlowTableFieldsSupported;
  table.set<Prop::ft_support>(1).set<Prop::flow_counter>(1).set<Prop::flow_modify_en>(1).set<Prop::modify_root>(1);
  table.set<Prop::identified_miss_table_mode>(1).set<Prop::flow_table_modify>(1);
  table.set<Prop::log_max_ft_size>(kLogFlowTable).set<Prop::max_ft_level>(levels);
  table.set<Prop::log_max_ft_num>(std::bit_width(kMaxFlowTables) - 1);
  table.set<Prop::log_max_flow>(std::bit_width(kMaxFlowEntries) - 1);
  table.set<Prop::log_max_flow_counter>(std::bit_width(kMaxFlowCounters) - 1);
  table.set<Prop::log_max_destination>(std::bit_width(kFlowDestinations) - 1);
  for (const auto& fields : {table.sub<Prop::ft_field_support>(), table.sub<Prop::ft_field_bitmask_support>()}) {
    fields.set<Field::outer_dmac>(1).set<Field::outer_smac>(1).set<Field::outer_ether_type>(1);
    fields.set<Field::outer_ip_version>(1).set<Field::outer_first_prio>(1).set<Field::outer_first_cfi>(1);
    fields.set<Field::outer_first_vid>(1).set<Field::outer_ipv4_ttl>(1).set<Field::outer_sip>(1).set<Field::outer_dip>(1);
    fields.set<Field::outer_frag>(1).set<Field::outer_ip_protocol>(1).set<Field::outer_ip_ecn>(1);
    fields.set<Field::outer_ip_dscp>(1).set<Field::outer_udp_sport>(1).set<Field::outer_udp_dport>(1);
    fields.set<Field::outer_tcp_sport>(1).set<Field::outer_tcp_dport>(1).set<Field::outer_tcp_flags>(1);
  }
}

void flow_table_page(const prm::View<prm::HcaCapUnion>& page) {
  using Cap = prm::FlowTableNicCap;
  const auto cap = page.sub<prm::HcaCapUnion::flow_table_nic_cap>();
  flow_table_properties(cap.sub<Cap::flow_table_properties_nic_receive>(), kFlowLevels);
  flow_table_properties(cap.sub<Cap::flow_table_properties_nic_receive_rdma>(), kRoceFlowLevels);
  flow_table_properties(cap.sub<Cap::flow_table_properties_nic_transmit_rdma>(), kRoceFlowLevels);
}

// The ports of the switch have steering addresses; it has no tables, so nothing that rules could do is said of it.
void eswitch_flow_table_page(const CapFacts& facts, const prm::View<prm::HcaCapUnion>& page) {
  using Cap = prm::FlowTableEswitchCap;
  const auto cap = page.sub<prm::HcaCapUnion::flow_table_eswitch_cap>();
  const auto at = [&](SwitchPlace place) { return steering_addresses(facts.device_index, place); };
  const SteeringAddresses drop = at(SwitchPlace::drop), uplink = at(SwitchPlace::uplink);
  cap.set<Cap::sw_steering_fdb_action_drop_icm_address_rx>(drop.rx);
  cap.set<Cap::sw_steering_fdb_action_drop_icm_address_tx>(drop.tx);
  cap.set<Cap::sw_steering_uplink_icm_address_rx>(uplink.rx).set<Cap::sw_steering_uplink_icm_address_tx>(uplink.tx);
}

void eswitch_page(const prm::View<prm::HcaCapUnion>& page) {
  using Cap = prm::ESwitchCap;
  const auto cap = page.sub<prm::HcaCapUnion::e_switch_cap>();
  cap.set<Cap::esw_manager_vport_number_valid>(1).set<Cap::esw_manager_vport_number>(kOwnVport);
}

void ethernet_page(const prm::View<prm::HcaCapUnion>& page) {
  using Cap = prm::PerProtocolNetworkingOffloadCaps;
  const auto cap = page.sub<prm::HcaCapUnion::per_protocol_networking_offload_caps>();
  cap.set<Cap::csum_cap>(1).set<Cap::vlan_cap>(1).set<Cap::self_lb_en_modifiable>(1);
  cap.set<Cap::wqe_inline_mode>(kNoInlineNeeded).set<Cap::rss_ind_tbl_cap>(std::bit_width(kRqTableEntries) - 1);
}

// Events that user contexts may subscribe to.
void event_page(const prm::View<prm::HcaCapUnion>& page) {
  using prm::DeviceEventCap;
  const auto cap = page.sub<prm::HcaCapUnion::device_event_cap>();
  std::uint64_t affiliated = 0;
  for (unsigned type : {0x02, 0x03, 0x04, 0x05, 0x10, 0x11, 0x12, 0x13, 0x14}) affiliated |= 1ull << type;
  cap.at<DeviceEventCap::user_affiliated_events>(0).set<prm::Qword::value>(affiliated);
  cap.at<DeviceEventCap::user_unaffiliated_events>(0).set<prm::Qword::value>(1ull << 0x09);  // port change
}

}  // namespace

bool fill_capability_page(const CapFacts& facts, CapType type, prm::View<prm::HcaCapUnion> page) {
  switch (type) {
    case CapType::general:
      general_page(facts, page);
      return true;
    case CapType::atomic:
      atomic_page(page);
      return true;
    case CapType::roce:
      roce_page(facts.profile, page);
      return true;
    case CapType::device_event:
      event_page(page);
      return true;
    case CapType::general_2:
      general_2_page(facts.profile, page);
      return true;
    case CapType::device_mem:
      device_memory_page(page);
      return true;
    case CapType::qos:
      qos_page(facts.profile, page);
      return true;
    case CapType::vdpa_emulation:
      virtio_page(page);
      return true;
    case CapType::flow_table:
      flow_table_page(page);
      return true;
    case CapType::eswitch_flow_table:
      eswitch_flow_table_page(facts, page);
      return true;
    case CapType::eswitch:
      eswitch_page(page);
      return true;
    case CapType::ethernet_offloads:
      ethernet_page(page);
      return true;
    // Pages that exist and say "nothing of this".
    case CapType::odp:
    case CapType::crypto:
      return true;
    default:
      return false;
  }
}

}  // namespace verbena::device::command
