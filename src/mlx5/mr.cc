// Memory regions and memory windows.

#include <memory>

#include "mlx5/ops.h"

namespace verbena::mlx5 {

namespace {

verbs::Mr* mr_of(ibv_mr* mr) { return verbs::derived<verbs::Mr>(mr); }

}  // namespace

ibv_mr* reg_mr(ibv_pd* pd, void* addr, std::size_t length, std::uint64_t iova, int access) {
  auto mr = std::make_unique<verbs::Mr>();
  if (verbena_cmd_reg_mr(pd, addr, length, iova, access, mr.get(), nullptr)) return nullptr;
  mr->access = access;
  return &mr.release()->mr;
}

ibv_mr* reg_dmabuf_mr(ibv_pd* pd, std::uint64_t offset, std::size_t length, std::uint64_t iova, int fd, int access) {
  return reg_dmabuf_mr_with(pd, offset, length, iova, fd, access, nullptr);
}

ibv_mr* reg_dmabuf_mr_with(ibv_pd* pd, std::uint64_t offset, std::size_t length, std::uint64_t iova, int fd, int access,
                           verbena_bundle* driver) {
  auto mr = std::make_unique<verbs::Mr>();
  if (verbena_cmd_reg_dmabuf_mr(pd, offset, length, iova, fd, access, mr.get(), driver)) return nullptr;
  mr->access = access;
  return &mr.release()->mr;
}

int rereg_mr(verbs::Mr* mr, int flags, ibv_pd* pd, void* addr, std::size_t length, int access) {
  return verbena_cmd_rereg_mr(mr, static_cast<std::uint32_t>(flags), addr, length,
                              reinterpret_cast<std::uintptr_t>(addr), access, pd, nullptr);
}

int dereg_mr(verbs::Mr* mr) {
  if (mr->kind != verbs::MrKind::null_mr)
    if (int error = verbena_cmd_dereg_mr(mr)) return error;
  delete mr;
  return 0;
}

int advise_mr(ibv_pd* pd, ibv_advise_mr_advice advice, std::uint32_t flags, ibv_sge* list, std::uint32_t count) {
  return verbena_cmd_advise_mr(pd, advice, flags, list, count);
}

// A key that reads as zeros and swallows writes: the device's dump-fill key.
ibv_mr* alloc_null_mr(ibv_pd* pd) {
  Context* context = context_of(pd->context);
  if (!(context->caps.comp_mask & MLX5_IB_ALLOC_UCONTEXT_RESP_MASK_DUMP_FILL_MKEY)) return fail_null(ENOTSUP);
  auto mr = std::make_unique<verbs::Mr>();
  mr->kind = verbs::MrKind::null_mr;
  mr->mr.lkey = context->caps.dump_fill_mkey;
  mr->mr.context = pd->context;
  mr->mr.pd = pd;
  mr->mr.length = SIZE_MAX;
  return &mr.release()->mr;
}

ibv_mr* import_mr(ibv_pd* pd, std::uint32_t handle) {
  auto mr = std::make_unique<verbs::Mr>();
  if (verbena_cmd_query_mr(pd, mr.get(), handle)) return nullptr;
  mr->kind = verbs::MrKind::imported;
  return &mr.release()->mr;
}

void unimport_mr(ibv_mr* mr) { delete mr_of(mr); }

ibv_mw* alloc_mw(ibv_pd* pd, ibv_mw_type type) {
  auto mw = std::make_unique<ibv_mw>();
  if (verbena_cmd_alloc_mw(pd, type, mw.get(), nullptr)) return nullptr;
  return mw.release();
}

int dealloc_mw(ibv_mw* mw) {
  if (int error = verbena_cmd_dealloc_mw(mw)) return error;
  delete mw;
  return 0;
}

// A type 1 window takes its new key when the WQE was posted.
int bind_mw(ibv_qp* qp, ibv_mw* mw, ibv_mw_bind* bind) {
  const ibv_mw_bind_info& info = bind->bind_info;
  if (info.mw_access_flags & IBV_ACCESS_ZERO_BASED) return fail(EINVAL);
  if (info.mr) {
    const verbs::Mr* mr = mr_of(info.mr);
    if (mr->kind != verbs::MrKind::normal) return fail(ENOTSUP);
    if (mr->access & IBV_ACCESS_ZERO_BASED) return fail(EINVAL);
  }
  ibv_send_wr wr = {};
  wr.wr_id = bind->wr_id;
  wr.opcode = IBV_WR_BIND_MW;
  wr.send_flags = bind->send_flags;
  wr.bind_mw.mw = mw;
  wr.bind_mw.rkey = ibv_inc_rkey(mw->rkey);
  wr.bind_mw.bind_info = info;
  ibv_send_wr* bad = nullptr;
  if (int error = post_send(qp, &wr, &bad)) return error;
  mw->rkey = wr.bind_mw.rkey;
  return 0;
}

}  // namespace verbena::mlx5
