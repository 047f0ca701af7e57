// A program that takes the rings by mlx5dv_init_obj and then writes WQEs, doorbell records and the UAR itself, and
// reads CQEs itself: no call of the library runs the device.
#include <infiniband/mlx5dv.h>

#include "pair.h"

static struct mlx5dv_qp rings(struct ibv_qp* qp) {
  struct mlx5dv_qp out;
  memset(&out, 0, sizeof out);
  struct mlx5dv_obj obj = {.qp = {.in = qp, .out = &out}};
  CHECK(!mlx5dv_init_obj(&obj, MLX5DV_OBJ_QP));
  return out;
}

static void post_write(struct mlx5dv_qp* q, uint32_t qpn, uint16_t pi, struct ibv_mr* from, struct ibv_mr* to) {
  char* wqe = (char*)q->sq.buf + (size_t)(pi & (q->sq.wqe_cnt - 1)) * q->sq.stride;
  memset(wqe, 0, 64);
  struct mlx5_wqe_ctrl_seg* ctrl = (struct mlx5_wqe_ctrl_seg*)wqe;
  mlx5dv_set_ctrl_seg(ctrl, pi, MLX5_OPCODE_RDMA_WRITE, 0, qpn, MLX5_WQE_CTRL_CQ_UPDATE, 3, 0, 0);
  struct mlx5_wqe_raddr_seg* raddr = (struct mlx5_wqe_raddr_seg*)(wqe + 16);
  raddr->raddr = htobe64((uintptr_t)to->addr);
  raddr->rkey = htobe32(to->rkey);
  mlx5dv_set_data_seg((struct mlx5_wqe_data_seg*)(wqe + 32), 64, from->lkey, (uintptr_t)from->addr);
  __atomic_store_n(&q->dbrec[MLX5_SND_DBR], htobe32((uint16_t)(pi + 1)), __ATOMIC_SEQ_CST);
  __atomic_store_n((uint64_t*)q->bf.reg, *(uint64_t*)ctrl, __ATOMIC_RELEASE);
}

// A masked fetch and add of 4 bytes, which no verb posts: the memory is in the host's order, the answer in the wire's.
static void extended_atomic(struct World* w) {
  enum { kExtended = 8, kOf4 = kExtended | 0 };
  struct ibv_cq* cq = ibv_create_cq(w->context, 16, NULL, NULL, 0);
  CHECK(cq);
  struct ibv_qp* qp = make_qp(w, IBV_QPT_RC, cq, cq, NULL);
  connect_qp(w, qp, qp->qp_num);
  static uint32_t memory[4] = {0, 41, 43, 0};
  struct ibv_mr* mr = ibv_reg_mr(w->pd, memory, sizeof memory, kAllAccess);
  CHECK(mr);
  struct mlx5dv_qp q = rings(qp);
  char* wqe = q.sq.buf;
  memset(wqe, 0, 64);
  mlx5dv_set_ctrl_seg((struct mlx5_wqe_ctrl_seg*)wqe, 0, MLX5_OPCODE_ATOMIC_MASKED_FA, kOf4, qp->qp_num,
                      MLX5_WQE_CTRL_CQ_UPDATE, 4, 0, 0);
  struct mlx5_wqe_raddr_seg* raddr = (struct mlx5_wqe_raddr_seg*)(wqe + 16);
  raddr->raddr = htobe64((uintptr_t)&memory[1]);
  raddr->rkey = htobe32(mr->rkey);
  *(uint32_t*)(wqe + 32) = htobe32(1);
  mlx5dv_set_data_seg((struct mlx5_wqe_data_seg*)(wqe + 48), 4, mr->lkey, (uintptr_t)&memory[3]);
  __atomic_store_n(&q.dbrec[MLX5_SND_DBR], htobe32(1), __ATOMIC_SEQ_CST);
  __atomic_store_n((uint64_t*)q.bf.reg, *(uint64_t*)wqe, __ATOMIC_RELEASE);
  const struct ibv_wc wc = next_wc(cq);
  CHECK(wc.status == IBV_WC_SUCCESS);
  CHECK(memory[1] == 42 && memory[2] == 43 && be32toh(memory[3]) == 41);
  CHECK(!ibv_destroy_qp(qp) && !ibv_destroy_cq(cq) && !ibv_dereg_mr(mr));
}

