#include "endpoint.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <cstdio>
#include <stdexcept>

namespace faults {
namespace {

int failed_checks = 0;

template <class T>
T need(T value, const char* what) {
  if (!value) throw std::runtime_error(std::string(what) + ": " + strerror(errno));
  return value;
}
void need_zero(int error, const char* what) {
  if (error) throw std::runtime_error(std::string(what) + ": " + strerror(error < 0 ? errno : error));
}

// The first RoCE v2 GID of an IPv4 address, else any GID that is not zero.
int choose_gid(ibv_context* context, union ibv_gid* gid) {
  int fallback = 0;
  for (int i = 0; i < 16; ++i) {
    ibv_gid_entry entry{};
    if (ibv_query_gid_ex(context, 1, static_cast<std::uint32_t>(i), &entry, 0)) continue;
    fallback = i;
    *gid = entry.gid;
    const bool ipv4 = entry.gid.global.subnet_prefix == 0 && entry.gid.raw[10] == 0xff && entry.gid.raw[11] == 0xff;
    if (entry.gid_type == IBV_GID_TYPE_ROCE_V2 && ipv4) return i;
  }
  return fallback;
}

}  // namespace

double now_seconds() {
  timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return static_cast<double>(t.tv_sec) + static_cast<double>(t.tv_nsec) * 1e-9;
}

double budget_seconds(const Timing& timing) {
  const double one = 4.096e-6 * static_cast<double>(1u << timing.timeout);
  // A NIC may wait up to four times the time it was given, and waits once more than it retries.
  return 4 * one * (timing.retry_count + 1) + 2.0;
}

Endpoint::Endpoint(std::size_t bytes) : bytes_(bytes) {
  int count = 0;
  ibv_device** list = need(ibv_get_device_list(&count), "ibv_get_device_list");
  if (count == 0) throw std::runtime_error("no device");
  context_ = need(ibv_open_device(list[0]), "ibv_open_device");
  ibv_free_device_list(list);
  pd_ = need(ibv_alloc_pd(context_), "ibv_alloc_pd");
  cq_ = need(ibv_create_cq(context_, 256, nullptr, nullptr, 0), "ibv_create_cq");
  void* memory = nullptr;
  need_zero(posix_memalign(&memory, 4096, bytes), "posix_memalign");
  buffer_ = static_cast<char*>(memory);
  memset(buffer_, 0, bytes);
  const int access =
      IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC;
  mr_ = need(ibv_reg_mr(pd_, buffer_, bytes, access), "ibv_reg_mr");
  ibv_qp_init_attr init{};
  init.send_cq = init.recv_cq = cq_;
  init.qp_type = IBV_QPT_RC;
  init.cap = {.max_send_wr = 64, .max_recv_wr = 64, .max_send_sge = 1, .max_recv_sge = 1, .max_inline_data = 0};
  qp_ = need(ibv_create_qp(pd_, &init), "ibv_create_qp");
  ibv_qp_attr attr{};
  attr.qp_state = IBV_QPS_INIT;
  attr.port_num = 1;
  attr.qp_access_flags = static_cast<unsigned>(access);
  need_zero(ibv_modify_qp(qp_, &attr, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS), "to INIT");
  gid_index_ = choose_gid(context_, &gid_);
}

Endpoint::~Endpoint() {
  if (qp_) ibv_destroy_qp(qp_);
  if (mr_) ibv_dereg_mr(mr_);
  if (cq_) ibv_destroy_cq(cq_);
  if (pd_) ibv_dealloc_pd(pd_);
  if (context_) ibv_close_device(context_);
  free(buffer_);
}

Remote Endpoint::local() const {
  return {qp_->qp_num, 0x1000, mr_->rkey, reinterpret_cast<std::uintptr_t>(buffer_), gid_};
}

void Endpoint::connect(const Remote& remote, const Timing& timing) {
  ibv_qp_attr attr{};
  attr.qp_state = IBV_QPS_RTR;
  attr.path_mtu = IBV_MTU_1024;
  attr.dest_qp_num = remote.qpn;
  attr.rq_psn = remote.psn;
  attr.max_dest_rd_atomic = 4;
  attr.min_rnr_timer = 1;
  attr.ah_attr.is_global = 1;
  attr.ah_attr.port_num = 1;
  attr.ah_attr.grh.dgid = remote.gid;
  attr.ah_attr.grh.sgid_index = static_cast<std::uint8_t>(gid_index_);
  attr.ah_attr.grh.hop_limit = 64;
  need_zero(ibv_modify_qp(qp_, &attr,
                          IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
                              IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER),
            "to RTR");
  attr = {};
  attr.qp_state = IBV_QPS_RTS;
  attr.sq_psn = local().psn;
  attr.timeout = timing.timeout;
  attr.retry_cnt = timing.retry_count;
  attr.rnr_retry = timing.rnr_retry;
  attr.max_rd_atomic = 4;
  need_zero(ibv_modify_qp(qp_, &attr,
                          IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_SQ_PSN |
                              IBV_QP_MAX_QP_RD_ATOMIC),
            "to RTS");
}

void Endpoint::post_recv(std::uint64_t id) {
  ibv_sge sge{reinterpret_cast<std::uintptr_t>(buffer_), static_cast<std::uint32_t>(bytes_), mr_->lkey};
  ibv_recv_wr wr{id, nullptr, &sge, 1};
  ibv_recv_wr* bad;
  need_zero(ibv_post_recv(qp_, &wr, &bad), "ibv_post_recv");
}

void Endpoint::post(ibv_wr_opcode opcode, const Remote& remote, std::size_t bytes, std::size_t offset,
                    std::uint64_t id) {
  ibv_sge sge{reinterpret_cast<std::uintptr_t>(buffer_) + offset, static_cast<std::uint32_t>(bytes), mr_->lkey};
  ibv_send_wr wr{};
  wr.wr_id = id;
  wr.sg_list = &sge;
  wr.num_sge = 1;
  wr.opcode = opcode;
  wr.send_flags = IBV_SEND_SIGNALED;
  wr.wr.rdma.remote_addr = remote.va + offset;
  wr.wr.rdma.rkey = remote.rkey;
  ibv_send_wr* bad;
  need_zero(ibv_post_send(qp_, &wr, &bad), "ibv_post_send");
}

void Endpoint::post_atomic_add(const Remote& remote, std::uint64_t add, std::size_t remote_offset,
                               std::size_t local_offset) {
  ibv_sge sge{reinterpret_cast<std::uintptr_t>(buffer_) + local_offset, 8, mr_->lkey};
  ibv_send_wr wr{};
  wr.sg_list = &sge;
  wr.num_sge = 1;
  wr.opcode = IBV_WR_ATOMIC_FETCH_AND_ADD;
  wr.send_flags = IBV_SEND_SIGNALED;
  wr.wr.atomic.remote_addr = remote.va + remote_offset;
  wr.wr.atomic.rkey = remote.rkey;
  wr.wr.atomic.compare_add = add;
  ibv_send_wr* bad;
  need_zero(ibv_post_send(qp_, &wr, &bad), "ibv_post_send");
}

ibv_wc Endpoint::wait(double seconds) {
  ibv_wc wc{};
  const double end = now_seconds() + seconds;
  int found = 0;
  while ((found = ibv_poll_cq(cq_, 1, &wc)) == 0 && now_seconds() < end) {
  }
  if (found < 0) throw std::runtime_error("ibv_poll_cq failed");
  if (found == 0) wc.status = static_cast<ibv_wc_status>(kTimedOut);
  return wc;
}

Child spawn(const std::function<int(int socket)>& body) {
  int ends[2];
  need_zero(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends), "socketpair");
  fflush(nullptr);
  const pid_t pid = fork();
  if (pid < 0) throw std::runtime_error("fork failed");
  if (pid == 0) {
    close(ends[0]);
    failed_checks = 0;
    int status = report([&] { failed_checks += body(ends[1]); });
    fflush(nullptr);
    _exit(status);
  }
  close(ends[1]);
  return {pid, ends[0]};
}

