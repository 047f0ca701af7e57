// Our own libraries in a process that has a virtual node as well (`verbena run --stack system` on a program whose RUNPATH
// leads to them): they work on the node, with one device between them, and neither waits for the other. Without a node the
// same holds of the library alone.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "pair.h"

// What the node stands in front of, over and over: files that might be nodes, pipes that might be event channels.
static atomic_int stop;
static void* busy_files(void* argument) {
  while (!atomic_load(&stop)) {
    struct stat status;
    int ends[2];
    const int file = memfd_create("unlinked", MFD_CLOEXEC);
    CHECK(file >= 0 && fstat(file, &status) == 0 && S_ISREG(status.st_mode) && pipe(ends) == 0);
    close(ends[0]);
    close(ends[1]);
    close(file);
  }
  return argument;
}

static void exchange(struct World* w) {
  char memory[64] = "to be written";
  struct ibv_cq* cq = ibv_create_cq(w->context, 8, NULL, NULL, 0);
  CHECK(cq);
  struct ibv_qp* qp = make_qp(w, IBV_QPT_RC, cq, cq, NULL);
  struct ibv_mr* mr = ibv_reg_mr(w->pd, memory, sizeof memory, kAllAccess);
  CHECK(mr);
  connect_qp(w, qp, qp->qp_num);
  struct ibv_sge piece = {(uintptr_t)memory, 16, mr->lkey};
  struct ibv_send_wr wr = {.sg_list = &piece, .num_sge = 1, .opcode = IBV_WR_RDMA_WRITE, .send_flags = IBV_SEND_SIGNALED}, *bad;
  wr.wr.rdma.remote_addr = (uintptr_t)memory + 32;
  wr.wr.rdma.rkey = mr->rkey;
  CHECK(ibv_post_send(qp, &wr, &bad) == 0);
  CHECK(next_wc(cq).status == IBV_WC_SUCCESS && memcmp(memory, memory + 32, 16) == 0);
  CHECK(!ibv_destroy_qp(qp) && !ibv_dereg_mr(mr) && !ibv_destroy_cq(cq));
}

int main(void) {
  void* has_node = dlopen("libverbena-preload.so", RTLD_NOW | RTLD_NOLOAD);
  struct stat by_path, by_descriptor;
  if (has_node) CHECK(stat("/dev/infiniband/uverbs0", &by_path) == 0 && S_ISCHR(by_path.st_mode));
  pthread_t thread;
  CHECK(pthread_create(&thread, NULL, busy_files, NULL) == 0);

  struct World w = open_world();
  CHECK(fstat(w.context->cmd_fd, &by_descriptor) == 0);
  if (has_node) CHECK(S_ISCHR(by_descriptor.st_mode) && by_descriptor.st_rdev == by_path.st_rdev);
  exchange(&w);
  for (int i = 0; i < 10; ++i) {
    const pid_t child = fork();
    if (child == 0) {
      struct World mine = open_world();
      exchange(&mine);
      close_world(&mine);
      _exit(0);
    }
    int ended = 1;
    CHECK(child > 0 && waitpid(child, &ended, 0) == child && WIFEXITED(ended) && WEXITSTATUS(ended) == 0);
  }
  exchange(&w);
  close_world(&w);
  atomic_store(&stop, 1);
  CHECK(pthread_join(thread, NULL) == 0);
  puts("ok");
  return 0;
}
