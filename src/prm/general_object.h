// General objects: the header their commands share; the object itself follows it.
// Threads: types only.
#pragma once

#include "command.h"

namespace verbena::prm {

enum class GeneralObjectType : std::uint16_t {
  sw_icm = 0x0008,
  flow_meter = 0x000a,
  geneve_tlv_opt = 0x000b,
  encryption_key = 0x000c,
  virtio_net_q = 0x000d,
  ipsec = 0x0013,
  match_definer = 0x0018,
  virtio_q_counters = 0x001c,
  crypto_login = 0x001f,
  flow_sampler = 0x0020,
  header_modify_argument = 0x0023,
  flow_meter_aso = 0x0024,
  first_hit_aso = 0x0025,
  scheduling_element = 0x0026,
  macsec = 0x0027,
  reserved_qpn = 0x002c,
  connection_tracking_aso = 0x0031,
  av_qp_mapping = 0x003a,
  page_track = 0x0046,
  mkey = 0xff01,
  qp = 0xff02,
  psv = 0xff03,
  rmp = 0xff04,
  xrc_srq = 0xff05,
  rq = 0xff06,
  sq = 0xff07,
  tir = 0xff08,
  tis = 0xff09,
  dct = 0xff0a,
  xrq = 0xff0b,
  rqt = 0xff0e,
  flow_counter = 0xff0f,
  cq = 0xff10,
};

// Head of the requests.
struct GeneralObjInCmdHdr : Layout<0x10> {
  using opcode = Field<"opcode", At{0x00, 31, 16}>;
  using uid = Field<"uid", At{0x00, 15, 0}>;
  using vhca_tunnel_id = Field<"vhca_tunnel_id", At{0x04, 31, 16}>;
  using obj_type = Field<"obj_type", At{0x04, 15, 0}, GeneralObjectType>;
  using obj_id = Field<"obj_id", At{0x08, 31, 0}>;
  using log_obj_range = Field<"log_obj_range", At{0x0c, 28, 24}>;
  using fields = Fields<opcode, uid, vhca_tunnel_id, obj_type, obj_id, log_obj_range>;
};

// Head of the replies.
struct GeneralObjOutCmdHdr : Layout<0x10> {
  using status = Field<"status", At{0x00, 31, 24}>;
  using syndrome = Field<"syndrome", At{0x04, 31, 0}>;
  using obj_id = Field<"obj_id", At{0x08, 31, 0}>;
  using fields = Fields<status, syndrome, obj_id>;
};

// The address vector of a datagram as a mapping names it.
struct UdAv : Layout<0x30> {
  using sl_or_eth_prio = Field<"sl_or_eth_prio", At{0x0c, 27, 24}>;
  using src_addr_index = Field<"src_addr_index", At{0x1c, 27, 20}>;
  using rgid_or_rip = Bytes<"rgid_or_rip", 0x20, 16>;
  using fields = Fields<sl_or_eth_prio, src_addr_index, rgid_or_rip>;
};

// The general object AV_QP_MAPPING: packets to this address are treated as those of this queue pair.
struct AvQpMapping : Layout<0x40> {
  using modify_field_select = Field64<"modify_field_select", 0x00>;
  using qpn = Field<"qpn", At{0x0c, 31, 0}>;
  using remote_address_vector = Sub<"remote_address_vector", 0x10, UdAv>;
  using fields = Fields<modify_field_select, qpn, remote_address_vector>;
};

}  // namespace verbena::prm
