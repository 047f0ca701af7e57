// Error completions: the exact status on the requester's and the responder's side, and the order of what is flushed.
#include "pair.h"

enum { kBuffer = 4096 };
static struct World w;
static char* memory;  // two pages: local, remote
static struct ibv_mr *local, *remote, *read_only, *foreign;
static struct ibv_pd* other_pd;

struct Pair {
  struct ibv_cq* cq[2];
  struct ibv_qp* qp[2];
};

static struct Pair make_pair(void) {
  struct Pair p;
  for (int i = 0; i < 2; ++i) {
    CHECK(p.cq[i] = ibv_create_cq(w.context, 64, NULL, NULL, 0));
    p.qp[i] = make_qp(&w, IBV_QPT_RC, p.cq[i], p.cq[i], NULL);
  }
  for (int i = 0; i < 2; ++i) connect_qp(&w, p.qp[i], p.qp[1 - i]->qp_num);
  return p;
}

static void drop_pair(struct Pair* p) {
  for (int i = 0; i < 2; ++i) CHECK(!ibv_destroy_qp(p->qp[i]));
  for (int i = 0; i < 2; ++i) CHECK(!ibv_destroy_cq(p->cq[i]));
}

static struct ibv_send_wr request(enum ibv_wr_opcode opcode, struct ibv_sge* sge) {
  struct ibv_send_wr wr;
  memset(&wr, 0, sizeof wr);
  wr.wr_id = 1;
  wr.sg_list = sge;
  wr.num_sge = 1;
  wr.opcode = opcode;
  wr.send_flags = IBV_SEND_SIGNALED;
  if (opcode == IBV_WR_ATOMIC_FETCH_AND_ADD) {
    wr.wr.atomic.remote_addr = (uintptr_t)remote->addr;
    wr.wr.atomic.rkey = remote->rkey;
  } else {
    wr.wr.rdma.remote_addr = (uintptr_t)remote->addr;
    wr.wr.rdma.rkey = remote->rkey;
  }
  return wr;
}

static void receive(struct ibv_qp* qp, uint64_t id, uint32_t length, uint32_t lkey) {
  struct ibv_sge sge = {(uintptr_t)memory + kBuffer, length, lkey};
  struct ibv_recv_wr wr = {.wr_id = id, .sg_list = &sge, .num_sge = 1}, *bad;
  CHECK(!ibv_post_recv(qp, &wr, &bad));
}

static enum ibv_qp_state state_of(struct ibv_qp* qp) {
  struct ibv_qp_attr a;
  struct ibv_qp_init_attr init;
  CHECK(!ibv_query_qp(qp, &a, IBV_QP_STATE, &init));
  return a.qp_state;
}

// Posts `wr` and two more behind it; expects its status, the flush of the others in order, and the QP in error.
static void expect(const char* what, struct Pair* p, struct ibv_send_wr wr, enum ibv_wc_status status,
                   enum ibv_wc_status responder) {
  struct ibv_send_wr* bad;
  CHECK(!ibv_post_send(p->qp[0], &wr, &bad));
  struct ibv_wc wc = next_wc(p->cq[0]);
  EXPECT(wc.status == status && wc.wr_id == 1, "%s: %s, vendor %#x", what, ibv_wc_status_str(wc.status), wc.vendor_err);
  EXPECT(wc.qp_num == p->qp[0]->qp_num && wc.vendor_err != 0, "%s: qp %#x vendor %#x", what, wc.qp_num, wc.vendor_err);
  EXPECT(state_of(p->qp[0]) == IBV_QPS_ERR, "%s: state %d", what, state_of(p->qp[0]));
  printf("%-28s %-32s vendor %#x\n", what, ibv_wc_status_str(wc.status), wc.vendor_err);
  for (uint64_t id = 2; id < 4; ++id) {
    wr.wr_id = id;
    CHECK(!ibv_post_send(p->qp[0], &wr, &bad));
  }
  receive(p->qp[0], 10, 64, local->lkey);
  receive(p->qp[0], 11, 64, local->lkey);
  uint64_t send = 2, recv = 10;
  for (int i = 0; i < 4; ++i) {
    wc = next_wc(p->cq[0]);
    EXPECT(wc.status == IBV_WC_WR_FLUSH_ERR, "%s: flushed as %s", what, ibv_wc_status_str(wc.status));
    uint64_t* next = wc.wr_id >= 10 ? &recv : &send;
    EXPECT(wc.wr_id == *next, "%s: flushed %d before %d", what, (int)wc.wr_id, (int)*next);
    ++*next;
  }
  if (responder != IBV_WC_SUCCESS) {
    wc = next_wc(p->cq[1]);
    EXPECT(wc.status == responder, "%s: responder %s", what, ibv_wc_status_str(wc.status));
    printf("%28s %-32s vendor %#x\n", "responder", ibv_wc_status_str(wc.status), wc.vendor_err);
  }
}

