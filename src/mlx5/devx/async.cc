// DEVX queries that the program does not wait for.

#include <rdma/mlx5_user_ioctl_cmds.h>
#include <sys/socket.h>
#include <unistd.h>

#include <memory>
#include <new>

#include "mlx5/devx/object.h"
#include "mlx5/export.h"

namespace {

using namespace verbena;
using namespace verbena::mlx5;

struct ResultChannel {
  mlx5dv_devx_cmd_comp dv;  // first: what the program holds
  Context* context;
};

// As read(2) on the kernel's file: a result that does not fit stays where it is. The embedded device's channel is a
// socket, whose read(2) would cut it.
ssize_t take(int fd, void* to, std::size_t room) {
  const ssize_t size = recv(fd, to, room, MSG_PEEK | MSG_TRUNC);
  if (size < 0 && errno == ENOTSOCK) return read(fd, to, room);
  if (size < 0) return -1;
  if (static_cast<std::size_t>(size) > room) {
    errno = ENOSPC;
    return -1;
  }
  return recv(fd, to, room, 0);
}

}  // namespace

extern "C" {

VERBENA_MLX5_EXPORT mlx5dv_devx_cmd_comp* mlx5dv_devx_create_cmd_comp(ibv_context* ibv) {
  Context* context = mlx5_context(ibv);
  if (!context) return fail_null(EOPNOTSUPP);
  std::unique_ptr<ResultChannel> channel(new (std::nothrow) ResultChannel{});
  if (!channel) return fail_null(ENOMEM);
  uverbs::Bundle bundle(MLX5_IB_OBJECT_DEVX_ASYNC_CMD_FD, MLX5_IB_METHOD_DEVX_ASYNC_CMD_FD_ALLOC);
  const auto fd = bundle.out_fd(MLX5_IB_ATTR_DEVX_ASYNC_CMD_FD_ALLOC_HANDLE);
  if (int error = verbena_execute(context, &bundle)) return fail_null(error);
  channel->dv.fd = bundle.fd(fd);
  channel->context = context;
  return &channel.release()->dv;
}

VERBENA_MLX5_EXPORT void mlx5dv_devx_destroy_cmd_comp(mlx5dv_devx_cmd_comp* dv) {
  auto* channel = reinterpret_cast<ResultChannel*>(dv);
  channel->context->backend->close(dv->fd);
  delete channel;
}

VERBENA_MLX5_EXPORT int mlx5dv_devx_obj_query_async(mlx5dv_devx_obj* object, const void* in, std::size_t in_length,
                                                    std::size_t out_length, std::uint64_t wr_id,
                                                    mlx5dv_devx_cmd_comp* channel) {
  uverbs::Bundle bundle(MLX5_IB_OBJECT_DEVX_OBJ, MLX5_IB_METHOD_DEVX_OBJ_ASYNC_QUERY);
  bundle.in_object(MLX5_IB_ATTR_DEVX_OBJ_QUERY_ASYNC_HANDLE, object->handle);
  bundle.in(MLX5_IB_ATTR_DEVX_OBJ_QUERY_ASYNC_CMD_IN, in, in_length);
  bundle.in_const(MLX5_IB_ATTR_DEVX_OBJ_QUERY_ASYNC_OUT_LEN, out_length);
  bundle.in_u64(MLX5_IB_ATTR_DEVX_OBJ_QUERY_ASYNC_WR_ID, wr_id);
  bundle.in_fd(MLX5_IB_ATTR_DEVX_OBJ_QUERY_ASYNC_FD, channel->fd);
  return verbena_execute(object->context, &bundle);
}

VERBENA_MLX5_EXPORT int mlx5dv_devx_get_async_cmd_comp(mlx5dv_devx_cmd_comp* channel, mlx5dv_devx_async_cmd_hdr* result,
                                                       std::size_t room) {
  const ssize_t bytes = take(channel->fd, result, room);
  if (bytes < 0) return errno;
  if (!bytes) return EIO;  // the channel is gone
  return static_cast<std::size_t>(bytes) < sizeof *result ? EINVAL : 0;
}

}  // extern "C"
