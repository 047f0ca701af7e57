// Queues at their limits: what posting refuses, receivers that are not ready, completion queues that overflow or are
// resized under traffic, and the send queue error state.
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>

#include "pair.h"

static struct World w;
static char buffer[8192];
static struct ibv_mr* mr;

static struct ibv_send_wr send_of(struct ibv_sge* sge, uint64_t id) {
  *sge = (struct ibv_sge){(uintptr_t)buffer, 8, mr->lkey};
  return (struct ibv_send_wr){.wr_id = id, .sg_list = sge, .num_sge = 1, .opcode = IBV_WR_SEND, .send_flags = IBV_SEND_SIGNALED};
}

static int post_recv(struct ibv_qp* qp, uint64_t id) {
  struct ibv_sge sge = {(uintptr_t)buffer + 4096, 128, mr->lkey};
  struct ibv_recv_wr wr = {.wr_id = id, .sg_list = &sge, .num_sge = 1}, *bad;
  return ibv_post_recv(qp, &wr, &bad);
}

static enum ibv_qp_state state_of(struct ibv_qp* qp) {
  struct ibv_qp_attr a;
  struct ibv_qp_init_attr init;
  CHECK(!ibv_query_qp(qp, &a, IBV_QP_STATE, &init));
  return a.qp_state;
}

struct Link {
  struct ibv_cq* cq[2];
  struct ibv_qp* qp[2];
};

static struct Link make_link(int cqe, uint8_t rnr_retry) {
  struct Link l;
  for (int i = 0; i < 2; ++i) {
    CHECK(l.cq[i] = ibv_create_cq(w.context, cqe, NULL, NULL, 0));
    l.qp[i] = make_qp(&w, IBV_QPT_RC, l.cq[i], l.cq[i], NULL);
  }
  for (int i = 0; i < 2; ++i) {
    struct ibv_qp_attr a = attributes(&w, l.qp[!i]->qp_num);
    a.rnr_retry = rnr_retry;
    for (int s = IBV_QPS_INIT; s <= IBV_QPS_RTS; ++s)
      CHECK(!go(l.qp[i], (enum ibv_qp_state)s, a, required(IBV_QPT_RC, (enum ibv_qp_state)s)));
  }
  return l;
}

static void drop_link(struct Link* l) {
  for (int i = 0; i < 2; ++i) CHECK(!ibv_destroy_qp(l->qp[i]) && !ibv_destroy_cq(l->cq[i]));
}

// libmlx5: ENOMEM for a full queue, for too much inline data and too many send elements; EINVAL for too many receive
// elements and unknown operations. Nothing is posted then.
static void refused(void) {
  struct Link l = make_link(64, 1);
  struct ibv_qp_init_attr init;
  struct ibv_qp_attr a;
  CHECK(!ibv_query_qp(l.qp[0], &a, IBV_QP_CAP, &init));
  EXPECT(init.cap.max_inline_data >= 32 && init.cap.max_send_sge >= 2 && init.cap.max_recv_sge >= 2, "granted too little");
  struct ibv_sge sge, many[64];
  struct ibv_send_wr wr = send_of(&sge, 1), *bad = NULL;
  wr.send_flags |= IBV_SEND_INLINE;
  sge.length = init.cap.max_inline_data + 1;
  EXPECT(ibv_post_send(l.qp[0], &wr, &bad) == ENOMEM && bad == &wr, "inline beyond the limit");
  for (int i = 0; i < 64; ++i) many[i] = (struct ibv_sge){(uintptr_t)buffer, 1, mr->lkey};
  wr = send_of(&sge, 1);
  wr.sg_list = many;
  wr.num_sge = (int)init.cap.max_send_sge + 1;
  EXPECT(ibv_post_send(l.qp[0], &wr, &bad) == ENOMEM && bad == &wr, "send elements beyond the limit");
  struct ibv_recv_wr rr = {.sg_list = many, .num_sge = (int)init.cap.max_recv_sge + 1}, *bad_recv = NULL;
  EXPECT(ibv_post_recv(l.qp[0], &rr, &bad_recv) == EINVAL && bad_recv == &rr, "receive elements beyond the limit");
  wr = send_of(&sge, 1);
  wr.opcode = (enum ibv_wr_opcode)77;
  EXPECT(ibv_post_send(l.qp[0], &wr, &bad) == EINVAL && bad == &wr, "an unknown operation");
  // In a list, what stands before the bad one is posted.
  CHECK(!post_recv(l.qp[1], 5));
  struct ibv_send_wr first = send_of(&sge, 2);
  first.next = &wr;
  EXPECT(ibv_post_send(l.qp[0], &first, &bad) == EINVAL && bad == &wr, "a list with an unknown operation");
  EXPECT(next_wc(l.cq[0]).wr_id == 2 && next_wc(l.cq[1]).wr_id == 5, "the good one of the list");
  struct ibv_wc wc;
  EXPECT(ibv_poll_cq(l.cq[0], 1, &wc) == 0, "something refused completed");
  // Inline up to the limit arrives.
  for (unsigned i = 0; i < init.cap.max_inline_data; ++i) buffer[i] = (char)(i + 1);
  memset(buffer + 4096, 0, 128);
  CHECK(!post_recv(l.qp[1], 6));
  wr = send_of(&sge, 3);
  wr.send_flags |= IBV_SEND_INLINE;
  sge.length = init.cap.max_inline_data < 128 ? init.cap.max_inline_data : 128;
  sge.lkey = 0;  // not looked at
  CHECK(!ibv_post_send(l.qp[0], &wr, &bad));
  EXPECT(next_wc(l.cq[0]).status == IBV_WC_SUCCESS && next_wc(l.cq[1]).byte_len == sge.length, "inline at the limit");
  EXPECT(!memcmp(buffer, buffer + 4096, sge.length), "inline data");
  int posted = 0;
  while (posted < 1000 && !post_recv(l.qp[1], (uint64_t)posted)) ++posted;
  EXPECT(posted == (int)init.cap.max_recv_wr, "%d receives fit, granted are %u", posted, init.cap.max_recv_wr);
  drop_link(&l);
}