#define CASE(name, requester_status, responder_status, ...)    \
  do {                                                         \
    struct Pair p = make_pair();                               \
    struct ibv_sge sge = {(uintptr_t)memory, 64, local->lkey}; \
    struct ibv_send_wr wr = request(IBV_WR_RDMA_WRITE, &sge);  \
    __VA_ARGS__;                                               \
    expect(name, &p, wr, requester_status, responder_status);  \
    drop_pair(&p);                                             \
  } while (0)

static void set_access(struct ibv_qp* qp, int flags) {
  struct ibv_qp_attr a;
  memset(&a, 0, sizeof a);
  a.qp_access_flags = (unsigned)flags;
  CHECK(!ibv_modify_qp(qp, &a, IBV_QP_ACCESS_FLAGS));
}

static void keys_and_ranges(void) {
  CASE("local key", IBV_WC_LOC_PROT_ERR, IBV_WC_SUCCESS, sge.lkey ^= 0x55);
  CASE("local range", IBV_WC_LOC_PROT_ERR, IBV_WC_SUCCESS, sge.addr += kBuffer - 32);
  CASE("local domain", IBV_WC_LOC_PROT_ERR, IBV_WC_SUCCESS, sge.lkey = foreign->lkey);
  CASE("read into read-only", IBV_WC_LOC_PROT_ERR, IBV_WC_SUCCESS, wr.opcode = IBV_WR_RDMA_READ;
       sge.lkey = read_only->lkey);
  CASE("remote key", IBV_WC_REM_ACCESS_ERR, IBV_WC_SUCCESS, wr.wr.rdma.rkey ^= 0x55);
  CASE("remote range", IBV_WC_REM_ACCESS_ERR, IBV_WC_SUCCESS, wr.wr.rdma.remote_addr += kBuffer - 32);
  CASE("remote below", IBV_WC_REM_ACCESS_ERR, IBV_WC_SUCCESS, wr.wr.rdma.remote_addr -= 1);
  CASE("remote permission", IBV_WC_REM_ACCESS_ERR, IBV_WC_SUCCESS, wr.wr.rdma.rkey = read_only->rkey);
  CASE("remote domain", IBV_WC_REM_ACCESS_ERR, IBV_WC_SUCCESS, wr.wr.rdma.rkey = foreign->rkey);
  CASE("read permission", IBV_WC_REM_ACCESS_ERR, IBV_WC_SUCCESS, wr.opcode = IBV_WR_RDMA_READ;
       wr.wr.rdma.rkey = read_only->rkey);
  CASE("atomic key", IBV_WC_REM_ACCESS_ERR, IBV_WC_SUCCESS, sge.length = 8;
       wr = request(IBV_WR_ATOMIC_FETCH_AND_ADD, &sge); wr.wr.atomic.rkey ^= 0x55);
  CASE("atomic alignment", IBV_WC_REM_INV_REQ_ERR, IBV_WC_SUCCESS, sge.length = 8;
       wr = request(IBV_WR_ATOMIC_FETCH_AND_ADD, &sge); wr.wr.atomic.remote_addr += 4);
  CASE("QP forbids write", IBV_WC_REM_INV_REQ_ERR, IBV_WC_SUCCESS, set_access(p.qp[1], IBV_ACCESS_REMOTE_READ));
  CASE("QP forbids read", IBV_WC_REM_INV_REQ_ERR, IBV_WC_SUCCESS, set_access(p.qp[1], IBV_ACCESS_REMOTE_WRITE);
       wr.opcode = IBV_WR_RDMA_READ);
  CASE("QP forbids atomic", IBV_WC_REM_INV_REQ_ERR, IBV_WC_SUCCESS, set_access(p.qp[1], IBV_ACCESS_REMOTE_WRITE);
       sge.length = 8; wr = request(IBV_WR_ATOMIC_FETCH_AND_ADD, &sge));
}

