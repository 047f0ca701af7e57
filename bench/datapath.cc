// One data path operation after the other, for callgrind to count (bench/run.py instructions).
//
// Each operation is prepared, counted and cleaned up many times; only the call itself is collected, and each
// operation's counts are dumped under its name. "floor" is the cost of switching collection on and off.
#include <functional>
#include <string>
#include <vector>

#include "pair.h"
#ifdef HAVE_CALLGRIND
#include <valgrind/callgrind.h>
#else
#define CALLGRIND_START_INSTRUMENTATION
#define CALLGRIND_TOGGLE_COLLECT
#define CALLGRIND_ZERO_STATS
#define CALLGRIND_DUMP_STATS_AT(name) (void)(name)
#endif

using namespace bench;

namespace {

constexpr unsigned kRounds = 100, kWarmUp = 16, kList = 32, kBatch = 16, kDepth = 256;

struct Bed {
  ibv_context* context;
  ibv_pd* pd;
  ibv_cq *a_cq, *b_cq;
  ibv_cq_ex *ax_cq, *bx_cq;
  ibv_qp *a, *b;    // by ibv_create_qp
  ibv_qp *ax, *bx;  // by ibv_create_qp_ex, with extended CQs
  ibv_qp_ex* ax_ex;
  ibv_mr* mr;
  char* buffer;
};

ibv_cq_ex* extended_cq(ibv_context* context) {
  ibv_cq_init_attr_ex attr{};
  attr.cqe = kDepth * 2;
  attr.wc_flags = IBV_WC_STANDARD_FLAGS;
  ibv_cq_ex* cq = ibv_create_cq_ex(context, &attr);
  need(cq, "ibv_create_cq_ex");
  return cq;
}

ibv_qp* make_qp(Bed& bed, ibv_cq* cq, bool extended) {
  ibv_qp_init_attr_ex init{};
  init.send_cq = init.recv_cq = cq;
  init.qp_type = IBV_QPT_RC;
  init.cap = {kDepth, kDepth, 1, 1, 64};
  init.pd = bed.pd;
  init.comp_mask = IBV_QP_INIT_ATTR_PD;
  if (extended) {
    init.comp_mask |= IBV_QP_INIT_ATTR_SEND_OPS_FLAGS;
    init.send_ops_flags = IBV_QP_EX_WITH_SEND | IBV_QP_EX_WITH_RDMA_WRITE;
  }
  ibv_qp* qp = extended ? ibv_create_qp_ex(bed.context, &init)
                        : ibv_create_qp(bed.pd, reinterpret_cast<ibv_qp_init_attr*>(&init));
  need(qp, "create QP");
  return qp;
}

Bed make_bed() {
  Bed bed{};
  bed.context = open_first_device();
  bed.pd = ibv_alloc_pd(bed.context);
  bed.buffer = static_cast<char*>(aligned_alloc(4096, 1 << 16));
  memset(bed.buffer, 0, 1 << 16);
  bed.mr = ibv_reg_mr(bed.pd, bed.buffer, 1 << 16, kAccess);
  bed.a_cq = ibv_create_cq(bed.context, kDepth * 2, nullptr, nullptr, 0);
  bed.b_cq = ibv_create_cq(bed.context, kDepth * 2, nullptr, nullptr, 0);
  need(bed.pd && bed.mr && bed.a_cq && bed.b_cq, "PD, MR, CQ");
  bed.ax_cq = extended_cq(bed.context);
  bed.bx_cq = extended_cq(bed.context);
  bed.a = make_qp(bed, bed.a_cq, false);
  bed.b = make_qp(bed, bed.b_cq, false);
  bed.ax = make_qp(bed, ibv_cq_ex_to_cq(bed.ax_cq), true);
  bed.bx = make_qp(bed, ibv_cq_ex_to_cq(bed.bx_cq), true);
  bed.ax_ex = ibv_qp_to_qp_ex(bed.ax);
  connect_each_other(bed.context, bed.a, bed.b);
  connect_each_other(bed.context, bed.ax, bed.bx);
  return bed;
}

void drain(ibv_cq* cq, unsigned count) {
  ibv_wc wc;
  for (unsigned got = 0; got < count;) {
    const int n = ibv_poll_cq(cq, 1, &wc);
    need(n >= 0 && (n == 0 || wc.status == IBV_WC_SUCCESS), n > 0 ? ibv_wc_status_str(wc.status) : "poll");
    got += static_cast<unsigned>(n);
  }
}

// Send work requests, linked into a list.
struct Sends {
  ibv_sge sge;
  ibv_send_wr wr[kList];
  Sends(const Bed& bed, ibv_wr_opcode opcode, unsigned bytes, bool inlined) {
    sge = {reinterpret_cast<std::uintptr_t>(bed.buffer), bytes, bed.mr->lkey};
    for (unsigned i = 0; i < kList; ++i) {
      wr[i] = {};
      wr[i].next = i + 1 < kList ? &wr[i + 1] : nullptr;
      wr[i].sg_list = &sge;
      wr[i].num_sge = 1;
      wr[i].opcode = opcode;
      wr[i].send_flags = IBV_SEND_SIGNALED | static_cast<unsigned>(inlined ? IBV_SEND_INLINE : 0);
      wr[i].wr.rdma.remote_addr = reinterpret_cast<std::uintptr_t>(bed.buffer) + 4096;
      wr[i].wr.rdma.rkey = bed.mr->rkey;
    }
  }
  // The last `count` of the list.
  ibv_send_wr* last(unsigned count) { return &wr[kList - count]; }
};
struct Receives {
  ibv_sge sge;
  ibv_recv_wr wr[kList];
  explicit Receives(const Bed& bed) {
    sge = {reinterpret_cast<std::uintptr_t>(bed.buffer) + 8192, 4096, bed.mr->lkey};
    for (unsigned i = 0; i < kList; ++i) wr[i] = {i, i + 1 < kList ? &wr[i + 1] : nullptr, &sge, 1};
  }
  ibv_recv_wr* last(unsigned count) { return &wr[kList - count]; }
};

template <class Prepare, class Operation, class CleanUp>
void count(const char* name, Prepare prepare, Operation operation, CleanUp clean_up) {
  for (unsigned i = 0; i < kWarmUp; ++i) prepare(), operation(), clean_up();
  CALLGRIND_ZERO_STATS;
  for (unsigned i = 0; i < kRounds; ++i) {
    prepare();
    CALLGRIND_TOGGLE_COLLECT;
    operation();
    CALLGRIND_TOGGLE_COLLECT;
    clean_up();
  }
  CALLGRIND_DUMP_STATS_AT(name);
  std::printf("%s\n", name);
}

void nothing() {}

void post_operations(Bed& bed) {
  Sends sends(bed, IBV_WR_SEND, 8, true), writes(bed, IBV_WR_RDMA_WRITE, 64, false),
      inline_writes(bed, IBV_WR_RDMA_WRITE, 8, true);
  Receives receives(bed);
  ibv_send_wr* bad;
  ibv_recv_wr* bad_recv;
  auto drain_a = [&] { drain(bed.a_cq, 1); };
  auto drain_ax = [&] { drain(ibv_cq_ex_to_cq(bed.ax_cq), 1); };
  (void)drain_ax;
  count(
      "post_send inline 8", [&] { ibv_post_recv(bed.b, receives.last(1), &bad_recv); },
      [&] { ibv_post_send(bed.a, sends.last(1), &bad); }, [&] { drain_a(), drain(bed.b_cq, 1); });
  count(
      "post_send write 64", nothing, [&] { ibv_post_send(bed.a, writes.last(1), &bad); }, drain_a);
  count(
      "post_send list inline 8", [&] { ibv_post_recv(bed.b, receives.last(kList), &bad_recv); },
      [&] { ibv_post_send(bed.a, sends.last(kList), &bad); }, [&] { drain(bed.a_cq, kList), drain(bed.b_cq, kList); });
  count(
      "post_send list write", nothing, [&] { ibv_post_send(bed.a, writes.last(kList), &bad); },
      [&] { drain(bed.a_cq, kList); });
  count(
      "post_recv", nothing, [&] { ibv_post_recv(bed.b, receives.last(1), &bad_recv); },
      [&] {
        ibv_post_send(bed.a, sends.last(1), &bad);
        drain(bed.a_cq, 1), drain(bed.b_cq, 1);
      });
  count(
      "post_recv list", nothing, [&] { ibv_post_recv(bed.b, receives.last(kList), &bad_recv); },
      [&] {
        ibv_post_send(bed.a, sends.last(kList), &bad);
        drain(bed.a_cq, kList), drain(bed.b_cq, kList);
      });
}

// Takes one completion off an extended CQ, ignoring what it says.
void drain_ex(ibv_cq_ex* cq, unsigned count) {
  ibv_poll_cq_attr attr{};
  for (unsigned got = 0; got < count;) {
    if (ibv_start_poll(cq, &attr)) continue;
    need(cq->status == IBV_WC_SUCCESS, ibv_wc_status_str(cq->status));
    ++got;
    ibv_end_poll(cq);
  }
}

void builder_operations(Bed& bed) {
  Receives receives(bed);
  ibv_recv_wr* bad;
  ibv_qp_ex* qp = bed.ax_ex;
  const auto target = reinterpret_cast<std::uintptr_t>(bed.buffer) + 4096;
  qp->wr_flags = IBV_SEND_SIGNALED;
  auto write = [&] {
    ibv_wr_rdma_write(qp, bed.mr->rkey, target);
    ibv_wr_set_sge(qp, bed.mr->lkey, reinterpret_cast<std::uintptr_t>(bed.buffer), 64);
  };
  count(
      "wr write", nothing, [&] { ibv_wr_start(qp), write(), ibv_wr_complete(qp); }, [&] { drain_ex(bed.ax_cq, 1); });
  count(
      "wr inline 8", [&] { ibv_post_recv(bed.bx, receives.last(1), &bad); },
      [&] {
        ibv_wr_start(qp);
        ibv_wr_send(qp);
        ibv_wr_set_inline_data(qp, bed.buffer, 8);
        ibv_wr_complete(qp);
      },
      [&] { drain_ex(bed.ax_cq, 1), drain_ex(bed.bx_cq, 1); });
  count(
      "wr list write", nothing,
      [&] {
        ibv_wr_start(qp);
        for (unsigned i = 0; i < kList; ++i) write();
        ibv_wr_complete(qp);
      },
      [&] { drain_ex(bed.ax_cq, kList); });
}

void poll_operations(Bed& bed) {
  // What is short comes in the CQE itself, and is copied out of it.
  Sends sends(bed, IBV_WR_SEND, 64, false), short_sends(bed, IBV_WR_SEND, 8, true), writes(bed, IBV_WR_RDMA_WRITE, 64, false);
  Receives receives(bed);
  ibv_send_wr* bad;
  ibv_recv_wr* bad_recv;
  ibv_wc wc[kBatch];
  auto deliver = [&](Sends& what, unsigned n) {  // n completions on b's CQ
    ibv_post_recv(bed.b, receives.last(n), &bad_recv);
    ibv_post_send(bed.a, what.last(n), &bad);
    drain(bed.a_cq, n);
  };
  auto take = [&](unsigned n) { need(ibv_poll_cq(bed.b_cq, static_cast<int>(n), wc) == static_cast<int>(n), "CQEs"); };
  count(
      "poll empty", nothing, [&] { ibv_poll_cq(bed.a_cq, 1, wc); }, nothing);
  count(
      "poll 1 send", [&] { ibv_post_send(bed.a, writes.last(1), &bad); },
      [&] { need(ibv_poll_cq(bed.a_cq, 1, wc) == 1, "a CQE"); }, nothing);
  count(
      "poll 16 send", [&] { ibv_post_send(bed.a, writes.last(kBatch), &bad); },
      [&] { need(ibv_poll_cq(bed.a_cq, kBatch, wc) == kBatch, "16 CQEs"); }, nothing);
  count("poll 1 recv", [&] { deliver(sends, 1); }, [&] { take(1); }, nothing);
  count("poll 16 recv", [&] { deliver(sends, kBatch); }, [&] { take(kBatch); }, nothing);
  count("poll 1 recv in CQE", [&] { deliver(short_sends, 1); }, [&] { take(1); }, nothing);
  count("poll 16 recv in CQE", [&] { deliver(short_sends, kBatch); }, [&] { take(kBatch); }, nothing);
}

void extended_poll_operations(Bed& bed) {
  Sends sends(bed, IBV_WR_SEND, 64, false), writes(bed, IBV_WR_RDMA_WRITE, 64, false);
  Receives receives(bed);
  ibv_send_wr* bad;
  ibv_recv_wr* bad_recv;
  ibv_poll_cq_attr attr{};
  volatile std::uint64_t sink = 0;
  auto read_send = [&] {
    sink = ibv_wc_read_opcode(bed.ax_cq) + ibv_wc_read_qp_num(bed.ax_cq) + ibv_wc_read_vendor_err(bed.ax_cq);
  };
  auto read_recv = [&] {
    sink = ibv_wc_read_opcode(bed.bx_cq) + ibv_wc_read_byte_len(bed.bx_cq) + ibv_wc_read_qp_num(bed.bx_cq) +
           ibv_wc_read_wc_flags(bed.bx_cq) + ibv_wc_read_src_qp(bed.bx_cq);
  };
  count(
      "start_poll empty", nothing, [&] { need(ibv_start_poll(bed.ax_cq, &attr) != 0, "no CQE"); }, nothing);
  count(
      "start_poll 1 send", [&] { ibv_post_send(bed.ax, writes.last(1), &bad); },
      [&] {
        need(ibv_start_poll(bed.ax_cq, &attr) == 0, "a CQE");
        read_send();
        ibv_end_poll(bed.ax_cq);
      },
      nothing);
  count(
      "start_poll 32 send", [&] { ibv_post_send(bed.ax, writes.last(kList), &bad); },
      [&] {
        need(ibv_start_poll(bed.ax_cq, &attr) == 0, "a CQE");
        do read_send();
        while (ibv_next_poll(bed.ax_cq) == 0);
        ibv_end_poll(bed.ax_cq);
      },
      nothing);
  count(
      "start_poll 1 recv",
      [&] {
        ibv_post_recv(bed.bx, receives.last(1), &bad_recv);
        ibv_post_send(bed.ax, sends.last(1), &bad);
        drain_ex(bed.ax_cq, 1);
      },
      [&] {
        need(ibv_start_poll(bed.bx_cq, &attr) == 0, "a CQE");
        read_recv();
        ibv_end_poll(bed.bx_cq);
      },
      nothing);
}

}  // namespace

int main() {
  Bed bed = make_bed();
  CALLGRIND_START_INSTRUMENTATION;
  count("floor", nothing, nothing, nothing);
  post_operations(bed);
  builder_operations(bed);
  poll_operations(bed);
  extended_poll_operations(bed);
}
