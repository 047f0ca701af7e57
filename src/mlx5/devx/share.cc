// DEVX objects and memory in a second context over the same open file (ibv_import_device): the library's own view of
// them is handed over, the kernel knows them already.

#include <memory>
#include <new>

#include "mlx5/devx/object.h"
#include "mlx5/devx/umem.h"
#include "mlx5/export.h"
#include "mlx5/uar.h"

using namespace verbena;
using namespace verbena::mlx5;

extern "C" {

VERBENA_MLX5_EXPORT int mlx5dv_devx_obj_export(mlx5dv_devx_obj* object, void* data) {
  std::memcpy(data, &object->handle, sizeof object->handle);
  return 0;
}

VERBENA_MLX5_EXPORT mlx5dv_devx_obj* mlx5dv_devx_obj_import(ibv_context* ibv, void* data) {
  Context* context = mlx5_context(ibv);
  if (!context) return fail_null(EOPNOTSUPP);
  auto* object = new (std::nothrow) mlx5dv_devx_obj{context, 0};
  if (!object) return fail_null(ENOMEM);
  std::memcpy(&object->handle, data, sizeof object->handle);
  return object;
}

VERBENA_MLX5_EXPORT void mlx5dv_devx_obj_unimport(mlx5dv_devx_obj* object) { delete object; }

VERBENA_MLX5_EXPORT int mlx5dv_devx_umem_export(mlx5dv_devx_umem* dv, void* data) {
  const std::uint32_t out[2] = {umem_of(dv)->handle, dv->umem_id};
  std::memcpy(data, out, sizeof out);
  return 0;
}

VERBENA_MLX5_EXPORT mlx5dv_devx_umem* mlx5dv_devx_umem_import(ibv_context* ibv, void* data) {
  Context* context = mlx5_context(ibv);
  if (!context) return fail_null(EOPNOTSUPP);
  std::uint32_t in[2];
  std::memcpy(in, data, sizeof in);
  auto* umem = new (std::nothrow) DevxUmem{{in[1]}, context, nullptr, 0, in[0]};
  return umem ? &umem->dv : static_cast<mlx5dv_devx_umem*>(fail_null(ENOMEM));
}

VERBENA_MLX5_EXPORT void mlx5dv_devx_umem_unimport(mlx5dv_devx_umem* dv) { delete umem_of(dv); }

VERBENA_MLX5_EXPORT int mlx5dv_devx_uar_export_dmabuf_fd(mlx5dv_devx_uar* devx) {
  return verbena_cmd_export_dmabuf_fd(uar_of(devx)->context->ibv(), static_cast<std::uint64_t>(devx->mmap_off));
}

}  // extern "C"