static void receives(void) {
  CASE("receive too small", IBV_WC_REM_INV_REQ_ERR, IBV_WC_LOC_LEN_ERR, wr.opcode = IBV_WR_SEND;
       receive(p.qp[1], 1, 32, local->lkey));
  CASE("receive key", IBV_WC_REM_OP_ERR, IBV_WC_LOC_PROT_ERR, wr.opcode = IBV_WR_SEND;
       receive(p.qp[1], 1, 64, local->lkey ^ 0x55));
  CASE("RNR, one retry", IBV_WC_RNR_RETRY_EXC_ERR, IBV_WC_SUCCESS, wr.opcode = IBV_WR_SEND);
}

static void silence(void) {
  struct ibv_qp_attr a = attributes(&w, 0);
  CASE("peer in RESET", IBV_WC_RETRY_EXC_ERR, IBV_WC_SUCCESS, CHECK(!go(p.qp[1], IBV_QPS_RESET, a, 0)));
  CASE("peer in error", IBV_WC_RETRY_EXC_ERR, IBV_WC_SUCCESS, CHECK(!go(p.qp[1], IBV_QPS_ERR, a, 0)));
  // Nobody there: 4.096 us * 2^14 a try, three tries.
  struct ibv_cq* cq = ibv_create_cq(w.context, 16, NULL, NULL, 0);
  struct ibv_qp* qp = make_qp(&w, IBV_QPT_RC, cq, cq, NULL);
  a.dest_qp_num = 0xfffff0, a.timeout = 14, a.retry_cnt = 2;
  CHECK(!go(qp, IBV_QPS_INIT, a, required(IBV_QPT_RC, IBV_QPS_INIT)));
  CHECK(!go(qp, IBV_QPS_RTR, a, required(IBV_QPT_RC, IBV_QPS_RTR)));
  CHECK(!go(qp, IBV_QPS_RTS, a, required(IBV_QPT_RC, IBV_QPS_RTS)));
  struct ibv_sge sge = {(uintptr_t)memory, 64, local->lkey};
  struct ibv_send_wr wr = request(IBV_WR_RDMA_WRITE, &sge), *bad;
  const double start = now_ms();
  CHECK(!ibv_post_send(qp, &wr, &bad));
  struct ibv_wc wc = next_wc(cq);
  const double took = now_ms() - start;
  EXPECT(wc.status == IBV_WC_RETRY_EXC_ERR, "nobody: %s", ibv_wc_status_str(wc.status));
  EXPECT(took >= 3 * 67 && took < 3 * 67 * 4 + 300, "nobody: after %.0f ms", took);
  printf("nobody there: %.0f ms vendor %#x\n", took, wc.vendor_err);
  CHECK(!ibv_destroy_qp(qp) && !ibv_destroy_cq(cq));
}

