// Asynchronous events, SRQs, unreliable datagrams with multicast, solicited events, CQ resize and memory windows.
#include <poll.h>

#include "pair.h"

static struct World w;
static char buffer[8192];
static struct ibv_mr* mr;

static int event(enum ibv_event_type wanted, struct ibv_async_event* out) {
  struct pollfd p = {w.context->async_fd, POLLIN, 0};
  for (;;) {
    if (poll(&p, 1, 3000) <= 0) return 0;
    CHECK(!ibv_get_async_event(w.context, out));
    const int found = out->event_type == wanted;
    if (!found) fprintf(stderr, "(also: %s)\n", ibv_event_type_str(out->event_type));
    ibv_ack_async_event(out);
    if (found) return 1;
  }
}

static int quiet(void) {
  struct pollfd p = {w.context->async_fd, POLLIN, 0};
  return poll(&p, 1, 50) == 0;
}

static void post_recv(struct ibv_qp* qp, struct ibv_srq* srq, uint64_t id, uint32_t length) {
  struct ibv_sge sge = {(uintptr_t)buffer + 4096, length, mr->lkey};
  struct ibv_recv_wr wr = {.wr_id = id, .sg_list = &sge, .num_sge = 1}, *bad;
  CHECK(!(srq ? ibv_post_srq_recv(srq, &wr, &bad) : ibv_post_recv(qp, &wr, &bad)));
}

static void send_to(struct ibv_qp* qp, uint32_t length, int flags, struct ibv_ah* ah, uint32_t qpn, uint32_t qkey) {
  struct ibv_sge sge = {(uintptr_t)buffer, length, mr->lkey};
  struct ibv_send_wr wr = {.wr_id = 9,
                           .sg_list = &sge,
                           .num_sge = 1,
                           .opcode = IBV_WR_SEND,
                           .send_flags = IBV_SEND_SIGNALED | (unsigned)flags},
                     *bad;
  if (ah) wr.wr.ud.ah = ah, wr.wr.ud.remote_qpn = qpn, wr.wr.ud.remote_qkey = qkey;
  CHECK(!ibv_post_send(qp, &wr, &bad));
}

static void shared_receive(void) {
  struct ibv_srq_init_attr init = {.attr = {.max_wr = 16, .max_sge = 1}};
  struct ibv_srq* srq = ibv_create_srq(w.pd, &init);
  struct ibv_cq* cq = ibv_create_cq(w.context, 64, NULL, NULL, 0);
  CHECK(srq && cq);
  struct ibv_qp* a = make_qp(&w, IBV_QPT_RC, cq, cq, NULL);
  struct ibv_cq* rcq = ibv_create_cq(w.context, 64, NULL, NULL, 0);
  struct ibv_qp* b = make_qp(&w, IBV_QPT_RC, rcq, rcq, srq);
  connect_qp(&w, a, b->qp_num);
  connect_qp(&w, b, a->qp_num);
  for (uint64_t i = 0; i < 6; ++i) post_recv(NULL, srq, i, 64);
  struct ibv_srq_attr limit = {.srq_limit = 4};
  CHECK(!ibv_modify_srq(srq, &limit, IBV_SRQ_LIMIT));
  struct ibv_async_event e;
  for (uint64_t i = 0; i < 3; ++i) {
    send_to(a, 64, 0, NULL, 0, 0);
    CHECK(next_wc(cq).status == IBV_WC_SUCCESS);
    struct ibv_wc wc = next_wc(rcq);
    EXPECT(wc.status == IBV_WC_SUCCESS && wc.wr_id == i && wc.qp_num == b->qp_num && wc.byte_len == 64, "srq wc");
    if (i == 1) EXPECT(quiet(), "limit event while 4 are left");
  }
  EXPECT(event(IBV_EVENT_SRQ_LIMIT_REACHED, &e) && e.element.srq == srq, "no limit event");
  CHECK(!ibv_query_srq(srq, &limit));
  EXPECT(limit.srq_limit == 0, "limit stays %u", limit.srq_limit);
  CHECK(!go(b, IBV_QPS_ERR, attributes(&w, 0), 0));
  EXPECT(event(IBV_EVENT_QP_LAST_WQE_REACHED, &e) && e.element.qp == b, "no last WQE event");
  struct ibv_wc wc;
  EXPECT(ibv_poll_cq(rcq, 1, &wc) == 0, "the SRQ's own WQEs were flushed");
  CHECK(!ibv_destroy_qp(a) && !ibv_destroy_qp(b) && !ibv_destroy_srq(srq) && !ibv_destroy_cq(cq) &&
        !ibv_destroy_cq(rcq));
}

