// QP numbers that no QP of the device gets, for connection managers of others' QPs.
//
// The device reserves blocks of numbers (general objects, made by DEVX); single ones are handed out from the newest
// block, ever upwards, so that a number rests as long as possible before it comes again.
// Threads: any.
#pragma once

#include <cstdint>
#include <map>
#include <mutex>
#include <vector>

#include "mlx5/types.h"

namespace verbena::mlx5 {

struct ReservedQpns {
  explicit ReservedQpns(Context* owner) : context(owner) {}
  ~ReservedQpns();
  // 0 or errno.
  int alloc(std::uint32_t* qpn);
  int free(std::uint32_t qpn);

 private:
  struct Block {
    mlx5dv_devx_obj* object = nullptr;
    std::uint32_t next = 0;  // numbers below it were handed out once
    std::vector<bool> used;
    std::uint32_t users = 0;
  };
  int add_block();

  Context* const context;
  std::mutex lock;
  std::map<std::uint32_t, Block> blocks;  // by their first number
  std::uint32_t newest = 0;
};

}  // namespace verbena::mlx5
