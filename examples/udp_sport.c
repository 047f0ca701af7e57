// Changes the UDP source port of a RoCE v2 queue pair in two ways, by the library's call and by the raw command it is made
// of, and sends a message after each change. Read the ports in a capture:
//
//   verbena run --capture ports.pcapng -- build/dev/bin/examples/udp_sport
//   tshark -r ports.pcapng -T fields -e udp.srcport -e infiniband.bth.opcode
//
// A switch that spreads flows over links looks at this port: changing it moves the queue pair to another way.
// The program uses the public C interface alone and runs on a ConnectX as well.
#include <endian.h>
#include <errno.h>
#include <infiniband/mlx5dv.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MUST(what)                                               \
  do {                                                           \
    if (!(what)) {                                               \
      fprintf(stderr, "%s: %s\n", #what, strerror(errno));       \
      exit(1);                                                   \
    }                                                            \
  } while (0)

static struct ibv_context* context;
static struct ibv_cq* cq;
static struct ibv_qp *sender, *receiver;
static struct ibv_mr* mr;
static char data[2][64];
static const uint16_t ports[] = {0, 0xc222, 0xc333};

// ---- a connected pair of queue pairs in this process ----

static struct ibv_qp* make_qp(struct ibv_pd* pd) {
  struct ibv_qp_init_attr init = {.send_cq = cq,
                                  .recv_cq = cq,
                                  .cap = {.max_send_wr = 4, .max_recv_wr = 4, .max_send_sge = 1, .max_recv_sge = 1},
                                  .qp_type = IBV_QPT_RC};
  return ibv_create_qp(pd, &init);
}

// A RoCE v2 address of the port, by index; the first one of IPv4.
static int find_gid(union ibv_gid* gid) {
  struct ibv_gid_entry entries[64];
  const ssize_t n = ibv_query_gid_table(context, entries, 64, 0);
  for (ssize_t i = 0; i < n; ++i) {
    if (entries[i].gid_type != IBV_GID_TYPE_ROCE_V2 || entries[i].gid.raw[10] != 0xff) continue;
    *gid = entries[i].gid;
    return (int)entries[i].gid_index;
  }
  return -1;
}

static void connect(struct ibv_qp* qp, uint32_t peer) {
  union ibv_gid gid;
  const int index = find_gid(&gid);
  MUST(index >= 0);
  struct ibv_qp_attr a = {.qp_state = IBV_QPS_INIT, .port_num = 1};
  MUST(!ibv_modify_qp(qp, &a, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS));
  a = (struct ibv_qp_attr){.qp_state = IBV_QPS_RTR,
                           .path_mtu = IBV_MTU_1024,
                           .dest_qp_num = peer,
                           .min_rnr_timer = 12,
                           .ah_attr = {.is_global = 1,
                                       .port_num = 1,
                                       .grh = {.dgid = gid, .sgid_index = (uint8_t)index, .hop_limit = 64}}};
  MUST(!ibv_modify_qp(qp, &a,
                      IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
                          IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER));
  a = (struct ibv_qp_attr){.qp_state = IBV_QPS_RTS, .timeout = 14, .retry_cnt = 7, .rnr_retry = 7};
  MUST(!ibv_modify_qp(qp, &a,
                      IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_SQ_PSN |
                          IBV_QP_MAX_QP_RD_ATOMIC));
}

static void send_one(const char* how) {
  struct ibv_sge to = {(uintptr_t)data[1], sizeof data[1], mr->lkey};
  struct ibv_recv_wr recv = {.sg_list = &to, .num_sge = 1}, *bad_recv;
  MUST(!ibv_post_recv(receiver, &recv, &bad_recv));
  snprintf(data[0], sizeof data[0], "%s", how);
  struct ibv_sge from = {(uintptr_t)data[0], sizeof data[0], mr->lkey};
  struct ibv_send_wr send = {.sg_list = &from, .num_sge = 1, .opcode = IBV_WR_SEND, .send_flags = IBV_SEND_SIGNALED};
  struct ibv_send_wr* bad_send;
  MUST(!ibv_post_send(sender, &send, &bad_send));
  for (int done = 0; done < 2;) {
    struct ibv_wc wc;
    const int n = ibv_poll_cq(cq, 1, &wc);
    MUST(n >= 0 && (n == 0 || wc.status == IBV_WC_SUCCESS));
    done += n;
  }
  printf("%-24s \"%s\" arrived\n", how, data[1]);
}

// ---- the two ways ----

static void by_the_call(void) { MUST(!mlx5dv_modify_qp_udp_sport(sender, ports[1])); }

// A command is a block of big-endian words; a field is named by the byte offset of its word and its lowest bit.
static void put(uint8_t* box, unsigned word, unsigned low_bit, uint32_t value) {
  uint32_t now;
  memcpy(&now, box + word, 4);
  now = htobe32(be32toh(now) | value << low_bit);
  memcpy(box + word, &now, 4);
}

// The same as one command: RTS2RTS_QP changes a queue pair that is ready to send and leaves it so.
static void by_the_command(void) {
  enum {
    kRts2Rts = 0x505,
    kQpc = 0x18,             // the queue pair context in the request
    kPath = kQpc + 0x18,     // its primary address path
    kOptMask95To32 = 0x108,  // which fields are to change, second part
    kUdpSport = 1 << 2,
  };
  uint8_t in[0x110] = {0}, out[0x10] = {0};
  put(in, 0x00, 16, kRts2Rts);
  put(in, 0x08, 0, sender->qp_num);
  put(in, kPath + 0x20, 0, ports[2]);
  put(in, kOptMask95To32 + 4, 0, kUdpSport);
  if (mlx5dv_devx_qp_modify(sender, in, sizeof in, out, sizeof out)) {
    uint32_t syndrome;
    memcpy(&syndrome, out + 4, 4);
    fprintf(stderr, "refused: status 0x%x, syndrome 0x%x (verbena explain says why)\n", out[0], be32toh(syndrome));
    exit(1);
  }
}

int main(void) {
  struct ibv_device** list = ibv_get_device_list(NULL);
  MUST(list && list[0]);
  struct mlx5dv_context_attr attr = {.flags = MLX5DV_CONTEXT_FLAGS_DEVX};
  MUST(context = mlx5dv_open_device(list[0], &attr));
  struct ibv_pd* pd = ibv_alloc_pd(context);
  MUST(pd && (cq = ibv_create_cq(context, 16, NULL, NULL, 0)));
  MUST(mr = ibv_reg_mr(pd, data, sizeof data, IBV_ACCESS_LOCAL_WRITE));
  MUST((sender = make_qp(pd)) && (receiver = make_qp(pd)));
  connect(sender, receiver->qp_num);
  connect(receiver, sender->qp_num);

  send_one("as connected");
  by_the_call();
  send_one("mlx5dv_modify_qp_udp_sport");
  by_the_command();
  send_one("RTS2RTS_QP by hand");
  return 0;
}
