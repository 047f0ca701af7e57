// Verbs of rdma-core 45 to 65: registration by one structure, DMA handles, buffers of the provider's choice, port speed.
// Completion counters and descriptors of device memory are refused: this provider has none.
#include "verbs/newer.h"

#include <stdlib.h>
#include <unistd.h>

#include <memory>

#include "uverbs/newer.h"
#include "verbs/cmd/request.h"
#include "verbs/internal.h"

#undef ibv_reg_mr
#undef ibv_reg_mr_iova

using namespace verbena::verbs;
namespace newer = verbena::uverbs::newer;

// Ordinary memory. A provider for guests that can only share some of theirs would bring a dma-buf here.
struct ibv_buf {
  ibv_pd* pd;
  void* addr;
  std::size_t size;
};

namespace {

struct Dmah {
  ibv_dmah dmah;
  std::uint32_t handle;
};
const Dmah* derived_dmah(const ibv_dmah* dmah) { return reinterpret_cast<const Dmah*>(dmah); }

// What a buffer stands for becomes an address within it.
int resolve_buffer(const ibv_pd* pd, ibv_mr_init_attr* attr) {
  const ibv_buf& buffer = *attr->buf;
  const auto begin = reinterpret_cast<std::uintptr_t>(buffer.addr), at = reinterpret_cast<std::uintptr_t>(attr->addr);
  const bool by_fd = attr->comp_mask & (MrInit::fd | MrInit::fd_offset);
  if (pd != buffer.pd || !(attr->comp_mask & MrInit::addr) || by_fd || at < begin) return EINVAL;
  const std::size_t offset = at - begin;
  if (offset > buffer.size || attr->length > buffer.size - offset) return EINVAL;
  attr->comp_mask &= ~MrInit::buf;
  return 0;
}

int check(const ibv_mr_init_attr& attr) {
  const bool fd = attr.comp_mask & MrInit::fd;
  if (attr.comp_mask & ~MrInit::known) return EOPNOTSUPP;
  if (fd != !!(attr.comp_mask & MrInit::fd_offset) || fd == !!(attr.comp_mask & MrInit::addr)) return EINVAL;
  return fd && !(attr.comp_mask & MrInit::iova) ? EINVAL : 0;
}

// With hints: only the kernel's newest method takes these.
ibv_mr* reg_with_hints(ibv_pd* pd, const ibv_mr_init_attr& attr, std::uint64_t iova) {
  const bool fd = attr.comp_mask & MrInit::fd;
  std::uint32_t lkey = 0, rkey = 0;
  verbena_bundle bundle(UVERBS_OBJECT_MR, newer::kRegMr);
  if (fd) {
    bundle.in_u64(newer::kRegMrFdOffset, attr.fd_offset);
    bundle.in_fd(newer::kRegMrFd, attr.fd);
  } else {
    bundle.in_u64(newer::kRegMrAddress, reinterpret_cast<std::uintptr_t>(attr.addr));
  }
  bundle.in_u64(newer::kRegMrIova, iova);
  const auto handle = bundle.out_object(newer::kRegMrHandle);
  bundle.out_struct(newer::kRegMrLkey, lkey);
  bundle.out_struct(newer::kRegMrRkey, rkey);
  bundle.in_object(newer::kRegMrPd, pd->handle);
  bundle.in_u64(newer::kRegMrLength, attr.length);
  bundle.in_u32(newer::kRegMrAccess, static_cast<std::uint32_t>(attr.access));
  bundle.in_object(newer::kRegMrDmah, derived_dmah(attr.dmah)->handle);
  auto mr = std::make_unique<Mr>();
  if (verbena_execute(context_of(pd->context), &bundle)) return nullptr;
  mr->mr = {.context = pd->context,
            .pd = pd,
            .addr = fd ? reinterpret_cast<void*>(attr.fd_offset) : attr.addr,
            .length = attr.length,
            .handle = bundle.object(handle),
            .lkey = lkey,
            .rkey = rkey};
  mr->kind = fd ? MrKind::dmabuf : MrKind::normal;
  mr->access = attr.access;
  return &mr.release()->mr;
}

}  // namespace

