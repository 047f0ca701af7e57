// Device commands in named fields: Command<prm::Rts2rtsQpIn> is the request, Reply<...> what the device answers.
//
//   using In = verbena::prm::Rts2rtsQpIn;
//   verbena::Command<In> change;                       // zeroed, the opcode is in
//   change.set<In::opt_param_mask_95_32>(verbena::prm::QpExtOptParam::udp_sport);
//   change.sub<In::qpc>().sub<prm::Qpc::primary_address_path>().set<prm::Ads::udp_sport>(0xc123);
//   qp.modify(change);                                 // throws verbena::Error
//
// A field of another layout does not compile, and neither does a command at the wrong door (docs/cpp.md). Layouts are
// those of prm/. A command that is not in the table, such as a general object's, gets its own specialisation of
// CommandTraits.
//
// Threads: plain values; any thread.
#pragma once

#include <stdexcept>
#include <vector>

#include "error.h"
#include "prm/admin.h"
#include "prm/caps.h"
#include "prm/cq.h"
#include "prm/dct.h"
#include "prm/eq.h"
#include "prm/general_object.h"
#include "prm/misc.h"
#include "prm/mkey.h"
#include "prm/port.h"
#include "prm/qp.h"
#include "prm/raw.h"
#include "prm/registers.h"
#include "prm/scheduling.h"
#include "prm/srq.h"

