// UAR objects: doorbell pages made on request.
//
// A page is ordinary memory of the command descriptor. The device takes what it needs from the doorbell records; the page
// is looked at for queues that the program rings by hand only (File::serve_watched).
#include <rdma/mlx5_user_ioctl_cmds.h>
#include <rdma/mlx5_user_ioctl_verbs.h>

#include <cerrno>

#include "kernel/command.h"
#include "kernel/ib.h"
#include "kernel/method.h"
#include "prm/misc.h"

namespace verbena::kernel {
namespace {

int dealloc(File& file, std::uint32_t page) {
  Command<prm::DeallocUarIn, prm::DeallocUarOut> command(prm::Opcode::dealloc_uar);
  command.in().set<prm::DeallocUarIn::uar>(page);
  return command.run(file.device());
}

struct Uar : Object {
  Uar() : Object(MLX5_IB_OBJECT_UAR) {}
  // Never refused: the driver gives the page back when it can, and what queues still ring stays theirs until they are gone.
  int destroy(File& file) override {
    if (dealloc(file, page_id))
      file.retire_uar(offset, page_id);
    else
      file.remove_uar(offset);
    return 0;
  }
  std::uint32_t page_id = 0;
  std::uint64_t offset = 0;
};

constexpr AttrSpec kAllocAttrs[] = {
    uverbs::object_attr(MLX5_IB_ATTR_UAR_OBJ_ALLOC_HANDLE, MLX5_IB_OBJECT_UAR, AttrAccess::create),
    uverbs::const_attr(MLX5_IB_ATTR_UAR_OBJ_ALLOC_TYPE),
    uverbs::out_attr(MLX5_IB_ATTR_UAR_OBJ_ALLOC_MMAP_OFFSET, 8),
    uverbs::out_attr(MLX5_IB_ATTR_UAR_OBJ_ALLOC_MMAP_LENGTH, 4),
    uverbs::out_attr(MLX5_IB_ATTR_UAR_OBJ_ALLOC_PAGE_ID, 4),
};

int native_alloc(File& file, Request& request) {
  const auto type = request.value<std::uint64_t>(MLX5_IB_ATTR_UAR_OBJ_ALLOC_TYPE);
  if (type != MLX5_IB_UAPI_UAR_ALLOC_TYPE_BF && type != MLX5_IB_UAPI_UAR_ALLOC_TYPE_NC) return EOPNOTSUPP;
  auto uar = std::make_unique<Uar>();
  Command<prm::AllocUarIn, prm::AllocUarOut> command(prm::Opcode::alloc_uar);
  if (int error = command.run(file.device())) {
    if (!give_back_uars(file) || command.run(file.device())) return error;
  }
  uar->page_id = command.out().get<prm::AllocUarOut::uar>();
  if (!file.add_uar(&uar->offset)) {
    dealloc(file, uar->page_id);
    return ENOMEM;
  }
  request.write(MLX5_IB_ATTR_UAR_OBJ_ALLOC_MMAP_OFFSET, uar->offset);
  request.write(MLX5_IB_ATTR_UAR_OBJ_ALLOC_MMAP_LENGTH, static_cast<std::uint32_t>(kPageSize));
  request.write(MLX5_IB_ATTR_UAR_OBJ_ALLOC_PAGE_ID, uar->page_id);
  request.set_id(MLX5_IB_ATTR_UAR_OBJ_ALLOC_HANDLE, file.objects().add(std::move(uar)));
  return 0;
}

constexpr AttrSpec kDestroyAttrs[] = {
    uverbs::object_attr(MLX5_IB_ATTR_UAR_OBJ_DESTROY_HANDLE, MLX5_IB_OBJECT_UAR, AttrAccess::destroy)};
constexpr Method kMethods[] = {
    {{MLX5_IB_OBJECT_UAR, MLX5_IB_METHOD_UAR_OBJ_ALLOC, kAllocAttrs}, native_alloc},
    {{MLX5_IB_OBJECT_UAR, MLX5_IB_METHOD_UAR_OBJ_DESTROY, kDestroyAttrs},
     destroy_method<MLX5_IB_OBJECT_UAR, MLX5_IB_ATTR_UAR_OBJ_DESTROY_HANDLE>},
};

}  // namespace

unsigned give_back_uars(File& file) {
  return static_cast<unsigned>(std::erase_if(file.retired_uars(), [&](const RetiredUar& uar) {
    if (dealloc(file, uar.page)) return false;
    file.remove_uar(uar.offset);
    return true;
  }));
}

std::span<const Method> uar_methods() { return kMethods; }

}  // namespace verbena::kernel