static void errors(void) {
  struct ibv_cq* cq = ibv_create_cq(w.context, 64, NULL, NULL, 0);
  struct ibv_async_event e;
  for (int invalid = 0; invalid < 2; ++invalid) {
    struct ibv_qp* a = make_qp(&w, IBV_QPT_RC, cq, cq, NULL);
    struct ibv_qp* b = make_qp(&w, IBV_QPT_RC, cq, cq, NULL);
    connect_qp(&w, a, b->qp_num);
    connect_qp(&w, b, a->qp_num);
    if (invalid) {
      struct ibv_qp_attr none = {0};
      CHECK(!ibv_modify_qp(b, &none, IBV_QP_ACCESS_FLAGS));
    }
    struct ibv_sge sge = {(uintptr_t)buffer, 8, mr->lkey};
    struct ibv_send_wr wr = {.sg_list = &sge,
                             .num_sge = 1,
                             .opcode = IBV_WR_RDMA_WRITE,
                             .send_flags = IBV_SEND_SIGNALED,
                             .wr.rdma = {(uintptr_t)buffer, mr->rkey ^ (invalid ? 0 : 0x77)}},
                       *bad;
    CHECK(!ibv_post_send(a, &wr, &bad));
    EXPECT(next_wc(cq).status == (invalid ? IBV_WC_REM_INV_REQ_ERR : IBV_WC_REM_ACCESS_ERR), "status %d", invalid);
    EXPECT(event(invalid ? IBV_EVENT_QP_REQ_ERR : IBV_EVENT_QP_ACCESS_ERR, &e) && e.element.qp == b, "no event %d",
           invalid);
    CHECK(!ibv_destroy_qp(a) && !ibv_destroy_qp(b));
  }
  {
    // A receive that is too small: its completion tells, no event does.
    struct ibv_qp* a = make_qp(&w, IBV_QPT_RC, cq, cq, NULL);
    struct ibv_qp* b = make_qp(&w, IBV_QPT_RC, cq, cq, NULL);
    connect_qp(&w, a, b->qp_num);
    connect_qp(&w, b, a->qp_num);
    post_recv(b, NULL, 1, 4);
    send_to(a, 8, 0, NULL, 0, 0);
    EXPECT(next_wc(cq).status != IBV_WC_SUCCESS && next_wc(cq).status != IBV_WC_SUCCESS, "too small a receive");
    EXPECT(quiet(), "an event besides the completion");
    CHECK(!ibv_destroy_qp(a) && !ibv_destroy_qp(b));
  }
  // Communication established: a message arrives in RTR.
  struct ibv_qp* a = make_qp(&w, IBV_QPT_RC, cq, cq, NULL);
  struct ibv_qp* b = make_qp(&w, IBV_QPT_RC, cq, cq, NULL);
  connect_qp(&w, a, b->qp_num);
  struct ibv_qp_attr attr = attributes(&w, a->qp_num);
  CHECK(!go(b, IBV_QPS_INIT, attr, required(IBV_QPT_RC, IBV_QPS_INIT)) &&
        !go(b, IBV_QPS_RTR, attr, required(IBV_QPT_RC, IBV_QPS_RTR)));
  post_recv(b, NULL, 1, 64);
  send_to(a, 8, 0, NULL, 0, 0);
  EXPECT(event(IBV_EVENT_COMM_EST, &e) && e.element.qp == b, "no COMM_EST");
  CHECK(!ibv_destroy_qp(a) && !ibv_destroy_qp(b) && !ibv_destroy_cq(cq));
}

