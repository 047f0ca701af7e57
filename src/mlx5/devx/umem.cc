// DEVX user memory: what queues and memory keys of the program's own commands lie in.

#include "mlx5/devx/umem.h"

#include <rdma/mlx5_user_ioctl_cmds.h>

#include <memory>
#include <new>

#include "mlx5/export.h"
#include "mlx5/heap.h"

namespace {

using namespace verbena;
using namespace verbena::mlx5;

// The first registration call had no say about page sizes; kernels of its time do not know the attribute.
DevxUmem* reg(Context* context, const mlx5dv_devx_umem_in& in, bool with_page_sizes) {
  if (in.comp_mask & ~std::uint64_t{MLX5DV_UMEM_MASK_DMABUF}) return fail_null(EOPNOTSUPP);
  const bool dmabuf = in.comp_mask & MLX5DV_UMEM_MASK_DMABUF;
  std::unique_ptr<DevxUmem> umem(new (std::nothrow) DevxUmem{{}, context, in.addr, in.size, 0});
  if (!umem) return fail_null(ENOMEM);
  if (dmabuf) umem->size = 0;  // `addr` is no address of this process
  if (ibv_dontfork_range(umem->addr, umem->size)) return nullptr;
  uverbs::Bundle bundle(MLX5_IB_OBJECT_DEVX_UMEM, MLX5_IB_METHOD_DEVX_UMEM_REG);
  bundle.in_u64(MLX5_IB_ATTR_DEVX_UMEM_REG_ADDR, reinterpret_cast<std::uintptr_t>(in.addr));
  bundle.in_u64(MLX5_IB_ATTR_DEVX_UMEM_REG_LEN, in.size);
  bundle.in_u32(MLX5_IB_ATTR_DEVX_UMEM_REG_ACCESS, in.access);
  if (dmabuf) bundle.in_fd(MLX5_IB_ATTR_DEVX_UMEM_REG_DMABUF_FD, in.dmabuf_fd);
  const auto sizes = bundle.in_u64(MLX5_IB_ATTR_DEVX_UMEM_REG_PGSZ_BITMAP, in.pgsz_bitmap);
  if (!with_page_sizes) bundle.optional(sizes);
  bundle.out_struct(MLX5_IB_ATTR_DEVX_UMEM_REG_OUT_ID, umem->dv.umem_id);
  const auto handle = bundle.out_object(MLX5_IB_ATTR_DEVX_UMEM_REG_HANDLE);
  const int error = dmabuf && in.dmabuf_fd == -1 ? EBADF : verbena_execute(context, &bundle);
  if (error) {
    ibv_dofork_range(umem->addr, umem->size);
    return fail_null(error);
  }
  umem->handle = bundle.object(handle);
  return umem.release();
}

// Any page size that the device has.
constexpr std::uint64_t kAnyPageSize = ~std::uint64_t{0} & ~std::uint64_t{kUarPage - 1};

mlx5dv_devx_umem* shown(DevxUmem* umem) { return umem ? &umem->dv : nullptr; }

}  // namespace

extern "C" {

VERBENA_MLX5_EXPORT mlx5dv_devx_umem* mlx5dv_devx_umem_reg(ibv_context* ibv, void* addr, std::size_t size,
                                                           std::uint32_t access) {
  Context* context = mlx5_context(ibv);
  if (!context) return fail_null(EOPNOTSUPP);
  mlx5dv_devx_umem_in in = {};
  in.addr = addr;
  in.size = size;
  in.access = access;
  in.pgsz_bitmap = kAnyPageSize;
  return shown(reg(context, in, false));
}

VERBENA_MLX5_EXPORT mlx5dv_devx_umem* mlx5dv_devx_umem_reg_ex(ibv_context* ibv, mlx5dv_devx_umem_in* in) {
  Context* context = mlx5_context(ibv);
  return context ? shown(reg(context, *in, true)) : fail_null(EOPNOTSUPP);
}

VERBENA_MLX5_EXPORT int mlx5dv_devx_umem_dereg(mlx5dv_devx_umem* dv) {
  DevxUmem* umem = umem_of(dv);
  uverbs::Bundle bundle(MLX5_IB_OBJECT_DEVX_UMEM, MLX5_IB_METHOD_DEVX_UMEM_DEREG);
  bundle.in_object(MLX5_IB_ATTR_DEVX_UMEM_DEREG_HANDLE, umem->handle);
  if (int error = verbena_execute(umem->context, &bundle)) return error;
  ibv_dofork_range(umem->addr, umem->size);
  delete umem;
  return 0;
}

}  // extern "C"
