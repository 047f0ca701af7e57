// Completion events gathered by count and by time (ibv_modify_cq). Public verbs only.
#include <poll.h>

#include "pair.h"

enum { kPeriodUs = 4000, kShortUs = 2000, kTries = 200 };

static struct World w;
static char buffer[4096];
static struct ibv_mr* mr;
static struct ibv_comp_channel* channel;
static struct ibv_cq *cq, *rcq;
static struct ibv_qp *a, *b;

static void put(int n) {
  for (int i = 0; i < n; ++i) {
    struct ibv_sge sge = {(uintptr_t)buffer, 8, mr->lkey}, into = {(uintptr_t)buffer + 2048, 64, mr->lkey};
    struct ibv_recv_wr recv = {.sg_list = &into, .num_sge = 1}, *bad_recv;
    struct ibv_send_wr wr = {.sg_list = &sge, .num_sge = 1, .opcode = IBV_WR_SEND, .send_flags = IBV_SEND_SIGNALED}, *bad;
    CHECK(!ibv_post_recv(b, &recv, &bad_recv) && !ibv_post_send(a, &wr, &bad));
    CHECK(next_wc(cq).status == IBV_WC_SUCCESS);
  }
}

static void receive(int n) {
  for (int i = 0; i < n; ++i) CHECK(next_wc(rcq).status == IBV_WC_SUCCESS);
}

static int told(int wait_ms) {
  struct pollfd p = {channel->fd, POLLIN, 0};
  return poll(&p, 1, wait_ms) == 1;
}

// Takes the event, asleep until it comes.
static void take(void) {
  struct ibv_cq* fired;
  void* cookie;
  CHECK(!ibv_get_cq_event(channel, &fired, &cookie) && fired == rcq);
  ibv_ack_cq_events(rcq, 1);
}

static int moderate(int count, int period_us) {
  struct ibv_modify_cq_attr attr = {.attr_mask = IBV_CQ_ATTR_MODERATE,
                                    .moderate = {.cq_count = (uint16_t)count, .cq_period = (uint16_t)period_us}};
  return ibv_modify_cq(rcq, &attr);
}

// An event after a pause longer than any period: it comes at once, and the period counts from it. When it was asked for.
static double begin(void) {
  poll(NULL, 0, 10);
  CHECK(!ibv_req_notify_cq(rcq, 0));
  const double since = now_ms();
  put(1);
  take();
  receive(1);
  return since;
}

static void by_default(void) {
  for (int i = 0; i < 3; ++i) {
    CHECK(!ibv_req_notify_cq(rcq, 0));
    EXPECT(!told(0), "an event without a completion");
    put(1);
    EXPECT(told(3000), "no event");
    take();
    put(2);
    EXPECT(!told(0), "an event of a queue that is not armed");
    receive(3);
  }
}

// The machine may be too busy to send four messages in a period: then another try.
static void by_count(void) {
  CHECK(!moderate(4, kPeriodUs));
  int few = 0, enough = 0;
  for (int i = 0; i < kTries && !(few && enough); ++i) {
    const double since = begin();
    CHECK(!ibv_req_notify_cq(rcq, 0));
    put(3);
    const int early = told(0);
    if (now_ms() - since < kPeriodUs * 1e-3) {
      EXPECT(!early, "an event for three");
      few = 1;
    }
    put(1);
    take();
    if (now_ms() - since < kPeriodUs * 1e-3) enough = 1;
    receive(4);
  }
  EXPECT(few && enough, "never soon enough to tell");
}

static void by_period(void) {
  CHECK(!moderate(1000, kShortUs));
  for (int i = 0; i < 3; ++i) {
    const double since = begin();
    CHECK(!ibv_req_notify_cq(rcq, 0));
    put(i + 1);
    take();
    EXPECT(now_ms() - since >= kShortUs * 1e-3, "after %.3f ms", now_ms() - since);
    receive(i + 1);
  }
}

static void armed_afterwards(void) {
  CHECK(!moderate(4, kShortUs));
  double since = begin();
  put(2);
  CHECK(!ibv_req_notify_cq(rcq, 0));
  take();
  EXPECT(now_ms() - since >= kShortUs * 1e-3, "two of four, after %.3f ms", now_ms() - since);
  receive(2);
  int at_once = 0;
  for (int i = 0; i < kTries && !at_once; ++i) {
    since = begin();
    put(4);
    CHECK(!ibv_req_notify_cq(rcq, 0));
    take();
    at_once = now_ms() - since < kShortUs * 1e-3;
    receive(4);
  }
  EXPECT(at_once, "four of four never at once");
}

static void changes(void) {
  CHECK(!moderate(1000, kPeriodUs));
  begin();
  CHECK(!ibv_req_notify_cq(rcq, 0));
  put(1);
  CHECK(!moderate(0, 0));
  EXPECT(told(3000), "what was owed got lost when moderation ended");
  take();
  receive(1);
  // Either of the two being 0: none.
  for (int i = 0; i < 2; ++i) {
    CHECK(!moderate(i ? 1000 : 0, i ? 0 : kPeriodUs));
    by_default();
  }
  CHECK(!moderate(1000, kPeriodUs));
  begin();
  CHECK(!ibv_req_notify_cq(rcq, 0));
  put(1);
  CHECK(!ibv_resize_cq(rcq, 200));
  EXPECT(told(3000), "what was owed got lost when the queue moved");
  take();
  receive(1);
}

static void limits(void) {
  struct ibv_device_attr_ex attr;
  CHECK(!ibv_query_device_ex(w.context, NULL, &attr));
  EXPECT(attr.cq_mod_caps.max_cq_count == 0xffff && attr.cq_mod_caps.max_cq_period == 0xfff, "caps %u %u",
         attr.cq_mod_caps.max_cq_count, attr.cq_mod_caps.max_cq_period);
  EXPECT(moderate(1, 0x1000) == EINVAL, "a period beyond the limit");
  struct ibv_modify_cq_attr none = {.attr_mask = 0};
  EXPECT(ibv_modify_cq(rcq, &none) == EINVAL, "nothing to modify");
}

int main(void) {
  w = open_world();
  CHECK(mr = ibv_reg_mr(w.pd, buffer, sizeof buffer, kAllAccess));
  CHECK(channel = ibv_create_comp_channel(w.context));
  CHECK(cq = ibv_create_cq(w.context, 64, NULL, NULL, 0));
  CHECK(rcq = ibv_create_cq(w.context, 64, NULL, channel, 0));
  a = make_qp(&w, IBV_QPT_RC, cq, cq, NULL);
  b = make_qp(&w, IBV_QPT_RC, rcq, rcq, NULL);
  connect_qp(&w, a, b->qp_num);
  connect_qp(&w, b, a->qp_num);
  limits();
  by_default();
  by_count();
  by_period();
  armed_afterwards();
  changes();
  // A queue that goes while an event is owed takes it along.
  CHECK(!moderate(1000, kPeriodUs));
  begin();
  CHECK(!ibv_req_notify_cq(rcq, 0));
  put(1);
  CHECK(!ibv_destroy_qp(a) && !ibv_destroy_qp(b) && !ibv_destroy_cq(rcq) && !ibv_destroy_cq(cq));
  EXPECT(!told(20), "an event of a queue that is gone");
  CHECK(!ibv_destroy_comp_channel(channel) && !ibv_dereg_mr(mr));
  close_world(&w);
  if (failures) return 1;
  puts("ok");
  return 0;
}
