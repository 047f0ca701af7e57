// kill -9 of one side: the survivor's next request ends with what a NIC gives when nobody answers (retry exceeded),
// within the retry budget of its QP; what follows is flushed; and a new pair works.
//
//   fault_kill target      the side that only receives dies
//   fault_kill requester   the side that was sending dies, in the middle of its traffic
//   fault_kill rounds N    N pairs in turn, killed at random moments
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "endpoint.h"

using namespace faults;

namespace {

constexpr Timing kTiming{.timeout = 12, .retry_count = 3, .rnr_retry = 3};  // 16.8 ms each

// Sends to `remote` until killed.
int endless_traffic(int socket) {
  Endpoint me;
  const Remote remote = meet(me, socket, kTiming);
  for (std::uint64_t i = 0;; ++i) {
    me.post(i % 2 ? IBV_WR_RDMA_WRITE : IBV_WR_RDMA_READ, remote, 4096);
    if (me.wait(20).status != IBV_WC_SUCCESS) pause();
  }
}

// Does nothing at all, like a target that waits for one-sided traffic.
int silent_target(int socket) {
  Endpoint me;
  meet(me, socket, kTiming);
  for (;;) pause();
}

void expect_given_up(Endpoint& me, const Remote& remote) {
  const double start = now_seconds();
  me.post(IBV_WR_RDMA_WRITE, remote, 64, 0, 1);
  me.post(IBV_WR_RDMA_WRITE, remote, 64, 0, 2);
  me.post_recv(3);
  const ibv_wc first = me.wait(budget_seconds(kTiming) + 10);
  check(first.status == IBV_WC_RETRY_EXC_ERR && first.wr_id == 1,
        std::string("the request to a dead peer ended as ") + ibv_wc_status_str(first.status));
  check(now_seconds() - start <= budget_seconds(kTiming), "it took " + std::to_string(now_seconds() - start) + " s");
  check(first.vendor_err == 0x81, "vendor error " + std::to_string(first.vendor_err) + ", hardware gives 0x81");
  int flushed = 0;
  for (int i = 0; i < 2; ++i) flushed += me.wait(5).status == IBV_WC_WR_FLUSH_ERR;
  check(flushed == 2, "what was posted behind it is flushed");
  ibv_qp_attr attr{};
  ibv_qp_init_attr init{};
  ibv_query_qp(me.qp(), &attr, IBV_QP_STATE, &init);
  check(attr.qp_state == IBV_QPS_ERR, "the QP is in the error state");
}

void expect_new_pair_works() {
  Child other = spawn(silent_target);
  Endpoint me;
  const Remote remote = meet(me, other.socket, kTiming);
  strcpy(me.buffer(), "again");
  me.post(IBV_WR_RDMA_WRITE, remote, 64);
  check(me.wait(10).status == IBV_WC_SUCCESS, "a new pair: write");
  memset(me.buffer(), 0, 64);
  me.post(IBV_WR_RDMA_READ, remote, 64);
  check(me.wait(10).status == IBV_WC_SUCCESS, "a new pair: read");
  check(!strcmp(me.buffer(), "again"), "a new pair: the data is there");
  other.kill(SIGKILL);
  other.wait(5);
}

void one_death(int (*victim)(int), unsigned after_us) {
  Child other = spawn(victim);
  Endpoint me;
  const Remote remote = meet(me, other.socket, kTiming);
  me.post(IBV_WR_RDMA_WRITE, remote, 64);
  check(me.wait(10).status == IBV_WC_SUCCESS, "before the death");
  usleep(after_us);
  other.kill(SIGKILL);
  check(other.wait(5) == 128 + SIGKILL, "the victim was alive until then");
  expect_given_up(me, remote);
}

}  // namespace

int main(int argc, char** argv) {
  const std::string what = argc > 1 ? argv[1] : "target";
  return report([&] {
    if (what == "rounds") {
      srand(1);
      for (int i = 0; i < (argc > 2 ? atoi(argv[2]) : 20) && !failures(); ++i)
        one_death(i % 2 ? endless_traffic : silent_target, static_cast<unsigned>(rand() % 20000));
    } else {
      one_death(what == "requester" ? endless_traffic : silent_target, 20000);
    }
    expect_new_pair_works();
  });
}
