// PP objects: entries of the packet pacing table for queues that the program makes by DEVX.
#include <rdma/mlx5_user_ioctl_cmds.h>
#include <rdma/mlx5_user_ioctl_verbs.h>

#include <cerrno>
#include <cstring>

#include "kernel/method.h"
#include "prm/misc.h"

namespace verbena::kernel {
namespace {

struct Pp : Object {
  Pp() : Object(MLX5_IB_OBJECT_PP) {}
  int destroy(File& file) override {
    file.node().rates().give_back(file.device(), index);
    return 0;
  }
  std::uint16_t index = 0;
};

constexpr AttrSpec kAllocAttrs[] = {
    uverbs::object_attr(MLX5_IB_ATTR_PP_OBJ_ALLOC_HANDLE, MLX5_IB_OBJECT_PP, AttrAccess::create),
    uverbs::any_in_attr(MLX5_IB_ATTR_PP_OBJ_ALLOC_CTX, true),
    uverbs::flags_attr(MLX5_IB_ATTR_PP_OBJ_ALLOC_FLAGS, true),
    uverbs::out_attr(MLX5_IB_ATTR_PP_OBJ_ALLOC_INDEX, 2),
};

int native_alloc(File& file, Request& request) {
  const auto in = request.in(MLX5_IB_ATTR_PP_OBJ_ALLOC_CTX);
  RateContents contents{};
  if (in.empty() || in.size() > contents.size()) return EINVAL;
  // Only queues made by DEVX can name an entry.
  if (!file.context().uid) return EINVAL;
  std::memcpy(contents.data(), in.data(), in.size());
  std::uint32_t flags = 0;
  if (int error = request.flags(MLX5_IB_ATTR_PP_OBJ_ALLOC_FLAGS, MLX5_IB_UAPI_PP_ALLOC_FLAGS_DEDICATED_INDEX, &flags))
    return error;
  const bool dedicated = flags & MLX5_IB_UAPI_PP_ALLOC_FLAGS_DEDICATED_INDEX;
  auto pp = std::make_unique<Pp>();
  if (int error = file.node().rates().take(file.device(), contents, dedicated ? file.context().uid : prm::kSharedResourceUid,
                                           dedicated, &pp->index))
    return error;
  request.write(MLX5_IB_ATTR_PP_OBJ_ALLOC_INDEX, pp->index);
  request.set_id(MLX5_IB_ATTR_PP_OBJ_ALLOC_HANDLE, file.objects().add(std::move(pp)));
  return 0;
}

constexpr AttrSpec kDestroyAttrs[] = {
    uverbs::object_attr(MLX5_IB_ATTR_PP_OBJ_DESTROY_HANDLE, MLX5_IB_OBJECT_PP, AttrAccess::destroy)};
constexpr Method kMethods[] = {
    {{MLX5_IB_OBJECT_PP, MLX5_IB_METHOD_PP_OBJ_ALLOC, kAllocAttrs}, native_alloc},
    {{MLX5_IB_OBJECT_PP, MLX5_IB_METHOD_PP_OBJ_DESTROY, kDestroyAttrs},
     destroy_method<MLX5_IB_OBJECT_PP, MLX5_IB_ATTR_PP_OBJ_DESTROY_HANDLE>},
};

}  // namespace

std::span<const Method> pp_methods() { return kMethods; }

}  // namespace verbena::kernel
