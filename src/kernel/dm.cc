// Device memory: MEMIC. The driver hands out pages of the BAR, the device the memory in them; a program maps the pages.
#include "kernel/dm.h"

#include <rdma/mlx5_user_ioctl_cmds.h>
#include <rdma/mlx5_user_ioctl_verbs.h>

#include <cerrno>

#include "kernel/command.h"
#include "kernel/ib.h"
#include "kernel/method.h"
#include "kernel/mr.h"
#include "kernel/privilege.h"
#include "prm/misc.h"

namespace verbena::kernel {

namespace {

using ModifyIn = prm::ModifyMemicIn;
constexpr std::uint16_t kGiveAddress = 0, kTakeAddress = 1;  // op_mod

// Gives an operation its address in the BAR, or takes it. 0 or an errno.
int modify_memic(File& file, const Dm& dm, std::uint16_t op_mod, std::uint8_t op, std::uint64_t* address) {
  Command<ModifyIn, prm::ModifyMemicOut> command(prm::Opcode::modify_memic);
  command.in().set<ModifyIn::op_mod>(op_mod).set<ModifyIn::memic_operation_type>(op);
  command.in().set<ModifyIn::memic_start_addr>(dm.address);
  if (int error = command.run(file.device())) return error;
  *address = command.out().get<prm::ModifyMemicOut::memic_operation_addr>();
  return 0;
}

}  // namespace

int Dm::destroy(File& file) {
  for (auto it = operations.begin(); it != operations.end(); it = operations.erase(it)) {
    std::uint64_t address;
    if (int error = modify_memic(file, *this, kTakeAddress, it->first, &address)) return error;
    file.remove_mapping(it->second.offset);
  }
  Command<prm::DeallocMemicIn, prm::DeallocMemicOut> command(prm::Opcode::dealloc_memic);
  command.in().set<prm::DeallocMemicIn::memic_start_addr>(address);
  command.in().set<prm::DeallocMemicIn::memic_size>(bytes);
  if (int error = command.run(file.device())) return error;
  file.remove_mapping(offset);
  file.node().memic_pages().give_back(page, pages);
  return 0;
}

namespace {

constexpr std::uint32_t kGranule = 64, kLogGranule = 6;

constexpr AttrSpec kAllocAttrs[] = {
    uverbs::object_attr(UVERBS_ATTR_ALLOC_DM_HANDLE, UVERBS_OBJECT_DM, AttrAccess::create),
    uverbs::in_attr(UVERBS_ATTR_ALLOC_DM_LENGTH, 8),
    uverbs::in_attr(UVERBS_ATTR_ALLOC_DM_ALIGNMENT, 4),
    uverbs::out_attr(MLX5_IB_ATTR_ALLOC_DM_RESP_START_OFFSET, 8),
    uverbs::out_attr(MLX5_IB_ATTR_ALLOC_DM_RESP_PAGE_INDEX, 2, false),
    uverbs::const_attr(MLX5_IB_ATTR_ALLOC_DM_REQ_TYPE, false),
};

// Tries one run of pages after another: a page may be free for the driver and not for the device. 0 or an errno.
int allocate(File& file, std::uint32_t alignment, Dm& dm) {
  const Caps& caps = file.node().caps();
  if (!dm.bytes) return EINVAL;
  const std::uint32_t log_units = alignment < kLogGranule ? 0 : alignment - kLogGranule;
  if (log_units > caps.log_max_memic_alignment) return EINVAL;
  dm.pages = static_cast<std::uint32_t>((dm.bytes + kPageSize - 1) / kPageSize);
  for (std::size_t from = 0;;) {
    const auto page = file.node().memic_pages().take(dm.pages, from);
    if (!page) return ENOMEM;
    using In = prm::AllocMemicIn;
    Command<In, prm::AllocMemicOut> command(prm::Opcode::alloc_memic);
    command.in().set<In::range_start_addr>(caps.memic_bar_start + *page * kPageSize);
    command.in().set<In::range_size>(static_cast<std::uint32_t>(dm.pages * kPageSize));
    command.in().set<In::memic_size>(dm.bytes).set<In::log_memic_addr_alignment>(log_units);
    const int error = command.run(file.device());
    if (!error) {
      dm.page = *page;
      dm.address = command.out().get<prm::AllocMemicOut::memic_start_addr>();
      return 0;
    }
    file.node().memic_pages().give_back(*page, dm.pages);
    if (error != EAGAIN) return error;
    from = *page + 1;
  }
}

std::uint64_t start_offset(const Dm& dm) { return dm.address & (kPageSize - 1); }

int alloc_memic(File& file, Request& request) {
  const auto length = request.value<std::uint64_t>(UVERBS_ATTR_ALLOC_DM_LENGTH);
  if (length > file.node().caps().memic_bar_size) return length > UINT64_MAX - kGranule ? EINVAL : ENOMEM;
  auto dm = std::make_unique<Dm>();
  dm->length = length;
  dm->bytes = static_cast<std::uint32_t>((length + kGranule - 1) & ~std::uint64_t{kGranule - 1});
  if (int error = allocate(file, request.value<std::uint32_t>(UVERBS_ATTR_ALLOC_DM_ALIGNMENT), *dm)) return error;
  const std::size_t mapped = dm->pages * kPageSize;
  void* memory = file.device().behind_bar(dm->address & ~(kPageSize - 1), mapped);
  if (!memory || !file.add_device_memory(memory, mapped, &dm->offset)) {
    dm->destroy(file);
    return ENOMEM;
  }
  request.write(MLX5_IB_ATTR_ALLOC_DM_RESP_PAGE_INDEX, File::device_memory_index(dm->offset));
  request.write(MLX5_IB_ATTR_ALLOC_DM_RESP_START_OFFSET, start_offset(*dm));
  request.set_id(UVERBS_ATTR_ALLOC_DM_HANDLE, file.objects().add(std::move(dm)));
  return 0;
}

int native_alloc(File& file, Request& request) {
  switch (request.value<std::uint64_t>(MLX5_IB_ATTR_ALLOC_DM_REQ_TYPE, MLX5_IB_UAPI_DM_TYPE_MEMIC)) {
    case MLX5_IB_UAPI_DM_TYPE_MEMIC:
      return file.node().caps().memic ? alloc_memic(file, request) : EOPNOTSUPP;
    case MLX5_IB_UAPI_DM_TYPE_STEERING_SW_ICM:
    case MLX5_IB_UAPI_DM_TYPE_HEADER_MODIFY_SW_ICM:
    case MLX5_IB_UAPI_DM_TYPE_HEADER_MODIFY_PATTERN_SW_ICM:
      // Memory of steering that the program manages: the device has none.
      return may_use_steering_memory() ? EOPNOTSUPP : EPERM;
    default:
      return EOPNOTSUPP;
  }
}

constexpr AttrSpec kFreeAttrs[] = {
    uverbs::object_attr(UVERBS_ATTR_FREE_DM_HANDLE, UVERBS_OBJECT_DM, AttrAccess::destroy)};

constexpr AttrSpec kQueryAttrs[] = {
    uverbs::object_attr(MLX5_IB_ATTR_QUERY_DM_REQ_HANDLE, UVERBS_OBJECT_DM, AttrAccess::read),
    uverbs::out_attr(MLX5_IB_ATTR_QUERY_DM_RESP_START_OFFSET, 8),
    uverbs::out_attr(MLX5_IB_ATTR_QUERY_DM_RESP_PAGE_INDEX, 2),
    uverbs::out_attr(MLX5_IB_ATTR_QUERY_DM_RESP_LENGTH, 8),
};

int native_query(File& file, Request& request) {
  int error = 0;
  const Dm* dm = file.find<Dm>(request.handle(MLX5_IB_ATTR_QUERY_DM_REQ_HANDLE), UVERBS_OBJECT_DM, &error);
  if (!dm) return error;
  request.write(MLX5_IB_ATTR_QUERY_DM_RESP_PAGE_INDEX, File::device_memory_index(dm->offset));
  request.write(MLX5_IB_ATTR_QUERY_DM_RESP_START_OFFSET, start_offset(*dm));
  request.write(MLX5_IB_ATTR_QUERY_DM_RESP_LENGTH, dm->length);
  return 0;
}

constexpr AttrSpec kMapOpAttrs[] = {
    uverbs::object_attr(MLX5_IB_ATTR_DM_MAP_OP_ADDR_REQ_HANDLE, UVERBS_OBJECT_DM, AttrAccess::read),
    uverbs::in_attr(MLX5_IB_ATTR_DM_MAP_OP_ADDR_REQ_OP, 1),
    uverbs::out_attr(MLX5_IB_ATTR_DM_MAP_OP_ADDR_RESP_START_OFFSET, 8),
    uverbs::out_attr(MLX5_IB_ATTR_DM_MAP_OP_ADDR_RESP_PAGE_INDEX, 2),
};

// An operation has one address for good: asked again, the same answer. 0 or an errno.
int give_operation(File& file, Dm& dm, std::uint8_t op, Dm::Operation* operation) {
  if (const auto it = dm.operations.find(op); it != dm.operations.end()) {
    *operation = it->second;
    return 0;
  }
  if (int error = modify_memic(file, dm, kGiveAddress, op, &operation->address)) return error;
  std::uint64_t page = operation->address & ~(kPageSize - 1);
  if (!file.add_operations(page, dm.pages * kPageSize, &operation->offset)) {
    modify_memic(file, dm, kTakeAddress, op, &page);
    return ENOMEM;
  }
  dm.operations[op] = *operation;
  return 0;
}

int native_map_op(File& file, Request& request) {
  int error = 0;
  Dm* dm = file.find<Dm>(request.handle(MLX5_IB_ATTR_DM_MAP_OP_ADDR_REQ_HANDLE), UVERBS_OBJECT_DM, &error);
  if (!dm) return error;
  const auto op = request.value<std::uint8_t>(MLX5_IB_ATTR_DM_MAP_OP_ADDR_REQ_OP);
  if (op >= 32 || !(file.node().caps().memic_operations >> op & 1)) return EOPNOTSUPP;
  Dm::Operation operation{};
  if ((error = give_operation(file, *dm, op, &operation))) return error;
  request.write(MLX5_IB_ATTR_DM_MAP_OP_ADDR_RESP_PAGE_INDEX, File::device_memory_index(operation.offset));
  request.write(MLX5_IB_ATTR_DM_MAP_OP_ADDR_RESP_START_OFFSET, operation.address & (kPageSize - 1));
  return 0;
}

// ---- regions ----

constexpr AttrSpec kRegAttrs[] = {
    uverbs::object_attr(UVERBS_ATTR_REG_DM_MR_HANDLE, UVERBS_OBJECT_MR, AttrAccess::create),
    uverbs::in_attr(UVERBS_ATTR_REG_DM_MR_OFFSET, 8),
    uverbs::in_attr(UVERBS_ATTR_REG_DM_MR_LENGTH, 8),
    uverbs::object_attr(UVERBS_ATTR_REG_DM_MR_PD_HANDLE, UVERBS_OBJECT_PD, AttrAccess::read),
    uverbs::flags_attr(UVERBS_ATTR_REG_DM_MR_ACCESS_FLAGS),
    uverbs::object_attr(UVERBS_ATTR_REG_DM_MR_DM_HANDLE, UVERBS_OBJECT_DM, AttrAccess::read),
    uverbs::out_attr(UVERBS_ATTR_REG_DM_MR_RESP_LKEY, 4),
    uverbs::out_attr(UVERBS_ATTR_REG_DM_MR_RESP_RKEY, 4),
};

int check_region(const Dm& dm, std::uint64_t offset, std::uint64_t length, std::uint32_t access) {
  if (!(access & Access::zero_based)) return EINVAL;
  if (int error = check_access(access)) return error;
  if (offset > dm.length || length > dm.length - offset) return EINVAL;
  constexpr std::uint32_t allowed = Access::local_write | Access::remote_write | Access::remote_read |
                                    Access::remote_atomic | Access::zero_based | Access::optional_range;
  return access & ~allowed ? EINVAL : 0;
}

int native_reg(File& file, Request& request) {
  int error = 0;
  Pd* pd = file.find<Pd>(request.handle(UVERBS_ATTR_REG_DM_MR_PD_HANDLE), UVERBS_OBJECT_PD, &error);
  if (!pd) return error;
  Dm* dm = file.find<Dm>(request.handle(UVERBS_ATTR_REG_DM_MR_DM_HANDLE), UVERBS_OBJECT_DM, &error);
  if (!dm) return error;
  std::uint32_t access = 0;
  if ((error = request.flags(UVERBS_ATTR_REG_DM_MR_ACCESS_FLAGS, Access::known, &access))) return error;
  const auto offset = request.value<std::uint64_t>(UVERBS_ATTR_REG_DM_MR_OFFSET);
  const auto length = request.value<std::uint64_t>(UVERBS_ATTR_REG_DM_MR_LENGTH);
  if ((error = check_region(*dm, offset, length, access))) return error;
  auto mr = std::make_unique<Mr>();
  if ((error = create_memic_key(file, *pd, dm->address + offset, length, access, &mr->key))) return error;
  mr->pd = pd;
  mr->dm = dm;
  ++pd->users;
  ++dm->users;
  mr->length = length;
  mr->access = access;
  request.write(UVERBS_ATTR_REG_DM_MR_RESP_LKEY, mr->key);
  request.write(UVERBS_ATTR_REG_DM_MR_RESP_RKEY, mr->key);
  request.set_id(UVERBS_ATTR_REG_DM_MR_HANDLE, file.objects().add(std::move(mr)));
  return 0;
}

constexpr Method kMethods[] = {
    {{UVERBS_OBJECT_DM, UVERBS_METHOD_DM_ALLOC, kAllocAttrs}, native_alloc},
    {{UVERBS_OBJECT_DM, UVERBS_METHOD_DM_FREE, kFreeAttrs},
     destroy_method<UVERBS_OBJECT_DM, UVERBS_ATTR_FREE_DM_HANDLE>},
    {{UVERBS_OBJECT_DM, MLX5_IB_METHOD_DM_QUERY, kQueryAttrs}, native_query},
    {{UVERBS_OBJECT_DM, MLX5_IB_METHOD_DM_MAP_OP_ADDR, kMapOpAttrs}, native_map_op},
    {{UVERBS_OBJECT_MR, UVERBS_METHOD_DM_MR_REG, kRegAttrs}, native_reg},
};

}  // namespace

std::span<const Method> dm_methods() { return kMethods; }

}  // namespace verbena::kernel
