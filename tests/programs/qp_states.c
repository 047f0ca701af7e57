// The state machine of RC, UC and UD queue pairs: every transition, with each required attribute missing and each
// foreign one added; and what query_qp says afterwards.
#include "pair.h"

enum { kStates = IBV_QPS_ERR + 1 };
static const char* const kNames[] = {"RESET", "INIT", "RTR", "RTS", "SQD", "SQE", "ERR"};

static const int kAllMasks = IBV_QP_CUR_STATE | IBV_QP_EN_SQD_ASYNC_NOTIFY | IBV_QP_ACCESS_FLAGS | IBV_QP_PKEY_INDEX |
                             IBV_QP_PORT | IBV_QP_QKEY | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_TIMEOUT |
                             IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_RQ_PSN | IBV_QP_MAX_QP_RD_ATOMIC |
                             IBV_QP_MIN_RNR_TIMER | IBV_QP_SQ_PSN | IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_PATH_MIG_STATE |
                             IBV_QP_CAP | IBV_QP_DEST_QPN;

// Optional attributes; -1: mlx5 has no such transition. An alternate path is refused on Ethernet ports.
static int optional(enum ibv_qp_type t, int from, int to) {
  const int access = t == IBV_QPT_UD ? IBV_QP_QKEY : IBV_QP_ACCESS_FLAGS;
  const int rnr = t == IBV_QPT_RC ? IBV_QP_MIN_RNR_TIMER : 0;
  const int migration = t == IBV_QPT_UD ? 0 : IBV_QP_PATH_MIG_STATE;
  if (to == IBV_QPS_RESET || to == IBV_QPS_ERR) return 0;
  if (from == IBV_QPS_RESET && to == IBV_QPS_INIT) return 0;
  if (from == IBV_QPS_INIT && to == IBV_QPS_INIT) return access | IBV_QP_PKEY_INDEX | IBV_QP_PORT;
  if (from == IBV_QPS_INIT && to == IBV_QPS_RTR) return access | IBV_QP_PKEY_INDEX;
  if (from == IBV_QPS_RTR && to == IBV_QPS_RTS) return IBV_QP_CUR_STATE | access | rnr | migration;
  if (from == IBV_QPS_RTS && to == IBV_QPS_RTS) return IBV_QP_CUR_STATE | access | rnr | migration;
  return -1;
}

static struct ibv_cq* cq;

static struct ibv_qp* in_state(struct World* w, enum ibv_qp_type type, int state) {
  struct ibv_qp* qp = make_qp(w, type, cq, cq, NULL);
  struct ibv_qp_attr a = attributes(w, 0x50);
  const int path[] = {IBV_QPS_INIT, IBV_QPS_RTR, IBV_QPS_RTS};
  for (int i = 0; i < 3 && state != IBV_QPS_ERR && path[i] <= state; ++i)
    CHECK(!go(qp, (enum ibv_qp_state)path[i], a, required(type, (enum ibv_qp_state)path[i])));
  if (state == IBV_QPS_ERR) CHECK(!go(qp, IBV_QPS_ERR, a, 0));
  return qp;
}

static int try_it(struct World* w, enum ibv_qp_type type, int from, int to, int mask) {
  struct ibv_qp* qp = in_state(w, type, from);
  struct ibv_qp_attr a = attributes(w, 0x50);
  a.cur_qp_state = (enum ibv_qp_state)from;
  const int result = go(qp, (enum ibv_qp_state)to, a, mask);
  struct ibv_qp_init_attr init;
  CHECK(!ibv_query_qp(qp, &a, IBV_QP_STATE, &init));
  EXPECT((int)a.qp_state == (result ? from : to), "type %d %s->%s mask %#x gave %d but state %d", type, kNames[from],
         kNames[to], mask, result, a.qp_state);
  CHECK((int)qp->state == (result ? from : to));
  CHECK(!ibv_destroy_qp(qp));
  return result;
}

static void matrix(struct World* w, enum ibv_qp_type type) {
  const int starts[] = {IBV_QPS_RESET, IBV_QPS_INIT, IBV_QPS_RTR, IBV_QPS_RTS, IBV_QPS_ERR};
  for (unsigned s = 0; s < sizeof starts / sizeof *starts; ++s) {
    const int from = starts[s];
    for (int to = 0; to < kStates; ++to) {
      const int may = optional(type, from, to);
      const int need = from == to || to < IBV_QPS_INIT || to > IBV_QPS_RTS ? 0 : required(type, (enum ibv_qp_state)to);
      const int result = try_it(w, type, from, to, need);
      if (may < 0) {
        EXPECT(result == EINVAL, "type %d %s->%s: %d", type, kNames[from], kNames[to], result);
        continue;
      }
      EXPECT(result == 0, "type %d %s->%s: %d", type, kNames[from], kNames[to], result);
      for (int bit = 1; bit && bit <= kAllMasks; bit <<= 1) {
        if (!(bit & kAllMasks) || bit == IBV_QP_ALT_PATH || (bit == IBV_QP_CAP)) continue;
        const int wanted = bit & need ? EINVAL : bit & may ? 0 : EINVAL;
        const int got = try_it(w, type, from, to, bit & need ? need & ~bit : need | bit);
        EXPECT(got == wanted, "type %d %s->%s %s %#x: %d", type, kNames[from], kNames[to],
               bit & need ? "without" : "with", bit, got);
      }
    }
  }
}

