// Protection domains, memory regions, memory windows and device memory.
#include "uverbs/newer.h"
#include "verbs/cmd/request.h"

using namespace verbena::verbs;

// ---- protection domains ----

int verbena_cmd_alloc_pd(ibv_context* context, ibv_pd* pd, const verbena_udata* udata) {
  ib_uverbs_alloc_pd request{};
  ib_uverbs_alloc_pd_resp response{};
  if (int error = legacy(*context_of(context), IB_USER_VERBS_CMD_ALLOC_PD, request, response, udata)) return error;
  pd->handle = response.pd_handle;
  pd->context = context;
  return 0;
}

int verbena_cmd_dealloc_pd(ibv_pd* pd) {
  return destroy_by_handle(*context_of(pd->context), Native::destroy_pd, UVERBS_OBJECT_PD, UVERBS_METHOD_PD_DESTROY,
                           UVERBS_ATTR_DESTROY_PD_HANDLE, pd->handle, IB_USER_VERBS_CMD_DEALLOC_PD,
                           ib_uverbs_dealloc_pd{.pd_handle = pd->handle});
}

// ---- memory regions ----

int verbena_cmd_reg_mr(ibv_pd* pd, void* addr, std::size_t length, std::uint64_t iova, int access, Mr* mr,
                       const verbena_udata* udata) {
  // The whole address space (implicit on-demand paging) is spelled null, SIZE_MAX.
  if ((access & IBV_ACCESS_ON_DEMAND) && length == SIZE_MAX && addr) return report(EINVAL);
  ib_uverbs_reg_mr request{};
  request.start = reinterpret_cast<std::uintptr_t>(addr);
  request.length = length;
  request.hca_va = iova;
  request.pd_handle = pd->handle;
  request.access_flags = static_cast<std::uint32_t>(access);
  ib_uverbs_reg_mr_resp response{};
  if (int error = legacy(*context_of(pd->context), IB_USER_VERBS_CMD_REG_MR, request, response, udata)) return error;
  mr->mr.context = pd->context;
  mr->mr.handle = response.mr_handle;
  mr->mr.lkey = response.lkey;
  mr->mr.rkey = response.rkey;
  mr->kind = MrKind::normal;
  mr->access = access;
  return 0;
}

int verbena_cmd_rereg_mr(Mr* mr, std::uint32_t flags, void* addr, std::size_t length, std::uint64_t iova, int access,
                         ibv_pd* pd, const verbena_udata* udata) {
  ib_uverbs_rereg_mr request{};
  request.mr_handle = mr->mr.handle;
  request.flags = flags;
  request.start = reinterpret_cast<std::uintptr_t>(addr);
  request.length = length;
  request.hca_va = iova;
  request.pd_handle = flags & IBV_REREG_MR_CHANGE_PD ? pd->handle : 0;
  request.access_flags = static_cast<std::uint32_t>(access);
  ib_uverbs_rereg_mr_resp response{};
  int error = legacy(*context_of(mr->mr.context), IB_USER_VERBS_CMD_REREG_MR, request, response, udata);
  if (error) return error;
  mr->mr.lkey = response.lkey;
  mr->mr.rkey = response.rkey;
  if (flags & IBV_REREG_MR_CHANGE_PD) mr->mr.context = pd->context;
  return 0;
}

int verbena_cmd_dereg_mr(Mr* mr) {
  return destroy_by_handle(*context_of(mr->mr.context), Native::destroy_mr, UVERBS_OBJECT_MR, UVERBS_METHOD_MR_DESTROY,
                           UVERBS_ATTR_DESTROY_MR_HANDLE, mr->mr.handle, IB_USER_VERBS_CMD_DEREG_MR,
                           ib_uverbs_dereg_mr{.mr_handle = mr->mr.handle});
}

