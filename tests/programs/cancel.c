// Threads that are cancelled in what they call end there, as with any library: blocked in an event of a device or a
// completion channel, in a socket or a pipe, or on their way into a file while a device is open.
#include <fcntl.h>
#include <pthread.h>
#include <sys/socket.h>
#include <unistd.h>

#include "pair.h"

struct Place {
  struct ibv_context* context;
  struct ibv_comp_channel* channel;
  int socket, pipe;
};

static void* in_async_event(void* argument) {
  struct ibv_async_event event;
  ibv_get_async_event(((struct Place*)argument)->context, &event);
  return NULL;
}
static void* in_cq_event(void* argument) {
  struct ibv_cq* cq;
  void* context;
  ibv_get_cq_event(((struct Place*)argument)->channel, &cq, &context);
  return NULL;
}
static void* in_recv(void* argument) {
  char room[8];
  recv(((struct Place*)argument)->socket, room, sizeof room, 0);
  return NULL;
}
static void* in_recvmsg(void* argument) {
  char room[8];
  struct iovec piece = {room, sizeof room};
  struct msghdr message = {.msg_iov = &piece, .msg_iovlen = 1};
  recvmsg(((struct Place*)argument)->socket, &message, 0);
  return NULL;
}
static void* in_read(void* argument) {
  char room[8];
  if (read(((struct Place*)argument)->pipe, room, sizeof room) < 0) return argument;
  return NULL;
}
// Cancelled before it comes to open(2), in a folder of the device's and elsewhere.
static void* before(const char* path) {
  int old, fd;
  pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &old);
  usleep(100000);
  pthread_setcancelstate(old, NULL);
  fd = open(path, O_RDONLY);
  if (fd >= 0) close(fd);
  return NULL;
}
static void* before_open(void* argument) {
  (void)argument;
  return before("/proc/self/status");
}
static void* before_attribute(void* argument) {
  (void)argument;
  return before("/sys/class/infiniband/mlx5_0/fw_ver");
}

int main(void) {
  void* (*const calls[])(void*) = {in_async_event, in_cq_event, in_recv, in_recvmsg, in_read, before_open, before_attribute};
  struct World w = open_world();
  int sockets[2], pipes[2];
  struct Place place;
  CHECK(socketpair(AF_UNIX, SOCK_STREAM, 0, sockets) == 0 && pipe(pipes) == 0);
  place.context = w.context;
  place.channel = ibv_create_comp_channel(w.context);
  place.socket = sockets[0];
  place.pipe = pipes[0];
  CHECK(place.channel);
  for (unsigned i = 0; i < sizeof calls / sizeof *calls; ++i) {
    pthread_t thread;
    void* result = NULL;
    CHECK(pthread_create(&thread, NULL, calls[i], &place) == 0);
    usleep(50000);
    CHECK(pthread_cancel(thread) == 0 && pthread_join(thread, &result) == 0);
    CHECK(result == PTHREAD_CANCELED);
  }
  // Nothing that they held is held any more.
  struct ibv_cq* cq = ibv_create_cq(w.context, 16, NULL, place.channel, 0);
  CHECK(cq && !ibv_destroy_cq(cq) && !ibv_destroy_comp_channel(place.channel));
  CHECK(!ibv_dealloc_pd(w.pd) && !ibv_close_device(w.context));
  puts("ok");
  return 0;
}
