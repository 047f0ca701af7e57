// Values of the verbs ABI that the uapi headers leave to <infiniband/verbs.h> and the kernel's ib_verbs.h.
// Threads: constants only.
#pragma once

#include <cstdint>

namespace verbena::kernel {

inline constexpr std::uint32_t kDriverId = 1;  // RDMA_DRIVER_MLX5
inline constexpr std::uint64_t kPageSize = 4096;

// IB_ACCESS_*
struct Access {
  static constexpr std::uint32_t local_write = 1u << 0;
  static constexpr std::uint32_t remote_write = 1u << 1;
  static constexpr std::uint32_t remote_read = 1u << 2;
  static constexpr std::uint32_t remote_atomic = 1u << 3;
  static constexpr std::uint32_t mw_bind = 1u << 4;
  static constexpr std::uint32_t zero_based = 1u << 5;
  static constexpr std::uint32_t on_demand = 1u << 6;
  static constexpr std::uint32_t hugetlb = 1u << 7;
  static constexpr std::uint32_t relaxed_ordering = 1u << 20;
  static constexpr std::uint32_t optional_range = 0x3ff00000u;  // bits a driver may ignore
  static constexpr std::uint32_t known = 0xffu | optional_range;
};

// IB_MR_REREG_*
struct Rereg {
  static constexpr std::uint32_t translation = 1u << 0;
  static constexpr std::uint32_t pd = 1u << 1;
  static constexpr std::uint32_t access = 1u << 2;
  static constexpr std::uint32_t known = 7;
};

enum class QpType : std::uint8_t {
  rc = 2,
  uc = 3,
  ud = 4,
  raw_packet = 8,
  xrc_ini = 9,
  xrc_tgt = 10,
  driver = 0xff,
};

enum class QpState : std::uint8_t { reset = 0, init = 1, rtr = 2, rts = 3, sqd = 4, sqe = 5, err = 6, unknown = 7 };

// IB_QP_*: attribute mask of modify and query.
struct QpAttr {
  static constexpr std::uint32_t state = 1u << 0;
  static constexpr std::uint32_t cur_state = 1u << 1;
  static constexpr std::uint32_t en_sqd_async_notify = 1u << 2;
  static constexpr std::uint32_t access_flags = 1u << 3;
  static constexpr std::uint32_t pkey_index = 1u << 4;
  static constexpr std::uint32_t port = 1u << 5;
  static constexpr std::uint32_t qkey = 1u << 6;
  static constexpr std::uint32_t av = 1u << 7;
  static constexpr std::uint32_t path_mtu = 1u << 8;
  static constexpr std::uint32_t timeout = 1u << 9;
  static constexpr std::uint32_t retry_cnt = 1u << 10;
  static constexpr std::uint32_t rnr_retry = 1u << 11;
  static constexpr std::uint32_t rq_psn = 1u << 12;
  static constexpr std::uint32_t max_qp_rd_atomic = 1u << 13;
  static constexpr std::uint32_t alt_path = 1u << 14;
  static constexpr std::uint32_t min_rnr_timer = 1u << 15;
  static constexpr std::uint32_t sq_psn = 1u << 16;
  static constexpr std::uint32_t max_dest_rd_atomic = 1u << 17;
  static constexpr std::uint32_t path_mig_state = 1u << 18;
  static constexpr std::uint32_t cap = 1u << 19;
  static constexpr std::uint32_t dest_qpn = 1u << 20;
  static constexpr std::uint32_t rate_limit = 1u << 25;
  static constexpr std::uint32_t legacy = (1u << 21) - 1;  // what the legacy command may carry
};

// IB_SRQ_MAX_WR, IB_SRQ_LIMIT
struct SrqAttr {
  static constexpr std::uint32_t max_wr = 1u << 0;
  static constexpr std::uint32_t limit = 1u << 1;
};

// IB_RAW_PACKET_CAP_*
struct RawPacketCap {
  static constexpr std::uint32_t cvlan_stripping = 1u << 0;
  static constexpr std::uint32_t ip_csum = 1u << 2;
};

enum class SrqType : std::uint32_t { basic = 0, xrc = 1, tm = 2 };
enum class MwType : std::uint8_t { type_1 = 1, type_2 = 2 };

// IB_EVENT_*
enum class Event : std::uint32_t {
  cq_err = 0,
  qp_fatal = 1,
  qp_req_err = 2,
  qp_access_err = 3,
  comm_est = 4,
  sq_drained = 5,
  path_mig = 6,
  path_mig_err = 7,
  device_fatal = 8,
  port_active = 9,
  port_err = 10,
  lid_change = 11,
  pkey_change = 12,
  sm_change = 13,
  srq_err = 14,
  srq_limit_reached = 15,
  qp_last_wqe_reached = 16,
  client_reregister = 17,
  gid_change = 18,
  wq_fatal = 19,
};

inline constexpr std::uint8_t kPortActive = 4;
inline constexpr std::uint8_t kPortDown = 1;
inline constexpr std::uint8_t kLinkLayerEthernet = 2;

}  // namespace verbena::kernel