int Child::wait(double seconds) {
  const double end = now_seconds() + seconds;
  for (;;) {
    int status = 0;
    const pid_t got = waitpid(pid, &status, WNOHANG);
    if (got == pid) {
      close(socket);
      return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
    }
    if (now_seconds() > end) break;
    usleep(1000);
  }
  kill(SIGKILL);
  waitpid(pid, nullptr, 0);
  close(socket);
  return -1;
}

void Child::kill(int signum) { ::kill(pid, signum); }

bool send_bytes(int socket, const void* data, std::size_t size) {
  return ::send(socket, data, size, MSG_NOSIGNAL) == static_cast<ssize_t>(size);
}

bool receive_bytes(int socket, void* data, std::size_t size) {
  return recv(socket, data, size, MSG_WAITALL) == static_cast<ssize_t>(size);
}

Remote meet(Endpoint& endpoint, int socket, const Timing& timing) {
  if (!send(socket, endpoint.local())) throw std::runtime_error("the other side is gone");
  const Remote remote = receive<Remote>(socket);
  if (remote.qpn == 0) throw std::runtime_error("the other side is gone");
  endpoint.connect(remote, timing);
  // Both sides are ready to receive before either sends.
  send(socket, 'r');
  receive<char>(socket);
  return remote;
}

bool check(bool good, const std::string& what) {
  if (good) return true;
  ++failed_checks;
  printf("failed: %s\n", what.c_str());
  return false;
}

int failures() { return failed_checks; }

int report(const std::function<void()>& body) {
  try {
    body();
  } catch (const std::exception& error) {
    check(false, error.what());
  }
  fflush(nullptr);
  return failed_checks > 100 ? 100 : failed_checks;
}

}  // namespace faults
