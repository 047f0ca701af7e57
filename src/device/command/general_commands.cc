// CREATE, QUERY, MODIFY, DESTROY_GENERAL_OBJECT. Of the many types the device has reserved QP numbers, mappings of
// addresses to QPs, and scheduling elements (qos_commands.cc).
#include <algorithm>
#include <cstring>

#include "device/command/dispatcher.h"
#include "device/command/families.h"
#include "device/command/qos.h"
#include "device/command/state.h"
#include "prm/general_object.h"
#include "support/bytes.h"

namespace verbena::device::command {
namespace {

using In = prm::GeneralObjInCmdHdr;
using Out = prm::GeneralObjOutCmdHdr;
using Type = prm::GeneralObjectType;

constexpr std::size_t kReservedQpnBody = 16;  // reserved, zero

// ---- reserved QP numbers ----

Outcome create_reserved(State& state, const ObjectCall& call) {
  if (call.tail().size() != kReservedQpnBody) return refuse(Syndrome::input_length);
  if (!is_zero(call.tail())) return refuse(Syndrome::object_body);
  if (call.in.get<In::log_obj_range>() > kLogReservedQpns) return refuse(Syndrome::object_range);
  const std::uint32_t first = state.nic.reserve_qpns();
  if (!first) return refuse(Syndrome::object_none_left);
  state.reserved_qpns.create(first, call.uid).log_range = call.in.get<In::log_obj_range>();
  call.out.set<Out::obj_id>(first);
  return {};
}

Maybe<ReservedQpns*> named_reserved(State& state, const ObjectCall& call) {
  return own(state.reserved_qpns.find(call.in.get<In::obj_id>()), call.uid, Syndrome::object_missing);
}

Outcome query_reserved(State& state, const ObjectCall& call) {
  const auto object = named_reserved(state, call);
  if (!object) return refuse(object.error());
  return call.output.size() < Out::size + kReservedQpnBody ? refuse(Syndrome::output_length) : Outcome{};
}

Outcome modify_reserved(State& state, const ObjectCall& call) {
  const auto object = named_reserved(state, call);
  return object ? refuse(Syndrome::object_fixed) : refuse(object.error());
}

Outcome destroy_reserved(State& state, const ObjectCall& call) {
  const auto object = named_reserved(state, call);
  if (!object) return refuse(object.error());
  state.nic.release_qpns(call.in.get<In::obj_id>());
  state.reserved_qpns.erase(call.in.get<In::obj_id>());
  return {};
}

// ---- addresses that follow a QP ----

using Mapping = prm::AvQpMapping;

Outcome create_mapping(State& state, const ObjectCall& call) {
  if (call.tail().size() != Mapping::size) return refuse(Syndrome::input_length);
  if (first_violation<Mapping>(call.tail())) return refuse(Syndrome::mapping_body);
  const prm::ConstView<Mapping> body(call.tail());
  const QpRecord* qp = state.qps.find(body.get<Mapping::qpn>());
  if (!qp || !may_use(*qp, call.uid)) return refuse(Syndrome::mapping_qp);
  if (body.sub<Mapping::remote_address_vector>().get<prm::UdAv::src_addr_index>() >= state.profile.gid_table_size)
    return refuse(Syndrome::mapping_sgid_index);
  const auto [id, mapping] = state.mappings.create(call.uid);
  if (!mapping) return refuse(Syndrome::mapping_none_left);
  std::memcpy(mapping->object.data(), body.data(), Mapping::size);
  mapping->object.set<Mapping::modify_field_select>(0);
  call.out.set<Out::obj_id>(id);
  return {};
}

Maybe<AvQpMapping*> named_mapping(State& state, const ObjectCall& call) {
  return own(state.mappings.find(call.in.get<In::obj_id>()), call.uid, Syndrome::object_missing);
}

Outcome query_mapping(State& state, const ObjectCall& call) {
  const auto mapping = named_mapping(state, call);
  if (!mapping) return refuse(mapping.error());
  if (call.output.size() < Out::size + Mapping::size) return refuse(Syndrome::output_length);
  std::memcpy(call.output.data() + Out::size, (*mapping)->object.data(), Mapping::size);
  return {};
}

Outcome modify_mapping(State& state, const ObjectCall& call) {
  const auto mapping = named_mapping(state, call);
  return mapping ? refuse(Syndrome::object_fixed) : refuse(mapping.error());
}

Outcome destroy_mapping(State& state, const ObjectCall& call) {
  const auto mapping = named_mapping(state, call);
  if (!mapping) return refuse(mapping.error());
  state.mappings.erase(call.in.get<In::obj_id>());
  return {};
}

// ---- by type ----

using Handler = Outcome (*)(State&, const ObjectCall&);
struct Kind {
  Handler create, query, modify, destroy;
};
constexpr Kind kReserved{create_reserved, query_reserved, modify_reserved, destroy_reserved};
constexpr Kind kMapping{create_mapping, query_mapping, modify_mapping, destroy_mapping};
constexpr Kind kElement{create_element_object, query_element_object, modify_element_object, destroy_element_object};

template <Handler Kind::* Verb>
Outcome by_type(State& state, const Call<In, Out>& call) {
  switch (call.in.get<In::obj_type>()) {
    case Type::reserved_qpn:
      return (kReserved.*Verb)(state, call);
    case Type::av_qp_mapping:
      return (kMapping.*Verb)(state, call);
    case Type::scheduling_element:
      return (kElement.*Verb)(state, call);
    case Type::virtio_net_q:
      return refuse(Syndrome::object_virtio);
    default:
      return refuse(Syndrome::object_type);
  }
}

}  // namespace

void add_general_commands(Registry& r) {
  using prm::Opcode;
  r.add<by_type<&Kind::create>>(Opcode::create_general_object, "CREATE_GENERAL_OBJECT", prm::Dword::size);
  r.add<by_type<&Kind::query>>(Opcode::query_general_object, "QUERY_GENERAL_OBJECT");
  r.add<by_type<&Kind::modify>>(Opcode::modify_general_object, "MODIFY_GENERAL_OBJECT", prm::Dword::size);
  r.add<by_type<&Kind::destroy>>(Opcode::destroy_general_object, "DESTROY_GENERAL_OBJECT");
}

}  // namespace verbena::device::command
