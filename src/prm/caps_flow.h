// Flow steering and eswitch capabilities.
// Threads: types only.
#pragma once

#include "command.h"

namespace verbena::prm {

// Packet fields a flow table can match or change, a bit each.
struct FlowTableFieldsSupported : Layout<0x10> {
  using outer_dmac = Field<"outer_dmac", At{0x00, 31, 31}>;
  using outer_smac = Field<"outer_smac", At{0x00, 30, 30}>;
  using outer_ether_type = Field<"outer_ether_type", At{0x00, 29, 29}>;
  using outer_ip_version = Field<"outer_ip_version", At{0x00, 28, 28}>;
  using outer_first_prio = Field<"outer_first_prio", At{0x00, 27, 27}>;
  using outer_first_cfi = Field<"outer_first_cfi", At{0x00, 26, 26}>;
  using outer_first_vid = Field<"outer_first_vid", At{0x00, 25, 25}>;
  using outer_ipv4_ttl = Field<"outer_ipv4_ttl", At{0x00, 24, 24}>;
  using outer_second_prio = Field<"outer_second_prio", At{0x00, 23, 23}>;
  using outer_second_cfi = Field<"outer_second_cfi", At{0x00, 22, 22}>;
  using outer_second_vid = Field<"outer_second_vid", At{0x00, 21, 21}>;
  using outer_sip = Field<"outer_sip", At{0x00, 19, 19}>;
  using outer_dip = Field<"outer_dip", At{0x00, 18, 18}>;
  using outer_frag = Field<"outer_frag", At{0x00, 17, 17}>;
  using outer_ip_protocol = Field<"outer_ip_protocol", At{0x00, 16, 16}>;
  using outer_ip_ecn = Field<"outer_ip_ecn", At{0x00, 15, 15}>;
  using outer_ip_dscp = Field<"outer_ip_dscp", At{0x00, 14, 14}>;
  using outer_udp_sport = Field<"outer_udp_sport", At{0x00, 13, 13}>;
  using outer_udp_dport = Field<"outer_udp_dport", At{0x00, 12, 12}>;
  using outer_tcp_sport = Field<"outer_tcp_sport", At{0x00, 11, 11}>;
  using outer_tcp_dport = Field<"outer_tcp_dport", At{0x00, 10, 10}>;
  using outer_tcp_flags = Field<"outer_tcp_flags", At{0x00, 9, 9}>;
  using outer_gre_protocol = Field<"outer_gre_protocol", At{0x00, 8, 8}>;
  using outer_gre_key = Field<"outer_gre_key", At{0x00, 7, 7}>;
  using outer_vxlan_vni = Field<"outer_vxlan_vni", At{0x00, 6, 6}>;
  using outer_geneve_vni = Field<"outer_geneve_vni", At{0x00, 5, 5}>;
  using outer_geneve_oam = Field<"outer_geneve_oam", At{0x00, 4, 4}>;
  using outer_geneve_protocol_type = Field<"outer_geneve_protocol_type", At{0x00, 3, 3}>;
  using outer_geneve_opt_len = Field<"outer_geneve_opt_len", At{0x00, 2, 2}>;
  using source_vhca_port = Field<"source_vhca_port", At{0x00, 1, 1}>;
  using source_eswitch_port = Field<"source_eswitch_port", At{0x00, 0, 0}>;
  using inner_dmac = Field<"inner_dmac", At{0x04, 31, 31}>;
  using inner_smac = Field<"inner_smac", At{0x04, 30, 30}>;
  using inner_ether_type = Field<"inner_ether_type", At{0x04, 29, 29}>;
  using inner_ip_version = Field<"inner_ip_version", At{0x04, 28, 28}>;
  using inner_first_prio = Field<"inner_first_prio", At{0x04, 27, 27}>;
  using inner_first_cfi = Field<"inner_first_cfi", At{0x04, 26, 26}>;
  using inner_first_vid = Field<"inner_first_vid", At{0x04, 25, 25}>;
  using inner_second_prio = Field<"inner_second_prio", At{0x04, 23, 23}>;
  using inner_second_cfi = Field<"inner_second_cfi", At{0x04, 22, 22}>;
  using inner_second_vid = Field<"inner_second_vid", At{0x04, 21, 21}>;
  using inner_sip = Field<"inner_sip", At{0x04, 19, 19}>;
  using inner_dip = Field<"inner_dip", At{0x04, 18, 18}>;
  using inner_frag = Field<"inner_frag", At{0x04, 17, 17}>;
  using inner_ip_protocol = Field<"inner_ip_protocol", At{0x04, 16, 16}>;
  using inner_ip_ecn = Field<"inner_ip_ecn", At{0x04, 15, 15}>;
  using inner_ip_dscp = Field<"inner_ip_dscp", At{0x04, 14, 14}>;
  using inner_udp_sport = Field<"inner_udp_sport", At{0x04, 13, 13}>;
  using inner_udp_dport = Field<"inner_udp_dport", At{0x04, 12, 12}>;
  using inner_tcp_sport = Field<"inner_tcp_sport", At{0x04, 11, 11}>;
  using inner_tcp_dport = Field<"inner_tcp_dport", At{0x04, 10, 10}>;
  using inner_tcp_flags = Field<"inner_tcp_flags", At{0x04, 9, 9}>;
  using geneve_tlv_option_0_data = Field<"geneve_tlv_option_0_data", At{0x08, 31, 31}>;
  using geneve_tlv_option_0_exist = Field<"geneve_tlv_option_0_exist", At{0x08, 30, 30}>;
  using outer_first_mpls_over_udp = Field<"outer_first_mpls_over_udp", At{0x08, 26, 23}>;
  using outer_first_mpls_over_gre = Field<"outer_first_mpls_over_gre", At{0x08, 22, 19}>;
  using inner_first_mpls = Field<"inner_first_mpls", At{0x08, 18, 15}>;
  using outer_first_mpls = Field<"outer_first_mpls", At{0x08, 14, 11}>;
  using outer_esp_spi = Field<"outer_esp_spi", At{0x08, 8, 8}>;
  using bth_dst_qp = Field<"bth_dst_qp", At{0x08, 5, 5}>;
  using metadata_reg_c_7 = Field<"metadata_reg_c_7", At{0x0c, 7, 7}>;
  using metadata_reg_c_6 = Field<"metadata_reg_c_6", At{0x0c, 6, 6}>;
  using metadata_reg_c_5 = Field<"metadata_reg_c_5", At{0x0c, 5, 5}>;
  using metadata_reg_c_4 = Field<"metadata_reg_c_4", At{0x0c, 4, 4}>;
  using metadata_reg_c_3 = Field<"metadata_reg_c_3", At{0x0c, 3, 3}>;
  using metadata_reg_c_2 = Field<"metadata_reg_c_2", At{0x0c, 2, 2}>;
  using metadata_reg_c_1 = Field<"metadata_reg_c_1", At{0x0c, 1, 1}>;
  using metadata_reg_c_0 = Field<"metadata_reg_c_0", At{0x0c, 0, 0}>;
  using fields =
      Fields<outer_dmac, outer_smac, outer_ether_type, outer_ip_version, outer_first_prio, outer_first_cfi,
             outer_first_vid, outer_ipv4_ttl, outer_second_prio, outer_second_cfi, outer_second_vid, outer_sip,
             outer_dip, outer_frag, outer_ip_protocol, outer_ip_ecn, outer_ip_dscp, outer_udp_sport, outer_udp_dport,
             outer_tcp_sport, outer_tcp_dport, outer_tcp_flags, outer_gre_protocol, outer_gre_key, outer_vxlan_vni,
             outer_geneve_vni, outer_geneve_oam, outer_geneve_protocol_type, outer_geneve_opt_len, source_vhca_port,
             source_eswitch_port, inner_dmac, inner_smac, inner_ether_type, inner_ip_version, inner_first_prio,
             inner_first_cfi, inner_first_vid, inner_second_prio, inner_second_cfi, inner_second_vid, inner_sip,
             inner_dip, inner_frag, inner_ip_protocol, inner_ip_ecn, inner_ip_dscp, inner_udp_sport, inner_udp_dport,
             inner_tcp_sport, inner_tcp_dport, inner_tcp_flags, geneve_tlv_option_0_data, geneve_tlv_option_0_exist,
             outer_first_mpls_over_udp, outer_first_mpls_over_gre, inner_first_mpls, outer_first_mpls, outer_esp_spi,
             bth_dst_qp, metadata_reg_c_7, metadata_reg_c_6, metadata_reg_c_5, metadata_reg_c_4, metadata_reg_c_3,
             metadata_reg_c_2, metadata_reg_c_1, metadata_reg_c_0>;
};

// Properties of one kind of flow table.
struct FlowTablePropLayout : Layout<0x40> {
  using ft_support = Field<"ft_support", At{0x00, 31, 31}>;
  using flow_counter = Field<"flow_counter", At{0x00, 29, 29}>;
  using flow_modify_en = Field<"flow_modify_en", At{0x00, 28, 28}>;
  using modify_root = Field<"modify_root", At{0x00, 27, 27}>;
  using identified_miss_table_mode = Field<"identified_miss_table_mode", At{0x00, 26, 26}>;
  using flow_table_modify = Field<"flow_table_modify", At{0x00, 25, 25}>;
  using reformat = Field<"reformat", At{0x00, 24, 24}>;
  using decap = Field<"decap", At{0x00, 23, 23}>;
  using pop_vlan = Field<"pop_vlan", At{0x00, 21, 21}>;
  using push_vlan = Field<"push_vlan", At{0x00, 20, 20}>;
  using pop_vlan_2 = Field<"pop_vlan_2", At{0x00, 18, 18}>;
  using push_vlan_2 = Field<"push_vlan_2", At{0x00, 17, 17}>;
  using reformat_and_vlan_action = Field<"reformat_and_vlan_action", At{0x00, 16, 16}>;
  using sw_owner = Field<"sw_owner", At{0x00, 14, 14}>;
  using reformat_l3_tunnel_to_l2 = Field<"reformat_l3_tunnel_to_l2", At{0x00, 13, 13}>;
  using reformat_l2_to_l3_tunnel = Field<"reformat_l2_to_l3_tunnel", At{0x00, 12, 12}>;
  using reformat_and_modify_action = Field<"reformat_and_modify_action", At{0x00, 11, 11}>;
  using ignore_flow_level = Field<"ignore_flow_level", At{0x00, 10, 10}>;
  using table_miss_action_domain = Field<"table_miss_action_domain", At{0x00, 8, 8}>;
  using termination_table = Field<"termination_table", At{0x00, 7, 7}>;
  using reformat_and_fwd_to_table = Field<"reformat_and_fwd_to_table", At{0x00, 6, 6}>;
  using ipsec_encrypt = Field<"ipsec_encrypt", At{0x00, 3, 3}>;
  using ipsec_decrypt = Field<"ipsec_decrypt", At{0x00, 2, 2}>;
  using sw_owner_v2 = Field<"sw_owner_v2", At{0x00, 1, 1}>;
  using termination_table_raw_traffic = Field<"termination_table_raw_traffic", At{0x04, 31, 31}>;
  using log_max_ft_size = Field<"log_max_ft_size", At{0x04, 29, 24}>;
  using log_max_modify_header_context = Field<"log_max_modify_header_context", At{0x04, 23, 16}>;
  using max_modify_header_actions = Field<"max_modify_header_actions", At{0x04, 15, 8}>;
  using max_ft_level = Field<"max_ft_level", At{0x04, 7, 0}>;
  using execute_aso = Field<"execute_aso", At{0x08, 25, 25}>;
  using reformat_insert = Field<"reformat_insert", At{0x0c, 29, 29}>;
  using reformat_remove = Field<"reformat_remove", At{0x0c, 28, 28}>;
  using macsec_encrypt = Field<"macsec_encrypt", At{0x0c, 27, 27}>;
  using macsec_decrypt = Field<"macsec_decrypt", At{0x0c, 26, 26}>;
  using reformat_add_macsec = Field<"reformat_add_macsec", At{0x0c, 23, 23}>;
  using reformat_remove_macsec = Field<"reformat_remove_macsec", At{0x0c, 22, 22}>;
  using log_max_ft_num = Field<"log_max_ft_num", At{0x0c, 7, 0}>;
  using log_max_flow_counter = Field<"log_max_flow_counter", At{0x10, 15, 8}>;
  using log_max_destination = Field<"log_max_destination", At{0x10, 7, 0}>;
  using log_max_flow = Field<"log_max_flow", At{0x14, 7, 0}>;
  using ft_field_support = Sub<"ft_field_support", 0x20, FlowTableFieldsSupported>;
  using ft_field_bitmask_support = Sub<"ft_field_bitmask_support", 0x30, FlowTableFieldsSupported>;
  using fields =
      Fields<ft_support, flow_counter, flow_modify_en, modify_root, identified_miss_table_mode, flow_table_modify,
             reformat, decap, pop_vlan, push_vlan, pop_vlan_2, push_vlan_2, reformat_and_vlan_action, sw_owner,
             reformat_l3_tunnel_to_l2, reformat_l2_to_l3_tunnel, reformat_and_modify_action, ignore_flow_level,
             table_miss_action_domain, termination_table, reformat_and_fwd_to_table, ipsec_encrypt, ipsec_decrypt,
             sw_owner_v2, termination_table_raw_traffic, log_max_ft_size, log_max_modify_header_context,
             max_modify_header_actions, max_ft_level, execute_aso, reformat_insert, reformat_remove, macsec_encrypt,
             macsec_decrypt, reformat_add_macsec, reformat_remove_macsec, log_max_ft_num, log_max_flow_counter,
             log_max_destination, log_max_flow, ft_field_support, ft_field_bitmask_support>;
};

// More packet fields a flow table can match.
struct FlowTableFieldsSupported2 : Layout<0x10> {
  using bth_opcode = Field<"bth_opcode", At{0x00, 17, 17}>;
  using fields = Fields<bth_opcode>;
};

// NIC flow tables: CapType::flow_table.
struct FlowTableNicCap : Layout<0x1000> {
  using nic_rx_multi_path_tirs = Field<"nic_rx_multi_path_tirs", At{0x00, 31, 31}>;
  using nic_rx_multi_path_tirs_fts = Field<"nic_rx_multi_path_tirs_fts", At{0x00, 30, 30}>;
  using allow_sniffer_and_nic_rx_shared_tir = Field<"allow_sniffer_and_nic_rx_shared_tir", At{0x00, 29, 29}>;
  using sw_owner_reformat_supported = Field<"sw_owner_reformat_supported", At{0x00, 24, 24}>;
  using encap_general_header = Field<"encap_general_header", At{0x04, 31, 31}>;
  using log_max_packet_reformat_context = Field<"log_max_packet_reformat_context", At{0x04, 20, 16}>;
  using max_encap_header_size = Field<"max_encap_header_size", At{0x04, 9, 0}>;
  using flow_table_properties_nic_receive = Sub<"flow_table_properties_nic_receive", 0x40, FlowTablePropLayout>;
  using flow_table_properties_nic_receive_rdma =
      Sub<"flow_table_properties_nic_receive_rdma", 0x80, FlowTablePropLayout>;
  using flow_table_properties_nic_receive_sniffer =
      Sub<"flow_table_properties_nic_receive_sniffer", 0xc0, FlowTablePropLayout>;
  using flow_table_properties_nic_transmit = Sub<"flow_table_properties_nic_transmit", 0x100, FlowTablePropLayout>;
  using flow_table_properties_nic_transmit_rdma =
      Sub<"flow_table_properties_nic_transmit_rdma", 0x140, FlowTablePropLayout>;
  using flow_table_properties_nic_transmit_sniffer =
      Sub<"flow_table_properties_nic_transmit_sniffer", 0x180, FlowTablePropLayout>;
  using ft_field_support_2_nic_receive_rdma =
      Sub<"ft_field_support_2_nic_receive_rdma", 0x2a0, FlowTableFieldsSupported2>;
  using ft_field_support_2_nic_transmit_rdma =
      Sub<"ft_field_support_2_nic_transmit_rdma", 0x300, FlowTableFieldsSupported2>;
  using sw_steering_nic_rx_action_drop_icm_address = Field64<"sw_steering_nic_rx_action_drop_icm_address", 0x400>;
  using sw_steering_nic_tx_action_drop_icm_address = Field64<"sw_steering_nic_tx_action_drop_icm_address", 0x408>;
  using sw_steering_nic_tx_action_allow_icm_address = Field64<"sw_steering_nic_tx_action_allow_icm_address", 0x410>;
  using fields = Fields<nic_rx_multi_path_tirs, nic_rx_multi_path_tirs_fts, allow_sniffer_and_nic_rx_shared_tir,
                        sw_owner_reformat_supported, encap_general_header, log_max_packet_reformat_context,
                        max_encap_header_size, flow_table_properties_nic_receive,
                        flow_table_properties_nic_receive_rdma, flow_table_properties_nic_receive_sniffer,
                        flow_table_properties_nic_transmit, flow_table_properties_nic_transmit_rdma,
                        flow_table_properties_nic_transmit_sniffer, ft_field_support_2_nic_receive_rdma,
                        ft_field_support_2_nic_transmit_rdma, sw_steering_nic_rx_action_drop_icm_address,
                        sw_steering_nic_tx_action_drop_icm_address, sw_steering_nic_tx_action_allow_icm_address>;
};

// Eswitch flow tables: CapType::eswitch_flow_table.
struct FlowTableEswitchCap : Layout<0x1000> {
  using fdb_to_vport_reg_c_id = Field<"fdb_to_vport_reg_c_id", At{0x00, 31, 24}>;
  using fdb_modify_header_fwd_to_table = Field<"fdb_modify_header_fwd_to_table", At{0x00, 10, 10}>;
  using fdb_ipv4_ttl_modify = Field<"fdb_ipv4_ttl_modify", At{0x00, 9, 9}>;
  using flow_source = Field<"flow_source", At{0x00, 8, 8}>;
  using multi_fdb_encap = Field<"multi_fdb_encap", At{0x00, 5, 5}>;
  using egress_acl_forward_to_vport = Field<"egress_acl_forward_to_vport", At{0x00, 4, 4}>;
  using fdb_multi_path_to_table = Field<"fdb_multi_path_to_table", At{0x00, 3, 3}>;
  using flow_table_properties_nic_esw_fdb = Sub<"flow_table_properties_nic_esw_fdb", 0x40, FlowTablePropLayout>;
  using flow_table_properties_esw_acl_ingress = Sub<"flow_table_properties_esw_acl_ingress", 0x80, FlowTablePropLayout>;
  using flow_table_properties_esw_acl_egress = Sub<"flow_table_properties_esw_acl_egress", 0xc0, FlowTablePropLayout>;
  using sw_steering_fdb_action_drop_icm_address_rx = Field64<"sw_steering_fdb_action_drop_icm_address_rx", 0x300>;
  using sw_steering_fdb_action_drop_icm_address_tx = Field64<"sw_steering_fdb_action_drop_icm_address_tx", 0x308>;
  using sw_steering_uplink_icm_address_rx = Field64<"sw_steering_uplink_icm_address_rx", 0x310>;
  using sw_steering_uplink_icm_address_tx = Field64<"sw_steering_uplink_icm_address_tx", 0x318>;
  using fields =
      Fields<fdb_to_vport_reg_c_id, fdb_modify_header_fwd_to_table, fdb_ipv4_ttl_modify, flow_source, multi_fdb_encap,
             egress_acl_forward_to_vport, fdb_multi_path_to_table, flow_table_properties_nic_esw_fdb,
             flow_table_properties_esw_acl_ingress, flow_table_properties_esw_acl_egress,
             sw_steering_fdb_action_drop_icm_address_rx, sw_steering_fdb_action_drop_icm_address_tx,
             sw_steering_uplink_icm_address_rx, sw_steering_uplink_icm_address_tx>;
};

// Eswitch: CapType::eswitch.
struct ESwitchCap : Layout<0x100> {
  using vport_svlan_strip = Field<"vport_svlan_strip", At{0x00, 31, 31}>;
  using vport_cvlan_strip = Field<"vport_cvlan_strip", At{0x00, 30, 30}>;
  using vport_svlan_insert = Field<"vport_svlan_insert", At{0x00, 29, 29}>;
  using vport_cvlan_insert_if_not_exist = Field<"vport_cvlan_insert_if_not_exist", At{0x00, 28, 28}>;
  using vport_cvlan_insert_overwrite = Field<"vport_cvlan_insert_overwrite", At{0x00, 27, 27}>;
  using vport_cvlan_insert_always = Field<"vport_cvlan_insert_always", At{0x00, 25, 25}>;
  using esw_shared_ingress_acl = Field<"esw_shared_ingress_acl", At{0x00, 24, 24}>;
  using esw_uplink_ingress_acl = Field<"esw_uplink_ingress_acl", At{0x00, 23, 23}>;
  using root_ft_on_other_esw = Field<"root_ft_on_other_esw", At{0x00, 22, 22}>;
  using esw_functions_changed = Field<"esw_functions_changed", At{0x00, 6, 6}>;
  using ecpf_vport_exists = Field<"ecpf_vport_exists", At{0x00, 4, 4}>;
  using counter_eswitch_affinity = Field<"counter_eswitch_affinity", At{0x00, 3, 3}>;
  using merged_eswitch = Field<"merged_eswitch", At{0x00, 2, 2}>;
  using nic_vport_node_guid_modify = Field<"nic_vport_node_guid_modify", At{0x00, 1, 1}>;
  using nic_vport_port_guid_modify = Field<"nic_vport_port_guid_modify", At{0x00, 0, 0}>;
  using vxlan_encap_decap = Field<"vxlan_encap_decap", At{0x04, 31, 31}>;
  using nvgre_encap_decap = Field<"nvgre_encap_decap", At{0x04, 30, 30}>;
  using log_max_fdb_encap_uplink = Field<"log_max_fdb_encap_uplink", At{0x04, 28, 24}>;
  using log_max_packet_reformat_context = Field<"log_max_packet_reformat_context", At{0x04, 20, 16}>;
  using max_encap_header_size = Field<"max_encap_header_size", At{0x04, 9, 0}>;
  using log_max_esw_sf = Field<"log_max_esw_sf", At{0x08, 20, 16}>;
  using esw_sf_base_id = Field<"esw_sf_base_id", At{0x08, 15, 0}>;
  // The headers of Linux 6.1 reserve these two.
  using esw_manager_vport_number_valid = Field<"esw_manager_vport_number_valid", At{0x0c, 31, 31}>;
  using esw_manager_vport_number = Field<"esw_manager_vport_number", At{0x0c, 15, 0}>;
  using fields = Fields<vport_svlan_strip, vport_cvlan_strip, vport_svlan_insert, vport_cvlan_insert_if_not_exist,
                        vport_cvlan_insert_overwrite, vport_cvlan_insert_always, esw_shared_ingress_acl,
                        esw_uplink_ingress_acl, root_ft_on_other_esw, esw_functions_changed, ecpf_vport_exists,
                        counter_eswitch_affinity, merged_eswitch, nic_vport_node_guid_modify,
                        nic_vport_port_guid_modify, vxlan_encap_decap, nvgre_encap_decap, log_max_fdb_encap_uplink,
                        log_max_packet_reformat_context, max_encap_header_size, log_max_esw_sf, esw_sf_base_id,
                        esw_manager_vport_number_valid, esw_manager_vport_number>;
};

// Port selection of LAG: CapType::port_selection.
struct PortSelectionCap : Layout<0x1000> {
  using port_select_flow_table = Field<"port_select_flow_table", At{0x00, 15, 15}>;
  using port_select_flow_table_bypass = Field<"port_select_flow_table_bypass", At{0x00, 13, 13}>;
  using flow_table_properties_port_selection = Sub<"flow_table_properties_port_selection", 0x40, FlowTablePropLayout>;
  using fields = Fields<port_select_flow_table, port_select_flow_table_bypass, flow_table_properties_port_selection>;
};

}  // namespace verbena::prm
