// Protection domains, memory regions and what can be imported.
#include "verbs/internal.h"

#undef ibv_reg_mr
#undef ibv_reg_mr_iova

using namespace verbena::verbs;

extern "C" {

ibv_pd* ibv_alloc_pd(ibv_context* context) {
  ibv_pd* pd = ops(context).alloc_pd(context);
  if (pd) pd->context = context;
  return pd;
}

int ibv_dealloc_pd(ibv_pd* pd) { return ops(pd->context).dealloc_pd(pd); }

ibv_mr* ibv_reg_mr_iova2(ibv_pd* pd, void* addr, std::size_t length, std::uint64_t iova, unsigned access) {
  const Device& device = *device_of(pd->context->device);
  if (!(device.core_support & IB_UVERBS_CORE_SUPPORT_OPTIONAL_MR_ACCESS))
    access &= ~static_cast<unsigned>(IBV_ACCESS_OPTIONAL_RANGE);
  // On-demand pages may move, so a child's copy-on-write does them no harm.
  bool pinned = !(access & IBV_ACCESS_ON_DEMAND);
  if (pinned && ibv_dontfork_range(addr, length)) return nullptr;
  ibv_mr* mr = ops(pd->context).reg_mr(pd, addr, length, iova, static_cast<int>(access));
  if (!mr) {
    int error = errno;
    if (pinned) ibv_dofork_range(addr, length);
    return refuse<ibv_mr>(error);
  }
  mr->context = pd->context;
  mr->pd = pd;
  mr->addr = addr;
  mr->length = length;
  return mr;
}

ibv_mr* ibv_reg_mr(ibv_pd* pd, void* addr, std::size_t length, int access) {
  return ibv_reg_mr_iova2(pd, addr, length, reinterpret_cast<std::uintptr_t>(addr), static_cast<unsigned>(access));
}

ibv_mr* ibv_reg_mr_iova(ibv_pd* pd, void* addr, std::size_t length, std::uint64_t iova, int access) {
  return ibv_reg_mr_iova2(pd, addr, length, iova, static_cast<unsigned>(access));
}

ibv_mr* ibv_reg_dmabuf_mr(ibv_pd* pd, std::uint64_t offset, std::size_t length, std::uint64_t iova, int fd,
                          int access) {
  ibv_mr* mr = ops(pd->context).reg_dmabuf_mr(pd, offset, length, iova, fd, access);
  if (!mr) return nullptr;
  mr->context = pd->context;
  mr->pd = pd;
  mr->addr = reinterpret_cast<void*>(offset);
  mr->length = length;
  return mr;
}

int ibv_rereg_mr(ibv_mr* mr, int flags, ibv_pd* pd, void* addr, std::size_t length, int access) {
  Mr* own = derived<Mr>(mr);
  bool moves = flags & IBV_REREG_MR_CHANGE_TRANSLATION;
  bool valid = own->kind == MrKind::normal && !(flags & ~IBV_REREG_MR_FLAGS_SUPPORTED) &&
               !(moves && (!length || !addr)) && !(access && !(flags & IBV_REREG_MR_CHANGE_ACCESS));
  if (!valid) {
    errno = EINVAL;
    return IBV_REREG_MR_ERR_INPUT;
  }
  if (moves && ibv_dontfork_range(addr, length)) return IBV_REREG_MR_ERR_DONT_FORK_NEW;
  void* old_addr = mr->addr;
  std::size_t old_length = mr->length;
  if (ops(mr->context).rereg_mr(own, flags, pd, addr, length, access)) {
    if (moves && ibv_dofork_range(addr, length)) return IBV_REREG_MR_ERR_CMD_AND_DO_FORK_NEW;
    return IBV_REREG_MR_ERR_CMD;
  }
  if (flags & IBV_REREG_MR_CHANGE_PD) mr->pd = pd;
  if (flags & IBV_REREG_MR_CHANGE_ACCESS) own->access = access;
  if (!moves) return 0;
  mr->addr = addr;
  mr->length = length;
  return ibv_dofork_range(old_addr, old_length) ? IBV_REREG_MR_ERR_DO_FORK_OLD : 0;
}

int ibv_dereg_mr(ibv_mr* mr) {
  const Mr* own = derived<Mr>(mr);
  bool pinned = own->kind == MrKind::normal && !(own->access & IBV_ACCESS_ON_DEMAND);
  void* addr = mr->addr;
  std::size_t length = mr->length;
  int error = ops(mr->context).dereg_mr(derived<Mr>(mr));
  if (!error && pinned) ibv_dofork_range(addr, length);
  return error;
}

ibv_pd* ibv_import_pd(ibv_context* context, std::uint32_t handle) { return ops(context).import_pd(context, handle); }
void ibv_unimport_pd(ibv_pd* pd) { ops(pd->context).unimport_pd(pd); }
ibv_mr* ibv_import_mr(ibv_pd* pd, std::uint32_t handle) { return ops(pd->context).import_mr(pd, handle); }
void ibv_unimport_mr(ibv_mr* mr) { ops(mr->context).unimport_mr(mr); }
ibv_dm* ibv_import_dm(ibv_context* context, std::uint32_t handle) { return ops(context).import_dm(context, handle); }
void ibv_unimport_dm(ibv_dm* dm) { ops(dm->context).unimport_dm(dm); }

}  // extern "C"
