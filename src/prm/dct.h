// DC targets: context and commands.
// Threads: types only.
#pragma once

#include "command.h"
#include "qp.h"

namespace verbena::prm {

enum class DctState : std::uint8_t { active = 0x0, draining = 0x1, drained = 0x2 };

// DC target context (PRM "DC Target Context").
struct Dctc : Layout<0x40> {
  using state = Field<"state", At{0x00, 27, 24}, DctState>;
  using data_in_order = Field<"data_in_order", At{0x00, 2, 2}>;
  using user_index = Field<"user_index", At{0x04, 23, 0}>;
  using cqn = Field<"cqn", At{0x08, 23, 0}>;
  using counter_set_id = Field<"counter_set_id", At{0x0c, 31, 24}>;
  using atomic_mode = Field<"atomic_mode", At{0x0c, 23, 20}, AtomicMode>;
  using rre = Field<"rre", At{0x0c, 19, 19}>;
  using rwe = Field<"rwe", At{0x0c, 18, 18}>;
  using rae = Field<"rae", At{0x0c, 17, 17}>;
  using atomic_like_write_en = Field<"atomic_like_write_en", At{0x0c, 16, 16}>;
  using latency_sensitive = Field<"latency_sensitive", At{0x0c, 15, 15}>;
  using rlky = Field<"rlky", At{0x0c, 14, 14}>;
  using free_ar = Field<"free_ar", At{0x0c, 13, 13}>;
  using cs_res = Field<"cs_res", At{0x10, 23, 16}>;
  using min_rnr_nak = Field<"min_rnr_nak", At{0x10, 12, 8}>;
  using srqn_xrqn = Field<"srqn_xrqn", At{0x14, 23, 0}>;
  using pd = Field<"pd", At{0x18, 23, 0}>;
  using tclass = Field<"tclass", At{0x1c, 31, 24}>;
  using flow_label = Field<"flow_label", At{0x1c, 19, 0}>;
  using dc_access_key = Field64<"dc_access_key", 0x20>;
  using mtu = Field<"mtu", At{0x28, 26, 24}, QpMtu>;
  using port = Field<"port", At{0x28, 23, 16}>;
  using pkey_index = Field<"pkey_index", At{0x28, 15, 0}>;
  using my_addr_index = Field<"my_addr_index", At{0x2c, 23, 16}>;
  using hop_limit = Field<"hop_limit", At{0x2c, 7, 0}>;
  using dc_access_key_violation_count = Field<"dc_access_key_violation_count", At{0x30, 31, 0}>;
  using dei_cfi = Field<"dei_cfi", At{0x34, 11, 11}>;
  using eth_prio = Field<"eth_prio", At{0x34, 10, 8}>;
  using ecn = Field<"ecn", At{0x34, 7, 6}>;
  using dscp = Field<"dscp", At{0x34, 5, 0}>;
  using ece = Field<"ece", At{0x3c, 31, 0}>;
  using fields = Fields<state, data_in_order, user_index, cqn, counter_set_id, atomic_mode, rre, rwe, rae,
                        atomic_like_write_en, latency_sensitive, rlky, free_ar, cs_res, min_rnr_nak, srqn_xrqn, pd,
                        tclass, flow_label, dc_access_key, mtu, port, pkey_index, my_addr_index, hop_limit,
                        dc_access_key_violation_count, dei_cfi, eth_prio, ecn, dscp, ece>;
};

// CREATE_DCT: request.
struct CreateDctIn : Layout<0x80> {
  using opcode = Field<"opcode", At{0x00, 31, 16}, Opcode>;
  using uid = Field<"uid", At{0x00, 15, 0}>;
  using op_mod = Field<"op_mod", At{0x04, 15, 0}>;
  using dct_context_entry = Sub<"dct_context_entry", 0x10, Dctc>;
  using fields = Fields<opcode, uid, op_mod, dct_context_entry>;
};

// CREATE_DCT: reply.
struct CreateDctOut : Layout<0x10> {
  using status = Field<"status", At{0x00, 31, 24}, Status>;
  using syndrome = Field<"syndrome", At{0x04, 31, 0}>;
  using dctn = Field<"dctn", At{0x08, 23, 0}>;
  using ece = Field<"ece", At{0x0c, 31, 0}>;
  using fields = Fields<status, syndrome, dctn, ece>;
};

// DESTROY_DCT: request.
struct DestroyDctIn : Layout<0x10> {
  using opcode = Field<"opcode", At{0x00, 31, 16}, Opcode>;
  using uid = Field<"uid", At{0x00, 15, 0}>;
  using op_mod = Field<"op_mod", At{0x04, 15, 0}>;
  using dctn = Field<"dctn", At{0x08, 23, 0}>;
  using fields = Fields<opcode, uid, op_mod, dctn>;
};

// DESTROY_DCT: reply.
struct DestroyDctOut : CommandOut {};

// DRAIN_DCT: request.
struct DrainDctIn : Layout<0x10> {
  using opcode = Field<"opcode", At{0x00, 31, 16}, Opcode>;
  using uid = Field<"uid", At{0x00, 15, 0}>;
  using op_mod = Field<"op_mod", At{0x04, 15, 0}>;
  using dctn = Field<"dctn", At{0x08, 23, 0}>;
  using fields = Fields<opcode, uid, op_mod, dctn>;
};

// DRAIN_DCT: reply.
struct DrainDctOut : CommandOut {};

// QUERY_DCT: request.
struct QueryDctIn : Layout<0x10> {
  using opcode = Field<"opcode", At{0x00, 31, 16}, Opcode>;
  using op_mod = Field<"op_mod", At{0x04, 15, 0}>;
  using dctn = Field<"dctn", At{0x08, 23, 0}>;
  using fields = Fields<opcode, op_mod, dctn>;
};

// QUERY_DCT: reply.
struct QueryDctOut : Layout<0x80> {
  using status = Field<"status", At{0x00, 31, 24}, Status>;
  using syndrome = Field<"syndrome", At{0x04, 31, 0}>;
  using dct_context_entry = Sub<"dct_context_entry", 0x10, Dctc>;
  using fields = Fields<status, syndrome, dct_context_entry>;
};

// ARM_DCT: request.
struct ArmDctIn : Layout<0x10> {
  using opcode = Field<"opcode", At{0x00, 31, 16}, Opcode>;
  using op_mod = Field<"op_mod", At{0x04, 15, 0}>;
  using dct_number = Field<"dct_number", At{0x08, 23, 0}>;
  using fields = Fields<opcode, op_mod, dct_number>;
};

// ARM_DCT: reply.
struct ArmDctOut : CommandOut {};

}  // namespace verbena::prm
