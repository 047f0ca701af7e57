#include "mlx5/devx/object.h"

#include <rdma/mlx5_user_ioctl_cmds.h>

#include <memory>
#include <new>

#include "mlx5/devx/command.h"
#include "mlx5/export.h"

namespace verbena::mlx5 {

int query_by_handle(Context* context, std::uint32_t handle, const void* in, std::size_t in_length, void* out,
                    std::size_t out_length) {
  uverbs::Bundle bundle(MLX5_IB_OBJECT_DEVX_OBJ, MLX5_IB_METHOD_DEVX_OBJ_QUERY);
  bundle.in_object(MLX5_IB_ATTR_DEVX_OBJ_QUERY_HANDLE, handle);
  bundle.in(MLX5_IB_ATTR_DEVX_OBJ_QUERY_CMD_IN, in, in_length);
  bundle.out(MLX5_IB_ATTR_DEVX_OBJ_QUERY_CMD_OUT, out, out_length);
  return verbena_execute(context, &bundle);
}

int modify_by_handle(Context* context, std::uint32_t handle, const void* in, std::size_t in_length, void* out,
                     std::size_t out_length) {
  uverbs::Bundle bundle(MLX5_IB_OBJECT_DEVX_OBJ, MLX5_IB_METHOD_DEVX_OBJ_MODIFY);
  bundle.in_object(MLX5_IB_ATTR_DEVX_OBJ_MODIFY_HANDLE, handle);
  bundle.in(MLX5_IB_ATTR_DEVX_OBJ_MODIFY_CMD_IN, in, in_length);
  bundle.out(MLX5_IB_ATTR_DEVX_OBJ_MODIFY_CMD_OUT, out, out_length);
  return verbena_execute(context, &bundle);
}

}  // namespace verbena::mlx5

using namespace verbena;
using namespace verbena::mlx5;

extern "C" {

VERBENA_MLX5_EXPORT int mlx5dv_devx_general_cmd(ibv_context* ibv, const void* in, std::size_t in_length, void* out,
                                                std::size_t out_length) {
  Context* context = mlx5_context(ibv);
  return context ? general_command(context, in, in_length, out, out_length) : EOPNOTSUPP;
}

VERBENA_MLX5_EXPORT mlx5dv_devx_obj* mlx5dv_devx_obj_create(ibv_context* ibv, const void* in, std::size_t in_length,
                                                            void* out, std::size_t out_length) {
  Context* context = mlx5_context(ibv);
  if (!context) return fail_null(EOPNOTSUPP);
  std::unique_ptr<mlx5dv_devx_obj> object(new (std::nothrow) mlx5dv_devx_obj{context, 0});
  if (!object) return fail_null(ENOMEM);
  uverbs::Bundle bundle(MLX5_IB_OBJECT_DEVX_OBJ, MLX5_IB_METHOD_DEVX_OBJ_CREATE);
  const auto handle = bundle.out_object(MLX5_IB_ATTR_DEVX_OBJ_CREATE_HANDLE);
  bundle.in(MLX5_IB_ATTR_DEVX_OBJ_CREATE_CMD_IN, in, in_length);
  bundle.out(MLX5_IB_ATTR_DEVX_OBJ_CREATE_CMD_OUT, out, out_length);
  if (int error = verbena_execute(context, &bundle)) return fail_null(error);
  object->handle = bundle.object(handle);
  return object.release();
}

VERBENA_MLX5_EXPORT int mlx5dv_devx_obj_query(mlx5dv_devx_obj* object, const void* in, std::size_t in_length, void* out,
                                              std::size_t out_length) {
  return query_by_handle(object->context, object->handle, in, in_length, out, out_length);
}

VERBENA_MLX5_EXPORT int mlx5dv_devx_obj_modify(mlx5dv_devx_obj* object, const void* in, std::size_t in_length,
                                               void* out, std::size_t out_length) {
  return modify_by_handle(object->context, object->handle, in, in_length, out, out_length);
}

VERBENA_MLX5_EXPORT int mlx5dv_devx_obj_destroy(mlx5dv_devx_obj* object) {
  uverbs::Bundle bundle(MLX5_IB_OBJECT_DEVX_OBJ, MLX5_IB_METHOD_DEVX_OBJ_DESTROY);
  bundle.in_object(MLX5_IB_ATTR_DEVX_OBJ_DESTROY_HANDLE, object->handle);
  if (int error = verbena_execute(object->context, &bundle)) return error;
  delete object;
  return 0;
}

VERBENA_MLX5_EXPORT int mlx5dv_devx_query_eqn(ibv_context* ibv, std::uint32_t vector, std::uint32_t* eqn) {
  Context* context = mlx5_context(ibv);
  if (!context) return EOPNOTSUPP;
  uverbs::Bundle bundle(MLX5_IB_OBJECT_DEVX, MLX5_IB_METHOD_DEVX_QUERY_EQN);
  bundle.in_u32(MLX5_IB_ATTR_DEVX_QUERY_EQN_USER_VEC, vector);
  bundle.out_struct(MLX5_IB_ATTR_DEVX_QUERY_EQN_DEV_EQN, *eqn);
  return verbena_execute(context, &bundle);
}

}  // extern "C"
