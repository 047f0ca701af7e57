// Memory of rings and doorbell records: from the program's allocators, from huge pages, or from our heap.
//
// Threads: any.
#pragma once

#include <infiniband/verbs.h>
#include <linux/types.h>

#include <cstddef>
#include <cstdint>
#include <map>
#include <mutex>
#include <set>

namespace verbena::mlx5 {

struct Context;

enum class BufferSource : std::uint8_t { none, heap, huge, external, custom };

struct Buffer {
  char* data = nullptr;
  std::size_t length = 0;
  BufferSource source = BufferSource::none;
  ibv_pd* domain = nullptr;  // whose allocators it came from
  std::uint64_t type = 0;    // MLX5DV_RES_TYPE_*
};

// What a ring asks for. `component` names its environment variable: MLX_<component>_ALLOC_TYPE.
struct BufferRequest {
  std::size_t size;
  std::size_t custom_alignment;  // told to the program's allocator
  std::uint64_t type;
  const char* component;  // "QP", "CQ", "SRQ"
  bool prefer_huge = false;
};

// Zeroed memory, except where the program allocated it. False with errno on failure.
bool allocate(Context* context, ibv_pd* domain, const BufferRequest& request, Buffer* out);
void release(Context* context, Buffer* buffer);

struct DoorbellRecord {
  __be32* words = nullptr;  // two of them
  BufferSource source = BufferSource::none;
  ibv_pd* domain = nullptr;
};

bool allocate(Context* context, ibv_pd* domain, DoorbellRecord* out);
void release(Context* context, DoorbellRecord* record);

// Doorbell records carved from pages of the context's external allocator (mlx5dv_set_context_attr).
class DoorbellPages {
 public:
  __be32* take(Context* context);
  void give(Context* context, __be32* record);
  void clear(Context* context);  // at close: returns every page

 private:
  std::mutex mutex_;
  std::map<char*, std::uint64_t> pages_;  // the records of each that are free
  std::set<char*> with_room_;             // those that have one
};

}  // namespace verbena::mlx5