int verbena_cmd_reg_dmabuf_mr(ibv_pd* pd, std::uint64_t offset, std::size_t length, std::uint64_t iova, int fd,
                              int access, Mr* mr, verbena_bundle* driver) {
  std::uint32_t lkey = 0, rkey = 0;
  verbena_bundle bundle(UVERBS_OBJECT_MR, UVERBS_METHOD_REG_DMABUF_MR);
  auto handle = bundle.out_object(UVERBS_ATTR_REG_DMABUF_MR_HANDLE);
  bundle.out_struct(UVERBS_ATTR_REG_DMABUF_MR_RESP_LKEY, lkey);
  bundle.out_struct(UVERBS_ATTR_REG_DMABUF_MR_RESP_RKEY, rkey);
  bundle.in_object(UVERBS_ATTR_REG_DMABUF_MR_PD_HANDLE, pd->handle);
  bundle.in_u64(UVERBS_ATTR_REG_DMABUF_MR_OFFSET, offset);
  bundle.in_u64(UVERBS_ATTR_REG_DMABUF_MR_LENGTH, length);
  bundle.in_u64(UVERBS_ATTR_REG_DMABUF_MR_IOVA, iova);
  bundle.in_u32(UVERBS_ATTR_REG_DMABUF_MR_FD, static_cast<std::uint32_t>(fd));
  bundle.in_u32(UVERBS_ATTR_REG_DMABUF_MR_ACCESS_FLAGS, static_cast<std::uint32_t>(access));
  if (int error = execute_with(*context_of(pd->context), bundle, driver)) return error;
  mr->mr = {.context = pd->context,
            .pd = pd,
            .addr = reinterpret_cast<void*>(offset),
            .length = length,
            .handle = bundle.object(handle),
            .lkey = lkey,
            .rkey = rkey};
  mr->kind = MrKind::dmabuf;
  mr->access = access;
  return 0;
}

int verbena_cmd_query_mr(ibv_pd* pd, Mr* mr, std::uint32_t handle) {
  std::uint32_t lkey = 0, rkey = 0;
  std::uint64_t length = 0;
  verbena_bundle bundle(UVERBS_OBJECT_MR, UVERBS_METHOD_QUERY_MR);
  bundle.in_object(UVERBS_ATTR_QUERY_MR_HANDLE, handle);
  bundle.out_struct(UVERBS_ATTR_QUERY_MR_RESP_LKEY, lkey);
  bundle.out_struct(UVERBS_ATTR_QUERY_MR_RESP_RKEY, rkey);
  bundle.out_struct(UVERBS_ATTR_QUERY_MR_RESP_LENGTH, length);
  if (int error = verbena_execute(context_of(pd->context), &bundle)) return error;
  mr->mr = {.context = pd->context,
            .pd = pd,
            .addr = nullptr,
            .length = length,
            .handle = handle,
            .lkey = lkey,
            .rkey = rkey};
  mr->kind = MrKind::imported;
  return 0;
}

int verbena_cmd_advise_mr(ibv_pd* pd, ibv_advise_mr_advice advice, std::uint32_t flags, const ibv_sge* list,
                          std::uint32_t count) {
  verbena_bundle bundle(UVERBS_OBJECT_MR, UVERBS_METHOD_ADVISE_MR);
  bundle.in_object(UVERBS_ATTR_ADVISE_MR_PD_HANDLE, pd->handle);
  bundle.in_const(UVERBS_ATTR_ADVISE_MR_ADVICE, advice);
  bundle.in_u32(UVERBS_ATTR_ADVISE_MR_FLAGS, flags);
  bundle.in(UVERBS_ATTR_ADVISE_MR_SGE_LIST, list, verbena_bundle::array_bytes(sizeof *list, count));
  return verbena_execute(context_of(pd->context), &bundle);
}

// ---- memory windows ----

int verbena_cmd_alloc_mw(ibv_pd* pd, ibv_mw_type type, ibv_mw* mw, const verbena_udata* udata) {
  ib_uverbs_alloc_mw request{};
  request.pd_handle = pd->handle;
  request.mw_type = static_cast<std::uint8_t>(type);
  ib_uverbs_alloc_mw_resp response{};
  if (int error = legacy(*context_of(pd->context), IB_USER_VERBS_CMD_ALLOC_MW, request, response, udata)) return error;
  mw->context = pd->context;
  mw->pd = pd;
  mw->rkey = response.rkey;
  mw->handle = response.mw_handle;
  mw->type = type;
  return 0;
}

