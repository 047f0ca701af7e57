// What the two ends of a connection must agree on, and how it ends where they do not: sequence numbers, QP numbers, paths,
// the path MTU, the longest message.
#include <sys/mman.h>

#include "pair.h"

enum { kLength = 1 << 16 };
static struct World w;
static char* memory;  // what is sent, what is received
static struct ibv_mr* mr;

struct Link {
  struct ibv_cq* cq[2];
  struct ibv_qp* qp[2];
};

// `wrong` changes the attributes of one end.
static struct Link make_link(enum ibv_qp_type type, int end, void (*wrong)(struct ibv_qp_attr*)) {
  struct Link l;
  for (int i = 0; i < 2; ++i) {
    CHECK(l.cq[i] = ibv_create_cq(w.context, 64, NULL, NULL, 0));
    l.qp[i] = make_qp(&w, type, l.cq[i], l.cq[i], NULL);
  }
  for (int i = 0; i < 2; ++i) {
    struct ibv_qp_attr a = attributes(&w, l.qp[!i]->qp_num);
    if (i == end) wrong(&a);
    for (int s = IBV_QPS_INIT; s <= IBV_QPS_RTS; ++s)
      CHECK(!go(l.qp[i], (enum ibv_qp_state)s, a, required(type, (enum ibv_qp_state)s)));
  }
  struct ibv_sge sge = {(uintptr_t)memory + kLength, kLength, mr->lkey};
  struct ibv_recv_wr wr = {.wr_id = 9, .sg_list = &sge, .num_sge = 1}, *bad;
  CHECK(!ibv_post_recv(l.qp[1], &wr, &bad));
  return l;
}

static void drop_link(struct Link* l) {
  for (int i = 0; i < 2; ++i) CHECK(!ibv_destroy_qp(l->qp[i]) && !ibv_destroy_cq(l->cq[i]));
}

static struct ibv_wc run(struct Link* l, enum ibv_wr_opcode opcode, uint32_t length) {
  struct ibv_sge sge = {(uintptr_t)memory, length, mr->lkey};
  struct ibv_send_wr wr = {.wr_id = 1, .sg_list = &sge, .num_sge = 1, .opcode = opcode, .send_flags = IBV_SEND_SIGNALED}, *bad;
  if (opcode == IBV_WR_ATOMIC_FETCH_AND_ADD)
    wr.wr.atomic.remote_addr = (uintptr_t)memory + kLength, wr.wr.atomic.rkey = mr->rkey, wr.wr.atomic.compare_add = 1;
  else
    wr.wr.rdma.remote_addr = (uintptr_t)memory + kLength, wr.wr.rdma.rkey = mr->rkey;
  CHECK(!ibv_post_send(l->qp[0], &wr, &bad));
  return next_wc(l->cq[0]);
}

static void as_it_should_be(struct ibv_qp_attr* a) { (void)a; }
static void psn_behind(struct ibv_qp_attr* a) { a->sq_psn -= 0x20; }
static void psn_ahead(struct ibv_qp_attr* a) { a->sq_psn += 5; }
static void other_qp(struct ibv_qp_attr* a) { a->dest_qp_num ^= 0x800000; }
static void other_place(struct ibv_qp_attr* a) { a->ah_attr.grh.dgid.raw[15] ^= 0x55; }
static void mtu_256(struct ibv_qp_attr* a) { a->path_mtu = IBV_MTU_256; }
static void mtu_4096(struct ibv_qp_attr* a) { a->path_mtu = IBV_MTU_4096; }

static void connections(void) {
  static const struct {
    const char* what;
    int end;
    void (*wrong)(struct ibv_qp_attr*);
    enum ibv_wr_opcode opcode;
    uint32_t length;
    enum ibv_wc_status status;
    int arrives;  // a receive completes
  } cases[] = {
      {"nothing wrong", 0, as_it_should_be, IBV_WR_SEND, 100, IBV_WC_SUCCESS, 1},
      // What the responder takes for a repetition is not delivered, and its acknowledgement is not for these packets.
      {"send PSN behind", 0, psn_behind, IBV_WR_SEND, 100, IBV_WC_RETRY_EXC_ERR, 0},
      {"send PSN behind", 0, psn_behind, IBV_WR_SEND, 40 << 10, IBV_WC_RETRY_EXC_ERR, 0},
      {"send PSN behind", 0, psn_behind, IBV_WR_RDMA_WRITE, 100, IBV_WC_RETRY_EXC_ERR, 0},
      {"send PSN behind", 0, psn_behind, IBV_WR_RDMA_READ, 100, IBV_WC_RETRY_EXC_ERR, 0},
      {"send PSN behind", 0, psn_behind, IBV_WR_ATOMIC_FETCH_AND_ADD, 8, IBV_WC_RETRY_EXC_ERR, 0},
      {"send PSN ahead", 0, psn_ahead, IBV_WR_SEND, 100, IBV_WC_RETRY_EXC_ERR, 0},
      // The message comes; the answer goes elsewhere.
      {"responder's QP number", 1, other_qp, IBV_WR_SEND, 100, IBV_WC_RETRY_EXC_ERR, 1},
      {"responder's QP number", 1, other_qp, IBV_WR_RDMA_READ, 100, IBV_WC_RETRY_EXC_ERR, 0},
      {"responder's path", 1, other_place, IBV_WR_SEND, 100, IBV_WC_RETRY_EXC_ERR, 1},
      {"responder's path", 1, other_place, IBV_WR_ATOMIC_FETCH_AND_ADD, 8, IBV_WC_RETRY_EXC_ERR, 0},
      {"requester's path", 0, other_place, IBV_WR_SEND, 100, IBV_WC_RETRY_EXC_ERR, 0},
      // 1024 at the other end: what is one packet for both goes.
      {"larger MTU, short", 0, mtu_4096, IBV_WR_SEND, 1024, IBV_WC_SUCCESS, 1},
      {"larger MTU, one packet", 0, mtu_4096, IBV_WR_SEND, 1025, IBV_WC_REM_INV_REQ_ERR, 0},
      {"larger MTU", 0, mtu_4096, IBV_WR_RDMA_WRITE, 10000, IBV_WC_REM_INV_REQ_ERR, 0},
      {"larger MTU", 0, mtu_4096, IBV_WR_RDMA_READ, 10000, IBV_WC_BAD_RESP_ERR, 0},
      {"smaller MTU, short", 0, mtu_256, IBV_WR_SEND, 256, IBV_WC_SUCCESS, 1},
      {"smaller MTU", 0, mtu_256, IBV_WR_SEND, 257, IBV_WC_REM_INV_REQ_ERR, 0},
      {"smaller MTU", 0, mtu_256, IBV_WR_RDMA_READ, 256, IBV_WC_SUCCESS, 0},
      {"smaller MTU", 0, mtu_256, IBV_WR_RDMA_READ, 257, IBV_WC_BAD_RESP_ERR, 0},
  };
  for (unsigned i = 0; i < sizeof cases / sizeof *cases; ++i) {
    struct Link l = make_link(IBV_QPT_RC, cases[i].end, cases[i].wrong);
    const struct ibv_wc wc = run(&l, cases[i].opcode, cases[i].length);
    EXPECT(wc.status == cases[i].status, "%s, operation %d, %u bytes: %s", cases[i].what, cases[i].opcode,
           cases[i].length, ibv_wc_status_str(wc.status));
    struct ibv_wc got;
    const int arrived = ibv_poll_cq(l.cq[1], 1, &got) == 1 && got.status == IBV_WC_SUCCESS;
    EXPECT(arrived == cases[i].arrives, "%s, operation %d: %s", cases[i].what, cases[i].opcode, arrived ? "arrived" : "lost");
    drop_link(&l);
  }
}

