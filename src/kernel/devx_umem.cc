// DEVX_UMEM: memory of the program that its queues and memory keys may lie in.
#include <algorithm>
#include <bit>
#include <new>

#include "kernel/command.h"
#include "kernel/devx.h"
#include "kernel/ib.h"
#include "kernel/method.h"
#include "kernel/mr.h"
#include "prm/misc.h"
#include "prm/mkey.h"

namespace verbena::kernel {

int DevxUmem::destroy(File& file) {
  Command<prm::DestroyUmemIn, prm::DestroyUmemOut> command(prm::Opcode::destroy_umem, file.context().uid);
  command.in().set<prm::DestroyUmemIn::umem_id>(id);
  if (int error = command.run(file.device())) return error;
  file.umems().erase(id);
  return 0;
}

namespace {

constexpr unsigned kAdapterPage = 12;
constexpr unsigned kLargestPage = 31 + kAdapterPage;  // what log_page_size can say
constexpr std::uint64_t kMaxEntries = 1u << 20;       // 4 GiB of small pages

constexpr AttrSpec kRegAttrs[] = {
    uverbs::object_attr(MLX5_IB_ATTR_DEVX_UMEM_REG_HANDLE, MLX5_IB_OBJECT_DEVX_UMEM, AttrAccess::create),
    uverbs::in_attr(MLX5_IB_ATTR_DEVX_UMEM_REG_ADDR, 8),
    uverbs::in_attr(MLX5_IB_ATTR_DEVX_UMEM_REG_LEN, 8),
    uverbs::flags_attr(MLX5_IB_ATTR_DEVX_UMEM_REG_ACCESS),
    uverbs::in_attr(MLX5_IB_ATTR_DEVX_UMEM_REG_PGSZ_BITMAP, 8, false),
    uverbs::fd_attr(MLX5_IB_ATTR_DEVX_UMEM_REG_DMABUF_FD, 0, AttrAccess::read, false),
    uverbs::out_attr(MLX5_IB_ATTR_DEVX_UMEM_REG_OUT_ID, 4),
};

// The kernel's choice of a page for memory that is one run of addresses, as it is here: of the allowed sizes, none greater
// than the memory needs, the least that holds it whole, else the greatest; then halved until the memory is whole pages.
// (A small page may begin before the memory, a large one may not: what lies around the memory is not the program's.)
int choose_page(std::uint64_t allowed, std::uint64_t address, std::uint64_t length, unsigned* log_page) {
  const unsigned useful = std::min(std::max<unsigned>(std::bit_width(length - 1), kAdapterPage), kLargestPage);
  allowed &= (~std::uint64_t{0} << kAdapterPage) & ((std::uint64_t{2} << useful) - 1);
  if (!allowed) return EINVAL;
  const unsigned spans = static_cast<unsigned>(std::bit_width((address + length - 1) ^ address));
  const std::uint64_t whole = spans < 64 ? allowed & (~std::uint64_t{0} << spans) : 0;
  *log_page = static_cast<unsigned>(whole ? std::countr_zero(whole) : std::bit_width(allowed) - 1);
  const std::uint64_t aligned = address | length;
  while (*log_page > kAdapterPage && aligned & ((std::uint64_t{1} << *log_page) - 1)) --*log_page;
  return 0;
}

int create_umem(File& file, std::uint64_t address, std::uint64_t length, bool writable, unsigned log_page,
                std::uint32_t* id) {
  const std::uint64_t page = std::uint64_t{1} << log_page;
  const std::uint64_t first = address & ~(page - 1);
  std::uint64_t end = 0;
  if (!length || __builtin_add_overflow(address, length + page - 1, &end)) return EINVAL;
  const std::uint64_t entries = ((end & ~(page - 1)) - first) >> log_page;
  if (entries > kMaxEntries) return ENOMEM;
  Command<prm::CreateUmemIn, prm::CreateUmemOut> command(prm::Opcode::create_umem, file.context().uid,
                                                         entries * prm::Mtt::size);
  const auto umem = command.in().sub<prm::CreateUmemIn::umem>();
  umem.set<prm::Umem::num_of_mtt>(entries);
  umem.set<prm::Umem::log_page_size>(log_page - kAdapterPage);
  umem.set<prm::Umem::page_offset>(static_cast<std::uint32_t>(address - first));
  for (std::uint64_t i = 0; i < entries; ++i) {
    const std::uint64_t at = first + (i << log_page);
    const auto entry = umem.at<prm::Umem::mtt>(i);
    entry.set<prm::Mtt::ptag_63_32>(static_cast<std::uint32_t>(at >> 32));
    entry.set<prm::Mtt::ptag_31_8>(static_cast<std::uint32_t>(at) >> 8);
    entry.set<prm::Mtt::rd_en>(1).set<prm::Mtt::wr_en>(writable);
  }
  if (int error = command.run(file.device())) return error;
  *id = command.out().get<prm::CreateUmemOut::umem_id>();
  return 0;
}

int native_reg(File& file, Request& request) {
  if (!file.context().uid) return EINVAL;
  constexpr std::uint32_t allowed =
      Access::local_write | Access::remote_write | Access::remote_read | Access::relaxed_ordering;
  std::uint32_t access = 0;
  if (int error = request.flags(MLX5_IB_ATTR_DEVX_UMEM_REG_ACCESS, allowed, &access)) return error;
  if (int error = check_access(access)) return error;
  auto address = request.value<std::uint64_t>(MLX5_IB_ATTR_DEVX_UMEM_REG_ADDR);
  const auto length = request.value<std::uint64_t>(MLX5_IB_ATTR_DEVX_UMEM_REG_LEN);
  const bool writable = access & (Access::local_write | Access::remote_write);
  auto umem = std::make_unique<DevxUmem>();
  if (request.has(MLX5_IB_ATTR_DEVX_UMEM_REG_DMABUF_FD)) {
    const int fd = request.fd(MLX5_IB_ATTR_DEVX_UMEM_REG_DMABUF_FD);
    if (int error = DmaBuf::map(fd, address, length, writable, &umem->dmabuf)) return error;
    address = umem->dmabuf->address();
  } else if (int error = check_memory(address, length, writable)) {
    return error;
  }
  std::uint64_t pages = ~std::uint64_t{0};
  if (request.has(MLX5_IB_ATTR_DEVX_UMEM_REG_PGSZ_BITMAP))
    pages = request.value<std::uint64_t>(MLX5_IB_ATTR_DEVX_UMEM_REG_PGSZ_BITMAP);
  unsigned log_page = 0;
  if (int error = choose_page(pages, address, length, &log_page)) return error;
  if (int error = create_umem(file, address, length, writable, log_page, &umem->id)) return error;
  try {
    file.umems()[umem->id] = address;
  } catch (const std::bad_alloc&) {
    umem->destroy(file);
    throw;
  }
  request.write(MLX5_IB_ATTR_DEVX_UMEM_REG_OUT_ID, umem->id);
  request.set_id(MLX5_IB_ATTR_DEVX_UMEM_REG_HANDLE, file.objects().add(std::move(umem)));
  return 0;
}

constexpr AttrSpec kDeregAttrs[] = {
    uverbs::object_attr(MLX5_IB_ATTR_DEVX_UMEM_DEREG_HANDLE, MLX5_IB_OBJECT_DEVX_UMEM, AttrAccess::destroy)};

constexpr Method kMethods[] = {
    {{MLX5_IB_OBJECT_DEVX_UMEM, MLX5_IB_METHOD_DEVX_UMEM_REG, kRegAttrs}, native_reg},
    {{MLX5_IB_OBJECT_DEVX_UMEM, MLX5_IB_METHOD_DEVX_UMEM_DEREG, kDeregAttrs},
     destroy_method<MLX5_IB_OBJECT_DEVX_UMEM, MLX5_IB_ATTR_DEVX_UMEM_DEREG_HANDLE>},
};

}  // namespace

std::span<const Method> devx_umem_methods() { return kMethods; }

}  // namespace verbena::kernel
