// Steering: what packets are matched by, tables of entries, counters.
// Threads: types only.
#pragma once

#include "command.h"
#include "port.h"

namespace verbena::prm {

enum class FlowTableType : std::uint8_t {
  nic_rx = 0x0,
  nic_tx = 0x1,
  esw_egress_acl = 0x2,
  esw_ingress_acl = 0x3,
  fdb = 0x4,
  sniffer_rx = 0x5,
  sniffer_tx = 0x6,
  rdma_rx = 0x7,
  rdma_tx = 0x8,
};
enum class FlowMissAction : std::uint8_t { default_ = 0x0, forward = 0x1, switch_domain = 0x2 };
enum class FlowDestination : std::uint8_t {
  vport = 0x0,
  flow_table = 0x1,
  tir = 0x2,
  sampler = 0x6,
  uplink = 0x8,
  table_type = 0xa,
};

// Bits of FlowContext::action.
struct FlowAction {
  static constexpr std::uint32_t allow = 1u << 0;
  static constexpr std::uint32_t drop = 1u << 1;
  static constexpr std::uint32_t fwd_dest = 1u << 2;
  static constexpr std::uint32_t count = 1u << 3;
};
// Bits of SET_FLOW_TABLE_ENTRY's modify_enable_mask.
struct FteModify {
  static constexpr std::uint32_t action = 1u << 0;
  static constexpr std::uint32_t flow_tag = 1u << 1;
  static constexpr std::uint32_t destination_list = 1u << 2;
  static constexpr std::uint32_t flow_counters = 1u << 3;
  static constexpr std::uint32_t all = 0xf;
};
// Bits of MODIFY_FLOW_TABLE's modify_field_select.
inline constexpr std::uint32_t kFlowTableModifyMiss = 1u << 0;
// Bits of match_criteria_enable.
inline constexpr std::uint32_t kMatchOuterHeaders = 1u << 0;

// The two shapes of an address: IPv4 in the last dword.
struct MatchAddress : Layout<0x10> {
  using ipv6 = Bytes<"ipv6", 0x0, 16>;
  using fields = Fields<ipv6>;
};

// Headers of one level, as a value or as a mask.
struct FteMatchSetLyr24 : Layout<0x40> {
  using smac_47_16 = Field<"smac_47_16", At{0x00, 31, 0}>;
  using smac_15_0 = Field<"smac_15_0", At{0x04, 31, 16}>;
  using ethertype = Field<"ethertype", At{0x04, 15, 0}>;
  using dmac_47_16 = Field<"dmac_47_16", At{0x08, 31, 0}>;
  using dmac_15_0 = Field<"dmac_15_0", At{0x0c, 31, 16}>;
  using first_prio = Field<"first_prio", At{0x0c, 15, 13}>;
  using first_cfi = Field<"first_cfi", At{0x0c, 12, 12}>;
  using first_vid = Field<"first_vid", At{0x0c, 11, 0}>;
  using ip_protocol = Field<"ip_protocol", At{0x10, 31, 24}>;
  using ip_dscp = Field<"ip_dscp", At{0x10, 23, 18}>;
  using ip_ecn = Field<"ip_ecn", At{0x10, 17, 16}>;
  using cvlan_tag = Field<"cvlan_tag", At{0x10, 15, 15}>;
  using svlan_tag = Field<"svlan_tag", At{0x10, 14, 14}>;
  using frag = Field<"frag", At{0x10, 13, 13}>;
  using ip_version = Field<"ip_version", At{0x10, 12, 9}>;
  using tcp_flags = Field<"tcp_flags", At{0x10, 8, 0}>;
  using tcp_sport = Field<"tcp_sport", At{0x14, 31, 16}>;
  using tcp_dport = Field<"tcp_dport", At{0x14, 15, 0}>;
  using ipv4_ihl = Field<"ipv4_ihl", At{0x18, 15, 12}>;
  using ttl_hoplimit = Field<"ttl_hoplimit", At{0x18, 7, 0}>;
  using udp_sport = Field<"udp_sport", At{0x1c, 31, 16}>;
  using udp_dport = Field<"udp_dport", At{0x1c, 15, 0}>;
  using src_ipv4_src_ipv6 = Sub<"src_ipv4_src_ipv6", 0x20, MatchAddress>;
  using dst_ipv4_dst_ipv6 = Sub<"dst_ipv4_dst_ipv6", 0x30, MatchAddress>;
  using fields =
      Fields<smac_47_16, smac_15_0, ethertype, dmac_47_16, dmac_15_0, first_prio, first_cfi, first_vid, ip_protocol,
             ip_dscp, ip_ecn, cvlan_tag, svlan_tag, frag, ip_version, tcp_flags, tcp_sport, tcp_dport, ipv4_ihl,
             ttl_hoplimit, udp_sport, udp_dport, src_ipv4_src_ipv6, dst_ipv4_dst_ipv6>;
};

// All that entries can match by. This device matches by outer headers.
struct FteMatchParam : Layout<0x200> {
  using outer_headers = Sub<"outer_headers", 0x0, FteMatchSetLyr24>;
  using fields = Fields<outer_headers>;
};

// A VLAN tag to push.
struct Vlan : Layout<0x4> {
  using ethtype = Field<"ethtype", At{0x00, 31, 16}>;
  using prio = Field<"prio", At{0x00, 15, 13}>;
  using cfi = Field<"cfi", At{0x00, 12, 12}>;
  using vid = Field<"vid", At{0x00, 11, 0}>;
  using fields = Fields<ethtype, prio, cfi, vid>;
};

// Where packets of an entry go.
struct DestFormatStruct : Layout<0x8> {
  using destination_type = Field<"destination_type", At{0x00, 31, 24}>;
  using destination_id = Field<"destination_id", At{0x00, 23, 0}>;
  using destination_eswitch_owner_vhca_id_valid = Field<"destination_eswitch_owner_vhca_id_valid", At{0x04, 31, 31}>;
  using packet_reformat = Field<"packet_reformat", At{0x04, 30, 30}>;
  using destination_eswitch_owner_vhca_id = Field<"destination_eswitch_owner_vhca_id", At{0x04, 15, 0}>;
  using fields =
      Fields<destination_type, destination_id, destination_eswitch_owner_vhca_id_valid, packet_reformat,
             destination_eswitch_owner_vhca_id>;
};

// A counter of an entry, behind its destinations.
struct FlowCounterList : Layout<0x8> {
  using flow_counter_id = Field<"flow_counter_id", At{0x00, 31, 0}>;
  using fields = Fields<flow_counter_id>;
};

// An entry of a flow table. Its destinations (DestFormatStruct), then its counters (FlowCounterList) stand behind it.
struct FlowContext : Layout<0x300> {
  using push_vlan = Sub<"push_vlan", 0x0, Vlan>;
  using group_id = Field<"group_id", At{0x04, 31, 0}>;
  using flow_tag = Field<"flow_tag", At{0x08, 23, 0}>;
  using action = Field<"action", At{0x0c, 15, 0}>;
  using extended_destination = Field<"extended_destination", At{0x10, 31, 31}>;
  using flow_source = Field<"flow_source", At{0x10, 29, 28}>;
  using encrypt_decrypt_type = Field<"encrypt_decrypt_type", At{0x10, 27, 24}>;
  using destination_list_size = Field<"destination_list_size", At{0x10, 23, 0}>;
  using flow_counter_list_size = Field<"flow_counter_list_size", At{0x14, 23, 0}>;
  using packet_reformat_id = Field<"packet_reformat_id", At{0x18, 31, 0}>;
  using modify_header_id = Field<"modify_header_id", At{0x1c, 31, 0}>;
  using push_vlan_2 = Sub<"push_vlan_2", 0x20, Vlan>;
  using encrypt_decrypt_obj_id = Field<"encrypt_decrypt_obj_id", At{0x24, 31, 0}>;
  using match_value = Sub<"match_value", 0x40, FteMatchParam>;
  using fields =
      Fields<push_vlan, group_id, flow_tag, action, extended_destination, flow_source, encrypt_decrypt_type,
             destination_list_size, flow_counter_list_size, packet_reformat_id, modify_header_id, push_vlan_2,
             encrypt_decrypt_obj_id, match_value>;
};

// A flow table.
struct FlowTableContext : Layout<0x28> {
  using reformat_en = Field<"reformat_en", At{0x00, 31, 31}>;
  using decap_en = Field<"decap_en", At{0x00, 30, 30}>;
  using sw_owner = Field<"sw_owner", At{0x00, 29, 29}>;
  using termination_table = Field<"termination_table", At{0x00, 28, 28}>;
  using table_miss_action = Field<"table_miss_action", At{0x00, 27, 24}, FlowMissAction>;
  using level = Field<"level", At{0x00, 23, 16}>;
  using log_size = Field<"log_size", At{0x00, 7, 0}>;
  using table_miss_id = Field<"table_miss_id", At{0x04, 23, 0}>;
  using lag_master_next_table_id = Field<"lag_master_next_table_id", At{0x08, 23, 0}>;
  using sw_owner_icm_root_1 = Field64<"sw_owner_icm_root_1", 0x18>;
  using sw_owner_icm_root_0 = Field64<"sw_owner_icm_root_0", 0x20>;
  using fields =
      Fields<reformat_en, decap_en, sw_owner, termination_table, table_miss_action, level, log_size, table_miss_id,
             lag_master_next_table_id, sw_owner_icm_root_1, sw_owner_icm_root_0>;
};

// SET_FLOW_TABLE_ROOT: request.
struct SetFlowTableRootIn : Layout<0x40> {
  using opcode = Field<"opcode", At{0x00, 31, 16}, Opcode>;
  using op_mod = Field<"op_mod", At{0x04, 15, 0}>;
  using other_vport = Field<"other_vport", At{0x08, 31, 31}>;
  using vport_number = Field<"vport_number", At{0x08, 15, 0}>;
  using table_type = Field<"table_type", At{0x10, 31, 24}, FlowTableType>;
  using table_of_other_vport = Field<"table_of_other_vport", At{0x10, 16, 16}>;
  using table_vport_number = Field<"table_vport_number", At{0x10, 15, 0}>;
  using table_id = Field<"table_id", At{0x14, 23, 0}>;
  using underlay_qpn = Field<"underlay_qpn", At{0x18, 23, 0}>;
  using table_eswitch_owner_vhca_id_valid = Field<"table_eswitch_owner_vhca_id_valid", At{0x1c, 31, 31}>;
  using table_eswitch_owner_vhca_id = Field<"table_eswitch_owner_vhca_id", At{0x1c, 15, 0}>;
  using fields =
      Fields<opcode, op_mod, other_vport, vport_number, table_type, table_of_other_vport, table_vport_number, table_id,
             underlay_qpn, table_eswitch_owner_vhca_id_valid, table_eswitch_owner_vhca_id>;
};

// SET_FLOW_TABLE_ROOT: reply.
struct SetFlowTableRootOut : CommandOut {};

// CREATE_FLOW_TABLE: request.
struct CreateFlowTableIn : Layout<0x40> {
  using opcode = Field<"opcode", At{0x00, 31, 16}, Opcode>;
  using uid = Field<"uid", At{0x00, 15, 0}>;
  using op_mod = Field<"op_mod", At{0x04, 15, 0}>;
  using other_vport = Field<"other_vport", At{0x08, 31, 31}>;
  using vport_number = Field<"vport_number", At{0x08, 15, 0}>;
  using table_type = Field<"table_type", At{0x10, 31, 24}, FlowTableType>;
  using flow_table_context = Sub<"flow_table_context", 0x18, FlowTableContext>;
  using fields = Fields<opcode, uid, op_mod, other_vport, vport_number, table_type, flow_table_context>;
};

// CREATE_FLOW_TABLE: reply.
struct CreateFlowTableOut : Layout<0x10> {
  using status = Field<"status", At{0x00, 31, 24}, Status>;
  using icm_address_63_40 = Field<"icm_address_63_40", At{0x00, 23, 0}>;
  using syndrome = Field<"syndrome", At{0x04, 31, 0}>;
  using icm_address_39_32 = Field<"icm_address_39_32", At{0x08, 31, 24}>;
  using table_id = Field<"table_id", At{0x08, 23, 0}>;
  using icm_address_31_0 = Field<"icm_address_31_0", At{0x0c, 31, 0}>;
  using fields = Fields<status, icm_address_63_40, syndrome, icm_address_39_32, table_id, icm_address_31_0>;
};

// DESTROY_FLOW_TABLE: request.
struct DestroyFlowTableIn : Layout<0x40> {
  using opcode = Field<"opcode", At{0x00, 31, 16}, Opcode>;
  using op_mod = Field<"op_mod", At{0x04, 15, 0}>;
  using other_vport = Field<"other_vport", At{0x08, 31, 31}>;
  using vport_number = Field<"vport_number", At{0x08, 15, 0}>;
  using table_type = Field<"table_type", At{0x10, 31, 24}, FlowTableType>;
  using table_id = Field<"table_id", At{0x14, 23, 0}>;
  using fields = Fields<opcode, op_mod, other_vport, vport_number, table_type, table_id>;
};

// DESTROY_FLOW_TABLE: reply.
struct DestroyFlowTableOut : CommandOut {};

// QUERY_FLOW_TABLE: request.
struct QueryFlowTableIn : Layout<0x40> {
  using opcode = Field<"opcode", At{0x00, 31, 16}, Opcode>;
  using op_mod = Field<"op_mod", At{0x04, 15, 0}>;
  using table_type = Field<"table_type", At{0x10, 31, 24}, FlowTableType>;
  using table_id = Field<"table_id", At{0x14, 23, 0}>;
  using fields = Fields<opcode, op_mod, table_type, table_id>;
};

// QUERY_FLOW_TABLE: reply.
struct QueryFlowTableOut : Layout<0x40> {
  using status = Field<"status", At{0x00, 31, 24}, Status>;
  using syndrome = Field<"syndrome", At{0x04, 31, 0}>;
  using flow_table_context = Sub<"flow_table_context", 0x18, FlowTableContext>;
  using fields = Fields<status, syndrome, flow_table_context>;
};

// MODIFY_FLOW_TABLE: request.
struct ModifyFlowTableIn : Layout<0x40> {
  using opcode = Field<"opcode", At{0x00, 31, 16}, Opcode>;
  using op_mod = Field<"op_mod", At{0x04, 15, 0}>;
  using other_vport = Field<"other_vport", At{0x08, 31, 31}>;
  using vport_number = Field<"vport_number", At{0x08, 15, 0}>;
  using modify_field_select = Field<"modify_field_select", At{0x0c, 15, 0}>;
  using table_type = Field<"table_type", At{0x10, 31, 24}, FlowTableType>;
  using table_id = Field<"table_id", At{0x14, 23, 0}>;
  using flow_table_context = Sub<"flow_table_context", 0x18, FlowTableContext>;
  using fields =
      Fields<opcode, op_mod, other_vport, vport_number, modify_field_select, table_type, table_id, flow_table_context>;
};

// MODIFY_FLOW_TABLE: reply.
struct ModifyFlowTableOut : CommandOut {};

// CREATE_FLOW_GROUP: request.
struct CreateFlowGroupIn : Layout<0x400> {
  using opcode = Field<"opcode", At{0x00, 31, 16}, Opcode>;
  using op_mod = Field<"op_mod", At{0x04, 15, 0}>;
  using other_vport = Field<"other_vport", At{0x08, 31, 31}>;
  using vport_number = Field<"vport_number", At{0x08, 15, 0}>;
  using table_type = Field<"table_type", At{0x10, 31, 24}, FlowTableType>;
  using group_type = Field<"group_type", At{0x10, 19, 16}>;
  using table_id = Field<"table_id", At{0x14, 23, 0}>;
  using source_eswitch_owner_vhca_id_valid = Field<"source_eswitch_owner_vhca_id_valid", At{0x18, 31, 31}>;
  using start_flow_index = Field<"start_flow_index", At{0x1c, 31, 0}>;
  using end_flow_index = Field<"end_flow_index", At{0x24, 31, 0}>;
  using match_definer_id = Field<"match_definer_id", At{0x28, 15, 0}>;
  using match_criteria_enable = Field<"match_criteria_enable", At{0x3c, 7, 0}>;
  using match_criteria = Sub<"match_criteria", 0x40, FteMatchParam>;
  using fields =
      Fields<opcode, op_mod, other_vport, vport_number, table_type, group_type, table_id,
             source_eswitch_owner_vhca_id_valid, start_flow_index, end_flow_index, match_definer_id,
             match_criteria_enable, match_criteria>;
};

// CREATE_FLOW_GROUP: reply.
struct CreateFlowGroupOut : Layout<0x10> {
  using status = Field<"status", At{0x00, 31, 24}, Status>;
  using syndrome = Field<"syndrome", At{0x04, 31, 0}>;
  using group_id = Field<"group_id", At{0x08, 23, 0}>;
  using fields = Fields<status, syndrome, group_id>;
};

// DESTROY_FLOW_GROUP: request.
struct DestroyFlowGroupIn : Layout<0x40> {
  using opcode = Field<"opcode", At{0x00, 31, 16}, Opcode>;
  using op_mod = Field<"op_mod", At{0x04, 15, 0}>;
  using other_vport = Field<"other_vport", At{0x08, 31, 31}>;
  using vport_number = Field<"vport_number", At{0x08, 15, 0}>;
  using table_type = Field<"table_type", At{0x10, 31, 24}, FlowTableType>;
  using table_id = Field<"table_id", At{0x14, 23, 0}>;
  using group_id = Field<"group_id", At{0x18, 31, 0}>;
  using fields = Fields<opcode, op_mod, other_vport, vport_number, table_type, table_id, group_id>;
};

// DESTROY_FLOW_GROUP: reply.
struct DestroyFlowGroupOut : CommandOut {};

// QUERY_FLOW_GROUP: request.
struct QueryFlowGroupIn : Layout<0x40> {
  using opcode = Field<"opcode", At{0x00, 31, 16}, Opcode>;
  using op_mod = Field<"op_mod", At{0x04, 15, 0}>;
  using table_type = Field<"table_type", At{0x10, 31, 24}, FlowTableType>;
  using table_id = Field<"table_id", At{0x14, 23, 0}>;
  using group_id = Field<"group_id", At{0x18, 31, 0}>;
  using fields = Fields<opcode, op_mod, table_type, table_id, group_id>;
};

// QUERY_FLOW_GROUP: reply.
struct QueryFlowGroupOut : Layout<0x400> {
  using status = Field<"status", At{0x00, 31, 24}, Status>;
  using syndrome = Field<"syndrome", At{0x04, 31, 0}>;
  using start_flow_index = Field<"start_flow_index", At{0x1c, 31, 0}>;
  using end_flow_index = Field<"end_flow_index", At{0x24, 31, 0}>;
  using match_criteria_enable = Field<"match_criteria_enable", At{0x3c, 7, 0}>;
  using match_criteria = Sub<"match_criteria", 0x40, FteMatchParam>;
  using fields = Fields<status, syndrome, start_flow_index, end_flow_index, match_criteria_enable, match_criteria>;
};

// SET_FLOW_TABLE_ENTRY: request.
struct SetFteIn : Layout<0x340> {
  using opcode = Field<"opcode", At{0x00, 31, 16}, Opcode>;
  using op_mod = Field<"op_mod", At{0x04, 15, 0}>;
  using other_vport = Field<"other_vport", At{0x08, 31, 31}>;
  using vport_number = Field<"vport_number", At{0x08, 15, 0}>;
  using table_type = Field<"table_type", At{0x10, 31, 24}, FlowTableType>;
  using table_id = Field<"table_id", At{0x14, 23, 0}>;
  using ignore_flow_level = Field<"ignore_flow_level", At{0x18, 31, 31}>;
  using modify_enable_mask = Field<"modify_enable_mask", At{0x18, 7, 0}>;
  using flow_index = Field<"flow_index", At{0x20, 31, 0}>;
  using flow_context = Sub<"flow_context", 0x40, FlowContext>;
  using fields =
      Fields<opcode, op_mod, other_vport, vport_number, table_type, table_id, ignore_flow_level, modify_enable_mask,
             flow_index, flow_context>;
};

// SET_FLOW_TABLE_ENTRY: reply.
struct SetFteOut : CommandOut {};

// QUERY_FLOW_TABLE_ENTRY: request.
struct QueryFteIn : Layout<0x40> {
  using opcode = Field<"opcode", At{0x00, 31, 16}, Opcode>;
  using op_mod = Field<"op_mod", At{0x04, 15, 0}>;
  using table_type = Field<"table_type", At{0x10, 31, 24}, FlowTableType>;
  using table_id = Field<"table_id", At{0x14, 23, 0}>;
  using flow_index = Field<"flow_index", At{0x20, 31, 0}>;
  using fields = Fields<opcode, op_mod, table_type, table_id, flow_index>;
};

// QUERY_FLOW_TABLE_ENTRY: reply.
struct QueryFteOut : Layout<0x340> {
  using status = Field<"status", At{0x00, 31, 24}, Status>;
  using syndrome = Field<"syndrome", At{0x04, 31, 0}>;
  using flow_context = Sub<"flow_context", 0x40, FlowContext>;
  using fields = Fields<status, syndrome, flow_context>;
};

// DELETE_FLOW_TABLE_ENTRY: request.
struct DeleteFteIn : Layout<0x40> {
  using opcode = Field<"opcode", At{0x00, 31, 16}, Opcode>;
  using op_mod = Field<"op_mod", At{0x04, 15, 0}>;
  using other_vport = Field<"other_vport", At{0x08, 31, 31}>;
  using vport_number = Field<"vport_number", At{0x08, 15, 0}>;
  using table_type = Field<"table_type", At{0x10, 31, 24}, FlowTableType>;
  using table_id = Field<"table_id", At{0x14, 23, 0}>;
  using flow_index = Field<"flow_index", At{0x20, 31, 0}>;
  using fields = Fields<opcode, op_mod, other_vport, vport_number, table_type, table_id, flow_index>;
};

// DELETE_FLOW_TABLE_ENTRY: reply.
struct DeleteFteOut : CommandOut {};

// What the lowest bit of alloc_flow_counter_in.flow_counter_bulk stands for, and of the capability of that name.
inline constexpr std::uint32_t kFlowCounterBulkUnit = 128;

// ALLOC_FLOW_COUNTER: request.
struct AllocFlowCounterIn : Layout<0x10> {
  using opcode = Field<"opcode", At{0x00, 31, 16}, Opcode>;
  using op_mod = Field<"op_mod", At{0x04, 15, 0}>;
  using flow_counter_bulk_log_size = Field<"flow_counter_bulk_log_size", At{0x0c, 12, 8}>;
  using flow_counter_bulk = Field<"flow_counter_bulk", At{0x0c, 7, 0}>;
  using fields = Fields<opcode, op_mod, flow_counter_bulk_log_size, flow_counter_bulk>;
};

// ALLOC_FLOW_COUNTER: reply.
struct AllocFlowCounterOut : Layout<0x10> {
  using status = Field<"status", At{0x00, 31, 24}, Status>;
  using syndrome = Field<"syndrome", At{0x04, 31, 0}>;
  using flow_counter_id = Field<"flow_counter_id", At{0x08, 31, 0}>;
  using fields = Fields<status, syndrome, flow_counter_id>;
};

// DEALLOC_FLOW_COUNTER: request.
struct DeallocFlowCounterIn : Layout<0x10> {
  using opcode = Field<"opcode", At{0x00, 31, 16}, Opcode>;
  using op_mod = Field<"op_mod", At{0x04, 15, 0}>;
  using flow_counter_id = Field<"flow_counter_id", At{0x08, 31, 0}>;
  using fields = Fields<opcode, op_mod, flow_counter_id>;
};

// DEALLOC_FLOW_COUNTER: reply.
struct DeallocFlowCounterOut : CommandOut {};

// QUERY_FLOW_COUNTER: request.
struct QueryFlowCounterIn : Layout<0x20> {
  using opcode = Field<"opcode", At{0x00, 31, 16}, Opcode>;
  using op_mod = Field<"op_mod", At{0x04, 15, 0}>;
  using clear = Field<"clear", At{0x18, 31, 31}>;
  using num_of_counters = Field<"num_of_counters", At{0x18, 15, 0}>;
  using flow_counter_id = Field<"flow_counter_id", At{0x1c, 31, 0}>;
  using fields = Fields<opcode, op_mod, clear, num_of_counters, flow_counter_id>;
};

// QUERY_FLOW_COUNTER: reply.
struct QueryFlowCounterOut : Layout<0x10> {
  using status = Field<"status", At{0x00, 31, 24}, Status>;
  using syndrome = Field<"syndrome", At{0x04, 31, 0}>;
  using flow_statistics = Array<"flow_statistics", 0x10, TrafficCounter>;
  using fields = Fields<status, syndrome, flow_statistics>;
};

}  // namespace verbena::prm
