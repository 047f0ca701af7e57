// fork(2) while the NIC is in use: the parent's connections go on; the child, which owns none of them, may open the
// NIC for itself and talk to the parent.
//
//   fault_fork init    after ibv_fork_init()
//   fault_fork plain   without it
#include <string.h>
#include <unistd.h>

#include <atomic>
#include <cstdio>
#include <thread>

#include "endpoint.h"

using namespace faults;

namespace {

void round_trip(Endpoint& a, const Remote& to, unsigned seed, const char* when) {
  memset(a.buffer(), static_cast<int>(seed), 4096);
  a.post(IBV_WR_RDMA_WRITE, to, 4096);
  const ibv_wc wc = a.wait(20);
  check(wc.status == IBV_WC_SUCCESS, std::string(when) + ": write");
  memset(a.buffer(), 0, 4096);
  a.post(IBV_WR_RDMA_READ, to, 4096);
  check(a.wait(20).status == IBV_WC_SUCCESS, std::string(when) + ": read");
  check(a.buffer()[4095] == static_cast<char>(seed), std::string(when) + ": the data is there");
}

// Forks while other threads command the NIC and use it: each child, which opens it for itself, finds every lock free.
void fork_beside_threads() {
#if defined(__SANITIZE_ADDRESS__)
  // AddressSanitizer's own allocator leaves its locks as they are (GCC 12): a child waits for a thread it has not.
  std::puts("not beside threads: AddressSanitizer");
  return;
#endif
  Endpoint busy;
  busy.connect(busy.local());
  std::atomic<bool> stop = false;
  ibv_pd* pd = ibv_alloc_pd(busy.context());
  std::thread commands([&] {
    alignas(4096) static char memory[4096];
    while (!stop) {
      ibv_cq* cq = ibv_create_cq(busy.context(), 16, nullptr, nullptr, 0);
      ibv_mr* mr = ibv_reg_mr(pd, memory, sizeof memory, IBV_ACCESS_LOCAL_WRITE);
      if (!check(cq != nullptr && mr != nullptr, "commands go on beside forks")) return;
      ibv_dereg_mr(mr);
      ibv_destroy_cq(cq);
    }
  });
  std::thread traffic([&] {
    const Remote self = busy.local();
    while (!stop) {
      busy.post(IBV_WR_RDMA_WRITE, self, 64);
      if (!check(busy.wait(20).status == IBV_WC_SUCCESS, "traffic goes on beside forks")) return;
    }
  });
  for (unsigned i = 0; i < 100 && failures() == 0; ++i) {
    Child child = spawn([](int) {
      Endpoint mine;
      return 0;
    });
    check(child.wait(10) == 0, "a child opens the NIC, whatever the parent's threads were at: fork " + std::to_string(i));
  }
  stop = true;
  commands.join();
  traffic.join();
  ibv_dealloc_pd(pd);
}

void run(bool with_init) {
  if (with_init) check(ibv_fork_init() == 0, "ibv_fork_init");
  Child passive = spawn([](int socket) {
    Endpoint me;
    meet(me, socket);
    receive<char>(socket);
    return 0;
  });
  Endpoint me;
  const Remote remote = meet(me, passive.socket);
  round_trip(me, remote, 1, "before any fork");

  for (unsigned i = 0; i < 5; ++i) {  // children that touch nothing, as system(3) makes them
    Child idle = spawn([](int) { return 0; });
    round_trip(me, remote, 10 + i, "while a child lives");
    check(idle.wait(10) == 0, "an idle child ends well");
  }
  Child exec = spawn([](int) { return execl("/bin/true", "true", nullptr); });
  check(exec.wait(10) == 0, "a child that executes another program ends well");

  Endpoint second;
  Child active = spawn([&](int socket) {  // a child that opens the NIC anew, with the parent's objects in its memory
    Endpoint mine;
    const Remote parent = meet(mine, socket);
    round_trip(mine, parent, 77, "from the child");
    send(socket, 'r');  // both directions use the same two buffers: one after the other
    receive<char>(socket);
    return 0;
  });
  const Remote child = meet(second, active.socket);
  round_trip(me, remote, 50, "beside the child's own traffic");
  receive<char>(active.socket);
  round_trip(second, child, 78, "to the child");
  send(active.socket, 'd');
  check(active.wait(20) == 0, "the child with its own connection ends well");
  round_trip(me, remote, 60, "after the children are gone");
  send(passive.socket, 'd');
  check(passive.wait(20) == 0, "the passive side ends well");
  fork_beside_threads();
}

}  // namespace

int main(int argc, char** argv) {
  const bool with_init = argc > 1 && !strcmp(argv[1], "init");
  return report([&] { run(with_init); });
}
