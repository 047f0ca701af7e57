// XRC: domains shared by file, receive queues with a completion queue of their own, initiators and targets, further handles
// of a target, events, and the errors of each.
#include <fcntl.h>
#include <poll.h>
#include <sys/wait.h>
#include <unistd.h>

#include "pair.h"

static struct World w;
static char buffer[8192];
static struct ibv_mr* mr;

static struct ibv_xrcd* open_domain(struct ibv_context* context, int fd, int flags) {
  struct ibv_xrcd_init_attr init = {
      .comp_mask = IBV_XRCD_INIT_ATTR_FD | IBV_XRCD_INIT_ATTR_OFLAGS, .fd = fd, .oflags = flags};
  errno = 0;
  return ibv_open_xrcd(context, &init);
}

static int shared_file(void) {
  char name[] = "/tmp/verbena-xrc-XXXXXX";
  const int fd = mkstemp(name);
  CHECK(fd >= 0 && !unlink(name));
  return fd;
}

static struct ibv_srq* make_srq(struct World* of, struct ibv_xrcd* xrcd, struct ibv_cq* cq) {
  struct ibv_srq_init_attr_ex init = {
      .attr = {.max_wr = 16, .max_sge = 1},
      .comp_mask = IBV_SRQ_INIT_ATTR_TYPE | IBV_SRQ_INIT_ATTR_PD | IBV_SRQ_INIT_ATTR_XRCD | IBV_SRQ_INIT_ATTR_CQ,
      .srq_type = IBV_SRQT_XRC,
      .pd = of->pd,
      .xrcd = xrcd,
      .cq = cq};
  errno = 0;
  return ibv_create_srq_ex(of->context, &init);
}

static struct ibv_qp* make_target(struct ibv_context* context, struct ibv_xrcd* xrcd) {
  struct ibv_qp_init_attr_ex init = {.qp_type = IBV_QPT_XRC_RECV, .comp_mask = IBV_QP_INIT_ATTR_XRCD, .xrcd = xrcd};
  errno = 0;
  return ibv_create_qp_ex(context, &init);
}

static struct ibv_qp* make_initiator(struct World* of, struct ibv_cq* cq) {
  struct ibv_qp_init_attr_ex init = {.send_cq = cq,
                                     .cap = {.max_send_wr = 16, .max_send_sge = 2, .max_inline_data = 32},
                                     .qp_type = IBV_QPT_XRC_SEND,
                                     .comp_mask = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_SEND_OPS_FLAGS,
                                     .pd = of->pd,
                                     .send_ops_flags = IBV_QP_EX_WITH_SEND | IBV_QP_EX_WITH_ATOMIC_FETCH_AND_ADD};
  struct ibv_qp* qp = ibv_create_qp_ex(of->context, &init);
  CHECK(qp);
  return qp;
}

static void receive(struct ibv_srq* srq, uint64_t id, uint32_t length) {
  struct ibv_sge sge = {(uintptr_t)buffer + 4096, length, mr->lkey};
  struct ibv_recv_wr wr = {.wr_id = id, .sg_list = &sge, .num_sge = 1}, *bad;
  CHECK(!ibv_post_srq_recv(srq, &wr, &bad));
}

static void send_to(struct ibv_qp* qp, uint32_t srqn, enum ibv_wr_opcode opcode, uint32_t length) {
  struct ibv_sge sge = {(uintptr_t)buffer, length, mr->lkey};
  struct ibv_send_wr wr = {
      .wr_id = 9, .sg_list = &sge, .num_sge = 1, .opcode = opcode, .send_flags = IBV_SEND_SIGNALED}, *bad;
  wr.qp_type.xrc.remote_srqn = srqn;
  wr.wr.atomic.remote_addr = (uintptr_t)buffer + 1024;
  wr.wr.atomic.compare_add = 3;
  wr.wr.atomic.rkey = mr->rkey;
  if (opcode == IBV_WR_RDMA_WRITE_WITH_IMM || opcode == IBV_WR_RDMA_READ) {
    wr.imm_data = htonl(77);
    wr.wr.rdma.remote_addr = (uintptr_t)buffer + 2048;
    wr.wr.rdma.rkey = mr->rkey;
  }
  CHECK(!ibv_post_send(qp, &wr, &bad));
}

