// Interposers of functions of libibverbs and libmlx5 behind which objects with operations of their own appear. A
// program may have loaded those libraries where dlsym(RTLD_NEXT) does not see them (Python's extensions do), so they
// are asked for by name.
#include <dlfcn.h>
#include <errno.h>
#include <infiniband/verbs.h>

#include <atomic>

#include "preload/progress.h"
#include "preload/state.h"

#define EXPORT extern "C" __attribute__((visibility("default")))

struct verbs_context_ops;
struct verbena_context;  // of our own libibverbs; begins with a verbs_context
namespace verbena::verbs {
struct Ops;
}
struct mlx5dv_qp_init_attr;
struct mlx5dv_cq_init_attr;

using namespace verbena::preload;

// The head of mlx5dv_obj, and the bits of `types` that say what is filled in.
struct mlx5dv_obj {
  struct {
    ibv_qp* in;
    void* out;
  } qp;
  struct {
    ibv_cq* in;
    void* out;
  } cq;
};
static constexpr std::uint64_t kObjQp = 1, kObjCq = 2;

namespace {

template <class Function>
Function* find(std::atomic<Function*>& known, const char* library, const char* name) {
  Function* function = known.load(std::memory_order_relaxed);
  if (function) return function;
  void* symbol = dlsym(RTLD_NEXT, name);
  if (symbol == nullptr)
    if (void* handle = dlopen(library, RTLD_LAZY | RTLD_NOLOAD)) symbol = dlsym(handle, name);
  function = reinterpret_cast<Function*>(symbol);
  known.store(function, std::memory_order_relaxed);
  return function;
}

}  // namespace

// Every provider calls this when it opens a device, whichever way the program asked for it.
EXPORT void verbs_set_ops(verbs_context* context, const verbs_context_ops* operations) {
  static std::atomic<void (*)(verbs_context*, const verbs_context_ops*)> known;
  const auto function = find(known, "libibverbs.so.1", "verbs_set_ops");
  if (function == nullptr) return;
  function(context, operations);
  hook_context(context);
}

// The same of our own library, for when it is told to take the node for a kernel's.
EXPORT void verbena_set_ops(verbena_context* context, const verbena::verbs::Ops* operations) {
  static std::atomic<void (*)(verbena_context*, const verbena::verbs::Ops*)> known;
  const auto function = find(known, "libibverbs.so.1", "verbena_set_ops");
  if (function == nullptr) return;
  function(context, operations);
  hook_context(reinterpret_cast<verbs_context*>(context));
}

EXPORT ibv_qp_ex* ibv_qp_to_qp_ex(ibv_qp* qp) {
  static std::atomic<ibv_qp_ex* (*)(ibv_qp*)> known;
  const auto function = find(known, "libibverbs.so.1", "ibv_qp_to_qp_ex");
  ibv_qp_ex* extended = function ? function(qp) : nullptr;
  if (extended) hook_qp(extended);
  return extended;
}

EXPORT ibv_qp* mlx5dv_create_qp(ibv_context* context, ibv_qp_init_attr_ex* attr, mlx5dv_qp_init_attr* mlx5_attr) {
  static std::atomic<ibv_qp* (*)(ibv_context*, ibv_qp_init_attr_ex*, mlx5dv_qp_init_attr*)> known;
  const auto function = find(known, "libmlx5.so.1", "mlx5dv_create_qp");
  if (function == nullptr) {
    errno = EOPNOTSUPP;
    return nullptr;
  }
  ibv_qp* qp = function(context, attr, mlx5_attr);
  if (qp && (attr->comp_mask & IBV_QP_INIT_ATTR_SEND_OPS_FLAGS)) hook_qp(reinterpret_cast<ibv_qp_ex*>(qp));
  return qp;
}

EXPORT ibv_cq_ex* mlx5dv_create_cq(ibv_context* context, ibv_cq_init_attr_ex* attr, mlx5dv_cq_init_attr* mlx5_attr) {
  static std::atomic<ibv_cq_ex* (*)(ibv_context*, ibv_cq_init_attr_ex*, mlx5dv_cq_init_attr*)> known;
  const auto function = find(known, "libmlx5.so.1", "mlx5dv_create_cq");
  if (function == nullptr) {
    errno = EOPNOTSUPP;
    return nullptr;
  }
  ibv_cq_ex* cq = function(context, attr, mlx5_attr);
  if (cq) hook_cq(cq);
  return cq;
}

// Whoever asks where the rings of a queue are is going to write into them, and calls nothing then.
EXPORT int mlx5dv_init_obj(mlx5dv_obj* object, std::uint64_t types) {
  static std::atomic<int (*)(mlx5dv_obj*, std::uint64_t)> known;
  const auto function = find(known, "libmlx5.so.1", "mlx5dv_init_obj");
  if (function == nullptr) return EOPNOTSUPP;
  const int result = function(object, types);
  const State* now = result == 0 ? state() : nullptr;
  if (now == nullptr) return result;
  const auto watch = [now](const ibv_context* context, auto watch_it, std::uint32_t handle) {
    if (watch_it == nullptr || node_of(*now, context->cmd_fd) < 0) return;
    const Inside guard;
    watch_it(context->cmd_fd, handle);
  };
  if ((types & kObjQp) && object->qp.in) watch(object->qp.in->context, now->backend->watch_sq, object->qp.in->handle);
  if ((types & kObjCq) && object->cq.in) watch(object->cq.in->context, now->backend->watch_cq, object->cq.in->handle);
  return result;
}
