// Every refusal the device has (command/refusals.h), provoked: exactly this syndrome, with the status that goes with it,
// and the device works on.
#include <sys/mman.h>

#include <set>

#include "device/command/state.h"
#include "prm/admin.h"
#include "prm/port.h"
#include "prm/registers.h"
#include "tests/unit/device/command_fixture.h"
#include "tests/unit/device/field_list.h"

namespace verbena::device {
namespace {

// Refusals no request leads to on a machine that is well, or in a device that has no such object yet.
constexpr Syndrome kUnprovoked[] = {
    Syndrome::mkey_no_table_memory,  // the arena of 8 GiB would have to be full
    Syndrome::roce_not_set,          // so would the registry of addresses
    Syndrome::td_busy,               // command_receive_test.cc
    Syndrome::qp_busy,               // no object but multicast groups stands on a queue pair
    Syndrome::object_none_left,      // all QP numbers of the machine would have to be taken
    // command_general_test.cc provokes these:
    Syndrome::object_type, Syndrome::object_missing, Syndrome::object_range, Syndrome::object_body,
    Syndrome::object_fixed, Syndrome::object_virtio, Syndrome::memic_size, Syndrome::memic_range,
    Syndrome::memic_alignment, Syndrome::memic_full, Syndrome::memic_missing, Syndrome::memic_busy, Syndrome::mkey_memic,
    Syndrome::memic_op_mod, Syndrome::memic_operation, Syndrome::memic_operation_state, Syndrome::mapping_body,
    Syndrome::mapping_qp, Syndrome::mapping_sgid_index, Syndrome::mapping_none_left,
    // and command_qos_test.cc these:
    Syndrome::qp_extension, Syndrome::qp_leaf, Syndrome::qp_responder_leaf, Syndrome::pp_index, Syndrome::pp_rate,
    Syndrome::sched_hierarchy, Syndrome::sched_type, Syndrome::sched_tsar_type, Syndrome::sched_parent,
    Syndrome::sched_root, Syndrome::sched_share, Syndrome::sched_depth, Syndrome::sched_none_left,
    Syndrome::sched_missing, Syndrome::sched_busy, Syndrome::sched_select,
    // and command_raw_test.cc these:
    Syndrome::tis_none_left, Syndrome::tis_missing, Syndrome::tis_busy, Syndrome::tis_domain, Syndrome::tis_lag_port,
    Syndrome::tis_tls, Syndrome::sq_none_left,
    Syndrome::sq_missing, Syndrome::sq_initial_state, Syndrome::sq_offload, Syndrome::sq_ts_format, Syndrome::sq_wq_type,
    Syndrome::sq_size, Syndrome::sq_pd, Syndrome::sq_uar, Syndrome::sq_cq, Syndrome::sq_tis, Syndrome::sq_rate,
    Syndrome::sq_leaf, Syndrome::sq_current_state, Syndrome::sq_new_state, Syndrome::sq_bitmask,
    // and command_receive_test.cc these (there is nobody to take all groups for flow_group_none_left):
    Syndrome::rq_none_left, Syndrome::rq_missing, Syndrome::rq_busy, Syndrome::rq_initial_state, Syndrome::rq_offload,
    Syndrome::rq_ts_format, Syndrome::rq_wq_type, Syndrome::rq_size, Syndrome::rq_pd, Syndrome::rq_cq, Syndrome::rq_rmp,
    Syndrome::rq_counter, Syndrome::rq_current_state, Syndrome::rq_new_state, Syndrome::rq_bitmask, Syndrome::rq_mem_type,
    Syndrome::rqt_none_left, Syndrome::rqt_missing, Syndrome::rqt_busy, Syndrome::rqt_kind, Syndrome::rqt_size,
    Syndrome::rqt_actual_size, Syndrome::rqt_list_short, Syndrome::rqt_rq, Syndrome::tir_none_left,
    Syndrome::tir_missing, Syndrome::tir_busy, Syndrome::tir_rq, Syndrome::tir_rqt, Syndrome::tir_domain,
    Syndrome::tir_offload, Syndrome::tir_hash, Syndrome::tir_bitmask, Syndrome::tir_disp_type, Syndrome::flow_vport,
    Syndrome::flow_table_type,
    Syndrome::flow_table_flags, Syndrome::flow_table_size, Syndrome::flow_table_none_left, Syndrome::flow_table_missing,
    Syndrome::flow_table_busy, Syndrome::flow_miss_table, Syndrome::flow_modify_select, Syndrome::flow_root,
    Syndrome::flow_group_type, Syndrome::flow_group_range, Syndrome::flow_criteria, Syndrome::flow_group_none_left,
    Syndrome::flow_group_missing, Syndrome::flow_group_busy, Syndrome::flow_op_mod, Syndrome::flow_index,
    Syndrome::flow_entry_exists, Syndrome::flow_entry_missing, Syndrome::flow_action, Syndrome::flow_unsupported,
    Syndrome::flow_lists, Syndrome::flow_destination, Syndrome::flow_destination_missing,
    Syndrome::flow_counter_missing, Syndrome::flow_counter_busy, Syndrome::flow_counter_none_left,
    Syndrome::flow_counter_bulk, Syndrome::flow_entry_none_left, Syndrome::flow_modify_mask,
};

class RefusalTest : public CommandTest {
 protected:
  using Bytes = std::vector<std::byte>;

