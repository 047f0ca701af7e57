// DEVX user memory, as the library knows it.
// Threads: any.
#pragma once

#include "mlx5/types.h"

namespace verbena::mlx5 {

struct DevxUmem {
  mlx5dv_devx_umem dv;  // first: what the program holds
  Context* context;
  void* addr;
  std::size_t size;
  std::uint32_t handle;
};

inline DevxUmem* umem_of(mlx5dv_devx_umem* dv) { return reinterpret_cast<DevxUmem*>(dv); }

}  // namespace verbena::mlx5
