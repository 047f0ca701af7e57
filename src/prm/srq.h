// Shared receive queues: SRQ, XRC SRQ, receive memory pool, XRQ.
// Threads: types only.
#pragma once

#include "command.h"
#include "wq.h"

namespace verbena::prm {

enum class SrqState : std::uint8_t { good = 0x0, error = 0x1 };
enum class RmpState : std::uint8_t { rdy = 0x1, err = 0x3 };
enum class XrqTopology : std::uint8_t { none = 0x0, tag_matching = 0x1 };
enum class XrqOffload : std::uint8_t { none = 0x0, rndv = 0x1, nvme_over_fabrics = 0x2 };
// op_mod of ARM_RQ and ARM_XRC_SRQ.
enum class ArmRqOpMod : std::uint16_t { srq = 0x1, xrq = 0x2 };

// SRQ context (PRM "Shared Receive Queue Context").
struct Srqc : Layout<0x40> {
  using state = Field<"state", At{0x00, 31, 28}, SrqState>;
  using log_srq_size = Field<"log_srq_size", At{0x00, 27, 24}>;
  using wq_signature = Field<"wq_signature", At{0x04, 31, 31}>;
  using cont_srq = Field<"cont_srq", At{0x04, 30, 30}>;
  using rlky = Field<"rlky", At{0x04, 28, 28}>;
  using log_rq_stride = Field<"log_rq_stride", At{0x04, 26, 24}>;
  using xrcd = Field<"xrcd", At{0x04, 23, 0}>;
  using page_offset = Field<"page_offset", At{0x08, 31, 26}>;
  using cqn = Field<"cqn", At{0x08, 23, 0}>;
  using log_page_size = Field<"log_page_size", At{0x10, 29, 24}>;
  using pd = Field<"pd", At{0x18, 23, 0}>;
  using lwm = Field<"lwm", At{0x1c, 31, 16}>;
  using wqe_cnt = Field<"wqe_cnt", At{0x1c, 15, 0}>;
  using dbr_addr = Field64<"dbr_addr", 0x28>;
  using fields = Fields<state, log_srq_size, wq_signature, cont_srq, rlky, log_rq_stride, xrcd, page_offset, cqn,
                        log_page_size, pd, lwm, wqe_cnt, dbr_addr>;
};

// CREATE_SRQ: request.
struct CreateSrqIn : Layout<0x110> {
  using opcode = Field<"opcode", At{0x00, 31, 16}, Opcode>;
  using uid = Field<"uid", At{0x00, 15, 0}>;
  using op_mod = Field<"op_mod", At{0x04, 15, 0}>;
  using srq_context_entry = Sub<"srq_context_entry", 0x10, Srqc>;
  using pas = Array<"pas", 0x110, Pas>;
  using fields = Fields<opcode, uid, op_mod, srq_context_entry, pas>;
};

// CREATE_SRQ: reply.
struct CreateSrqOut : Layout<0x10> {
  using status = Field<"status", At{0x00, 31, 24}, Status>;
  using syndrome = Field<"syndrome", At{0x04, 31, 0}>;
  using srqn = Field<"srqn", At{0x08, 23, 0}>;
  using fields = Fields<status, syndrome, srqn>;
};

// DESTROY_SRQ: request.
struct DestroySrqIn : Layout<0x10> {
  using opcode = Field<"opcode", At{0x00, 31, 16}, Opcode>;
  using uid = Field<"uid", At{0x00, 15, 0}>;
  using op_mod = Field<"op_mod", At{0x04, 15, 0}>;
  using srqn = Field<"srqn", At{0x08, 23, 0}>;
  using fields = Fields<opcode, uid, op_mod, srqn>;
};

// DESTROY_SRQ: reply.
struct DestroySrqOut : CommandOut {};

// QUERY_SRQ: request.
struct QuerySrqIn : Layout<0x10> {
  using opcode = Field<"opcode", At{0x00, 31, 16}, Opcode>;
  using op_mod = Field<"op_mod", At{0x04, 15, 0}>;
  using srqn = Field<"srqn", At{0x08, 23, 0}>;
  using fields = Fields<opcode, op_mod, srqn>;
};

// QUERY_SRQ: reply.
struct QuerySrqOut : Layout<0x110> {
  using status = Field<"status", At{0x00, 31, 24}, Status>;
  using syndrome = Field<"syndrome", At{0x04, 31, 0}>;
  using srq_context_entry = Sub<"srq_context_entry", 0x10, Srqc>;
  using pas = Array<"pas", 0x110, Pas>;
  using fields = Fields<status, syndrome, srq_context_entry, pas>;
};

// ARM_RQ: request.
struct ArmRqIn : Layout<0x10> {
  using opcode = Field<"opcode", At{0x00, 31, 16}, Opcode>;
  using uid = Field<"uid", At{0x00, 15, 0}>;
  using op_mod = Field<"op_mod", At{0x04, 15, 0}>;
  using srq_number = Field<"srq_number", At{0x08, 23, 0}>;
  using lwm = Field<"lwm", At{0x0c, 15, 0}>;
  using fields = Fields<opcode, uid, op_mod, srq_number, lwm>;
};

// ARM_RQ: reply.
struct ArmRqOut : CommandOut {};

// XRC SRQ context.
struct XrcSrqc : Layout<0x40> {
  using state = Field<"state", At{0x00, 31, 28}, SrqState>;
  using log_xrc_srq_size = Field<"log_xrc_srq_size", At{0x00, 27, 24}>;
  using wq_signature = Field<"wq_signature", At{0x04, 31, 31}>;
  using cont_srq = Field<"cont_srq", At{0x04, 30, 30}>;
  using rlky = Field<"rlky", At{0x04, 28, 28}>;
  using basic_cyclic_rcv_wqe = Field<"basic_cyclic_rcv_wqe", At{0x04, 27, 27}>;
  using log_rq_stride = Field<"log_rq_stride", At{0x04, 26, 24}>;
  using xrcd = Field<"xrcd", At{0x04, 23, 0}>;
  using page_offset = Field<"page_offset", At{0x08, 31, 26}>;
  using dbr_umem_valid = Field<"dbr_umem_valid", At{0x08, 24, 24}>;
  using cqn = Field<"cqn", At{0x08, 23, 0}>;
  using user_index_equal_xrc_srqn = Field<"user_index_equal_xrc_srqn", At{0x10, 31, 31}>;
  using log_page_size = Field<"log_page_size", At{0x10, 29, 24}>;
  using user_index = Field<"user_index", At{0x10, 23, 0}>;
  using pd = Field<"pd", At{0x18, 23, 0}>;
  using lwm = Field<"lwm", At{0x1c, 31, 16}>;
  using wqe_cnt = Field<"wqe_cnt", At{0x1c, 15, 0}>;
  using dbr_umem_id = Field<"dbr_umem_id", At{0x20, 31, 0}>;
  using dbr_addr = Field64<"dbr_addr", 0x28>;
  using fields = Fields<state, log_xrc_srq_size, wq_signature, cont_srq, rlky, basic_cyclic_rcv_wqe, log_rq_stride,
                        xrcd, page_offset, dbr_umem_valid, cqn, user_index_equal_xrc_srqn, log_page_size, user_index,
                        pd, lwm, wqe_cnt, dbr_umem_id, dbr_addr>;
};

// CREATE_XRC_SRQ: request.
struct CreateXrcSrqIn : Layout<0x110> {
  using opcode = Field<"opcode", At{0x00, 31, 16}, Opcode>;
  using uid = Field<"uid", At{0x00, 15, 0}>;
  using op_mod = Field<"op_mod", At{0x04, 15, 0}>;
  using xrc_srq_context_entry = Sub<"xrc_srq_context_entry", 0x10, XrcSrqc>;
  using xrc_srq_umem_offset = Field64<"xrc_srq_umem_offset", 0x50>;
  using xrc_srq_umem_id = Field<"xrc_srq_umem_id", At{0x58, 31, 0}>;
  using xrc_srq_umem_valid = Field<"xrc_srq_umem_valid", At{0x5c, 31, 31}>;
  using pas = Array<"pas", 0x110, Pas>;
  using fields = Fields<opcode, uid, op_mod, xrc_srq_context_entry, xrc_srq_umem_offset, xrc_srq_umem_id, xrc_srq_umem_valid, pas>;
};

// CREATE_XRC_SRQ: reply.
struct CreateXrcSrqOut : Layout<0x10> {
  using status = Field<"status", At{0x00, 31, 24}, Status>;
  using syndrome = Field<"syndrome", At{0x04, 31, 0}>;
  using xrc_srqn = Field<"xrc_srqn", At{0x08, 23, 0}>;
  using fields = Fields<status, syndrome, xrc_srqn>;
};

// DESTROY_XRC_SRQ: request.
struct DestroyXrcSrqIn : Layout<0x10> {
  using opcode = Field<"opcode", At{0x00, 31, 16}, Opcode>;
  using uid = Field<"uid", At{0x00, 15, 0}>;
  using op_mod = Field<"op_mod", At{0x04, 15, 0}>;
  using xrc_srqn = Field<"xrc_srqn", At{0x08, 23, 0}>;
  using fields = Fields<opcode, uid, op_mod, xrc_srqn>;
};

// DESTROY_XRC_SRQ: reply.
struct DestroyXrcSrqOut : CommandOut {};

// QUERY_XRC_SRQ: request.
struct QueryXrcSrqIn : Layout<0x10> {
  using opcode = Field<"opcode", At{0x00, 31, 16}, Opcode>;
  using op_mod = Field<"op_mod", At{0x04, 15, 0}>;
  using xrc_srqn = Field<"xrc_srqn", At{0x08, 23, 0}>;
  using fields = Fields<opcode, op_mod, xrc_srqn>;
};

// QUERY_XRC_SRQ: reply.
struct QueryXrcSrqOut : Layout<0x110> {
  using status = Field<"status", At{0x00, 31, 24}, Status>;
  using syndrome = Field<"syndrome", At{0x04, 31, 0}>;
  using xrc_srq_context_entry = Sub<"xrc_srq_context_entry", 0x10, XrcSrqc>;
  using pas = Array<"pas", 0x110, Pas>;
  using fields = Fields<status, syndrome, xrc_srq_context_entry, pas>;
};

// ARM_XRC_SRQ: request.
struct ArmXrcSrqIn : Layout<0x10> {
  using opcode = Field<"opcode", At{0x00, 31, 16}, Opcode>;
  using uid = Field<"uid", At{0x00, 15, 0}>;
  using op_mod = Field<"op_mod", At{0x04, 15, 0}>;
  using xrc_srqn = Field<"xrc_srqn", At{0x08, 23, 0}>;
  using lwm = Field<"lwm", At{0x0c, 15, 0}>;
  using fields = Fields<opcode, uid, op_mod, xrc_srqn, lwm>;
};

// ARM_XRC_SRQ: reply.
struct ArmXrcSrqOut : CommandOut {};

// Receive memory pool context.
struct Rmpc : Layout<0xf0> {
  using state = Field<"state", At{0x00, 23, 20}, RmpState>;
  using basic_cyclic_rcv_wqe = Field<"basic_cyclic_rcv_wqe", At{0x04, 31, 31}>;
  using wq = Sub<"wq", 0x30, Wq>;
  using fields = Fields<state, basic_cyclic_rcv_wqe, wq>;
};

// Fields that MODIFY_RMP changes.
struct RmpBitmask : Layout<0x8> {
  using lwm = Field<"lwm", At{0x04, 0, 0}>;
  using fields = Fields<lwm>;
};

// CREATE_RMP: request.
struct CreateRmpIn : Layout<0x110> {
  using opcode = Field<"opcode", At{0x00, 31, 16}, Opcode>;
  using uid = Field<"uid", At{0x00, 15, 0}>;
  using op_mod = Field<"op_mod", At{0x04, 15, 0}>;
  using ctx = Sub<"ctx", 0x20, Rmpc>;
  using fields = Fields<opcode, uid, op_mod, ctx>;
};

// CREATE_RMP: reply.
struct CreateRmpOut : Layout<0x10> {
  using status = Field<"status", At{0x00, 31, 24}, Status>;
  using syndrome = Field<"syndrome", At{0x04, 31, 0}>;
  using rmpn = Field<"rmpn", At{0x08, 23, 0}>;
  using fields = Fields<status, syndrome, rmpn>;
};

// MODIFY_RMP: request.
struct ModifyRmpIn : Layout<0x110> {
  using opcode = Field<"opcode", At{0x00, 31, 16}, Opcode>;
  using uid = Field<"uid", At{0x00, 15, 0}>;
  using op_mod = Field<"op_mod", At{0x04, 15, 0}>;
  using rmp_state = Field<"rmp_state", At{0x08, 31, 28}, RmpState>;
  using rmpn = Field<"rmpn", At{0x08, 23, 0}>;
  using bitmask = Sub<"bitmask", 0x10, RmpBitmask>;
  using ctx = Sub<"ctx", 0x20, Rmpc>;
  using fields = Fields<opcode, uid, op_mod, rmp_state, rmpn, bitmask, ctx>;
};

// MODIFY_RMP: reply.
struct ModifyRmpOut : CommandOut {};

// DESTROY_RMP: request.
struct DestroyRmpIn : Layout<0x10> {
  using opcode = Field<"opcode", At{0x00, 31, 16}, Opcode>;
  using uid = Field<"uid", At{0x00, 15, 0}>;
  using op_mod = Field<"op_mod", At{0x04, 15, 0}>;
  using rmpn = Field<"rmpn", At{0x08, 23, 0}>;
  using fields = Fields<opcode, uid, op_mod, rmpn>;
};

// DESTROY_RMP: reply.
struct DestroyRmpOut : CommandOut {};

// QUERY_RMP: request.
struct QueryRmpIn : Layout<0x10> {
  using opcode = Field<"opcode", At{0x00, 31, 16}, Opcode>;
  using op_mod = Field<"op_mod", At{0x04, 15, 0}>;
  using rmpn = Field<"rmpn", At{0x08, 23, 0}>;
  using fields = Fields<opcode, op_mod, rmpn>;
};

// QUERY_RMP: reply.
struct QueryRmpOut : Layout<0x110> {
  using status = Field<"status", At{0x00, 31, 24}, Status>;
  using syndrome = Field<"syndrome", At{0x04, 31, 0}>;
  using rmp_context = Sub<"rmp_context", 0x20, Rmpc>;
  using fields = Fields<status, syndrome, rmp_context>;
};

// Tag matching part of an XRQ.
struct TagMatchingTopologyContext : Layout<0x10> {
  using log_matching_list_sz = Field<"log_matching_list_sz", At{0x00, 31, 28}>;
  using append_next_index = Field<"append_next_index", At{0x00, 15, 0}>;
  using sw_phase_cnt = Field<"sw_phase_cnt", At{0x04, 31, 16}>;
  using hw_phase_cnt = Field<"hw_phase_cnt", At{0x04, 15, 0}>;
  using fields = Fields<log_matching_list_sz, append_next_index, sw_phase_cnt, hw_phase_cnt>;
};

// XRQ context: SRQ with offloads.
struct Xrqc : Layout<0x140> {
  using state = Field<"state", At{0x00, 31, 28}, SrqState>;
  using rlkey = Field<"rlkey", At{0x00, 27, 27}>;
  using topology = Field<"topology", At{0x00, 11, 8}, XrqTopology>;
  using offload = Field<"offload", At{0x00, 3, 0}, XrqOffload>;
  using user_index = Field<"user_index", At{0x04, 23, 0}>;
  using cqn = Field<"cqn", At{0x08, 23, 0}>;
  using tag_matching_topology_context = Sub<"tag_matching_topology_context", 0x20, TagMatchingTopologyContext>;
  using wq = Sub<"wq", 0x80, Wq>;
  using fields = Fields<state, rlkey, topology, offload, user_index, cqn, tag_matching_topology_context, wq>;
};

// CREATE_XRQ: request.
struct CreateXrqIn : Layout<0x150> {
  using opcode = Field<"opcode", At{0x00, 31, 16}, Opcode>;
  using uid = Field<"uid", At{0x00, 15, 0}>;
  using op_mod = Field<"op_mod", At{0x04, 15, 0}>;
  using xrq_context = Sub<"xrq_context", 0x10, Xrqc>;
  using fields = Fields<opcode, uid, op_mod, xrq_context>;
};

// CREATE_XRQ: reply.
struct CreateXrqOut : Layout<0x10> {
  using status = Field<"status", At{0x00, 31, 24}, Status>;
  using syndrome = Field<"syndrome", At{0x04, 31, 0}>;
  using xrqn = Field<"xrqn", At{0x08, 23, 0}>;
  using fields = Fields<status, syndrome, xrqn>;
};

// DESTROY_XRQ: request.
struct DestroyXrqIn : Layout<0x10> {
  using opcode = Field<"opcode", At{0x00, 31, 16}, Opcode>;
  using uid = Field<"uid", At{0x00, 15, 0}>;
  using op_mod = Field<"op_mod", At{0x04, 15, 0}>;
  using xrqn = Field<"xrqn", At{0x08, 23, 0}>;
  using fields = Fields<opcode, uid, op_mod, xrqn>;
};

// DESTROY_XRQ: reply.
struct DestroyXrqOut : CommandOut {};

// QUERY_XRQ: request.
struct QueryXrqIn : Layout<0x10> {
  using opcode = Field<"opcode", At{0x00, 31, 16}, Opcode>;
  using op_mod = Field<"op_mod", At{0x04, 15, 0}>;
  using xrqn = Field<"xrqn", At{0x08, 23, 0}>;
  using fields = Fields<opcode, op_mod, xrqn>;
};

// QUERY_XRQ: reply.
struct QueryXrqOut : Layout<0x150> {
  using status = Field<"status", At{0x00, 31, 24}, Status>;
  using syndrome = Field<"syndrome", At{0x04, 31, 0}>;
  using xrq_context = Sub<"xrq_context", 0x10, Xrqc>;
  using fields = Fields<status, syndrome, xrq_context>;
};

// ARM_XRQ: request.
struct ArmXrqIn : Layout<0x10> {
  using opcode = Field<"opcode", At{0x00, 31, 16}, Opcode>;
  using op_mod = Field<"op_mod", At{0x04, 15, 0}>;
  using xrqn = Field<"xrqn", At{0x08, 23, 0}>;
  using lwm = Field<"lwm", At{0x0c, 15, 0}>;
  using fields = Fields<opcode, op_mod, xrqn, lwm>;
};

// ARM_XRQ: reply.
struct ArmXrqOut : CommandOut {};

}  // namespace verbena::prm
