// UMR WQEs that bind memory windows and free keys.

#include "mlx5/send_wqe.h"

namespace verbena::mlx5 {

namespace {

constexpr std::uint64_t kChangeAlways = MLX5_WQE_UMR_CTRL_MKEY_MASK_FREE | MLX5_WQE_UMR_CTRL_MKEY_MASK_MKEY;
constexpr std::uint64_t kChangeOnBind =
    MLX5_WQE_UMR_CTRL_MKEY_MASK_LEN | MLX5_WQE_UMR_CTRL_MKEY_MASK_START_ADDR |
    MLX5_WQE_UMR_CTRL_MKEY_MASK_ACCESS_LOCAL_WRITE | MLX5_WQE_UMR_CTRL_MKEY_MASK_ACCESS_REMOTE_READ |
    MLX5_WQE_UMR_CTRL_MKEY_MASK_ACCESS_REMOTE_WRITE | MLX5_WQE_UMR_CTRL_MKEY_MASK_ACCESS_ATOMIC;
constexpr std::uint16_t kOneKlm = 2;  // octowords, a multiple of 4 KLMs halved
constexpr std::uint32_t kAnyQpn = 0xffffff00;
constexpr std::uint64_t kLongest = std::uint64_t{1} << 31;  // of a KLM

std::uint8_t window_access(unsigned flags) {
  std::uint8_t access = 0;
  if (flags & IBV_ACCESS_LOCAL_WRITE) access |= MLX5_WQE_MKEY_CONTEXT_ACCESS_FLAGS_LOCAL_WRITE;
  if (flags & IBV_ACCESS_REMOTE_WRITE) access |= MLX5_WQE_MKEY_CONTEXT_ACCESS_FLAGS_REMOTE_WRITE;
  if (flags & IBV_ACCESS_REMOTE_READ) access |= MLX5_WQE_MKEY_CONTEXT_ACCESS_FLAGS_REMOTE_READ;
  if (flags & IBV_ACCESS_REMOTE_ATOMIC) access |= MLX5_WQE_MKEY_CONTEXT_ACCESS_FLAGS_ATOMIC;
  return access;
}

}  // namespace

std::uint32_t set_bind(const SendQueue& sq, char* at, ibv_mw_type type, std::uint32_t rkey,
                       const ibv_mw_bind_info& info, int* error) {
  const bool binds = info.length != 0;
  const bool type2 = type == IBV_MW_TYPE_2;
  if (info.length > kLongest) {
    *error = EOPNOTSUPP;
    return 0;
  }
  if (binds && !info.mr) {
    *error = EINVAL;
    return 0;
  }
  mlx5_wqe_umr_ctrl_seg umr = {};
  std::uint64_t mask = kChangeAlways;
  umr.flags = MLX5_WQE_UMR_CTRL_FLAG_TRNSLATION_OFFSET | MLX5_WQE_UMR_CTRL_FLAG_INLINE;
  if (type2) {
    mask |= MLX5_WQE_UMR_CTRL_MKEY_MASK_QPN;
    umr.flags |= binds ? MLX5_WQE_UMR_CTRL_FLAG_CHECK_FREE : MLX5_WQE_UMR_CTRL_FLAG_CHECK_QPN;
  }
  if (binds) {
    mask |= kChangeOnBind;
    umr.klm_octowords = be(kOneKlm);
  }
  umr.mkey_mask = be(mask);
  std::memcpy(at, &umr, sizeof umr);
  at = wrap(sq, at + sizeof umr);

  mlx5_wqe_mkey_context_seg key = {};
  key.qpn_mkey = be((rkey & 0xff) | (!type2 || !binds ? kAnyQpn : sq.qpn_field));
  if (binds) {
    key.access_flags = window_access(info.mw_access_flags);
    key.start_addr = info.mw_access_flags & IBV_ACCESS_ZERO_BASED ? 0 : be(std::uint64_t{info.addr});
    key.len = be(std::uint64_t{info.length});
  } else {
    key.free = MLX5_WQE_MKEY_CONTEXT_FREE;
  }
  std::memcpy(at, &key, sizeof key);
  at = wrap(sq, at + sizeof key);
  std::uint32_t segments = (sizeof umr + sizeof key) / kSegment;
  if (!binds) return segments;

  std::memset(at, 0, kUmrKlmBlock);
  set_data(at, static_cast<std::uint32_t>(info.length), info.mr->lkey, info.addr);
  return segments + kUmrKlmBlock / kSegment;
}

}  // namespace verbena::mlx5
