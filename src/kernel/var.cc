// VAR objects: doorbell pages of virtio queues. The device has none of these queues, so what is stored there rings
// nothing.
#include <rdma/mlx5_user_ioctl_cmds.h>

#include <cerrno>

#include "kernel/ib.h"
#include "kernel/method.h"
#include "uverbs/newer.h"

namespace verbena::kernel {
namespace {

struct Var : Object {
  Var() : Object(MLX5_IB_OBJECT_VAR) {}
  int destroy(File& file) override {
    file.remove_mapping(offset);
    file.node().virtio_pages().give_back(page, 1);
    return 0;
  }
  std::uint32_t page = 0;
  std::uint64_t offset = 0;
};

constexpr AttrSpec kAllocAttrs[] = {
    uverbs::object_attr(MLX5_IB_ATTR_VAR_OBJ_ALLOC_HANDLE, MLX5_IB_OBJECT_VAR, AttrAccess::create),
    uverbs::out_attr(MLX5_IB_ATTR_VAR_OBJ_ALLOC_MMAP_OFFSET, 8),
    uverbs::out_attr(MLX5_IB_ATTR_VAR_OBJ_ALLOC_MMAP_LENGTH, 4),
    uverbs::out_attr(MLX5_IB_ATTR_VAR_OBJ_ALLOC_PAGE_ID, 4),
    uverbs::flags_attr(uverbs::newer::kVarAllocFlags),
};

int native_alloc(File& file, Request& request) {
  std::uint32_t flags = 0;
  if (int error = request.flags(uverbs::newer::kVarAllocFlags, uverbs::newer::kVarAllocTlp, &flags)) return error;
  if (flags) return EOPNOTSUPP;  // the device emulates no PCI functions
  auto var = std::make_unique<Var>();
  const auto page = file.node().virtio_pages().take(1, 0);
  if (!page) return ENOSPC;
  var->page = *page;
  if (!file.add_virtio(&var->offset)) {
    file.node().virtio_pages().give_back(*page, 1);
    return ENOMEM;
  }
  request.write(MLX5_IB_ATTR_VAR_OBJ_ALLOC_MMAP_OFFSET, var->offset);
  request.write(MLX5_IB_ATTR_VAR_OBJ_ALLOC_MMAP_LENGTH, static_cast<std::uint32_t>(kPageSize));
  request.write(MLX5_IB_ATTR_VAR_OBJ_ALLOC_PAGE_ID, var->page);
  request.set_id(MLX5_IB_ATTR_VAR_OBJ_ALLOC_HANDLE, file.objects().add(std::move(var)));
  return 0;
}

constexpr AttrSpec kDestroyAttrs[] = {
    uverbs::object_attr(MLX5_IB_ATTR_VAR_OBJ_DESTROY_HANDLE, MLX5_IB_OBJECT_VAR, AttrAccess::destroy)};
constexpr Method kMethods[] = {
    {{MLX5_IB_OBJECT_VAR, MLX5_IB_METHOD_VAR_OBJ_ALLOC, kAllocAttrs}, native_alloc},
    {{MLX5_IB_OBJECT_VAR, MLX5_IB_METHOD_VAR_OBJ_DESTROY, kDestroyAttrs},
     destroy_method<MLX5_IB_OBJECT_VAR, MLX5_IB_ATTR_VAR_OBJ_DESTROY_HANDLE>},
};

}  // namespace

std::span<const Method> var_methods() { return kMethods; }

}  // namespace verbena::kernel
