// One end of an RC connection, by the public verbs API only: what the fault programs share.
//
// Every program prints one line saying what it found and exits with the number of checks that failed.
#pragma once

#include <infiniband/verbs.h>
#include <sys/types.h>

#include <cstdint>
#include <functional>
#include <string>

namespace faults {

// What the other side must know. Sent over a socket pair.
struct Remote {
  std::uint32_t qpn, psn, rkey;
  std::uint64_t va;
  union ibv_gid gid;
};

struct Timing {
  std::uint8_t timeout = 10;  // 4.096 us * 2^10 = 4.2 ms
  std::uint8_t retry_count = 3;
  std::uint8_t rnr_retry = 3;
};

// The longest that a QP of such timing may take to give up, with a factor for busy machines.
double budget_seconds(const Timing& timing);

class Endpoint {
 public:
  static constexpr std::size_t kBufferBytes = 1 << 16;

  // Opens the first device and makes a PD, a CQ, a buffer of `bytes` (private memory) and an RC QP in INIT.
  // Throws std::runtime_error with what failed.
  explicit Endpoint(std::size_t bytes = kBufferBytes);
  ~Endpoint();
  Endpoint(const Endpoint&) = delete;
  Endpoint& operator=(const Endpoint&) = delete;

  Remote local() const;
  void connect(const Remote& remote, const Timing& timing = {});

  void post_recv(std::uint64_t id = 0);
  // offset: the same in both buffers.
  void post(ibv_wr_opcode opcode, const Remote& remote, std::size_t bytes, std::size_t offset = 0,
            std::uint64_t id = 0);
  void post_atomic_add(const Remote& remote, std::uint64_t add, std::size_t remote_offset, std::size_t local_offset);

  // The next completion; its status is IBV_WC_GENERAL_ERR + 1000 if none came in time.
  ibv_wc wait(double seconds);
  static constexpr int kTimedOut = IBV_WC_GENERAL_ERR + 1000;

  char* buffer() { return buffer_; }
  ibv_context* context() { return context_; }
  ibv_qp* qp() { return qp_; }
  ibv_cq* cq() { return cq_; }

 private:
  ibv_context* context_ = nullptr;
  ibv_pd* pd_ = nullptr;
  ibv_cq* cq_ = nullptr;
  ibv_mr* mr_ = nullptr;
  ibv_qp* qp_ = nullptr;
  char* buffer_ = nullptr;
  std::size_t bytes_ = 0;
  union ibv_gid gid_ = {};
  int gid_index_ = 0;
};

// A child process and a socket to it. The child runs `body(socket)` and exits with what it returns.
struct Child {
  pid_t pid = 0;
  int socket = -1;
  // Its exit status; 128 + signal if one ended it; -1 if it is still there after `seconds` (it is then killed).
  int wait(double seconds);
  void kill(int signum);
};
Child spawn(const std::function<int(int socket)>& body);

// Exchange of one value over the socket; false if the other side is gone.
bool send_bytes(int socket, const void* data, std::size_t size);
bool receive_bytes(int socket, void* data, std::size_t size);
template <class T>
bool send(int socket, const T& value) {
  return send_bytes(socket, &value, sizeof value);
}
template <class T>
T receive(int socket) {
  T value{};
  if (!receive_bytes(socket, &value, sizeof value)) value = T{};
  return value;
}
// Swaps addresses with the other side and connects.
Remote meet(Endpoint& endpoint, int socket, const Timing& timing = {});

double now_seconds();

// Counts and prints failed checks.
bool check(bool good, const std::string& what);
int failures();
// Runs `body`, turning an exception into a failed check; returns the exit status for main().
int report(const std::function<void()>& body);

}  // namespace faults
