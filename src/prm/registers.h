// Access registers: the command that reaches them and the port and module registers.
// Threads: types only.
#pragma once

#include "command.h"

namespace verbena::prm {

enum class RegisterId : std::uint16_t {
  qpts = 0x4002,
  qetcr = 0x4005,
  qtct = 0x400a,
  qpdpm = 0x4013,
  qcam = 0x4019,
  dcbx_param = 0x4020,
  pcap = 0x5001,
  pmlp = 0x5002,
  pmtu = 0x5003,
  ptys = 0x5004,
  paos = 0x5006,
  pfcc = 0x5007,
  ppcnt = 0x5008,
  pude = 0x5009,
  pptb = 0x500b,
  pbmc = 0x500c,
  pelc = 0x500e,
  pvlc = 0x500f,
  pmpe = 0x5010,
  pmaos = 0x5012,
  pplm = 0x5023,
  pddr = 0x5031,
  pcmr = 0x5041,
  pcam = 0x507f,
  node_desc = 0x6001,
  host_endianness = 0x7004,
  mtcap = 0x9009,
  mtmp = 0x900a,
  mcia = 0x9014,
  mfrl = 0x9028,
  mlcr = 0x902b,
  mrtc = 0x902d,
  mpein = 0x9050,
  mpcnt = 0x9051,
  mtpps = 0x9053,
  mtutc = 0x9055,
  mcqs = 0x9060,
  mcqi = 0x9061,
  mcc = 0x9062,
  mcda = 0x9063,
  mcam = 0x907f,
  mirc = 0x9162,
  resource_dump = 0xc000,
  dtor = 0xc00e,
};
// op_mod of ACCESS_REGISTER.
enum class AccessRegisterOpMod : std::uint16_t { write = 0, read = 1 };

// proto_mask of PTYS.
struct PtysProto {
  static constexpr std::uint32_t infiniband = 1u << 0;
  static constexpr std::uint32_t ethernet = 1u << 2;
};
// Link modes: bit numbers of the ext_eth_proto fields of PTYS.
enum class ExtLinkMode : std::uint8_t {
  sgmii_100m = 0,
  base_x_1g = 1,
  base_r_5g = 3,
  base_10g = 4,
  base_40g_4 = 5,
  base_25g_1 = 6,
  base_50g_2 = 7,
  base_50g_1 = 8,
  base_100g_4 = 9,
  base_100g_2 = 10,
  base_100g_1 = 11,
  base_200g_4 = 12,
  base_200g_2 = 13,
  base_400g_8 = 15,
  base_400g_4 = 16,
};
// admin_status and oper_status of PAOS.
enum class PaosStatus : std::uint8_t { up = 1, down = 2, up_once = 3, disabled_by_system = 4 };

// ACCESS_REGISTER: request.
struct AccessRegisterIn : Layout<0x10> {
  using opcode = Field<"opcode", At{0x00, 31, 16}, Opcode>;
  using op_mod = Field<"op_mod", At{0x04, 15, 0}>;
  using register_id = Field<"register_id", At{0x08, 15, 0}>;
  using argument = Field<"argument", At{0x0c, 31, 0}>;
  using register_data = Array<"register_data", 0x10, Dword>;
  using fields = Fields<opcode, op_mod, register_id, argument, register_data>;
};

// ACCESS_REGISTER: reply.
struct AccessRegisterOut : Layout<0x10> {
  using status = Field<"status", At{0x00, 31, 24}, Status>;
  using syndrome = Field<"syndrome", At{0x04, 31, 0}>;
  using register_data = Array<"register_data", 0x10, Dword>;
  using fields = Fields<status, syndrome, register_data>;
};

// Port type and speed.
struct PtysReg : Layout<0x40> {
  using an_disable_admin = Field<"an_disable_admin", At{0x00, 30, 30}>;
  using an_disable_cap = Field<"an_disable_cap", At{0x00, 29, 29}>;
  using local_port = Field<"local_port", At{0x00, 23, 16}>;
  using proto_mask = Field<"proto_mask", At{0x00, 2, 0}>;
  using an_status = Field<"an_status", At{0x04, 31, 28}>;
  using data_rate_oper = Field<"data_rate_oper", At{0x04, 15, 0}>;
  using ext_eth_proto_capability = Field<"ext_eth_proto_capability", At{0x08, 31, 0}>;
  using eth_proto_capability = Field<"eth_proto_capability", At{0x0c, 31, 0}>;
  using ib_link_width_capability = Field<"ib_link_width_capability", At{0x10, 31, 16}>;
  using ib_proto_capability = Field<"ib_proto_capability", At{0x10, 15, 0}>;
  using ext_eth_proto_admin = Field<"ext_eth_proto_admin", At{0x14, 31, 0}>;
  using eth_proto_admin = Field<"eth_proto_admin", At{0x18, 31, 0}>;
  using ib_link_width_admin = Field<"ib_link_width_admin", At{0x1c, 31, 16}>;
  using ib_proto_admin = Field<"ib_proto_admin", At{0x1c, 15, 0}>;
  using ext_eth_proto_oper = Field<"ext_eth_proto_oper", At{0x20, 31, 0}>;
  using eth_proto_oper = Field<"eth_proto_oper", At{0x24, 31, 0}>;
  using ib_link_width_oper = Field<"ib_link_width_oper", At{0x28, 31, 16}>;
  using ib_proto_oper = Field<"ib_proto_oper", At{0x28, 15, 0}>;
  using connector_type = Field<"connector_type", At{0x2c, 3, 0}>;
  using eth_proto_lp_advertise = Field<"eth_proto_lp_advertise", At{0x30, 31, 0}>;
  using fields = Fields<an_disable_admin, an_disable_cap, local_port, proto_mask, an_status, data_rate_oper,
                        ext_eth_proto_capability, eth_proto_capability, ib_link_width_capability, ib_proto_capability,
                        ext_eth_proto_admin, eth_proto_admin, ib_link_width_admin, ib_proto_admin, ext_eth_proto_oper,
                        eth_proto_oper, ib_link_width_oper, ib_proto_oper, connector_type, eth_proto_lp_advertise>;
};

// Port administrative and operational status.
struct PaosReg : Layout<0x10> {
  using swid = Field<"swid", At{0x00, 31, 24}>;
  using local_port = Field<"local_port", At{0x00, 23, 16}>;
  using admin_status = Field<"admin_status", At{0x00, 11, 8}>;
  using oper_status = Field<"oper_status", At{0x00, 3, 0}>;
  using ase = Field<"ase", At{0x04, 31, 31}>;
  using ee = Field<"ee", At{0x04, 30, 30}>;
  using e = Field<"e", At{0x04, 1, 0}>;
  using fields = Fields<swid, local_port, admin_status, oper_status, ase, ee, e>;
};

// Port MTU.
struct PmtuReg : Layout<0x10> {
  using local_port = Field<"local_port", At{0x00, 23, 16}>;
  using max_mtu = Field<"max_mtu", At{0x04, 31, 16}>;
  using admin_mtu = Field<"admin_mtu", At{0x08, 31, 16}>;
  using oper_mtu = Field<"oper_mtu", At{0x0c, 31, 16}>;
  using fields = Fields<local_port, max_mtu, admin_mtu, oper_mtu>;
};

// Port up or down event.
struct PudeReg : Layout<0x10> {
  using swid = Field<"swid", At{0x00, 31, 24}>;
  using local_port = Field<"local_port", At{0x00, 23, 16}>;
  using admin_status = Field<"admin_status", At{0x00, 11, 8}>;
  using oper_status = Field<"oper_status", At{0x00, 3, 0}>;
  using fields = Fields<swid, local_port, admin_status, oper_status>;
};

// Port capabilities.
struct PcapReg : Layout<0x14> {
  using local_port = Field<"local_port", At{0x00, 23, 16}>;
  using port_capability_mask = Array<"port_capability_mask", 0x4, Dword, 4>;
  using fields = Fields<local_port, port_capability_mask>;
};

// Module lanes of a port.
struct PmlpReg : Layout<0x40> {
  using rxtx = Field<"rxtx", At{0x00, 31, 31}>;
  using local_port = Field<"local_port", At{0x00, 23, 16}>;
  using width = Field<"width", At{0x00, 7, 0}>;
  using lane0_module_mapping = Field<"lane0_module_mapping", At{0x04, 31, 0}>;
  using lane1_module_mapping = Field<"lane1_module_mapping", At{0x08, 31, 0}>;
  using lane2_module_mapping = Field<"lane2_module_mapping", At{0x0c, 31, 0}>;
  using lane3_module_mapping = Field<"lane3_module_mapping", At{0x10, 31, 0}>;
  using fields = Fields<rxtx, local_port, width, lane0_module_mapping, lane1_module_mapping, lane2_module_mapping,
                        lane3_module_mapping>;
};

// Flow control.
struct PfccReg : Layout<0x20> {
  using local_port = Field<"local_port", At{0x00, 23, 16}>;
  using ppan_mask_n = Field<"ppan_mask_n", At{0x00, 4, 4}>;
  using minor_stall_mask = Field<"minor_stall_mask", At{0x00, 3, 3}>;
  using critical_stall_mask = Field<"critical_stall_mask", At{0x00, 2, 2}>;
  using ppan = Field<"ppan", At{0x04, 31, 28}>;
  using prio_mask_tx = Field<"prio_mask_tx", At{0x04, 23, 16}>;
  using prio_mask_rx = Field<"prio_mask_rx", At{0x04, 7, 0}>;
  using pptx = Field<"pptx", At{0x08, 31, 31}>;
  using aptx = Field<"aptx", At{0x08, 30, 30}>;
  using pptx_mask_n = Field<"pptx_mask_n", At{0x08, 29, 29}>;
  using pfctx = Field<"pfctx", At{0x08, 23, 16}>;
  using pprx = Field<"pprx", At{0x0c, 31, 31}>;
  using aprx = Field<"aprx", At{0x0c, 30, 30}>;
  using pprx_mask_n = Field<"pprx_mask_n", At{0x0c, 29, 29}>;
  using pfcrx = Field<"pfcrx", At{0x0c, 23, 16}>;
  using device_stall_minor_watermark = Field<"device_stall_minor_watermark", At{0x10, 31, 16}>;
  using device_stall_critical_watermark = Field<"device_stall_critical_watermark", At{0x10, 15, 0}>;
  using fields = Fields<local_port, ppan_mask_n, minor_stall_mask, critical_stall_mask, ppan, prio_mask_tx,
                        prio_mask_rx, pptx, aptx, pptx_mask_n, pfctx, pprx, aprx, pprx_mask_n, pfcrx,
                        device_stall_minor_watermark, device_stall_critical_watermark>;
};

// Virtual lanes.
struct PvlcReg : Layout<0x10> {
  using local_port = Field<"local_port", At{0x00, 23, 16}>;
  using vl_hw_cap = Field<"vl_hw_cap", At{0x04, 3, 0}>;
  using vl_admin = Field<"vl_admin", At{0x08, 3, 0}>;
  using vl_operational = Field<"vl_operational", At{0x0c, 3, 0}>;
  using fields = Fields<local_port, vl_hw_cap, vl_admin, vl_operational>;
};

// Cable information: bytes of the module.
struct MciaReg : Layout<0x90> {
  using l = Field<"l", At{0x00, 31, 31}>;
  using module = Field<"module", At{0x00, 23, 16}>;
  using status = Field<"status", At{0x00, 7, 0}>;
  using i2c_device_address = Field<"i2c_device_address", At{0x04, 31, 24}>;
  using page_number = Field<"page_number", At{0x04, 23, 16}>;
  using device_address = Field<"device_address", At{0x04, 15, 0}>;
  using size_ = Field<"size", At{0x08, 15, 0}>;
  using dwords = Bytes<"dwords", 0x10, 128>;
  using fields = Fields<l, module, status, i2c_device_address, page_number, device_address, size_, dwords>;
};

// Temperature sensor. Degrees are in units of 1/8 Celsius.
struct MtmpReg : Layout<0x20> {
  using sensor_index = Field<"sensor_index", At{0x00, 11, 0}>;
  using temperature = Field<"temperature", At{0x04, 15, 0}>;
  using mte = Field<"mte", At{0x08, 31, 31}>;
  using mtr = Field<"mtr", At{0x08, 30, 30}>;
  using max_temperature = Field<"max_temperature", At{0x08, 15, 0}>;
  using tee = Field<"tee", At{0x0c, 31, 30}>;
  using temperature_threshold_hi = Field<"temperature_threshold_hi", At{0x0c, 15, 0}>;
  using temperature_threshold_lo = Field<"temperature_threshold_lo", At{0x10, 15, 0}>;
  using sensor_name_hi = Field<"sensor_name_hi", At{0x18, 31, 0}>;
  using sensor_name_lo = Field<"sensor_name_lo", At{0x1c, 31, 0}>;
  using fields = Fields<sensor_index, temperature, mte, mtr, max_temperature, tee, temperature_threshold_hi,
                        temperature_threshold_lo, sensor_name_hi, sensor_name_lo>;
};

// SET_NODE: request.
struct SetNodeIn : Layout<0x40> {
  using node_description = Bytes<"node_description", 0x0, 64>;
  using fields = Fields<node_description>;
};

// Clock adjustment.
struct MtutcReg : Layout<0x1c> {
  using operation = Field<"operation", At{0x00, 3, 0}>;
  using freq_adjustment = Field<"freq_adjustment", At{0x04, 31, 0}>;
  using utc_sec = Field<"utc_sec", At{0x10, 31, 0}>;
  using utc_nsec = Field<"utc_nsec", At{0x14, 29, 0}>;
  using time_adjustment = Field<"time_adjustment", At{0x18, 31, 0}>;
  using fields = Fields<operation, freq_adjustment, utc_sec, utc_nsec, time_adjustment>;
};

// Real time clock.
struct MrtcReg : Layout<0x10> {
  using time_synced = Field<"time_synced", At{0x00, 31, 31}>;
  using time_h = Field<"time_h", At{0x08, 31, 0}>;
  using time_l = Field<"time_l", At{0x0c, 31, 0}>;
  using fields = Fields<time_synced, time_h, time_l>;
};

}  // namespace verbena::prm
