// What size costs: memory of an idle QP, creation and use of the first and the hundred thousandth, and registration of
// a page and of gigabytes. Prints "name value" lines for bench/run.py.
//
//   bench_scale QPS
#include <stdio.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "pair.h"

using namespace bench;

namespace {

constexpr unsigned kSample = 100;

double now_us() {
  return std::chrono::duration<double, std::micro>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

double median(std::vector<double> v) {
  std::nth_element(v.begin(), v.begin() + static_cast<long>(v.size() / 2), v.end());
  return v[v.size() / 2];
}

// Bytes of memory this process has: its own pages, and the blocks of the files it shares through the run directory.
double memory_bytes() {
  double total = 0;
  std::ifstream status("/proc/self/status");
  for (std::string line; std::getline(status, line);)
    if (line.starts_with("RssAnon:")) total += std::stod(line.substr(8)) * 1024;
  std::error_code ignored;
  if (const char* run_dir = getenv("VERBENA_RUN_DIR"))
    for (const auto& entry : std::filesystem::recursive_directory_iterator(run_dir, ignored)) {
      struct stat st;
      if (entry.is_regular_file(ignored) && stat(entry.path().c_str(), &st) == 0)
        total += static_cast<double>(st.st_blocks) * 512;
    }
  return total;
}

struct Bed {
  ibv_context* context;
  ibv_pd* pd;
  ibv_cq* cq;
  ibv_mr* mr;
  char* buffer;
};

ibv_qp* create(const Bed& bed) {
  ibv_qp_init_attr init{};
  init.send_cq = init.recv_cq = bed.cq;
  init.qp_type = IBV_QPT_RC;
  init.cap = {1, 1, 1, 1, 0};
  ibv_qp* qp = ibv_create_qp(bed.pd, &init);
  need(qp, "ibv_create_qp");
  return qp;
}

// Microseconds of one 8 B write between two QPs, posted and polled.
double write_us(const Bed& bed, ibv_qp* qp) {
  ibv_sge sge{reinterpret_cast<std::uintptr_t>(bed.buffer), 8, bed.mr->lkey};
  ibv_send_wr wr{}, *bad;
  wr.sg_list = &sge;
  wr.num_sge = 1;
  wr.opcode = IBV_WR_RDMA_WRITE;
  wr.send_flags = IBV_SEND_SIGNALED;
  wr.wr.rdma.remote_addr = reinterpret_cast<std::uintptr_t>(bed.buffer) + 64;
  wr.wr.rdma.rkey = bed.mr->rkey;
  std::vector<double> times;
  for (unsigned i = 0; i < 1000; ++i) {
    const double start = now_us();
    need(ibv_post_send(qp, &wr, &bad) == 0, "ibv_post_send");
    ibv_wc wc;
    while (ibv_poll_cq(bed.cq, 1, &wc) == 0) {
    }
    need(wc.status == IBV_WC_SUCCESS, ibv_wc_status_str(wc.status));
    times.push_back(now_us() - start);
  }
  return median(times);
}

void queue_pairs(const Bed& bed, unsigned count) {
  std::vector<ibv_qp*> qps;
  std::vector<double> create_us;
  for (unsigned i = 0; i < 16; ++i) qps.push_back(create(bed));  // what the first ones cost besides
  const double before = memory_bytes();
  for (unsigned i = 16; i < count; ++i) {
    const double start = now_us();
    qps.push_back(create(bed));
    create_us.push_back(now_us() - start);
    if (i < count - 2 * kSample && i > 2 * kSample) to_init(qps.back());
  }
  std::printf("bytes_per_qp %.0f\n", (memory_bytes() - before) / (count - 16));
  std::printf("create_first_us %.2f\n", median({create_us.begin(), create_us.begin() + kSample}));
  std::printf("create_last_us %.2f\n", median({create_us.end() - kSample, create_us.end()}));
  connect_each_other(bed.context, qps[8], qps[9]);
  connect_each_other(bed.context, qps[count - 2], qps[count - 1]);
  std::printf("write_first_us %.3f\n", write_us(bed, qps[8]));
  std::printf("write_last_us %.3f\n", write_us(bed, qps[count - 2]));
  const double start = now_us();
  for (ibv_qp* qp : qps) ibv_destroy_qp(qp);
  std::printf("destroy_us %.2f\n", (now_us() - start) / count);
}

double register_us(ibv_pd* pd, std::size_t bytes) {
  void* memory = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  need(memory != MAP_FAILED, "mmap");
  std::vector<double> times;
  for (unsigned i = 0; i < 200; ++i) {
    const double start = now_us();
    ibv_mr* mr = ibv_reg_mr(pd, memory, bytes, kAccess);
    times.push_back(now_us() - start);
    need(mr, "ibv_reg_mr");
    ibv_dereg_mr(mr);
  }
  munmap(memory, bytes);
  return median(times);
}

}  // namespace

int main(int argc, char** argv) {
  const unsigned count = argc > 1 ? static_cast<unsigned>(atoi(argv[1])) : 100000;
  Bed bed{};
  bed.context = open_first_device();
  bed.pd = ibv_alloc_pd(bed.context);
  bed.cq = ibv_create_cq(bed.context, 64, nullptr, nullptr, 0);
  bed.buffer = static_cast<char*>(aligned_alloc(4096, 8192));
  bed.mr = ibv_reg_mr(bed.pd, bed.buffer, 8192, kAccess);
  need(bed.pd && bed.cq && bed.mr, "PD, CQ, MR");
  queue_pairs(bed, std::max(count, 1000u));
  std::printf("register_4k_us %.2f\n", register_us(bed.pd, 4096));
  std::printf("register_4g_us %.2f\n", register_us(bed.pd, std::size_t{4} << 30));
}
