// What every program here needs: an open device and two connected queue pairs of one process. Public verbs only.
#pragma once

#include <arpa/inet.h>
#include <errno.h>
#include <infiniband/verbs.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define CHECK(condition)                                                                                     \
  do {                                                                                                       \
    if (!(condition)) {                                                                                      \
      fprintf(stderr, "%s:%d: %s (errno %d: %s)\n", __FILE__, __LINE__, #condition, errno, strerror(errno)); \
      exit(1);                                                                                               \
    }                                                                                                        \
  } while (0)

// Counts instead of leaving, for tables of cases.
__attribute__((unused)) static int failures;
#define EXPECT(condition, ...)                                        \
  do {                                                                \
    if (!(condition)) {                                               \
      ++failures;                                                     \
      fprintf(stderr, "%s:%d: %s: ", __FILE__, __LINE__, #condition); \
      fprintf(stderr, __VA_ARGS__);                                   \
      fputc('\n', stderr);                                            \
    }                                                                 \
  } while (0)

struct World {
  struct ibv_context* context;
  struct ibv_pd* pd;
  union ibv_gid gid;
  int gid_index;
};

static inline struct World open_world(void) {
  struct World w;
  memset(&w, 0, sizeof w);
  int count = 0;
  struct ibv_device** list = ibv_get_device_list(&count);
  CHECK(list && count > 0);
  CHECK(w.context = ibv_open_device(list[0]));
  ibv_free_device_list(list);
  CHECK(w.pd = ibv_alloc_pd(w.context));
  w.gid_index = 1;
  CHECK(!ibv_query_gid(w.context, 1, w.gid_index, &w.gid));
  return w;
}

static inline void close_world(struct World* w) {
  CHECK(!ibv_dealloc_pd(w->pd));
  CHECK(!ibv_close_device(w->context));
}

static inline struct ibv_qp* make_qp(struct World* w, enum ibv_qp_type type, struct ibv_cq* send, struct ibv_cq* recv,
                                     struct ibv_srq* srq) {
  struct ibv_qp_init_attr init = {.send_cq = send,
                                  .recv_cq = recv,
                                  .srq = srq,
                                  .cap = {.max_send_wr = 16,
                                          .max_recv_wr = srq ? 0u : 16u,
                                          .max_send_sge = 2,
                                          .max_recv_sge = srq ? 0u : 2u,
                                          .max_inline_data = 32},
                                  .qp_type = type};
  struct ibv_qp* qp = ibv_create_qp(w->pd, &init);
  CHECK(qp);
  return qp;
}

enum {
  kAllAccess = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC
};

static inline struct ibv_qp_attr attributes(const struct World* w, uint32_t peer) {
  struct ibv_qp_attr a;
  memset(&a, 0, sizeof a);
  a.path_mtu = IBV_MTU_1024;
  a.dest_qp_num = peer;
  a.rq_psn = a.sq_psn = 0x123;
  a.qp_access_flags = kAllAccess & ~IBV_ACCESS_LOCAL_WRITE;
  a.port_num = 1;
  a.qkey = 0x1111;
  a.max_rd_atomic = a.max_dest_rd_atomic = 4;
  a.min_rnr_timer = 1;
  a.timeout = 8;
  a.retry_cnt = 1;
  a.rnr_retry = 1;
  a.ah_attr.is_global = 1;
  a.ah_attr.port_num = 1;
  a.ah_attr.grh.dgid = w->gid;
  a.ah_attr.grh.sgid_index = (uint8_t)w->gid_index;
  a.ah_attr.grh.hop_limit = 64;
  a.cur_qp_state = IBV_QPS_RESET;
  a.path_mig_state = IBV_MIG_MIGRATED;
  return a;
}

// What the verbs specification requires to enter `to` from its predecessor.
static inline int required(enum ibv_qp_type type, enum ibv_qp_state to) {
  switch (to) {
    case IBV_QPS_INIT:
      return IBV_QP_PKEY_INDEX | IBV_QP_PORT | (type == IBV_QPT_UD ? IBV_QP_QKEY : IBV_QP_ACCESS_FLAGS);
    case IBV_QPS_RTR:
      if (type == IBV_QPT_UD) return 0;
      return IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
             (type == IBV_QPT_RC || type == IBV_QPT_XRC_RECV ? IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER : 0);
    case IBV_QPS_RTS:
      if (type == IBV_QPT_XRC_RECV) return IBV_QP_SQ_PSN | IBV_QP_TIMEOUT;
      return IBV_QP_SQ_PSN |
             (type == IBV_QPT_RC || type == IBV_QPT_XRC_SEND ? IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_MAX_QP_RD_ATOMIC : 0);
    default:
      return 0;
  }
}

static inline int go(struct ibv_qp* qp, enum ibv_qp_state state, struct ibv_qp_attr a, int mask) {
  a.qp_state = state;
  return ibv_modify_qp(qp, &a, mask | IBV_QP_STATE);
}

static inline void connect_qp(const struct World* w, struct ibv_qp* qp, uint32_t peer) {
  const struct ibv_qp_attr a = attributes(w, peer);
  CHECK(!go(qp, IBV_QPS_INIT, a, required(qp->qp_type, IBV_QPS_INIT)));
  CHECK(!go(qp, IBV_QPS_RTR, a, required(qp->qp_type, IBV_QPS_RTR)));
  CHECK(!go(qp, IBV_QPS_RTS, a, required(qp->qp_type, IBV_QPS_RTS)));
}

static inline double now_ms(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec * 1e3 + (double)t.tv_nsec * 1e-6;
}

// The next completion, within 5 s.
static inline struct ibv_wc next_wc(struct ibv_cq* cq) {
  struct ibv_wc wc;
  memset(&wc, 0, sizeof wc);
  const double end = now_ms() + 5000;
  int n;
  while ((n = ibv_poll_cq(cq, 1, &wc)) == 0) CHECK(now_ms() < end);
  CHECK(n == 1);
  return wc;
}
