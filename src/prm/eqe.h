// Event queue entries: types and the data of each.
// Threads: types only.
#pragma once

#include "command.h"

namespace verbena::prm {

enum class EventType : std::uint8_t {
  comp = 0x00,
  path_mig = 0x01,
  comm_est = 0x02,
  sq_drained = 0x03,
  cq_error = 0x04,
  wq_catas_error = 0x05,
  path_mig_failed = 0x07,
  internal_error = 0x08,
  port_change = 0x09,
  cmd = 0x0a,
  page_request = 0x0b,
  page_fault = 0x0c,
  nic_vport_change = 0x0d,
  esw_functions_changed = 0x0e,
  vhca_state_change = 0x0f,
  wq_inval_req_error = 0x10,
  wq_access_error = 0x11,
  srq_catas_error = 0x12,
  srq_last_wqe = 0x13,
  srq_rq_limit = 0x14,
  gpio_event = 0x15,
  port_module_event = 0x16,
  temp_warn_event = 0x17,
  xrq_error = 0x18,
  remote_config = 0x19,
  db_bf_congestion = 0x1a,
  stall_event = 0x1b,
  dct_drained = 0x1c,
  dct_key_violation = 0x1d,
  general_event = 0x22,
  monitor_counter = 0x24,
  pps_event = 0x25,
  device_tracer = 0x26,
  object_change = 0x27,
};

// event_sub_type of port_change.
enum class PortChange : std::uint8_t {
  down = 1,
  active = 4,
  initialized = 5,
  lid = 6,
  pkey = 7,
  guid = 8,
  client_reregister = 9,
};

// `type` of QpEvents.
enum class QpEventObject : std::uint8_t { qp = 0x0, rq = 0x1, sq = 0x2, dct = 0x6 };

// `syndrome` of CqError.
enum class CqErrorSyndrome : std::uint8_t { overrun = 0x1, access_violation = 0x2 };

// comp: the CQ that has completions.
struct CompEvent : Layout<0x1c> {
  using cq_number = Field<"cq_number", At{0x18, 23, 0}>;
  using fields = Fields<cq_number>;
};

// dct_drained, dct_key_violation.
struct DctEvents : Layout<0x1c> {
  using dct_number = Field<"dct_number", At{0x18, 23, 0}>;
  using fields = Fields<dct_number>;
};

// QP, SRQ, RQ, SQ events; `type` says which (QpEventObject).
struct QpEvents : Layout<0x1c> {
  using type = Field<"type", At{0x14, 31, 24}, QpEventObject>;
  using qpn_rqn_sqn = Field<"qpn_rqn_sqn", At{0x18, 23, 0}>;
  using fields = Fields<type, qpn_rqn_sqn>;
};

// page_fault met while a WQE was executed.
struct WqeAssociatedPageFaultEvent : Layout<0x1c> {
  using bytes_committed = Field<"bytes_committed", At{0x00, 31, 0}>;
  using wqe_index = Field<"wqe_index", At{0x04, 15, 0}>;
  using len = Field<"len", At{0x08, 15, 0}>;
  using rdma = Field<"rdma", At{0x18, 26, 26}>;
  using write_read = Field<"write_read", At{0x18, 25, 25}>;
  using requestor = Field<"requestor", At{0x18, 24, 24}>;
  using qpn = Field<"qpn", At{0x18, 23, 0}>;
  using fields = Fields<bytes_committed, wqe_index, len, rdma, write_read, requestor, qpn>;
};

// page_fault met by a remote access.
struct RdmaPageFaultEvent : Layout<0x1c> {
  using bytes_committed = Field<"bytes_committed", At{0x00, 31, 0}>;
  using r_key = Field<"r_key", At{0x04, 31, 0}>;
  using packet_len = Field<"packet_len", At{0x08, 15, 0}>;
  using rdma_op_len = Field<"rdma_op_len", At{0x0c, 31, 0}>;
  using rdma_va = Field64<"rdma_va", 0x10>;
  using rdma = Field<"rdma", At{0x18, 26, 26}>;
  using write = Field<"write", At{0x18, 25, 25}>;
  using requestor = Field<"requestor", At{0x18, 24, 24}>;
  using qp_number = Field<"qp_number", At{0x18, 23, 0}>;
  using fields = Fields<bytes_committed, r_key, packet_len, rdma_op_len, rdma_va, rdma, write, requestor, qp_number>;
};

// cq_error.
struct CqError : Layout<0x1c> {
  using cqn = Field<"cqn", At{0x00, 23, 0}>;
  using syndrome = Field<"syndrome", At{0x08, 7, 0}, CqErrorSyndrome>;
  using fields = Fields<cqn, syndrome>;
};

// port_change; the subtype is a PortChange.
struct PortStateChangeEvent : Layout<0x1c> {
  using port_num = Field<"port_num", At{0x08, 31, 28}>;
  using fields = Fields<port_num>;
};

// gpio_event.
struct GpioEvent : Layout<0x1c> {
  using gpio_event_hi = Field<"gpio_event_hi", At{0x0c, 31, 0}>;
  using gpio_event_lo = Field<"gpio_event_lo", At{0x10, 31, 0}>;
  using fields = Fields<gpio_event_hi, gpio_event_lo>;
};

// stall_event.
struct StallVlEvent : Layout<0x18> {
  using port_num = Field<"port_num", At{0x00, 7, 7}>;
  using vl = Field<"vl", At{0x00, 3, 0}>;
  using fields = Fields<port_num, vl>;
};

// cmd: a bit for each command slot that has completed.
struct CmdInterCompEvent : Layout<0x1c> {
  using command_completion_vector = Field<"command_completion_vector", At{0x00, 31, 0}>;
  using fields = Fields<command_completion_vector>;
};

// page_request: pages the firmware wants (or gives back, negative).
struct PagesReqEvent : Layout<0x1c> {
  using function_id = Field<"function_id", At{0x00, 15, 0}>;
  using num_pages = Field<"num_pages", At{0x04, 31, 0}>;
  using fields = Fields<function_id, num_pages>;
};

// nic_vport_change.
struct NicVportChangeEvent : Layout<0x1c> {
  using vport_num = Field<"vport_num", At{0x00, 15, 0}>;
  using fields = Fields<vport_num>;
};

// object_change: a general object.
struct ObjChangeEvent : Layout<0x1c> {
  using obj_type = Field<"obj_type", At{0x00, 15, 0}>;
  using obj_id = Field<"obj_id", At{0x04, 31, 0}>;
  using fields = Fields<obj_type, obj_id>;
};

// xrq_error.
struct XrqErrorEvent : Layout<0x1c> {
  using type = Field<"type", At{0x14, 31, 24}>;
  using xrqn = Field<"xrqn", At{0x14, 23, 0}>;
  using fields = Fields<type, xrqn>;
};

// Data of an event, by its type.
struct EventAuto : Layout<0x1c> {
  using comp_event = Sub<"comp_event", 0x0, CompEvent>;
  using dct_events = Sub<"dct_events", 0x0, DctEvents>;
  using qp_events = Sub<"qp_events", 0x0, QpEvents>;
  using wqe_associated_page_fault_event = Sub<"wqe_associated_page_fault_event", 0x0, WqeAssociatedPageFaultEvent>;
  using rdma_page_fault_event = Sub<"rdma_page_fault_event", 0x0, RdmaPageFaultEvent>;
  using cq_error = Sub<"cq_error", 0x0, CqError>;
  using port_state_change_event = Sub<"port_state_change_event", 0x0, PortStateChangeEvent>;
  using gpio_event = Sub<"gpio_event", 0x0, GpioEvent>;
  using stall_vl_event = Sub<"stall_vl_event", 0x0, StallVlEvent>;
  using cmd_inter_comp_event = Sub<"cmd_inter_comp_event", 0x0, CmdInterCompEvent>;
  using pages_req_event = Sub<"pages_req_event", 0x0, PagesReqEvent>;
  using nic_vport_change_event = Sub<"nic_vport_change_event", 0x0, NicVportChangeEvent>;
  using obj_change_event = Sub<"obj_change_event", 0x0, ObjChangeEvent>;
  using xrq_error_event = Sub<"xrq_error_event", 0x0, XrqErrorEvent>;
  using fields = Fields<comp_event, dct_events, qp_events, wqe_associated_page_fault_event, rdma_page_fault_event,
                        cq_error, port_state_change_event, gpio_event, stall_vl_event, cmd_inter_comp_event,
                        pages_req_event, nic_vport_change_event, obj_change_event, xrq_error_event>;
};

// An event queue entry. `owner` flips each time round the queue.
struct Eqe : Layout<0x40> {
  using event_type = Field<"event_type", At{0x00, 23, 16}, EventType>;
  using event_sub_type = Field<"event_sub_type", At{0x00, 7, 0}>;
  using event_data = Sub<"event_data", 0x20, EventAuto>;
  using signature = Field<"signature", At{0x3c, 15, 8}>;
  using owner = Field<"owner", At{0x3c, 0, 0}>;
  using fields = Fields<event_type, event_sub_type, event_data, signature, owner>;
};

}  // namespace verbena::prm
