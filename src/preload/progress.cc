#include "preload/progress.h"

#include <infiniband/verbs.h>
#include <rdma/ib_user_ioctl_cmds.h>
#include <rdma/ib_user_verbs.h>
#include <rdma/mlx5_user_ioctl_cmds.h>
#include <rdma/rdma_user_ioctl_cmds.h>
#include <sched.h>

#include <atomic>
#include <cstddef>
#include <mutex>
#include <unordered_map>

#include "preload/state.h"
#include "support/at_fork.h"

namespace verbena::preload {
namespace {

// Counts requests that may have destroyed a queue. Tokens found before the last one are looked up again.
std::atomic<std::uint64_t> epoch{1};

// ---- what stood there before; records are never freed, so a pointer once read stays good ----

struct ContextHook {
  ibv_context* context;
  decltype(ibv_context_ops::poll_cq) poll_cq;
  decltype(ibv_context_ops::req_notify_cq) req_notify_cq;
  decltype(ibv_context_ops::post_send) post_send;
  decltype(ibv_context_ops::bind_mw) bind_mw;
  decltype(verbs_context::create_cq_ex) create_cq_ex;
  decltype(verbs_context::create_qp_ex) create_qp_ex;
  const std::uint32_t* pending;
};

struct QueueHook {
  decltype(ibv_qp_ex::wr_start) wr_start;
  decltype(ibv_qp_ex::wr_complete) wr_complete;
  decltype(ibv_cq_ex::start_poll) start_poll;
  ContextHook* context;
  std::atomic<std::uint64_t> epoch{0};  // of the token
  std::atomic<std::uint32_t> number{0};
  std::atomic<void*> token{nullptr};
};

std::mutex& lock() { return mutex_over_fork<ForkRank::hooks>(); }
std::unordered_map<const void*, ContextHook*>& contexts() {
  static auto* map = new std::unordered_map<const void*, ContextHook*>;  // outlives every thread
  return *map;
}
std::unordered_map<const void*, QueueHook*>& queues() {
  static auto* map = new std::unordered_map<const void*, QueueHook*>;
  return *map;
}

// Recently used records of this thread, by address of the object.
template <class Hook, unsigned kEntries>
class Cache {
 public:
  template <class Find>
  Hook* get(const void* object, Find find) {
    Entry& entry = entries_[reinterpret_cast<std::uintptr_t>(object) / 64 % kEntries];
    if (entry.object != object) [[unlikely]]
      entry = {object, find()};
    return entry.hook;
  }