static void values(struct World* w) {
  struct ibv_qp* qp = make_qp(w, IBV_QPT_RC, cq, cq, NULL);
  struct ibv_qp_attr a = attributes(w, 0x77), q;
  struct ibv_qp_init_attr init;
  a.rq_psn = 0xabcdef, a.sq_psn = 0xfedcba, a.timeout = 14, a.retry_cnt = 7, a.rnr_retry = 6, a.min_rnr_timer = 12;
  a.max_rd_atomic = 8, a.max_dest_rd_atomic = 2;
  a.ah_attr.grh.hop_limit = 33, a.ah_attr.grh.traffic_class = 0x68, a.ah_attr.sl = 3;
  CHECK(!go(qp, IBV_QPS_INIT, a, required(IBV_QPT_RC, IBV_QPS_INIT)));
  struct ibv_qp_attr bad = a;
  struct {
    const char* what;
    int value;
  } out_of_range[] = {{"port", 0}, {"mtu", 6}, {"mtu", 0}, {"dest_rd", 129}, {"rnr timer", 32}, {"sgid", 255}};
  for (unsigned i = 0; i < sizeof out_of_range / sizeof *out_of_range; ++i) {
    bad = a;
    const char* what = out_of_range[i].what;
    const int v = out_of_range[i].value;
    if (!strcmp(what, "port")) bad.ah_attr.port_num = (uint8_t)v;
    if (!strcmp(what, "mtu")) bad.path_mtu = (enum ibv_mtu)v;
    if (!strcmp(what, "dest_rd")) bad.max_dest_rd_atomic = (uint8_t)v;
    if (!strcmp(what, "rnr timer")) bad.min_rnr_timer = (uint8_t)v;
    if (!strcmp(what, "sgid")) bad.ah_attr.grh.sgid_index = (uint8_t)v;
    const int got = go(qp, IBV_QPS_RTR, bad, required(IBV_QPT_RC, IBV_QPS_RTR));
    if (strcmp(what, "rnr timer")) EXPECT(got == (strcmp(what, "sgid") ? EINVAL : ENODATA), "%s %d: %d", what, v, got);
  }
  CHECK(!ibv_destroy_qp(qp));
  qp = make_qp(w, IBV_QPT_RC, cq, cq, NULL);
  CHECK(!go(qp, IBV_QPS_INIT, a, required(IBV_QPT_RC, IBV_QPS_INIT)));
  // Without responder resources there are no reads and atomics yet. The path has its port and no more.
  CHECK(!ibv_query_qp(qp, &q, kAllMasks | IBV_QP_STATE, &init));
  EXPECT(q.qp_access_flags == IBV_ACCESS_REMOTE_WRITE, "access flags %#x in INIT", q.qp_access_flags);
  EXPECT(q.port_num == 1 && q.ah_attr.port_num == 1 && q.ah_attr.is_global && !q.ah_attr.grh.hop_limit, "path in INIT");
  CHECK(!go(qp, IBV_QPS_RTR, a, required(IBV_QPT_RC, IBV_QPS_RTR)));
  CHECK(!go(qp, IBV_QPS_RTS, a, required(IBV_QPT_RC, IBV_QPS_RTS)));
  memset(&q, 0, sizeof q);
  CHECK(!ibv_query_qp(qp, &q, kAllMasks | IBV_QP_STATE, &init));
#define SAME(field) EXPECT(q.field == a.field, #field ": %u, set %u", (unsigned)q.field, (unsigned)a.field)
  SAME(path_mtu);
  SAME(rq_psn);
  SAME(sq_psn);
  SAME(dest_qp_num);
  SAME(qp_access_flags);
  SAME(port_num);
  SAME(timeout);
  SAME(retry_cnt);
  SAME(rnr_retry);
  SAME(min_rnr_timer);
  SAME(max_rd_atomic);
  SAME(max_dest_rd_atomic);
  SAME(pkey_index);
  SAME(ah_attr.is_global);
  SAME(ah_attr.port_num);
  SAME(ah_attr.grh.sgid_index);
  SAME(ah_attr.grh.hop_limit);
  SAME(ah_attr.grh.traffic_class);
  SAME(ah_attr.sl);
  SAME(path_mig_state);
  EXPECT(!memcmp(&q.ah_attr.grh.dgid, &a.ah_attr.grh.dgid, 16), "dgid");
  EXPECT(q.qp_state == IBV_QPS_RTS && q.cur_qp_state == IBV_QPS_RTS, "state %d", q.qp_state);
  EXPECT(init.qp_type == IBV_QPT_RC && init.send_cq == cq && init.recv_cq == cq && !init.srq && !init.sq_sig_all,
         "init");
  EXPECT(init.cap.max_send_wr >= 16 && init.cap.max_recv_wr == 16 && init.cap.max_inline_data >= 32, "caps");
  CHECK(!ibv_destroy_qp(qp));
}

int main(void) {
  struct World w = open_world();
  CHECK(cq = ibv_create_cq(w.context, 64, NULL, NULL, 0));
  matrix(&w, IBV_QPT_RC);
  matrix(&w, IBV_QPT_UC);
  matrix(&w, IBV_QPT_UD);
  values(&w);
  CHECK(!ibv_destroy_cq(cq));
  close_world(&w);
  if (failures) return 1;
  puts("ok");
  return 0;
}
