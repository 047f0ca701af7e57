#include "mlx5/devx/command.h"

#include <rdma/mlx5_user_ioctl_cmds.h>

namespace verbena::mlx5 {

int general_command(Context* context, const void* in, std::size_t in_length, void* out, std::size_t out_length) {
  uverbs::Bundle bundle(MLX5_IB_OBJECT_DEVX, MLX5_IB_METHOD_DEVX_OTHER);
  bundle.in(MLX5_IB_ATTR_DEVX_OTHER_CMD_IN, in, in_length);
  bundle.out(MLX5_IB_ATTR_DEVX_OTHER_CMD_OUT, out, out_length);
  return verbena_execute(context, &bundle);
}

}  // namespace verbena::mlx5
