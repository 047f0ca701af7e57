// DEVX doorbells: registers for queues that the program rings by itself.

#include <rdma/mlx5_user_ioctl_cmds.h>

#include <cstddef>

#include "mlx5/export.h"
#include "mlx5/uar.h"

namespace {

using namespace verbena;
using namespace verbena::mlx5;

mlx5dv_devx_uar* show(Context* context, Uar* uar) {
  uar->context = context;
  uar->devx.reg_addr = uar->reg;
  uar->devx.base_addr = uar->page;
  uar->devx.page_id = uar->page_id;
  uar->devx.mmap_off = static_cast<off_t>(uar->mmap_offset);
  uar->devx.comp_mask = 0;
  return &uar->devx;
}

// A register that was mapped at open has an index of its own; the kernel knows the page behind it.
int find_page(Context* context, Uar* uar) {
  if (uar->kernel_object) return 0;
  uverbs::Bundle bundle(MLX5_IB_OBJECT_DEVX, MLX5_IB_METHOD_DEVX_QUERY_UAR);
  bundle.in_u32(MLX5_IB_ATTR_DEVX_QUERY_UAR_USER_IDX, uar->static_index);
  bundle.out_struct(MLX5_IB_ATTR_DEVX_QUERY_UAR_DEV_IDX, uar->page_id);
  return verbena_execute(context, &bundle);
}

}  // namespace

extern "C" {

VERBENA_MLX5_EXPORT mlx5dv_devx_uar* mlx5dv_devx_alloc_uar(ibv_context* ibv, std::uint32_t flags) {
  Context* context = mlx5_context(ibv);
  if (!context || (flags & ~std::uint32_t{MLX5DV_UAR_ALLOC_TYPE_NC | MLX5DV_UAR_ALLOC_TYPE_NC_DEDICATED}))
    return fail_null(EOPNOTSUPP);
  if (flags & MLX5DV_UAR_ALLOC_TYPE_NC_DEDICATED) {
    Uar* page = take_page(context);
    return page ? show(context, page) : nullptr;
  }
  // Pages without write combining take doorbells only: one is enough for everybody.
  if (flags & MLX5DV_UAR_ALLOC_TYPE_NC)
    return context->nc_uar ? show(context, context->nc_uar) : fail_null(EOPNOTSUPP);
  Uar* uar = take_thread_uar(context);
  if (!uar) return nullptr;
  if (int error = find_page(context, uar)) {
    give_thread_uar(context, uar);
    return fail_null(error);
  }
  return show(context, uar);
}

VERBENA_MLX5_EXPORT void mlx5dv_devx_free_uar(mlx5dv_devx_uar* devx) {
  Uar* uar = uar_of(devx);
  if (uar->alone) return give_page(uar->context, uar);
  if (uar != uar->context->nc_uar) give_thread_uar(uar->context, uar);
}

}  // extern "C"
