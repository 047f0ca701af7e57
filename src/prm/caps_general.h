// General device capabilities. Every field a driver may read is here; the profile decides the values.
// Threads: types only.
#pragma once

#include "layout.h"

namespace verbena::prm {

// General device capabilities, CapType::general (PRM "HCA Capabilities").
struct CmdHcaCap : Layout<0x100> {
  using shared_object_to_user_object_allowed = Field<"shared_object_to_user_object_allowed", At{0x00, 15, 15}>;
  using vhca_resource_manager = Field<"vhca_resource_manager", At{0x00, 0, 0}>;
  using hca_cap_2 = Field<"hca_cap_2", At{0x04, 31, 31}>;
  using create_lag_when_not_master_up = Field<"create_lag_when_not_master_up", At{0x04, 30, 30}>;
  using dtor = Field<"dtor", At{0x04, 29, 29}>;
  using event_on_vhca_state_teardown_request = Field<"event_on_vhca_state_teardown_request", At{0x04, 28, 28}>;
  using event_on_vhca_state_in_use = Field<"event_on_vhca_state_in_use", At{0x04, 27, 27}>;
  using event_on_vhca_state_active = Field<"event_on_vhca_state_active", At{0x04, 26, 26}>;
  using event_on_vhca_state_allocated = Field<"event_on_vhca_state_allocated", At{0x04, 25, 25}>;
  using event_on_vhca_state_invalid = Field<"event_on_vhca_state_invalid", At{0x04, 24, 24}>;
  using vhca_id = Field<"vhca_id", At{0x04, 15, 0}>;
  using qp_data_in_order = Field<"qp_data_in_order", At{0x0c, 29, 29}>;
  using log_dma_mmo_max_size = Field<"log_dma_mmo_max_size", At{0x0c, 20, 16}>;
  using log_max_srq_sz = Field<"log_max_srq_sz", At{0x10, 31, 24}>;
  using log_max_qp_sz = Field<"log_max_qp_sz", At{0x10, 23, 16}>;
  using event_cap = Field<"event_cap", At{0x10, 15, 15}>;
  using isolate_vl_tc_new = Field<"isolate_vl_tc_new", At{0x10, 12, 12}>;
  using prio_tag_required = Field<"prio_tag_required", At{0x10, 7, 7}>;
  using log_max_qp = Field<"log_max_qp", At{0x10, 4, 0}>;
  using ece_support = Field<"ece_support", At{0x14, 28, 28}>;
  using reg_c_preserve = Field<"reg_c_preserve", At{0x14, 22, 22}>;
  using log_max_srq = Field<"log_max_srq", At{0x14, 20, 16}>;
  using uplink_follow = Field<"uplink_follow", At{0x14, 14, 14}>;
  using ts_cqe_to_dest_cqn = Field<"ts_cqe_to_dest_cqn", At{0x14, 13, 13}>;
  using shampo = Field<"shampo", At{0x14, 5, 5}>;
  using max_sgl_for_optimized_performance = Field<"max_sgl_for_optimized_performance", At{0x18, 31, 24}>;
  using log_max_cq_sz = Field<"log_max_cq_sz", At{0x18, 23, 16}>;
  using relaxed_ordering_write_umr = Field<"relaxed_ordering_write_umr", At{0x18, 15, 15}>;
  using relaxed_ordering_read_umr = Field<"relaxed_ordering_read_umr", At{0x18, 14, 14}>;
  using virtio_net_device_emualtion_manager = Field<"virtio_net_device_emualtion_manager", At{0x18, 6, 6}>;
  using virtio_blk_device_emualtion_manager = Field<"virtio_blk_device_emualtion_manager", At{0x18, 5, 5}>;
  using log_max_cq = Field<"log_max_cq", At{0x18, 4, 0}>;
  using log_max_eq_sz = Field<"log_max_eq_sz", At{0x1c, 31, 24}>;
  using relaxed_ordering_write = Field<"relaxed_ordering_write", At{0x1c, 23, 23}>;
  using relaxed_ordering_read = Field<"relaxed_ordering_read", At{0x1c, 22, 22}>;
  using log_max_mkey = Field<"log_max_mkey", At{0x1c, 21, 16}>;
  using dump_fill_mkey = Field<"dump_fill_mkey", At{0x1c, 7, 7}>;
  using fast_teardown = Field<"fast_teardown", At{0x1c, 4, 4}>;
  using log_max_eq = Field<"log_max_eq", At{0x1c, 3, 0}>;
  using max_indirection = Field<"max_indirection", At{0x20, 31, 24}>;
  using fixed_buffer_size = Field<"fixed_buffer_size", At{0x20, 23, 23}>;
  using log_max_mrw_sz = Field<"log_max_mrw_sz", At{0x20, 22, 16}>;
  using force_teardown = Field<"force_teardown", At{0x20, 15, 15}>;
  using log_max_bsf_list_size = Field<"log_max_bsf_list_size", At{0x20, 13, 8}>;
  using umr_extended_translation_offset = Field<"umr_extended_translation_offset", At{0x20, 7, 7}>;
  using null_mkey = Field<"null_mkey", At{0x20, 6, 6}>;
  using log_max_klm_list_size = Field<"log_max_klm_list_size", At{0x20, 5, 0}>;
  using qpc_extension = Field<"qpc_extension", At{0x24, 29, 29}>;
  using log_max_ra_req_dc = Field<"log_max_ra_req_dc", At{0x24, 21, 16}>;
  using eth_wqe_too_small = Field<"eth_wqe_too_small", At{0x24, 13, 13}>;
  using vnic_env_cq_overrun = Field<"vnic_env_cq_overrun", At{0x24, 6, 6}>;
  using log_max_ra_res_dc = Field<"log_max_ra_res_dc", At{0x24, 5, 0}>;
  using release_all_pages = Field<"release_all_pages", At{0x28, 26, 26}>;
  using must_not_use = Field<"must_not_use", At{0x28, 25, 25}>;
  using sig_crc64_xp10 = Field<"sig_crc64_xp10", At{0x28, 24, 24}>;
  using sig_crc32c = Field<"sig_crc32c", At{0x28, 23, 23}>;
  using roce_accl = Field<"roce_accl", At{0x28, 22, 22}>;
  using log_max_ra_req_qp = Field<"log_max_ra_req_qp", At{0x28, 21, 16}>;
  using rts2rts_qp_udp_sport = Field<"rts2rts_qp_udp_sport", At{0x28, 14, 14}>;
  using rts2rts_lag_tx_port_affinity = Field<"rts2rts_lag_tx_port_affinity", At{0x28, 13, 13}>;
  using dma_mmo_sq = Field<"dma_mmo_sq", At{0x28, 12, 12}>;
  using log_max_ra_res_qp = Field<"log_max_ra_res_qp", At{0x28, 5, 0}>;
  using end_pad = Field<"end_pad", At{0x2c, 31, 31}>;
  using cc_query_allowed = Field<"cc_query_allowed", At{0x2c, 30, 30}>;
  using cc_modify_allowed = Field<"cc_modify_allowed", At{0x2c, 29, 29}>;
  using start_pad = Field<"start_pad", At{0x2c, 28, 28}>;
  using cache_line_128byte = Field<"cache_line_128byte", At{0x2c, 27, 27}>;
  using rts2rts_qp_counters_set_id = Field<"rts2rts_qp_counters_set_id", At{0x2c, 22, 22}>;
  using vnic_env_int_rq_oob = Field<"vnic_env_int_rq_oob", At{0x2c, 19, 19}>;
  using sbcam_reg = Field<"sbcam_reg", At{0x2c, 18, 18}>;
  using qcam_reg = Field<"qcam_reg", At{0x2c, 16, 16}>;
  using gid_table_size = Field<"gid_table_size", At{0x2c, 15, 0}>;
  using out_of_seq_cnt = Field<"out_of_seq_cnt", At{0x30, 31, 31}>;
  using vport_counters = Field<"vport_counters", At{0x30, 30, 30}>;
  using retransmission_q_counters = Field<"retransmission_q_counters", At{0x30, 29, 29}>;
  using debug = Field<"debug", At{0x30, 28, 28}>;
  using modify_rq_counter_set_id = Field<"modify_rq_counter_set_id", At{0x30, 27, 27}>;
  using rq_delay_drop = Field<"rq_delay_drop", At{0x30, 26, 26}>;
  using max_qp_cnt = Field<"max_qp_cnt", At{0x30, 25, 16}>;
  using pkey_table_size = Field<"pkey_table_size", At{0x30, 15, 0}>;
  using vport_group_manager = Field<"vport_group_manager", At{0x34, 31, 31}>;
  using vhca_group_manager = Field<"vhca_group_manager", At{0x34, 30, 30}>;
  using ib_virt = Field<"ib_virt", At{0x34, 29, 29}>;
  using eth_virt = Field<"eth_virt", At{0x34, 28, 28}>;
  using vnic_env_queue_counters = Field<"vnic_env_queue_counters", At{0x34, 27, 27}>;
  using ets = Field<"ets", At{0x34, 26, 26}>;
  using nic_flow_table = Field<"nic_flow_table", At{0x34, 25, 25}>;
  using eswitch_manager = Field<"eswitch_manager", At{0x34, 24, 24}>;
  using device_memory = Field<"device_memory", At{0x34, 23, 23}>;
  using mcam_reg = Field<"mcam_reg", At{0x34, 22, 22}>;
  using pcam_reg = Field<"pcam_reg", At{0x34, 21, 21}>;
  using local_ca_ack_delay = Field<"local_ca_ack_delay", At{0x34, 20, 16}>;
  using port_module_event = Field<"port_module_event", At{0x34, 15, 15}>;
  using enhanced_error_q_counters = Field<"enhanced_error_q_counters", At{0x34, 14, 14}>;
  using ports_check = Field<"ports_check", At{0x34, 13, 13}>;
  using disable_link_up = Field<"disable_link_up", At{0x34, 11, 11}>;
  using beacon_led = Field<"beacon_led", At{0x34, 10, 10}>;
  using port_type = Field<"port_type", At{0x34, 9, 8}>;
  using num_ports = Field<"num_ports", At{0x34, 7, 0}>;
  using pps = Field<"pps", At{0x38, 30, 30}>;
  using pps_modify = Field<"pps_modify", At{0x38, 29, 29}>;
  using log_max_msg = Field<"log_max_msg", At{0x38, 28, 24}>;
  using max_tc = Field<"max_tc", At{0x38, 19, 16}>;
  using temp_warn_event = Field<"temp_warn_event", At{0x38, 15, 15}>;
  using dcbx = Field<"dcbx", At{0x38, 14, 14}>;
  using general_notification_event = Field<"general_notification_event", At{0x38, 13, 13}>;
  using fpga = Field<"fpga", At{0x38, 10, 10}>;
  using rol_s = Field<"rol_s", At{0x38, 9, 9}>;
  using rol_g = Field<"rol_g", At{0x38, 8, 8}>;
  using wol_s = Field<"wol_s", At{0x38, 6, 6}>;
  using wol_g = Field<"wol_g", At{0x38, 5, 5}>;
  using wol_a = Field<"wol_a", At{0x38, 4, 4}>;
  using wol_b = Field<"wol_b", At{0x38, 3, 3}>;
  using wol_m = Field<"wol_m", At{0x38, 2, 2}>;
  using wol_u = Field<"wol_u", At{0x38, 1, 1}>;
  using wol_p = Field<"wol_p", At{0x38, 0, 0}>;
  using stat_rate_support = Field<"stat_rate_support", At{0x3c, 31, 16}>;
  using sig_block_4048 = Field<"sig_block_4048", At{0x3c, 15, 15}>;
  using pci_sync_for_fw_update_event = Field<"pci_sync_for_fw_update_event", At{0x3c, 14, 14}>;
  using init2_lag_tx_port_affinity = Field<"init2_lag_tx_port_affinity", At{0x3c, 7, 7}>;
  using cqe_version = Field<"cqe_version", At{0x3c, 3, 0}>;
  using compact_address_vector = Field<"compact_address_vector", At{0x40, 31, 31}>;
  using striding_rq = Field<"striding_rq", At{0x40, 30, 30}>;
  using ipoib_enhanced_offloads = Field<"ipoib_enhanced_offloads", At{0x40, 28, 28}>;
  using ipoib_basic_offloads = Field<"ipoib_basic_offloads", At{0x40, 27, 27}>;
  using repeated_block_disabled = Field<"repeated_block_disabled", At{0x40, 25, 25}>;
  using umr_modify_entity_size_disabled = Field<"umr_modify_entity_size_disabled", At{0x40, 24, 24}>;
  using umr_modify_atomic_disabled = Field<"umr_modify_atomic_disabled", At{0x40, 23, 23}>;
  using umr_indirect_mkey_disabled = Field<"umr_indirect_mkey_disabled", At{0x40, 22, 22}>;
  using umr_fence = Field<"umr_fence", At{0x40, 21, 20}>;
  using dc_req_scat_data_cqe = Field<"dc_req_scat_data_cqe", At{0x40, 19, 19}>;
  using drain_sigerr = Field<"drain_sigerr", At{0x40, 16, 16}>;
  using cmdif_checksum = Field<"cmdif_checksum", At{0x40, 15, 14}>;
  using sigerr_cqe = Field<"sigerr_cqe", At{0x40, 13, 13}>;
  using wq_signature = Field<"wq_signature", At{0x40, 11, 11}>;
  using sctr_data_cqe = Field<"sctr_data_cqe", At{0x40, 10, 10}>;
  using sho = Field<"sho", At{0x40, 8, 8}>;
  using tph = Field<"tph", At{0x40, 7, 7}>;
  using rf = Field<"rf", At{0x40, 6, 6}>;
  using dct = Field<"dct", At{0x40, 5, 5}>;
  using qos = Field<"qos", At{0x40, 4, 4}>;
  using eth_net_offloads = Field<"eth_net_offloads", At{0x40, 3, 3}>;
  using roce = Field<"roce", At{0x40, 2, 2}>;
  using atomic = Field<"atomic", At{0x40, 1, 1}>;
  using cq_oi = Field<"cq_oi", At{0x44, 31, 31}>;
  using cq_resize = Field<"cq_resize", At{0x44, 30, 30}>;
  using cq_moderation = Field<"cq_moderation", At{0x44, 29, 29}>;
  using cq_eq_remap = Field<"cq_eq_remap", At{0x44, 25, 25}>;
  using pg = Field<"pg", At{0x44, 24, 24}>;
  using block_lb_mc = Field<"block_lb_mc", At{0x44, 23, 23}>;
  using scqe_break_moderation = Field<"scqe_break_moderation", At{0x44, 21, 21}>;
  using cq_period_start_from_cqe = Field<"cq_period_start_from_cqe", At{0x44, 20, 20}>;
  using cd = Field<"cd", At{0x44, 19, 19}>;
  using apm = Field<"apm", At{0x44, 17, 17}>;
  using vector_calc = Field<"vector_calc", At{0x44, 16, 16}>;
  using umr_ptr_rlky = Field<"umr_ptr_rlky", At{0x44, 15, 15}>;
  using imaicl = Field<"imaicl", At{0x44, 14, 14}>;
  using qp_packet_based = Field<"qp_packet_based", At{0x44, 13, 13}>;
  using qkv = Field<"qkv", At{0x44, 9, 9}>;
  using pkv = Field<"pkv", At{0x44, 8, 8}>;
  using set_deth_sqpn = Field<"set_deth_sqpn", At{0x44, 7, 7}>;
  using xrc = Field<"xrc", At{0x44, 3, 3}>;
  using ud = Field<"ud", At{0x44, 2, 2}>;
  using uc = Field<"uc", At{0x44, 1, 1}>;
  using rc = Field<"rc", At{0x44, 0, 0}>;
  using uar_4k = Field<"uar_4k", At{0x48, 31, 31}>;
  using fl_rc_qp_when_roce_disabled = Field<"fl_rc_qp_when_roce_disabled", At{0x48, 23, 23}>;
  using regexp_params = Field<"regexp_params", At{0x48, 22, 22}>;
  using uar_sz = Field<"uar_sz", At{0x48, 21, 16}>;
  using port_selection_cap = Field<"port_selection_cap", At{0x48, 15, 15}>;
  using umem_uid_0 = Field<"umem_uid_0", At{0x48, 13, 13}>;
  using log_pg_sz = Field<"log_pg_sz", At{0x48, 7, 0}>;
  using bf = Field<"bf", At{0x4c, 31, 31}>;
  using driver_version = Field<"driver_version", At{0x4c, 30, 30}>;
  using pad_tx_eth_packet = Field<"pad_tx_eth_packet", At{0x4c, 29, 29}>;
  using mkey_by_name = Field<"mkey_by_name", At{0x4c, 25, 25}>;
  using log_bf_reg_size = Field<"log_bf_reg_size", At{0x4c, 20, 16}>;
  using lag_dct = Field<"lag_dct", At{0x4c, 9, 8}>;
  using lag_tx_port_affinity = Field<"lag_tx_port_affinity", At{0x4c, 7, 7}>;
  using lag_native_fdb_selection = Field<"lag_native_fdb_selection", At{0x4c, 6, 6}>;
  using lag_master = Field<"lag_master", At{0x4c, 4, 4}>;
  using num_lag_ports = Field<"num_lag_ports", At{0x4c, 3, 0}>;
  using max_wqe_sz_sq = Field<"max_wqe_sz_sq", At{0x50, 15, 0}>;
  using max_wqe_sz_rq = Field<"max_wqe_sz_rq", At{0x54, 15, 0}>;
  using max_flow_counter_31_16 = Field<"max_flow_counter_31_16", At{0x58, 31, 16}>;
  using max_wqe_sz_sq_dc = Field<"max_wqe_sz_sq_dc", At{0x58, 15, 0}>;
  using max_qp_mcg = Field<"max_qp_mcg", At{0x5c, 24, 0}>;
  using flow_counter_bulk_alloc = Field<"flow_counter_bulk_alloc", At{0x60, 15, 8}>;
  using log_max_mcg = Field<"log_max_mcg", At{0x60, 7, 0}>;
  using log_max_transport_domain = Field<"log_max_transport_domain", At{0x64, 28, 24}>;
  using log_max_pd = Field<"log_max_pd", At{0x64, 20, 16}>;
  using dp_ordering_ooo_all_ud = Field<"dp_ordering_ooo_all_ud", At{0x64, 15, 15}>;
  using dp_ordering_ooo_all_uc = Field<"dp_ordering_ooo_all_uc", At{0x64, 14, 14}>;
  using dp_ordering_ooo_all_xrc = Field<"dp_ordering_ooo_all_xrc", At{0x64, 13, 13}>;
  using dp_ordering_ooo_all_dc = Field<"dp_ordering_ooo_all_dc", At{0x64, 12, 12}>;
  using dp_ordering_ooo_all_rc = Field<"dp_ordering_ooo_all_rc", At{0x64, 11, 11}>;
  using log_max_xrcd = Field<"log_max_xrcd", At{0x64, 4, 0}>;
  using nic_receive_steering_discard = Field<"nic_receive_steering_discard", At{0x68, 31, 31}>;
  using receive_discard_vport_down = Field<"receive_discard_vport_down", At{0x68, 30, 30}>;
  using transmit_discard_vport_down = Field<"transmit_discard_vport_down", At{0x68, 29, 29}>;
  using eq_overrun_count = Field<"eq_overrun_count", At{0x68, 28, 28}>;
  using invalid_command_count = Field<"invalid_command_count", At{0x68, 26, 26}>;
  using quota_exceeded_count = Field<"quota_exceeded_count", At{0x68, 25, 25}>;
  using log_max_flow_counter_bulk = Field<"log_max_flow_counter_bulk", At{0x68, 23, 16}>;
  using max_flow_counter_15_0 = Field<"max_flow_counter_15_0", At{0x68, 15, 0}>;
  using log_max_rq = Field<"log_max_rq", At{0x6c, 28, 24}>;
  using log_max_sq = Field<"log_max_sq", At{0x6c, 20, 16}>;
  using log_max_tir = Field<"log_max_tir", At{0x6c, 12, 8}>;
  using log_max_tis = Field<"log_max_tis", At{0x6c, 4, 0}>;
  using basic_cyclic_rcv_wqe = Field<"basic_cyclic_rcv_wqe", At{0x70, 31, 31}>;
  using log_max_rmp = Field<"log_max_rmp", At{0x70, 28, 24}>;
  using log_max_rqt = Field<"log_max_rqt", At{0x70, 20, 16}>;
  using log_max_rqt_size = Field<"log_max_rqt_size", At{0x70, 12, 8}>;
  using log_max_tis_per_sq = Field<"log_max_tis_per_sq", At{0x70, 4, 0}>;
  using ext_stride_num_range = Field<"ext_stride_num_range", At{0x74, 31, 31}>;
  using roce_rw_supported = Field<"roce_rw_supported", At{0x74, 30, 30}>;
  using log_max_current_uc_list_wr_supported = Field<"log_max_current_uc_list_wr_supported", At{0x74, 29, 29}>;
  using log_max_stride_sz_rq = Field<"log_max_stride_sz_rq", At{0x74, 28, 24}>;
  using log_min_stride_sz_rq = Field<"log_min_stride_sz_rq", At{0x74, 20, 16}>;
  using log_max_stride_sz_sq = Field<"log_max_stride_sz_sq", At{0x74, 12, 8}>;
  using log_min_stride_sz_sq = Field<"log_min_stride_sz_sq", At{0x74, 4, 0}>;
  using hairpin = Field<"hairpin", At{0x78, 31, 31}>;
  using log_max_hairpin_queues = Field<"log_max_hairpin_queues", At{0x78, 28, 24}>;
  using log_max_hairpin_wq_data_sz = Field<"log_max_hairpin_wq_data_sz", At{0x78, 20, 16}>;
  using log_max_hairpin_num_packets = Field<"log_max_hairpin_num_packets", At{0x78, 12, 8}>;
  using log_max_wq_sz = Field<"log_max_wq_sz", At{0x78, 4, 0}>;
  using nic_vport_change_event = Field<"nic_vport_change_event", At{0x7c, 31, 31}>;
  using disable_local_lb_uc = Field<"disable_local_lb_uc", At{0x7c, 30, 30}>;
  using disable_local_lb_mc = Field<"disable_local_lb_mc", At{0x7c, 29, 29}>;
  using log_min_hairpin_wq_data_sz = Field<"log_min_hairpin_wq_data_sz", At{0x7c, 28, 24}>;
  using vhca_state = Field<"vhca_state", At{0x7c, 21, 21}>;
  using log_max_vlan_list = Field<"log_max_vlan_list", At{0x7c, 20, 16}>;
  using aes_xts_single_block_le_tweak = Field<"aes_xts_single_block_le_tweak", At{0x7c, 14, 14}>;
  using aes_xts_multi_block_be_tweak = Field<"aes_xts_multi_block_be_tweak", At{0x7c, 13, 13}>;
  using log_max_current_mc_list = Field<"log_max_current_mc_list", At{0x7c, 12, 8}>;
  using log_max_current_uc_list = Field<"log_max_current_uc_list", At{0x7c, 4, 0}>;
  using general_obj_types = Field64<"general_obj_types", 0x80>;
  using sq_ts_format = Field<"sq_ts_format", At{0x88, 31, 30}>;
  using rq_ts_format = Field<"rq_ts_format", At{0x88, 29, 28}>;
  using steering_format_version = Field<"steering_format_version", At{0x88, 27, 24}>;
  using create_qp_start_hint = Field<"create_qp_start_hint", At{0x88, 23, 0}>;
  using ats = Field<"ats", At{0x8c, 30, 30}>;
  using log_max_uctx = Field<"log_max_uctx", At{0x8c, 28, 24}>;
  using crypto = Field<"crypto", At{0x8c, 22, 22}>;
  using ipsec_offload = Field<"ipsec_offload", At{0x8c, 21, 21}>;
  using log_max_umem = Field<"log_max_umem", At{0x8c, 20, 16}>;
  using max_num_eqs = Field<"max_num_eqs", At{0x8c, 15, 0}>;
  using sigerr_domain_and_sig_type = Field<"sigerr_domain_and_sig_type", At{0x90, 31, 31}>;
  using tls_tx = Field<"tls_tx", At{0x90, 30, 30}>;
  using tls_rx = Field<"tls_rx", At{0x90, 29, 29}>;
  using log_max_l2_table = Field<"log_max_l2_table", At{0x90, 28, 24}>;
  using log_uar_page_sz = Field<"log_uar_page_sz", At{0x90, 15, 0}>;
  using device_frequency_mhz = Field<"device_frequency_mhz", At{0x98, 31, 0}>;
  using device_frequency_khz = Field<"device_frequency_khz", At{0x9c, 31, 0}>;
  using num_of_uars_per_page = Field<"num_of_uars_per_page", At{0xa4, 31, 0}>;
  using flex_parser_protocols = Field<"flex_parser_protocols", At{0xa8, 31, 0}>;
  using max_geneve_tlv_options = Field<"max_geneve_tlv_options", At{0xac, 31, 24}>;
  using max_geneve_tlv_option_data_len = Field<"max_geneve_tlv_option_data_len", At{0xac, 20, 16}>;
  using flex_parser_header_modify = Field<"flex_parser_header_modify", At{0xac, 15, 15}>;
  using adv_virtualization = Field<"adv_virtualization", At{0xac, 6, 6}>;
  using log_max_dci_stream_channels = Field<"log_max_dci_stream_channels", At{0xb0, 20, 16}>;
  using log_max_dci_errored_streams = Field<"log_max_dci_errored_streams", At{0xb0, 12, 8}>;
  using enhanced_cqe_compression = Field<"enhanced_cqe_compression", At{0xb4, 15, 15}>;
  using log_max_dek = Field<"log_max_dek", At{0xb4, 12, 8}>;
  using mini_cqe_resp_stride_index = Field<"mini_cqe_resp_stride_index", At{0xb4, 3, 3}>;
  using cqe_128_always = Field<"cqe_128_always", At{0xb4, 2, 2}>;
  using cqe_compression_128 = Field<"cqe_compression_128", At{0xb4, 1, 1}>;
  using cqe_compression = Field<"cqe_compression", At{0xb4, 0, 0}>;
  using cqe_compression_timeout = Field<"cqe_compression_timeout", At{0xb8, 31, 16}>;
  using cqe_compression_max_num = Field<"cqe_compression_max_num", At{0xb8, 15, 0}>;
  using flex_parser_id_gtpu_dw_0 = Field<"flex_parser_id_gtpu_dw_0", At{0xbc, 23, 20}>;
  using tag_matching = Field<"tag_matching", At{0xbc, 15, 15}>;
  using rndv_offload_rc = Field<"rndv_offload_rc", At{0xbc, 14, 14}>;
  using rndv_offload_dc = Field<"rndv_offload_dc", At{0xbc, 13, 13}>;
  using log_tag_matching_list_sz = Field<"log_tag_matching_list_sz", At{0xbc, 12, 8}>;
  using log_max_xrq = Field<"log_max_xrq", At{0xbc, 4, 0}>;
  using affiliate_nic_vport_criteria = Field<"affiliate_nic_vport_criteria", At{0xc0, 31, 24}>;
  using native_port_num = Field<"native_port_num", At{0xc0, 23, 16}>;
  using num_vhca_ports = Field<"num_vhca_ports", At{0xc0, 15, 8}>;
  using flex_parser_id_gtpu_teid = Field<"flex_parser_id_gtpu_teid", At{0xc0, 7, 4}>;
  using sw_owner_id = Field<"sw_owner_id", At{0xc0, 1, 1}>;
  using max_num_of_monitor_counters = Field<"max_num_of_monitor_counters", At{0xc4, 31, 16}>;
  using num_ppcnt_monitor_counters = Field<"num_ppcnt_monitor_counters", At{0xc4, 15, 0}>;
  using max_num_sf = Field<"max_num_sf", At{0xc8, 31, 16}>;
  using num_q_monitor_counters = Field<"num_q_monitor_counters", At{0xc8, 15, 0}>;
  using sf = Field<"sf", At{0xd0, 31, 31}>;
  using sf_set_partition = Field<"sf_set_partition", At{0xd0, 30, 30}>;
  using log_max_sf = Field<"log_max_sf", At{0xd0, 28, 24}>;
  using apu = Field<"apu", At{0xd0, 23, 23}>;
  using migration = Field<"migration", At{0xd0, 18, 18}>;
  using log_min_sf_size = Field<"log_min_sf_size", At{0xd0, 15, 8}>;
  using max_num_sf_partitions = Field<"max_num_sf_partitions", At{0xd0, 7, 0}>;
  using uctx_cap = Field<"uctx_cap", At{0xd4, 31, 0}>;
  using flex_parser_id_geneve_tlv_option_0 = Field<"flex_parser_id_geneve_tlv_option_0", At{0xd8, 27, 24}>;
  using flex_parser_id_icmp_dw1 = Field<"flex_parser_id_icmp_dw1", At{0xd8, 23, 20}>;
  using flex_parser_id_icmp_dw0 = Field<"flex_parser_id_icmp_dw0", At{0xd8, 19, 16}>;
  using flex_parser_id_icmpv6_dw1 = Field<"flex_parser_id_icmpv6_dw1", At{0xd8, 15, 12}>;
  using flex_parser_id_icmpv6_dw0 = Field<"flex_parser_id_icmpv6_dw0", At{0xd8, 11, 8}>;
  using flex_parser_id_outer_first_mpls_over_gre = Field<"flex_parser_id_outer_first_mpls_over_gre", At{0xd8, 7, 4}>;
  using flex_parser_id_outer_first_mpls_over_udp_label =
      Field<"flex_parser_id_outer_first_mpls_over_udp_label", At{0xd8, 3, 0}>;
  using max_num_match_definer = Field<"max_num_match_definer", At{0xdc, 31, 16}>;
  using sf_base_id = Field<"sf_base_id", At{0xdc, 15, 0}>;
  using flex_parser_id_gtpu_dw_2 = Field<"flex_parser_id_gtpu_dw_2", At{0xe0, 31, 28}>;
  using flex_parser_id_gtpu_first_ext_dw_0 = Field<"flex_parser_id_gtpu_first_ext_dw_0", At{0xe0, 27, 24}>;
  using num_total_dynamic_vf_msix = Field<"num_total_dynamic_vf_msix", At{0xe0, 23, 0}>;
  using dynamic_msix_table_size = Field<"dynamic_msix_table_size", At{0xe4, 11, 0}>;
  using dma_mmo_qp = Field<"dma_mmo_qp", At{0xe8, 23, 23}>;
  using min_dynamic_vf_msix_table_size = Field<"min_dynamic_vf_msix_table_size", At{0xe8, 19, 16}>;
  using max_dynamic_vf_msix_table_size = Field<"max_dynamic_vf_msix_table_size", At{0xe8, 11, 0}>;
  using log_header_modify_argument_granularity = Field<"log_header_modify_argument_granularity", At{0xec, 19, 16}>;
  using log_header_modify_argument_max_alloc = Field<"log_header_modify_argument_max_alloc", At{0xec, 12, 8}>;
  using vhca_tunnel_commands = Field64<"vhca_tunnel_commands", 0xf0>;
  using match_definer_format_supported = Field64<"match_definer_format_supported", 0xf8>;
  using fields = Fields<
      shared_object_to_user_object_allowed, vhca_resource_manager, hca_cap_2, create_lag_when_not_master_up, dtor,
      event_on_vhca_state_teardown_request, event_on_vhca_state_in_use, event_on_vhca_state_active,
      event_on_vhca_state_allocated, event_on_vhca_state_invalid, vhca_id, qp_data_in_order, log_dma_mmo_max_size,
      log_max_srq_sz, log_max_qp_sz, event_cap, isolate_vl_tc_new, prio_tag_required, log_max_qp, ece_support,
      reg_c_preserve, log_max_srq, uplink_follow, ts_cqe_to_dest_cqn, shampo, max_sgl_for_optimized_performance,
      log_max_cq_sz, relaxed_ordering_write_umr, relaxed_ordering_read_umr, virtio_net_device_emualtion_manager,
      virtio_blk_device_emualtion_manager, log_max_cq, log_max_eq_sz, relaxed_ordering_write, relaxed_ordering_read,
      log_max_mkey, dump_fill_mkey, fast_teardown, log_max_eq, max_indirection, fixed_buffer_size, log_max_mrw_sz,
      force_teardown, log_max_bsf_list_size, umr_extended_translation_offset, null_mkey, log_max_klm_list_size,
      qpc_extension, log_max_ra_req_dc, eth_wqe_too_small, vnic_env_cq_overrun, log_max_ra_res_dc, release_all_pages,
      must_not_use, sig_crc64_xp10, sig_crc32c, roce_accl, log_max_ra_req_qp, rts2rts_qp_udp_sport,
      rts2rts_lag_tx_port_affinity, dma_mmo_sq, log_max_ra_res_qp, end_pad, cc_query_allowed, cc_modify_allowed,
      start_pad, cache_line_128byte, rts2rts_qp_counters_set_id, vnic_env_int_rq_oob, sbcam_reg, qcam_reg,
      gid_table_size, out_of_seq_cnt, vport_counters, retransmission_q_counters, debug, modify_rq_counter_set_id,
      rq_delay_drop, max_qp_cnt, pkey_table_size, vport_group_manager, vhca_group_manager, ib_virt, eth_virt,
      vnic_env_queue_counters, ets, nic_flow_table, eswitch_manager, device_memory, mcam_reg, pcam_reg,
      local_ca_ack_delay, port_module_event, enhanced_error_q_counters, ports_check, disable_link_up, beacon_led,
      port_type, num_ports, pps, pps_modify, log_max_msg, max_tc, temp_warn_event, dcbx, general_notification_event,
      fpga, rol_s, rol_g, wol_s, wol_g, wol_a, wol_b, wol_m, wol_u, wol_p, stat_rate_support, sig_block_4048,
      pci_sync_for_fw_update_event, init2_lag_tx_port_affinity, cqe_version, compact_address_vector, striding_rq,
      ipoib_enhanced_offloads, ipoib_basic_offloads, repeated_block_disabled, umr_modify_entity_size_disabled,
      umr_modify_atomic_disabled, umr_indirect_mkey_disabled, umr_fence, dc_req_scat_data_cqe, drain_sigerr,
      cmdif_checksum, sigerr_cqe, wq_signature, sctr_data_cqe, sho, tph, rf, dct, qos, eth_net_offloads, roce, atomic,
      cq_oi, cq_resize, cq_moderation, cq_eq_remap, pg, block_lb_mc, scqe_break_moderation, cq_period_start_from_cqe,
      cd, apm, vector_calc, umr_ptr_rlky, imaicl, qp_packet_based, qkv, pkv, set_deth_sqpn, xrc, ud, uc, rc, uar_4k,
      fl_rc_qp_when_roce_disabled, regexp_params, uar_sz, port_selection_cap, umem_uid_0, log_pg_sz, bf, driver_version,
      pad_tx_eth_packet, mkey_by_name, log_bf_reg_size, lag_dct, lag_tx_port_affinity, lag_native_fdb_selection,
      lag_master, num_lag_ports, max_wqe_sz_sq, max_wqe_sz_rq, max_flow_counter_31_16, max_wqe_sz_sq_dc, max_qp_mcg,
      flow_counter_bulk_alloc, log_max_mcg, log_max_transport_domain, log_max_pd, dp_ordering_ooo_all_ud,
      dp_ordering_ooo_all_uc, dp_ordering_ooo_all_xrc, dp_ordering_ooo_all_dc, dp_ordering_ooo_all_rc, log_max_xrcd,
      nic_receive_steering_discard, receive_discard_vport_down, transmit_discard_vport_down, eq_overrun_count,
      invalid_command_count, quota_exceeded_count, log_max_flow_counter_bulk, max_flow_counter_15_0, log_max_rq,
      log_max_sq, log_max_tir, log_max_tis, basic_cyclic_rcv_wqe, log_max_rmp, log_max_rqt, log_max_rqt_size,
      log_max_tis_per_sq, ext_stride_num_range, roce_rw_supported, log_max_current_uc_list_wr_supported,
      log_max_stride_sz_rq, log_min_stride_sz_rq, log_max_stride_sz_sq, log_min_stride_sz_sq, hairpin,
      log_max_hairpin_queues, log_max_hairpin_wq_data_sz, log_max_hairpin_num_packets, log_max_wq_sz,
      nic_vport_change_event, disable_local_lb_uc, disable_local_lb_mc, log_min_hairpin_wq_data_sz, vhca_state,
      log_max_vlan_list, aes_xts_single_block_le_tweak, aes_xts_multi_block_be_tweak, log_max_current_mc_list,
      log_max_current_uc_list, general_obj_types, sq_ts_format, rq_ts_format, steering_format_version,
      create_qp_start_hint, ats, log_max_uctx, crypto, ipsec_offload, log_max_umem, max_num_eqs,
      sigerr_domain_and_sig_type, tls_tx, tls_rx, log_max_l2_table, log_uar_page_sz, device_frequency_mhz,
      device_frequency_khz, num_of_uars_per_page, flex_parser_protocols, max_geneve_tlv_options,
      max_geneve_tlv_option_data_len, flex_parser_header_modify, adv_virtualization, log_max_dci_stream_channels,
      log_max_dci_errored_streams, enhanced_cqe_compression, log_max_dek, mini_cqe_resp_stride_index, cqe_128_always,
      cqe_compression_128, cqe_compression, cqe_compression_timeout, cqe_compression_max_num, flex_parser_id_gtpu_dw_0,
      tag_matching, rndv_offload_rc, rndv_offload_dc, log_tag_matching_list_sz, log_max_xrq,
      affiliate_nic_vport_criteria, native_port_num, num_vhca_ports, flex_parser_id_gtpu_teid, sw_owner_id,
      max_num_of_monitor_counters, num_ppcnt_monitor_counters, max_num_sf, num_q_monitor_counters, sf, sf_set_partition,
      log_max_sf, apu, migration, log_min_sf_size, max_num_sf_partitions, uctx_cap, flex_parser_id_geneve_tlv_option_0,
      flex_parser_id_icmp_dw1, flex_parser_id_icmp_dw0, flex_parser_id_icmpv6_dw1, flex_parser_id_icmpv6_dw0,
      flex_parser_id_outer_first_mpls_over_gre, flex_parser_id_outer_first_mpls_over_udp_label, max_num_match_definer,
      sf_base_id, flex_parser_id_gtpu_dw_2, flex_parser_id_gtpu_first_ext_dw_0, num_total_dynamic_vf_msix,
      dynamic_msix_table_size, dma_mmo_qp, min_dynamic_vf_msix_table_size, max_dynamic_vf_msix_table_size,
      log_header_modify_argument_granularity, log_header_modify_argument_max_alloc, vhca_tunnel_commands,
      match_definer_format_supported>;
};

// General device capabilities, second page: CapType::general_2.
struct CmdHcaCap2 : Layout<0x100> {
  using log_reserved_qpn_granularity = Field<"log_reserved_qpn_granularity", At{0x10, 12, 8}>;
  using max_reformat_insert_size = Field<"max_reformat_insert_size", At{0x14, 31, 24}>;
  using max_reformat_insert_offset = Field<"max_reformat_insert_offset", At{0x14, 23, 16}>;
  using max_reformat_remove_size = Field<"max_reformat_remove_size", At{0x14, 15, 8}>;
  using max_reformat_remove_offset = Field<"max_reformat_remove_offset", At{0x14, 7, 0}>;
  using log_min_mkey_entity_size = Field<"log_min_mkey_entity_size", At{0x34, 20, 16}>;
  using sw_vhca_id_valid = Field<"sw_vhca_id_valid", At{0x44, 30, 30}>;
  using sw_vhca_id = Field<"sw_vhca_id", At{0x44, 29, 16}>;
  using ts_cqe_metadata_size2wqe_counter = Field<"ts_cqe_metadata_size2wqe_counter", At{0x48, 20, 16}>;
  using flow_counter_bulk_log_max_alloc = Field<"flow_counter_bulk_log_max_alloc", At{0x48, 12, 8}>;
  using flow_counter_bulk_log_granularity = Field<"flow_counter_bulk_log_granularity", At{0x48, 4, 0}>;
  using send_dbr_mode_no_dbr_int = Field<"send_dbr_mode_no_dbr_int", At{0x5c, 31, 31}>;
  using send_dbr_mode_no_dbr_ext = Field<"send_dbr_mode_no_dbr_ext", At{0x5c, 30, 30}>;
  using log_max_send_dbr_less_qp_sq = Field<"log_max_send_dbr_less_qp_sq", At{0x5c, 28, 24}>;
  using fields = Fields<log_reserved_qpn_granularity, max_reformat_insert_size, max_reformat_insert_offset,
                        max_reformat_remove_size, max_reformat_remove_offset, log_min_mkey_entity_size,
                        sw_vhca_id_valid, sw_vhca_id, ts_cqe_metadata_size2wqe_counter, flow_counter_bulk_log_max_alloc,
                        flow_counter_bulk_log_granularity, send_dbr_mode_no_dbr_int, send_dbr_mode_no_dbr_ext,
                        log_max_send_dbr_less_qp_sq>;
};

}  // namespace verbena::prm