// UC: nobody is told; the next message of a size that both take comes.
static void unreliable(void) {
  struct Link l = make_link(IBV_QPT_UC, 0, mtu_4096);
  EXPECT(run(&l, IBV_WR_SEND, 4000).status == IBV_WC_SUCCESS, "UC does not know");
  EXPECT(run(&l, IBV_WR_SEND, 1000).status == IBV_WC_SUCCESS, "UC does not know");
  const struct ibv_wc wc = next_wc(l.cq[1]);
  EXPECT(wc.status == IBV_WC_SUCCESS && wc.byte_len == 1000, "UC: %s, %u bytes", ibv_wc_status_str(wc.status), wc.byte_len);
  drop_link(&l);
}

// Port attribute max_msg_sz is kept.
static void longest(void) {
  struct ibv_port_attr port;
  CHECK(!ibv_query_port(w.context, 1, &port));
  const size_t size = (size_t)port.max_msg_sz + 4096;
  char* large = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  CHECK(large != MAP_FAILED);
  struct ibv_mr* all = ibv_reg_mr(w.pd, large, size, kAllAccess);
  CHECK(all);
  const enum ibv_wr_opcode opcodes[] = {IBV_WR_SEND, IBV_WR_RDMA_WRITE, IBV_WR_RDMA_READ};
  for (unsigned i = 0; i < 3; ++i) {
    struct Link l = make_link(IBV_QPT_RC, 0, as_it_should_be);
    struct ibv_sge sge[2] = {{(uintptr_t)large, port.max_msg_sz, all->lkey}, {(uintptr_t)memory, 1, mr->lkey}};
    struct ibv_send_wr wr = {.sg_list = sge, .num_sge = 2, .opcode = opcodes[i], .send_flags = IBV_SEND_SIGNALED,
                             .wr.rdma = {(uintptr_t)large, all->rkey}}, *bad;
    CHECK(!ibv_post_send(l.qp[0], &wr, &bad));
    const struct ibv_wc wc = next_wc(l.cq[0]);
    EXPECT(wc.status == IBV_WC_LOC_LEN_ERR, "operation %d of max_msg_sz + 1: %s", opcodes[i], ibv_wc_status_str(wc.status));
    drop_link(&l);
  }
  CHECK(!ibv_dereg_mr(all) && !munmap(large, size));
}

// A number rests before it stands for another QP: what still goes to the old one is lost.
static void stale_number(void) {
  struct Link l = make_link(IBV_QPT_RC, 0, as_it_should_be);
  const uint32_t old = l.qp[1]->qp_num;
  CHECK(!ibv_destroy_qp(l.qp[1]));
  l.qp[1] = make_qp(&w, IBV_QPT_RC, l.cq[1], l.cq[1], NULL);
  EXPECT(l.qp[1]->qp_num != old, "QP number %#x at once again", old);
  connect_qp(&w, l.qp[1], l.qp[0]->qp_num);
  EXPECT(run(&l, IBV_WR_RDMA_WRITE, 8).status == IBV_WC_RETRY_EXC_ERR, "somebody else answers");
  drop_link(&l);
}

int main(void) {
  w = open_world();
  CHECK(memory = aligned_alloc(4096, 2 * kLength));
  memset(memory, 0, 2 * kLength);
  CHECK(mr = ibv_reg_mr(w.pd, memory, 2 * kLength, kAllAccess));
  connections();
  unreliable();
  longest();
  stale_number();
  CHECK(!ibv_dereg_mr(mr));
  close_world(&w);
  if (failures) return 1;
  puts("ok");
  return 0;
}
