// Capability pages other than the general and flow ones, and the commands that read and set them.
// Threads: types only.
#pragma once

#include "caps_flow.h"
#include "caps_general.h"
#include "command.h"

namespace verbena::prm {

// Capability pages. op_mod of QUERY_HCA_CAP is the page shifted left by one, and 1 for current values, 0 for maxima;
// SET_HCA_CAP takes the shifted page alone.
enum class CapType : std::uint16_t {
  general = 0x00,
  ethernet_offloads = 0x01,
  odp = 0x02,
  atomic = 0x03,
  roce = 0x04,
  ipoib_offloads = 0x05,
  ipoib_enhanced_offloads = 0x06,
  flow_table = 0x07,
  eswitch_flow_table = 0x08,
  eswitch = 0x09,
  vector_calc = 0x0b,
  qos = 0x0c,
  debug = 0x0d,
  device_mem = 0x0f,
  tls = 0x11,
  vdpa_emulation = 0x13,
  device_event = 0x14,
  ipsec = 0x15,
  crypto = 0x1a,
  shampo = 0x1d,
  macsec = 0x1f,
  general_2 = 0x20,
  port_selection = 0x25,
  adv_virtualization = 0x26,
};
enum class CapMode : std::uint16_t { max = 0, current = 1 };
constexpr std::uint32_t cap_op_mod(CapType type, CapMode mode) {
  return static_cast<std::uint32_t>(type) << 1 | static_cast<std::uint32_t>(mode);
}

// Bits of AtomicCaps::atomic_operations.
struct AtomicOperation {
  static constexpr std::uint32_t compare_swap = 1u << 0;
  static constexpr std::uint32_t fetch_add = 1u << 1;
  static constexpr std::uint32_t masked_compare_swap = 1u << 2;
  static constexpr std::uint32_t masked_fetch_add = 1u << 3;
};

// Which operations of a transport may meet a page fault.
struct OdpPerTransportServiceCap : Layout<0x4> {
  using send = Field<"send", At{0x00, 31, 31}>;
  using receive = Field<"receive", At{0x00, 30, 30}>;
  using write = Field<"write", At{0x00, 29, 29}>;
  using read = Field<"read", At{0x00, 28, 28}>;
  using atomic = Field<"atomic", At{0x00, 27, 27}>;
  using srq_receive = Field<"srq_receive", At{0x00, 26, 26}>;
  using fields = Fields<send, receive, write, read, atomic, srq_receive>;
};

// On-demand paging: CapType::odp.
struct OdpCap : Layout<0x100> {
  using sig = Field<"sig", At{0x08, 31, 31}>;
  using rc_odp_caps = Sub<"rc_odp_caps", 0x10, OdpPerTransportServiceCap>;
  using uc_odp_caps = Sub<"uc_odp_caps", 0x14, OdpPerTransportServiceCap>;
  using ud_odp_caps = Sub<"ud_odp_caps", 0x18, OdpPerTransportServiceCap>;
  using xrc_odp_caps = Sub<"xrc_odp_caps", 0x1c, OdpPerTransportServiceCap>;
  using dc_odp_caps = Sub<"dc_odp_caps", 0x20, OdpPerTransportServiceCap>;
  using fields = Fields<sig, rc_odp_caps, uc_odp_caps, ud_odp_caps, xrc_odp_caps, dc_odp_caps>;
};

// Atomic operations, CapType::atomic; sizes are bit masks of powers of two.
struct AtomicCaps : Layout<0x100> {
  using atomic_req_8B_endianness_mode = Field<"atomic_req_8B_endianness_mode", At{0x08, 31, 30}>;
  using supported_atomic_req_8B_endianness_mode_1 =
      Field<"supported_atomic_req_8B_endianness_mode_1", At{0x08, 25, 25}>;
  using atomic_operations = Field<"atomic_operations", At{0x10, 15, 0}>;
  using atomic_size_qp = Field<"atomic_size_qp", At{0x14, 15, 0}>;
  using atomic_size_dc = Field<"atomic_size_dc", At{0x18, 15, 0}>;
  using fetch_add_pci_atomic = Field<"fetch_add_pci_atomic", At{0x50, 31, 16}>;
  using swap_pci_atomic = Field<"swap_pci_atomic", At{0x50, 15, 0}>;
  using compare_swap_pci_atomic = Field<"compare_swap_pci_atomic", At{0x54, 31, 16}>;
  using fields = Fields<atomic_req_8B_endianness_mode, supported_atomic_req_8B_endianness_mode_1, atomic_operations,
                        atomic_size_qp, atomic_size_dc, fetch_add_pci_atomic, swap_pci_atomic, compare_swap_pci_atomic>;
};

// RoCE versions and the GID table: CapType::roce.
struct RoceCap : Layout<0x100> {
  using roce_apm = Field<"roce_apm", At{0x00, 31, 31}>;
  using sw_r_roce_src_udp_port = Field<"sw_r_roce_src_udp_port", At{0x00, 27, 27}>;
  using fl_rc_qp_when_roce_disabled = Field<"fl_rc_qp_when_roce_disabled", At{0x00, 26, 26}>;
  using fl_rc_qp_when_roce_enabled = Field<"fl_rc_qp_when_roce_enabled", At{0x00, 25, 25}>;
  using qp_ts_format = Field<"qp_ts_format", At{0x00, 1, 0}>;
  using l3_type = Field<"l3_type", At{0x10, 19, 16}>;
  using roce_version = Field<"roce_version", At{0x10, 7, 0}>;
  using r_roce_dest_udp_port = Field<"r_roce_dest_udp_port", At{0x14, 15, 0}>;
  using r_roce_max_src_udp_port = Field<"r_roce_max_src_udp_port", At{0x18, 31, 16}>;
  using r_roce_min_src_udp_port = Field<"r_roce_min_src_udp_port", At{0x18, 15, 0}>;
  using roce_address_table_size = Field<"roce_address_table_size", At{0x1c, 15, 0}>;
  using fields = Fields<roce_apm, sw_r_roce_src_udp_port, fl_rc_qp_when_roce_disabled, fl_rc_qp_when_roce_enabled,
                        qp_ts_format, l3_type, roce_version, r_roce_dest_udp_port, r_roce_max_src_udp_port,
                        r_roce_min_src_udp_port, roce_address_table_size>;
};

// Stateless Ethernet offloads: CapType::ethernet_offloads and the IPoIB pages.
struct PerProtocolNetworkingOffloadCaps : Layout<0x100> {
  using csum_cap = Field<"csum_cap", At{0x00, 31, 31}>;
  using vlan_cap = Field<"vlan_cap", At{0x00, 30, 30}>;
  using lro_cap = Field<"lro_cap", At{0x00, 29, 29}>;
  using lro_psh_flag = Field<"lro_psh_flag", At{0x00, 28, 28}>;
  using lro_time_stamp = Field<"lro_time_stamp", At{0x00, 27, 27}>;
  using wqe_vlan_insert = Field<"wqe_vlan_insert", At{0x00, 24, 24}>;
  using self_lb_en_modifiable = Field<"self_lb_en_modifiable", At{0x00, 23, 23}>;
  using max_lso_cap = Field<"max_lso_cap", At{0x00, 20, 16}>;
  using multi_pkt_send_wqe = Field<"multi_pkt_send_wqe", At{0x00, 15, 14}>;
  using wqe_inline_mode = Field<"wqe_inline_mode", At{0x00, 13, 12}>;
  using rss_ind_tbl_cap = Field<"rss_ind_tbl_cap", At{0x00, 11, 8}>;
  using reg_umr_sq = Field<"reg_umr_sq", At{0x00, 7, 7}>;
  using scatter_fcs = Field<"scatter_fcs", At{0x00, 6, 6}>;
  using enhanced_multi_pkt_send_wqe = Field<"enhanced_multi_pkt_send_wqe", At{0x00, 5, 5}>;
  using tunnel_lso_const_out_ip_id = Field<"tunnel_lso_const_out_ip_id", At{0x00, 4, 4}>;
  using tunnel_lro_gre = Field<"tunnel_lro_gre", At{0x00, 3, 3}>;
  using tunnel_lro_vxlan = Field<"tunnel_lro_vxlan", At{0x00, 2, 2}>;
  using tunnel_stateless_gre = Field<"tunnel_stateless_gre", At{0x00, 1, 1}>;
  using tunnel_stateless_vxlan = Field<"tunnel_stateless_vxlan", At{0x00, 0, 0}>;
  using swp = Field<"swp", At{0x04, 31, 31}>;
  using swp_csum = Field<"swp_csum", At{0x04, 30, 30}>;
  using swp_lso = Field<"swp_lso", At{0x04, 29, 29}>;
  using cqe_checksum_full = Field<"cqe_checksum_full", At{0x04, 28, 28}>;
  using tunnel_stateless_geneve_tx = Field<"tunnel_stateless_geneve_tx", At{0x04, 27, 27}>;
  using tunnel_stateless_mpls_over_udp = Field<"tunnel_stateless_mpls_over_udp", At{0x04, 26, 26}>;
  using tunnel_stateless_mpls_over_gre = Field<"tunnel_stateless_mpls_over_gre", At{0x04, 25, 25}>;
  using tunnel_stateless_vxlan_gpe = Field<"tunnel_stateless_vxlan_gpe", At{0x04, 24, 24}>;
  using tunnel_stateless_ipv4_over_vxlan = Field<"tunnel_stateless_ipv4_over_vxlan", At{0x04, 23, 23}>;
  using tunnel_stateless_ip_over_ip = Field<"tunnel_stateless_ip_over_ip", At{0x04, 22, 22}>;
  using insert_trailer = Field<"insert_trailer", At{0x04, 21, 21}>;
  using tunnel_stateless_ip_over_ip_rx = Field<"tunnel_stateless_ip_over_ip_rx", At{0x04, 19, 19}>;
  using tunnel_stateless_ip_over_ip_tx = Field<"tunnel_stateless_ip_over_ip_tx", At{0x04, 18, 18}>;
  using max_vxlan_udp_ports = Field<"max_vxlan_udp_ports", At{0x04, 15, 8}>;
  using max_geneve_opt_len = Field<"max_geneve_opt_len", At{0x04, 1, 1}>;
  using tunnel_stateless_geneve_rx = Field<"tunnel_stateless_geneve_rx", At{0x04, 0, 0}>;
  using lro_min_mss_size = Field<"lro_min_mss_size", At{0x08, 15, 0}>;
  using lro_timer_supported_periods = Array<"lro_timer_supported_periods", 0x30, Dword, 4>;
  using fields =
      Fields<csum_cap, vlan_cap, lro_cap, lro_psh_flag, lro_time_stamp, wqe_vlan_insert, self_lb_en_modifiable,
             max_lso_cap, multi_pkt_send_wqe, wqe_inline_mode, rss_ind_tbl_cap, reg_umr_sq, scatter_fcs,
             enhanced_multi_pkt_send_wqe, tunnel_lso_const_out_ip_id, tunnel_lro_gre, tunnel_lro_vxlan,
             tunnel_stateless_gre, tunnel_stateless_vxlan, swp, swp_csum, swp_lso, cqe_checksum_full,
             tunnel_stateless_geneve_tx, tunnel_stateless_mpls_over_udp, tunnel_stateless_mpls_over_gre,
             tunnel_stateless_vxlan_gpe, tunnel_stateless_ipv4_over_vxlan, tunnel_stateless_ip_over_ip, insert_trailer,
             tunnel_stateless_ip_over_ip_rx, tunnel_stateless_ip_over_ip_tx, max_vxlan_udp_ports, max_geneve_opt_len,
             tunnel_stateless_geneve_rx, lro_min_mss_size, lro_timer_supported_periods>;
};

// One operand size of the vector calculation page.
struct CalcOp : Layout<0x4> {
  using op_swap_endianness = Field<"op_swap_endianness", At{0x00, 6, 6}>;
  using op_min = Field<"op_min", At{0x00, 5, 5}>;
  using op_xor = Field<"op_xor", At{0x00, 4, 4}>;
  using op_or = Field<"op_or", At{0x00, 3, 3}>;
  using op_and = Field<"op_and", At{0x00, 2, 2}>;
  using op_max = Field<"op_max", At{0x00, 1, 1}>;
  using op_add = Field<"op_add", At{0x00, 0, 0}>;
  using fields = Fields<op_swap_endianness, op_min, op_xor, op_or, op_and, op_max, op_add>;
};

// Vector calculation: CapType::vector_calc.
struct VectorCalcCap : Layout<0xfc> {
  using calc_matrix = Field<"calc_matrix", At{0x00, 31, 31}>;
  using max_vec_count = Field<"max_vec_count", At{0x04, 23, 16}>;
  using max_chunk_size = Field<"max_chunk_size", At{0x04, 2, 0}>;
  using calc0 = Sub<"calc0", 0x8, CalcOp>;
  using calc1 = Sub<"calc1", 0xc, CalcOp>;
  using calc2 = Sub<"calc2", 0x10, CalcOp>;
  using calc3 = Sub<"calc3", 0x14, CalcOp>;
  using fields = Fields<calc_matrix, max_vec_count, max_chunk_size, calc0, calc1, calc2, calc3>;
};

// Rate limits and scheduling: CapType::qos.
struct QosCap : Layout<0x100> {
  using packet_pacing = Field<"packet_pacing", At{0x00, 31, 31}>;
  using esw_scheduling = Field<"esw_scheduling", At{0x00, 30, 30}>;
  using esw_bw_share = Field<"esw_bw_share", At{0x00, 29, 29}>;
  using esw_rate_limit = Field<"esw_rate_limit", At{0x00, 28, 28}>;
  using packet_pacing_burst_bound = Field<"packet_pacing_burst_bound", At{0x00, 26, 26}>;
  using packet_pacing_typical_size = Field<"packet_pacing_typical_size", At{0x00, 25, 25}>;
  using nic_sq_scheduling = Field<"nic_sq_scheduling", At{0x00, 23, 23}>;
  using nic_bw_share = Field<"nic_bw_share", At{0x00, 22, 22}>;
  using nic_rate_limit = Field<"nic_rate_limit", At{0x00, 21, 21}>;
  using packet_pacing_uid = Field<"packet_pacing_uid", At{0x00, 20, 20}>;
  using log_esw_max_sched_depth = Field<"log_esw_max_sched_depth", At{0x00, 19, 16}>;
  using nic_qp_scheduling = Field<"nic_qp_scheduling", At{0x04, 30, 30}>;
  using log_max_qos_nic_queue_group = Field<"log_max_qos_nic_queue_group", At{0x04, 20, 16}>;
  using packet_pacing_max_rate = Field<"packet_pacing_max_rate", At{0x08, 31, 0}>;
  using packet_pacing_min_rate = Field<"packet_pacing_min_rate", At{0x0c, 31, 0}>;
  using packet_pacing_rate_table_size = Field<"packet_pacing_rate_table_size", At{0x10, 15, 0}>;
  using esw_element_type = Field<"esw_element_type", At{0x14, 31, 16}>;
  using esw_tsar_type = Field<"esw_tsar_type", At{0x14, 15, 0}>;
  using max_qos_para_vport = Field<"max_qos_para_vport", At{0x18, 15, 0}>;
  using max_tsar_bw_share = Field<"max_tsar_bw_share", At{0x1c, 31, 0}>;
  using nic_element_type = Field<"nic_element_type", At{0x20, 31, 16}>;
  using nic_tsar_type = Field<"nic_tsar_type", At{0x20, 15, 0}>;
  using log_meter_aso_granularity = Field<"log_meter_aso_granularity", At{0x24, 28, 24}>;
  using log_meter_aso_max_alloc = Field<"log_meter_aso_max_alloc", At{0x24, 20, 16}>;
  using log_max_num_meter_aso = Field<"log_max_num_meter_aso", At{0x24, 12, 8}>;
  using fields = Fields<packet_pacing, esw_scheduling, esw_bw_share, esw_rate_limit, packet_pacing_burst_bound,
                        packet_pacing_typical_size, nic_sq_scheduling, nic_bw_share, nic_rate_limit, packet_pacing_uid,
                        log_esw_max_sched_depth, nic_qp_scheduling, log_max_qos_nic_queue_group, packet_pacing_max_rate,
                        packet_pacing_min_rate, packet_pacing_rate_table_size, esw_element_type, esw_tsar_type,
                        max_qos_para_vport, max_tsar_bw_share, nic_element_type, nic_tsar_type,
                        log_meter_aso_granularity, log_meter_aso_max_alloc, log_max_num_meter_aso>;
};

// Diagnostics: CapType::debug.
struct DebugCap : Layout<0x100> {
  using core_dump_general = Field<"core_dump_general", At{0x00, 31, 31}>;
  using core_dump_qp = Field<"core_dump_qp", At{0x00, 30, 30}>;
  using resource_dump = Field<"resource_dump", At{0x00, 22, 22}>;
  using stall_detect = Field<"stall_detect", At{0x04, 29, 29}>;
  using fields = Fields<core_dump_general, core_dump_qp, resource_dump, stall_detect>;
};

// Kernel TLS offload: CapType::tls.
struct TlsCap : Layout<0x100> {
  using tls_1_2_aes_gcm_128 = Field<"tls_1_2_aes_gcm_128", At{0x00, 31, 31}>;
  using tls_1_3_aes_gcm_128 = Field<"tls_1_3_aes_gcm_128", At{0x00, 30, 30}>;
  using tls_1_2_aes_gcm_256 = Field<"tls_1_2_aes_gcm_256", At{0x00, 29, 29}>;
  using tls_1_3_aes_gcm_256 = Field<"tls_1_3_aes_gcm_256", At{0x00, 28, 28}>;
  using fields = Fields<tls_1_2_aes_gcm_128, tls_1_3_aes_gcm_128, tls_1_2_aes_gcm_256, tls_1_3_aes_gcm_256>;
};

// On-chip memory (MEMIC, SW ICM): CapType::device_mem.
struct DeviceMemCap : Layout<0x100> {
  using memic = Field<"memic", At{0x00, 31, 31}>;
  // Which sizes of access the operations take, a bit for each power of two. The headers of Linux reserve these two.
  using memic_increment_sizes = Field<"memic_increment_sizes", At{0x04, 31, 24}>;
  using memic_test_and_set_sizes = Field<"memic_test_and_set_sizes", At{0x04, 15, 8}>;
  using log_min_memic_alloc_size = Field<"log_min_memic_alloc_size", At{0x04, 20, 16}>;
  using log_max_memic_addr_alignment = Field<"log_max_memic_addr_alignment", At{0x04, 7, 0}>;
  using memic_bar_start_addr = Field64<"memic_bar_start_addr", 0x8>;
  using memic_bar_size = Field<"memic_bar_size", At{0x10, 31, 0}>;
  using max_memic_size = Field<"max_memic_size", At{0x14, 31, 0}>;
  using steering_sw_icm_start_address = Field64<"steering_sw_icm_start_address", 0x18>;
  using log_header_modify_sw_icm_size = Field<"log_header_modify_sw_icm_size", At{0x20, 23, 16}>;
  using log_sw_icm_alloc_granularity = Field<"log_sw_icm_alloc_granularity", At{0x20, 13, 8}>;
  using log_steering_sw_icm_size = Field<"log_steering_sw_icm_size", At{0x20, 7, 0}>;
  using log_indirect_encap_sw_icm_size = Field<"log_indirect_encap_sw_icm_size", At{0x24, 31, 24}>;
  using log_header_modify_pattern_sw_icm_size = Field<"log_header_modify_pattern_sw_icm_size", At{0x24, 7, 0}>;
  using header_modify_sw_icm_start_address = Field64<"header_modify_sw_icm_start_address", 0x28>;
  using header_modify_pattern_sw_icm_start_address = Field64<"header_modify_pattern_sw_icm_start_address", 0x38>;
  using memic_operations = Field<"memic_operations", At{0x40, 31, 0}>;
  using indirect_encap_sw_icm_start_address = Field64<"indirect_encap_sw_icm_start_address", 0x48>;
  using indirect_encap_icm_base = Field64<"indirect_encap_icm_base", 0x50>;
  using fields =
      Fields<memic, memic_increment_sizes, memic_test_and_set_sizes, log_min_memic_alloc_size,
             log_max_memic_addr_alignment, memic_bar_start_addr, memic_bar_size, max_memic_size,
             steering_sw_icm_start_address, log_header_modify_sw_icm_size, log_sw_icm_alloc_granularity,
             log_steering_sw_icm_size, log_indirect_encap_sw_icm_size, log_header_modify_pattern_sw_icm_size,
             header_modify_sw_icm_start_address, header_modify_pattern_sw_icm_start_address, memic_operations,
             indirect_encap_sw_icm_start_address, indirect_encap_icm_base>;
};

// Virtio emulation: CapType::vdpa_emulation.
struct VirtioEmulationCap : Layout<0x100> {
  using desc_tunnel_offload_type = Field<"desc_tunnel_offload_type", At{0x00, 31, 31}>;
  using eth_frame_offload_type = Field<"eth_frame_offload_type", At{0x00, 30, 30}>;
  using virtio_version_1_0 = Field<"virtio_version_1_0", At{0x00, 29, 29}>;
  using device_features_bits_mask = Field<"device_features_bits_mask", At{0x00, 28, 16}>;
  using event_mode = Field<"event_mode", At{0x00, 15, 8}>;
  using virtio_queue_type = Field<"virtio_queue_type", At{0x00, 7, 0}>;
  using max_tunnel_desc = Field<"max_tunnel_desc", At{0x04, 31, 16}>;
  using log_doorbell_stride = Field<"log_doorbell_stride", At{0x04, 12, 8}>;
  using log_doorbell_bar_size = Field<"log_doorbell_bar_size", At{0x04, 4, 0}>;
  using doorbell_bar_offset = Field64<"doorbell_bar_offset", 0x8>;
  using max_emulated_devices = Field<"max_emulated_devices", At{0x10, 31, 24}>;
  using max_num_virtio_queues = Field<"max_num_virtio_queues", At{0x10, 23, 0}>;
  using umem_1_buffer_param_a = Field<"umem_1_buffer_param_a", At{0x20, 31, 0}>;
  using umem_1_buffer_param_b = Field<"umem_1_buffer_param_b", At{0x24, 31, 0}>;
  using umem_2_buffer_param_a = Field<"umem_2_buffer_param_a", At{0x28, 31, 0}>;
  using umem_2_buffer_param_b = Field<"umem_2_buffer_param_b", At{0x2c, 31, 0}>;
  using umem_3_buffer_param_a = Field<"umem_3_buffer_param_a", At{0x30, 31, 0}>;
  using umem_3_buffer_param_b = Field<"umem_3_buffer_param_b", At{0x34, 31, 0}>;
  using fields = Fields<desc_tunnel_offload_type, eth_frame_offload_type, virtio_version_1_0, device_features_bits_mask,
                        event_mode, virtio_queue_type, max_tunnel_desc, log_doorbell_stride, log_doorbell_bar_size,
                        doorbell_bar_offset, max_emulated_devices, max_num_virtio_queues, umem_1_buffer_param_a,
                        umem_1_buffer_param_b, umem_2_buffer_param_a, umem_2_buffer_param_b, umem_3_buffer_param_a,
                        umem_3_buffer_param_b>;
};

// Header split and merge on receive: CapType::shampo.
struct ShampoCap : Layout<0x100> {
  using shampo_log_max_reservation_size = Field<"shampo_log_max_reservation_size", At{0x00, 28, 24}>;
  using shampo_log_min_reservation_size = Field<"shampo_log_min_reservation_size", At{0x00, 20, 16}>;
  using shampo_min_mss_size = Field<"shampo_min_mss_size", At{0x00, 15, 0}>;
  using shampo_max_log_headers_entry_size = Field<"shampo_max_log_headers_entry_size", At{0x04, 28, 24}>;
  using fields = Fields<shampo_log_max_reservation_size, shampo_log_min_reservation_size, shampo_min_mss_size,
                        shampo_max_log_headers_entry_size>;
};

// MACsec offload: CapType::macsec.
struct MacsecCap : Layout<0x100> {
  using macsec_epn = Field<"macsec_epn", At{0x00, 31, 31}>;
  using macsec_crypto_esp_aes_gcm_256_encrypt = Field<"macsec_crypto_esp_aes_gcm_256_encrypt", At{0x00, 28, 28}>;
  using macsec_crypto_esp_aes_gcm_128_encrypt = Field<"macsec_crypto_esp_aes_gcm_128_encrypt", At{0x00, 27, 27}>;
  using macsec_crypto_esp_aes_gcm_256_decrypt = Field<"macsec_crypto_esp_aes_gcm_256_decrypt", At{0x00, 26, 26}>;
  using macsec_crypto_esp_aes_gcm_128_decrypt = Field<"macsec_crypto_esp_aes_gcm_128_decrypt", At{0x00, 25, 25}>;
  using log_max_macsec_offload = Field<"log_max_macsec_offload", At{0x00, 20, 16}>;
  using min_log_macsec_full_replay_window = Field<"min_log_macsec_full_replay_window", At{0x04, 31, 24}>;
  using max_log_macsec_full_replay_window = Field<"max_log_macsec_full_replay_window", At{0x04, 23, 16}>;
  using fields = Fields<macsec_epn, macsec_crypto_esp_aes_gcm_256_encrypt, macsec_crypto_esp_aes_gcm_128_encrypt,
                        macsec_crypto_esp_aes_gcm_256_decrypt, macsec_crypto_esp_aes_gcm_128_decrypt,
                        log_max_macsec_offload, min_log_macsec_full_replay_window, max_log_macsec_full_replay_window>;
};

// IPsec offload: CapType::ipsec.
struct IpsecCap : Layout<0x100> {
  using ipsec_full_offload = Field<"ipsec_full_offload", At{0x00, 31, 31}>;
  using ipsec_crypto_offload = Field<"ipsec_crypto_offload", At{0x00, 30, 30}>;
  using ipsec_esn = Field<"ipsec_esn", At{0x00, 29, 29}>;
  using ipsec_crypto_esp_aes_gcm_256_encrypt = Field<"ipsec_crypto_esp_aes_gcm_256_encrypt", At{0x00, 28, 28}>;
  using ipsec_crypto_esp_aes_gcm_128_encrypt = Field<"ipsec_crypto_esp_aes_gcm_128_encrypt", At{0x00, 27, 27}>;
  using ipsec_crypto_esp_aes_gcm_256_decrypt = Field<"ipsec_crypto_esp_aes_gcm_256_decrypt", At{0x00, 26, 26}>;
  using ipsec_crypto_esp_aes_gcm_128_decrypt = Field<"ipsec_crypto_esp_aes_gcm_128_decrypt", At{0x00, 25, 25}>;
  using log_max_ipsec_offload = Field<"log_max_ipsec_offload", At{0x00, 20, 16}>;
  using min_log_ipsec_full_replay_window = Field<"min_log_ipsec_full_replay_window", At{0x04, 31, 24}>;
  using max_log_ipsec_full_replay_window = Field<"max_log_ipsec_full_replay_window", At{0x04, 23, 16}>;
  using fields = Fields<ipsec_full_offload, ipsec_crypto_offload, ipsec_esn, ipsec_crypto_esp_aes_gcm_256_encrypt,
                        ipsec_crypto_esp_aes_gcm_128_encrypt, ipsec_crypto_esp_aes_gcm_256_decrypt,
                        ipsec_crypto_esp_aes_gcm_128_decrypt, log_max_ipsec_offload, min_log_ipsec_full_replay_window,
                        max_log_ipsec_full_replay_window>;
};

// Events user contexts may subscribe to, bit masks by event type: CapType::device_event.
struct DeviceEventCap : Layout<0x40> {
  using user_affiliated_events = Array<"user_affiliated_events", 0x0, Qword, 4>;
  using user_unaffiliated_events = Array<"user_unaffiliated_events", 0x20, Qword, 4>;
  using fields = Fields<user_affiliated_events, user_unaffiliated_events>;
};

// Data encryption keys: CapType::crypto.
struct CryptoCaps : Layout<0x100> {
  using wrapped_crypto_operational = Field<"wrapped_crypto_operational", At{0x00, 31, 31}>;
  using wrapped_crypto_going_to_commissioning = Field<"wrapped_crypto_going_to_commissioning", At{0x00, 30, 30}>;
  using wrapped_import_method = Field<"wrapped_import_method", At{0x00, 7, 0}>;
  using log_max_num_deks = Field<"log_max_num_deks", At{0x04, 20, 16}>;
  using log_max_num_import_keks = Field<"log_max_num_import_keks", At{0x04, 12, 8}>;
  using log_max_num_creds = Field<"log_max_num_creds", At{0x04, 4, 0}>;
  using failed_selftests = Field<"failed_selftests", At{0x08, 31, 16}>;
  using num_nv_import_keks = Field<"num_nv_import_keks", At{0x08, 15, 8}>;
  using num_nv_credentials = Field<"num_nv_credentials", At{0x08, 7, 0}>;
  using fields =
      Fields<wrapped_crypto_operational, wrapped_crypto_going_to_commissioning, wrapped_import_method, log_max_num_deks,
             log_max_num_import_keks, log_max_num_creds, failed_selftests, num_nv_import_keks, num_nv_credentials>;
};

// Page tracking for live migration: CapType::adv_virtualization.
struct AdvVirtualizationCap : Layout<0x100> {
  using pg_track_log_max_num = Field<"pg_track_log_max_num", At{0x00, 28, 24}>;
  using pg_track_max_num_range = Field<"pg_track_max_num_range", At{0x00, 23, 16}>;
  using pg_track_log_min_addr_space = Field<"pg_track_log_min_addr_space", At{0x00, 15, 8}>;
  using pg_track_log_max_addr_space = Field<"pg_track_log_max_addr_space", At{0x00, 7, 0}>;
  using pg_track_log_min_msg_size = Field<"pg_track_log_min_msg_size", At{0x04, 28, 24}>;
  using pg_track_log_max_msg_size = Field<"pg_track_log_max_msg_size", At{0x04, 20, 16}>;
  using pg_track_log_min_page_size = Field<"pg_track_log_min_page_size", At{0x04, 12, 8}>;
  using pg_track_log_max_page_size = Field<"pg_track_log_max_page_size", At{0x04, 4, 0}>;
  using fields = Fields<pg_track_log_max_num, pg_track_max_num_range, pg_track_log_min_addr_space,
                        pg_track_log_max_addr_space, pg_track_log_min_msg_size, pg_track_log_max_msg_size,
                        pg_track_log_min_page_size, pg_track_log_max_page_size>;
};

// The capability page that a query returns, by its CapType.
struct HcaCapUnion : Layout<0x1000> {
  using cmd_hca_cap = Sub<"cmd_hca_cap", 0x0, CmdHcaCap>;
  using cmd_hca_cap_2 = Sub<"cmd_hca_cap_2", 0x0, CmdHcaCap2>;
  using odp_cap = Sub<"odp_cap", 0x0, OdpCap>;
  using atomic_caps = Sub<"atomic_caps", 0x0, AtomicCaps>;
  using roce_cap = Sub<"roce_cap", 0x0, RoceCap>;
  using per_protocol_networking_offload_caps =
      Sub<"per_protocol_networking_offload_caps", 0x0, PerProtocolNetworkingOffloadCaps>;
  using flow_table_nic_cap = Sub<"flow_table_nic_cap", 0x0, FlowTableNicCap>;
  using flow_table_eswitch_cap = Sub<"flow_table_eswitch_cap", 0x0, FlowTableEswitchCap>;
  using e_switch_cap = Sub<"e_switch_cap", 0x0, ESwitchCap>;
  using port_selection_cap = Sub<"port_selection_cap", 0x0, PortSelectionCap>;
  using vector_calc_cap = Sub<"vector_calc_cap", 0x0, VectorCalcCap>;
  using qos_cap = Sub<"qos_cap", 0x0, QosCap>;
  using debug_cap = Sub<"debug_cap", 0x0, DebugCap>;
  using tls_cap = Sub<"tls_cap", 0x0, TlsCap>;
  using device_mem_cap = Sub<"device_mem_cap", 0x0, DeviceMemCap>;
  using virtio_emulation_cap = Sub<"virtio_emulation_cap", 0x0, VirtioEmulationCap>;
  using shampo_cap = Sub<"shampo_cap", 0x0, ShampoCap>;
  using macsec_cap = Sub<"macsec_cap", 0x0, MacsecCap>;
  using ipsec_cap = Sub<"ipsec_cap", 0x0, IpsecCap>;
  using device_event_cap = Sub<"device_event_cap", 0x0, DeviceEventCap>;
  using crypto_caps = Sub<"crypto_caps", 0x0, CryptoCaps>;
  using adv_virtualization_cap = Sub<"adv_virtualization_cap", 0x0, AdvVirtualizationCap>;
  using fields =
      Fields<cmd_hca_cap, cmd_hca_cap_2, odp_cap, atomic_caps, roce_cap, per_protocol_networking_offload_caps,
             flow_table_nic_cap, flow_table_eswitch_cap, e_switch_cap, port_selection_cap, vector_calc_cap, qos_cap,
             debug_cap, tls_cap, device_mem_cap, virtio_emulation_cap, shampo_cap, macsec_cap, ipsec_cap,
             device_event_cap, crypto_caps, adv_virtualization_cap>;
};

// QUERY_HCA_CAP: request.
struct QueryHcaCapIn : Layout<0x10> {
  using opcode = Field<"opcode", At{0x00, 31, 16}, Opcode>;
  using op_mod = Field<"op_mod", At{0x04, 15, 0}>;
  using other_function = Field<"other_function", At{0x08, 31, 31}>;
  using function_id = Field<"function_id", At{0x08, 15, 0}>;
  using fields = Fields<opcode, op_mod, other_function, function_id>;
};

// QUERY_HCA_CAP: reply.
struct QueryHcaCapOut : Layout<0x1010> {
  using status = Field<"status", At{0x00, 31, 24}, Status>;
  using syndrome = Field<"syndrome", At{0x04, 31, 0}>;
  using capability = Sub<"capability", 0x10, HcaCapUnion>;
  using fields = Fields<status, syndrome, capability>;
};

// SET_HCA_CAP: request.
struct SetHcaCapIn : Layout<0x1010> {
  using opcode = Field<"opcode", At{0x00, 31, 16}, Opcode>;
  using op_mod = Field<"op_mod", At{0x04, 15, 0}>;
  using other_function = Field<"other_function", At{0x08, 31, 31}>;
  using function_id = Field<"function_id", At{0x08, 15, 0}>;
  using capability = Sub<"capability", 0x10, HcaCapUnion>;
  using fields = Fields<opcode, op_mod, other_function, function_id, capability>;
};

// SET_HCA_CAP: reply.
struct SetHcaCapOut : CommandOut {};

}  // namespace verbena::prm