  Bytes run(const Command& c, std::size_t out_size = 0x1100) {
    Bytes out(out_size, std::byte{0xee});
    device_->execute(c.in, out);
    return out;
  }
  void refused(Syndrome why, const Command& c, std::size_t out_size = 0x1100) {
    const Bytes out = run(c, out_size);
    const prm::ConstView<prm::CommandOut> head(out.data());
    const auto got = static_cast<Syndrome>(head.get<prm::CommandOut::syndrome>());
    EXPECT_EQ(got, why) << c.entry->name << ": got \"" << (got == Syndrome{} ? "success" : reason(got))
                        << "\" instead of \"" << reason(why) << "\"";
    EXPECT_EQ(head.get<prm::CommandOut::status>(), command::status_of(why));
    seen_.insert(why);
    Request<prm::NopIn, prm::NopOut> nop(Opcode::nop);
    if (why != Syndrome::hca_not_initialised) {
      EXPECT_EQ(nop.run(*device_), Status::ok);
    }
  }
  // The number in the reply.
  std::uint32_t done(const Command& c) {
    const Bytes out = run(c);
    EXPECT_EQ(prm::load_be32(out.data()), 0u) << c.entry->name << ": "
                                              << reason(static_cast<Syndrome>(prm::load_be32(out.data() + 4)));
    return prm::load_be32(out.data() + 8) & 0xffffff;
  }
  Command cq() { return Command(cq_request()); }
  Command qp(prm::QpServiceType type = prm::QpServiceType::rc) { return Command(qp_request(type)); }
  Command srq() { return Command(srq_request()); }
  Command eq() { return Command(eq_request()); }
  Command mkey(prm::MkeyAccessMode mode = prm::MkeyAccessMode::pa) { return Command(mkey_request(mode)); }
  Command rmp() {
    Command c(Opcode::create_rmp);
    c.set("ctx.state", static_cast<unsigned>(prm::RmpState::rdy)).set("wq_type", 0).set("log_wq_sz", 5);
    return c.set("log_wq_stride", 6).set("wq.pd", pd_).set("wq.dbr_addr", doorbell(memory_, 3)).tail64(0, memory(0x5000));
  }
  Command xrc_srq(std::uint32_t xrcd) {
    Command c(Opcode::create_xrc_srq);
    c.set("xrcd", xrcd).set("cqn", cqn_).set("xrc_srq_context_entry.pd", pd_).set("log_xrc_srq_size", 5).set("log_rq_stride", 2);
    return c.set("dbr_addr", doorbell(memory_, 5)).tail64(0, memory(0x5000));
  }
  Command xrq() {
    Command c(Opcode::create_xrq);
    c.set("xrq_context.cqn", cqn_).set("log_wq_sz", 5).set("log_wq_stride", 6).set("wq.pd", pd_);
    return c.set("wq.dbr_addr", doorbell(memory_, 6)).tail64(0, memory(0x5000));
  }
  Command named(Opcode opcode, const char* field, std::uint64_t number) { return Command(opcode).set(field, number); }

  void hca();
  void domains();
  void user_contexts();
  void places();
  void keys();
  void event_queues();
  void completion_queues();
  void shared_queues();
  void xrc_queues();
  void pairs();
  void transitions();
  void addresses();
  void vports();
  void counters_and_registers();
  void limits();

