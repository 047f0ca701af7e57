// Types of the verbs that are newer than rdma-core 44's headers, as programs built with newer ones have them.
// Threads: types only.
#pragma once

#include <infiniband/verbs.h>

#include <cstddef>
#include <cstdint>

#include "verbs/driver.h"

struct ibv_buf;        // opaque to programs
struct ibv_comp_cntr;  // no device of ours has any

struct ibv_fd_arr {
  int* arr;
  std::uint32_t count;
};

struct ibv_dmah {
  ibv_context* context;
};

struct ibv_dmah_init_attr {
  std::uint32_t comp_mask;
  std::uint32_t cpu_id;
  std::uint8_t ph;
  std::uint8_t tph_mem_type;
};

struct ibv_mr_init_attr {
  std::size_t length;
  int access;
  std::uint64_t comp_mask;
  std::uint64_t iova;
  void* addr;
  int fd;
  std::uint64_t fd_offset;
  ibv_dmah* dmah;
  ibv_buf* buf;
};

extern "C" {
// verbena_cmd_get_context() with descriptors that grant the context more rights than others have, or null: kernels before
// 6.15 know none.
int verbena_cmd_get_context_with(verbena_context*, const verbena_udata*, const ibv_fd_arr* fds);
}

namespace verbena::verbs {

// Bits of ibv_mr_init_attr::comp_mask and of ibv_dmah_init_attr::comp_mask.
struct MrInit {
  static constexpr std::uint64_t iova = 1, addr = 2, fd = 4, fd_offset = 8, dmah = 16, buf = 32, known = 63;
};
struct DmahInit {
  static constexpr std::uint32_t cpu_id = 1, hint = 2, memory_type = 4, known = 7;
};

}  // namespace verbena::verbs