// rnr_retry 0: the first RNR NAK ends it. 7: for ever, so a late receive is in time.
static void not_ready(void) {
  for (int retry = 0; retry <= 7; retry += 7) {
    struct Link l = make_link(64, (uint8_t)retry);
    struct ibv_sge sge;
    struct ibv_send_wr wr = send_of(&sge, 1), *bad;
    CHECK(!ibv_post_send(l.qp[0], &wr, &bad));
    struct ibv_wc wc;
    if (retry == 0) {
      wc = next_wc(l.cq[0]);
      EXPECT(wc.status == IBV_WC_RNR_RETRY_EXC_ERR && state_of(l.qp[0]) == IBV_QPS_ERR, "no retry: %s", ibv_wc_status_str(wc.status));
      EXPECT(state_of(l.qp[1]) == IBV_QPS_RTS, "the receiver has not failed");
    } else {
      const double end = now_ms() + 30;
      while (now_ms() < end) EXPECT(ibv_poll_cq(l.cq[0], 1, &wc) == 0, "completed without a receive: %d", wc.status);
      CHECK(!post_recv(l.qp[1], 4));
      EXPECT(next_wc(l.cq[0]).status == IBV_WC_SUCCESS && next_wc(l.cq[1]).wr_id == 4, "retried until a receive came");
    }
    drop_link(&l);
  }
}

// A CQ that overflows is lost: an event for it, and one for each of its QPs.
static void overrun(void) {
  struct Link l = make_link(1, 1);
  const int room = l.cq[0]->cqe;
  struct ibv_sge sge;
  struct ibv_send_wr wr = send_of(&sge, 1), *bad;
  wr.opcode = IBV_WR_RDMA_WRITE;
  wr.wr.rdma.remote_addr = (uintptr_t)buffer;
  wr.wr.rdma.rkey = mr->rkey;
  int result = 0;
  for (int i = 0; i < room + 2 && !result; ++i) result = ibv_post_send(l.qp[0], &wr, &bad);
  struct pollfd p = {w.context->async_fd, POLLIN, 0};
  int seen = 0, fatal = 0;
  while (poll(&p, 1, seen && fatal ? 100 : 3000) == 1) {
    struct ibv_async_event e;
    CHECK(!ibv_get_async_event(w.context, &e));
    seen += e.event_type == IBV_EVENT_CQ_ERR && e.element.cq == l.cq[0];
    fatal += e.event_type == IBV_EVENT_QP_FATAL && e.element.qp == l.qp[0];
    ibv_ack_async_event(&e);
  }
  EXPECT(seen == 1, "%d of IBV_EVENT_CQ_ERR after %d completions into %d", seen, room + 2, room);
  EXPECT(fatal == 1 && state_of(l.qp[0]) == IBV_QPS_ERR, "%d of IBV_EVENT_QP_FATAL, state %d", fatal, state_of(l.qp[0]));
  // What had come before can be read; nothing comes any more.
  struct ibv_wc wc;
  int read = 0;
  while (ibv_poll_cq(l.cq[0], 1, &wc) == 1) ++read;
  EXPECT(read <= room + 1, "%d completions of a queue of %d", read, room);
  EXPECT(ibv_poll_cq(l.cq[0], 1, &wc) == 0, "a completion after the overflow");
  drop_link(&l);
}