static void datagrams(void) {
  struct ibv_cq* cq[3];
  struct ibv_qp* qp[3];
  struct ibv_qp_attr attr = attributes(&w, 0);
  for (int i = 0; i < 3; ++i) {
    CHECK(cq[i] = ibv_create_cq(w.context, 64, NULL, NULL, 0));
    qp[i] = make_qp(&w, IBV_QPT_UD, cq[i], cq[i], NULL);
    for (int s = IBV_QPS_INIT; s <= IBV_QPS_RTS; ++s)
      CHECK(!go(qp[i], (enum ibv_qp_state)s, attr, required(IBV_QPT_UD, (enum ibv_qp_state)s)));
    for (uint64_t n = 0; n < 4; ++n) post_recv(qp[i], NULL, n, 128);
  }
  struct ibv_ah* ah = ibv_create_ah(w.pd, &attr.ah_attr);
  CHECK(ah);
  send_to(qp[0], 32, 0, ah, qp[1]->qp_num, 0x2222);
  CHECK(next_wc(cq[0]).status == IBV_WC_SUCCESS);
  struct ibv_wc wc;
  EXPECT(ibv_poll_cq(cq[1], 1, &wc) == 0, "a wrong Q_Key was let in");
  memset(buffer + 4096, 0, 128);
  send_to(qp[0], 32, 0, ah, qp[1]->qp_num, 0x1111);
  CHECK(next_wc(cq[0]).status == IBV_WC_SUCCESS);
  wc = next_wc(cq[1]);
  EXPECT(wc.status == IBV_WC_SUCCESS && wc.byte_len == 72 && (wc.wc_flags & IBV_WC_GRH) && wc.src_qp == qp[0]->qp_num,
         "UD wc");
  struct ibv_grh* grh = (struct ibv_grh*)(buffer + 4096);
  EXPECT(!memcmp(&grh->dgid, &w.gid, 16) && !memcmp(&grh->sgid, &w.gid, 16), "GRH");
  struct ibv_ah* back = ibv_create_ah_from_wc(w.pd, &wc, grh, 1);
  EXPECT(back, "AH from wc: %d", errno);
  if (back) {
    send_to(qp[1], 16, 0, back, wc.src_qp, 0x1111);
    CHECK(next_wc(cq[1]).status == IBV_WC_SUCCESS && next_wc(cq[0]).byte_len == 56);
    CHECK(!ibv_destroy_ah(back));
  }
  // Two receivers in a group besides the sender; afterwards one of them leaves.
  union ibv_gid group = {.raw = {0xff, 0x0e, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 239, 1, 2, 3}};
  for (int i = 1; i < 3; ++i) CHECK(!ibv_attach_mcast(qp[i], &group, 0));
  attr.ah_attr.grh.dgid = group;
  struct ibv_ah* all = ibv_create_ah(w.pd, &attr.ah_attr);
  CHECK(all);
  send_to(qp[0], 24, 0, all, 0xffffff, 0x1111);
  CHECK(next_wc(cq[0]).status == IBV_WC_SUCCESS);
  for (int i = 1; i < 3; ++i) EXPECT(next_wc(cq[i]).byte_len == 64, "group member %d", i);
  CHECK(!ibv_detach_mcast(qp[2], &group, 0));
  EXPECT(ibv_detach_mcast(qp[2], &group, 0) == EINVAL, "detached twice");
  send_to(qp[0], 24, 0, all, 0xffffff, 0x1111);
  CHECK(next_wc(cq[0]).status == IBV_WC_SUCCESS && next_wc(cq[1]).byte_len == 64);
  EXPECT(ibv_poll_cq(cq[2], 1, &wc) == 0, "a message after leaving the group");
  CHECK(!ibv_detach_mcast(qp[1], &group, 0) && !ibv_destroy_ah(all) && !ibv_destroy_ah(ah));
  for (int i = 0; i < 3; ++i) CHECK(!ibv_destroy_qp(qp[i]) && !ibv_destroy_cq(cq[i]));
}

