// DEVX: commands that make no object, and the numbers that the program's own commands need.
#include "kernel/devx.h"
#include "kernel/devx_mailbox.h"

namespace verbena::kernel {

int command_uid(File& file, Mailbox in, std::uint16_t* uid) {
  *uid = file.context().uid;
  return *uid || is_open_to_all(in) ? 0 : EINVAL;
}

int object_command_uid(File& file, Mailbox in, std::uint16_t* uid) {
  return is_tunnelled(in) ? EINVAL : command_uid(file, in, uid);
}

namespace {

constexpr AttrSpec kOtherAttrs[] = {
    command_in(MLX5_IB_ATTR_DEVX_OTHER_CMD_IN),
    command_out(MLX5_IB_ATTR_DEVX_OTHER_CMD_OUT),
};

int native_other(File& file, Request& request) {
  const auto in = request.in(MLX5_IB_ATTR_DEVX_OTHER_CMD_IN);
  std::uint16_t uid = 0;
  if (int error = command_uid(file, in, &uid)) return error;
  if (!is_general_command(in)) return EINVAL;
  DevxCommand command(in, request.out_length(MLX5_IB_ATTR_DEVX_OTHER_CMD_OUT), uid);
  const int error = command.run(file.device());
  request.write(MLX5_IB_ATTR_DEVX_OTHER_CMD_OUT, command.out().data(), command.out().size());
  return error;
}

constexpr AttrSpec kQueryEqnAttrs[] = {
    uverbs::in_attr(MLX5_IB_ATTR_DEVX_QUERY_EQN_USER_VEC, 4),
    uverbs::out_attr(MLX5_IB_ATTR_DEVX_QUERY_EQN_DEV_EQN, 4),
};

int native_query_eqn(File& file, Request& request) {
  const auto vector = request.value<std::uint32_t>(MLX5_IB_ATTR_DEVX_QUERY_EQN_USER_VEC);
  if (vector >= file.node().completion_vectors()) return ENOENT;
  std::uint32_t eqn = 0;
  if (int error = file.node().completion_eqn(vector, &eqn)) return error;
  return request.write(MLX5_IB_ATTR_DEVX_QUERY_EQN_DEV_EQN, eqn);
}

constexpr AttrSpec kQueryUarAttrs[] = {
    uverbs::in_attr(MLX5_IB_ATTR_DEVX_QUERY_UAR_USER_IDX, 4),
    uverbs::out_attr(MLX5_IB_ATTR_DEVX_QUERY_UAR_DEV_IDX, 4),
};

// Translates a register that was mapped in advance; contexts here have none (tot_bfregs is 0).
int native_query_uar(File&, Request&) { return EINVAL; }

constexpr Method kMethods[] = {
    {{MLX5_IB_OBJECT_DEVX, MLX5_IB_METHOD_DEVX_OTHER, kOtherAttrs}, native_other},
    {{MLX5_IB_OBJECT_DEVX, MLX5_IB_METHOD_DEVX_QUERY_EQN, kQueryEqnAttrs}, native_query_eqn},
    {{MLX5_IB_OBJECT_DEVX, MLX5_IB_METHOD_DEVX_QUERY_UAR, kQueryUarAttrs}, native_query_uar},
};

}  // namespace

std::span<const Method> devx_general_methods() { return kMethods; }

}  // namespace verbena::kernel