// UD: a local error stops the send queue only. Receives go on; SQE -> RTS makes it send again.
static void send_queue_error(void) {
  struct ibv_cq* cq[2];
  struct ibv_qp* qp[2];
  struct ibv_qp_attr attr = attributes(&w, 0);
  for (int i = 0; i < 2; ++i) {
    CHECK(cq[i] = ibv_create_cq(w.context, 64, NULL, NULL, 0));
    qp[i] = make_qp(&w, IBV_QPT_UD, cq[i], cq[i], NULL);
    for (int s = IBV_QPS_INIT; s <= IBV_QPS_RTS; ++s)
      CHECK(!go(qp[i], (enum ibv_qp_state)s, attr, required(IBV_QPT_UD, (enum ibv_qp_state)s)));
    for (uint64_t n = 0; n < 4; ++n) CHECK(!post_recv(qp[i], 100 + n));
  }
  struct ibv_ah* ah = ibv_create_ah(w.pd, &attr.ah_attr);
  CHECK(ah);
  struct ibv_sge sge;
  struct ibv_send_wr wr = send_of(&sge, 1), *bad;
  wr.wr.ud.ah = ah;
  wr.wr.ud.remote_qpn = qp[1]->qp_num;
  wr.wr.ud.remote_qkey = 0x1111;
  sge.lkey ^= 0x55;
  struct ibv_send_wr behind = wr;
  behind.wr_id = 2;
  wr.next = &behind;
  CHECK(!ibv_post_send(qp[0], &wr, &bad));
  EXPECT(next_wc(cq[0]).status == IBV_WC_LOC_PROT_ERR, "wrong lkey");
  struct ibv_wc wc = next_wc(cq[0]);
  EXPECT(wc.status == IBV_WC_WR_FLUSH_ERR && wc.wr_id == 2, "what was behind it: %s", ibv_wc_status_str(wc.status));
  EXPECT(state_of(qp[0]) == IBV_QPS_SQE, "state %d", state_of(qp[0]));
  sge.lkey = mr->lkey;
  wr.next = NULL;
  wr.wr.ud.remote_qpn = qp[0]->qp_num;
  CHECK(!ibv_post_send(qp[1], &wr, &bad));
  EXPECT(next_wc(cq[1]).status == IBV_WC_SUCCESS && next_wc(cq[0]).wr_id == 100, "a receive in SQE");
  struct ibv_qp_attr back = {.qp_state = IBV_QPS_RTS, .cur_qp_state = IBV_QPS_SQE};
  EXPECT(!ibv_modify_qp(qp[0], &back, IBV_QP_STATE | IBV_QP_CUR_STATE), "SQE to RTS: %d", errno);
  wr.wr.ud.remote_qpn = qp[1]->qp_num;
  CHECK(!ibv_post_send(qp[0], &wr, &bad));
  EXPECT(next_wc(cq[0]).status == IBV_WC_SUCCESS && next_wc(cq[1]).wr_id == 100, "sending again");
  CHECK(!ibv_destroy_ah(ah));
  for (int i = 0; i < 2; ++i) CHECK(!ibv_destroy_qp(qp[i]) && !ibv_destroy_cq(cq[i]));
}

static atomic_int received, stop;
static void* receiver(void* arg) {
  struct Link* l = arg;
  struct ibv_wc wc;
  while (!stop) {
    const int n = ibv_poll_cq(l->cq[1], 1, &wc);
    CHECK(n >= 0);
    if (n == 0) continue;
    EXPECT(wc.status == IBV_WC_SUCCESS && wc.wr_id == (uint64_t)received, "receive %d came as %d", received, (int)wc.wr_id);
    CHECK(!post_recv(l->qp[1], (uint64_t)received + 16));
    ++received;
  }
  return NULL;
}

static void resized_under_traffic(void) {
  struct Link l = make_link(64, 7);
  received = stop = 0;
  for (uint64_t i = 0; i < 16; ++i) CHECK(!post_recv(l.qp[1], i));
  pthread_t thread;
  CHECK(!pthread_create(&thread, NULL, receiver, &l));
  struct ibv_sge sge;
  struct ibv_send_wr wr = send_of(&sge, 1), *bad;
  for (int i = 0; i < 3000; ++i) {
    CHECK(!ibv_post_send(l.qp[0], &wr, &bad));
    EXPECT(next_wc(l.cq[0]).status == IBV_WC_SUCCESS, "send %d", i);
    if (i % 100 == 50) CHECK(!ibv_resize_cq(l.cq[1], i % 200 == 50 ? 500 : 40));
  }
  const double end = now_ms() + 5000;
  while (received < 3000 && now_ms() < end) {
  }
  stop = 1;
  CHECK(!pthread_join(thread, NULL));
  EXPECT(received == 3000, "%d of 3000 received", received);
  drop_link(&l);
}

int main(void) {
  w = open_world();
  CHECK(mr = ibv_reg_mr(w.pd, buffer, sizeof buffer, kAllAccess));
  struct ibv_device_attr d;
  CHECK(!ibv_query_device(w.context, &d));
  struct ibv_cq* largest = ibv_create_cq(w.context, d.max_cqe, NULL, NULL, 0);
  EXPECT(largest && largest->cqe >= d.max_cqe, "max_cqe: %d", errno);
  if (largest) {
    EXPECT(ibv_resize_cq(largest, d.max_cqe + 1) == EINVAL, "resize beyond max_cqe");
    CHECK(!ibv_destroy_cq(largest));
  }
  refused();
  not_ready();
  overrun();
  send_queue_error();
  resized_under_traffic();
  if (failures) return 1;
  puts("ok");
  return 0;
}
