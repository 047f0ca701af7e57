// Many processes on one NIC at once: N processes open it, pair off, and move checked data, all at the same time.
//
//   fault_many [N]    default 100
#include <stdlib.h>
#include <string.h>

#include <vector>

#include "endpoint.h"

using namespace faults;

namespace {

constexpr int kMessages = 200;

// One of a pair. The peer is reached over `socket`; `start` holds everyone until all are there.
int one_process(int socket, unsigned number) {
  Endpoint me(8192);
  send(socket, me.local());
  const Remote remote = receive<Remote>(socket);  // the parent passes addresses on
  me.connect(remote, {.timeout = 18, .retry_count = 7, .rnr_retry = 7});
  send(socket, 'r');
  receive<char>(socket);
  for (int i = 1; i <= kMessages; ++i) {
    const std::uint64_t value = std::uint64_t{number} << 32 | static_cast<unsigned>(i);
    memcpy(me.buffer() + 4096, &value, 8);
    me.post(IBV_WR_RDMA_WRITE, remote, 8, 4096 + 8 * (number & 1));
    const ibv_wc wc = me.wait(60);
    if (!check(wc.status == IBV_WC_SUCCESS, std::string("write ended as ") + ibv_wc_status_str(wc.status))) return 0;
  }
  send(socket, 'd');
  receive<char>(socket);
  return 0;
}

void run(unsigned count) {
  std::vector<Child> children;
  for (unsigned i = 0; i < count; ++i) children.push_back(spawn([i](int socket) { return one_process(socket, i); }));
  std::vector<Remote> addresses;
  for (Child& child : children) addresses.push_back(receive<Remote>(child.socket));
  for (unsigned i = 0; i < count; ++i) {
    if (!check(addresses[i].qpn != 0, "process " + std::to_string(i) + " opened the NIC")) continue;
    for (unsigned j = 0; j < i; ++j)
      check(addresses[j].qpn != addresses[i].qpn, "two processes have the same QP number");
    send(children[i].socket, addresses[i ^ 1]);
  }
  for (Child& child : children) receive<char>(child.socket);
  for (Child& child : children) send(child.socket, 'g');
  unsigned done = 0;
  for (Child& child : children) done += receive<char>(child.socket) == 'd';
  for (Child& child : children) send(child.socket, 'e');
  check(done == count, std::to_string(done) + " of " + std::to_string(count) + " processes finished");
  for (Child& child : children) check(child.wait(30) == 0, "a process ended badly");
}

}  // namespace

int main(int argc, char** argv) {
  const unsigned count = argc > 1 ? static_cast<unsigned>(atoi(argv[1])) & ~1u : 100;
  return report([&] { run(count); });
}
