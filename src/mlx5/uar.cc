#include "mlx5/uar.h"

#include <rdma/mlx5_user_ioctl_cmds.h>
#include <sys/mman.h>

#include <algorithm>
#include <memory>
#include <new>

namespace verbena::mlx5 {

namespace {

constexpr unsigned kUsableRegsPerUar = 2;  // the other two are the kernel's fast path
constexpr unsigned kRegsPerUar = 4;

// Page offset of a fixed UAR page in the driver's mmap encoding (mlx5_ib_mmap_cmd).
std::int64_t mmap_offset(std::uint64_t index, std::uint64_t command) {
  return static_cast<std::int64_t>((((index >> 8) << 16) | (command << 8) | (index & 0xff)) * kUarPage);
}

void destroy_object(Context* context, std::uint32_t handle) {
  uverbs::Bundle bundle(MLX5_IB_OBJECT_UAR, MLX5_IB_METHOD_UAR_OBJ_DESTROY);
  bundle.in_object(MLX5_IB_ATTR_UAR_OBJ_DESTROY_HANDLE, handle);
  verbena_execute(context, &bundle);
}

// One more, known to the context; null without memory for it.
Uar* add_uar(Context* context) {
  std::unique_ptr<Uar> uar(new (std::nothrow) Uar);
  if (!uar) return fail_null(ENOMEM);
  try {
    context->all_uars.insert(uar.get());
  } catch (const std::bad_alloc&) {
    return fail_null(ENOMEM);
  }
  return uar.release();
}

void drop_uar(Context* context, Uar* uar) {
  const int error = errno;
  context->all_uars.erase(uar);
  delete uar;
  errno = error;
}

// Makes a page, as a kernel object, and maps it.
bool map_page(Context* context, mlx5_ib_uapi_uar_alloc_type type, Uar* uar) {
  std::uint64_t offset = 0;
  std::uint32_t length = 0, page_id = 0;
  uverbs::Bundle bundle(MLX5_IB_OBJECT_UAR, MLX5_IB_METHOD_UAR_OBJ_ALLOC);
  const auto handle = bundle.out_object(MLX5_IB_ATTR_UAR_OBJ_ALLOC_HANDLE);
  bundle.in_const(MLX5_IB_ATTR_UAR_OBJ_ALLOC_TYPE, type);
  bundle.out_struct(MLX5_IB_ATTR_UAR_OBJ_ALLOC_MMAP_OFFSET, offset);
  bundle.out_struct(MLX5_IB_ATTR_UAR_OBJ_ALLOC_MMAP_LENGTH, length);
  bundle.out_struct(MLX5_IB_ATTR_UAR_OBJ_ALLOC_PAGE_ID, page_id);
  if (verbena_execute(context, &bundle)) return false;
  void* page = verbena_mmap(context, length, PROT_WRITE, static_cast<std::int64_t>(offset));
  if (page == MAP_FAILED) {
    const int error = errno;
    destroy_object(context, bundle.object(handle));
    errno = error;
    return false;
  }
  uar->page = page;
  uar->length = length;
  uar->mmap_offset = offset;
  uar->handle = bundle.object(handle);
  uar->page_id = page_id;
  uar->owns_mapping = true;
  uar->kernel_object = true;
  return true;
}

Uar* allocate_page(Context* context, mlx5_ib_uapi_uar_alloc_type type) {
  if (context->static_uars) return fail_null(EOPNOTSUPP);
  Uar* uar = add_uar(context);
  if (!uar || map_page(context, type, uar)) return uar;
  drop_uar(context, uar);
  return nullptr;
}

// Splits a fresh page into its registers and puts them on `list`, as many as there is memory for.
void add_registers(Context* context, Uar* first, std::deque<Uar*>& list) {
  const unsigned per_page = std::max(context->caps.num_uars_per_page, 1u) * kUsableRegsPerUar;
  for (unsigned i = 0; i < per_page; ++i) {
    Uar* uar = first;
    if (i) {
      if (!(uar = add_uar(context))) return;
      uar->page = first->page;
      uar->mmap_offset = first->mmap_offset;
      uar->handle = first->handle;
      uar->kernel_object = true;
      uar->page_id = first->page_id + i / kUsableRegsPerUar;
      uar->dedicated = first->dedicated;
      uar->shared = first->shared;
    }
    uar->reg = static_cast<char*>(first->page) + (i / kUsableRegsPerUar) * kUarPage + kBlueFlameOffset +
               (i % kUsableRegsPerUar) * context->caps.bf_reg_size;
    uar->bf_size = context->caps.bf_reg_size / 2;
    uar->lock.set_shared(uar->shared && !context->single_threaded);
    try {
      list.push_back(uar);
    } catch (const std::bad_alloc&) {
      return;  // the context keeps it till the end
    }
    if (uar->dedicated) ++context->dedicated_count;
    if (uar->shared) ++context->shared_count;
  }
}

bool add_qp_page(Context* context, bool dedicated) {
  Uar* page = allocate_page(context, MLX5_IB_UAPI_UAR_ALLOC_TYPE_BF);
  if (!page) return false;
  page->dedicated = dedicated;
  page->shared = !dedicated;
  add_registers(context, page, dedicated ? context->dedicated_free : context->shared_uars);
  return true;
}

}  // namespace

bool setup_static_uars(Context* context) {
  const unsigned per_page = std::max(context->caps.num_uars_per_page, 1u);
  const unsigned pages = context->caps.tot_bfregs / (per_page * kUsableRegsPerUar);
  context->static_regs = std::vector<Uar>(std::size_t{pages} * per_page * kRegsPerUar);
  for (unsigned page = 0; page < pages; ++page) {
    const auto command = context->no_blueflame ? MLX5_IB_MMAP_NC_PAGE : MLX5_IB_MMAP_REGULAR_PAGE;
    const std::int64_t offset = mmap_offset(page, command);
    void* mapping = verbena_mmap(context, kUarPage, PROT_WRITE, offset);
    if (mapping == MAP_FAILED) return false;
    for (unsigned i = 0; i < per_page * kRegsPerUar; ++i) {
      const unsigned index = page * per_page * kRegsPerUar + i;
      Uar& uar = context->static_regs[index];
      uar.page = mapping;
      uar.length = kUarPage;
      uar.mmap_offset = static_cast<std::uint64_t>(offset);
      uar.owns_mapping = i == 0;
      uar.static_index = index;
      uar.reg = static_cast<char*>(mapping) + (i / kRegsPerUar) * kUarPage + kBlueFlameOffset +
                (i % kRegsPerUar) * context->caps.bf_reg_size;
      uar.bf_size = index ? context->caps.bf_reg_size / 2 : 0;  // register 0 is everybody's: doorbells only
      const unsigned pair = index / 2 + index % 2;
      const bool shared = index && pair < context->caps.tot_bfregs - context->low_latency_bfregs;
      uar.lock.set_shared(shared && !context->single_threaded);
    }
  }
  return pages > 0;
}

void setup_nc_uar(Context* context) {
  std::lock_guard guard(context->uar_mutex);
  context->nc_uar = context->static_uars ? nullptr : allocate_page(context, MLX5_IB_UAPI_UAR_ALLOC_TYPE_NC);
  if (context->nc_uar) {
    context->nc_uar->reg = static_cast<char*>(context->nc_uar->page) + kBlueFlameOffset;
    context->cq_uar = context->nc_uar->page;
  } else if (!context->static_regs.empty()) {
    context->cq_uar = context->static_regs[0].page;
  }
}

void release_uars(Context* context) {
  const auto release = [&](Uar* uar) {
    if (!uar->owns_mapping) return;
    verbena_munmap(context, uar->page, uar->length);
    destroy_object(context, uar->handle);
    uar->owns_mapping = false;
  };
  // In the order in which rdma-core gives them back; then what a program has not given back.
  for (const auto* list : {&context->thread_free, &context->dedicated_free, &context->shared_uars})
    std::ranges::for_each(*list, release);
  if (context->nc_uar) release(context->nc_uar);
  std::ranges::for_each(context->all_uars, release);
  for (Uar* uar : context->all_uars) delete uar;
  context->all_uars.clear();
  for (Uar& uar : context->static_regs)
    if (uar.owns_mapping) verbena_munmap(context, uar.page, uar.length);
  context->static_regs.clear();
}

Uar* take_qp_uar(Context* context) {
  if (context->no_blueflame || !context->caps.bf_reg_size) return context->nc_uar;
  std::lock_guard guard(context->uar_mutex);
  if (context->dedicated_free.empty() && context->dedicated_count < context->low_latency_bfregs &&
      !add_qp_page(context, true))
    return nullptr;
  if (!context->dedicated_free.empty()) {
    Uar* uar = context->dedicated_free.front();
    context->dedicated_free.pop_front();
    return uar;
  }
  if (context->shared_count < context->total_bfregs - context->low_latency_bfregs && !add_qp_page(context, false))
    return nullptr;
  auto least = std::min_element(context->shared_uars.begin(), context->shared_uars.end(),
                                [](const Uar* a, const Uar* b) { return a->users < b->users; });
  if (least == context->shared_uars.end()) return fail_null(ENOSPC);
  ++(*least)->users;
  return *least;
}

void give_qp_uar(Context* context, Uar* uar) {
  if (!uar || (!uar->dedicated && !uar->shared)) return;
  std::lock_guard guard(context->uar_mutex);
  if (uar->dedicated)
    context->dedicated_free.push_back(uar);
  else
    --uar->users;
}

Uar* take_page(Context* context) {
  std::lock_guard guard(context->uar_mutex);
  Uar* uar = allocate_page(context, MLX5_IB_UAPI_UAR_ALLOC_TYPE_NC);
  if (!uar) return nullptr;
  uar->alone = true;
  uar->reg = static_cast<char*>(uar->page) + kBlueFlameOffset;
  return uar;
}

void give_page(Context* context, Uar* uar) {
  std::lock_guard guard(context->uar_mutex);
  verbena_munmap(context, uar->page, uar->length);
  destroy_object(context, uar->handle);
  drop_uar(context, uar);
}

Uar* take_thread_uar(Context* context) {
  std::lock_guard guard(context->uar_mutex);
  if (context->thread_free.empty()) {
    Uar* page = allocate_page(context, MLX5_IB_UAPI_UAR_ALLOC_TYPE_BF);
    if (!page) return nullptr;
    add_registers(context, page, context->thread_free);
    if (context->thread_free.empty()) return fail_null(ENOMEM);
  }
  Uar* uar = context->thread_free.front();
  context->thread_free.pop_front();
  return uar;
}

void give_thread_uar(Context* context, Uar* uar) {
  std::lock_guard guard(context->uar_mutex);
  context->thread_free.push_back(uar);
}

}  // namespace verbena::mlx5