// What a datagram QP does not do is the device's to refuse: a completion, and the send queue in error.
static void datagrams(void) {
  const enum ibv_wr_opcode opcodes[] = {IBV_WR_RDMA_WRITE, IBV_WR_RDMA_READ, IBV_WR_ATOMIC_CMP_AND_SWP,
                                        IBV_WR_ATOMIC_FETCH_AND_ADD};
  struct ibv_cq* cq = ibv_create_cq(w.context, 16, NULL, NULL, 0);
  struct ibv_ah_attr to = attributes(&w, 0).ah_attr;
  struct ibv_ah* ah = ibv_create_ah(w.pd, &to);
  CHECK(cq && ah);
  for (unsigned i = 0; i < sizeof opcodes / sizeof *opcodes; ++i) {
    struct ibv_qp* qp = make_qp(&w, IBV_QPT_UD, cq, cq, NULL);
    connect_qp(&w, qp, 0);
    struct ibv_sge sge = {(uintptr_t)memory, 8, local->lkey};
    struct ibv_send_wr wr = request(opcodes[i], &sge), *bad;
    wr.wr.ud.ah = ah;
    wr.wr.ud.remote_qpn = qp->qp_num;
    wr.wr.ud.remote_qkey = 0x1111;
    CHECK(!ibv_post_send(qp, &wr, &bad));
    const struct ibv_wc wc = next_wc(cq);
    EXPECT(wc.status == IBV_WC_LOC_QP_OP_ERR, "opcode %d: %s", opcodes[i], ibv_wc_status_str(wc.status));
    EXPECT(state_of(qp) == IBV_QPS_SQE, "opcode %d: state %d", opcodes[i], state_of(qp));
    CHECK(!ibv_destroy_qp(qp));
  }
  CHECK(!ibv_destroy_ah(ah) && !ibv_destroy_cq(cq));
}

// Moving a QP to the error state flushes what it holds; a full send queue refuses, also without signals.
static void flush_and_full(void) {
  struct Pair p = make_pair();
  for (uint64_t id = 0; id < 5; ++id) receive(p.qp[0], id, 64, local->lkey);
  CHECK(!go(p.qp[0], IBV_QPS_ERR, attributes(&w, 0), 0));
  for (uint64_t id = 0; id < 5; ++id) {
    struct ibv_wc wc = next_wc(p.cq[0]);
    EXPECT(wc.status == IBV_WC_WR_FLUSH_ERR && wc.wr_id == id, "flush %d: %s", (int)id, ibv_wc_status_str(wc.status));
  }
  drop_pair(&p);
  p = make_pair();
  struct ibv_sge sge = {(uintptr_t)memory, 8, local->lkey};
  struct ibv_send_wr wr = request(IBV_WR_RDMA_WRITE, &sge), *bad = NULL;
  wr.send_flags = 0;
  int posted = 0, result;
  while (posted < 1000 && !(result = ibv_post_send(p.qp[0], &wr, &bad))) ++posted;
  EXPECT(posted >= 16 && posted < 1000 && result == ENOMEM && bad == &wr, "full after %d: %d", posted, result);
  struct ibv_wc wc;
  EXPECT(ibv_poll_cq(p.cq[0], 1, &wc) == 0, "unsignalled sends completed");
  drop_pair(&p);
}

