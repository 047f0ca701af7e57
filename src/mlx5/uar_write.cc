// The stores that wake a real device: a doorbell, or a whole small WQE through BlueFlame.

#include <emmintrin.h>

#include "mlx5/send_wqe.h"

namespace verbena::mlx5 {

void write_uar(SendQueue& sq, const char* ctrl, std::uint32_t bytes, bool blueflame) {
  Uar* uar = sq.uar;
  if (!uar) return;
  LockGuard guard(uar->lock);
  _mm_sfence();  // the doorbell record is in memory before the write-combining store leaves
  char* to = uar->reg + uar->bf_offset;
  if (blueflame && bytes > kSegment && bytes <= uar->bf_size) {
    for (std::uint32_t copied = 0; copied < bytes; copied += kWqeBlock) {
      for (unsigned word = 0; word < kWqeBlock; word += 8)
        *reinterpret_cast<volatile std::uint64_t*>(to + copied + word) = load64(ctrl + word);
      ctrl = wrap(sq, const_cast<char*>(ctrl) + kWqeBlock);
    }
  } else {
    *reinterpret_cast<volatile std::uint64_t*>(to) = load64(ctrl);
  }
  _mm_sfence();  // flush before another CPU rings the same register
  uar->bf_offset ^= uar->bf_size;
}

}  // namespace verbena::mlx5
