// One-sided operations need nothing of the target's processor: they complete, with the right data, while the target
//
//   fault_passive stopped    is stopped by SIGSTOP
//   fault_passive sleeping   sleeps in a system call
//   fault_passive spinning   spins on its own memory and calls nothing
//   fault_passive guarded    sleeps, and neither side may look into the other's memory (another user, not dumpable)
#include <dlfcn.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <atomic>
#include <filesystem>
#include <stdexcept>

#include "endpoint.h"

using namespace faults;

namespace {

constexpr std::size_t kFlag = 0, kCounter = 64, kData = 4096, kDataBytes = 32768, kAnswer = 128;
constexpr unsigned kNobody = 65534;

std::atomic<std::uint32_t>& word(Endpoint& e, std::size_t offset) {
  return *reinterpret_cast<std::atomic<std::uint32_t>*>(e.buffer() + offset);
}

bool pattern_holds(const char* data, std::size_t bytes, unsigned seed) {
  for (std::size_t i = 0; i < bytes; ++i)
    if (data[i] != static_cast<char>(i * 7 + seed)) return false;
  return true;
}
void fill(char* data, std::size_t bytes, unsigned seed) {
  for (std::size_t i = 0; i < bytes; ++i) data[i] = static_cast<char>(i * 7 + seed);
}

// Another user, with a run directory of its own. The libraries are loaded first: they may lie in a folder that is
// closed to others (a clone below a home directory).
void become_nobody() {
  for (const char* library : {"libmlx5.so.1", "libverbena-nic.so"})
    if (!dlopen(library, RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE)) throw std::runtime_error(dlerror());
  if (setgid(kNobody) || setuid(kNobody)) throw std::runtime_error("setuid failed");
}
void own_run_directory(char* name) {
  if (!mkdtemp(name) || chown(name, kNobody, kNobody)) throw std::runtime_error("no run directory");
  setenv("VERBENA_RUN_DIR", name, 1);
}

// The target: does nothing, in the asked way, until the requester has finished; then checks what it was given.
int target(int socket, const std::string& how) {
  if (how == "guarded") {
    become_nobody();
    prctl(PR_SET_DUMPABLE, 0);
  }
  Endpoint me;
  fill(me.buffer() + kData, kDataBytes, 1);
  for (int i = 0; i < 2; ++i) me.post_recv();
  meet(me, socket);
  if (how == "spinning") {
    const double end = now_seconds() + 60;
    while (word(me, kFlag).load(std::memory_order_acquire) != 42)
      if (now_seconds() > end) return check(false, "the flag never came"), 0;
    word(me, kAnswer).store(43, std::memory_order_release);
  }
  receive<char>(socket);
  check(word(me, kFlag) == 42, "the flag was written");
  check(*reinterpret_cast<std::uint64_t*>(me.buffer() + kCounter) == 100, "the counter counted");
  check(pattern_holds(me.buffer() + kData, kDataBytes, 2), "the data arrived");
  return 0;
}

void expect_success(Endpoint& me, const char* what) {
  const ibv_wc wc = me.wait(20);
  check(wc.status == IBV_WC_SUCCESS,
        std::string(what) + ": " + (wc.status == Endpoint::kTimedOut ? "no completion" : ibv_wc_status_str(wc.status)));
}

void requester(const std::string& how) {
  Child other = spawn([&](int socket) { return target(socket, how); });
  if (how == "guarded") become_nobody();
  Endpoint me;
  const Remote remote = meet(me, other.socket);
  usleep(50000);  // the target has had time to reach its sleep
  if (how == "stopped") other.kill(SIGSTOP);

  me.post(IBV_WR_RDMA_READ, remote, kDataBytes, kData);
  expect_success(me, "read");
  check(pattern_holds(me.buffer() + kData, kDataBytes, 1), "the data read is right");
  fill(me.buffer() + kData, kDataBytes, 2);
  me.post(IBV_WR_RDMA_WRITE, remote, kDataBytes, kData);
  expect_success(me, "write");
  for (std::uint64_t i = 0; i < 100 && !failures(); ++i) {
    me.post_atomic_add(remote, 1, kCounter, kCounter);
    expect_success(me, "fetch and add");
    check(*reinterpret_cast<std::uint64_t*>(me.buffer() + kCounter) == i, "fetch and add gives the old value");
  }
  me.post(IBV_WR_SEND, remote, 16, kAnswer + 64);
  expect_success(me, "send");
  word(me, kFlag) = 42;
  me.post(IBV_WR_RDMA_WRITE, remote, 4, kFlag);
  expect_success(me, "write of the flag");
  if (how == "spinning") {
    const double end = now_seconds() + 20;
    do {
      me.post(IBV_WR_RDMA_READ, remote, 4, kAnswer);
      expect_success(me, "read of the answer");
    } while (word(me, kAnswer) != 43 && now_seconds() < end && !failures());
    check(word(me, kAnswer) == 43, "the spinning target has seen the flag and answered in its memory");
  }
  if (how == "stopped") other.kill(SIGCONT);
  send(other.socket, 'd');
  check(other.wait(20) == 0, "the target agrees");
}

}  // namespace

int main(int argc, char** argv) {
  const std::string how = argc > 1 ? argv[1] : "sleeping";
  if (how == "guarded" && getuid() != 0) {
    puts("skip: changing the user needs root");
    return 77;
  }
  char run_dir[] = "/dev/shm/verbena-guarded-XXXXXX";
  if (how == "guarded") own_run_directory(run_dir);
  const int status = report([&] { requester(how); });
  if (how == "guarded") {
    std::error_code ignored;
    std::filesystem::remove_all(run_dir, ignored);
  }
  return status;
}
