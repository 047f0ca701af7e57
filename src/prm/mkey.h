// Memory keys: context, translation entries, commands.
// Threads: types only.
#pragma once

#include "command.h"

namespace verbena::prm {

// How a memory key finds memory. The low two bits go to access_mode_1_0, the rest to access_mode_4_2.
enum class MkeyAccessMode : std::uint8_t { pa = 0x0, mtt = 0x1, klms = 0x2, ksm = 0x3, sw_icm = 0x4, memic = 0x5 };

// Memory key context (PRM "MKey Context"). The access mode is split: access_mode_4_2 and access_mode_1_0.
struct Mkc : Layout<0x40> {
  using free = Field<"free", At{0x00, 30, 30}>;
  using access_mode_4_2 = Field<"access_mode_4_2", At{0x00, 28, 26}>;
  using relaxed_ordering_write = Field<"relaxed_ordering_write", At{0x00, 18, 18}>;
  using small_fence_on_rdma_read_response = Field<"small_fence_on_rdma_read_response", At{0x00, 16, 16}>;
  using umr_en = Field<"umr_en", At{0x00, 15, 15}>;
  using a = Field<"a", At{0x00, 14, 14}>;
  using rw = Field<"rw", At{0x00, 13, 13}>;
  using rr = Field<"rr", At{0x00, 12, 12}>;
  using lw = Field<"lw", At{0x00, 11, 11}>;
  using lr = Field<"lr", At{0x00, 10, 10}>;
  using access_mode_1_0 = Field<"access_mode_1_0", At{0x00, 9, 8}>;
  using ma_translation_mode = Field<"ma_translation_mode", At{0x00, 5, 4}>;
  using qpn = Field<"qpn", At{0x04, 31, 8}>;
  using mkey_7_0 = Field<"mkey_7_0", At{0x04, 7, 0}>;
  using length64 = Field<"length64", At{0x0c, 31, 31}>;
  using bsf_en = Field<"bsf_en", At{0x0c, 30, 30}>;
  using sync_umr = Field<"sync_umr", At{0x0c, 29, 29}>;
  using expected_sigerr_count = Field<"expected_sigerr_count", At{0x0c, 26, 26}>;
  using en_rinval = Field<"en_rinval", At{0x0c, 24, 24}>;
  using pd = Field<"pd", At{0x0c, 23, 0}>;
  using start_addr = Field64<"start_addr", 0x10>;
  using len = Field64<"len", 0x18>;
  using bsf_octword_size = Field<"bsf_octword_size", At{0x20, 31, 0}>;
  using translations_octword_size = Field<"translations_octword_size", At{0x34, 31, 0}>;
  using relaxed_ordering_read = Field<"relaxed_ordering_read", At{0x38, 6, 6}>;
  using log_page_size = Field<"log_page_size", At{0x38, 4, 0}>;
  using crypto_en = Field<"crypto_en", At{0x3c, 28, 27}>;
  using fields = Fields<free, access_mode_4_2, relaxed_ordering_write, small_fence_on_rdma_read_response, umr_en, a, rw,
                        rr, lw, lr, access_mode_1_0, ma_translation_mode, qpn, mkey_7_0, length64, bsf_en, sync_umr,
                        expected_sigerr_count, en_rinval, pd, start_addr, len, bsf_octword_size,
                        translations_octword_size, relaxed_ordering_read, log_page_size, crypto_en>;
};

// The access mode as one value.
template <class V>
MkeyAccessMode mkey_access_mode(const V& mkc) {
  return static_cast<MkeyAccessMode>(mkc.template get<Mkc::access_mode_4_2>() << 2 |
                                     mkc.template get<Mkc::access_mode_1_0>());
}
template <class V>
void set_mkey_access_mode(V&& mkc, MkeyAccessMode mode) {
  mkc.template set<Mkc::access_mode_4_2>(static_cast<std::uint32_t>(mode) >> 2);
  mkc.template set<Mkc::access_mode_1_0>(static_cast<std::uint32_t>(mode) & 3);
}

// Entry of a translation table whose access rights are per page.
struct Mtt : Layout<0x8> {
  using ptag_63_32 = Field<"ptag_63_32", At{0x00, 31, 0}>;
  using ptag_31_8 = Field<"ptag_31_8", At{0x04, 31, 8}>;
  using wr_en = Field<"wr_en", At{0x04, 1, 1}>;
  using rd_en = Field<"rd_en", At{0x04, 0, 0}>;
  using fields = Fields<ptag_63_32, ptag_31_8, wr_en, rd_en>;
};

// Entry of an indirect memory key (KLM: length and key; KSM uses the same 16 bytes, byte_count reserved).
struct Klm : Layout<0x10> {
  using byte_count = Field<"byte_count", At{0x00, 31, 0}>;
  using key = Field<"key", At{0x04, 31, 0}>;
  using address = Field64<"address", 0x8>;
  using fields = Fields<byte_count, key, address>;
};

// CREATE_MKEY: request.
struct CreateMkeyIn : Layout<0x110> {
  using opcode = Field<"opcode", At{0x00, 31, 16}, Opcode>;
  using uid = Field<"uid", At{0x00, 15, 0}>;
  using op_mod = Field<"op_mod", At{0x04, 15, 0}>;
  using pg_access = Field<"pg_access", At{0x0c, 31, 31}>;
  using mkey_umem_valid = Field<"mkey_umem_valid", At{0x0c, 30, 30}>;
  using memory_key_mkey_entry = Sub<"memory_key_mkey_entry", 0x10, Mkc>;
  using translations_octword_actual_size = Field<"translations_octword_actual_size", At{0x60, 31, 0}>;
  using mkey_umem_id = Field<"mkey_umem_id", At{0x64, 31, 0}>;
  using mkey_umem_offset = Field64<"mkey_umem_offset", 0x68>;
  using klm_pas_mtt = Array<"klm_pas_mtt", 0x110, Dword>;
  // The same tail as page addresses, as translation entries, as indirect entries.
  using pages = Array<"klm_pas_mtt", 0x110, Pas>;
  using mtts = Array<"klm_pas_mtt", 0x110, Mtt>;
  using klms = Array<"klm_pas_mtt", 0x110, Klm>;
  using fields = Fields<opcode, uid, op_mod, pg_access, mkey_umem_valid, memory_key_mkey_entry,
                        translations_octword_actual_size, mkey_umem_id, mkey_umem_offset, klm_pas_mtt>;
  using readings = Fields<pages, klms>;
};

// CREATE_MKEY: reply.
struct CreateMkeyOut : Layout<0x10> {
  using status = Field<"status", At{0x00, 31, 24}, Status>;
  using syndrome = Field<"syndrome", At{0x04, 31, 0}>;
  using mkey_index = Field<"mkey_index", At{0x08, 23, 0}>;
  using fields = Fields<status, syndrome, mkey_index>;
};

// DESTROY_MKEY: request.
struct DestroyMkeyIn : Layout<0x10> {
  using opcode = Field<"opcode", At{0x00, 31, 16}, Opcode>;
  using uid = Field<"uid", At{0x00, 15, 0}>;
  using op_mod = Field<"op_mod", At{0x04, 15, 0}>;
  using mkey_index = Field<"mkey_index", At{0x08, 23, 0}>;
  using fields = Fields<opcode, uid, op_mod, mkey_index>;
};

// DESTROY_MKEY: reply.
struct DestroyMkeyOut : CommandOut {};

// QUERY_MKEY: request.
struct QueryMkeyIn : Layout<0x10> {
  using opcode = Field<"opcode", At{0x00, 31, 16}, Opcode>;
  using op_mod = Field<"op_mod", At{0x04, 15, 0}>;
  using mkey_index = Field<"mkey_index", At{0x08, 23, 0}>;
  using pg_access = Field<"pg_access", At{0x0c, 31, 31}>;
  using fields = Fields<opcode, op_mod, mkey_index, pg_access>;
};

// QUERY_MKEY: reply.
struct QueryMkeyOut : Layout<0x130> {
  using status = Field<"status", At{0x00, 31, 24}, Status>;
  using syndrome = Field<"syndrome", At{0x04, 31, 0}>;
  using memory_key_mkey_entry = Sub<"memory_key_mkey_entry", 0x10, Mkc>;
  using bsf0_klm0_pas_mtt0_1 = Bytes<"bsf0_klm0_pas_mtt0_1", 0x110, 16>;
  using bsf1_klm1_pas_mtt2_3 = Bytes<"bsf1_klm1_pas_mtt2_3", 0x120, 16>;
  using fields = Fields<status, syndrome, memory_key_mkey_entry, bsf0_klm0_pas_mtt0_1, bsf1_klm1_pas_mtt2_3>;
};

// QUERY_SPECIAL_CONTEXTS: request.
struct QuerySpecialContextsIn : Layout<0x10> {
  using opcode = Field<"opcode", At{0x00, 31, 16}, Opcode>;
  using op_mod = Field<"op_mod", At{0x04, 15, 0}>;
  using fields = Fields<opcode, op_mod>;
};

// QUERY_SPECIAL_CONTEXTS: reply.
struct QuerySpecialContextsOut : Layout<0x20> {
  using status = Field<"status", At{0x00, 31, 24}, Status>;
  using syndrome = Field<"syndrome", At{0x04, 31, 0}>;
  using dump_fill_mkey = Field<"dump_fill_mkey", At{0x08, 31, 0}>;
  using resd_lkey = Field<"resd_lkey", At{0x0c, 31, 0}>;
  using null_mkey = Field<"null_mkey", At{0x10, 31, 0}>;
  using fields = Fields<status, syndrome, dump_fill_mkey, resd_lkey, null_mkey>;
};

// CREATE_PSV: request.
struct CreatePsvIn : Layout<0x10> {
  using opcode = Field<"opcode", At{0x00, 31, 16}, Opcode>;
  using op_mod = Field<"op_mod", At{0x04, 15, 0}>;
  using num_psv = Field<"num_psv", At{0x08, 31, 28}>;
  using pd = Field<"pd", At{0x08, 23, 0}>;
  using fields = Fields<opcode, op_mod, num_psv, pd>;
};

// CREATE_PSV: reply.
struct CreatePsvOut : Layout<0x20> {
  using status = Field<"status", At{0x00, 31, 24}, Status>;
  using syndrome = Field<"syndrome", At{0x04, 31, 0}>;
  using psv0_index = Field<"psv0_index", At{0x10, 23, 0}>;
  using psv1_index = Field<"psv1_index", At{0x14, 23, 0}>;
  using psv2_index = Field<"psv2_index", At{0x18, 23, 0}>;
  using psv3_index = Field<"psv3_index", At{0x1c, 23, 0}>;
  using fields = Fields<status, syndrome, psv0_index, psv1_index, psv2_index, psv3_index>;
};

// DESTROY_PSV: request.
struct DestroyPsvIn : Layout<0x10> {
  using opcode = Field<"opcode", At{0x00, 31, 16}, Opcode>;
  using op_mod = Field<"op_mod", At{0x04, 15, 0}>;
  using psvn = Field<"psvn", At{0x08, 23, 0}>;
  using fields = Fields<opcode, op_mod, psvn>;
};

// DESTROY_PSV: reply.
struct DestroyPsvOut : CommandOut {};

// PAGE_FAULT_RESUME: request.
struct PageFaultResumeIn : Layout<0x10> {
  using opcode = Field<"opcode", At{0x00, 31, 16}, Opcode>;
  using op_mod = Field<"op_mod", At{0x04, 15, 0}>;
  using error = Field<"error", At{0x08, 31, 31}>;
  using page_fault_type = Field<"page_fault_type", At{0x08, 26, 24}>;
  using wq_number = Field<"wq_number", At{0x08, 23, 0}>;
  using token = Field<"token", At{0x0c, 23, 0}>;
  using fields = Fields<opcode, op_mod, error, page_fault_type, wq_number, token>;
};

// PAGE_FAULT_RESUME: reply.
struct PageFaultResumeOut : CommandOut {};

}  // namespace verbena::prm
