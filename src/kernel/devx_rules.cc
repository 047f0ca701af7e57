#include "kernel/devx_rules.h"

#include <algorithm>
#include <cstring>

#include "prm/cq.h"
#include "prm/flow.h"
#include "prm/general_object.h"
#include "prm/mkey.h"
#include "prm/misc.h"
#include "prm/qp.h"
#include "prm/raw.h"
#include "prm/scheduling.h"
#include "prm/srq.h"

namespace verbena::kernel {
namespace {

using prm::Opcode;
using InHead = prm::GeneralObjInCmdHdr;
using OutHead = prm::GeneralObjOutCmdHdr;

constexpr std::uint32_t kNumber = 0xffffff;  // most numbers have 24 bits
constexpr std::uint32_t kCounterSet = 0xff;
constexpr std::uint32_t kWhole = ~0u;
constexpr Opcode kNone{};

// The number lies where the general header has obj_id, in requests as in replies, with few exceptions.
struct CreateRow {
  Opcode create;
  Opcode destroy;  // kNone: the device has no such object, so none is ever made
  std::uint32_t mask = kNumber;
};

constexpr CreateRow kCreates[] = {
    {Opcode::create_general_object, Opcode::destroy_general_object, kWhole},
    {Opcode::create_mkey, Opcode::destroy_mkey},
    {Opcode::create_cq, Opcode::destroy_cq},
    {Opcode::alloc_pd, Opcode::dealloc_pd},
    {Opcode::alloc_transport_domain, Opcode::dealloc_transport_domain},
    {Opcode::create_rmp, Opcode::destroy_rmp},
    {Opcode::create_sq, Opcode::destroy_sq},
    {Opcode::create_rq, Opcode::destroy_rq},
    {Opcode::create_rqt, Opcode::destroy_rqt},
    {Opcode::create_tir, Opcode::destroy_tir},
    {Opcode::create_tis, Opcode::destroy_tis},
    {Opcode::alloc_q_counter, Opcode::dealloc_q_counter, kCounterSet},
    {Opcode::alloc_flow_counter, Opcode::dealloc_flow_counter, kWhole},
    {Opcode::alloc_packet_reformat_context, Opcode::dealloc_packet_reformat_context, kWhole},
    {Opcode::alloc_modify_header_context, Opcode::dealloc_modify_header_context, kWhole},
    {Opcode::create_qp, Opcode::destroy_qp},
    {Opcode::create_srq, Opcode::destroy_srq},
    {Opcode::create_xrc_srq, Opcode::destroy_xrc_srq},
    {Opcode::create_dct, Opcode::destroy_dct},
    {Opcode::create_xrq, Opcode::destroy_xrq},
    {Opcode::attach_to_mcg, Opcode::detach_from_mcg},
    {Opcode::alloc_xrcd, Opcode::dealloc_xrcd},
    {Opcode::create_psv, Opcode::destroy_psv},
    {Opcode::create_flow_table, Opcode::destroy_flow_table},
    {Opcode::create_flow_group, Opcode::destroy_flow_group, kWhole},
    {Opcode::set_flow_table_entry, Opcode::delete_flow_table_entry, kWhole},
    {Opcode::create_scheduling_element, Opcode::destroy_scheduling_element, kWhole},
    {Opcode::add_vxlan_udp_dport, kNone},
    {Opcode::set_l2_table_entry, kNone},
};

// A command on an object and the kind of object it is for.
struct UseRow {
  Opcode opcode;
  Opcode kind;
};

constexpr UseRow kQueries[] = {
    {Opcode::query_general_object, Opcode::create_general_object},
    {Opcode::query_mkey, Opcode::create_mkey},
    {Opcode::query_cq, Opcode::create_cq},
    {Opcode::query_rmp, Opcode::create_rmp},
    {Opcode::query_sq, Opcode::create_sq},
    {Opcode::query_rq, Opcode::create_rq},
    {Opcode::query_rqt, Opcode::create_rqt},
    {Opcode::query_tir, Opcode::create_tir},
    {Opcode::query_tis, Opcode::create_tis},
    {Opcode::query_q_counter, Opcode::alloc_q_counter},
    {Opcode::query_modify_header_context, Opcode::alloc_modify_header_context},
    {Opcode::query_packet_reformat_context, Opcode::alloc_packet_reformat_context},
    {Opcode::query_flow_table, Opcode::create_flow_table},
    {Opcode::query_flow_group, Opcode::create_flow_group},
    {Opcode::query_flow_table_entry, Opcode::set_flow_table_entry},
    {Opcode::query_flow_counter, Opcode::alloc_flow_counter},
    {Opcode::query_scheduling_element, Opcode::create_scheduling_element},
    {Opcode::query_l2_table_entry, Opcode::set_l2_table_entry},
    {Opcode::query_qp, Opcode::create_qp},
    {Opcode::query_srq, Opcode::create_srq},
    {Opcode::query_xrc_srq, Opcode::create_xrc_srq},
    {Opcode::query_dct, Opcode::create_dct},
    {Opcode::query_xrq, Opcode::create_xrq},
    {Opcode::query_xrq_dc_params_entry, Opcode::create_xrq},
    {Opcode::query_xrq_error_params, Opcode::create_xrq},
};

constexpr UseRow kModifies[] = {
    {Opcode::modify_general_object, Opcode::create_general_object},
    {Opcode::modify_cq, Opcode::create_cq},
    {Opcode::modify_rmp, Opcode::create_rmp},
    {Opcode::modify_sq, Opcode::create_sq},
    {Opcode::modify_rq, Opcode::create_rq},
    {Opcode::modify_rqt, Opcode::create_rqt},
    {Opcode::modify_tir, Opcode::create_tir},
    {Opcode::modify_tis, Opcode::create_tis},
    {Opcode::rst2init_qp, Opcode::create_qp},
    {Opcode::init2rtr_qp, Opcode::create_qp},
    {Opcode::init2init_qp, Opcode::create_qp},
    {Opcode::rtr2rts_qp, Opcode::create_qp},
    {Opcode::rts2rts_qp, Opcode::create_qp},
    {Opcode::sqerr2rts_qp, Opcode::create_qp},
    {Opcode::qp_2err, Opcode::create_qp},
    {Opcode::qp_2rst, Opcode::create_qp},
    {Opcode::modify_flow_table, Opcode::create_flow_table},
    {Opcode::set_flow_table_entry, Opcode::set_flow_table_entry},
    {Opcode::modify_scheduling_element, Opcode::create_scheduling_element},
    {Opcode::add_vxlan_udp_dport, Opcode::add_vxlan_udp_dport},
    {Opcode::set_l2_table_entry, Opcode::set_l2_table_entry},
    {Opcode::arm_rq, Opcode::create_rq},
    {Opcode::arm_xrc_srq, Opcode::create_xrc_srq},
    {Opcode::arm_dct_for_key_violation, Opcode::create_dct},
    {Opcode::arm_xrq, Opcode::create_xrq},
    {Opcode::set_xrq_dc_params_entry, Opcode::create_xrq},
    {Opcode::release_xrq_error, Opcode::create_xrq},
    {Opcode::modify_xrq, Opcode::create_xrq},
};

constexpr Opcode kOpenToAll[] = {Opcode::query_hca_cap, Opcode::query_hca_vport_context,
                                 Opcode::query_esw_vport_context, Opcode::query_esw_functions};
constexpr Opcode kGeneral[] = {
    Opcode::query_hca_cap,          Opcode::query_hca_vport_context, Opcode::query_vport_state,
    Opcode::query_adapter,          Opcode::query_issi,              Opcode::query_nic_vport_context,
    Opcode::query_esw_vport_context, Opcode::query_esw_functions,    Opcode::query_roce_address,
    Opcode::query_vnic_env,         Opcode::query_vport_counter,     Opcode::get_dropped_packet_log,
    Opcode::nop,                    Opcode::query_cong_status,       Opcode::query_cong_params,
    Opcode::query_cong_statistics,  Opcode::query_lag,
};
// Opcodes that the device's makers set aside for commands of no one object.
constexpr std::uint16_t kGeneralStart = 0xb00, kGeneralEnd = 0xd00;

Opcode opcode_of(Mailbox in) { return static_cast<Opcode>(prm::ConstView<InHead>(in.data()).get<InHead::opcode>()); }
std::uint16_t type_of(Mailbox in) {
  return static_cast<std::uint16_t>(prm::ConstView<InHead>(in.data()).get<InHead::obj_type>());
}

const CreateRow* create_row(Opcode kind) {
  const auto* row = std::ranges::find(kCreates, kind, &CreateRow::create);
  return row == std::end(kCreates) ? nullptr : row;
}

// A field of a request that may be shorter than its layout; what is missing reads as zero, as the device reads it.
template <class L, class F>
auto field(Mailbox in) {
  prm::Box<L> copy;
  std::memcpy(copy.data(), in.data(), std::min(in.size(), std::size_t{L::size}));
  return copy.template get<F>();
}

// Commands of steering name their object behind the table it is in, with few exceptions.
std::uint32_t number_in(Mailbox in, Opcode opcode, const CreateRow& kind) {
  switch (kind.create) {
    case Opcode::create_scheduling_element:
      return field<prm::QuerySchedulingElementIn, prm::QuerySchedulingElementIn::scheduling_element_id>(in);
    case Opcode::create_flow_table:
      return field<prm::QueryFlowTableIn, prm::QueryFlowTableIn::table_id>(in);
    case Opcode::create_flow_group:
      return field<prm::QueryFlowGroupIn, prm::QueryFlowGroupIn::group_id>(in);
    case Opcode::set_flow_table_entry:
      return field<prm::QueryFteIn, prm::QueryFteIn::flow_index>(in);
    case Opcode::alloc_flow_counter:
      return field<prm::QueryFlowCounterIn, prm::QueryFlowCounterIn::flow_counter_id>(in);
    default:
      if (opcode == Opcode::query_q_counter) return field<prm::QueryQCounterIn, prm::QueryQCounterIn::counter_set_id>(in);
      return prm::ConstView<InHead>(in.data()).get<InHead::obj_id>() & kind.mask;
  }
}

template <std::size_t N>
std::optional<ObjectId> named_object(const UseRow (&rows)[N], Mailbox in) {
  const Opcode opcode = opcode_of(in);
  const auto* row = std::ranges::find(rows, opcode, &UseRow::opcode);
  if (row == std::end(rows) || is_tunnelled(in)) return std::nullopt;
  ObjectId id{row->kind, 0, 0};
  id.number = number_in(in, opcode, *create_row(row->kind));
  if (row->kind == Opcode::create_general_object) id.type = type_of(in);
  return id;
}

// A view of the request if it is long enough to have the layout; the device refuses shorter ones by itself.
template <class L, class Set>
void edit(std::span<std::byte> in, Set set) {
  if (in.size() >= L::size) set(prm::View<L>(in.data()));
}

// Contexts that describe their ring in a work queue context.
template <class In, class Context>
void ring_in_umem(std::span<std::byte> in) {
  edit<In>(in, [](auto request) {
    const auto wq = request.template sub<typename In::ctx>().template sub<typename Context::wq>();
    wq.template set<prm::Wq::dbr_umem_valid>(1).template set<prm::Wq::wq_umem_valid>(1);
  });
}

template <std::size_t N>
bool is_one_of(const Opcode (&list)[N], Opcode opcode) {
  return std::ranges::find(list, opcode) != std::end(list);
}

}  // namespace

bool is_object_create(Mailbox in) {
  const Opcode opcode = opcode_of(in);
  if (is_tunnelled(in)) return false;
  if (opcode == Opcode::create_psv) return field<prm::CreatePsvIn, prm::CreatePsvIn::num_psv>(in) == 1;
  // op_mod 0 enters a rule, 1 changes it.
  if (opcode == Opcode::set_flow_table_entry) return type_of(in) == 0;
  return create_row(opcode) != nullptr;
}

std::optional<ObjectId> queried_object(Mailbox in) { return named_object(kQueries, in); }
std::optional<ObjectId> modified_object(Mailbox in) {
  if (opcode_of(in) == Opcode::set_flow_table_entry && type_of(in) != 1) return std::nullopt;
  return named_object(kModifies, in);
}

bool is_general_command(Mailbox in) {
  const auto opcode = opcode_of(in);
  const auto number = static_cast<std::uint16_t>(opcode);
  return (number >= kGeneralStart && number < kGeneralEnd) || is_one_of(kGeneral, opcode);
}

bool is_open_to_all(Mailbox in) { return is_one_of(kOpenToAll, opcode_of(in)); }
bool is_tunnelled(Mailbox in) { return prm::ConstView<InHead>(in.data()).get<InHead::vhca_tunnel_id>() != 0; }

ObjectId created_object(Mailbox in, Mailbox out) {
  const Opcode opcode = opcode_of(in);
  ObjectId id{opcode, 0, 0};
  if (opcode == Opcode::create_psv) {
    id.number = field<prm::CreatePsvOut, prm::CreatePsvOut::psv0_index>(out);
  } else if (opcode == Opcode::create_scheduling_element) {
    id.number = field<prm::CreateSchedulingElementOut, prm::CreateSchedulingElementOut::scheduling_element_id>(out);
  } else if (opcode == Opcode::attach_to_mcg) {
    id.number = prm::ConstView<InHead>(in.data()).get<InHead::obj_id>() & kNumber;  // the reply has no number
  } else if (opcode == Opcode::set_flow_table_entry) {
    id.number = field<prm::QueryFteIn, prm::QueryFteIn::flow_index>(in);  // the same place as there; no number in the reply
  } else {
    id.number = prm::ConstView<OutHead>(out.data()).get<OutHead::obj_id>() & create_row(opcode)->mask;
  }
  if (opcode == Opcode::create_general_object) id.type = type_of(in);
  return id;
}

namespace {

// Tables, groups and entries are destroyed by requests of one shape: where the table is as at the create, then the number.
std::vector<std::byte> destroy_flow_request(Mailbox in, const ObjectId& object, std::uint16_t uid) {
  using Group = prm::DestroyFlowGroupIn;
  static_assert(Group::size == prm::DestroyFlowTableIn::size && Group::size == prm::DeleteFteIn::size);
  std::vector<std::byte> request(Group::size);
  prm::View<InHead>(request.data()).set<InHead::uid>(uid).set<InHead::opcode>(
      static_cast<std::uint16_t>(create_row(object.kind)->destroy));
  const prm::View<Group> place(request.data());
  place.set<Group::other_vport>(field<prm::CreateFlowGroupIn, prm::CreateFlowGroupIn::other_vport>(in));
  place.set<Group::vport_number>(field<prm::CreateFlowGroupIn, prm::CreateFlowGroupIn::vport_number>(in));
  place.set<Group::table_type>(field<prm::CreateFlowGroupIn, prm::CreateFlowGroupIn::table_type>(in));
  place.set<Group::table_id>(object.kind == Opcode::create_flow_table
                                 ? object.number
                                 : field<prm::CreateFlowGroupIn, prm::CreateFlowGroupIn::table_id>(in));
  if (object.kind == Opcode::create_flow_group) place.set<Group::group_id>(object.number);
  if (object.kind == Opcode::set_flow_table_entry)
    prm::View<prm::DeleteFteIn>(request.data()).set<prm::DeleteFteIn::flow_index>(object.number);
  return request;
}

}  // namespace

std::vector<std::byte> destroy_request(Mailbox in, const ObjectId& object, std::uint16_t uid) {
  if (object.kind == Opcode::create_scheduling_element) {
    using Destroy = prm::DestroySchedulingElementIn;
    std::vector<std::byte> request(Destroy::size);
    prm::View<InHead>(request.data()).set<InHead::uid>(uid);
    prm::View<Destroy> destroy(request.data());
    destroy.set<Destroy::opcode>(Opcode::destroy_scheduling_element).set<Destroy::scheduling_element_id>(object.number);
    destroy.set<Destroy::scheduling_hierarchy>(
        field<prm::CreateSchedulingElementIn, prm::CreateSchedulingElementIn::scheduling_hierarchy>(in));
    return request;
  }
  if (object.kind == Opcode::create_flow_table || object.kind == Opcode::create_flow_group ||
      object.kind == Opcode::set_flow_table_entry)
    return destroy_flow_request(in, object, uid);
  const bool group = object.kind == Opcode::attach_to_mcg;
  std::vector<std::byte> request(group ? std::size_t{prm::DetachFromMcgIn::size} : std::size_t{InHead::size});
  // Detaching names the group as attaching did.
  if (group) std::memcpy(request.data(), in.data(), std::min(in.size(), request.size()));
  prm::View<InHead> head(request.data());
  head.set<InHead::opcode>(static_cast<std::uint16_t>(create_row(object.kind)->destroy));
  head.set<InHead::uid>(uid).set<InHead::obj_id>(object.number);
  head.set<InHead::obj_type>(static_cast<prm::GeneralObjectType>(object.type));
  return request;
}

void require_umem(std::span<std::byte> in) {
  switch (opcode_of(in)) {
    case Opcode::create_mkey:
      return edit<prm::CreateMkeyIn>(in, [](auto request) {
        const auto mode = prm::mkey_access_mode(request.template sub<prm::CreateMkeyIn::memory_key_mkey_entry>());
        if (mode != prm::MkeyAccessMode::klms && mode != prm::MkeyAccessMode::ksm)
          request.template set<prm::CreateMkeyIn::mkey_umem_valid>(1);
      });
    case Opcode::create_cq:
      return edit<prm::CreateCqIn>(in, [](auto request) {
        request.template set<prm::CreateCqIn::cq_umem_valid>(1);
        request.template sub<prm::CreateCqIn::cq_context>().template set<prm::Cqc::dbr_umem_valid>(1);
      });
    case Opcode::modify_cq:
      return edit<prm::ModifyCqIn>(
          in, [](auto request) { request.template set<prm::ModifyCqIn::cq_umem_valid>(1); });
    case Opcode::create_qp:
      return edit<prm::CreateQpIn>(in, [](auto request) {
        request.template set<prm::CreateQpIn::wq_umem_valid>(1);
        request.template sub<prm::CreateQpIn::qpc>().template set<prm::Qpc::dbr_umem_valid>(1);
      });
    case Opcode::create_rmp:
      return ring_in_umem<prm::CreateRmpIn, prm::Rmpc>(in);
    case Opcode::create_xrq:
      return edit<prm::CreateXrqIn>(in, [](auto request) {
        const auto wq = request.template sub<prm::CreateXrqIn::xrq_context>().template sub<prm::Xrqc::wq>();
        wq.template set<prm::Wq::dbr_umem_valid>(1).template set<prm::Wq::wq_umem_valid>(1);
      });
    case Opcode::create_xrc_srq:
      return edit<prm::CreateXrcSrqIn>(in, [](auto request) {
        request.template set<prm::CreateXrcSrqIn::xrc_srq_umem_valid>(1);
        request.template sub<prm::CreateXrcSrqIn::xrc_srq_context_entry>().template set<prm::XrcSrqc::dbr_umem_valid>(1);
      });
    case Opcode::create_sq:
      return ring_in_umem<prm::CreateSqIn, prm::Sqc>(in);
    case Opcode::create_rq:
      return ring_in_umem<prm::CreateRqIn, prm::Rqc>(in);
    default:
      return;
  }
}

}  // namespace verbena::kernel
