// mlx5dv: memory that comes as a dma-buf, and the function of the device that reaches it directly.

#include "mlx5/export.h"
#include "mlx5/ops.h"
#include "uverbs/newer.h"

using namespace verbena;
using namespace verbena::mlx5;

extern "C" {

VERBENA_MLX5_EXPORT ibv_mr* mlx5dv_reg_dmabuf_mr(ibv_pd* pd, std::uint64_t offset, std::size_t length,
                                                 std::uint64_t iova, int fd, int access, int vendor_access) {
  if (!mlx5_context(pd->context)) return fail_null(EOPNOTSUPP);
  verbena_bundle driver(UVERBS_OBJECT_MR, UVERBS_METHOD_REG_DMABUF_MR);
  driver.in_u32(uverbs::newer::kRegDmabufAccessFlags, static_cast<std::uint32_t>(vendor_access));
  return reg_dmabuf_mr_with(pd, offset, length, iova, fd, access, &driver);
}

VERBENA_MLX5_EXPORT int mlx5dv_get_data_direct_sysfs_path(ibv_context* ibv, char* path, std::size_t room) {
  Context* context = mlx5_context(ibv);
  if (!context) return EOPNOTSUPP;
  uverbs::Bundle bundle(UVERBS_OBJECT_DEVICE, uverbs::newer::kGetDataDirectSysfsPath);
  bundle.out(uverbs::newer::kDataDirectSysfsPath, path, room);
  return verbena_execute(context, &bundle);
}

}  // extern "C"