namespace verbena {

// Which call the kernel takes a command by (docs/devx.md). `driver`: by none; the command is the driver's own.
enum class Door { create, query, modify, general, driver };

// What belongs to a request: its opcode, its door, the layout of the reply.
template <class In>
struct CommandTraits;

// clang-format off
#define VERBENA_COMMANDS(X) \
  X(query_hca_cap, QueryHcaCap, general) \
  X(query_adapter, QueryAdapter, general) \
  X(init_hca, InitHca, driver) \
  X(teardown_hca, TeardownHca, driver) \
  X(enable_hca, EnableHca, driver) \
  X(disable_hca, DisableHca, driver) \
  X(query_pages, QueryPages, driver) \
  X(manage_pages, ManagePages, driver) \
  X(set_hca_cap, SetHcaCap, driver) \
  X(query_issi, QueryIssi, general) \
  X(set_issi, SetIssi, driver) \
  X(set_driver_version, SetDriverVersion, driver) \
  X(create_mkey, CreateMkey, create) \
  X(query_mkey, QueryMkey, query) \
  X(destroy_mkey, DestroyMkey, driver) \
  X(query_special_contexts, QuerySpecialContexts, driver) \
  X(page_fault_resume, PageFaultResume, driver) \
  X(alloc_memic, AllocMemic, driver) \
  X(dealloc_memic, DeallocMemic, driver) \
  X(modify_memic, ModifyMemic, driver) \
  X(create_eq, CreateEq, driver) \
  X(destroy_eq, DestroyEq, driver) \
  X(query_eq, QueryEq, driver) \
  X(create_cq, CreateCq, create) \
  X(destroy_cq, DestroyCq, driver) \
  X(query_cq, QueryCq, query) \
  X(modify_cq, ModifyCq, modify) \
  X(create_qp, CreateQp, create) \
  X(destroy_qp, DestroyQp, driver) \
  X(rst2init_qp, Rst2initQp, modify) \
  X(init2rtr_qp, Init2rtrQp, modify) \
  X(rtr2rts_qp, Rtr2rtsQp, modify) \
  X(rts2rts_qp, Rts2rtsQp, modify) \
  X(sqerr2rts_qp, Sqerr2rtsQp, modify) \
  X(qp_2err, Qp2err, modify) \
  X(qp_2rst, Qp2rst, modify) \
  X(query_qp, QueryQp, query) \
  X(sqd_rts_qp, Sqd2rtsQp, driver) \
  X(mad_ifc, MadIfc, driver) \
  X(init2init_qp, Init2initQp, modify) \
  X(create_psv, CreatePsv, create) \
  X(destroy_psv, DestroyPsv, driver) \
  X(create_srq, CreateSrq, create) \
  X(destroy_srq, DestroySrq, driver) \
  X(query_srq, QuerySrq, query) \
  X(arm_rq, ArmRq, modify) \
  X(create_xrc_srq, CreateXrcSrq, create) \
  X(destroy_xrc_srq, DestroyXrcSrq, driver) \
  X(query_xrc_srq, QueryXrcSrq, query) \
  X(arm_xrc_srq, ArmXrcSrq, modify) \
  X(create_dct, CreateDct, create) \
  X(destroy_dct, DestroyDct, driver) \
  X(drain_dct, DrainDct, driver) \
  X(query_dct, QueryDct, query) \
  X(arm_dct_for_key_violation, ArmDct, modify) \
  X(create_xrq, CreateXrq, create) \
  X(destroy_xrq, DestroyXrq, driver) \
  X(query_xrq, QueryXrq, query) \
  X(arm_xrq, ArmXrq, modify) \
  X(query_vport_state, QueryVportState, general) \
  X(modify_vport_state, ModifyVportState, driver) \
  X(query_nic_vport_context, QueryNicVportContext, general) \
  X(modify_nic_vport_context, ModifyNicVportContext, driver) \
  X(query_roce_address, QueryRoceAddress, general) \
  X(set_roce_address, SetRoceAddress, driver) \
  X(query_hca_vport_context, QueryHcaVportContext, general) \
  X(modify_hca_vport_context, ModifyHcaVportContext, driver) \
  X(query_hca_vport_gid, QueryHcaVportGid, driver) \
  X(query_hca_vport_pkey, QueryHcaVportPkey, driver) \
  X(query_vnic_env, QueryVnicEnv, general) \
  X(query_vport_counter, QueryVportCounter, general) \
  X(alloc_q_counter, AllocQCounter, create) \
  X(dealloc_q_counter, DeallocQCounter, driver) \
  X(query_q_counter, QueryQCounter, query) \
  X(set_pp_rate_limit, SetPpRateLimit, driver) \
  X(create_scheduling_element, CreateSchedulingElement, create) \
  X(destroy_scheduling_element, DestroySchedulingElement, driver) \
  X(query_scheduling_element, QuerySchedulingElement, query) \
  X(modify_scheduling_element, ModifySchedulingElement, modify) \
  X(alloc_pd, AllocPd, create) \
  X(dealloc_pd, DeallocPd, driver) \
  X(alloc_uar, AllocUar, driver) \
  X(dealloc_uar, DeallocUar, driver) \
  X(access_reg, AccessRegister, driver) \
  X(attach_to_mcg, AttachToMcg, create) \
  X(detach_from_mcg, DetachFromMcg, driver) \
  X(nop, Nop, general) \
  X(alloc_xrcd, AllocXrcd, create) \
  X(dealloc_xrcd, DeallocXrcd, driver) \
  X(alloc_transport_domain, AllocTransportDomain, create) \
  X(dealloc_transport_domain, DeallocTransportDomain, driver) \
  X(set_l2_table_entry, SetL2TableEntry, create) \
  X(query_l2_table_entry, QueryL2TableEntry, query) \
  X(delete_l2_table_entry, DeleteL2TableEntry, driver) \
  X(create_lag, CreateLag, driver) \
  X(modify_lag, ModifyLag, driver) \
  X(query_lag, QueryLag, general) \
  X(destroy_lag, DestroyLag, driver) \
  X(create_vport_lag, CreateVportLag, driver) \
  X(destroy_vport_lag, DestroyVportLag, driver) \
  X(create_tir, CreateTir, create) \
  X(modify_tir, ModifyTir, modify) \
  X(destroy_tir, DestroyTir, driver) \
  X(query_tir, QueryTir, query) \
  X(create_sq, CreateSq, create) \
  X(modify_sq, ModifySq, modify) \
  X(destroy_sq, DestroySq, driver) \
  X(query_sq, QuerySq, query) \
  X(create_rq, CreateRq, create) \
  X(modify_rq, ModifyRq, modify) \
  X(destroy_rq, DestroyRq, driver) \
  X(query_rq, QueryRq, query) \
  X(create_rmp, CreateRmp, create) \
  X(modify_rmp, ModifyRmp, modify) \
  X(destroy_rmp, DestroyRmp, driver) \
  X(query_rmp, QueryRmp, query) \
  X(create_tis, CreateTis, create) \
  X(modify_tis, ModifyTis, modify) \
  X(destroy_tis, DestroyTis, driver) \
  X(query_tis, QueryTis, query) \
  X(create_rqt, CreateRqt, create) \
  X(modify_rqt, ModifyRqt, modify) \
  X(destroy_rqt, DestroyRqt, driver) \
  X(query_rqt, QueryRqt, query) \
  X(create_uctx, CreateUctx, driver) \
  X(destroy_uctx, DestroyUctx, driver) \
  X(create_umem, CreateUmem, driver) \
  X(destroy_umem, DestroyUmem, driver)  // clang-format on

#define X(op, name, where)                                 \
  template <>                                              \
  struct CommandTraits<prm::name##In> {                    \
    using Out = prm::name##Out;                            \
    static constexpr prm::Opcode opcode = prm::Opcode::op; \
    static constexpr Door door = Door::where;              \
    static constexpr const char* call = #op;               \
  };