static void limits(void) {
  struct ibv_device_attr d;
  CHECK(!ibv_query_device(w.context, &d));
  struct ibv_cq* cq = NULL;
  EXPECT(!ibv_create_cq(w.context, d.max_cqe + 1, NULL, NULL, 0) && (errno == EINVAL || errno == ENOMEM),
         "max_cqe + 1: %d", errno);
  CHECK(cq = ibv_create_cq(w.context, 16, NULL, NULL, 0));
  struct {
    uint32_t send, recv, ssge, rsge;
    int works;
  } cases[] = {// a send WQE takes several blocks, so the device's limit in blocks is beyond reach, as on hardware
               {(uint32_t)d.max_qp_wr + 1, 1, 1, 1, 0},
               {1, (uint32_t)d.max_qp_wr, 1, 1, 1},
               {1, (uint32_t)d.max_qp_wr + 1, 1, 1, 0},
               {1, 1, (uint32_t)d.max_sge, (uint32_t)d.max_sge, 1},
               {1, 1, 1, 33, 0},
               {1, 1, 64, 1, 0}};
  for (unsigned i = 0; i < sizeof cases / sizeof *cases; ++i) {
    struct ibv_qp_init_attr init = {.send_cq = cq,
                                    .recv_cq = cq,
                                    .qp_type = IBV_QPT_RC,
                                    .cap = {.max_send_wr = cases[i].send,
                                            .max_recv_wr = cases[i].recv,
                                            .max_send_sge = cases[i].ssge,
                                            .max_recv_sge = cases[i].rsge}};
    struct ibv_qp* qp = ibv_create_qp(w.pd, &init);
    EXPECT(!!qp == cases[i].works, "limit case %u: errno %d", i, errno);
    if (qp)
      CHECK(!ibv_destroy_qp(qp));
    else
      EXPECT(errno == EINVAL || errno == ENOMEM, "limit case %u: errno %d", i, errno);
  }
  struct ibv_srq_init_attr srq = {.attr = {.max_wr = (uint32_t)d.max_srq_wr + 1, .max_sge = 1}};
  EXPECT(!ibv_create_srq(w.pd, &srq) && errno == EINVAL, "max_srq_wr + 1: %d", errno);
  srq.attr.max_wr = (uint32_t)d.max_srq_wr;
  struct ibv_srq* s = ibv_create_srq(w.pd, &srq);
  EXPECT(s, "max_srq_wr: %d", errno);
  if (s) {
    // mlx5_ib_modify_srq(): no other size, a limit below it, and no look at what else the mask says.
    struct ibv_srq_attr to = {.max_wr = 16, .srq_limit = 3};
    EXPECT(ibv_modify_srq(s, &to, IBV_SRQ_MAX_WR) == EINVAL, "resized");
    EXPECT(!ibv_modify_srq(s, &to, 4), "a bit that is none");
    EXPECT(!ibv_modify_srq(s, &to, IBV_SRQ_LIMIT | 4), "beside one that is");
    to.srq_limit = srq.attr.max_wr + 1;
    EXPECT(ibv_modify_srq(s, &to, IBV_SRQ_LIMIT) == EINVAL, "limit at the size");
    CHECK(!ibv_destroy_srq(s));
  }
  CHECK(!ibv_destroy_cq(cq));
}

int main(void) {
  w = open_world();
  memory = aligned_alloc(4096, 2 * kBuffer);
  CHECK(memory && (other_pd = ibv_alloc_pd(w.context)));
  memset(memory, 0, 2 * kBuffer);
  CHECK(local = ibv_reg_mr(w.pd, memory, kBuffer * 2, kAllAccess));
  CHECK(!ibv_dereg_mr(local));
  CHECK(local = ibv_reg_mr(w.pd, memory, kBuffer, kAllAccess));
  CHECK(remote = ibv_reg_mr(w.pd, memory + kBuffer, kBuffer, kAllAccess));
  CHECK(read_only = ibv_reg_mr(w.pd, memory, 2 * kBuffer, 0));
  CHECK(foreign = ibv_reg_mr(other_pd, memory, 2 * kBuffer, kAllAccess));
  // Receives go to the second page; the key for them spans both.
  struct ibv_mr* page = local;
  keys_and_ranges();
  CHECK(!ibv_dereg_mr(page));
  CHECK(local = ibv_reg_mr(w.pd, memory, 2 * kBuffer, kAllAccess));
  receives();
  silence();
  datagrams();
  flush_and_full();
  limits();
  if (failures) return 1;
  puts("ok");
  return 0;
}
