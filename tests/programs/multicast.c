// Multicast between UD queue pairs of one device: every member of the group gets a message, its sender too unless it
// was created with IBV_QP_CREATE_BLOCK_SELF_MCAST_LB; who has left gets none.
#include "pair.h"

enum { kQkey = 0x1111, kGrh = 40, kMembers = 2 };

static struct ibv_qp* make_member(struct World* w, struct ibv_cq* cq, uint32_t create_flags) {
  struct ibv_qp_init_attr_ex init = {
      .send_cq = cq,
      .recv_cq = cq,
      .cap = {.max_send_wr = 16, .max_recv_wr = 16, .max_send_sge = 1, .max_recv_sge = 1},
      .qp_type = IBV_QPT_UD,
      .comp_mask = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_CREATE_FLAGS,
      .pd = w->pd,
      .create_flags = create_flags};
  struct ibv_qp* qp = ibv_create_qp_ex(w->context, &init);
  CHECK(qp);
  struct ibv_qp_attr a = {.qp_state = IBV_QPS_INIT, .port_num = 1, .qkey = kQkey};
  CHECK(!ibv_modify_qp(qp, &a, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_QKEY));
  a.qp_state = IBV_QPS_RTR;
  CHECK(!ibv_modify_qp(qp, &a, IBV_QP_STATE));
  a.qp_state = IBV_QPS_RTS;
  CHECK(!ibv_modify_qp(qp, &a, IBV_QP_STATE | IBV_QP_SQ_PSN));
  return qp;
}

// Sends one message from `from` to the group; got[i] says whether member i received it.
static void send_to_group(struct ibv_qp* from, struct ibv_ah* ah, struct ibv_mr* mr, struct ibv_qp** members,
                          int* got) {
  struct ibv_sge out = {(uintptr_t)mr->addr, 8, mr->lkey};
  struct ibv_send_wr wr = {.sg_list = &out, .num_sge = 1, .opcode = IBV_WR_SEND, .send_flags = IBV_SEND_SIGNALED};
  wr.wr.ud.ah = ah;
  wr.wr.ud.remote_qpn = 0xffffff;
  wr.wr.ud.remote_qkey = kQkey;
  struct ibv_send_wr* bad;
  CHECK(!ibv_post_send(from, &wr, &bad));
  memset(got, 0, kMembers * sizeof *got);
  for (int empty = 0; empty < 1000;) {
    struct ibv_wc wc;
    const int n = ibv_poll_cq(from->send_cq, 1, &wc);
    CHECK(n >= 0);
    empty += n == 0;
    if (n == 0) continue;
    CHECK(wc.status == IBV_WC_SUCCESS);
    if (wc.opcode != IBV_WC_RECV) continue;
    CHECK(wc.byte_len == 8 + kGrh && wc.src_qp == from->qp_num);
    for (int i = 0; i < kMembers; ++i) got[i] += members[i]->qp_num == wc.qp_num;
  }
}

int main(void) {
  struct World w = open_world();
  struct ibv_cq* cq = ibv_create_cq(w.context, 64, NULL, NULL, 0);
  CHECK(cq);
  char* buffer = aligned_alloc(4096, 4096);
  struct ibv_mr* mr = ibv_reg_mr(w.pd, buffer, 4096, IBV_ACCESS_LOCAL_WRITE);
  CHECK(mr);
  struct ibv_qp* members[kMembers] = {make_member(&w, cq, 0), make_member(&w, cq, IBV_QP_CREATE_BLOCK_SELF_MCAST_LB)};
  union ibv_gid group;
  CHECK(inet_pton(AF_INET6, "ff0e::ffff:e001:0203", &group) == 1);
  for (int i = 0; i < kMembers; ++i) {
    CHECK(!ibv_attach_mcast(members[i], &group, 0));
    for (int j = 0; j < 8; ++j) {
      struct ibv_sge in = {(uintptr_t)buffer + 1024, 256, mr->lkey};
      struct ibv_recv_wr wr = {.sg_list = &in, .num_sge = 1}, *bad;
      CHECK(!ibv_post_recv(members[i], &wr, &bad));
    }
  }
  struct ibv_ah_attr way = {.is_global = 1, .port_num = 1};
  way.grh.dgid = group;
  way.grh.sgid_index = (uint8_t)w.gid_index;
  way.grh.hop_limit = 1;
  struct ibv_ah* ah = ibv_create_ah(w.pd, &way);
  CHECK(ah);

  int got[kMembers];
  send_to_group(members[0], ah, mr, members, got);
  EXPECT(got[0] == 1 && got[1] == 1, "from an ordinary member: %d %d copies", got[0], got[1]);
  send_to_group(members[1], ah, mr, members, got);
  EXPECT(got[0] == 1 && got[1] == 0, "from one that blocks its own: %d %d copies", got[0], got[1]);
  // The same once more is the same; under another LID, which means nothing here, it is another attachment: still one copy.
  CHECK(!ibv_attach_mcast(members[0], &group, 0) && !ibv_attach_mcast(members[0], &group, 7));
  send_to_group(members[0], ah, mr, members, got);
  EXPECT(got[0] == 1 && got[1] == 1, "attached again: %d %d copies", got[0], got[1]);
  CHECK(!ibv_detach_mcast(members[0], &group, 7));
  CHECK(ibv_detach_mcast(members[0], &group, 7) == EINVAL);
  send_to_group(members[0], ah, mr, members, got);
  EXPECT(got[0] == 1 && got[1] == 1, "detached once: %d %d copies", got[0], got[1]);
  CHECK(ibv_destroy_qp(members[0]) == EBUSY);
  CHECK(!ibv_detach_mcast(members[0], &group, 0));
  CHECK(ibv_detach_mcast(members[0], &group, 0) == EINVAL);
  send_to_group(members[1], ah, mr, members, got);
  EXPECT(got[0] == 0 && got[1] == 0, "after one has left: %d %d copies", got[0], got[1]);

  CHECK(!ibv_destroy_ah(ah));
  CHECK(!ibv_detach_mcast(members[1], &group, 0));
  for (int i = 0; i < kMembers; ++i) CHECK(!ibv_destroy_qp(members[i]));
  CHECK(!ibv_dereg_mr(mr) && !ibv_destroy_cq(cq));
  free(buffer);
  close_world(&w);
  return failures != 0;
}
