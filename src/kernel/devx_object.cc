// DEVX objects: create, query, modify and destroy by the device's own commands.
#include <new>

#include "kernel/command.h"
#include "kernel/cq.h"
#include "kernel/devx.h"
#include "kernel/devx_mailbox.h"
#include "kernel/qp.h"
#include "kernel/srq.h"
#include "kernel/wq.h"
#include "prm/cq.h"
#include "prm/flow.h"
#include "prm/mkey.h"
#include "prm/qp.h"
#include "prm/raw.h"

namespace verbena::kernel {

int DevxObject::destroy(File& file) {
  std::vector<std::byte> out(prm::GeneralObjOutCmdHdr::size);
  if (int error = run(file.device(), undo, out)) return error;
  file.node().events().unsubscribe_object(this);
  return 0;
}

namespace {

constexpr AttrSpec kCreateAttrs[] = {
    uverbs::object_attr(MLX5_IB_ATTR_DEVX_OBJ_CREATE_HANDLE, MLX5_IB_OBJECT_DEVX_OBJ, AttrAccess::create),
    command_in(MLX5_IB_ATTR_DEVX_OBJ_CREATE_CMD_IN),
    command_out(MLX5_IB_ATTR_DEVX_OBJ_CREATE_CMD_OUT),
};

std::uint64_t address_in_umem(File& file, std::uint32_t umem_id, std::uint64_t offset) {
  const auto umem = file.umems().find(umem_id);
  return umem == file.umems().end() ? 0 : umem->second + offset;
}

// Where the doorbell record of a new queue is, so that a program that only stores into memory is noticed.
std::uint64_t doorbell_of(File& file, Mailbox in, prm::Opcode kind) {
  if (kind == prm::Opcode::create_qp && in.size() >= prm::CreateQpIn::size) {
    const auto qpc = prm::ConstView<prm::CreateQpIn>(in.data()).sub<prm::CreateQpIn::qpc>();
    if (qpc.get<prm::Qpc::no_sq>()) return 0;
    return address_in_umem(file, qpc.get<prm::Qpc::dbr_umem_id>(), qpc.get<prm::Qpc::dbr_addr>());
  }
  if (kind == prm::Opcode::create_sq && in.size() >= prm::CreateSqIn::size) {
    const auto wq = prm::ConstView<prm::CreateSqIn>(in.data()).sub<prm::CreateSqIn::ctx>().sub<prm::Sqc::wq>();
    return address_in_umem(file, wq.get<prm::Wq::dbr_umem_id>(), wq.get<prm::Wq::dbr_addr>());
  }
  if (kind == prm::Opcode::create_cq && in.size() >= prm::CreateCqIn::size) {
    const auto cqc = prm::ConstView<prm::CreateCqIn>(in.data()).sub<prm::CreateCqIn::cq_context>();
    return address_in_umem(file, cqc.get<prm::Cqc::dbr_umem_id>(), cqc.get<prm::Cqc::dbr_addr>());
  }
  return 0;
}

bool has_no_send_record(Mailbox in, prm::Opcode kind) {
  if (kind != prm::Opcode::create_qp || in.size() < prm::CreateQpIn::size) return false;
  return prm::ConstView<prm::CreateQpIn>(in.data()).sub<prm::CreateQpIn::qpc>().get<prm::Qpc::send_dbr_mode>() !=
         prm::SendDbrMode::dbr_valid;
}

std::uint32_t counters_of(Mailbox in) {
  using In = prm::AllocFlowCounterIn;
  const prm::ConstView<In> view(in.data());
  const std::uint32_t units = view.get<In::flow_counter_bulk>();
  return units ? units * prm::kFlowCounterBulkUnit : 1u << view.get<In::flow_counter_bulk_log_size>();
}

// What the kernel looks at before the device does: a key's context must be there, and a CQ reports to an EQ that the kernel
// made for a completion vector, since it keeps the CQs of each (mlx5_create_cq()).
int check_create(File& file, Mailbox in) {
  using Key = prm::CreateMkeyIn;
  using Queue = prm::CreateCqIn;
  switch (prm::ConstView<Queue>(in.data()).get<Queue::opcode>()) {
    case prm::Opcode::create_mkey:
      return in.size() < Key::memory_key_mkey_entry::offset + Key::memory_key_mkey_entry::bytes ? EINVAL : 0;
    case prm::Opcode::create_cq: {
      if (in.size() < Queue::size) return 0;  // the device says so
      const auto cqc = prm::ConstView<Queue>(in.data()).sub<Queue::cq_context>();
      return file.node().is_completion_eqn(cqc.get<prm::Cqc::c_eqn_or_apu_element>()) ? 0 : ENOENT;
    }
    default:
      return 0;
  }
}

int native_create(File& file, Request& request) {
  const auto in = request.in(MLX5_IB_ATTR_DEVX_OBJ_CREATE_CMD_IN);
  std::uint16_t uid = 0;
  if (int error = object_command_uid(file, in, &uid)) return error;
  if (!is_object_create(in)) return EINVAL;
  if (int error = check_create(file, in)) return error;
  DevxCommand command(in, request.out_length(MLX5_IB_ATTR_DEVX_OBJ_CREATE_CMD_OUT), uid);
  require_umem(command.in());
  auto object = std::make_unique<DevxObject>();
  const int error = command.run(file.device());
  request.write(MLX5_IB_ATTR_DEVX_OBJ_CREATE_CMD_OUT, command.out().data(), command.out().size());
  if (error) return error;
  object->id = created_object(command.in(), command.out());
  try {
    object->undo = destroy_request(command.in(), object->id, uid);
    if (object->id.kind == prm::Opcode::alloc_flow_counter) object->counters = counters_of(command.in());
    const bool no_record = has_no_send_record(command.in(), object->id.kind);
    object->doorbell = no_record ? 0 : doorbell_of(file, command.in(), object->id.kind);
    if (object->doorbell || no_record) file.watch_devx(*object);
  } catch (const std::bad_alloc&) {
    object->undo = destroy_request(command.in(), object->id, uid);
    object->destroy(file);
    throw;
  }
  const std::uint32_t handle = file.objects().add(std::move(object));
  request.set_id(MLX5_IB_ATTR_DEVX_OBJ_CREATE_HANDLE, handle);
  return 0;
}

// A raw packet QP is each of its parts.
bool is_qp(const Qp& qp, const ObjectId& id) {
  if (!qp.raw) return id == ObjectId{prm::Opcode::create_qp, 0, qp.qpn};
  const auto is = [&](prm::Opcode kind, std::uint32_t number) { return number && id == ObjectId{kind, 0, number}; };
  return is(prm::Opcode::create_rq, qp.raw->rqn) || is(prm::Opcode::create_sq, qp.raw->sqn) ||
         is(prm::Opcode::create_tir, qp.raw->tirn) || is(prm::Opcode::create_tis, qp.raw->tisn);
}

// Whether `id` is the object behind the handle: one of DEVX, or one that verbs made.
bool is_object(const Object& object, const ObjectId& id) {
  switch (object.cls) {
    case MLX5_IB_OBJECT_DEVX_OBJ:
      return static_cast<const DevxObject&>(object).id == id;
    case UVERBS_OBJECT_QP:
      return is_qp(static_cast<const Qp&>(object), id);
    case UVERBS_OBJECT_WQ:
      return id == ObjectId{prm::Opcode::create_rq, 0, static_cast<const Wq&>(object).rqn};
    case UVERBS_OBJECT_RWQ_IND_TBL:
      return id == ObjectId{prm::Opcode::create_rqt, 0, static_cast<const IndTable&>(object).rqtn};
    case UVERBS_OBJECT_CQ:
      return id == ObjectId{prm::Opcode::create_cq, 0, static_cast<const Cq&>(object).cqn};
    case UVERBS_OBJECT_SRQ:
      return id == ObjectId{static_cast<const Srq&>(object).made_by(), 0, static_cast<const Srq&>(object).srqn};
    default:
      return false;
  }
}

constexpr AttrSpec kQueryAttrs[] = {
    any_object(MLX5_IB_ATTR_DEVX_OBJ_QUERY_HANDLE, AttrAccess::read),
    command_in(MLX5_IB_ATTR_DEVX_OBJ_QUERY_CMD_IN),
    command_out(MLX5_IB_ATTR_DEVX_OBJ_QUERY_CMD_OUT),
};

int native_query(File& file, Request& request) {
  const Object* object = file.objects().find(request.handle(MLX5_IB_ATTR_DEVX_OBJ_QUERY_HANDLE));
  if (!object) return ENOENT;
  const auto in = request.in(MLX5_IB_ATTR_DEVX_OBJ_QUERY_CMD_IN);
  std::uint16_t uid = 0;
  if (int error = object_command_uid(file, in, &uid)) return error;
  const auto named = queried_object(in);
  if (!named || !is_object(*object, *named)) return EINVAL;
  DevxCommand command(in, request.out_length(MLX5_IB_ATTR_DEVX_OBJ_QUERY_CMD_OUT), uid);
  const int error = command.run(file.device());
  request.write(MLX5_IB_ATTR_DEVX_OBJ_QUERY_CMD_OUT, command.out().data(), command.out().size());
  return error;
}

constexpr AttrSpec kModifyAttrs[] = {
    any_object(MLX5_IB_ATTR_DEVX_OBJ_MODIFY_HANDLE, AttrAccess::write),
    command_in(MLX5_IB_ATTR_DEVX_OBJ_MODIFY_CMD_IN),
    command_out(MLX5_IB_ATTR_DEVX_OBJ_MODIFY_CMD_OUT),
};

int native_modify(File& file, Request& request) {
  const Object* object = file.objects().find(request.handle(MLX5_IB_ATTR_DEVX_OBJ_MODIFY_HANDLE));
  if (!object) return ENOENT;
  const auto in = request.in(MLX5_IB_ATTR_DEVX_OBJ_MODIFY_CMD_IN);
  std::uint16_t uid = 0;
  if (int error = object_command_uid(file, in, &uid)) return error;
  const auto named = modified_object(in);
  if (!named || !is_object(*object, *named)) return EINVAL;
  DevxCommand command(in, request.out_length(MLX5_IB_ATTR_DEVX_OBJ_MODIFY_CMD_OUT), uid);
  require_umem(command.in());
  const int error = command.run(file.device());
  file.queue_modified(*object);
  request.write(MLX5_IB_ATTR_DEVX_OBJ_MODIFY_CMD_OUT, command.out().data(), command.out().size());
  return error;
}

constexpr AttrSpec kAsyncQueryAttrs[] = {
    any_object(MLX5_IB_ATTR_DEVX_OBJ_QUERY_ASYNC_HANDLE, AttrAccess::read),
    command_in(MLX5_IB_ATTR_DEVX_OBJ_QUERY_ASYNC_CMD_IN),
    uverbs::const_attr(MLX5_IB_ATTR_DEVX_OBJ_QUERY_ASYNC_OUT_LEN),
    uverbs::fd_attr(MLX5_IB_ATTR_DEVX_OBJ_QUERY_ASYNC_FD, MLX5_IB_OBJECT_DEVX_ASYNC_CMD_FD, AttrAccess::read),
    uverbs::in_attr(MLX5_IB_ATTR_DEVX_OBJ_QUERY_ASYNC_WR_ID, 8),
};

// The device answers at once; the program finds the answer on its channel, granted or not.
int native_async_query(File& file, Request& request) {
  const Object* object = file.objects().find(request.handle(MLX5_IB_ATTR_DEVX_OBJ_QUERY_ASYNC_HANDLE));
  if (!object) return ENOENT;
  const auto channel = file.devx_results(request.fd(MLX5_IB_ATTR_DEVX_OBJ_QUERY_ASYNC_FD));
  if (!channel) return EBADF;
  const auto in = request.in(MLX5_IB_ATTR_DEVX_OBJ_QUERY_ASYNC_CMD_IN);
  const auto length = request.value<std::uint64_t>(MLX5_IB_ATTR_DEVX_OBJ_QUERY_ASYNC_OUT_LEN);
  std::uint16_t uid = 0;
  if (int error = object_command_uid(file, in, &uid)) return error;
  const auto named = queried_object(in);
  if (!named || length > UINT16_MAX || !is_object(*object, *named)) return EINVAL;
  if (int error = channel->room(length)) return error;
  DevxCommand command(in, length, uid);
  command.run(file.device());
  return channel->post(request.value<std::uint64_t>(MLX5_IB_ATTR_DEVX_OBJ_QUERY_ASYNC_WR_ID), command.out());
}

constexpr AttrSpec kDestroyAttrs[] = {
    uverbs::object_attr(MLX5_IB_ATTR_DEVX_OBJ_DESTROY_HANDLE, MLX5_IB_OBJECT_DEVX_OBJ, AttrAccess::destroy)};

constexpr Method kMethods[] = {
    {{MLX5_IB_OBJECT_DEVX_OBJ, MLX5_IB_METHOD_DEVX_OBJ_CREATE, kCreateAttrs}, native_create},
    {{MLX5_IB_OBJECT_DEVX_OBJ, MLX5_IB_METHOD_DEVX_OBJ_QUERY, kQueryAttrs}, native_query},
    {{MLX5_IB_OBJECT_DEVX_OBJ, MLX5_IB_METHOD_DEVX_OBJ_MODIFY, kModifyAttrs}, native_modify},
    {{MLX5_IB_OBJECT_DEVX_OBJ, MLX5_IB_METHOD_DEVX_OBJ_ASYNC_QUERY, kAsyncQueryAttrs}, native_async_query},
    {{MLX5_IB_OBJECT_DEVX_OBJ, MLX5_IB_METHOD_DEVX_OBJ_DESTROY, kDestroyAttrs},
     destroy_method<MLX5_IB_OBJECT_DEVX_OBJ, MLX5_IB_ATTR_DEVX_OBJ_DESTROY_HANDLE>},
};

}  // namespace

std::span<const Method> devx_object_methods() { return kMethods; }

}  // namespace verbena::kernel