static void solicited_and_resize(void) {
  struct ibv_comp_channel* channel = ibv_create_comp_channel(w.context);
  struct ibv_cq* cq = ibv_create_cq(w.context, 8, NULL, NULL, 0);
  struct ibv_cq* rcq = ibv_create_cq(w.context, 8, NULL, channel, 0);
  struct ibv_qp* a = make_qp(&w, IBV_QPT_RC, cq, cq, NULL);
  struct ibv_qp* b = make_qp(&w, IBV_QPT_RC, rcq, rcq, NULL);
  connect_qp(&w, a, b->qp_num);
  connect_qp(&w, b, a->qp_num);
  for (uint64_t i = 0; i < 8; ++i) post_recv(b, NULL, i, 64);
  CHECK(!ibv_req_notify_cq(rcq, 1));
  struct pollfd p = {channel->fd, POLLIN, 0};
  send_to(a, 8, 0, NULL, 0, 0);
  EXPECT(poll(&p, 1, 50) == 0, "an event without solicitation");
  send_to(a, 8, IBV_SEND_SOLICITED, NULL, 0, 0);
  EXPECT(poll(&p, 1, 3000) == 1, "no solicited event");
  struct ibv_cq* fired;
  void* cookie;
  CHECK(!ibv_get_cq_event(channel, &fired, &cookie) && fired == rcq);
  ibv_ack_cq_events(rcq, 1);
  // Who waits for the next completion is not to be put off by a wish for a solicited one.
  CHECK(!ibv_req_notify_cq(rcq, 0) && !ibv_req_notify_cq(rcq, 1));
  send_to(a, 8, 0, NULL, 0, 0);
  EXPECT(poll(&p, 1, 3000) == 1, "no event for the next completion");
  CHECK(!ibv_get_cq_event(channel, &fired, &cookie) && fired == rcq);
  ibv_ack_cq_events(rcq, 1);
  for (int i = 0; i < 3; ++i) send_to(a, 8, 0, NULL, 0, 0);
  CHECK(!ibv_resize_cq(rcq, 100) && rcq->cqe >= 100);
  for (int i = 0; i < 2; ++i) send_to(a, 8, 0, NULL, 0, 0);
  for (uint64_t i = 0; i < 8; ++i) {
    struct ibv_wc wc = next_wc(rcq);
    EXPECT(wc.status == IBV_WC_SUCCESS && wc.wr_id == i, "resized: %d as %d", (int)i, (int)wc.wr_id);
  }
  for (int i = 0; i < 8; ++i) CHECK(next_wc(cq).status == IBV_WC_SUCCESS);
  CHECK(!ibv_destroy_qp(a) && !ibv_destroy_qp(b) && !ibv_destroy_cq(cq) && !ibv_destroy_cq(rcq) &&
        !ibv_destroy_comp_channel(channel));
}

static enum ibv_wc_status write_by(struct ibv_qp* qp, struct ibv_cq* cq, uint32_t rkey) {
  struct ibv_sge sge = {(uintptr_t)buffer, 8, mr->lkey};
  struct ibv_send_wr wr = {.sg_list = &sge,
                           .num_sge = 1,
                           .opcode = IBV_WR_RDMA_WRITE,
                           .send_flags = IBV_SEND_SIGNALED,
                           .wr.rdma = {(uintptr_t)buffer + 4096, rkey}},
                     *bad;
  CHECK(!ibv_post_send(qp, &wr, &bad));
  return next_wc(cq).status;
}

