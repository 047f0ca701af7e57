// Ports and vports: state, addresses, counters, adapter identity. The port registers are in registers.h.
// Threads: types only.
#pragma once

#include "command.h"
#include "ppcnt.h"
#include "registers.h"

namespace verbena::prm {

// op_mod of the vport state commands.
enum class VportStateOpMod : std::uint16_t { vnic = 0x0, eswitch = 0x1, uplink = 0x2 };
enum class VportState : std::uint8_t { down = 0x0, up = 0x1, follow = 0x2 };
enum class AllowedListType : std::uint8_t { current_uc_mac = 0x0, current_mc_mac = 0x1, vlan = 0x2 };
enum class RoceVersion : std::uint8_t { v1 = 0x0, v1_5 = 0x1, v2 = 0x2 };
enum class RoceL3Type : std::uint8_t { ipv4 = 0x0, ipv6 = 0x1 };

// An entry of the RoCE address (GID) table.
struct RoceAddrLayout : Layout<0x20> {
  using source_l3_address = Bytes<"source_l3_address", 0x0, 16>;
  using vlan_valid = Field<"vlan_valid", At{0x10, 28, 28}>;
  using vlan_id = Field<"vlan_id", At{0x10, 27, 16}>;
  using source_mac_47_32 = Field<"source_mac_47_32", At{0x10, 15, 0}>;
  using source_mac_31_0 = Field<"source_mac_31_0", At{0x14, 31, 0}>;
  using roce_l3_type = Field<"roce_l3_type", At{0x18, 11, 8}, RoceL3Type>;
  using roce_version = Field<"roce_version", At{0x18, 7, 0}, RoceVersion>;
  using fields =
      Fields<source_l3_address, vlan_valid, vlan_id, source_mac_47_32, source_mac_31_0, roce_l3_type, roce_version>;
};

// SET_ROCE_ADDRESS: request.
struct SetRoceAddressIn : Layout<0x30> {
  using opcode = Field<"opcode", At{0x00, 31, 16}, Opcode>;
  using op_mod = Field<"op_mod", At{0x04, 15, 0}>;
  using roce_address_index = Field<"roce_address_index", At{0x08, 31, 16}>;
  using vhca_port_num = Field<"vhca_port_num", At{0x08, 3, 0}>;
  using roce_address = Sub<"roce_address", 0x10, RoceAddrLayout>;
  using fields = Fields<opcode, op_mod, roce_address_index, vhca_port_num, roce_address>;
};

// SET_ROCE_ADDRESS: reply.
struct SetRoceAddressOut : CommandOut {};

// QUERY_ROCE_ADDRESS: request.
struct QueryRoceAddressIn : Layout<0x10> {
  using opcode = Field<"opcode", At{0x00, 31, 16}, Opcode>;
  using op_mod = Field<"op_mod", At{0x04, 15, 0}>;
  using roce_address_index = Field<"roce_address_index", At{0x08, 31, 16}>;
  using vhca_port_num = Field<"vhca_port_num", At{0x08, 3, 0}>;
  using fields = Fields<opcode, op_mod, roce_address_index, vhca_port_num>;
};

// QUERY_ROCE_ADDRESS: reply.
struct QueryRoceAddressOut : Layout<0x30> {
  using status = Field<"status", At{0x00, 31, 24}, Status>;
  using syndrome = Field<"syndrome", At{0x04, 31, 0}>;
  using roce_address = Sub<"roce_address", 0x10, RoceAddrLayout>;
  using fields = Fields<status, syndrome, roce_address>;
};

// QUERY_VPORT_STATE: request.
struct QueryVportStateIn : Layout<0x10> {
  using opcode = Field<"opcode", At{0x00, 31, 16}, Opcode>;
  using op_mod = Field<"op_mod", At{0x04, 15, 0}>;
  using other_vport = Field<"other_vport", At{0x08, 31, 31}>;
  using vport_number = Field<"vport_number", At{0x08, 15, 0}>;
  using fields = Fields<opcode, op_mod, other_vport, vport_number>;
};

// QUERY_VPORT_STATE: reply.
struct QueryVportStateOut : Layout<0x10> {
  using status = Field<"status", At{0x00, 31, 24}, Status>;
  using syndrome = Field<"syndrome", At{0x04, 31, 0}>;
  using admin_state = Field<"admin_state", At{0x0c, 7, 4}>;
  using state = Field<"state", At{0x0c, 3, 0}, VportState>;
  using fields = Fields<status, syndrome, admin_state, state>;
};

// MODIFY_VPORT_STATE: request.
struct ModifyVportStateIn : Layout<0x10> {
  using opcode = Field<"opcode", At{0x00, 31, 16}, Opcode>;
  using op_mod = Field<"op_mod", At{0x04, 15, 0}>;
  using other_vport = Field<"other_vport", At{0x08, 31, 31}>;
  using vport_number = Field<"vport_number", At{0x08, 15, 0}>;
  using admin_state = Field<"admin_state", At{0x0c, 7, 4}>;
  using fields = Fields<opcode, op_mod, other_vport, vport_number, admin_state>;
};

// MODIFY_VPORT_STATE: reply.
struct ModifyVportStateOut : CommandOut {};

// A MAC address in a list.
struct MacAddressLayout : Layout<0x8> {
  using mac_addr_47_32 = Field<"mac_addr_47_32", At{0x00, 15, 0}>;
  using mac_addr_31_0 = Field<"mac_addr_31_0", At{0x04, 31, 0}>;
  using fields = Fields<mac_addr_47_32, mac_addr_31_0>;
};

// NIC vport context: Ethernet side of a vport.
struct NicVportContext : Layout<0x100> {
  using min_wqe_inline_mode = Field<"min_wqe_inline_mode", At{0x00, 26, 24}>;
  using disable_mc_local_lb = Field<"disable_mc_local_lb", At{0x00, 2, 2}>;
  using disable_uc_local_lb = Field<"disable_uc_local_lb", At{0x00, 1, 1}>;
  using roce_en = Field<"roce_en", At{0x00, 0, 0}>;
  using arm_change_event = Field<"arm_change_event", At{0x04, 31, 31}>;
  using event_on_mtu = Field<"event_on_mtu", At{0x04, 4, 4}>;
  using event_on_promisc_change = Field<"event_on_promisc_change", At{0x04, 3, 3}>;
  using event_on_vlan_change = Field<"event_on_vlan_change", At{0x04, 2, 2}>;
  using event_on_mc_address_change = Field<"event_on_mc_address_change", At{0x04, 1, 1}>;
  using event_on_uc_address_change = Field<"event_on_uc_address_change", At{0x04, 0, 0}>;
  using vhca_id_type = Field<"vhca_id_type", At{0x08, 31, 31}>;
  using affiliation_criteria = Field<"affiliation_criteria", At{0x08, 19, 16}>;
  using affiliated_vhca_id = Field<"affiliated_vhca_id", At{0x08, 15, 0}>;
  using mtu = Field<"mtu", At{0x24, 15, 0}>;
  using system_image_guid = Field64<"system_image_guid", 0x28>;
  using port_guid = Field64<"port_guid", 0x30>;
  using node_guid = Field64<"node_guid", 0x38>;
  using qkey_violation_counter = Field<"qkey_violation_counter", At{0x68, 31, 16}>;
  using promisc_uc = Field<"promisc_uc", At{0xf0, 31, 31}>;
  using promisc_mc = Field<"promisc_mc", At{0xf0, 30, 30}>;
  using promisc_all = Field<"promisc_all", At{0xf0, 29, 29}>;
  using allowed_list_type = Field<"allowed_list_type", At{0xf0, 26, 24}, AllowedListType>;
  using allowed_list_size = Field<"allowed_list_size", At{0xf0, 11, 0}>;
  using permanent_address = Sub<"permanent_address", 0xf4, MacAddressLayout>;
  using current_uc_mac_address = Array<"current_uc_mac_address", 0x100, Qword>;
  using fields = Fields<min_wqe_inline_mode, disable_mc_local_lb, disable_uc_local_lb, roce_en, arm_change_event,
                        event_on_mtu, event_on_promisc_change, event_on_vlan_change, event_on_mc_address_change,
                        event_on_uc_address_change, vhca_id_type, affiliation_criteria, affiliated_vhca_id, mtu,
                        system_image_guid, port_guid, node_guid, qkey_violation_counter, promisc_uc, promisc_mc,
                        promisc_all, allowed_list_type, allowed_list_size, permanent_address, current_uc_mac_address>;
};

// QUERY_NIC_VPORT_CONTEXT: request.
struct QueryNicVportContextIn : Layout<0x10> {
  using opcode = Field<"opcode", At{0x00, 31, 16}, Opcode>;
  using op_mod = Field<"op_mod", At{0x04, 15, 0}>;
  using other_vport = Field<"other_vport", At{0x08, 31, 31}>;
  using vport_number = Field<"vport_number", At{0x08, 15, 0}>;
  using allowed_list_type = Field<"allowed_list_type", At{0x0c, 26, 24}, AllowedListType>;
  using fields = Fields<opcode, op_mod, other_vport, vport_number, allowed_list_type>;
};

// QUERY_NIC_VPORT_CONTEXT: reply.
struct QueryNicVportContextOut : Layout<0x110> {
  using status = Field<"status", At{0x00, 31, 24}, Status>;
  using syndrome = Field<"syndrome", At{0x04, 31, 0}>;
  using nic_vport_context = Sub<"nic_vport_context", 0x10, NicVportContext>;
  using fields = Fields<status, syndrome, nic_vport_context>;
};

// Which parts MODIFY_NIC_VPORT_CONTEXT takes over.
struct ModifyNicVportFieldSelect : Layout<0x4> {
  using affiliation = Field<"affiliation", At{0x00, 13, 13}>;
  using disable_uc_local_lb = Field<"disable_uc_local_lb", At{0x00, 11, 11}>;
  using disable_mc_local_lb = Field<"disable_mc_local_lb", At{0x00, 10, 10}>;
  using node_guid = Field<"node_guid", At{0x00, 9, 9}>;
  using port_guid = Field<"port_guid", At{0x00, 8, 8}>;
  using min_inline = Field<"min_inline", At{0x00, 7, 7}>;
  using mtu = Field<"mtu", At{0x00, 6, 6}>;
  using change_event = Field<"change_event", At{0x00, 5, 5}>;
  using promisc = Field<"promisc", At{0x00, 4, 4}>;
  using permanent_address = Field<"permanent_address", At{0x00, 3, 3}>;
  using addresses_list = Field<"addresses_list", At{0x00, 2, 2}>;
  using roce_en = Field<"roce_en", At{0x00, 1, 1}>;
  using fields = Fields<affiliation, disable_uc_local_lb, disable_mc_local_lb, node_guid, port_guid, min_inline, mtu,
                        change_event, promisc, permanent_address, addresses_list, roce_en>;
};

// MODIFY_NIC_VPORT_CONTEXT: request.
struct ModifyNicVportContextIn : Layout<0x200> {
  using opcode = Field<"opcode", At{0x00, 31, 16}, Opcode>;
  using op_mod = Field<"op_mod", At{0x04, 15, 0}>;
  using other_vport = Field<"other_vport", At{0x08, 31, 31}>;
  using vport_number = Field<"vport_number", At{0x08, 15, 0}>;
  using field_select = Sub<"field_select", 0xc, ModifyNicVportFieldSelect>;
  using nic_vport_context = Sub<"nic_vport_context", 0x100, NicVportContext>;
  using fields = Fields<opcode, op_mod, other_vport, vport_number, field_select, nic_vport_context>;
};

// MODIFY_NIC_VPORT_CONTEXT: reply.
struct ModifyNicVportContextOut : CommandOut {};

// E-switch vport context: what the switch does at a port of it.
struct EswVportContext : Layout<0x100> {
  using fdb_to_vport_reg_c = Field<"fdb_to_vport_reg_c", At{0x00, 31, 31}>;
  using vport_svlan_strip = Field<"vport_svlan_strip", At{0x00, 28, 28}>;
  using vport_cvlan_strip = Field<"vport_cvlan_strip", At{0x00, 27, 27}>;
  using vport_svlan_insert = Field<"vport_svlan_insert", At{0x00, 26, 26}>;
  using vport_cvlan_insert = Field<"vport_cvlan_insert", At{0x00, 25, 24}>;
  using fdb_to_vport_reg_c_id = Field<"fdb_to_vport_reg_c_id", At{0x00, 23, 16}>;
  using svlan_cfi = Field<"svlan_cfi", At{0x08, 31, 31}>;
  using svlan_pcp = Field<"svlan_pcp", At{0x08, 30, 28}>;
  using svlan_id = Field<"svlan_id", At{0x08, 27, 16}>;
  using cvlan_cfi = Field<"cvlan_cfi", At{0x08, 15, 15}>;
  using cvlan_pcp = Field<"cvlan_pcp", At{0x08, 14, 12}>;
  using cvlan_id = Field<"cvlan_id", At{0x08, 11, 0}>;
  using sw_steering_vport_icm_address_rx = Field64<"sw_steering_vport_icm_address_rx", 0xf0>;
  using sw_steering_vport_icm_address_tx = Field64<"sw_steering_vport_icm_address_tx", 0xf8>;
  using fields = Fields<fdb_to_vport_reg_c, vport_svlan_strip, vport_cvlan_strip, vport_svlan_insert,
                        vport_cvlan_insert, fdb_to_vport_reg_c_id, svlan_cfi, svlan_pcp, svlan_id, cvlan_cfi, cvlan_pcp,
                        cvlan_id, sw_steering_vport_icm_address_rx, sw_steering_vport_icm_address_tx>;
};

// QUERY_ESW_VPORT_CONTEXT: request.
struct QueryEswVportContextIn : Layout<0x10> {
  using opcode = Field<"opcode", At{0x00, 31, 16}, Opcode>;
  using op_mod = Field<"op_mod", At{0x04, 15, 0}>;
  using other_vport = Field<"other_vport", At{0x08, 31, 31}>;
  using vport_number = Field<"vport_number", At{0x08, 15, 0}>;
  using fields = Fields<opcode, op_mod, other_vport, vport_number>;
};

// QUERY_ESW_VPORT_CONTEXT: reply.
struct QueryEswVportContextOut : Layout<0x110> {
  using status = Field<"status", At{0x00, 31, 24}, Status>;
  using syndrome = Field<"syndrome", At{0x04, 31, 0}>;
  using esw_vport_context = Sub<"esw_vport_context", 0x10, EswVportContext>;
  using fields = Fields<status, syndrome, esw_vport_context>;
};

// HCA vport context: InfiniBand side of a vport.
struct HcaVportContext : Layout<0x200> {
  using field_select = Field<"field_select", At{0x00, 31, 0}>;
  using sm_virt_aware = Field<"sm_virt_aware", At{0x20, 31, 31}>;
  using has_smi = Field<"has_smi", At{0x20, 30, 30}>;
  using has_raw = Field<"has_raw", At{0x20, 29, 29}>;
  using grh_required = Field<"grh_required", At{0x20, 28, 28}>;
  using port_physical_state = Field<"port_physical_state", At{0x20, 15, 12}>;
  using vport_state_policy = Field<"vport_state_policy", At{0x20, 11, 8}>;
  using port_state = Field<"port_state", At{0x20, 7, 4}>;
  using vport_state = Field<"vport_state", At{0x20, 3, 0}>;
  using system_image_guid = Field64<"system_image_guid", 0x28>;
  using port_guid = Field64<"port_guid", 0x30>;
  using node_guid = Field64<"node_guid", 0x38>;
  using cap_mask1 = Field<"cap_mask1", At{0x40, 31, 0}>;
  using cap_mask1_field_select = Field<"cap_mask1_field_select", At{0x44, 31, 0}>;
  using cap_mask2 = Field<"cap_mask2", At{0x48, 31, 0}>;
  using cap_mask2_field_select = Field<"cap_mask2_field_select", At{0x4c, 31, 0}>;
  using lid = Field<"lid", At{0x60, 31, 16}>;
  using init_type_reply = Field<"init_type_reply", At{0x60, 11, 8}>;
  using lmc = Field<"lmc", At{0x60, 7, 5}>;
  using subnet_timeout = Field<"subnet_timeout", At{0x60, 4, 0}>;
  using sm_lid = Field<"sm_lid", At{0x64, 31, 16}>;
  using sm_sl = Field<"sm_sl", At{0x64, 15, 12}>;
  using qkey_violation_counter = Field<"qkey_violation_counter", At{0x68, 31, 16}>;
  using pkey_violation_counter = Field<"pkey_violation_counter", At{0x68, 15, 0}>;
  using fields = Fields<field_select, sm_virt_aware, has_smi, has_raw, grh_required, port_physical_state,
                        vport_state_policy, port_state, vport_state, system_image_guid, port_guid, node_guid, cap_mask1,
                        cap_mask1_field_select, cap_mask2, cap_mask2_field_select, lid, init_type_reply, lmc,
                        subnet_timeout, sm_lid, sm_sl, qkey_violation_counter, pkey_violation_counter>;
};

// QUERY_HCA_VPORT_CONTEXT: request.
struct QueryHcaVportContextIn : Layout<0x10> {
  using opcode = Field<"opcode", At{0x00, 31, 16}, Opcode>;
  using op_mod = Field<"op_mod", At{0x04, 15, 0}>;
  using other_vport = Field<"other_vport", At{0x08, 31, 31}>;
  using port_num = Field<"port_num", At{0x08, 19, 16}>;
  using vport_number = Field<"vport_number", At{0x08, 15, 0}>;
  using fields = Fields<opcode, op_mod, other_vport, port_num, vport_number>;
};

// QUERY_HCA_VPORT_CONTEXT: reply.
struct QueryHcaVportContextOut : Layout<0x210> {
  using status = Field<"status", At{0x00, 31, 24}, Status>;
  using syndrome = Field<"syndrome", At{0x04, 31, 0}>;
  using hca_vport_context = Sub<"hca_vport_context", 0x10, HcaVportContext>;
  using fields = Fields<status, syndrome, hca_vport_context>;
};

// MODIFY_HCA_VPORT_CONTEXT: request.
struct ModifyHcaVportContextIn : Layout<0x210> {
  using opcode = Field<"opcode", At{0x00, 31, 16}, Opcode>;
  using op_mod = Field<"op_mod", At{0x04, 15, 0}>;
  using other_vport = Field<"other_vport", At{0x08, 31, 31}>;
  using port_num = Field<"port_num", At{0x08, 19, 16}>;
  using vport_number = Field<"vport_number", At{0x08, 15, 0}>;
  using hca_vport_context = Sub<"hca_vport_context", 0x10, HcaVportContext>;
  using fields = Fields<opcode, op_mod, other_vport, port_num, vport_number, hca_vport_context>;
};

// MODIFY_HCA_VPORT_CONTEXT: reply.
struct ModifyHcaVportContextOut : CommandOut {};

// A GID.
struct Array128Auto : Layout<0x10> {
  using array128_auto = Bytes<"array128_auto", 0x0, 16>;
  using fields = Fields<array128_auto>;
};

// A P_Key.
struct Pkey : Layout<0x4> {
  using pkey = Field<"pkey", At{0x00, 15, 0}>;
  using fields = Fields<pkey>;
};

// QUERY_HCA_VPORT_GID: request.
struct QueryHcaVportGidIn : Layout<0x10> {
  using opcode = Field<"opcode", At{0x00, 31, 16}, Opcode>;
  using op_mod = Field<"op_mod", At{0x04, 15, 0}>;
  using other_vport = Field<"other_vport", At{0x08, 31, 31}>;
  using port_num = Field<"port_num", At{0x08, 19, 16}>;
  using vport_number = Field<"vport_number", At{0x08, 15, 0}>;
  using gid_index = Field<"gid_index", At{0x0c, 15, 0}>;
  using fields = Fields<opcode, op_mod, other_vport, port_num, vport_number, gid_index>;
};

// QUERY_HCA_VPORT_GID: reply.
struct QueryHcaVportGidOut : Layout<0x10> {
  using status = Field<"status", At{0x00, 31, 24}, Status>;
  using syndrome = Field<"syndrome", At{0x04, 31, 0}>;
  using gids_num = Field<"gids_num", At{0x0c, 31, 16}>;
  using gid = Array<"gid", 0x10, Array128Auto>;
  using fields = Fields<status, syndrome, gids_num, gid>;
};

// QUERY_HCA_VPORT_PKEY: request.
struct QueryHcaVportPkeyIn : Layout<0x10> {
  using opcode = Field<"opcode", At{0x00, 31, 16}, Opcode>;
  using op_mod = Field<"op_mod", At{0x04, 15, 0}>;
  using other_vport = Field<"other_vport", At{0x08, 31, 31}>;
  using port_num = Field<"port_num", At{0x08, 19, 16}>;
  using vport_number = Field<"vport_number", At{0x08, 15, 0}>;
  using pkey_index = Field<"pkey_index", At{0x0c, 15, 0}>;
  using fields = Fields<opcode, op_mod, other_vport, port_num, vport_number, pkey_index>;
};

// QUERY_HCA_VPORT_PKEY: reply.
struct QueryHcaVportPkeyOut : Layout<0x10> {
  using status = Field<"status", At{0x00, 31, 24}, Status>;
  using syndrome = Field<"syndrome", At{0x04, 31, 0}>;
  using pkey = Array<"pkey", 0x10, Pkey>;
  using fields = Fields<status, syndrome, pkey>;
};

// Packets and octets.
struct TrafficCounter : Layout<0x10> {
  using packets = Field64<"packets", 0x0>;
  using octets = Field64<"octets", 0x8>;
  using fields = Fields<packets, octets>;
};

// QUERY_VPORT_COUNTER: request.
struct QueryVportCounterIn : Layout<0x20> {
  using opcode = Field<"opcode", At{0x00, 31, 16}, Opcode>;
  using op_mod = Field<"op_mod", At{0x04, 15, 0}>;
  using other_vport = Field<"other_vport", At{0x08, 31, 31}>;
  using port_num = Field<"port_num", At{0x08, 19, 16}>;
  using vport_number = Field<"vport_number", At{0x08, 15, 0}>;
  using clear = Field<"clear", At{0x18, 31, 31}>;
  using fields = Fields<opcode, op_mod, other_vport, port_num, vport_number, clear>;
};

// QUERY_VPORT_COUNTER: reply.
struct QueryVportCounterOut : Layout<0x210> {
  using status = Field<"status", At{0x00, 31, 24}, Status>;
  using syndrome = Field<"syndrome", At{0x04, 31, 0}>;
  using received_errors = Sub<"received_errors", 0x10, TrafficCounter>;
  using transmit_errors = Sub<"transmit_errors", 0x20, TrafficCounter>;
  using received_ib_unicast = Sub<"received_ib_unicast", 0x30, TrafficCounter>;
  using transmitted_ib_unicast = Sub<"transmitted_ib_unicast", 0x40, TrafficCounter>;
  using received_ib_multicast = Sub<"received_ib_multicast", 0x50, TrafficCounter>;
  using transmitted_ib_multicast = Sub<"transmitted_ib_multicast", 0x60, TrafficCounter>;
  using received_eth_broadcast = Sub<"received_eth_broadcast", 0x70, TrafficCounter>;
  using transmitted_eth_broadcast = Sub<"transmitted_eth_broadcast", 0x80, TrafficCounter>;
  using received_eth_unicast = Sub<"received_eth_unicast", 0x90, TrafficCounter>;
  using transmitted_eth_unicast = Sub<"transmitted_eth_unicast", 0xa0, TrafficCounter>;
  using received_eth_multicast = Sub<"received_eth_multicast", 0xb0, TrafficCounter>;
  using transmitted_eth_multicast = Sub<"transmitted_eth_multicast", 0xc0, TrafficCounter>;
  using fields =
      Fields<status, syndrome, received_errors, transmit_errors, received_ib_unicast, transmitted_ib_unicast,
             received_ib_multicast, transmitted_ib_multicast, received_eth_broadcast, transmitted_eth_broadcast,
             received_eth_unicast, transmitted_eth_unicast, received_eth_multicast, transmitted_eth_multicast>;
};

// Errors of a vport that drivers report.
struct VnicDiagnosticStatistics : Layout<0x200> {
  using counter_error_queues = Field<"counter_error_queues", At{0x00, 31, 0}>;
  using total_error_queues = Field<"total_error_queues", At{0x04, 31, 0}>;
  using send_queue_priority_update_flow = Field<"send_queue_priority_update_flow", At{0x08, 31, 0}>;
  using nic_receive_steering_discard = Field64<"nic_receive_steering_discard", 0x10>;
  using receive_discard_vport_down = Field64<"receive_discard_vport_down", 0x18>;
  using transmit_discard_vport_down = Field64<"transmit_discard_vport_down", 0x20>;
  using async_eq_overrun = Field<"async_eq_overrun", At{0x28, 31, 0}>;
  using comp_eq_overrun = Field<"comp_eq_overrun", At{0x2c, 31, 0}>;
  using invalid_command = Field<"invalid_command", At{0x34, 31, 0}>;
  using quota_exceeded_command = Field<"quota_exceeded_command", At{0x38, 31, 0}>;
  using internal_rq_out_of_buffer = Field<"internal_rq_out_of_buffer", At{0x3c, 31, 0}>;
  using cq_overrun = Field<"cq_overrun", At{0x40, 31, 0}>;
  using eth_wqe_too_small = Field<"eth_wqe_too_small", At{0x44, 31, 0}>;
  using fields =
      Fields<counter_error_queues, total_error_queues, send_queue_priority_update_flow, nic_receive_steering_discard,
             receive_discard_vport_down, transmit_discard_vport_down, async_eq_overrun, comp_eq_overrun,
             invalid_command, quota_exceeded_command, internal_rq_out_of_buffer, cq_overrun, eth_wqe_too_small>;
};

// QUERY_VNIC_ENV: request.
struct QueryVnicEnvIn : Layout<0x10> {
  using opcode = Field<"opcode", At{0x00, 31, 16}, Opcode>;
  using op_mod = Field<"op_mod", At{0x04, 15, 0}>;
  using other_vport = Field<"other_vport", At{0x08, 31, 31}>;
  using vport_number = Field<"vport_number", At{0x08, 15, 0}>;
  using fields = Fields<opcode, op_mod, other_vport, vport_number>;
};

// QUERY_VNIC_ENV: reply.
struct QueryVnicEnvOut : Layout<0x210> {
  using status = Field<"status", At{0x00, 31, 24}, Status>;
  using syndrome = Field<"syndrome", At{0x04, 31, 0}>;
  using vport_env = Sub<"vport_env", 0x10, VnicDiagnosticStatistics>;
  using fields = Fields<status, syndrome, vport_env>;
};

// Identity of the board: vendor and PSID.
struct QueryAdapterParamBlock : Layout<0x100> {
  using ieee_vendor_id = Field<"ieee_vendor_id", At{0x18, 23, 0}>;
  using vsd_vendor_id = Field<"vsd_vendor_id", At{0x1c, 15, 0}>;
  using vsd = Bytes<"vsd", 0x20, 208>;
  using vsd_contd_psid = Bytes<"vsd_contd_psid", 0xf0, 16>;
  using fields = Fields<ieee_vendor_id, vsd_vendor_id, vsd, vsd_contd_psid>;
};

// QUERY_ADAPTER: request.
struct QueryAdapterIn : Layout<0x10> {
  using opcode = Field<"opcode", At{0x00, 31, 16}, Opcode>;
  using op_mod = Field<"op_mod", At{0x04, 15, 0}>;
  using fields = Fields<opcode, op_mod>;
};

// QUERY_ADAPTER: reply.
struct QueryAdapterOut : Layout<0x110> {
  using status = Field<"status", At{0x00, 31, 24}, Status>;
  using syndrome = Field<"syndrome", At{0x04, 31, 0}>;
  using query_adapter_struct = Sub<"query_adapter_struct", 0x10, QueryAdapterParamBlock>;
  using fields = Fields<status, syndrome, query_adapter_struct>;
};

// A VLAN in a list.
struct VlanLayout : Layout<0x8> {
  using vlan = Field<"vlan", At{0x00, 11, 0}>;
  using fields = Fields<vlan>;
};

// SET_L2_TABLE_ENTRY: request.
struct SetL2TableEntryIn : Layout<0x40> {
  using opcode = Field<"opcode", At{0x00, 31, 16}, Opcode>;
  using op_mod = Field<"op_mod", At{0x04, 15, 0}>;
  using table_index = Field<"table_index", At{0x14, 23, 0}>;
  using vlan_valid = Field<"vlan_valid", At{0x1c, 12, 12}>;
  using vlan = Field<"vlan", At{0x1c, 11, 0}>;
  using mac_address = Sub<"mac_address", 0x20, MacAddressLayout>;
  using fields = Fields<opcode, op_mod, table_index, vlan_valid, vlan, mac_address>;
};

// SET_L2_TABLE_ENTRY: reply.
struct SetL2TableEntryOut : CommandOut {};

// QUERY_L2_TABLE_ENTRY: request.
struct QueryL2TableEntryIn : Layout<0x40> {
  using opcode = Field<"opcode", At{0x00, 31, 16}, Opcode>;
  using op_mod = Field<"op_mod", At{0x04, 15, 0}>;
  using table_index = Field<"table_index", At{0x14, 23, 0}>;
  using fields = Fields<opcode, op_mod, table_index>;
};

// QUERY_L2_TABLE_ENTRY: reply.
struct QueryL2TableEntryOut : Layout<0x40> {
  using status = Field<"status", At{0x00, 31, 24}, Status>;
  using syndrome = Field<"syndrome", At{0x04, 31, 0}>;
  using vlan_valid = Field<"vlan_valid", At{0x1c, 12, 12}>;
  using vlan = Field<"vlan", At{0x1c, 11, 0}>;
  using mac_address = Sub<"mac_address", 0x20, MacAddressLayout>;
  using fields = Fields<status, syndrome, vlan_valid, vlan, mac_address>;
};

// DELETE_L2_TABLE_ENTRY: request.
struct DeleteL2TableEntryIn : Layout<0x40> {
  using opcode = Field<"opcode", At{0x00, 31, 16}, Opcode>;
  using op_mod = Field<"op_mod", At{0x04, 15, 0}>;
  using table_index = Field<"table_index", At{0x14, 23, 0}>;
  using fields = Fields<opcode, op_mod, table_index>;
};

// DELETE_L2_TABLE_ENTRY: reply.
struct DeleteL2TableEntryOut : CommandOut {};

}  // namespace verbena::prm