 private:
  struct Entry {
    const void* object;
    Hook* hook;
  };
  Entry entries_[kEntries];
};

thread_local constinit Cache<ContextHook, 4> context_cache __attribute__((tls_model("initial-exec"))){};
thread_local constinit Cache<QueueHook, 32> queue_cache __attribute__((tls_model("initial-exec"))){};

// The record of a context, null if it is not ours. Never null inside the hooks below.
ContextHook* hook_of(ibv_context* context) {
  return context_cache.get(context, [context]() -> ContextHook* {
    const std::lock_guard guard(lock());
    const auto found = contexts().find(context);
    return found == contexts().end() ? nullptr : found->second;
  });
}

QueueHook* record_of(const void* queue, ibv_context* context) {
  QueueHook* hook = queue_cache.get(queue, [queue] {
    const std::lock_guard guard(lock());
    QueueHook*& slot = queues()[queue];
    if (slot == nullptr) slot = new QueueHook{};
    return slot;
  });
  if (hook->context == nullptr || hook->context->context != context) hook->context = hook_of(context);
  return hook;
}

// ---- the device's turn ----

template <class Look>
void* token_of(QueueHook& hook, std::uint32_t number, Look look) {
  const std::uint64_t now = epoch.load(std::memory_order_acquire);
  if (hook.epoch.load(std::memory_order_acquire) != now || hook.number.load(std::memory_order_relaxed) != number)
      [[unlikely]] {
    hook.token.store(look(), std::memory_order_relaxed);
    hook.number.store(number, std::memory_order_relaxed);
    hook.epoch.store(now, std::memory_order_release);
  }
  return hook.token.load(std::memory_order_relaxed);
}

void ring(ibv_qp* qp, QueueHook& hook) {
  const State* now = state();
  if (now == nullptr) return;
  const Inside guard;
  const uverbs::Backend& backend = *now->backend;
  if (void* token = token_of(hook, qp->qp_num, [&] { return backend.sq_token(qp->context->cmd_fd, qp->qp_num); }))
    backend.ring_sq(token);
}

void step_if_pending(ContextHook& hook) {
  if (hook.pending == nullptr || __atomic_load_n(hook.pending, __ATOMIC_RELAXED) == 0) return;
  if (const State* now = state()) {
    const Inside guard;
    now->backend->step(hook.context->cmd_fd);
  }
}

// Whoever polls in vain keeps a core from the peer that would complete its work: as our own library does, it gives the
// core away after many polls that found nothing, and then every few.
constexpr unsigned kPatientPolls = 2048, kPollsPerYield = 32;
thread_local constinit unsigned patience __attribute__((tls_model("initial-exec"))) = kPatientPolls;

void found(bool something) {
  if (something) {
    patience = kPatientPolls;
  } else if (--patience == 0) [[unlikely]] {
    patience = kPollsPerYield;
    sched_yield();
  }
}

// ---- replacements ----

int post_send(ibv_qp* qp, ibv_send_wr* wr, ibv_send_wr** bad) {
  const int result = hook_of(qp->context)->post_send(qp, wr, bad);
  ring(qp, *record_of(qp, qp->context));  // also after a failure: those before the bad one are posted
  return result;
}

int bind_mw(ibv_qp* qp, ibv_mw* mw, ibv_mw_bind* bind) {
  const int result = hook_of(qp->context)->bind_mw(qp, mw, bind);
  ring(qp, *record_of(qp, qp->context));
  return result;
}

int wr_complete(ibv_qp_ex* qp) {
  QueueHook& hook = *record_of(qp, qp->qp_base.context);
  const int result = hook.wr_complete(qp);
  ring(&qp->qp_base, hook);
  return result;
}

template <class Function>
void replace(Function*& current, Function* ours, Function*& before) {
  if (current == nullptr || current == ours) return;
  before = current;
  current = ours;
}

// A provider sets wr_complete again when the QP changes state (libmlx5: an erring one until RTS), so it is caught at
// the start of each batch.
void wr_start(ibv_qp_ex* qp) {
  QueueHook& hook = *record_of(qp, qp->qp_base.context);
  hook.wr_start(qp);
  replace(qp->wr_complete, &wr_complete, hook.wr_complete);
}

int poll_cq(ibv_cq* cq, int count, ibv_wc* wc) {
  ContextHook& hook = *hook_of(cq->context);
  step_if_pending(hook);
  const int polled = hook.poll_cq(cq, count, wc);
  found(polled != 0);
  return polled;
}

int start_poll(ibv_cq_ex* cq, ibv_poll_cq_attr* attr) {
  QueueHook& hook = *record_of(cq, cq->context);
  step_if_pending(*hook.context);
  const int result = hook.start_poll(cq, attr);
  found(result == 0);
  return result;
}

int req_notify_cq(ibv_cq* cq, int solicited_only) {
  ContextHook& context = *hook_of(cq->context);
  const int result = context.req_notify_cq(cq, solicited_only);
  const State* now = state();
  if (now == nullptr || now->backend->cq_token_by_handle == nullptr) return result;
  const Inside guard;
  const uverbs::Backend& backend = *now->backend;
  if (void* token = token_of(*record_of(cq, cq->context), cq->handle,
                             [&] { return backend.cq_token_by_handle(cq->context->cmd_fd, cq->handle); }))
    backend.arm_cq(token);
  return result;
}

ibv_cq_ex* create_cq_ex(ibv_context* context, ibv_cq_init_attr_ex* attr) {
  ibv_cq_ex* cq = hook_of(context)->create_cq_ex(context, attr);
  if (cq) hook_cq(cq);
  return cq;
}

ibv_qp* create_qp_ex(ibv_context* context, ibv_qp_init_attr_ex* attr) {
  ibv_qp* qp = hook_of(context)->create_qp_ex(context, attr);
  if (qp && (attr->comp_mask & IBV_QP_INIT_ATTR_SEND_OPS_FLAGS)) hook_qp(reinterpret_cast<ibv_qp_ex*>(qp));
  return qp;
}

bool destroys_queue(const ib_uverbs_ioctl_hdr& request) {
  switch (request.object_id) {
    case UVERBS_OBJECT_QP:
      return request.method_id == UVERBS_METHOD_QP_DESTROY;
    case UVERBS_OBJECT_CQ:
      return request.method_id == UVERBS_METHOD_CQ_DESTROY;
    case MLX5_IB_OBJECT_DEVX_OBJ:
      return request.method_id == MLX5_IB_METHOD_DEVX_OBJ_DESTROY;
    case UVERBS_OBJECT_DEVICE:
      if (request.method_id != UVERBS_METHOD_INVOKE_WRITE) return false;
      if (request.num_attrs > (request.length - sizeof request) / sizeof(ib_uverbs_attr))
        return false;  // to be refused
      for (unsigned i = 0; i < request.num_attrs; ++i)
        if (request.attrs[i].attr_id == UVERBS_ATTR_WRITE_CMD)
          return request.attrs[i].data == IB_USER_VERBS_CMD_DESTROY_QP ||
                 request.attrs[i].data == IB_USER_VERBS_CMD_DESTROY_CQ;
      return false;
    default:
      return false;
  }
}

}  // namespace

void before_request(const ib_uverbs_ioctl_hdr& request) {
  if (destroys_queue(request)) epoch.fetch_add(1, std::memory_order_acq_rel);
}

// The word before the ibv_context says how large the whole is: it grows at its beginning.
verbs_context* known_part(verbs_context* whole) {
  constexpr std::size_t kKnown = offsetof(verbs_context, context), kNewAtMost = 64 * sizeof(void*);
  char* const begin = reinterpret_cast<char*>(whole);
  for (std::size_t more = 0; more <= kNewAtMost; more += sizeof(void*)) {
    auto* part = reinterpret_cast<verbs_context*>(begin + more);
    if (part->sz == more + kKnown + sizeof(ibv_context)) return part;
  }
  return nullptr;
}

void hook_context(verbs_context* whole) {
  const State* now = state();
  verbs_context* const verbs = now ? known_part(whole) : nullptr;
  if (verbs == nullptr) return;
  ibv_context* context = &verbs->context;
  if (node_of(*now, context->cmd_fd) < 0) return;
  ContextHook* hook;
  {
    const std::lock_guard guard(lock());
    ContextHook*& slot = contexts()[context];
    if (slot == nullptr) slot = new ContextHook{.context = context};
    hook = slot;
  }
  context_cache = {};  // may hold that there was none
  epoch.fetch_add(1, std::memory_order_acq_rel);
  if (now->backend->pending) {
    const Inside guard;
    hook->pending = now->backend->pending(context->cmd_fd);
  }
  replace(context->ops.poll_cq, &poll_cq, hook->poll_cq);
  replace(context->ops.post_send, &post_send, hook->post_send);
  replace(context->ops.bind_mw, &bind_mw, hook->bind_mw);
  replace(context->ops.req_notify_cq, &req_notify_cq, hook->req_notify_cq);
  replace(verbs->create_cq_ex, &create_cq_ex, hook->create_cq_ex);
  replace(verbs->create_qp_ex, &create_qp_ex, hook->create_qp_ex);
}

void hook_qp(ibv_qp_ex* qp) {
  if (hook_of(qp->qp_base.context) == nullptr || qp->wr_start == nullptr || qp->wr_start == &wr_start) return;
  replace(qp->wr_start, &wr_start, record_of(qp, qp->qp_base.context)->wr_start);
}

void hook_cq(ibv_cq_ex* cq) {
  if (hook_of(cq->context) == nullptr || cq->start_poll == nullptr || cq->start_poll == &start_poll) return;
  replace(cq->start_poll, &start_poll, record_of(cq, cq->context)->start_poll);
}

}  // namespace verbena::preload