VERBENA_COMMANDS(X)
#undef X

// Bytes of a layout with any number of bytes behind it, where a command has a list.
template <class L>
class Mailbox {
 public:
  explicit Mailbox(std::size_t tail = 0) : bytes_(L::size + tail) {}

  template <prm::MemberOf<L> F>
  typename F::value_type get() const {
    return view().template get<F>();
  }
  template <prm::MemberOf<L> F>
  Mailbox& set(typename F::value_type value) {
    view().template set<F>(value);
    return *this;
  }
  template <prm::MemberOf<L> S>
  auto sub() {
    return view().template sub<S>();
  }
  template <prm::MemberOf<L> S>
  auto sub() const {
    return view().template sub<S>();
  }
  // The i-th element of a list; throws std::out_of_range if there is no room for it.
  template <prm::MemberOf<L> A>
  auto at(std::size_t i) {
    if (A::offset + (i + 1) * A::layout::size > bytes_.size()) throw std::out_of_range("beyond the end of the command");
    return view().template at<A>(i);
  }
  template <prm::MemberOf<L> B>
  auto bytes() {
    return view().template bytes<B>();
  }
  prm::View<L> view() { return prm::View<L>(bytes_.data()); }
  prm::ConstView<L> view() const { return prm::ConstView<L>(bytes_.data()); }
  std::byte* data() { return bytes_.data(); }
  const std::byte* data() const { return bytes_.data(); }
  std::size_t size() const { return bytes_.size(); }

 private:
  std::vector<std::byte> bytes_;  // from operator new: aligned enough for 64-bit access
};

template <class In>
class Command : public Mailbox<In> {
 public:
  using Traits = CommandTraits<In>;
  explicit Command(std::size_t tail = 0) : Mailbox<In>(tail) {
    prm::View<prm::CommandIn>(this->data()).template set<prm::CommandIn::opcode>(Traits::opcode);
  }
};

template <class In>
using Reply = Mailbox<typename CommandTraits<In>::Out>;

template <class In, Door door>
concept GoesBy = CommandTraits<In>::door == door;

namespace detail {

// Throws what `error`, the errno that a call gave, and the reply say.
template <class In>
void check(int error, const Reply<In>& reply) {
  if (error == 0) return;
  const prm::ConstView<prm::CommandOut> head(reply.data());
  const auto status = head.get<prm::CommandOut::status>();
  if (status == prm::Status::ok) throw Error(CommandTraits<In>::call, error);
  throw Error(CommandTraits<In>::call, error, status, head.get<prm::CommandOut::syndrome>());
}

}  // namespace detail
}  // namespace verbena
