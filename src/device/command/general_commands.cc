// CREATE, QUERY, MODIFY, DESTROY_GENERAL_OBJECT. Of the many types the device has reserved QP numbers, and
// scheduling elements (qos_commands.cc).
#include <algorithm>

#include "device/command/dispatcher.h"
#include "device/command/families.h"
#include "device/command/qos.h"
#include "device/command/state.h"
#include "prm/general_object.h"

namespace verbena::device::command {
namespace {

using In = prm::GeneralObjInCmdHdr;
using Out = prm::GeneralObjOutCmdHdr;
using Type = prm::GeneralObjectType;

constexpr std::size_t kReservedQpnBody = 16;  // reserved, zero

bool is_zero(std::span<const std::byte> bytes) {
  return std::ranges::all_of(bytes, [](std::byte b) { return b == std::byte{0}; });
}

Outcome check_type(const prm::ConstView<In>& in) {
  switch (in.get<In::obj_type>()) {
    case Type::reserved_qpn:
      return {};
    case Type::virtio_net_q:
      return refuse(Syndrome::object_virtio);
    default:
      return refuse(Syndrome::object_type);
  }
}

Outcome create_object(State& state, const Call<In, Out>& call) {
  if (call.in.get<In::obj_type>() == Type::scheduling_element) return create_element_object(state, call);
  if (auto ok = check_type(call.in); !ok) return ok;
  if (call.tail().size() != kReservedQpnBody) return refuse(Syndrome::input_length);
  if (!is_zero(call.tail())) return refuse(Syndrome::object_body);
  if (call.in.get<In::log_obj_range>() > kLogReservedQpns) return refuse(Syndrome::object_range);
  const std::uint32_t first = state.nic.reserve_qpns();
  if (!first) return refuse(Syndrome::object_none_left);
  state.reserved_qpns.create(first, call.uid).log_range = call.in.get<In::log_obj_range>();
  call.out.set<Out::obj_id>(first);
  return {};
}

Maybe<ReservedQpns*> named(State& state, const Call<In, Out>& call) {
  if (auto ok = check_type(call.in); !ok) return refuse(ok.error());
  return own(state.reserved_qpns.find(call.in.get<In::obj_id>()), call.uid, Syndrome::object_missing);
}

Outcome query_object(State& state, const Call<In, Out>& call) {
  if (call.in.get<In::obj_type>() == Type::scheduling_element) return query_element_object(state, call);
  const auto object = named(state, call);
  if (!object) return refuse(object.error());
  return call.output.size() < Out::size + kReservedQpnBody ? refuse(Syndrome::output_length) : Outcome{};
}

Outcome modify_object(State& state, const Call<In, Out>& call) {
  if (call.in.get<In::obj_type>() == Type::scheduling_element) return modify_element_object(state, call);
  const auto object = named(state, call);
  return object ? refuse(Syndrome::object_fixed) : refuse(object.error());
}

Outcome destroy_object(State& state, const Call<In, Out>& call) {
  if (call.in.get<In::obj_type>() == Type::scheduling_element) return destroy_element_object(state, call);
  const auto object = named(state, call);
  if (!object) return refuse(object.error());
  state.nic.release_qpns(call.in.get<In::obj_id>());
  state.reserved_qpns.erase(call.in.get<In::obj_id>());
  return {};
}

}  // namespace

void add_general_commands(Registry& r) {
  using prm::Opcode;
  r.add<create_object>(Opcode::create_general_object, "CREATE_GENERAL_OBJECT", prm::Dword::size);
  r.add<query_object>(Opcode::query_general_object, "QUERY_GENERAL_OBJECT");
  r.add<modify_object>(Opcode::modify_general_object, "MODIFY_GENERAL_OBJECT", prm::Dword::size);
  r.add<destroy_object>(Opcode::destroy_general_object, "DESTROY_GENERAL_OBJECT");
}

}  // namespace verbena::device::command
