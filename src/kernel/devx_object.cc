// DEVX objects: create, query, modify and destroy by the device's own commands.
#include "kernel/cq.h"
#include "kernel/devx.h"
#include "kernel/devx_mailbox.h"
#include "kernel/qp.h"
#include "kernel/srq.h"
#include "prm/qp.h"

namespace verbena::kernel {

int DevxObject::destroy(File& file) {
  std::vector<std::byte> out(prm::GeneralObjOutCmdHdr::size);
  file.device().execute(undo, out);
  return prm::ConstView<prm::CommandOut>(out.data()).get<prm::CommandOut::status>() == prm::Status::ok ? 0 : EREMOTEIO;
}

namespace {

constexpr AttrSpec kCreateAttrs[] = {
    uverbs::object_attr(MLX5_IB_ATTR_DEVX_OBJ_CREATE_HANDLE, MLX5_IB_OBJECT_DEVX_OBJ, AttrAccess::create),
    command_in(MLX5_IB_ATTR_DEVX_OBJ_CREATE_CMD_IN),
    command_out(MLX5_IB_ATTR_DEVX_OBJ_CREATE_CMD_OUT),
};

// Where the doorbell record of a new QP is, so that a program that only stores into memory is noticed.
void note_doorbell(File& file, Mailbox in, DevxObject& object) {
  if (object.id.kind != prm::Opcode::create_qp || in.size() < prm::CreateQpIn::size) return;
  const auto qpc = prm::ConstView<prm::CreateQpIn>(in.data()).sub<prm::CreateQpIn::qpc>();
  if (qpc.get<prm::Qpc::no_sq>()) return;
  for (std::uint32_t handle : file.objects().of_class(MLX5_IB_OBJECT_DEVX_UMEM)) {
    int error = 0;
    const auto* umem = file.find<DevxUmem>(handle, MLX5_IB_OBJECT_DEVX_UMEM, &error);
    if (umem->id == qpc.get<prm::Qpc::dbr_umem_id>()) object.doorbell = umem->address + qpc.get<prm::Qpc::dbr_addr>();
  }
}

int native_create(File& file, Request& request) {
  const auto uid = file.context().uid;
  const auto in = request.in(MLX5_IB_ATTR_DEVX_OBJ_CREATE_CMD_IN);
  if (!uid || !is_object_create(in)) return EINVAL;
  DevxCommand command(in, request.out_length(MLX5_IB_ATTR_DEVX_OBJ_CREATE_CMD_OUT), uid);
  require_umem(command.in());
  const int error = command.run(file.device());
  request.write(MLX5_IB_ATTR_DEVX_OBJ_CREATE_CMD_OUT, command.out().data(), command.out().size());
  if (error) return error;
  auto object = std::make_unique<DevxObject>();
  object->id = created_object(command.in(), command.out());
  object->undo = destroy_request(command.in(), object->id, uid);
  note_doorbell(file, command.in(), *object);
  request.set_id(MLX5_IB_ATTR_DEVX_OBJ_CREATE_HANDLE, file.objects().add(std::move(object)));
  return 0;
}

// Whether `id` is the object behind the handle: one of DEVX, or one that verbs made.
bool is_object(const Object& object, const ObjectId& id) {
  switch (object.cls) {
    case MLX5_IB_OBJECT_DEVX_OBJ:
      return static_cast<const DevxObject&>(object).id == id;
    case UVERBS_OBJECT_QP:
      return id == ObjectId{prm::Opcode::create_qp, 0, static_cast<const Qp&>(object).qpn};
    case UVERBS_OBJECT_CQ:
      return id == ObjectId{prm::Opcode::create_cq, 0, static_cast<const Cq&>(object).cqn};
    case UVERBS_OBJECT_SRQ:
      return id == ObjectId{prm::Opcode::create_srq, 0, static_cast<const Srq&>(object).srqn};
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
  const auto named = queried_object(in);
  if (!file.context().uid || !named || !is_object(*object, *named)) return EINVAL;
  DevxCommand command(in, request.out_length(MLX5_IB_ATTR_DEVX_OBJ_QUERY_CMD_OUT), file.context().uid);
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
  const auto named = modified_object(in);
  if (!file.context().uid || !named || !is_object(*object, *named)) return EINVAL;
  DevxCommand command(in, request.out_length(MLX5_IB_ATTR_DEVX_OBJ_MODIFY_CMD_OUT), file.context().uid);
  require_umem(command.in());
  const int error = command.run(file.device());
  request.write(MLX5_IB_ATTR_DEVX_OBJ_MODIFY_CMD_OUT, command.out().data(), command.out().size());
  return error;
}

constexpr AttrSpec kDestroyAttrs[] = {
    uverbs::object_attr(MLX5_IB_ATTR_DEVX_OBJ_DESTROY_HANDLE, MLX5_IB_OBJECT_DEVX_OBJ, AttrAccess::destroy)};

constexpr Method kMethods[] = {
    {{MLX5_IB_OBJECT_DEVX_OBJ, MLX5_IB_METHOD_DEVX_OBJ_CREATE, kCreateAttrs}, native_create},
    {{MLX5_IB_OBJECT_DEVX_OBJ, MLX5_IB_METHOD_DEVX_OBJ_QUERY, kQueryAttrs}, native_query},
    {{MLX5_IB_OBJECT_DEVX_OBJ, MLX5_IB_METHOD_DEVX_OBJ_MODIFY, kModifyAttrs}, native_modify},
    {{MLX5_IB_OBJECT_DEVX_OBJ, MLX5_IB_METHOD_DEVX_OBJ_DESTROY, kDestroyAttrs},
     destroy_method<MLX5_IB_OBJECT_DEVX_OBJ, MLX5_IB_ATTR_DEVX_OBJ_DESTROY_HANDLE>},
};

}  // namespace

std::span<const Method> devx_object_methods() { return kMethods; }

}  // namespace verbena::kernel
