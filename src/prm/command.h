// The command interface: opcodes, completion status, the heads that every request and reply share.
// Threads: types only; any thread may use them.
#pragma once

#include "layout.h"

namespace verbena::prm {

// Command opcodes (PRM "Command opcodes"). Named as the layouts are: qp_2err and qp_2rst for 2ERR_QP and 2RST_QP.
enum class Opcode : std::uint16_t {
  query_hca_cap = 0x100,
  query_adapter = 0x101,
  init_hca = 0x102,
  teardown_hca = 0x103,
  enable_hca = 0x104,
  disable_hca = 0x105,
  query_pages = 0x107,
  manage_pages = 0x108,
  set_hca_cap = 0x109,
  query_issi = 0x10a,
  set_issi = 0x10b,
  set_driver_version = 0x10d,
  query_sf_partition = 0x111,
  alloc_sf = 0x113,
  dealloc_sf = 0x114,
  suspend_vhca = 0x115,
  resume_vhca = 0x116,
  query_vhca_migration_state = 0x117,
  save_vhca_state = 0x118,
  load_vhca_state = 0x119,
  create_mkey = 0x200,
  query_mkey = 0x201,
  destroy_mkey = 0x202,
  query_special_contexts = 0x203,
  page_fault_resume = 0x204,
  alloc_memic = 0x205,
  dealloc_memic = 0x206,
  modify_memic = 0x207,
  create_eq = 0x301,
  destroy_eq = 0x302,
  query_eq = 0x303,
  gen_eqe = 0x304,
  create_cq = 0x400,
  destroy_cq = 0x401,
  query_cq = 0x402,
  modify_cq = 0x403,
  create_qp = 0x500,
  destroy_qp = 0x501,
  rst2init_qp = 0x502,
  init2rtr_qp = 0x503,
  rtr2rts_qp = 0x504,
  rts2rts_qp = 0x505,
  sqerr2rts_qp = 0x506,
  qp_2err = 0x507,
  rts2sqd_qp = 0x508,  // firmware of the first generation
  qp_2rst = 0x50a,
  query_qp = 0x50b,
  sqd_rts_qp = 0x50c,
  mad_ifc = 0x50d,
  init2init_qp = 0x50e,
  sqd2sqd_qp = 0x511,  // firmware of the first generation
  create_psv = 0x600,
  destroy_psv = 0x601,
  create_srq = 0x700,
  destroy_srq = 0x701,
  query_srq = 0x702,
  arm_rq = 0x703,
  create_xrc_srq = 0x705,
  destroy_xrc_srq = 0x706,
  query_xrc_srq = 0x707,
  arm_xrc_srq = 0x708,
  create_dct = 0x710,
  destroy_dct = 0x711,
  drain_dct = 0x712,
  query_dct = 0x713,
  arm_dct_for_key_violation = 0x714,
  create_xrq = 0x717,
  destroy_xrq = 0x718,
  query_xrq = 0x719,
  arm_xrq = 0x71a,
  query_xrq_dc_params_entry = 0x725,
  set_xrq_dc_params_entry = 0x726,
  query_xrq_error_params = 0x727,
  release_xrq_error = 0x729,
  modify_xrq = 0x72a,
  query_esw_functions = 0x740,
  query_vport_state = 0x750,
  modify_vport_state = 0x751,
  query_esw_vport_context = 0x752,
  modify_esw_vport_context = 0x753,
  query_nic_vport_context = 0x754,
  modify_nic_vport_context = 0x755,
  query_roce_address = 0x760,
  set_roce_address = 0x761,
  query_hca_vport_context = 0x762,
  modify_hca_vport_context = 0x763,
  query_hca_vport_gid = 0x764,
  query_hca_vport_pkey = 0x765,
  query_vnic_env = 0x76f,
  query_vport_counter = 0x770,
  alloc_q_counter = 0x771,
  dealloc_q_counter = 0x772,
  query_q_counter = 0x773,
  set_monitor_counter = 0x774,
  arm_monitor_counter = 0x775,
  set_pp_rate_limit = 0x780,
  query_rate_limit = 0x781,
  create_scheduling_element = 0x782,
  destroy_scheduling_element = 0x783,
  query_scheduling_element = 0x784,
  modify_scheduling_element = 0x785,
  create_qos_para_vport = 0x786,
  destroy_qos_para_vport = 0x787,
  alloc_pd = 0x800,
  dealloc_pd = 0x801,
  alloc_uar = 0x802,
  dealloc_uar = 0x803,
  config_int_moderation = 0x804,
  access_reg = 0x805,
  attach_to_mcg = 0x806,
  detach_from_mcg = 0x807,
  get_dropped_packet_log = 0x80a,
  query_mad_demux = 0x80b,
  set_mad_demux = 0x80c,
  nop = 0x80d,
  alloc_xrcd = 0x80e,
  dealloc_xrcd = 0x80f,
  alloc_transport_domain = 0x816,
  dealloc_transport_domain = 0x817,
  query_cong_status = 0x822,
  modify_cong_status = 0x823,
  query_cong_params = 0x824,
  modify_cong_params = 0x825,
  query_cong_statistics = 0x826,
  add_vxlan_udp_dport = 0x827,
  delete_vxlan_udp_dport = 0x828,
  set_l2_table_entry = 0x829,
  query_l2_table_entry = 0x82a,
  delete_l2_table_entry = 0x82b,
  set_wol_rol = 0x830,
  query_wol_rol = 0x831,
  create_lag = 0x840,
  modify_lag = 0x841,
  query_lag = 0x842,
  destroy_lag = 0x843,
  create_vport_lag = 0x844,
  destroy_vport_lag = 0x845,
  create_tir = 0x900,
  modify_tir = 0x901,
  destroy_tir = 0x902,
  query_tir = 0x903,
  create_sq = 0x904,
  modify_sq = 0x905,
  destroy_sq = 0x906,
  query_sq = 0x907,
  create_rq = 0x908,
  modify_rq = 0x909,
  destroy_rq = 0x90a,
  query_rq = 0x90b,
  create_rmp = 0x90c,
  modify_rmp = 0x90d,
  destroy_rmp = 0x90e,
  query_rmp = 0x90f,
  set_delay_drop_params = 0x910,
  create_tis = 0x912,
  modify_tis = 0x913,
  destroy_tis = 0x914,
  query_tis = 0x915,
  create_rqt = 0x916,
  modify_rqt = 0x917,
  destroy_rqt = 0x918,
  query_rqt = 0x919,
  set_flow_table_root = 0x92f,
  create_flow_table = 0x930,
  destroy_flow_table = 0x931,
  query_flow_table = 0x932,
  create_flow_group = 0x933,
  destroy_flow_group = 0x934,
  query_flow_group = 0x935,
  set_flow_table_entry = 0x936,
  query_flow_table_entry = 0x937,
  delete_flow_table_entry = 0x938,
  alloc_flow_counter = 0x939,
  dealloc_flow_counter = 0x93a,
  query_flow_counter = 0x93b,
  modify_flow_table = 0x93c,
  alloc_packet_reformat_context = 0x93d,
  dealloc_packet_reformat_context = 0x93e,
  query_packet_reformat_context = 0x93f,
  alloc_modify_header_context = 0x940,
  dealloc_modify_header_context = 0x941,
  query_modify_header_context = 0x942,
  fpga_create_qp = 0x960,
  fpga_modify_qp = 0x961,
  fpga_query_qp = 0x962,
  fpga_destroy_qp = 0x963,
  fpga_query_qp_counters = 0x964,
  create_general_object = 0xa00,
  modify_general_object = 0xa01,
  query_general_object = 0xa02,
  destroy_general_object = 0xa03,
  create_uctx = 0xa04,
  destroy_uctx = 0xa06,
  create_umem = 0xa08,
  destroy_umem = 0xa0a,
  sync_steering = 0xb00,
  query_vhca_state = 0xb0d,
  modify_vhca_state = 0xb0e,
};

// Completion status of a command; `syndrome` says more in a firmware-specific way.
enum class Status : std::uint8_t {
  ok = 0x0,
  internal_err = 0x1,
  bad_op = 0x2,
  bad_param = 0x3,
  bad_sys_state = 0x4,
  bad_resource = 0x5,
  resource_busy = 0x6,
  exceed_lim = 0x8,
  bad_res_state = 0x9,
  bad_index = 0xa,
  no_resources = 0xf,
  bad_qp_state = 0x10,
  bad_pkt = 0x30,
  bad_size = 0x40,
  bad_input_len = 0x50,
  bad_output_len = 0x51,
};

// Head of every request. Older commands leave `uid` reserved; their own layouts say so.
struct CommandIn : Layout<0x10> {
  using opcode = Field<"opcode", At{0x00, 31, 16}, Opcode>;
  using uid = Field<"uid", At{0x00, 15, 0}>;
  using op_mod = Field<"op_mod", At{0x04, 15, 0}>;
  using fields = Fields<opcode, uid, op_mod>;
};

// Head of every reply.
struct CommandOut : Layout<0x10> {
  using status = Field<"status", At{0x00, 31, 24}, Status>;
  using syndrome = Field<"syndrome", At{0x04, 31, 0}>;
  using fields = Fields<status, syndrome>;
};

// Element of command tails whose meaning the command gives.
struct Dword : Layout<4> {
  using value = Field<"value", At{0x00, 31, 0}>;
  using fields = Fields<value>;
};

// Eight bytes of a command tail.
struct Qword : Layout<8> {
  using value = Field64<"value", 0x00>;
  using fields = Fields<value>;
};

// Entry of a page list: the bus address of a page. The low 12 bits are not address.
struct Pas : Layout<8> {
  using address = Field64<"address", 0x00>;
  using fields = Fields<address>;
};

}  // namespace verbena::prm
