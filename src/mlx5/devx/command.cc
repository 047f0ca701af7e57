#include "mlx5/devx/command.h"

#include <rdma/mlx5_user_ioctl_cmds.h>

#include "prm/command.h"

namespace verbena::mlx5 {

int general_command(Context* context, const void* in, std::size_t in_length, void* out, std::size_t out_length) {
  uverbs::Bundle bundle(MLX5_IB_OBJECT_DEVX, MLX5_IB_METHOD_DEVX_OTHER);
  bundle.in(MLX5_IB_ATTR_DEVX_OTHER_CMD_IN, in, in_length);
  bundle.out(MLX5_IB_ATTR_DEVX_OTHER_CMD_OUT, out, out_length);
  return verbena_execute(context, &bundle);
}

int command_errno(int error, const std::byte* out) {
  using prm::Status;
  if (error != EREMOTEIO) return error;
  switch (prm::ConstView<prm::CommandOut>(out).get<prm::CommandOut::status>()) {
    case Status::ok:
      return 0;
    case Status::resource_busy:
      return EBUSY;
    case Status::exceed_lim:
      return ENOMEM;
    case Status::no_resources:
      return EAGAIN;
    case Status::internal_err:
    case Status::bad_sys_state:
    case Status::bad_input_len:
    case Status::bad_output_len:
      return EIO;
    default:
      return EINVAL;
  }
}

}  // namespace verbena::mlx5