static void windows(void) {
  struct ibv_mr* bindable = ibv_reg_mr(w.pd, buffer, sizeof buffer, kAllAccess | IBV_ACCESS_MW_BIND);
  CHECK(bindable);
  for (int type = IBV_MW_TYPE_1; type <= IBV_MW_TYPE_2; ++type) {
    struct ibv_cq* cq = ibv_create_cq(w.context, 16, NULL, NULL, 0);
    struct ibv_cq* rcq = ibv_create_cq(w.context, 16, NULL, NULL, 0);
    struct ibv_qp* a = make_qp(&w, IBV_QPT_RC, cq, cq, NULL);
    struct ibv_qp* b = make_qp(&w, IBV_QPT_RC, rcq, rcq, NULL);
    connect_qp(&w, a, b->qp_num);
    connect_qp(&w, b, a->qp_num);
    struct ibv_mw* mw = ibv_alloc_mw(w.pd, (enum ibv_mw_type)type);
    CHECK(mw);
    const struct ibv_mw_bind_info info = {bindable, (uintptr_t)buffer + 4096, 64, IBV_ACCESS_REMOTE_WRITE};
    uint32_t rkey;
    if (type == IBV_MW_TYPE_1) {
      struct ibv_mw_bind bind = {.send_flags = IBV_SEND_SIGNALED, .bind_info = info};
      CHECK(!ibv_bind_mw(b, mw, &bind));
      rkey = mw->rkey;
    } else {
      rkey = ibv_inc_rkey(mw->rkey);
      struct ibv_send_wr wr = {.opcode = IBV_WR_BIND_MW, .send_flags = IBV_SEND_SIGNALED, .bind_mw = {mw, rkey, info}},
                         *bad;
      CHECK(!ibv_post_send(b, &wr, &bad));
    }
    struct ibv_wc wc = next_wc(rcq);
    EXPECT(wc.status == IBV_WC_SUCCESS && wc.opcode == IBV_WC_BIND_MW, "bind type %d: %s", type,
           ibv_wc_status_str(wc.status));
    EXPECT(write_by(a, cq, rkey) == IBV_WC_SUCCESS, "write through window type %d", type);
    if (type == IBV_MW_TYPE_2) {
      struct ibv_send_wr wr = {.opcode = IBV_WR_LOCAL_INV, .send_flags = IBV_SEND_SIGNALED, .invalidate_rkey = rkey},
                         *bad;
      CHECK(!ibv_post_send(b, &wr, &bad) && next_wc(rcq).status == IBV_WC_SUCCESS);
      // Free again: it can be bound anew, and only then.
      mw->rkey = rkey;
      const uint32_t second = ibv_inc_rkey(rkey);
      struct ibv_send_wr again = {.opcode = IBV_WR_BIND_MW, .send_flags = IBV_SEND_SIGNALED, .bind_mw = {mw, second, info}};
      CHECK(!ibv_post_send(b, &again, &bad));
      EXPECT(next_wc(rcq).status == IBV_WC_SUCCESS, "bound after an invalidation");
      EXPECT(write_by(a, cq, second) == IBV_WC_SUCCESS, "write through the window bound anew");
      // It is for the QP that bound it alone: not for others of its domain, and not theirs to invalidate.
      for (int take = 0; take < 2; ++take) {
        struct ibv_cq* other_cq = ibv_create_cq(w.context, 16, NULL, NULL, 0);
        struct ibv_qp* c = make_qp(&w, IBV_QPT_RC, other_cq, other_cq, NULL);
        struct ibv_qp* d = make_qp(&w, IBV_QPT_RC, other_cq, other_cq, NULL);
        connect_qp(&w, c, d->qp_num);
        connect_qp(&w, d, c->qp_num);
        if (take == 0) {
          EXPECT(write_by(c, other_cq, second) == IBV_WC_REM_ACCESS_ERR, "write through another QP's window");
        } else {
          struct ibv_send_wr foreign = {.opcode = IBV_WR_LOCAL_INV, .send_flags = IBV_SEND_SIGNALED, .invalidate_rkey = second};
          CHECK(!ibv_post_send(d, &foreign, &bad));
          EXPECT(next_wc(other_cq).status == IBV_WC_MW_BIND_ERR, "another QP's window invalidated");
        }
        CHECK(!ibv_destroy_qp(c) && !ibv_destroy_qp(d) && !ibv_destroy_cq(other_cq));
      }
      wr.invalidate_rkey = second;
      CHECK(!ibv_post_send(b, &wr, &bad) && next_wc(rcq).status == IBV_WC_SUCCESS);
      EXPECT(write_by(a, cq, second) == IBV_WC_REM_ACCESS_ERR, "write through an invalidated window");
    } else {
      CHECK(!ibv_dealloc_mw(mw));
      mw = NULL;
      EXPECT(write_by(a, cq, rkey) == IBV_WC_REM_ACCESS_ERR, "write through a freed window");
    }
    if (mw) CHECK(!ibv_dealloc_mw(mw));
    CHECK(!ibv_destroy_qp(a) && !ibv_destroy_qp(b) && !ibv_destroy_cq(cq) && !ibv_destroy_cq(rcq));
  }
  CHECK(!ibv_dereg_mr(bindable));
}

int main(void) {
  w = open_world();
  CHECK(mr = ibv_reg_mr(w.pd, buffer, sizeof buffer, kAllAccess));
  shared_receive();
  errors();
  datagrams();
  solicited_and_resize();
  windows();
  if (failures) return 1;
  puts("ok");
  return 0;
}
