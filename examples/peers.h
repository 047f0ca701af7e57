// What the examples share: two processes that find each other over TCP, and the RoCE address of a port.
//
//   PROGRAM &              waits
//   PROGRAM localhost      finds the one that waits; messages go from this one to the other
#pragma once

#include <netdb.h>
#include <sys/socket.h>
#include <unistd.h>
#include <verbena/handles.h>

#include <cstdio>
#include <cstdlib>

namespace example {

class Peers {
 public:
  Peers(int argc, char** argv) : sends_(argc > 1) {
    const char* port = std::getenv("EXAMPLE_PORT") ? std::getenv("EXAMPLE_PORT") : "18515";
    addrinfo hints{}, *where = nullptr;
    hints.ai_family = AF_INET;
    hints.ai_socktype = SOCK_STREAM;
    if (getaddrinfo(sends_ ? argv[1] : "localhost", port, &hints, &where) != 0) fail("getaddrinfo");
    const int fd = socket(AF_INET, SOCK_STREAM, 0);
    const int on = 1;
    setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
    if (sends_) {
      for (int tries = 0; connect(fd, where->ai_addr, where->ai_addrlen) != 0; usleep(50000))
        if (++tries == 200) fail("connect");
      fd_ = fd;
    } else {
      if (bind(fd, where->ai_addr, where->ai_addrlen) != 0 || listen(fd, 1) != 0) fail("listen");
      fd_ = accept(fd, nullptr, nullptr);
      ::close(fd);
    }
    freeaddrinfo(where);
  }
  ~Peers() { ::close(fd_); }
  Peers(const Peers&) = delete;
  Peers& operator=(const Peers&) = delete;

  bool sends() const { return sends_; }
  // Gives the other process `mine`, waits for its own.
  template <class T>
  T exchange(const T& mine) const {
    T theirs;
    if (send(fd_, &mine, sizeof mine, MSG_NOSIGNAL) != ssize_t{sizeof mine} ||
        recv(fd_, &theirs, sizeof theirs, MSG_WAITALL) != ssize_t{sizeof theirs})
      fail("the other process is gone");
    return theirs;
  }
  // Both have come this far.
  void meet() const { exchange(char{0}); }

 private:
  [[noreturn]] static void fail(const char* what) {
    std::perror(what);
    std::exit(1);
  }
  bool sends_;
  int fd_ = -1;
};

// Finds the other process and runs the example; an error of the device becomes a line and exit status 1.
template <class Run>
int main(int argc, char** argv, Run run) {
  try {
    run(Peers(argc, argv));
    return 0;
  } catch (const verbena::Error& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 1;
  }
}

struct Address {
  ibv_gid gid;
  std::uint32_t index;  // of the GID, in this port's table
};

// The RoCE v2 address of the first port, IPv4.
inline Address roce_address(const verbena::Context& context) {
  ibv_gid_entry entries[64];
  const ssize_t n = ibv_query_gid_table(context.get(), entries, 64, 0);
  for (ssize_t i = 0; i < n; ++i)
    if (entries[i].gid_type == IBV_GID_TYPE_ROCE_V2 && entries[i].gid.raw[10] == 0xff)
      return {entries[i].gid, entries[i].gid_index};
  throw verbena::Error("no RoCE v2 address", ENOENT);
}

// A reliable connected queue pair of verbs, with its completion queue and a buffer.
class Connection {
 public:
  Connection(const verbena::Context& context, const verbena::Pd& pd)
      : context_(context),
        cq_(context, 16),
        mr_(pd, data_, sizeof data_, IBV_ACCESS_LOCAL_WRITE),
        qp_(pd, attributes(cq_)) {}

  verbena::Qp& qp() { return qp_; }
  char* data() { return data_; }

  void connect(const Peers& peers) {
    struct Hello {
      ibv_gid gid;
      std::uint32_t qpn;
    };
    const Address own = roce_address(context_);
    const Hello peer = peers.exchange(Hello{own.gid, qp_.number()});
    ibv_qp_attr a{};
    a.qp_state = IBV_QPS_INIT;
    a.port_num = 1;
    qp_.modify(a, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS);
    a.qp_state = IBV_QPS_RTR;
    a.path_mtu = IBV_MTU_1024;
    a.dest_qp_num = peer.qpn;
    a.min_rnr_timer = 12;
    a.ah_attr.is_global = 1;
    a.ah_attr.port_num = 1;
    a.ah_attr.grh.dgid = peer.gid;
    a.ah_attr.grh.sgid_index = static_cast<std::uint8_t>(own.index);
    a.ah_attr.grh.hop_limit = 64;
    qp_.modify(a, IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
                      IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER);
    a.qp_state = IBV_QPS_RTS;
    a.timeout = 14;
    a.retry_cnt = a.rnr_retry = 7;
    qp_.modify(a, IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_SQ_PSN |
                      IBV_QP_MAX_QP_RD_ATOMIC);
    peers.meet();
  }

  void post_recv() {
    ibv_sge to{reinterpret_cast<std::uintptr_t>(data_), sizeof data_, mr_->lkey};
    ibv_recv_wr wr{}, *bad;
    wr.sg_list = &to;
    wr.num_sge = 1;
    if (const int error = ibv_post_recv(qp_.get(), &wr, &bad)) throw verbena::Error("ibv_post_recv", error);
  }
  void post_send(const char* text) {
    std::snprintf(data_, sizeof data_, "%s", text);
    ibv_sge from{reinterpret_cast<std::uintptr_t>(data_), sizeof data_, mr_->lkey};
    ibv_send_wr wr{}, *bad;
    wr.sg_list = &from;
    wr.num_sge = 1;
    wr.opcode = IBV_WR_SEND;
    wr.send_flags = IBV_SEND_SIGNALED;
    if (const int error = ibv_post_send(qp_.get(), &wr, &bad)) throw verbena::Error("ibv_post_send", error);
  }
  void wait() {
    ibv_wc wc{};
    int n = 0;
    while ((n = ibv_poll_cq(cq_.get(), 1, &wc)) == 0) {
    }
    if (n < 0 || wc.status != IBV_WC_SUCCESS) throw verbena::Error(ibv_wc_status_str(wc.status), EIO);
  }

 private:
  static ibv_qp_init_attr attributes(const verbena::Cq& cq) {
    ibv_qp_init_attr init{};
    init.send_cq = init.recv_cq = cq.get();
    init.cap.max_send_wr = init.cap.max_recv_wr = 4;
    init.cap.max_send_sge = init.cap.max_recv_sge = 1;
    init.qp_type = IBV_QPT_RC;
    return init;
  }
  const verbena::Context& context_;
  verbena::Cq cq_;
  char data_[64] = {};
  verbena::Mr mr_;
  verbena::Qp qp_;
};

}  // namespace example