extern "C" {

ibv_mr* ibv_reg_mr_ex(ibv_pd* pd, ibv_mr_init_attr* wish) {
  ibv_mr_init_attr attr = *wish;
  if (attr.comp_mask & MrInit::buf)
    if (int error = resolve_buffer(pd, &attr)) return refuse<ibv_mr>(error);
  if (int error = check(attr)) return refuse<ibv_mr>(error);
  const bool fd = attr.comp_mask & MrInit::fd;
  const std::uint64_t iova = attr.comp_mask & MrInit::iova ? attr.iova : reinterpret_cast<std::uintptr_t>(attr.addr);
  if (!(attr.comp_mask & MrInit::dmah))
    return fd ? ibv_reg_dmabuf_mr(pd, attr.fd_offset, attr.length, iova, attr.fd, attr.access)
              : ibv_reg_mr_iova2(pd, attr.addr, attr.length, iova, static_cast<unsigned>(attr.access));
  const Device& device = *device_of(pd->context->device);
  if (!(device.core_support & IB_UVERBS_CORE_SUPPORT_OPTIONAL_MR_ACCESS))
    attr.access &= ~static_cast<int>(IBV_ACCESS_OPTIONAL_RANGE);
  const bool pinned = !fd && !(attr.access & IBV_ACCESS_ON_DEMAND);
  if (pinned && ibv_dontfork_range(attr.addr, attr.length)) return nullptr;
  ibv_mr* mr = reg_with_hints(pd, attr, iova);
  if (!mr && pinned) {
    const int error = errno;
    ibv_dofork_range(attr.addr, attr.length);
    errno = error;
  }
  return mr;
}

ibv_dmah* ibv_alloc_dmah(ibv_context* context, ibv_dmah_init_attr* attr) {
  if (attr->comp_mask & ~DmahInit::known) return refuse<ibv_dmah>(EOPNOTSUPP);
  const bool cpu = attr->comp_mask & DmahInit::cpu_id, type = attr->comp_mask & DmahInit::memory_type;
  if (!(attr->comp_mask & DmahInit::hint) || cpu != type) return refuse<ibv_dmah>(EINVAL);
  verbena_bundle bundle(newer::kObjectDmah, newer::kDmahAlloc);
  const auto handle = bundle.out_object(newer::kAllocDmahHandle);
  if (cpu) {
    bundle.in_u32(newer::kAllocDmahCpuId, attr->cpu_id);
    bundle.in_enum(newer::kAllocDmahMemoryType, attr->tph_mem_type, nullptr, 0);
  }
  bundle.in(newer::kAllocDmahHint, &attr->ph, sizeof attr->ph);
  auto dmah = std::make_unique<Dmah>();
  if (verbena_execute(context_of(context), &bundle)) return nullptr;
  *dmah = {{context}, bundle.object(handle)};
  return &dmah.release()->dmah;
}

int ibv_dealloc_dmah(ibv_dmah* dmah) {
  const Dmah* own = derived_dmah(dmah);
  verbena_bundle bundle(newer::kObjectDmah, newer::kDmahFree);
  bundle.in_object(newer::kFreeDmahHandle, own->handle);
  if (int error = verbena_execute(context_of(dmah->context), &bundle)) return error;
  delete own;
  return 0;
}

void* ibv_alloc_buf(ibv_pd* pd, std::size_t size, ibv_buf** buffer) {
  if (!size) return refuse<void>(EINVAL);
  void* memory = nullptr;
  if (int error = posix_memalign(&memory, static_cast<std::size_t>(sysconf(_SC_PAGESIZE)), size))
    return refuse<void>(error);
  *buffer = new ibv_buf{pd, memory, size};
  return memory;
}

void ibv_free_buf(ibv_buf* buffer) {
  free(buffer->addr);
  delete buffer;
}

ibv_mr* ibv_reg_buf_mr(ibv_pd* pd, ibv_buf* buffer, void* addr, std::size_t length, int access) {
  ibv_mr_init_attr attr{};
  attr.length = length;
  attr.access = access;
  attr.comp_mask = MrInit::buf | MrInit::addr;
  attr.addr = addr;
  attr.buf = buffer;
  return ibv_reg_mr_ex(pd, &attr);
}

// Ordinary memory has no descriptor.
int ibv_export_buf_dmabuf_fd(ibv_buf*) {
  errno = ENODATA;
  return -1;
}
int ibv_dm_export_dmabuf_fd(ibv_dm* dm) { return ops(dm->context).dm_export_dmabuf_fd(dm); }

int ibv_query_port_speed(ibv_context* context, std::uint32_t port, std::uint64_t* speed) {
  verbena_bundle bundle(UVERBS_OBJECT_DEVICE, newer::kQueryPortSpeed);
  bundle.in_const(newer::kQueryPortSpeedPort, port);
  bundle.out_struct(newer::kQueryPortSpeedResp, *speed);
  return verbena_execute(context_of(context), &bundle);
}

// ---- completion counters ----

int _ibv_query_comp_cntr_caps(ibv_context*, void*, std::size_t) { return report(EOPNOTSUPP); }
ibv_comp_cntr* ibv_create_comp_cntr(ibv_context*, void*) { return refuse<ibv_comp_cntr>(EOPNOTSUPP); }
int ibv_destroy_comp_cntr(ibv_comp_cntr*) { return report(EOPNOTSUPP); }
int ibv_set_comp_cntr(ibv_comp_cntr*, std::uint64_t) { return report(EOPNOTSUPP); }
int ibv_set_err_comp_cntr(ibv_comp_cntr*, std::uint64_t) { return report(EOPNOTSUPP); }
int ibv_inc_comp_cntr(ibv_comp_cntr*, std::uint64_t) { return report(EOPNOTSUPP); }
int ibv_inc_err_comp_cntr(ibv_comp_cntr*, std::uint64_t) { return report(EOPNOTSUPP); }
int ibv_read_comp_cntr(ibv_comp_cntr*, std::uint64_t*) { return report(EOPNOTSUPP); }
int ibv_read_err_comp_cntr(ibv_comp_cntr*, std::uint64_t*) { return report(EOPNOTSUPP); }
int ibv_qp_attach_comp_cntr(ibv_qp*, ibv_comp_cntr*, void*) { return report(EOPNOTSUPP); }

}  // extern "C"
