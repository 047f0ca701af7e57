// Device memory as the source and the target of RDMA: what the program stores through its mapping is what the NIC
// reads, and the reverse. (A mapping that shows other memory than the NIC's is what this is after.)
#include "pair.h"

enum { kLength = 2048, kPart = 1025 };

static void fill(char* data, int seed) {
  for (int i = 0; i < kLength; i++) data[i] = (char)(i * 7 + seed);
}

static void transfer(struct ibv_qp* qp, enum ibv_wr_opcode opcode, struct ibv_sge sge, uint64_t remote, uint32_t rkey) {
  struct ibv_send_wr wr = {.sg_list = &sge, .num_sge = 1, .opcode = opcode, .send_flags = IBV_SEND_SIGNALED};
  wr.wr.rdma.remote_addr = remote;
  wr.wr.rdma.rkey = rkey;
  struct ibv_send_wr* bad;
  CHECK(!ibv_post_send(qp, &wr, &bad));
  CHECK(next_wc(qp->send_cq).status == IBV_WC_SUCCESS);
}

int main(void) {
  struct World w = open_world();
  struct ibv_cq* cq = ibv_create_cq(w.context, 16, NULL, NULL, 0);
  CHECK(cq);
  struct ibv_qp *qp = make_qp(&w, IBV_QPT_RC, cq, cq, NULL), *peer = make_qp(&w, IBV_QPT_RC, cq, cq, NULL);
  connect_qp(&w, qp, peer->qp_num);
  connect_qp(&w, peer, qp->qp_num);

  struct ibv_alloc_dm_attr attr = {.length = kLength};
  struct ibv_dm* dm = ibv_alloc_dm(w.context, &attr);
  CHECK(dm);
  struct ibv_mr* device = ibv_reg_dm_mr(w.pd, dm, 0, kLength, IBV_ACCESS_ZERO_BASED | kAllAccess);
  CHECK(device);
  static char host[kLength], pattern[kLength];
  struct ibv_mr* mr = ibv_reg_mr(w.pd, host, sizeof host, kAllAccess);
  CHECK(mr);

  for (uint64_t offset = 0; offset <= 64; offset += 64) {
    struct ibv_sge from = {.addr = offset, .length = kPart, .lkey = device->lkey};
    fill(pattern, 1 + (int)offset);
    CHECK(!ibv_memcpy_to_dm(dm, 0, pattern, kLength));
    transfer(qp, IBV_WR_RDMA_WRITE, from, (uintptr_t)host, mr->rkey);
    CHECK(!memcmp(host, pattern + offset, kPart));

    struct ibv_sge local = {.addr = (uintptr_t)host, .length = kPart, .lkey = mr->lkey};
    fill(host, 100 + (int)offset);
    transfer(qp, IBV_WR_RDMA_WRITE, local, offset, device->rkey);
    CHECK(!ibv_memcpy_from_dm(pattern, dm, offset, kPart + 3));
    CHECK(!memcmp(host, pattern, kPart));

    memset(host, 0, sizeof host);
    transfer(qp, IBV_WR_RDMA_READ, local, offset, device->rkey);
    CHECK(!memcmp(host, pattern, kPart));
  }
  CHECK(!ibv_destroy_qp(qp) && !ibv_destroy_qp(peer) && !ibv_destroy_cq(cq));
  CHECK(!ibv_dereg_mr(device) && !ibv_dereg_mr(mr));
  CHECK(!ibv_free_dm(dm));
  close_world(&w);
  puts("good");
  return 0;
}
