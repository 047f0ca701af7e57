// mlx5dv: device memory of every kind, its operation addresses, doorbell pages of virtio queues.

#include <rdma/mlx5_user_ioctl_cmds.h>

#include <memory>
#include <new>

#include "mlx5/dm.h"
#include "mlx5/export.h"
#include "support/c_enum.h"

namespace {

using namespace verbena;
using namespace verbena::mlx5;

constexpr std::size_t kPage = 4096;

struct Var {
  mlx5dv_var dv;  // first: what the program holds
  Context* context;
  std::uint32_t handle;
};
Var* var_of(mlx5dv_var* dv) { return reinterpret_cast<Var*>(dv); }

// What an export writes: enough to find the object again in a context over the same file.
struct VarExport {
  std::uint32_t handle, page_id, length;
  std::int64_t mmap_off;
};

}  // namespace

extern "C" {

VERBENA_MLX5_EXPORT ibv_dm* mlx5dv_alloc_dm(ibv_context* ibv, ibv_alloc_dm_attr* attr, mlx5dv_alloc_dm_attr* kind) {
  Context* context = mlx5_context(ibv);
  if (!context) return fail_null(EOPNOTSUPP);
  if (kind->comp_mask) return fail_null(EINVAL);
  return alloc_dm_of(context, *attr, static_cast<std::uint32_t>(number_of(kind->type)));
}

VERBENA_MLX5_EXPORT void* mlx5dv_dm_map_op_addr(ibv_dm* ibdm, std::uint8_t op) {
  Context* context = mlx5_context(ibdm->context);
  if (!context) return fail_null(EOPNOTSUPP);
  std::uint64_t start_offset = 0;
  std::uint16_t index = 0;
  uverbs::Bundle bundle(UVERBS_OBJECT_DM, MLX5_IB_METHOD_DM_MAP_OP_ADDR);
  bundle.in_object(MLX5_IB_ATTR_DM_MAP_OP_ADDR_REQ_HANDLE, ibdm->handle);
  bundle.in(MLX5_IB_ATTR_DM_MAP_OP_ADDR_REQ_OP, &op, sizeof op);
  bundle.out_struct(MLX5_IB_ATTR_DM_MAP_OP_ADDR_RESP_START_OFFSET, start_offset);
  bundle.out_struct(MLX5_IB_ATTR_DM_MAP_OP_ADDR_RESP_PAGE_INDEX, index);
  if (int error = verbena_execute(context, &bundle)) return fail_null(error);
  void* memory = map_device_memory(context, index, dm_of(ibdm)->length);
  return memory ? static_cast<char*>(memory) + (start_offset & (kPage - 1)) : nullptr;
}

VERBENA_MLX5_EXPORT mlx5dv_var* mlx5dv_alloc_var(ibv_context* ibv, std::uint32_t flags) {
  Context* context = mlx5_context(ibv);
  if (!context || flags) return fail_null(EOPNOTSUPP);
  std::unique_ptr<Var> var(new (std::nothrow) Var{{}, context, 0});
  if (!var) return fail_null(ENOMEM);
  std::uint64_t offset = 0;
  uverbs::Bundle bundle(MLX5_IB_OBJECT_VAR, MLX5_IB_METHOD_VAR_OBJ_ALLOC);
  const auto handle = bundle.out_object(MLX5_IB_ATTR_VAR_OBJ_ALLOC_HANDLE);
  bundle.out_struct(MLX5_IB_ATTR_VAR_OBJ_ALLOC_MMAP_OFFSET, offset);
  bundle.out_struct(MLX5_IB_ATTR_VAR_OBJ_ALLOC_MMAP_LENGTH, var->dv.length);
  bundle.out_struct(MLX5_IB_ATTR_VAR_OBJ_ALLOC_PAGE_ID, var->dv.page_id);
  if (int error = verbena_execute(context, &bundle)) return fail_null(error);
  var->dv.mmap_off = static_cast<off_t>(offset);
  var->handle = bundle.object(handle);
  return &var.release()->dv;
}

VERBENA_MLX5_EXPORT void mlx5dv_free_var(mlx5dv_var* dv) {
  Var* var = var_of(dv);
  uverbs::Bundle bundle(MLX5_IB_OBJECT_VAR, MLX5_IB_METHOD_VAR_OBJ_DESTROY);
  bundle.in_object(MLX5_IB_ATTR_VAR_OBJ_DESTROY_HANDLE, var->handle);
  if (!verbena_execute(var->context, &bundle)) delete var;
}

VERBENA_MLX5_EXPORT int mlx5dv_var_export(mlx5dv_var* dv, void* data) {
  const VarExport out{var_of(dv)->handle, dv->page_id, dv->length, dv->mmap_off};
  std::memset(data, 0, sizeof out);
  std::memcpy(data, &out, sizeof out);
  return 0;
}

VERBENA_MLX5_EXPORT mlx5dv_var* mlx5dv_var_import(ibv_context* ibv, void* data) {
  Context* context = mlx5_context(ibv);
  if (!context) return fail_null(EOPNOTSUPP);
  VarExport in;
  std::memcpy(&in, data, sizeof in);
  std::unique_ptr<Var> var(new (std::nothrow) Var{{}, context, in.handle});
  if (!var) return fail_null(ENOMEM);
  var->dv.page_id = in.page_id;
  var->dv.length = in.length;
  var->dv.mmap_off = static_cast<off_t>(in.mmap_off);
  return &var.release()->dv;
}

VERBENA_MLX5_EXPORT void mlx5dv_var_unimport(mlx5dv_var* dv) { delete var_of(dv); }

VERBENA_MLX5_EXPORT void _mlx5dv_get_export_sizes(mlx5dv_export_sizes* sizes, std::size_t length) {
  mlx5dv_export_sizes known = {};
  known.var_attrs_size = sizeof(VarExport);
  known.devx_umem_attrs_size = 2 * sizeof(std::uint32_t);
  known.devx_obj_attrs_size = sizeof(std::uint32_t);
  std::memset(sizes, 0, length);
  std::memcpy(sizes, &known, length < sizeof known ? length : sizeof known);
}

}  // extern "C"