int main(void) {
  struct World w = open_world();
  extended_atomic(&w);
  struct ibv_comp_channel* channel = ibv_create_comp_channel(w.context);
  CHECK(channel);
  struct ibv_cq* cq = ibv_create_cq(w.context, 16, NULL, channel, 0);
  struct ibv_cq* other = ibv_create_cq(w.context, 16, NULL, NULL, 0);
  CHECK(cq && other);
  struct ibv_qp* a = make_qp(&w, IBV_QPT_RC, cq, cq, NULL);
  struct ibv_qp* b = make_qp(&w, IBV_QPT_RC, other, other, NULL);
  connect_qp(&w, a, b->qp_num);
  connect_qp(&w, b, a->qp_num);
  static char from[64], to[64];
  struct ibv_mr* source = ibv_reg_mr(w.pd, from, sizeof from, kAllAccess);
  struct ibv_mr* target = ibv_reg_mr(w.pd, to, sizeof to, kAllAccess);
  CHECK(source && target);
  struct mlx5dv_qp q = rings(a);

  // Polled by the library.
  for (uint16_t i = 0; i < 100; ++i) {
    memset(from, i + 1, sizeof from);
    post_write(&q, a->qp_num, i, source, target);
    struct ibv_wc wc = next_wc(cq);
    CHECK(wc.status == IBV_WC_SUCCESS && wc.opcode == IBV_WC_RDMA_WRITE && to[63] == (char)(i + 1));
  }

  // Polled by hand.
  struct mlx5dv_cq ring;
  memset(&ring, 0, sizeof ring);
  struct mlx5dv_obj obj = {.cq = {.in = cq, .out = &ring}};
  CHECK(!mlx5dv_init_obj(&obj, MLX5DV_OBJ_CQ));
  for (uint32_t i = 100; i < 300; ++i) {
    memset(from, (int)i, sizeof from);
    post_write(&q, a->qp_num, (uint16_t)i, source, target);
    struct mlx5_cqe64* cqe =
        (struct mlx5_cqe64*)((char*)ring.buf + (size_t)(i & (ring.cqe_cnt - 1)) * ring.cqe_size + ring.cqe_size - 64);
    const double end = now_ms() + 5000;
    for (;;) {
      const uint8_t op_own = __atomic_load_n(&cqe->op_own, __ATOMIC_ACQUIRE);
      if (op_own >> 4 != MLX5_CQE_INVALID && (op_own & 1) == !!(i & ring.cqe_cnt)) break;
      CHECK(now_ms() < end);
    }
    CHECK(mlx5dv_get_cqe_opcode(cqe) == MLX5_CQE_REQ && be16toh(cqe->wqe_counter) == (uint16_t)i && to[0] == (char)i);
    __atomic_store_n(&ring.dbrec[0], htobe32((i + 1) & 0xffffff), __ATOMIC_RELEASE);
  }

  // Armed by hand: an event comes for a completion newer than the consumer index that was written.
  const uint32_t ci = 300;
  __atomic_store_n(&ring.dbrec[1], htobe32(ci), __ATOMIC_SEQ_CST);
  __atomic_store_n((uint64_t*)((char*)ring.cq_uar + 0x20), htobe64((uint64_t)ci << 32 | ring.cqn), __ATOMIC_RELEASE);
  post_write(&q, a->qp_num, 300, source, target);
  struct ibv_cq* fired = NULL;
  void* cookie = NULL;
  CHECK(!ibv_get_cq_event(channel, &fired, &cookie) && fired == cq);
  ibv_ack_cq_events(cq, 1);

  CHECK(!ibv_destroy_qp(a) && !ibv_destroy_qp(b));
  CHECK(!ibv_destroy_cq(cq) && !ibv_destroy_cq(other) && !ibv_destroy_comp_channel(channel));
  CHECK(!ibv_dereg_mr(source) && !ibv_dereg_mr(target) && !ibv_dealloc_pd(w.pd) && !ibv_close_device(w.context));
  puts("ok");
  return 0;
}
