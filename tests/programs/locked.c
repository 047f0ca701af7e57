// A program that has all its future memory locked, and then opens the device and talks to a peer: what lies behind either
// is large and sparse, and stays so.
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "pair.h"

struct Side {
  struct World world;
  struct ibv_cq* cq;
  struct ibv_qp* qp;
  struct ibv_mr* mr;
  char memory[64];
};
struct Address {
  uint32_t qpn, rkey;
  uint64_t memory;
};

static struct Address open_side(struct Side* side) {
  side->world = open_world();
  CHECK(side->cq = ibv_create_cq(side->world.context, 8, NULL, NULL, 0));
  side->qp = make_qp(&side->world, IBV_QPT_RC, side->cq, side->cq, NULL);
  CHECK(side->mr = ibv_reg_mr(side->world.pd, side->memory, sizeof side->memory, kAllAccess));
  return (struct Address){side->qp->qp_num, side->mr->rkey, (uintptr_t)side->memory};
}

static void write_to(struct Side* side, const struct Address* peer) {
  struct ibv_sge piece = {(uintptr_t)side->memory, sizeof side->memory, side->mr->lkey};
  struct ibv_send_wr wr = {.sg_list = &piece, .num_sge = 1, .opcode = IBV_WR_RDMA_WRITE, .send_flags = IBV_SEND_SIGNALED}, *bad;
  wr.wr.rdma.remote_addr = peer->memory;
  wr.wr.rdma.rkey = peer->rkey;
  CHECK(ibv_post_send(side->qp, &wr, &bad) == 0 && next_wc(side->cq).status == IBV_WC_SUCCESS);
}

static long resident(void) {
  long pages = 0;
  FILE* file = fopen("/proc/self/statm", "r");
  CHECK(file && fscanf(file, "%*d %ld", &pages) == 1);
  fclose(file);
  return pages * sysconf(_SC_PAGESIZE);
}

static void peer(int in, int out) {
  struct Side side = {0};
  struct Address mine = open_side(&side), other;
  CHECK(write(out, &mine, sizeof mine) == sizeof mine && read(in, &other, sizeof other) == sizeof other);
  connect_qp(&side.world, side.qp, other.qpn);
  CHECK(write(out, "", 1) == 1 && read(in, &other, 1) == 1);
  _exit(strcmp(side.memory, "written") != 0);
}

int main(void) {
  enum { kEnough = 1 << 28 };
  int to[2], from[2], ended = 1;
  char answer;
  CHECK(pipe(to) == 0 && pipe(from) == 0);
  const pid_t child = fork();
  if (child == 0) peer(to[0], from[1]);
  // Without the right to lock that much there is nothing to be seen.
  const int locked = mlockall(MCL_FUTURE) == 0;
  if (!locked || (geteuid() != 0 && mmap(NULL, kEnough, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0) == MAP_FAILED)) {
    puts("not permitted");
    munlockall();
  }
  struct Side side = {0};
  struct Address mine = open_side(&side), other;
  strcpy(side.memory, "written");
  CHECK(read(from[0], &other, sizeof other) == sizeof other && write(to[1], &mine, sizeof mine) == sizeof mine);
  connect_qp(&side.world, side.qp, other.qpn);
  CHECK(read(from[0], &answer, 1) == 1);
  write_to(&side, &other);
  CHECK(resident() < kEnough);
  CHECK(write(to[1], "", 1) == 1 && waitpid(child, &ended, 0) == child && WIFEXITED(ended) && WEXITSTATUS(ended) == 0);
  CHECK(resident() < kEnough);
  CHECK(!ibv_destroy_qp(side.qp) && !ibv_dereg_mr(side.mr) && !ibv_destroy_cq(side.cq));
  close_world(&side.world);
  puts("ok");
  return 0;
}
