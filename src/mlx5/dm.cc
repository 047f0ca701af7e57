// Device memory: allocation, copies, memory regions over it.

#include "mlx5/dm.h"

#include <rdma/mlx5-abi.h>
#include <rdma/mlx5_user_ioctl_cmds.h>
#include <rdma/mlx5_user_ioctl_verbs.h>
#include <sys/mman.h>

#include <atomic>
#include <memory>
#include <new>

#include "mlx5/ops.h"

namespace verbena::mlx5 {

namespace {

constexpr std::size_t kPage = 4096;

std::size_t mapped_length(std::size_t length) { return (length + kPage - 1) & ~(kPage - 1); }

// The device takes accesses of whole aligned words only.
int check_copy(const Dm* dm, std::uint64_t offset, std::size_t length) {
  if (offset > dm->length || length > dm->length - offset) return EFAULT;
  return (offset | length) & 3 ? EINVAL : 0;
}

int copy_to(ibv_dm* ibdm, std::uint64_t offset, const void* from, std::size_t length) {
  Dm* dm = dm_of(ibdm);
  if (int error = check_copy(dm, offset, length)) return error;
  auto* to = reinterpret_cast<std::uint32_t*>(dm->start + offset);
  for (std::size_t i = 0; i < length / 4; ++i) {
    std::uint32_t word;
    std::memcpy(&word, static_cast<const char*>(from) + i * 4, 4);
    std::atomic_ref(to[i]).store(word, std::memory_order_relaxed);
  }
  return 0;
}

int copy_from(void* to, ibv_dm* ibdm, std::uint64_t offset, std::size_t length) {
  Dm* dm = dm_of(ibdm);
  if (int error = check_copy(dm, offset, length)) return error;
  auto* from = reinterpret_cast<std::uint32_t*>(dm->start + offset);
  for (std::size_t i = 0; i < length / 4; ++i) {
    const std::uint32_t word = std::atomic_ref(from[i]).load(std::memory_order_relaxed);
    std::memcpy(static_cast<char*>(to) + i * 4, &word, 4);
  }
  return 0;
}

// Gives the object its mapping. False with errno.
bool map(Context* context, Dm* dm, std::uint16_t index, std::uint64_t start_offset, std::size_t length) {
  dm->mapping = map_device_memory(context, index, length);
  if (!dm->mapping) return false;
  dm->map_offset = device_memory_offset(index);
  dm->start = static_cast<char*>(dm->mapping) + (start_offset & (kPage - 1));
  dm->length = length;
  dm->dm.memcpy_to_dm = copy_to;
  dm->dm.memcpy_from_dm = copy_from;
  return true;
}

ibv_dm* alloc_memic(Context* context, const ibv_alloc_dm_attr& attr, std::unique_ptr<Dm> dm) {
  if (attr.length > context->max_dm_size) return fail_null(EINVAL);
  std::uint64_t start_offset = 0;
  std::uint16_t index = 0;
  verbena_bundle driver(UVERBS_OBJECT_DM, UVERBS_METHOD_DM_ALLOC);
  driver.optional(driver.in_const(MLX5_IB_ATTR_ALLOC_DM_REQ_TYPE, MLX5_IB_UAPI_DM_TYPE_MEMIC));
  driver.out_struct(MLX5_IB_ATTR_ALLOC_DM_RESP_START_OFFSET, start_offset);
  driver.out_struct(MLX5_IB_ATTR_ALLOC_DM_RESP_PAGE_INDEX, index);
  if (int error = verbena_cmd_alloc_dm(context->ibv(), &attr, dm.get(), &driver)) return fail_null(error);
  if (!map(context, dm.get(), index, start_offset, attr.length)) {
    const int error = errno;
    verbena_cmd_free_dm(dm.get());
    return fail_null(error);
  }
  return &dm.release()->dm;
}

// Memory of steering tables has an address for the device alone.
ibv_dm* alloc_steering(Context* context, const ibv_alloc_dm_attr& attr, std::uint32_t type, std::unique_ptr<Dm> dm) {
  verbena_bundle driver(UVERBS_OBJECT_DM, UVERBS_METHOD_DM_ALLOC);
  driver.in_const(MLX5_IB_ATTR_ALLOC_DM_REQ_TYPE, type);
  driver.out_struct(MLX5_IB_ATTR_ALLOC_DM_RESP_START_OFFSET, dm->remote_va);
  if (int error = verbena_cmd_alloc_dm(context->ibv(), &attr, dm.get(), &driver)) return fail_null(error);
  dm->length = attr.length;
  return &dm.release()->dm;
}

}  // namespace

std::uint64_t device_memory_offset(std::uint16_t index) {
  const std::uint64_t page = (std::uint64_t{index} & 0xff) | (std::uint64_t{index} >> 8) << 16 |
                             std::uint64_t{MLX5_IB_MMAP_DEVICE_MEM} << 8;
  return page * kPage;
}

void* map_device_memory(Context* context, std::uint16_t index, std::size_t length) {
  void* memory = context->backend->mmap(nullptr, mapped_length(length), PROT_READ | PROT_WRITE, MAP_SHARED,
                                        context->ibv()->cmd_fd, static_cast<std::int64_t>(device_memory_offset(index)));
  return memory == MAP_FAILED ? nullptr : memory;
}

ibv_dm* alloc_dm_of(Context* context, const ibv_alloc_dm_attr& attr, std::uint32_t type) {
  if (type > MLX5_IB_UAPI_DM_TYPE_HEADER_MODIFY_PATTERN_SW_ICM) return fail_null(EOPNOTSUPP);
  if (attr.comp_mask) return fail_null(EINVAL);
  std::unique_ptr<Dm> dm(new (std::nothrow) Dm{});
  if (!dm) return fail_null(ENOMEM);
  return type == MLX5_IB_UAPI_DM_TYPE_MEMIC ? alloc_memic(context, attr, std::move(dm))
                                            : alloc_steering(context, attr, type, std::move(dm));
}

ibv_dm* alloc_dm(ibv_context* ibv, ibv_alloc_dm_attr* attr) {
  return alloc_dm_of(context_of(ibv), *attr, MLX5_IB_UAPI_DM_TYPE_MEMIC);
}

int free_dm(ibv_dm* ibdm) {
  Dm* dm = dm_of(ibdm);
  if (int error = verbena_cmd_free_dm(dm)) return error;
  unimport_dm(ibdm);
  return 0;
}

void unimport_dm(ibv_dm* ibdm) {
  Dm* dm = dm_of(ibdm);
  if (dm->mapping) munmap(dm->mapping, mapped_length(dm->length));
  delete dm;
}

int export_dm(ibv_dm* dm) { return verbena_cmd_export_dmabuf_fd(dm->context, dm_of(dm)->map_offset); }

ibv_dm* import_dm(ibv_context* ibv, std::uint32_t handle) {
  Context* context = context_of(ibv);
  std::unique_ptr<Dm> dm(new (std::nothrow) Dm{});
  if (!dm) return fail_null(ENOMEM);
  std::uint64_t start_offset = 0, length = 0;
  std::uint16_t index = 0;
  verbena_bundle bundle(UVERBS_OBJECT_DM, MLX5_IB_METHOD_DM_QUERY);
  bundle.in_object(MLX5_IB_ATTR_QUERY_DM_REQ_HANDLE, handle);
  bundle.out_struct(MLX5_IB_ATTR_QUERY_DM_RESP_START_OFFSET, start_offset);
  bundle.out_struct(MLX5_IB_ATTR_QUERY_DM_RESP_PAGE_INDEX, index);
  bundle.out_struct(MLX5_IB_ATTR_QUERY_DM_RESP_LENGTH, length);
  if (int error = verbena_execute(context, &bundle)) return fail_null(error);
  if (!map(context, dm.get(), index, start_offset, length)) return nullptr;
  dm->dm.handle = handle;
  dm->dm.comp_mask = IBV_DM_MASK_HANDLE;
  dm->dm.context = ibv;
  return &dm.release()->dm;
}

ibv_mr* reg_dm_mr(ibv_pd* pd, ibv_dm* dm, std::uint64_t offset, std::size_t length, unsigned access) {
  constexpr unsigned allowed = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ |
                               IBV_ACCESS_REMOTE_ATOMIC | IBV_ACCESS_ZERO_BASED | IBV_ACCESS_OPTIONAL_RANGE;
  if (access & ~allowed) return fail_null(EINVAL);
  auto mr = std::make_unique<verbs::Mr>();
  if (int error = verbena_cmd_reg_dm_mr(pd, dm_of(dm), offset, length, access, mr.get(), nullptr))
    return fail_null(error);
  mr->access = static_cast<int>(access);
  return &mr.release()->mr;
}

}  // namespace verbena::mlx5
