// Small objects: protection domains, doorbell pages, XRC and transport domains, counters, user contexts and memory,
// multicast, link aggregation, MADs, on-chip memory.
// Threads: types only.
#pragma once

#include "command.h"
#include "mkey.h"

namespace verbena::prm {

// ALLOC_PD: request.
struct AllocPdIn : CommandIn {};

// ALLOC_PD: reply.
struct AllocPdOut : Layout<0x10> {
  using status = Field<"status", At{0x00, 31, 24}, Status>;
  using syndrome = Field<"syndrome", At{0x04, 31, 0}>;
  using pd = Field<"pd", At{0x08, 23, 0}>;
  using fields = Fields<status, syndrome, pd>;
};

// DEALLOC_PD: request.
struct DeallocPdIn : Layout<0x10> {
  using opcode = Field<"opcode", At{0x00, 31, 16}, Opcode>;
  using uid = Field<"uid", At{0x00, 15, 0}>;
  using op_mod = Field<"op_mod", At{0x04, 15, 0}>;
  using pd = Field<"pd", At{0x08, 23, 0}>;
  using fields = Fields<opcode, uid, op_mod, pd>;
};

// DEALLOC_PD: reply.
struct DeallocPdOut : CommandOut {};

// ALLOC_UAR: request.
struct AllocUarIn : CommandIn {};

// ALLOC_UAR: reply.
struct AllocUarOut : Layout<0x10> {
  using status = Field<"status", At{0x00, 31, 24}, Status>;
  using syndrome = Field<"syndrome", At{0x04, 31, 0}>;
  using uar = Field<"uar", At{0x08, 23, 0}>;
  using fields = Fields<status, syndrome, uar>;
};

// DEALLOC_UAR: request.
struct DeallocUarIn : Layout<0x10> {
  using opcode = Field<"opcode", At{0x00, 31, 16}, Opcode>;
  using uid = Field<"uid", At{0x00, 15, 0}>;
  using op_mod = Field<"op_mod", At{0x04, 15, 0}>;
  using uar = Field<"uar", At{0x08, 23, 0}>;
  using fields = Fields<opcode, uid, op_mod, uar>;
};

// DEALLOC_UAR: reply.
struct DeallocUarOut : CommandOut {};

// ALLOC_XRCD: request.
struct AllocXrcdIn : CommandIn {};

// ALLOC_XRCD: reply.
struct AllocXrcdOut : Layout<0x10> {
  using status = Field<"status", At{0x00, 31, 24}, Status>;
  using syndrome = Field<"syndrome", At{0x04, 31, 0}>;
  using xrcd = Field<"xrcd", At{0x08, 23, 0}>;
  using fields = Fields<status, syndrome, xrcd>;
};

// DEALLOC_XRCD: request.
struct DeallocXrcdIn : Layout<0x10> {
  using opcode = Field<"opcode", At{0x00, 31, 16}, Opcode>;
  using uid = Field<"uid", At{0x00, 15, 0}>;
  using op_mod = Field<"op_mod", At{0x04, 15, 0}>;
  using xrcd = Field<"xrcd", At{0x08, 23, 0}>;
  using fields = Fields<opcode, uid, op_mod, xrcd>;
};

// DEALLOC_XRCD: reply.
struct DeallocXrcdOut : CommandOut {};

// ALLOC_TRANSPORT_DOMAIN: request.
struct AllocTransportDomainIn : CommandIn {};

// ALLOC_TRANSPORT_DOMAIN: reply.
struct AllocTransportDomainOut : Layout<0x10> {
  using status = Field<"status", At{0x00, 31, 24}, Status>;
  using syndrome = Field<"syndrome", At{0x04, 31, 0}>;
  using transport_domain = Field<"transport_domain", At{0x08, 23, 0}>;
  using fields = Fields<status, syndrome, transport_domain>;
};

// DEALLOC_TRANSPORT_DOMAIN: request.
struct DeallocTransportDomainIn : Layout<0x10> {
  using opcode = Field<"opcode", At{0x00, 31, 16}, Opcode>;
  using uid = Field<"uid", At{0x00, 15, 0}>;
  using op_mod = Field<"op_mod", At{0x04, 15, 0}>;
  using transport_domain = Field<"transport_domain", At{0x08, 23, 0}>;
  using fields = Fields<opcode, uid, op_mod, transport_domain>;
};

// DEALLOC_TRANSPORT_DOMAIN: reply.
struct DeallocTransportDomainOut : CommandOut {};

// ALLOC_Q_COUNTER: request.
struct AllocQCounterIn : CommandIn {};

// ALLOC_Q_COUNTER: reply.
struct AllocQCounterOut : Layout<0x10> {
  using status = Field<"status", At{0x00, 31, 24}, Status>;
  using syndrome = Field<"syndrome", At{0x04, 31, 0}>;
  using counter_set_id = Field<"counter_set_id", At{0x08, 7, 0}>;
  using fields = Fields<status, syndrome, counter_set_id>;
};

// DEALLOC_Q_COUNTER: request.
struct DeallocQCounterIn : Layout<0x10> {
  using opcode = Field<"opcode", At{0x00, 31, 16}, Opcode>;
  using op_mod = Field<"op_mod", At{0x04, 15, 0}>;
  using counter_set_id = Field<"counter_set_id", At{0x08, 7, 0}>;
  using fields = Fields<opcode, op_mod, counter_set_id>;
};

// DEALLOC_Q_COUNTER: reply.
struct DeallocQCounterOut : CommandOut {};

// QUERY_Q_COUNTER: request.
struct QueryQCounterIn : Layout<0x20> {
  using opcode = Field<"opcode", At{0x00, 31, 16}, Opcode>;
  using op_mod = Field<"op_mod", At{0x04, 15, 0}>;
  using clear = Field<"clear", At{0x18, 31, 31}>;
  using counter_set_id = Field<"counter_set_id", At{0x1c, 7, 0}>;
  using fields = Fields<opcode, op_mod, clear, counter_set_id>;
};

// QUERY_Q_COUNTER: reply.
struct QueryQCounterOut : Layout<0x100> {
  using status = Field<"status", At{0x00, 31, 24}, Status>;
  using syndrome = Field<"syndrome", At{0x04, 31, 0}>;
  using rx_write_requests = Field<"rx_write_requests", At{0x10, 31, 0}>;
  using rx_read_requests = Field<"rx_read_requests", At{0x18, 31, 0}>;
  using rx_atomic_requests = Field<"rx_atomic_requests", At{0x20, 31, 0}>;
  using rx_dct_connect = Field<"rx_dct_connect", At{0x28, 31, 0}>;
  using out_of_buffer = Field<"out_of_buffer", At{0x30, 31, 0}>;
  using out_of_sequence = Field<"out_of_sequence", At{0x38, 31, 0}>;
  using duplicate_request = Field<"duplicate_request", At{0x40, 31, 0}>;
  using rnr_nak_retry_err = Field<"rnr_nak_retry_err", At{0x48, 31, 0}>;
  using packet_seq_err = Field<"packet_seq_err", At{0x50, 31, 0}>;
  using implied_nak_seq_err = Field<"implied_nak_seq_err", At{0x58, 31, 0}>;
  using local_ack_timeout_err = Field<"local_ack_timeout_err", At{0x60, 31, 0}>;
  using resp_local_length_error = Field<"resp_local_length_error", At{0x78, 31, 0}>;
  using req_local_length_error = Field<"req_local_length_error", At{0x7c, 31, 0}>;
  using resp_local_qp_error = Field<"resp_local_qp_error", At{0x80, 31, 0}>;
  using local_operation_error = Field<"local_operation_error", At{0x84, 31, 0}>;
  using resp_local_protection = Field<"resp_local_protection", At{0x88, 31, 0}>;
  using req_local_protection = Field<"req_local_protection", At{0x8c, 31, 0}>;
  using resp_cqe_error = Field<"resp_cqe_error", At{0x90, 31, 0}>;
  using req_cqe_error = Field<"req_cqe_error", At{0x94, 31, 0}>;
  using req_mw_binding = Field<"req_mw_binding", At{0x98, 31, 0}>;
  using req_bad_response = Field<"req_bad_response", At{0x9c, 31, 0}>;
  using req_remote_invalid_request = Field<"req_remote_invalid_request", At{0xa0, 31, 0}>;
  using resp_remote_invalid_request = Field<"resp_remote_invalid_request", At{0xa4, 31, 0}>;
  using req_remote_access_errors = Field<"req_remote_access_errors", At{0xa8, 31, 0}>;
  using resp_remote_access_errors = Field<"resp_remote_access_errors", At{0xac, 31, 0}>;
  using req_remote_operation_errors = Field<"req_remote_operation_errors", At{0xb0, 31, 0}>;
  using req_transport_retries_exceeded = Field<"req_transport_retries_exceeded", At{0xb4, 31, 0}>;
  using cq_overflow = Field<"cq_overflow", At{0xb8, 31, 0}>;
  using resp_cqe_flush_error = Field<"resp_cqe_flush_error", At{0xbc, 31, 0}>;
  using req_cqe_flush_error = Field<"req_cqe_flush_error", At{0xc0, 31, 0}>;
  using roce_adp_retrans = Field<"roce_adp_retrans", At{0xc8, 31, 0}>;
  using roce_adp_retrans_to = Field<"roce_adp_retrans_to", At{0xcc, 31, 0}>;
  using roce_slow_restart = Field<"roce_slow_restart", At{0xd0, 31, 0}>;
  using roce_slow_restart_cnps = Field<"roce_slow_restart_cnps", At{0xd4, 31, 0}>;
  using roce_slow_restart_trans = Field<"roce_slow_restart_trans", At{0xd8, 31, 0}>;
  using fields =
      Fields<status, syndrome, rx_write_requests, rx_read_requests, rx_atomic_requests, rx_dct_connect, out_of_buffer,
             out_of_sequence, duplicate_request, rnr_nak_retry_err, packet_seq_err, implied_nak_seq_err,
             local_ack_timeout_err, resp_local_length_error, req_local_length_error, resp_local_qp_error,
             local_operation_error, resp_local_protection, req_local_protection, resp_cqe_error, req_cqe_error,
             req_mw_binding, req_bad_response, req_remote_invalid_request, resp_remote_invalid_request,
             req_remote_access_errors, resp_remote_access_errors, req_remote_operation_errors,
             req_transport_retries_exceeded, cq_overflow, resp_cqe_flush_error, req_cqe_flush_error, roce_adp_retrans,
             roce_adp_retrans_to, roce_slow_restart, roce_slow_restart_cnps, roce_slow_restart_trans>;
};

inline constexpr std::uint16_t kSharedResourceUid = 0xffff;  // of what every user context may use
// user_index of what completions are to name by its own number, or not at all.
inline constexpr std::uint32_t kNoUserIndex = 0xffffff;

// Capabilities of a user context.
struct Uctx : Layout<0x30> {
  using cap = Field<"cap", At{0x00, 31, 0}>;
  using fields = Fields<cap>;
};

// CREATE_UCTX: request.
struct CreateUctxIn : Layout<0x40> {
  using opcode = Field<"opcode", At{0x00, 31, 16}, Opcode>;
  using op_mod = Field<"op_mod", At{0x04, 15, 0}>;
  using uctx = Sub<"uctx", 0x10, Uctx>;
  using fields = Fields<opcode, op_mod, uctx>;
};

// CREATE_UCTX: reply.
struct CreateUctxOut : Layout<0x10> {
  using status = Field<"status", At{0x00, 31, 24}, Status>;
  using syndrome = Field<"syndrome", At{0x04, 31, 0}>;
  using uid = Field<"uid", At{0x08, 15, 0}>;
  using fields = Fields<status, syndrome, uid>;
};

// DESTROY_UCTX: request.
struct DestroyUctxIn : Layout<0x10> {
  using opcode = Field<"opcode", At{0x00, 31, 16}, Opcode>;
  using op_mod = Field<"op_mod", At{0x04, 15, 0}>;
  using uid = Field<"uid", At{0x08, 15, 0}>;
  using fields = Fields<opcode, op_mod, uid>;
};

// DESTROY_UCTX: reply.
struct DestroyUctxOut : CommandOut {};

// User memory: its pages as translation entries.
struct Umem : Layout<0x20> {
  using ats = Field<"ats", At{0x10, 31, 31}>;
  using log_page_size = Field<"log_page_size", At{0x10, 4, 0}>;
  using page_offset = Field<"page_offset", At{0x14, 31, 0}>;
  using num_of_mtt = Field64<"num_of_mtt", 0x18>;
  using mtt = Array<"mtt", 0x20, Mtt>;
  using fields = Fields<ats, log_page_size, page_offset, num_of_mtt, mtt>;
};

// CREATE_UMEM: request.
struct CreateUmemIn : Layout<0x30> {
  using opcode = Field<"opcode", At{0x00, 31, 16}, Opcode>;
  using uid = Field<"uid", At{0x00, 15, 0}>;
  using op_mod = Field<"op_mod", At{0x04, 15, 0}>;
  using umem = Sub<"umem", 0x10, Umem>;
  using fields = Fields<opcode, uid, op_mod, umem>;
};

// CREATE_UMEM: reply.
struct CreateUmemOut : Layout<0x10> {
  using status = Field<"status", At{0x00, 31, 24}, Status>;
  using syndrome = Field<"syndrome", At{0x04, 31, 0}>;
  using umem_id = Field<"umem_id", At{0x08, 23, 0}>;
  using fields = Fields<status, syndrome, umem_id>;
};

// DESTROY_UMEM: request.
struct DestroyUmemIn : Layout<0x10> {
  using opcode = Field<"opcode", At{0x00, 31, 16}, Opcode>;
  using uid = Field<"uid", At{0x00, 15, 0}>;
  using op_mod = Field<"op_mod", At{0x04, 15, 0}>;
  using umem_id = Field<"umem_id", At{0x08, 23, 0}>;
  using fields = Fields<opcode, uid, op_mod, umem_id>;
};

// DESTROY_UMEM: reply.
struct DestroyUmemOut : CommandOut {};

// ATTACH_TO_MCG: request.
struct AttachToMcgIn : Layout<0x20> {
  using opcode = Field<"opcode", At{0x00, 31, 16}, Opcode>;
  using uid = Field<"uid", At{0x00, 15, 0}>;
  using op_mod = Field<"op_mod", At{0x04, 15, 0}>;
  using qpn = Field<"qpn", At{0x08, 23, 0}>;
  using multicast_gid = Bytes<"multicast_gid", 0x10, 16>;
  using fields = Fields<opcode, uid, op_mod, qpn, multicast_gid>;
};

// ATTACH_TO_MCG: reply.
struct AttachToMcgOut : CommandOut {};

// DETACH_FROM_MCG: request.
struct DetachFromMcgIn : Layout<0x20> {
  using opcode = Field<"opcode", At{0x00, 31, 16}, Opcode>;
  using uid = Field<"uid", At{0x00, 15, 0}>;
  using op_mod = Field<"op_mod", At{0x04, 15, 0}>;
  using qpn = Field<"qpn", At{0x08, 23, 0}>;
  using multicast_gid = Bytes<"multicast_gid", 0x10, 16>;
  using fields = Fields<opcode, uid, op_mod, qpn, multicast_gid>;
};

// DETACH_FROM_MCG: reply.
struct DetachFromMcgOut : CommandOut {};

// LAG context.
struct Lagc : Layout<0x8> {
  using fdb_selection_mode = Field<"fdb_selection_mode", At{0x00, 31, 31}>;
  using port_select_mode = Field<"port_select_mode", At{0x00, 10, 8}>;
  using lag_state = Field<"lag_state", At{0x00, 2, 0}>;
  using active_port = Field<"active_port", At{0x04, 19, 16}>;
  using tx_remap_affinity_2 = Field<"tx_remap_affinity_2", At{0x04, 11, 8}>;
  using tx_remap_affinity_1 = Field<"tx_remap_affinity_1", At{0x04, 3, 0}>;
  using fields =
      Fields<fdb_selection_mode, port_select_mode, lag_state, active_port, tx_remap_affinity_2, tx_remap_affinity_1>;
};

// CREATE_LAG: request.
struct CreateLagIn : Layout<0x10> {
  using opcode = Field<"opcode", At{0x00, 31, 16}, Opcode>;
  using op_mod = Field<"op_mod", At{0x04, 15, 0}>;
  using ctx = Sub<"ctx", 0x8, Lagc>;
  using fields = Fields<opcode, op_mod, ctx>;
};

// CREATE_LAG: reply.
struct CreateLagOut : CommandOut {};

// MODIFY_LAG: request.
struct ModifyLagIn : Layout<0x18> {
  using opcode = Field<"opcode", At{0x00, 31, 16}, Opcode>;
  using op_mod = Field<"op_mod", At{0x04, 15, 0}>;
  using field_select = Field<"field_select", At{0x0c, 31, 0}>;
  using ctx = Sub<"ctx", 0x10, Lagc>;
  using fields = Fields<opcode, op_mod, field_select, ctx>;
};

// MODIFY_LAG: reply.
struct ModifyLagOut : CommandOut {};

// QUERY_LAG: request.
struct QueryLagIn : Layout<0x10> {
  using opcode = Field<"opcode", At{0x00, 31, 16}, Opcode>;
  using op_mod = Field<"op_mod", At{0x04, 15, 0}>;
  using fields = Fields<opcode, op_mod>;
};

// QUERY_LAG: reply.
struct QueryLagOut : Layout<0x10> {
  using status = Field<"status", At{0x00, 31, 24}, Status>;
  using syndrome = Field<"syndrome", At{0x04, 31, 0}>;
  using ctx = Sub<"ctx", 0x8, Lagc>;
  using fields = Fields<status, syndrome, ctx>;
};

// DESTROY_LAG: request.
struct DestroyLagIn : Layout<0x10> {
  using opcode = Field<"opcode", At{0x00, 31, 16}, Opcode>;
  using op_mod = Field<"op_mod", At{0x04, 15, 0}>;
  using fields = Fields<opcode, op_mod>;
};

// DESTROY_LAG: reply.
struct DestroyLagOut : CommandOut {};

// CREATE_VPORT_LAG: request.
struct CreateVportLagIn : Layout<0x10> {
  using opcode = Field<"opcode", At{0x00, 31, 16}, Opcode>;
  using op_mod = Field<"op_mod", At{0x04, 15, 0}>;
  using fields = Fields<opcode, op_mod>;
};

// CREATE_VPORT_LAG: reply.
struct CreateVportLagOut : CommandOut {};

// DESTROY_VPORT_LAG: request.
struct DestroyVportLagIn : Layout<0x10> {
  using opcode = Field<"opcode", At{0x00, 31, 16}, Opcode>;
  using op_mod = Field<"op_mod", At{0x04, 15, 0}>;
  using fields = Fields<opcode, op_mod>;
};

// DESTROY_VPORT_LAG: reply.
struct DestroyVportLagOut : CommandOut {};

// MAD_IFC: request.
struct MadIfcIn : Layout<0x110> {
  using opcode = Field<"opcode", At{0x00, 31, 16}, Opcode>;
  using op_mod = Field<"op_mod", At{0x04, 15, 0}>;
  using remote_lid = Field<"remote_lid", At{0x08, 31, 16}>;
  using port = Field<"port", At{0x08, 7, 0}>;
  using mad = Bytes<"mad", 0x10, 256>;
  using fields = Fields<opcode, op_mod, remote_lid, port, mad>;
};

// MAD_IFC: reply.
struct MadIfcOut : Layout<0x110> {
  using status = Field<"status", At{0x00, 31, 24}, Status>;
  using syndrome = Field<"syndrome", At{0x04, 31, 0}>;
  using response_mad_packet = Bytes<"response_mad_packet", 0x10, 256>;
  using fields = Fields<status, syndrome, response_mad_packet>;
};

// NOP: request.
struct NopIn : Layout<0x10> {
  using opcode = Field<"opcode", At{0x00, 31, 16}, Opcode>;
  using op_mod = Field<"op_mod", At{0x04, 15, 0}>;
  using fields = Fields<opcode, op_mod>;
};

// NOP: reply.
struct NopOut : CommandOut {};

// ALLOC_MEMIC: request.
struct AllocMemicIn : Layout<0x20> {
  using opcode = Field<"opcode", At{0x00, 31, 16}, Opcode>;
  using op_mod = Field<"op_mod", At{0x04, 15, 0}>;
  using log_memic_addr_alignment = Field<"log_memic_addr_alignment", At{0x0c, 7, 0}>;
  using range_start_addr = Field64<"range_start_addr", 0x10>;
  using range_size = Field<"range_size", At{0x18, 31, 0}>;
  using memic_size = Field<"memic_size", At{0x1c, 31, 0}>;
  using fields = Fields<opcode, op_mod, log_memic_addr_alignment, range_start_addr, range_size, memic_size>;
};

// ALLOC_MEMIC: reply.
struct AllocMemicOut : Layout<0x10> {
  using status = Field<"status", At{0x00, 31, 24}, Status>;
  using syndrome = Field<"syndrome", At{0x04, 31, 0}>;
  using memic_start_addr = Field64<"memic_start_addr", 0x8>;
  using fields = Fields<status, syndrome, memic_start_addr>;
};

// DEALLOC_MEMIC: request.
struct DeallocMemicIn : Layout<0x20> {
  using opcode = Field<"opcode", At{0x00, 31, 16}, Opcode>;
  using op_mod = Field<"op_mod", At{0x04, 15, 0}>;
  using memic_start_addr = Field64<"memic_start_addr", 0x10>;
  using memic_size = Field<"memic_size", At{0x18, 31, 0}>;
  using fields = Fields<opcode, op_mod, memic_start_addr, memic_size>;
};

// DEALLOC_MEMIC: reply.
struct DeallocMemicOut : CommandOut {};

// MODIFY_MEMIC: request.
struct ModifyMemicIn : Layout<0x40> {
  using opcode = Field<"opcode", At{0x00, 31, 16}, Opcode>;
  using uid = Field<"uid", At{0x00, 15, 0}>;
  using op_mod = Field<"op_mod", At{0x04, 15, 0}>;
  using memic_operation_type = Field<"memic_operation_type", At{0x0c, 7, 0}>;
  using memic_start_addr = Field64<"memic_start_addr", 0x10>;
  using fields = Fields<opcode, uid, op_mod, memic_operation_type, memic_start_addr>;
};

// MODIFY_MEMIC: reply.
struct ModifyMemicOut : Layout<0x40> {
  using status = Field<"status", At{0x00, 31, 24}, Status>;
  using syndrome = Field<"syndrome", At{0x04, 31, 0}>;
  using memic_operation_addr = Field64<"memic_operation_addr", 0x10>;
  using fields = Fields<status, syndrome, memic_operation_addr>;
};

// One rate of the rate limit table.
struct SetPpRateLimitContext : Layout<0x30> {
  using rate_limit = Field<"rate_limit", At{0x00, 31, 0}>;
  using burst_upper_bound = Field<"burst_upper_bound", At{0x04, 31, 0}>;
  using typical_packet_size = Field<"typical_packet_size", At{0x08, 15, 0}>;
  using fields = Fields<rate_limit, burst_upper_bound, typical_packet_size>;
};

// SET_PP_RATE_LIMIT: request.
struct SetPpRateLimitIn : Layout<0x40> {
  using opcode = Field<"opcode", At{0x00, 31, 16}, Opcode>;
  using uid = Field<"uid", At{0x00, 15, 0}>;
  using op_mod = Field<"op_mod", At{0x04, 15, 0}>;
  using rate_limit_index = Field<"rate_limit_index", At{0x08, 15, 0}>;
  using ctx = Sub<"ctx", 0x10, SetPpRateLimitContext>;
  using fields = Fields<opcode, uid, op_mod, rate_limit_index, ctx>;
};

// SET_PP_RATE_LIMIT: reply.
struct SetPpRateLimitOut : CommandOut {};

}  // namespace verbena::prm
