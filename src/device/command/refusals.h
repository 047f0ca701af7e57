// The table of refusals: one row each, with its own syndrome. The high half of a syndrome is the object family.
//
// A row: X(syndrome, status, name, "which field, and why").
// Threads: constants.
#pragma once

#include <cstdint>

#include "prm/command.h"

// clang-format off
#define VERBENA_REFUSALS(X) \
  /* every command */ \
  X(0x010001, bad_op,         unknown_opcode,        "opcode: no command has this number") \
  X(0x010002, bad_op,         not_supported,         "opcode: this device does not have the command, and no capability says it does") \
  X(0x010003, bad_input_len,  input_length,          "input length: shorter or longer than the command's layout (with whole elements behind it where it has a list)") \
  X(0x010004, bad_output_len, output_length,         "output length: too short for the command's reply") \
  X(0x010005, bad_resource,   uid_unknown,           "uid: no user context has this number") \
  X(0x010006, bad_op,         uid_not_privileged,    "uid: the command is the driver's alone, user contexts may not issue it") \
  X(0x010007, bad_sys_state,  hca_not_initialised,   "the HCA was torn down: INIT_HCA must come first") \
  /* HCA */ \
  X(0x020001, bad_param,      other_function,        "function_id: this device is one function, 0, and manages no other") \
  X(0x020002, bad_param,      cap_page,              "op_mod: no capability page of this type") \
  X(0x020003, bad_param,      issi_unknown,          "current_issi: not among those QUERY_ISSI lists") \
  X(0x020004, bad_sys_state,  hca_busy,              "queues or memory keys still exist") \
  X(0x020005, bad_param,      teardown_profile,      "profile: only the graceful teardown (0) is supported") \
  /* PD, transport domain, UAR */ \
  X(0x030001, exceed_lim,     pd_none_left,          "all protection domains are in use (log_max_pd)") \
  X(0x030002, bad_resource,   pd_missing,            "pd: no such protection domain, or it belongs to another uid") \
  X(0x030003, bad_res_state,  pd_busy,               "pd: queues or memory keys still use it") \
  X(0x030004, exceed_lim,     td_none_left,          "all transport domains are in use (log_max_transport_domain)") \
  X(0x030005, bad_resource,   td_missing,            "transport_domain: no such domain, or it belongs to another uid") \
  X(0x030006, bad_res_state,  td_busy,               "transport_domain: still in use") \
  X(0x030007, no_resources,   uar_none_left,         "all UAR pages are in use") \
  X(0x030008, bad_resource,   uar_missing,           "uar: no such UAR, or it belongs to another uid") \
  X(0x030009, bad_res_state,  uar_busy,              "uar: queues still use it") \
  X(0x03000a, exceed_lim,     xrcd_none_left,        "all XRC domains are in use") \
  X(0x03000b, bad_resource,   xrcd_missing,          "xrcd: no such XRC domain, or it belongs to another uid") \
  X(0x03000c, bad_param,      psv_count,             "num_psv: 1 to 4") \
  X(0x03000d, bad_resource,   psv_pd,                "pd: no such protection domain, or it belongs to another uid") \
  X(0x03000e, exceed_lim,     psv_none_left,         "all PSVs are in use") \
  X(0x03000f, bad_resource,   psv_missing,           "psvn: no such PSV, or it belongs to another uid") \
  X(0x030010, bad_res_state,  xrcd_busy,             "xrcd: queue pairs or receive queues still stand on it") \
  /* user contexts, UMEM */ \
  X(0x040001, exceed_lim,     uctx_none_left,        "all user contexts are in use (log_max_uctx)") \
  X(0x040002, bad_param,      uctx_cap,              "uctx.cap: asks for a privilege that uctx_cap does not offer") \
  X(0x040003, bad_resource,   uctx_missing,          "uid: no such user context") \
  X(0x040004, bad_res_state,  uctx_busy,             "uid: objects of this user context still exist") \
  X(0x040010, exceed_lim,     umem_none_left,        "all UMEMs are in use (log_max_umem)") \
  X(0x040011, bad_param,      umem_ats,              "umem.ats: address translation services are not supported") \
  X(0x040012, bad_param,      umem_entries,          "umem.num_of_mtt: zero, or more entries than the input carries") \
  X(0x040013, bad_param,      umem_page_offset,      "umem.page_offset: not inside the first page") \
  X(0x040014, bad_param,      umem_scattered,        "umem.mtt: the pages are not one run of addresses (an embedded device uses virtual addresses)") \
  X(0x040015, bad_param,      umem_rights,           "umem.mtt: an entry gives no read permission") \
  X(0x040016, bad_param,      umem_not_mapped,       "umem.mtt: the address is not mapped in this process") \
  X(0x040017, bad_resource,   umem_missing,          "umem_id: no such UMEM, or it belongs to another uid") \
  X(0x040018, bad_res_state,  umem_busy,             "umem_id: queues or memory keys still use it") \
  /* where queues lie */ \
  X(0x050001, bad_param,      queue_page_size,       "log_page_size: pages above 2^43 bytes do not exist") \
  X(0x050002, bad_input_len,  queue_pages_short,     "pas: fewer pages than the queue needs") \
  X(0x050003, bad_param,      queue_pages_scattered, "pas: the pages are not one run of addresses (an embedded device uses virtual addresses)") \
  X(0x050004, bad_param,      queue_unaligned,       "page_offset/pas: the queue does not start on a 64-byte boundary") \
  X(0x050005, bad_param,      queue_not_mapped,      "pas: the queue is not mapped in this process") \
  X(0x050006, bad_resource,   queue_umem_missing,    "wq_umem_id/cq_umem_id: no such UMEM, or it belongs to another uid") \
  X(0x050007, bad_param,      queue_umem_short,      "wq_umem_offset/cq_umem_offset: the queue reaches past the end of the UMEM") \
  X(0x050008, bad_param,      queue_umem_read_only,  "cq_umem_id: the UMEM is read-only") \
  X(0x050009, bad_resource,   dbr_umem_missing,      "dbr_umem_id: no such UMEM, or it belongs to another uid") \
  X(0x05000a, bad_param,      dbr_umem_short,        "dbr_addr: the doorbell record reaches past the end of the UMEM") \
  X(0x05000b, bad_param,      dbr_unaligned,         "dbr_addr: a doorbell record starts on an 8-byte boundary") \
  X(0x05000c, bad_param,      dbr_not_mapped,        "dbr_addr: not mapped in this process") \
  /* memory keys */ \
  X(0x060001, exceed_lim,     mkey_none_left,        "all memory keys are in use (log_max_mkey)") \
  X(0x060002, bad_resource,   mkey_missing,          "mkey_index: no such memory key, or it belongs to another uid") \
  X(0x060003, bad_resource,   mkey_pd,               "mkc.pd: no such protection domain, or it belongs to another uid") \
  X(0x060004, bad_param,      mkey_access_mode,      "mkc.access_mode: not one of PA, MTT, KLM, KSM") \
  X(0x060005, bad_param,      mkey_odp,              "pg_access: on-demand paging is not supported (pg capability)") \
  X(0x060006, bad_param,      mkey_signature,        "mkc.bsf_en: signature offload is not supported (sho capability)") \
  X(0x060007, bad_param,      mkey_crypto,           "mkc.crypto_en: encryption offload is not supported (crypto capability)") \
  X(0x060008, bad_param,      mkey_ats,              "mkc.ma_translation_mode: address translation services are not supported (ats capability)") \
  X(0x060009, bad_param,      mkey_device_memory,    "mkc.access_mode: steering memory (SW_ICM) is not supported (device_memory capability)") \
  X(0x06000b, bad_param,      mkey_range,            "mkc.start_addr/len: the range wraps around the end of the address space") \
  X(0x06000c, bad_input_len,  mkey_table_short,      "translations_octword_actual_size: more entries than the input carries") \
  X(0x06000d, bad_param,      mkey_table_size,       "translations_octword_actual_size: more than mkc.translations_octword_size") \
  X(0x06000e, exceed_lim,     mkey_table_limit,      "mkc.translations_octword_size: longer than log_max_klm_list_size allows") \
  X(0x06000f, bad_param,      mkey_table_empty,      "translations_octword_actual_size: a key of this access mode needs a translation table") \
  X(0x060010, bad_param,      mkey_table_cover,      "mkc.len: the page list is shorter than the range") \
  X(0x060011, bad_param,      mkey_page_size,        "mkc.log_page_size: pages are at least 4 KiB") \
  X(0x060012, no_resources,   mkey_no_table_memory,  "no device memory left for the translation table") \
  X(0x060013, bad_param,      mkey_length64_mode,    "mkc.length64: a key with a page list has a length") \
  X(0x060014, bad_resource,   mkey_umem_missing,     "mkey_umem_id: no such UMEM, or it belongs to another uid") \
  X(0x060015, bad_param,      mkey_umem_short,       "mkey_umem_offset: the range reaches past the end of the UMEM") \
  X(0x060016, bad_param,      mkey_umem_read_only,   "mkey_umem_id: write access to a read-only UMEM") \
  X(0x060017, bad_param,      mkey_umem_mode,        "mkc.access_mode: a key over a UMEM is of mode MTT") \
  /* event queues */ \
  X(0x070001, exceed_lim,     eq_none_left,          "all event queues are in use (log_max_eq)") \
  X(0x070002, bad_resource,   eq_missing,            "eq_number: no such event queue, or it belongs to another uid") \
  X(0x070003, exceed_lim,     eq_size,               "eqc.log_eq_size: above log_max_eq_sz") \
  X(0x070004, bad_param,      eq_vector,             "eqc.intr: no such interrupt vector") \
  X(0x070005, bad_resource,   eq_uar,                "eqc.uar_page: no such UAR, or it belongs to another uid") \
  X(0x070006, bad_res_state,  eq_busy,               "eq_number: completion queues still report to it") \
  /* completion queues */ \
  X(0x080001, exceed_lim,     cq_none_left,          "all completion queues are in use (log_max_cq)") \
  X(0x080002, bad_resource,   cq_missing,            "cqn: no such completion queue, or it belongs to another uid") \
  X(0x080003, exceed_lim,     cq_size,               "cqc.log_cq_size: above log_max_cq_sz") \
  X(0x080004, bad_param,      cq_cqe_size,           "cqc.cqe_sz: CQEs have 64 or 128 bytes") \
  X(0x080005, bad_param,      cq_compression,        "cqc.cqe_comp_en: not compressed (cqe_compression capability), or not so (mini_cqe_res_format*, layout)") \
  X(0x080006, bad_param,      cq_apu,                "cqc.apu_cq: there is no application processing unit (apu capability)") \
  X(0x080007, bad_param,      cq_period_mode,        "cqc.cq_period_mode: not a moderation mode") \
  X(0x080008, bad_resource,   cq_eqn,                "cqc.c_eqn: no such event queue, or it belongs to another uid") \
  X(0x080009, bad_resource,   cq_uar,                "cqc.uar_page: no such UAR, or it belongs to another uid") \
  X(0x08000a, bad_res_state,  cq_busy,               "cqn: queue pairs still complete into it") \
  X(0x08000b, bad_param,      cq_op_mod,             "op_mod: MODIFY_CQ has 0 (fields) and 1 (resize)") \
  X(0x08000c, bad_param,      cq_modify_select,      "modify_field_select: names a field that cannot be modified") \
  X(0x08000d, bad_param,      cq_resize_select,      "resize_field_select: a resize names log_cq_size, and at most page_offset and log_page_size with it") \
  X(0x08000e, bad_size,       cq_resize_unread,      "cqc.log_cq_size: more unread completions than the new queue holds") \
  X(0x08000f, bad_res_state,  cq_resize_full,        "cqn: the old queue has no free entry to mark its end") \
  /* shared receive queues */ \
  X(0x090001, exceed_lim,     srq_none_left,         "all shared receive queues are in use (log_max_srq)") \
  X(0x090002, bad_resource,   srq_missing,           "srqn/rmpn: no such shared receive queue, or it belongs to another uid") \
  X(0x090003, exceed_lim,     srq_size,              "log_srq_size/log_wq_sz: above log_max_srq_sz") \
  X(0x090004, bad_param,      srq_stride,            "log_rq_stride/log_wq_stride: a WQE has 32 to max_wqe_sz_rq bytes") \
  X(0x090005, exceed_lim,     srq_limit,             "lwm: the limit must be below the size of the queue") \
  X(0x090006, bad_resource,   srq_pd,                "pd: no such protection domain, or it belongs to another uid") \
  X(0x090007, bad_param,      srq_signature,         "wq_signature: WQE signatures are not supported (wq_signature capability)") \
  X(0x090008, bad_res_state,  srq_busy,              "srqn/rmpn: queue pairs still receive from it") \
  X(0x090009, bad_param,      arm_rq_op_mod,         "op_mod: ARM_RQ takes 1 (SRQ)") \
  X(0x09000a, bad_param,      rmp_initial_state,     "rmpc.state: a new pool is in state RDY") \
  X(0x09000b, bad_param,      rmp_wq_type,           "rmpc.wq.wq_type/basic_cyclic_rcv_wqe: a linked list (0) or cyclic (1), of WQEs with a next segment") \
  X(0x09000c, bad_res_state,  rmp_current_state,     "rmp_state: not the state that the pool is in") \
  X(0x09000d, bad_param,      rmp_new_state,         "rmpc.state: RDY may become ERR, nothing else") \
  X(0x09000e, bad_resource,   srq_cq,                "cqn: no such completion queue, or it belongs to another uid") \
  X(0x09000f, bad_param,      xrc_srq_cyclic,        "xrc_srqc.basic_cyclic_rcv_wqe: each WQE has a next segment") \
  X(0x090010, bad_param,      xrc_srq_no_cq,         "cqn: an XRC SRQ and an XRQ have a completion queue of their own") \
  X(0x090011, bad_param,      arm_xrc_srq_op_mod,    "op_mod: ARM_XRC_SRQ takes 1 (XRC SRQ)") \
  X(0x090012, bad_param,      xrq_offload,           "xrqc.topology/offload: tag matching and NVMe over fabrics are not supported (tag_matching capability)") \
  /* queue pairs: creation */ \
  X(0x0a0001, exceed_lim,     qp_none_left,          "all queue pairs are in use (log_max_qp)") \
  X(0x0a0002, bad_resource,   qp_missing,            "qpn: no such queue pair, or it belongs to another uid") \
  X(0x0a0003, bad_param,      qp_service_type,       "qpc.st: only RC, UC, UD and XRC are supported (rc, uc, ud, xrc capabilities)") \
  X(0x0a0004, bad_param,      qp_input_qpn,          "input_qpn: reserved numbers are not supported (log_reserved_qpn_granularity capability)") \
  X(0x0a0005, bad_param,      qp_ece,                "ece: enhanced connection establishment is not supported (ece_support capability)") \
  X(0x0a0006, bad_param,      qp_signature,          "qpc.wq_signature: WQE signatures are not supported (wq_signature capability)") \
  X(0x0a0007, bad_param,      qp_offload,            "qpc.offload_type: rendezvous offload is not supported (rndv_offload_rc capability)") \
  X(0x0a0008, bad_param,      qp_ts_format,          "qpc.ts_format: real-time timestamps are not supported (qp_ts_format capability)") \
  X(0x0a0009, bad_param,      qp_rlky,               "qpc.rlky: the device has no reserved key (resd_lkey of QUERY_SPECIAL_CONTEXTS is 0)") \
  X(0x0a000a, bad_param,      qp_cross_channel,      "qpc.cd_*: cross-channel operations are not supported (cd capability)") \
  X(0x0a000b, bad_param,      qp_cs_req,             "qpc.cs_req: not a way to scatter to CQEs (0x00, 0x11, 0x22)") \
  X(0x0a000c, bad_param,      qp_cs_res,             "qpc.cs_res: not a way to scatter to CQEs (0, 1, 2)") \
  X(0x0a000d, bad_param,      qp_rq_type,            "qpc.rq_type: regular (0), shared (1) or none (3)") \
  X(0x0a000e, exceed_lim,     qp_sq_size,            "qpc.log_sq_size: above log_max_qp_sz") \
  X(0x0a000f, exceed_lim,     qp_rq_size,            "qpc.log_rq_size: above log_max_qp_sz") \
  X(0x0a0010, exceed_lim,     qp_rq_stride,          "qpc.log_rq_stride: receive WQEs above max_wqe_sz_rq") \
  X(0x0a0011, bad_resource,   qp_pd,                 "qpc.pd: no such protection domain, or it belongs to another uid") \
  X(0x0a0012, bad_resource,   qp_uar,                "qpc.uar_page: no such UAR, or it belongs to another uid") \
  X(0x0a0013, bad_resource,   qp_send_cq,            "qpc.cqn_snd: no such completion queue, or it belongs to another uid") \
  X(0x0a0014, bad_resource,   qp_recv_cq,            "qpc.cqn_rcv: no such completion queue, or it belongs to another uid") \
  X(0x0a0015, bad_resource,   qp_srq,                "qpc.srqn_rmpn_xrqn: no such shared receive queue, or it belongs to another uid") \
  X(0x0a0016, bad_res_state,  qp_attached,           "qpn: still attached to a multicast group") \
  X(0x0a0017, bad_res_state,  qp_busy,               "qpn: other objects still use it") \
  X(0x0a0018, bad_resource,   qp_xrcd,               "qpc.xrcd: no such XRC domain, or it belongs to another uid") \
  X(0x0a0019, bad_param,      qp_xrc_rq,             "qpc.rq_type: an XRC queue pair has no receive queue of its own (1 or 3)") \
  X(0x0a001a, bad_param,      qp_dbr_mode,           "qpc.send_dbr_mode: with a doorbell record (0), or by the UAR store alone (1)") \
  /* queue pairs: transitions */ \
  X(0x0a0101, bad_qp_state,   qp_state,              "qpn: the queue pair is not in the state the transition starts from") \
  X(0x0a0102, bad_param,      qp_opt_param_mask,     "opt_param_mask: names a parameter that this transition does not take for this transport") \
  X(0x0a0103, bad_param,      qp_ext_opt_param_mask, "opt_param_mask_95_32: names a parameter that is not supported") \
  X(0x0a0104, bad_param,      qp_alternate_path,     "opt_param_mask.alt_addr_path: path migration is not supported (apm capability)") \
  X(0x0a0105, bad_param,      qp_drain_sigerr,       "qpc.drain_sigerr: signature offload is not supported (drain_sigerr capability)") \
  X(0x0a0106, bad_index,      qp_pkey_index,         "primary_address_path.pkey_index: past the end of the partition table") \
  X(0x0a0107, bad_index,      qp_sgid_index,         "primary_address_path.src_addr_index: past the end of the address table") \
  X(0x0a0108, bad_param,      qp_port,               "primary_address_path.vhca_port_num: no such port") \
  X(0x0a0109, bad_param,      qp_lag_port,           "qpc.lag_tx_port_affinity: no such port in the bond") \
  X(0x0a010a, bad_resource,   qp_counter,            "qpc.counter_set_id: no such counter set, or it belongs to another uid") \
  X(0x0a010b, bad_param,      qp_mtu,                "qpc.mtu: a path MTU is 256 (1) to 4096 (5)") \
  X(0x0a010c, exceed_lim,     qp_log_msg_max,        "qpc.log_msg_max: above log_max_msg") \
  X(0x0a010d, exceed_lim,     qp_log_rra_max,        "qpc.log_rra_max: above log_max_ra_res_qp") \
  X(0x0a010e, exceed_lim,     qp_log_sra_max,        "qpc.log_sra_max: above log_max_ra_req_qp") \
  X(0x0a010f, bad_param,      qp_atomic_mode,        "qpc.atomic_mode: atomics above 8 bytes are not supported (atomic_size_qp capability)") \
  X(0x0a0110, bad_param,      qp_extension,          "qpc_ext: opt_param_mask_95_32 names a parameter of the extended context, which the request does not have") \
  X(0x0a0111, bad_resource,   qp_leaf,               "qos_queue_group_id_requester/_responder: no such queue group, or it belongs to another uid") \
  X(0x0a0112, bad_param,      qp_responder_leaf,     "qos_queue_group_id_responder: only RC sends responses") \
  /* multicast */ \
  X(0x0b0001, bad_param,      mcg_qp_type,           "qpn: only UD queue pairs receive multicast") \
  X(0x0b0002, bad_param,      mcg_gid,               "multicast_gid: not a multicast address (ff..)") \
  X(0x0b0003, no_resources,   mcg_full,              "multicast_gid: no group left (log_max_mcg) or no place left in this one (max_qp_mcg)") \
  X(0x0b0004, bad_resource,   mcg_not_attached,      "multicast_gid/qpn: the queue pair is not in this group") \
  /* RoCE addresses */ \
  X(0x0c0001, bad_param,      roce_port,             "vhca_port_num: no such port") \
  X(0x0c0002, bad_index,      roce_index,            "roce_address_index: past the end of the table (roce_address_table_size)") \
  X(0x0c0003, bad_param,      roce_version,          "roce_address.roce_version: v1 (0) or v2 (2)") \
  X(0x0c0004, bad_param,      roce_vlan,             "roce_address.vlan_valid: tagged RoCE addresses are not supported") \
  X(0x0c0005, internal_err,   roce_not_set,          "the address could not be entered into the table that routes packets") \
  /* vports */ \
  X(0x0d0001, bad_param,      other_vport,           "vport_number: this device has one vport, 0") \
  X(0x0d0002, bad_param,      vport_port,            "port_num: no such port") \
  X(0x0d0003, bad_param,      vport_op_mod,          "op_mod: no vport of this kind") \
  X(0x0d0004, bad_param,      vport_list_type,       "allowed_list_type: unicast (0), multicast (1) or VLAN (2)") \
  X(0x0d0005, bad_param,      vport_identity,        "field_select: GUIDs and the permanent address come from the profile") \
  X(0x0d0006, bad_param,      vport_affiliation,     "field_select.affiliation: ports of several functions are not supported (num_vhca_ports capability)") \
  X(0x0d0007, bad_param,      vport_address_list,    "field_select.addresses_list: Ethernet receive is not supported (log_max_current_uc_list capability)") \
  X(0x0d0008, bad_param,      vport_min_inline,      "min_wqe_inline_mode: the device needs no inlined headers") \
  X(0x0d0009, bad_param,      vport_roce_off,        "roce_en: a port of this device is a RoCE port") \
  X(0x0d000a, exceed_lim,     vport_mtu,             "mtu: above the link's") \
  X(0x0d000b, bad_index,      vport_gid_index,       "gid_index: past the end of the table") \
  X(0x0d000c, bad_output_len, vport_gid_room,        "output length: too short for the addresses asked for") \
  X(0x0d000d, bad_index,      vport_pkey_index,      "pkey_index: a RoCE port has the default partition only") \
  X(0x0d000e, bad_output_len, vport_pkey_room,       "output length: too short for the partition keys asked for") \
  X(0x0d000f, bad_param,      vport_counter_clear,   "clear: port counters are shared by all processes and cannot be cleared") \
  /* counters */ \
  X(0x0e0001, no_resources,   counter_none_left,     "all counter sets are in use (max_qp_cnt)") \
  X(0x0e0002, bad_resource,   counter_missing,       "counter_set_id: no such counter set, or it belongs to another uid") \
  X(0x0e0003, bad_param,      counter_not_own,       "clear: only the owner of a counter set may clear it") \
  /* registers */ \
  X(0x0f0001, bad_param,      register_unknown,      "register_id: this device does not have the register") \
  X(0x0f0002, bad_param,      register_op_mod,       "op_mod: write (0) or read (1)") \
  X(0x0f0003, bad_input_len,  register_input_length, "input length: shorter than the register") \
  X(0x0f0004, bad_output_len, register_output_length, "output length: shorter than the register") \
  X(0x0f0005, bad_param,      register_port,         "local_port: no such port") \
  X(0x0f0006, bad_param,      register_read_only,    "op_mod/clr: the register is read-only here") \
  X(0x0f0007, bad_op,         register_write_uid,    "uid: only the driver writes registers") \
  X(0x0f0008, bad_param,      register_no_module,    "register_id: there is no cable module to read (MCIA)") \
  X(0x0f0009, bad_param,      ptys_proto,            "proto_mask: an Ethernet port (4)") \
  X(0x0f000a, bad_param,      paos_status,           "admin_status: up (1) or down (2)") \
  X(0x0f000b, bad_param,      pmtu_fixed,            "admin_mtu: the link's MTU comes from the profile") \
  X(0x0f000c, bad_param,      ppcnt_group,           "grp: the device keeps no counters of this group") \
  /* LAG */ \
  X(0x100001, bad_sys_state,  lag_off,               "the ports are not bonded") \
  /* general objects */ \
  X(0x110001, bad_param,      object_type,           "obj_type: this device has no objects of this type (general_obj_types capability)") \
  X(0x110002, bad_resource,   object_missing,        "obj_id: no such object of this type, or it belongs to another uid") \
  X(0x110003, bad_param,      object_range,          "log_obj_range: above log_reserved_qpn_granularity") \
  X(0x110004, exceed_lim,     object_none_left,      "all QP numbers are in use") \
  X(0x110005, bad_param,      object_body,           "reserved_qpn: reserved bits must be zero") \
  X(0x110006, bad_op,         object_fixed,          "obj_type: objects of this type cannot be modified") \
  X(0x110007, exceed_lim,     object_virtio,         "obj_type: there are no virtio queues (max_num_virtio_queues is 0)") \
  X(0x110008, bad_param,      mapping_body,          "av_qp_mapping: reserved bits must be zero") \
  X(0x110009, bad_resource,   mapping_qp,            "av_qp_mapping.qpn: no such queue pair, or it belongs to another uid") \
  X(0x11000a, bad_index,      mapping_sgid_index,    "remote_address_vector.src_addr_index: past the end of the address table") \
  X(0x11000b, no_resources,   mapping_none_left,     "all mappings are in use") \
  /* device memory */ \
  X(0x120001, bad_param,      memic_size,            "memic_size: multiples of 64 bytes, no more than range_size") \
  X(0x120002, bad_param,      memic_range,           "range_start_addr/range_size: outside the window that memic_bar_start_addr and memic_bar_size name") \
  X(0x120003, bad_param,      memic_alignment,       "log_memic_addr_alignment: above log_max_memic_addr_alignment") \
  X(0x120004, no_resources,   memic_full,            "memic_size: not that much free in this range, or above max_memic_size with what is allocated") \
  X(0x120005, bad_resource,   memic_missing,         "memic_start_addr/memic_size: no such allocation") \
  X(0x120006, bad_res_state,  memic_busy,            "memic_start_addr: memory keys still lie in it, or operations have addresses there") \
  X(0x120007, bad_resource,   mkey_memic,            "mkc.start_addr/len: not inside one allocation of device memory") \
  X(0x120008, bad_param,      memic_op_mod,          "op_mod: 0 gives an operation its address, 1 takes it") \
  X(0x120009, bad_param,      memic_operation,       "memic_operation_type: memic_operations does not have it") \
  X(0x12000a, bad_res_state,  memic_operation_state, "memic_operation_type: the operation has its address already, or has none to take") \
  /* rates */ \
  X(0x160001, bad_index,      pp_index,              "rate_limit_index: 1 to packet_pacing_rate_table_size - 1") \
  X(0x160002, bad_param,      pp_rate,               "ctx.rate_limit: outside packet_pacing_min_rate and packet_pacing_max_rate") \
  X(0x160003, bad_param,      sched_hierarchy,       "scheduling_hierarchy: NIC (3); there is no e-switch (esw_scheduling capability)") \
  X(0x160004, bad_param,      sched_type,            "element_type: TSAR (0) or queue group (4) (nic_element_type capability)") \
  X(0x160005, bad_param,      sched_tsar_type,       "element_attributes: a TSAR is DWRR (0) (nic_tsar_type capability)") \
  X(0x160006, bad_resource,   sched_parent,          "parent_element_id: no such TSAR, or it belongs to another uid") \
  X(0x160007, bad_param,      sched_root,            "parent_element_id/bw_share/max_average_bw: a root is a TSAR, and has no share and no limit") \
  X(0x160008, bad_param,      sched_share,           "bw_share: above max_tsar_bw_share") \
  X(0x160009, exceed_lim,     sched_depth,           "parent_element_id: the tree is 16 elements high at most") \
  X(0x16000a, no_resources,   sched_none_left,       "all scheduling elements are in use") \
  X(0x16000b, bad_resource,   sched_missing,         "scheduling_element_id/obj_id: no such scheduling element, or it belongs to another uid") \
  X(0x16000c, bad_res_state,  sched_busy,            "scheduling_element_id/obj_id: elements or queues still hang on it") \
  X(0x16000d, bad_param,      sched_select,          "modify_bitmask/modify_field_select: bw_share (1) and max_average_bw (2) can be modified") \
  /* raw send queues */ \
  X(0x170001, exceed_lim,     tis_none_left,         "all TIS are in use (log_max_tis)") \
  X(0x170002, bad_resource,   tis_missing,           "tisn: no such TIS, or it belongs to another uid") \
  X(0x170003, bad_res_state,  tis_busy,              "tisn: send queues still use it") \
  X(0x170004, bad_resource,   tis_domain,            "tisc.transport_domain: no such transport domain, or it belongs to another uid") \
  X(0x170005, exceed_lim,     sq_none_left,          "all send queues and queue pairs are in use (log_max_sq)") \
  X(0x170006, bad_resource,   sq_missing,            "sqn: no such send queue, or it belongs to another uid") \
  X(0x170007, bad_param,      sq_initial_state,      "sqc.state: a new send queue is in state RST") \
  X(0x170008, bad_param,      sq_offload,            "sqc.hairpin/rlky/cd_master/wq.wq_signature: not supported (hairpin, cd, wq_signature)") \
  X(0x170009, bad_param,      sq_ts_format,          "sqc.ts_format: real-time timestamps are not supported (sq_ts_format capability)") \
  X(0x17000a, bad_param,      sq_wq_type,            "sqc.wq.wq_type/log_wq_stride: a send queue is cyclic (1), of blocks of 64 bytes (6)") \
  X(0x17000b, exceed_lim,     sq_size,               "sqc.wq.log_wq_sz: above log_max_qp_sz") \
  X(0x17000c, bad_resource,   sq_pd,                 "sqc.wq.pd: no such protection domain, or it belongs to another uid") \
  X(0x17000d, bad_resource,   sq_uar,                "sqc.wq.uar_page: no such UAR, or it belongs to another uid") \
  X(0x17000e, bad_resource,   sq_cq,                 "sqc.cqn: no such completion queue, or it belongs to another uid") \
  X(0x17000f, bad_resource,   sq_tis,                "sqc.tis_num_0: no such TIS, or it belongs to another uid") \
  X(0x170010, bad_resource,   sq_rate,               "sqc.packet_pacing_rate_limit_index: no such entry, or it is for another uid") \
  X(0x170011, bad_resource,   sq_leaf,               "sqc.qos_queue_group_id: no such queue group, or it belongs to another uid") \
  X(0x170012, bad_res_state,  sq_current_state,      "sq_state: not the state that the send queue is in") \
  X(0x170013, bad_param,      sq_new_state,          "sqc.state: RST (0), RDY (1) or ERR (3); ERR becomes RDY by way of RST") \
  X(0x170014, bad_param,      sq_bitmask,            "modify_bitmask: packet_pacing_rate_limit_index (1) and qos_queue_group_id (4) can be modified") \
  X(0x170015, bad_param,      tis_lag_port,          "tisc.lag_tx_port_affinity: no such port in the bond") \
  X(0x170016, bad_param,      tis_tls,               "tisc.tls_en: not supported (tls_tx capability)") \
  /* receive queues of frames */ \
  X(0x180001, exceed_lim,     rq_none_left,          "all receive queues and queue pairs are in use (log_max_rq)") \
  X(0x180002, bad_resource,   rq_missing,            "rqn: no such receive queue, or it belongs to another uid") \
  X(0x180003, bad_res_state,  rq_busy,               "rqn: TIRs or tables of receive queues still name it") \
  X(0x180004, bad_param,      rq_initial_state,      "rqc.state: a new receive queue is in state RST") \
  X(0x180005, bad_param,      rq_offload,            "rqc.hairpin/scatter_fcs/delay_drop_en/rlky: not supported") \
  X(0x180006, bad_param,      rq_ts_format,          "rqc.ts_format: real-time timestamps are not supported (rq_ts_format)") \
  X(0x180007, bad_param,      rq_wq_type,            "rqc.wq.wq_type/wq_signature: cyclic (1), without signatures") \
  X(0x180008, exceed_lim,     rq_size,               "rqc.wq.log_wq_sz/log_wq_stride: above log_max_qp_sz, or WQEs beyond max_wqe_sz_rq") \
  X(0x180009, bad_resource,   rq_pd,                 "rqc.wq.pd: no such protection domain, or it belongs to another uid") \
  X(0x18000a, bad_resource,   rq_cq,                 "rqc.cqn: no such completion queue, or it belongs to another uid") \
  X(0x18000b, bad_resource,   rq_rmp,                "rqc.rmpn: no such receive memory pool, or it belongs to another uid") \
  X(0x18000c, bad_resource,   rq_counter,            "rqc.counter_set_id: no such counter set, or it belongs to another uid") \
  X(0x18000d, bad_res_state,  rq_current_state,      "rq_state: not the state that the receive queue is in") \
  X(0x18000e, bad_param,      rq_new_state,          "rqc.state: RST (0), RDY (1) or ERR (3); ERR becomes RDY by way of RST") \
  X(0x18000f, bad_param,      rq_bitmask,            "modify_bitmask: vsd (2) and counter_set_id (8) can be modified") \
  X(0x180010, bad_param,      rq_mem_type,           "rqc.mem_rq_type: a queue of its own (0) or a receive memory pool (1)") \
  X(0x180020, exceed_lim,     rqt_none_left,         "all tables of receive queues are in use (log_max_rqt)") \
  X(0x180021, bad_resource,   rqt_missing,           "rqtn: no such table of receive queues, or it belongs to another uid") \
  X(0x180022, bad_res_state,  rqt_busy,              "rqtn: TIRs still spread over it") \
  X(0x180023, bad_param,      rqt_kind,              "rqtc.list_q_type/rq_vhca_id_format: receive queues of this device (0)") \
  X(0x180024, exceed_lim,     rqt_size,              "rqtc.rqt_max_size: 1 to 1 << log_max_rqt_size") \
  X(0x180025, bad_param,      rqt_actual_size,       "rqtc.rqt_actual_size: a power of two, no more than rqt_max_size") \
  X(0x180026, bad_input_len,  rqt_list_short,        "rqtc.rq_num: fewer than rqt_actual_size") \
  X(0x180027, bad_resource,   rqt_rq,                "rqtc.rq_num: no such receive queue, or it belongs to another uid") \
  X(0x180040, exceed_lim,     tir_none_left,         "all TIRs are in use (log_max_tir)") \
  X(0x180041, bad_resource,   tir_missing,           "tirn: no such TIR, or it belongs to another uid") \
  X(0x180042, bad_res_state,  tir_busy,              "tirn: flow entries still lead to it") \
  X(0x180043, bad_resource,   tir_rq,                "tirc.inline_rqn: no such receive queue, or it belongs to another uid") \
  X(0x180044, bad_resource,   tir_rqt,               "tirc.indirect_table: no such table of receive queues, or it belongs to another uid") \
  X(0x180045, bad_resource,   tir_domain,            "tirc.transport_domain: no such transport domain, or it belongs to another uid") \
  X(0x180046, bad_param,      tir_offload,           "tirc.tls_en/tunneled_offload_en/packet_merge_mask: not supported (tls_rx, tunnel_stateless, lro_cap)") \
  X(0x180047, bad_param,      tir_hash,              "tirc.rx_hash_*: an indirect TIR hashes by XOR8 (1) or Toeplitz (2), over outer addresses and ports") \
  X(0x180048, bad_param,      tir_bitmask,           "bitmask.packet_merge: not supported (lro_cap capability)") \
  X(0x180049, bad_param,      tir_disp_type,         "tirc.disp_type: direct (0) or indirect (1)") \
  /* flow tables */ \
  X(0x190001, bad_param,      flow_vport,            "other_vport/vport_number: this device has one vport") \
  X(0x190002, bad_param,      flow_table_type,       "table_type: NIC receive (0), RDMA receive (7) or RDMA transmit (8)") \
  X(0x190003, bad_param,      flow_table_flags,      "flow_table_context: no reformat, decapsulation, software ownership or termination, nor another domain at a miss") \
  X(0x190004, exceed_lim,     flow_table_size,       "flow_table_context.log_size/level: above log_max_ft_size or max_ft_level") \
  X(0x190005, exceed_lim,     flow_table_none_left,  "all flow tables are in use (log_max_ft_num)") \
  X(0x190006, bad_resource,   flow_table_missing,    "table_id: no such flow table of that type, or it belongs to another uid") \
  X(0x190007, bad_res_state,  flow_table_busy,       "table_id: it has groups, is the root, or packets are sent to it") \
  X(0x190008, bad_resource,   flow_miss_table,       "flow_table_context.table_miss_id: no such flow table of that type, another uid's, or not of a higher level") \
  X(0x190009, bad_param,      flow_modify_select,    "modify_field_select: the miss table (1)") \
  X(0x19000a, bad_param,      flow_root,             "op_mod/underlay_qpn: connects (0) or disconnects (1) the table, without an underlay") \
  X(0x19000b, bad_param,      flow_group_type,       "group_type/match_definer_id/source_eswitch_owner_vhca_id_valid: plain groups (0)") \
  X(0x19000c, bad_param,      flow_group_range,      "start_flow_index/end_flow_index: outside the table, or shared with another group") \
  X(0x19000d, bad_param,      flow_criteria,         "match_criteria_enable: outer headers (1); empty where not enabled") \
  X(0x19000e, exceed_lim,     flow_group_none_left,  "all flow groups are in use") \
  X(0x19000f, bad_resource,   flow_group_missing,    "group_id: no such group in this table") \
  X(0x190010, bad_res_state,  flow_group_busy,       "group_id: it has entries") \
  X(0x190011, bad_param,      flow_op_mod,           "op_mod: enters (0) or changes (1) an entry") \
  X(0x190012, bad_param,      flow_index,            "flow_index: not in the range of its group") \
  X(0x190013, bad_res_state,  flow_entry_exists,     "flow_index: there is an entry already") \
  X(0x190014, bad_resource,   flow_entry_missing,    "flow_index: there is no such entry") \
  X(0x190015, bad_param,      flow_action,           "flow_context.action: drop (2), forward (4) or (RDMA tables) allow (1), with or without count (8)") \
  X(0x190016, bad_param,      flow_unsupported,      "flow_context: no VLAN tags, reformats, header changes, encryption or extended destinations") \
  X(0x190017, bad_param,      flow_lists,            "destination_list_size/flow_counter_list_size: 8 at most if it forwards, one counter if it counts") \
  X(0x190018, bad_param,      flow_destination,      "destination_type: a flow table (1) of the same type and a higher level, or (NIC receive) a TIR (2)") \
  X(0x190019, bad_resource,   flow_destination_missing, "destination_id: no such TIR or flow table, or it belongs to another uid") \
  X(0x19001a, bad_resource,   flow_counter_missing,  "flow_counter_id: no such counter, or it belongs to another uid") \
  X(0x19001b, bad_res_state,  flow_counter_busy,     "flow_counter_id: entries still count in it") \
  X(0x19001c, exceed_lim,     flow_counter_none_left, "all flow counters are in use (max_flow_counter)") \
  X(0x19001d, bad_param,      flow_counter_bulk,     "flow_counter_bulk/num_of_counters: beyond the flow_counter_bulk_alloc capability, or the bulk") \
  X(0x19001e, no_resources,   flow_entry_none_left,  "all flow entries are in use") \
  X(0x19001f, bad_param,      flow_modify_mask,      "modify_enable_mask: action (1), tag (2), destinations (4), counters (8)")
// clang-format on

namespace verbena::device::command {

enum class Syndrome : std::uint32_t {
#define X(syndrome, status, name, reason) name = syndrome,
  VERBENA_REFUSALS(X)
#undef X
};

// The status that goes with a syndrome.
constexpr prm::Status status_of(Syndrome syndrome) {
  switch (syndrome) {
#define X(number, status, name, reason) \
  case Syndrome::name:                  \
    return prm::Status::status;
    VERBENA_REFUSALS(X)
#undef X
  }
  return prm::Status::internal_err;
}

// The syndrome of a field that breaks its own rule: bit 31, opcode, byte offset of the field's dword.
constexpr std::uint32_t rule_syndrome(std::uint16_t opcode, unsigned offset) {
  return 0x80000000u | (std::uint32_t{opcode} & 0x7fff) << 16 | (offset & 0xffff);
}

}  // namespace verbena::device::command
