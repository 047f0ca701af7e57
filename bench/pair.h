// Two RC queue pairs of one process, connected to each other: what the benchmarks measure on.
#pragma once

#include <infiniband/verbs.h>
#include <stdlib.h>
#include <string.h>

#include <cstdint>
#include <cstdio>

namespace bench {

inline void need(bool good, const char* what) {
  if (good) return;
  std::perror(what);
  std::exit(1);
}

inline ibv_context* open_first_device() {
  int count = 0;
  ibv_device** list = ibv_get_device_list(&count);
  need(list && count > 0, "ibv_get_device_list");
  ibv_context* context = ibv_open_device(list[0]);
  need(context, "ibv_open_device");
  ibv_free_device_list(list);
  return context;
}

constexpr int kAccess =
    IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC;

inline void to_init(ibv_qp* qp) {
  ibv_qp_attr attr{};
  attr.qp_state = IBV_QPS_INIT;
  attr.port_num = 1;
  attr.qp_access_flags = kAccess;
  const int mask = IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS;
  need(ibv_modify_qp(qp, &attr, mask) == 0, "modify to INIT");
}

// From INIT to RTS, towards QP `peer` of the same port.
inline void connect(ibv_qp* qp, std::uint32_t peer, const ibv_gid& gid, int gid_index) {
  ibv_qp_attr attr{};
  attr.qp_state = IBV_QPS_RTR;
  attr.path_mtu = IBV_MTU_4096;
  attr.dest_qp_num = peer;
  attr.max_dest_rd_atomic = 4;
  attr.min_rnr_timer = 12;
  attr.ah_attr.is_global = 1;
  attr.ah_attr.port_num = 1;
  attr.ah_attr.grh.dgid = gid;
  attr.ah_attr.grh.sgid_index = static_cast<std::uint8_t>(gid_index);
  attr.ah_attr.grh.hop_limit = 64;
  int mask = IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN | IBV_QP_MAX_DEST_RD_ATOMIC |
             IBV_QP_MIN_RNR_TIMER;
  need(ibv_modify_qp(qp, &attr, mask) == 0, "modify to RTR");
  attr = {};
  attr.qp_state = IBV_QPS_RTS;
  attr.timeout = 14;
  attr.retry_cnt = 7;
  attr.rnr_retry = 7;
  attr.max_rd_atomic = 4;
  mask = IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_SQ_PSN | IBV_QP_MAX_QP_RD_ATOMIC;
  need(ibv_modify_qp(qp, &attr, mask) == 0, "modify to RTS");
}

constexpr int kGidIndex = 3;  // RoCE v2 of the IPv4 address

inline void connect_each_other(ibv_context* context, ibv_qp* a, ibv_qp* b) {
  ibv_gid gid;
  need(ibv_query_gid(context, 1, kGidIndex, &gid) == 0, "ibv_query_gid");
  to_init(a);
  to_init(b);
  connect(a, b->qp_num, gid, kGidIndex);
  connect(b, a->qp_num, gid, kGidIndex);
}

}  // namespace bench
