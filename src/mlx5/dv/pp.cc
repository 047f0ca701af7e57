// mlx5dv: entries of the packet pacing table.

#include <rdma/mlx5_user_ioctl_cmds.h>
#include <rdma/mlx5_user_ioctl_verbs.h>

#include <cstddef>
#include <memory>
#include <new>

#include "mlx5/export.h"
#include "mlx5/types.h"

namespace {

using namespace verbena;
using namespace verbena::mlx5;

struct Pp {
  Context* context;
  std::uint32_t handle = 0;
  mlx5dv_pp shown = {};
};

}  // namespace

extern "C" {

VERBENA_MLX5_EXPORT mlx5dv_pp* mlx5dv_pp_alloc(ibv_context* ibv, std::size_t length, const void* contents,
                                               std::uint32_t flags) {
  Context* context = mlx5_context(ibv);
  constexpr std::uint32_t known = MLX5_IB_UAPI_PP_ALLOC_FLAGS_DEDICATED_INDEX;
  if (!context || (flags & ~known)) return fail_null(EOPNOTSUPP);
  std::unique_ptr<Pp> pp(new (std::nothrow) Pp{context});
  if (!pp) return fail_null(ENOMEM);
  uverbs::Bundle bundle(MLX5_IB_OBJECT_PP, MLX5_IB_METHOD_PP_OBJ_ALLOC);
  const auto handle = bundle.out_object(MLX5_IB_ATTR_PP_OBJ_ALLOC_HANDLE);
  bundle.in(MLX5_IB_ATTR_PP_OBJ_ALLOC_CTX, contents, length);
  bundle.in_const(MLX5_IB_ATTR_PP_OBJ_ALLOC_FLAGS, flags);
  bundle.out_struct(MLX5_IB_ATTR_PP_OBJ_ALLOC_INDEX, pp->shown.index);
  if (int error = verbena_execute(context, &bundle)) return fail_null(error);
  pp->handle = bundle.object(handle);
  return &pp.release()->shown;
}

VERBENA_MLX5_EXPORT void mlx5dv_pp_free(mlx5dv_pp* shown) {
  auto* pp = reinterpret_cast<Pp*>(reinterpret_cast<char*>(shown) - offsetof(Pp, shown));
  uverbs::Bundle bundle(MLX5_IB_OBJECT_PP, MLX5_IB_METHOD_PP_OBJ_DESTROY);
  bundle.in_object(MLX5_IB_ATTR_PP_OBJ_DESTROY_HANDLE, pp->handle);
  if (!verbena_execute(pp->context, &bundle)) delete pp;
}

}  // extern "C"