  std::set<Syndrome> seen_;
  static constexpr std::uint64_t kMissing = 0xfffff;
};

void RefusalTest::hca() {
  // (Command holds known opcodes only.)
  Command unknown(Opcode::nop);
  prm::store_be32(unknown.in.data(), 0x0fff0000);
  refused(Syndrome::unknown_opcode, unknown);
  prm::store_be32(unknown.in.data(), static_cast<unsigned>(Opcode::create_dct) << 16);
  refused(Syndrome::not_supported, unknown);
  Command odd(Opcode::nop);
  odd.in.pop_back();
  refused(Syndrome::input_length, odd);
  refused(Syndrome::output_length, Command(Opcode::nop), 12);
  refused(Syndrome::uid_unknown, Command(Opcode::alloc_pd, 77));
  refused(Syndrome::uid_not_privileged, Command(Opcode::create_uctx, 77));
  refused(Syndrome::other_function, named(Opcode::query_hca_cap, "function_id", 1));
  refused(Syndrome::other_function, named(Opcode::query_hca_cap, "function_id", 1).set("other_function", 1));
  refused(Syndrome::other_function, named(Opcode::enable_hca, "function_id", 1));
  refused(Syndrome::other_function, named(Opcode::disable_hca, "function_id", 1));
  refused(Syndrome::cap_page, named(Opcode::query_hca_cap, "op_mod", 0xfffe));
  for (unsigned issi : {2u, 31u, 32u, 0xffffu}) refused(Syndrome::issi_unknown, named(Opcode::set_issi, "current_issi", issi));
  refused(Syndrome::teardown_profile, named(Opcode::teardown_hca, "profile", 1));
  refused(Syndrome::hca_busy, Command(Opcode::teardown_hca));
  refused(Syndrome::hca_busy, Command(Opcode::disable_hca));
  done(named(Opcode::destroy_cq, "cqn", cqn_));
  done(Command(Opcode::teardown_hca));
  refused(Syndrome::hca_not_initialised, Command(Opcode::alloc_pd));
  done(Command(Opcode::init_hca));
  cqn_ = make_cq();
}

void RefusalTest::domains() {
  refused(Syndrome::xrcd_missing, named(Opcode::dealloc_xrcd, "xrcd", 77));
  const std::uint32_t xrcd = done(Command(Opcode::alloc_xrcd));
  done(named(Opcode::dealloc_xrcd, "xrcd", xrcd));
  for (unsigned i = 1; i < kXrcDomains; ++i) run(Command(Opcode::alloc_xrcd), 0x10);
  refused(Syndrome::xrcd_none_left, Command(Opcode::alloc_xrcd));
  for (unsigned i = 1; i < kXrcDomains; ++i) run(named(Opcode::dealloc_xrcd, "xrcd", i));
  const auto psv = [&](unsigned n) { return named(Opcode::create_psv, "pd", pd_).set("num_psv", n); };
  refused(Syndrome::psv_count, psv(0));
  refused(Syndrome::psv_count, psv(5));
  refused(Syndrome::psv_pd, psv(1).set("pd", 4711));
  refused(Syndrome::psv_missing, named(Opcode::destroy_psv, "psvn", 77));
  const Bytes two = run(psv(2));
  EXPECT_NE(prm::load_be32(two.data() + 0x10), prm::load_be32(two.data() + 0x14));
  EXPECT_EQ(prm::load_be32(two.data() + 0x18), 0u);
  refused(Syndrome::pd_busy, named(Opcode::dealloc_pd, "pd", pd_));
  for (const unsigned at : {0x10u, 0x14u}) done(named(Opcode::destroy_psv, "psvn", prm::load_be32(two.data() + at)));
  for (unsigned i = 1; i < command::kPsvs - 4; i += 4) run(psv(4), 0x20);
  refused(Syndrome::psv_none_left, psv(4));
  EXPECT_EQ(prm::load_be32(run(psv(3)).data()), 0u) << "what did not fit was given back";
  refused(Syndrome::pd_missing, named(Opcode::dealloc_pd, "pd", kMissing));
  refused(Syndrome::pd_missing, named(Opcode::dealloc_pd, "pd", 0));
  done(mkey());
  refused(Syndrome::pd_busy, named(Opcode::dealloc_pd, "pd", pd_));
  refused(Syndrome::td_missing, named(Opcode::dealloc_transport_domain, "transport_domain", kMissing));
  refused(Syndrome::uar_missing, named(Opcode::dealloc_uar, "uar", kMissing));
  refused(Syndrome::uar_busy, named(Opcode::dealloc_uar, "uar", uar_));
}

void RefusalTest::user_contexts() {
  refused(Syndrome::uctx_cap, named(Opcode::create_uctx, "cap", 1));
  refused(Syndrome::uctx_missing, named(Opcode::destroy_uctx, "uid", 500));
  const std::uint32_t uid = prm::load_be32(run(Command(Opcode::create_uctx)).data() + 8) & 0xffff;
  done(Command(Opcode::alloc_pd, static_cast<std::uint16_t>(uid)));
  refused(Syndrome::uctx_busy, named(Opcode::destroy_uctx, "uid", uid));
  const auto umem = [&] { return Command(Opcode::create_umem).set("num_of_mtt", 2).tail64(0, memory() | 3).tail64(1, memory(4096) | 3); };
  refused(Syndrome::umem_ats, umem().set("ats", 1));
  for (std::uint64_t n : {std::uint64_t{0}, std::uint64_t{3}, std::uint64_t{1} << 61, ~std::uint64_t{0}})
    refused(Syndrome::umem_entries, umem().set("num_of_mtt", n));
  refused(Syndrome::umem_page_offset, umem().set("page_offset", 4096));
  refused(Syndrome::umem_scattered, umem().tail64(1, memory(8192) | 3));
  refused(Syndrome::umem_rights, umem().tail64(1, memory(4096)));
  refused(Syndrome::umem_not_mapped, umem().tail64(0, 0x1000 | 3).tail64(1, 0x2000 | 3));
  refused(Syndrome::umem_missing, named(Opcode::destroy_umem, "umem_id", kMissing));
  const std::uint32_t id = done(umem());
  done(cq().set("cq_umem_valid", 1).set("cq_umem_id", id));
  refused(Syndrome::umem_busy, named(Opcode::destroy_umem, "umem_id", id));
  const std::uint32_t read_only = done(umem().tail64(0, memory() | 1).tail64(1, memory(4096) | 1));
  refused(Syndrome::queue_umem_read_only, cq().set("cq_umem_valid", 1).set("cq_umem_id", read_only));
  done(rmp().set("wq_umem_valid", 1).set("wq_umem_id", read_only));  // work queues are only read
  refused(Syndrome::queue_umem_missing, cq().set("cq_umem_valid", 1).set("cq_umem_id", kMissing));
  refused(Syndrome::queue_umem_short, cq().set("cq_umem_valid", 1).set("cq_umem_id", id).set("cq_umem_offset", 8192));
  refused(Syndrome::queue_umem_short, cq().set("cq_umem_valid", 1).set("cq_umem_id", id).set("cq_umem_offset", ~0ull));
  refused(Syndrome::dbr_umem_missing, cq().set("dbr_umem_valid", 1).set("dbr_umem_id", kMissing).set("dbr_addr", 0));
  for (std::uint64_t at : {std::uint64_t{8192}, ~std::uint64_t{7}})
    refused(Syndrome::dbr_umem_short, cq().set("dbr_umem_valid", 1).set("dbr_umem_id", id).set("dbr_addr", at));
  const std::uint32_t odd = done(umem().set("page_offset", 8));
  refused(Syndrome::queue_unaligned, cq().set("cq_umem_valid", 1).set("cq_umem_id", odd));
  const auto over = [&](std::uint32_t umem_id) {
    return mkey(prm::MkeyAccessMode::mtt).set("mkey_umem_valid", 1).set("mkey_umem_id", umem_id).set("len", 8192);
  };
  refused(Syndrome::mkey_umem_missing, over(kMissing));
  refused(Syndrome::mkey_umem_short, over(id).set("len", 8193));
  refused(Syndrome::mkey_umem_short, over(id).set("mkey_umem_offset", ~0ull));
  refused(Syndrome::mkey_umem_read_only, over(read_only).set("lw", 1));
  refused(Syndrome::mkey_umem_mode, mkey().set("mkey_umem_valid", 1).set("mkey_umem_id", id));
}

void RefusalTest::places() {
  refused(Syndrome::queue_pages_short, cq().set("log_cq_size", 7));
  refused(Syndrome::queue_pages_scattered, cq().set("log_cq_size", 7).tail64(1, memory(0x9000)));
  refused(Syndrome::queue_not_mapped, cq().tail64(0, 0x1000));
  refused(Syndrome::queue_not_mapped, cq().tail64(0, ~0xfffull));
  refused(Syndrome::queue_page_size, srq().set("log_page_size", 32));
  refused(Syndrome::dbr_unaligned, cq().set("dbr_addr", memory() + 4));
  refused(Syndrome::dbr_not_mapped, cq().set("dbr_addr", 0));
  refused(Syndrome::dbr_not_mapped, cq().set("dbr_addr", ~std::uint64_t{7}));
}

void RefusalTest::keys() {
  using Mode = prm::MkeyAccessMode;
  refused(Syndrome::mkey_missing, named(Opcode::destroy_mkey, "mkey_index", kMissing));
  refused(Syndrome::mkey_missing, named(Opcode::query_mkey, "mkey_index", kMissing));
  refused(Syndrome::mkey_pd, mkey().set("pd", kMissing));
  refused(Syndrome::mkey_access_mode, mkey(static_cast<Mode>(31)));
  refused(Syndrome::mkey_odp, mkey().set("pg_access", 1));
  refused(Syndrome::mkey_signature, mkey().set("bsf_en", 1));
  refused(Syndrome::mkey_signature, mkey().set("bsf_octword_size", 1));
  refused(Syndrome::mkey_crypto, mkey().set("crypto_en", 1));
  refused(Syndrome::mkey_ats, mkey().set("ma_translation_mode", 1));
  refused(Syndrome::mkey_device_memory, mkey(Mode::sw_icm));
  refused(Syndrome::mkey_range, mkey().set("start_addr", ~0ull - 10));
  const auto table = [&](Mode mode) {
    return mkey(mode).set("translations_octword_size", 1).set("translations_octword_actual_size", 1).set("log_page_size", 12);
  };
  refused(Syndrome::mkey_table_short, table(Mode::mtt).set("translations_octword_actual_size", 5).set("translations_octword_size", 5));
  refused(Syndrome::mkey_table_size, table(Mode::mtt).set("translations_octword_actual_size", 2));
  refused(Syndrome::mkey_table_limit, table(Mode::klms).set("translations_octword_size", 0xffffffff));
  refused(Syndrome::mkey_table_limit, table(Mode::mtt).set("translations_octword_size", 0xffffffff));
  refused(Syndrome::mkey_table_empty, table(Mode::klms).set("translations_octword_actual_size", 0));
  refused(Syndrome::mkey_table_cover, table(Mode::mtt).set("len", 8193));
  refused(Syndrome::mkey_table_cover, table(Mode::mtt).set("start_addr", memory() + 1));
  refused(Syndrome::mkey_page_size, table(Mode::mtt).set("log_page_size", 11));
  refused(Syndrome::mkey_length64_mode, table(Mode::mtt).set("length64", 1));
}

void RefusalTest::event_queues() {
  refused(Syndrome::eq_missing, named(Opcode::query_eq, "eq_number", 200));
  refused(Syndrome::eq_missing, named(Opcode::destroy_eq, "eq_number", 200));
  refused(Syndrome::eq_size, eq().set("log_eq_size", 31));
  refused(Syndrome::eq_vector, eq().set("intr", 0xfff));
  refused(Syndrome::eq_uar, eq().set("uar_page", kMissing));
  refused(Syndrome::eq_busy, named(Opcode::destroy_eq, "eq_number", eqn_));
}

void RefusalTest::completion_queues() {
  for (const Opcode opcode : {Opcode::query_cq, Opcode::destroy_cq, Opcode::modify_cq})
    refused(Syndrome::cq_missing, named(opcode, "cqn", kMissing));
  refused(Syndrome::cq_size, cq().set("log_cq_size", 31));
  refused(Syndrome::cq_cqe_size, cq().set("cqe_sz", 7));
  refused(Syndrome::cq_compression, cq().set("cqe_comp_en", 1).set("cqe_compression_layout", 1));
  refused(Syndrome::cq_compression, cq().set("cqe_comp_en", 1).set("mini_cqe_res_format", 2));
  refused(Syndrome::cq_compression, cq().set("cqe_comp_en", 1).set("mini_cqe_res_format_ext", 1));
  refused(Syndrome::cq_apu, cq().set("apu_cq", 1));
  refused(Syndrome::cq_period_mode, cq().set("cq_period_mode", 3));
  refused(Syndrome::cq_eqn, cq().set("c_eqn_or_apu_element", kMissing));
  refused(Syndrome::cq_uar, cq().set("uar_page", kMissing));
  const auto modify = [&](unsigned op, std::uint32_t select) {
    return named(Opcode::modify_cq, "cqn", cqn_).set("op_mod", op).set("modify_field_select_resize_field_select", select);
  };
  using Select = prm::ModifyCqSelect;
  using Resize = prm::ResizeCqSelect;
  refused(Syndrome::cq_op_mod, modify(2, 0));
  refused(Syndrome::cq_modify_select, modify(0, 1u << 31));
  refused(Syndrome::cq_period_mode, modify(0, Select::period_mode).set("cq_period_mode", 2));
  refused(Syndrome::cq_eqn, modify(0, Select::eqn).set("c_eqn_or_apu_element", 200));
  refused(Syndrome::cq_resize_select, modify(1, 0));
  refused(Syndrome::cq_resize_select, modify(1, Resize::log_cq_size | 1u << 31));
  const auto resize = [&](unsigned log) { return modify(1, Resize::log_cq_size).set("log_cq_size", log).tail64(0, memory(0x6000)); };
  refused(Syndrome::cq_size, resize(31));
  refused(Syndrome::cq_cqe_size, resize(5).set("cqe_sz", 7));
  CqContext& live = live_cq(cqn_);
  live.pi = 20;
  refused(Syndrome::cq_resize_unread, resize(4));
  live.pi = 32;
  refused(Syndrome::cq_resize_full, resize(6));
  live.pi = 0;
  done(qp());
  refused(Syndrome::cq_busy, named(Opcode::destroy_cq, "cqn", cqn_));
}

void RefusalTest::shared_queues() {
  refused(Syndrome::srq_missing, named(Opcode::query_srq, "srqn", kMissing));
  refused(Syndrome::srq_missing, named(Opcode::destroy_srq, "srqn", kMissing));
  refused(Syndrome::srq_missing, named(Opcode::query_rmp, "rmpn", kMissing));
  refused(Syndrome::srq_missing, named(Opcode::destroy_rmp, "rmpn", kMissing));
  refused(Syndrome::srq_missing, named(Opcode::modify_rmp, "rmpn", kMissing));
  refused(Syndrome::srq_missing, named(Opcode::arm_rq, "srq_number", kMissing).set("op_mod", 1));
  refused(Syndrome::srq_size, rmp().set("log_wq_sz", 31));
  refused(Syndrome::srq_stride, srq().set("log_rq_stride", 0));
  refused(Syndrome::srq_stride, srq().set("log_rq_stride", 7));
  refused(Syndrome::srq_limit, srq().set("lwm", 32));
  refused(Syndrome::srq_pd, srq().set("pd", kMissing));
  refused(Syndrome::srq_signature, srq().set("wq_signature", 1));
  refused(Syndrome::srq_signature, rmp().set("wq_signature", 1));
  const std::uint32_t number = done(srq());
  refused(Syndrome::srq_missing, named(Opcode::destroy_rmp, "rmpn", number));
  done(qp().set("rq_type", 1).set("srqn_rmpn_xrqn", number));
  refused(Syndrome::srq_busy, named(Opcode::destroy_srq, "srqn", number));
  refused(Syndrome::arm_rq_op_mod, named(Opcode::arm_rq, "srq_number", number).set("op_mod", 0));
  refused(Syndrome::srq_limit, named(Opcode::arm_rq, "srq_number", number).set("op_mod", 1).set("lwm", 0xffff));
  refused(Syndrome::rmp_initial_state, rmp().set("ctx.state", static_cast<unsigned>(prm::RmpState::err)));
  refused(Syndrome::rmp_wq_type, rmp().set("wq_type", 15));
  refused(Syndrome::rmp_wq_type, rmp().set("wq_type", static_cast<unsigned>(prm::WqType::cyclic_striding)));
  refused(Syndrome::rmp_wq_type, rmp().set("basic_cyclic_rcv_wqe", 1));
  const auto ready = static_cast<unsigned>(prm::RmpState::rdy), error = static_cast<unsigned>(prm::RmpState::err);
  const std::uint32_t pool = done(rmp());
  const auto modify = [&](unsigned from, unsigned to) {
    return named(Opcode::modify_rmp, "rmpn", pool).set("rmp_state", from).set("ctx.state", to);
  };
  refused(Syndrome::rmp_current_state, modify(error, error));
  refused(Syndrome::rmp_new_state, modify(ready, 15));
  done(modify(ready, error));
  refused(Syndrome::rmp_new_state, modify(error, ready));
}

void RefusalTest::xrc_queues() {
  const std::uint32_t xrcd = done(Command(Opcode::alloc_xrcd));
  for (const Opcode opcode : {Opcode::query_xrc_srq, Opcode::destroy_xrc_srq})
    refused(Syndrome::srq_missing, named(opcode, "xrc_srqn", kMissing));
  for (const Opcode opcode : {Opcode::query_xrq, Opcode::destroy_xrq, Opcode::arm_xrq})
    refused(Syndrome::srq_missing, named(opcode, "xrqn", kMissing));
  refused(Syndrome::srq_missing, named(Opcode::arm_xrc_srq, "xrc_srqn", kMissing).set("op_mod", 1));
  refused(Syndrome::xrcd_missing, xrc_srq(0));
  refused(Syndrome::xrcd_missing, xrc_srq(77));
  refused(Syndrome::srq_cq, xrc_srq(xrcd).set("cqn", kMissing));
  refused(Syndrome::xrc_srq_no_cq, xrc_srq(xrcd).set("cqn", 0));
  refused(Syndrome::srq_pd, xrc_srq(xrcd).set("xrc_srq_context_entry.pd", kMissing));
  refused(Syndrome::xrc_srq_cyclic, xrc_srq(xrcd).set("basic_cyclic_rcv_wqe", 1));
  refused(Syndrome::srq_signature, xrc_srq(xrcd).set("wq_signature", 1));
  refused(Syndrome::srq_stride, xrc_srq(xrcd).set("log_rq_stride", 0));
  refused(Syndrome::srq_limit, xrc_srq(xrcd).set("lwm", 32));
  const std::uint32_t number = done(xrc_srq(xrcd));
  refused(Syndrome::xrcd_busy, named(Opcode::dealloc_xrcd, "xrcd", xrcd));
  refused(Syndrome::cq_busy, named(Opcode::destroy_cq, "cqn", cqn_));
  const auto arm = [&] { return named(Opcode::arm_xrc_srq, "xrc_srqn", number); };
  refused(Syndrome::arm_xrc_srq_op_mod, arm());
  refused(Syndrome::srq_limit, arm().set("op_mod", 1).set("lwm", 32));
  done(arm().set("op_mod", 1));
  refused(Syndrome::srq_missing, named(Opcode::query_rmp, "rmpn", number));
  refused(Syndrome::xrq_offload, xrq().set("topology", 1));
  refused(Syndrome::xrq_offload, xrq().set("offload", 1));
  refused(Syndrome::xrc_srq_no_cq, xrq().set("xrq_context.cqn", 0));
  refused(Syndrome::rmp_wq_type, xrq().set("wq_type", 1));
  refused(Syndrome::srq_signature, xrq().set("wq_signature", 1));
  const std::uint32_t shell = done(xrq());
  done(named(Opcode::arm_rq, "srq_number", shell).set("op_mod", 2));
  refused(Syndrome::srq_missing, named(Opcode::arm_rq, "srq_number", number).set("op_mod", 2));
  // Neither stands below an ordinary queue pair, and an XRC queue pair has nothing of its own.
  for (const std::uint32_t n : {number, shell}) refused(Syndrome::qp_srq, qp().set("rq_type", 1).set("srqn_rmpn_xrqn", n));
  const auto pair = [&] { return qp(prm::QpServiceType::xrc).set("qpc.xrcd", xrcd).set("rq_type", 3); };
  refused(Syndrome::qp_xrcd, pair().set("qpc.xrcd", 77));
  refused(Syndrome::qp_xrc_rq, pair().set("rq_type", 0));
  refused(Syndrome::qp_pd, pair().set("qpc.pd", kMissing));
  refused(Syndrome::qp_srq, pair().set("rq_type", 1).set("srqn_rmpn_xrqn", kMissing));
  const std::uint32_t target = done(pair());
  done(named(Opcode::destroy_xrc_srq, "xrc_srqn", number));
  refused(Syndrome::xrcd_busy, named(Opcode::dealloc_xrcd, "xrcd", xrcd));
  done(named(Opcode::destroy_qp, "qpn", target));
  done(named(Opcode::destroy_xrq, "xrqn", shell));
  done(named(Opcode::dealloc_xrcd, "xrcd", xrcd));
}

void RefusalTest::pairs() {
  for (const Opcode opcode : {Opcode::query_qp, Opcode::destroy_qp, Opcode::qp_2err, Opcode::qp_2rst, Opcode::rst2init_qp,
                              Opcode::attach_to_mcg, Opcode::detach_from_mcg})
    refused(Syndrome::qp_missing, named(opcode, "qpn", kMissing));
  for (unsigned st : {5u, 6u, 7u, 0x80u, 0xffu}) refused(Syndrome::qp_service_type, qp().set("st", st));
  refused(Syndrome::qp_input_qpn, qp().set("input_qpn", 1));
  refused(Syndrome::qp_ece, qp().set("ece", 1));
  refused(Syndrome::qp_signature, qp().set("wq_signature", 1));
  refused(Syndrome::qp_offload, qp().set("offload_type", 1));
  refused(Syndrome::qp_drain_sigerr, qp().set("drain_sigerr", 1));
  refused(Syndrome::qp_ts_format, qp().set("ts_format", 2));
  for (unsigned mode : {2u, 3u}) refused(Syndrome::qp_dbr_mode, qp().set("send_dbr_mode", mode));
  refused(Syndrome::qp_rlky, qp().set("rlky", 1));
  for (const char* cd : {"cd_master", "cd_slave_send", "cd_slave_receive"}) refused(Syndrome::qp_cross_channel, qp().set(cd, 1));
  refused(Syndrome::qp_cs_req, qp().set("cs_req", 1));
  refused(Syndrome::qp_cs_res, qp().set("cs_res", 3));
  for (unsigned type : {2u, 4u, 7u}) refused(Syndrome::qp_rq_type, qp().set("rq_type", type));
  refused(Syndrome::qp_pd, qp().set("qpc.pd", kMissing));
  refused(Syndrome::qp_uar, qp().set("uar_page", kMissing));
  refused(Syndrome::qp_send_cq, qp().set("cqn_snd", kMissing));
  refused(Syndrome::qp_recv_cq, qp().set("cqn_rcv", kMissing));
  refused(Syndrome::qp_srq, qp().set("rq_type", 1).set("srqn_rmpn_xrqn", kMissing));
  // Multicast.
  const std::uint32_t rc = done(qp()), ud = done(qp(prm::QpServiceType::ud));
  const auto group = [&](Opcode opcode, std::uint32_t qpn, unsigned byte) {
    return named(opcode, "qpn", qpn).set("multicast_gid", byte);
  };
  refused(Syndrome::mcg_qp_type, group(Opcode::attach_to_mcg, rc, 0xff));
  refused(Syndrome::mcg_gid, group(Opcode::attach_to_mcg, ud, 0xfe));
  refused(Syndrome::mcg_not_attached, group(Opcode::detach_from_mcg, ud, 0xff));
  done(group(Opcode::attach_to_mcg, ud, 0xff));
  refused(Syndrome::qp_attached, named(Opcode::destroy_qp, "qpn", ud));
  done(group(Opcode::detach_from_mcg, ud, 0xff));
  for (unsigned i = 0; i < 240; ++i) done(group(Opcode::attach_to_mcg, done(qp(prm::QpServiceType::ud)), 0xff));
  refused(Syndrome::mcg_full, group(Opcode::attach_to_mcg, ud, 0xff));
}

void RefusalTest::transitions() {
  const std::uint32_t qpn = done(qp());
  const auto to = [&](Opcode opcode) {
    return named(opcode, "qpn", qpn).set("primary_address_path.vhca_port_num", 1).set("mtu", 3).set("log_msg_max", 30);
  };
  for (const Opcode opcode : {Opcode::init2init_qp, Opcode::init2rtr_qp, Opcode::rtr2rts_qp, Opcode::rts2rts_qp,
                              Opcode::sqerr2rts_qp, Opcode::sqd_rts_qp, Opcode::rts2sqd_qp, Opcode::sqd2sqd_qp})
    refused(Syndrome::qp_state, to(opcode));
  refused(Syndrome::qp_opt_param_mask, to(Opcode::rst2init_qp).set("opt_param_mask", 1u << 31));
  for (unsigned port : {0u, 3u, 255u})
    refused(Syndrome::qp_port, to(Opcode::rst2init_qp).set("primary_address_path.vhca_port_num", port));
  refused(Syndrome::qp_pkey_index, to(Opcode::rst2init_qp).set("primary_address_path.pkey_index", 1));
  refused(Syndrome::qp_lag_port, to(Opcode::rst2init_qp).set("lag_tx_port_affinity", 15));
  refused(Syndrome::qp_counter, to(Opcode::rst2init_qp).set("counter_set_id", 200));
  refused(Syndrome::qp_atomic_mode, to(Opcode::rst2init_qp).set("atomic_mode", 15));
  refused(Syndrome::qp_drain_sigerr,
          to(Opcode::rst2init_qp).set("opt_param_mask", prm::QpOptParam::drain_sigerr).set("drain_sigerr", 1));
  done(to(Opcode::rst2init_qp));
  refused(Syndrome::qp_ext_opt_param_mask, to(Opcode::init2init_qp).set("opt_param_mask_95_32", 1ull << 63));
  for (unsigned mtu : {0u, 6u, 7u}) refused(Syndrome::qp_mtu, to(Opcode::init2rtr_qp).set("mtu", mtu));
  refused(Syndrome::qp_log_msg_max, to(Opcode::init2rtr_qp).set("log_msg_max", 31));
  refused(Syndrome::qp_log_rra_max, to(Opcode::init2rtr_qp).set("log_rra_max", 5));
  refused(Syndrome::qp_alternate_path, to(Opcode::init2rtr_qp).set("opt_param_mask", prm::QpOptParam::alt_addr_path));
  done(to(Opcode::init2rtr_qp));
  refused(Syndrome::qp_log_sra_max, to(Opcode::rtr2rts_qp).set("log_sra_max", 7));
  done(to(Opcode::rtr2rts_qp));
}

void RefusalTest::addresses() {
  refused(Syndrome::roce_port, named(Opcode::query_roce_address, "vhca_port_num", 3));
  refused(Syndrome::roce_index, named(Opcode::query_roce_address, "roce_address_index", 256));
  const auto set = [&] { return named(Opcode::set_roce_address, "roce_address_index", 9).set("source_l3_address", 0x20).set("roce_version", 2); };
  refused(Syndrome::roce_port, set().set("vhca_port_num", 15));
  refused(Syndrome::roce_index, set().set("roce_address_index", 0xffff));
  refused(Syndrome::roce_vlan, set().set("vlan_valid", 1));
  for (unsigned version : {1u, 3u, 255u}) refused(Syndrome::roce_version, set().set("roce_version", version));
}

void RefusalTest::vports() {
  for (const Opcode opcode : {Opcode::query_vport_state, Opcode::query_nic_vport_context, Opcode::modify_nic_vport_context,
                              Opcode::query_hca_vport_context, Opcode::query_hca_vport_gid, Opcode::query_hca_vport_pkey,
                              Opcode::query_vport_counter, Opcode::query_esw_vport_context}) {
    refused(Syndrome::other_vport, named(opcode, "vport_number", 1));
    for (unsigned number : {1u, 0xfffeu, 0xffffu})
      refused(Syndrome::other_vport, named(opcode, "vport_number", number).set("other_vport", 1));
  }
  for (const Opcode opcode : {Opcode::query_hca_vport_context, Opcode::query_hca_vport_gid, Opcode::query_hca_vport_pkey,
                              Opcode::query_vport_counter})
    refused(Syndrome::vport_port, named(opcode, "port_num", 3));
  refused(Syndrome::vport_op_mod, named(Opcode::query_vport_state, "op_mod", 3));
  refused(Syndrome::vport_list_type, named(Opcode::query_nic_vport_context, "allowed_list_type", 3));
  const auto modify = [&](const char* select) { return named(Opcode::modify_nic_vport_context, select, 1); };
  for (const char* f : {"field_select.node_guid", "field_select.port_guid", "field_select.permanent_address"})
    refused(Syndrome::vport_identity, modify(f));
  refused(Syndrome::vport_affiliation, modify("field_select.affiliation"));
  refused(Syndrome::vport_address_list, modify("field_select.addresses_list"));
  refused(Syndrome::vport_min_inline, modify("field_select.min_inline").set("min_wqe_inline_mode", 1));
  refused(Syndrome::vport_roce_off, modify("field_select.roce_en"));
  refused(Syndrome::vport_mtu, modify("field_select.mtu").set("nic_vport_context.mtu", 0xffff));
  refused(Syndrome::vport_gid_index, named(Opcode::query_hca_vport_gid, "gid_index", 256));
  refused(Syndrome::vport_gid_room, named(Opcode::query_hca_vport_gid, "gid_index", 0xffff), 0x20);
  refused(Syndrome::vport_pkey_index, named(Opcode::query_hca_vport_pkey, "pkey_index", 1));
  refused(Syndrome::vport_pkey_room, Command(Opcode::query_hca_vport_pkey), 0x10);
  refused(Syndrome::vport_counter_clear, named(Opcode::query_vport_counter, "clear", 1));
}

void RefusalTest::counters_and_registers() {
  refused(Syndrome::counter_missing, named(Opcode::query_q_counter, "counter_set_id", 200));
  refused(Syndrome::counter_missing, named(Opcode::dealloc_q_counter, "counter_set_id", 200));
  const std::uint32_t set = prm::load_be32(run(Command(Opcode::alloc_q_counter)).data() + 8) & 0xff;
  const auto uid = static_cast<std::uint16_t>(prm::load_be32(run(Command(Opcode::create_uctx)).data() + 8));
  refused(Syndrome::counter_not_own, named(Opcode::query_q_counter, "counter_set_id", set).set("clear", 1).uid(uid));
  const auto reg = [&](prm::RegisterId id, unsigned op, std::uint32_t first) {
    Command c = named(Opcode::access_reg, "register_id", static_cast<unsigned>(id)).set("op_mod", op);
    c.in.resize(c.entry->in_size + 0x200);
    prm::store_be32(c.in.data() + c.entry->in_size, first);
    return c;
  };
  using Id = prm::RegisterId;
  constexpr std::uint32_t kPort1 = 1u << 16;
  refused(Syndrome::register_unknown, reg(static_cast<Id>(0x1234), 1, kPort1));
  refused(Syndrome::register_op_mod, reg(Id::ptys, 2, kPort1));
  refused(Syndrome::register_write_uid, reg(Id::ptys, 0, kPort1).uid(uid));
  refused(Syndrome::register_no_module, reg(Id::mcia, 1, kPort1));
  for (const Id id : {Id::ptys, Id::paos, Id::pmtu, Id::ppcnt}) {
    Command brief = reg(id, 1, kPort1);
    brief.in.resize(brief.entry->in_size);
    refused(Syndrome::register_input_length, brief);
    refused(Syndrome::register_output_length, reg(id, 1, kPort1), brief.entry->out_size);
    for (std::uint32_t port : {0u, 3u, 255u}) refused(Syndrome::register_port, reg(id, 1, port << 16));
  }
  refused(Syndrome::register_read_only, reg(Id::ptys, 0, kPort1 | 4));
  refused(Syndrome::register_read_only, reg(Id::ppcnt, 0, kPort1));
  refused(Syndrome::ptys_proto, reg(Id::ptys, 1, kPort1 | 1));
  Command paos = reg(Id::paos, 0, kPort1 | 0xf << 8);
  prm::View<prm::PaosReg>(paos.in.data() + paos.entry->in_size).set<prm::PaosReg::ase>(1);
  refused(Syndrome::paos_status, paos);
  refused(Syndrome::pmtu_fixed, reg(Id::pmtu, 0, kPort1));
  Command group = reg(Id::ppcnt, 1, kPort1);
  prm::View<prm::PpcntReg>(group.in.data() + group.entry->in_size).set<prm::PpcntReg::grp>(static_cast<prm::PpcntGroup>(0x3f));
  refused(Syndrome::ppcnt_group, group);
}

// A device so small that everything runs out, with one port.
void RefusalTest::limits() {
  TearDown();
  auto& l = profile_.limits;
  l.log_max_pd = 1;
  l.max_uar = 2;
  l.log_max_transport_domain = l.log_max_uctx = l.log_max_umem = l.max_q_counters = 0;
  l.log_max_eq = l.log_max_cq = l.log_max_srq = l.log_max_qp = l.log_max_mkey = 0;
  l.log_max_qp_sz = l.log_max_srq_sz = 5;
  l.max_wqe_sz_rq = 128;
  profile_.lag = false;
  profile_.gid_table_size = 16;
  SetUp();
  refused(Syndrome::pd_none_left, Command(Opcode::alloc_pd));
  refused(Syndrome::uar_none_left, Command(Opcode::alloc_uar));
  refused(Syndrome::td_none_left, Command(Opcode::alloc_transport_domain));
  refused(Syndrome::uctx_none_left, Command(Opcode::create_uctx));
  refused(Syndrome::umem_none_left, Command(Opcode::create_umem).set("num_of_mtt", 1).tail64(0, memory() | 3));
  refused(Syndrome::counter_none_left, Command(Opcode::alloc_q_counter));
  refused(Syndrome::eq_none_left, eq());
  refused(Syndrome::cq_none_left, cq());
  refused(Syndrome::qp_sq_size, qp().set("log_sq_size", 6));
  refused(Syndrome::qp_rq_size, qp().set("log_rq_size", 6));
  refused(Syndrome::qp_rq_stride, qp().set("log_rq_stride", 4));
  refused(Syndrome::srq_size, srq().set("log_srq_size", 6));
  const std::uint32_t qpn = done(qp());
  refused(Syndrome::qp_none_left, qp());
  done(srq());
  refused(Syndrome::srq_none_left, srq());
  done(mkey());
  refused(Syndrome::mkey_none_left, mkey());
  refused(Syndrome::lag_off, Command(Opcode::query_lag));
  done(named(Opcode::rst2init_qp, "qpn", qpn).set("primary_address_path.vhca_port_num", 1));
  refused(Syndrome::qp_sgid_index,
          named(Opcode::init2rtr_qp, "qpn", qpn).set("mtu", 3).set("primary_address_path.src_addr_index", 16));
}

TEST_F(RefusalTest, EveryOneCanBeProvoked) {
  hca();
  domains();
  user_contexts();
  places();
  keys();
  event_queues();
  completion_queues();
  shared_queues();
  xrc_queues();
  pairs();
  transitions();
  addresses();
  vports();
  counters_and_registers();
  limits();
  for (const auto& row : refusal_table()) {
    const auto syndrome = static_cast<Syndrome>(row.syndrome);
    const bool unprovoked = std::ranges::find(kUnprovoked, syndrome) != std::end(kUnprovoked);
    EXPECT_NE(seen_.contains(syndrome), unprovoked) << std::hex << row.syndrome << " " << row.reason;
  }
}

}  // namespace
}  // namespace verbena::device