static struct ibv_wc completion(struct ibv_cq* cq) {
  struct ibv_wc wc;
  for (int i = 0; i < 30000; ++i) {
    const int n = ibv_poll_cq(cq, 1, &wc);
    CHECK(n >= 0);
    if (n) return wc;
    usleep(100);
  }
  CHECK(!"a completion came");
  return wc;
}

static int event(struct ibv_context* context, enum ibv_event_type wanted, void* element) {
  struct pollfd p = {context->async_fd, POLLIN, 0};
  struct ibv_async_event e;
  while (poll(&p, 1, 3000) > 0) {
    CHECK(!ibv_get_async_event(context, &e));
    const int found = e.event_type == wanted && (void*)e.element.qp == element;
    ibv_ack_async_event(&e);
    if (found) return 1;
  }
  return 0;
}

static void domains(void) {
  const int fd = shared_file();
  EXPECT(!open_domain(w.context, 999, O_CREAT) && errno == EBADF, "a descriptor that is none: %d", errno);
  EXPECT(!open_domain(w.context, fd, 0) && errno == EAGAIN, "no domain yet: %d", errno);
  struct ibv_xrcd* first = open_domain(w.context, fd, O_CREAT);
  CHECK(first);
  EXPECT(!open_domain(w.context, fd, O_CREAT | O_EXCL) && errno == EINVAL, "it is there already: %d", errno);
  struct World other = open_world();
  struct ibv_xrcd* second = open_domain(other.context, fd, 0);
  struct ibv_xrcd* alone = open_domain(other.context, -1, 0);
  CHECK(second && alone);
  struct ibv_xrcd_init_attr brief = {.comp_mask = IBV_XRCD_INIT_ATTR_FD, .fd = -1};
  EXPECT(!ibv_open_xrcd(w.context, &brief) && errno == EINVAL, "flags are needed: %d", errno);
  CHECK(!ibv_close_xrcd(first));
  CHECK((first = open_domain(w.context, fd, 0)));  // the other context holds it
  CHECK(!ibv_close_xrcd(first) && !ibv_close_xrcd(second) && !ibv_close_xrcd(alone));
  EXPECT(!open_domain(w.context, fd, 0) && errno == EAGAIN, "it went with its last holder: %d", errno);
  // Another process that has the file has the domain.
  CHECK((first = open_domain(w.context, fd, O_CREAT)));
  close_world(&other);
  int status = 0;
  const pid_t child = fork();
  if (!child) {
    struct World own = open_world();
    _exit(open_domain(own.context, fd, 0) && !open_domain(own.context, fd, O_EXCL) && errno == EINVAL ? 0 : 1);
  }
  CHECK(waitpid(child, &status, 0) == child);
  EXPECT(WIFEXITED(status) && WEXITSTATUS(status) == 0, "child: %#x", status);
  CHECK(!ibv_close_xrcd(first));
  close(fd);
}

