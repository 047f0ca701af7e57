#include "mlx5/buffer.h"

#include <sys/mman.h>

#include <cerrno>

#include "mlx5/environment.h"
#include "mlx5/heap.h"
#include "mlx5/types.h"

namespace verbena::mlx5 {

namespace {

using environment::AllocType;

constexpr std::size_t kHugePage = std::size_t{2} << 20;
constexpr std::size_t kRecordBytes = 8;

bool from_program(ParentDomain* domain, const BufferRequest& request, Buffer* out, bool* use_default) {
  *use_default = false;
  void* memory = domain->alloc(&domain->pd, domain->pd_context, request.size, request.custom_alignment, request.type);
  if (memory == IBV_ALLOCATOR_USE_DEFAULT) {
    *use_default = true;
    return false;
  }
  if (!memory) {
    errno = ENOMEM;
    return false;
  }
  *out = {static_cast<char*>(memory), request.size, BufferSource::custom, &domain->pd, request.type};
  return true;
}

bool from_huge_pages(std::size_t size, Buffer* out) {
  const std::size_t length = (size + kHugePage - 1) & ~(kHugePage - 1);
  void* memory = ::mmap(nullptr, length, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_HUGETLB, -1, 0);
  if (memory == MAP_FAILED) return false;
  if (ibv_dontfork_range(memory, length)) {
    ::munmap(memory, length);
    errno = ENOMEM;
    return false;
  }
  *out = {static_cast<char*>(memory), length, BufferSource::huge, nullptr, 0};
  return true;
}

}  // namespace

bool allocate(Context* context, ibv_pd* domain, const BufferRequest& request, Buffer* out) {
  ParentDomain* parent = parent_domain_of(domain);
  const bool custom = parent && parent->alloc && parent->free;
  if (custom) {
    bool use_default;
    if (from_program(parent, request, out, &use_default)) return true;
    if (!use_default) return false;
  }
  if (!custom && context->allocators.alloc && context->allocators.free) {
    void* memory = context->allocators.alloc(request.size, context->allocators.data);
    if (!memory) {
      errno = ENOMEM;
      return false;
    }
    std::memset(memory, 0, request.size);
    *out = {static_cast<char*>(memory), request.size, BufferSource::external, nullptr, 0};
    return true;
  }
  const AllocType type =
      custom ? AllocType::anonymous
             : environment::alloc_type(request.component, request.prefer_huge ? AllocType::huge : AllocType::anonymous);
  if (type == AllocType::huge || type == AllocType::prefer_huge || type == AllocType::all) {
    if (from_huge_pages(request.size, out)) return true;
    if (type == AllocType::huge) return false;
  }
  if (type == AllocType::contiguous) {  // physically contiguous memory is gone from kernels since 5.x
    errno = ENOMEM;
    return false;
  }
  void* memory = context->heap->take(context->ibv()->cmd_fd, request.size);
  if (!memory) return false;
  *out = {static_cast<char*>(memory), request.size, BufferSource::heap, nullptr, 0};
  return true;
}

void release(Context* context, Buffer* buffer) {
  switch (buffer->source) {
    case BufferSource::none:
      break;
    case BufferSource::heap:
      context->heap->give(buffer->data, buffer->length);
      break;
    case BufferSource::huge:
      ibv_dofork_range(buffer->data, buffer->length);
      ::munmap(buffer->data, buffer->length);
      break;
    case BufferSource::external:
      context->allocators.free(buffer->data, context->allocators.data);
      break;
    case BufferSource::custom: {
      ParentDomain* domain = parent_domain_of(buffer->domain);
      domain->free(&domain->pd, domain->pd_context, buffer->data, buffer->type);
      break;
    }
  }
  *buffer = {};
}

bool allocate(Context* context, ibv_pd* domain, DoorbellRecord* out) {
  ParentDomain* parent = parent_domain_of(domain);
  const bool custom = parent && parent->alloc && parent->free;
  if (custom) {
    void* memory = parent->alloc(&parent->pd, parent->pd_context, kRecordBytes, kRecordBytes, MLX5DV_RES_TYPE_DBR);
    if (!memory) {
      errno = ENOMEM;
      return false;
    }
    if (memory != IBV_ALLOCATOR_USE_DEFAULT) {
      *out = {static_cast<__be32*>(memory), BufferSource::custom, domain};
      out->words[0] = out->words[1] = 0;
      return true;
    }
  }
  if (context->allocators.alloc && context->allocators.free) {
    *out = {context->db_pages.take(context), BufferSource::external, nullptr};
  } else {
    // A record has a cache line of its own: the device and the other queues' threads read it.
    *out = {static_cast<__be32*>(context->heap->take(context->ibv()->cmd_fd, Heap::kSmallest)), BufferSource::heap, nullptr};
  }
  return out->words != nullptr;
}

void release(Context* context, DoorbellRecord* record) {
  switch (record->source) {
    case BufferSource::heap:
      context->heap->give(record->words, Heap::kSmallest);
      break;
    case BufferSource::external:
      context->db_pages.give(context, record->words);
      break;
    case BufferSource::custom: {
      ParentDomain* domain = parent_domain_of(record->domain);
      domain->free(&domain->pd, domain->pd_context, record->words, MLX5DV_RES_TYPE_DBR);
      break;
    }
    default:
      break;
  }
  *record = {};
}

__be32* DoorbellPages::take(Context* context) {
  std::lock_guard guard(mutex_);
  if (with_room_.empty()) {
    auto* data = static_cast<char*>(context->allocators.alloc(Heap::kPage, context->allocators.data));
    if (!data) {
      errno = ENOMEM;
      return nullptr;
    }
    pages_[data] = ~std::uint64_t{0};
    with_room_.insert(data);
  }
  char* data = *with_room_.begin();
  std::uint64_t& free = pages_[data];
  auto* record = reinterpret_cast<__be32*>(data + std::countr_zero(free) * Heap::kSmallest);
  free &= free - 1;
  if (!free) with_room_.erase(data);
  record[0] = record[1] = 0;
  return record;
}

void DoorbellPages::give(Context* context, __be32* record) {
  auto* at = reinterpret_cast<char*>(record);
  std::lock_guard guard(mutex_);
  auto page = pages_.upper_bound(at);
  if (page == pages_.begin()) return;
  --page;
  page->second |= std::uint64_t{1} << ((at - page->first) / Heap::kSmallest);
  with_room_.insert(page->first);
  if (~page->second) return;
  context->allocators.free(page->first, context->allocators.data);
  with_room_.erase(page->first);
  pages_.erase(page);
}

void DoorbellPages::clear(Context* context) {
  std::lock_guard guard(mutex_);
  for (const auto& [data, free] : pages_) context->allocators.free(data, context->allocators.data);
  pages_.clear();
  with_room_.clear();
}

}  // namespace verbena::mlx5
