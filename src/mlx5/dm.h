// Device memory, as the library knows it.
// Threads: as the verbs manual allows.
#pragma once

#include "mlx5/types.h"

namespace verbena::mlx5 {

struct Dm : verbs::Dm {
  void* mapping = nullptr;  // null: not mapped (steering memory)
  char* start = nullptr;    // of the memory in it
  std::size_t length = 0;
  std::uint64_t remote_va = 0;
  std::uint64_t map_offset = 0;  // of the command descriptor, where it is mapped
};

inline Dm* dm_of(ibv_dm* dm) { return verbs::derived<Dm>(dm); }

// Allocates memory of one kind (mlx5_ib_uapi_dm_type). Null with errno.
ibv_dm* alloc_dm_of(Context* context, const ibv_alloc_dm_attr& attr, std::uint32_t type);
// Where the command descriptor maps page `index` of the device memory that the kernel made mappable, and the mapping; null
// with errno.
std::uint64_t device_memory_offset(std::uint16_t index);
void* map_device_memory(Context* context, std::uint16_t index, std::size_t length);

}  // namespace verbena::mlx5
