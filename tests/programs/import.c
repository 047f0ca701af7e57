// Contexts over a descriptor that is passed on (ibv_import_device, ibv_import_pd, ibv_import_mr, ibv_import_dm): in the
// process that opened it they share everything with it. Another process is refused: what it would share is in the memory
// of the first (docs/fidelity.md).
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "pair.h"

struct Handles {
  uint32_t pd, mr;
};

static void pass(int socket, int fd, struct Handles handles) {
  union {
    struct cmsghdr header;
    char room[CMSG_SPACE(sizeof(int))];
  } control = {.room = {0}};
  struct iovec piece = {&handles, sizeof handles};
  struct msghdr message = {.msg_iov = &piece, .msg_iovlen = 1, .msg_control = &control, .msg_controllen = sizeof control};
  struct cmsghdr* part = CMSG_FIRSTHDR(&message);
  part->cmsg_level = SOL_SOCKET;
  part->cmsg_type = SCM_RIGHTS;
  part->cmsg_len = CMSG_LEN(sizeof(int));
  memcpy(CMSG_DATA(part), &fd, sizeof fd);
  CHECK(sendmsg(socket, &message, 0) == sizeof handles);
}

static int receive(int socket, struct Handles* handles) {
  union {
    struct cmsghdr header;
    char room[CMSG_SPACE(sizeof(int))];
  } control;
  struct iovec piece = {handles, sizeof *handles};
  struct msghdr message = {.msg_iov = &piece, .msg_iovlen = 1, .msg_control = &control, .msg_controllen = sizeof control};
  int fd = -1;
  CHECK(recvmsg(socket, &message, 0) == sizeof *handles && CMSG_FIRSTHDR(&message));
  memcpy(&fd, CMSG_DATA(CMSG_FIRSTHDR(&message)), sizeof fd);
  return fd;
}

// Another process, which has a device of its own as well.
static void other_process(int socket) {
  struct Handles handles;
  struct World mine = open_world();
  const int fd = receive(socket, &handles);
  errno = 0;
  CHECK(ibv_import_device(fd) == NULL && errno == EINVAL);
  CHECK(!close(fd));
  close_world(&mine);
  _exit(0);
}

static void same_process(const struct World* w, const struct ibv_mr* mr, char* memory) {
  struct ibv_context* context = ibv_import_device(dup(w->context->cmd_fd));
  CHECK(context);
  struct ibv_pd* pd = ibv_import_pd(context, w->pd->handle);
  CHECK(pd);
  struct ibv_mr* imported = ibv_import_mr(pd, mr->handle);
  CHECK(imported && imported->lkey == mr->lkey && imported->rkey == mr->rkey);
  errno = 0;
  CHECK(ibv_import_mr(pd, 12345) == NULL && errno == ENOENT);

  struct World shared = *w;
  shared.context = context;
  shared.pd = pd;
  struct ibv_cq* cq = ibv_create_cq(context, 8, NULL, NULL, 0);
  CHECK(cq);
  struct ibv_qp* qp = make_qp(&shared, IBV_QPT_RC, cq, cq, NULL);
  connect_qp(&shared, qp, qp->qp_num);
  struct ibv_sge piece = {(uintptr_t)memory, 16, imported->lkey};
  struct ibv_send_wr wr = {.sg_list = &piece, .num_sge = 1, .opcode = IBV_WR_RDMA_WRITE, .send_flags = IBV_SEND_SIGNALED}, *bad;
  wr.wr.rdma.remote_addr = (uintptr_t)memory + 32;
  wr.wr.rdma.rkey = imported->rkey;
  CHECK(ibv_post_send(qp, &wr, &bad) == 0 && next_wc(cq).status == IBV_WC_SUCCESS);
  CHECK(memcmp(memory, memory + 32, 16) == 0);
  CHECK(!ibv_destroy_qp(qp) && !ibv_destroy_cq(cq));
  ibv_unimport_mr(imported);
  ibv_unimport_pd(pd);
  CHECK(!ibv_close_device(context));
}

int main(void) {
  int sockets[2], ended = 1;
  char memory[64] = "through another context";
  CHECK(socketpair(AF_UNIX, SOCK_STREAM, 0, sockets) == 0);
  const pid_t child = fork();
  if (child == 0) other_process(sockets[1]);
  struct World w = open_world();
  struct ibv_mr* mr = ibv_reg_mr(w.pd, memory, sizeof memory, kAllAccess);
  CHECK(mr);
  pass(sockets[0], w.context->cmd_fd, (struct Handles){w.pd->handle, mr->handle});
  CHECK(waitpid(child, &ended, 0) == child && WIFEXITED(ended) && WEXITSTATUS(ended) == 0);
  same_process(&w, mr, memory);
  CHECK(!ibv_dereg_mr(mr));
  close_world(&w);
  puts("ok");
  return 0;
}