int verbena_cmd_dealloc_mw(ibv_mw* mw) {
  return destroy_by_handle(*context_of(mw->context), Native::destroy_mw, UVERBS_OBJECT_MW, UVERBS_METHOD_MW_DESTROY,
                           UVERBS_ATTR_DESTROY_MW_HANDLE, mw->handle, IB_USER_VERBS_CMD_DEALLOC_MW,
                           ib_uverbs_dealloc_mw{.mw_handle = mw->handle});
}

// ---- device memory ----

int verbena_cmd_alloc_dm(ibv_context* context, const ibv_alloc_dm_attr* attr, Dm* dm, verbena_bundle* driver) {
  verbena_bundle bundle(UVERBS_OBJECT_DM, UVERBS_METHOD_DM_ALLOC);
  auto handle = bundle.out_object(UVERBS_ATTR_ALLOC_DM_HANDLE);
  bundle.in_u64(UVERBS_ATTR_ALLOC_DM_LENGTH, attr->length);
  bundle.in_u32(UVERBS_ATTR_ALLOC_DM_ALIGNMENT, attr->log_align_req);
  if (int error = execute_with(*context_of(context), bundle, driver)) return error;
  dm->dm.handle = bundle.object(handle);
  dm->dm.comp_mask = IBV_DM_MASK_HANDLE;
  dm->dm.context = context;
  return 0;
}

int verbena_cmd_free_dm(Dm* dm) {
  verbena_bundle bundle(UVERBS_OBJECT_DM, UVERBS_METHOD_DM_FREE);
  bundle.in_object(UVERBS_ATTR_FREE_DM_HANDLE, dm->dm.handle);
  int error = verbena_execute(context_of(dm->dm.context), &bundle);
  return treat_as_destroyed(error) ? 0 : error;
}

int verbena_cmd_export_dmabuf_fd(ibv_context* context, std::uint64_t offset) {
  verbena_bundle bundle(verbena::uverbs::newer::kObjectDmabuf, verbena::uverbs::newer::kDmabufAlloc);
  const auto fd = bundle.out_fd(verbena::uverbs::newer::kAllocDmabufHandle);
  bundle.in_u64(verbena::uverbs::newer::kAllocDmabufPage, offset);
  if (int error = verbena_execute(context_of(context), &bundle)) {
    errno = error;
    return -1;
  }
  return bundle.fd(fd);
}

int verbena_cmd_reg_dm_mr(ibv_pd* pd, Dm* dm, std::uint64_t offset, std::size_t length, unsigned access, Mr* mr,
                          verbena_bundle* driver) {
  // Device memory has no address a program knows, so its regions count from zero.
  if (!(access & IBV_ACCESS_ZERO_BASED)) return report(EINVAL);
  std::uint32_t lkey = 0, rkey = 0;
  verbena_bundle bundle(UVERBS_OBJECT_MR, UVERBS_METHOD_DM_MR_REG);
  auto handle = bundle.out_object(UVERBS_ATTR_REG_DM_MR_HANDLE);
  bundle.out_struct(UVERBS_ATTR_REG_DM_MR_RESP_LKEY, lkey);
  bundle.out_struct(UVERBS_ATTR_REG_DM_MR_RESP_RKEY, rkey);
  bundle.in_object(UVERBS_ATTR_REG_DM_MR_PD_HANDLE, pd->handle);
  bundle.in_object(UVERBS_ATTR_REG_DM_MR_DM_HANDLE, dm->dm.handle);
  bundle.in_u64(UVERBS_ATTR_REG_DM_MR_OFFSET, offset);
  bundle.in_u64(UVERBS_ATTR_REG_DM_MR_LENGTH, length);
  bundle.in_u32(UVERBS_ATTR_REG_DM_MR_ACCESS_FLAGS, access);
  if (int error = execute_with(*context_of(pd->context), bundle, driver)) return error;
  mr->mr = {.context = pd->context,
            .pd = pd,
            .addr = nullptr,
            .length = length,
            .handle = bundle.object(handle),
            .lkey = lkey,
            .rkey = rkey};
  mr->kind = MrKind::normal;
  mr->access = static_cast<int>(access);
  return 0;
}