static void queues(void) {
  const int fd = shared_file();
  struct ibv_xrcd* xrcd = open_domain(w.context, fd, O_CREAT);
  struct ibv_cq* cq = ibv_create_cq(w.context, 16, NULL, NULL, 0);
  CHECK(xrcd && cq);
  struct ibv_srq* srq = make_srq(&w, xrcd, cq);
  uint32_t srqn = 0;
  CHECK(srq && !ibv_get_srq_num(srq, &srqn) && srqn);
  EXPECT(ibv_close_xrcd(xrcd) == EBUSY, "a queue stands on it");
  EXPECT(ibv_destroy_cq(cq) == EBUSY, "a queue completes into it");
  struct ibv_srq_init_attr_ex bare = {.attr = {.max_wr = 1, .max_sge = 1},
                                      .comp_mask = IBV_SRQ_INIT_ATTR_TYPE | IBV_SRQ_INIT_ATTR_PD,
                                      .srq_type = IBV_SRQT_XRC,
                                      .pd = w.pd};
  EXPECT(!ibv_create_srq_ex(w.context, &bare) && errno == EINVAL, "neither domain nor CQ: %d", errno);
  struct ibv_qp_init_attr rc = {.send_cq = cq, .recv_cq = cq, .srq = srq, .qp_type = IBV_QPT_RC,
                                .cap = {.max_send_wr = 1, .max_send_sge = 1}};
  EXPECT(!ibv_create_qp(w.pd, &rc) && errno == EINVAL, "RC over an XRC receive queue: %d", errno);
  struct ibv_qp* target = make_target(w.context, xrcd);
  CHECK(target);
  struct ibv_qp_init_attr_ex lost = {.qp_type = IBV_QPT_XRC_RECV};
  EXPECT(!ibv_create_qp_ex(w.context, &lost) && errno == EINVAL, "a target without a domain: %d", errno);
  struct ibv_sge sge = {(uintptr_t)buffer, 8, mr->lkey};
  struct ibv_send_wr wr = {.sg_list = &sge, .num_sge = 1, .opcode = IBV_WR_SEND}, *bad = NULL;
  EXPECT(ibv_post_send(target, &wr, &bad) == ENOMEM && bad == &wr, "a target sends nothing");

  // A further handle, from another context.
  struct World other = open_world();
  struct ibv_xrcd *same = open_domain(other.context, fd, 0), *foreign = open_domain(other.context, -1, 0);
  struct ibv_qp_open_attr open = {.comp_mask = IBV_QP_OPEN_ATTR_NUM | IBV_QP_OPEN_ATTR_XRCD | IBV_QP_OPEN_ATTR_TYPE,
                                  .qp_num = target->qp_num, .xrcd = foreign, .qp_type = IBV_QPT_XRC_RECV};
  EXPECT(!ibv_open_qp(other.context, &open) && errno == EINVAL, "another domain: %d", errno);
  open.xrcd = same;
  open.qp_num ^= 1;
  EXPECT(!ibv_open_qp(other.context, &open) && errno == EINVAL, "another number: %d", errno);
  open.qp_num = target->qp_num;
  open.qp_type = IBV_QPT_XRC_SEND;
  EXPECT(!ibv_open_qp(other.context, &open) && errno == EINVAL, "another type: %d", errno);
  open.qp_type = IBV_QPT_XRC_RECV;
  struct ibv_qp* opened = ibv_open_qp(other.context, &open);
  CHECK(opened && opened->qp_num == target->qp_num);

  struct ibv_cq* send_cq = ibv_create_cq(w.context, 16, NULL, NULL, 0);
  struct ibv_qp* initiator = make_initiator(&w, send_cq);
  // One handle's changes are seen through the other.
  struct ibv_qp_attr attr = attributes(&w, initiator->qp_num);
  CHECK(!go(target, IBV_QPS_INIT, attr, required(IBV_QPT_XRC_RECV, IBV_QPS_INIT)));
  CHECK(!go(opened, IBV_QPS_RTR, attr, required(IBV_QPT_XRC_RECV, IBV_QPS_RTR)));
  CHECK(!go(target, IBV_QPS_RTS, attr, required(IBV_QPT_XRC_RECV, IBV_QPS_RTS)));
  struct ibv_qp_init_attr init;
  CHECK(!ibv_query_qp(opened, &attr, IBV_QP_STATE | IBV_QP_DEST_QPN, &init));
  EXPECT(attr.qp_state == IBV_QPS_RTS && attr.dest_qp_num == initiator->qp_num, "state %d", attr.qp_state);
  attr = attributes(&w, target->qp_num);
  for (int s = IBV_QPS_INIT; s <= IBV_QPS_RTS; ++s)
    CHECK(!go(initiator, (enum ibv_qp_state)s, attr, required(IBV_QPT_XRC_SEND, (enum ibv_qp_state)s)));

  // Traffic, by both ways to post, and the limit.
  for (uint64_t i = 0; i < 6; ++i) receive(srq, i, 64);
  struct ibv_srq_attr limit = {.srq_limit = 4}, now;
  CHECK(!ibv_modify_srq(srq, &limit, IBV_SRQ_LIMIT) && !ibv_query_srq(srq, &now));
  EXPECT(now.srq_limit == 4 && now.max_wr >= 16, "limit %u", now.srq_limit);
  strcpy(buffer, "by number");
  send_to(initiator, srqn, IBV_WR_SEND, 32);
  struct ibv_wc wc = completion(send_cq);
  EXPECT(wc.status == IBV_WC_SUCCESS && wc.opcode == IBV_WC_SEND, "%s", ibv_wc_status_str(wc.status));
  wc = completion(cq);
  EXPECT(wc.status == IBV_WC_SUCCESS && wc.wr_id == 0 && wc.byte_len == 32 && wc.qp_num == target->qp_num,
         "%s, id %lu, %u bytes", ibv_wc_status_str(wc.status), (unsigned long)wc.wr_id, wc.byte_len);
  EXPECT(!strcmp(buffer + 4096, "by number"), "the data");
  struct ibv_qp_ex* ex = ibv_qp_to_qp_ex(initiator);
  CHECK(ex);
  ibv_wr_start(ex);
  ex->wr_id = 5;
  ex->wr_flags = IBV_SEND_SIGNALED | IBV_SEND_INLINE;
  ibv_wr_send(ex);
  ibv_wr_set_xrc_srqn(ex, srqn);
  ibv_wr_set_inline_data(ex, (void*)"builders", 9);
  ex->wr_flags = IBV_SEND_SIGNALED;
  ibv_wr_atomic_fetch_add(ex, mr->rkey, (uintptr_t)buffer + 1024, 4);
  ibv_wr_set_sge(ex, mr->lkey, (uintptr_t)buffer, 8);
  ibv_wr_set_xrc_srqn(ex, srqn);
  CHECK(!ibv_wr_complete(ex));
  EXPECT((wc = completion(send_cq)).status == IBV_WC_SUCCESS, "%s", ibv_wc_status_str(wc.status));
  EXPECT((wc = completion(send_cq)).status == IBV_WC_SUCCESS && wc.opcode == IBV_WC_FETCH_ADD, "%s", ibv_wc_status_str(wc.status));
  EXPECT(completion(cq).wr_id == 1 && !strcmp(buffer + 4096, "builders"), "the data");
  send_to(initiator, srqn, IBV_WR_ATOMIC_FETCH_AND_ADD, 8);
  EXPECT((wc = completion(send_cq)).status == IBV_WC_SUCCESS, "%s", ibv_wc_status_str(wc.status));
  uint64_t sum;
  memcpy(&sum, buffer + 1024, sizeof sum);
  EXPECT(sum == 7, "sum %lu", (unsigned long)sum);
  send_to(initiator, srqn, IBV_WR_RDMA_WRITE_WITH_IMM, 16);
  EXPECT((wc = completion(send_cq)).status == IBV_WC_SUCCESS, "%s", ibv_wc_status_str(wc.status));
  wc = completion(cq);
  EXPECT(wc.opcode == IBV_WC_RECV_RDMA_WITH_IMM && ntohl(wc.imm_data) == 77 && wc.wr_id == 2, "opcode %d", wc.opcode);
  EXPECT(event(w.context, IBV_EVENT_SRQ_LIMIT_REACHED, srq), "the limit was reached");

  // A receive queue that is not there ends the connection; all handles hear of it.
  send_to(initiator, 0xfffffe, IBV_WR_SEND, 8);
  EXPECT((wc = completion(send_cq)).status == IBV_WC_REM_INV_REQ_ERR, "%s", ibv_wc_status_str(wc.status));
  EXPECT(event(w.context, IBV_EVENT_QP_LAST_WQE_REACHED, target), "by the first handle");
  EXPECT(event(other.context, IBV_EVENT_QP_LAST_WQE_REACHED, opened), "by the second handle");

  EXPECT(ibv_close_xrcd(same) == EBUSY, "a handle stands on it");
  CHECK(!ibv_destroy_qp(target));
  CHECK(!ibv_query_qp(opened, &attr, IBV_QP_STATE, &init));
  EXPECT(attr.qp_state == IBV_QPS_ERR, "it lives on with its other handle: %d", attr.qp_state);
  CHECK(!ibv_destroy_qp(opened) && !ibv_destroy_qp(initiator) && !ibv_destroy_srq(srq));
  CHECK(!ibv_close_xrcd(same) && !ibv_close_xrcd(foreign) && !ibv_close_xrcd(xrcd));
  CHECK(!ibv_destroy_cq(send_cq) && !ibv_destroy_cq(cq));
  close_world(&other);
  close(fd);
}

int main(void) {
  w = open_world();
  struct ibv_device_attr device;
  CHECK(!ibv_query_device(w.context, &device) && device.device_cap_flags & IBV_DEVICE_XRC);
  CHECK((mr = ibv_reg_mr(w.pd, buffer, sizeof buffer, kAllAccess)));
  domains();
  queues();
  CHECK(!ibv_dereg_mr(mr));
  close_world(&w);
  printf("xrc: %d failures\n", failures);
  return failures != 0;
}
