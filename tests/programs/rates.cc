// Rates: the packet pacing table, the transmit scheduler, what QPs under its leaves do, static rates of addresses, and
// every documented errno.
//
//   rates                     all of it, judged by the time that data takes
//   rates requester MBIT      sends for a second under a leaf of so many Mbit/s, for a capture
//   rates responder MBIT      the same with READs, under a leaf of the responder
//   rates paced MBIT          frames of a raw send queue that names an entry of the packet pacing table
#include <vector>

#include "devx_world.h"
#include "prm/raw.h"
#include "prm/scheduling.h"

namespace {

constexpr std::uint32_t kLimit = MLX5DV_SCHED_ELEM_ATTR_FLAGS_MAX_AVG_BW, kShare = MLX5DV_SCHED_ELEM_ATTR_FLAGS_BW_SHARE;
constexpr std::uint32_t kFrame = 1024 + 94;  // of RoCE v2 over IPv6, with RETH: what a 1024-byte WRITE is on the wire
constexpr double kAheadMs = 6;               // a limit holds on average: a pause earns 5 ms

// ---- packet pacing ----

mlx5dv_pp* alloc_pp(World* w, std::uint32_t kbps, std::uint32_t flags = 0, std::size_t length = 48) {
  alignas(8) std::byte contents[64] = {};
  store_be32(contents, kbps);
  errno = 0;
  return mlx5dv_pp_alloc(w->context, length, contents, flags);
}

void packet_pacing(World* w) {
  constexpr std::uint32_t kDedicated = 1;
  mlx5dv_pp *a = alloc_pp(w, 100), *b = alloc_pp(w, 100), *c = alloc_pp(w, 200), *d = alloc_pp(w, 100, kDedicated);
  mlx5dv_pp* brief = alloc_pp(w, 100, 0, 4);
  CHECK(a && b && c && d && brief);
  CHECK(a->index && a->index == b->index && brief->index == a->index && c->index != a->index);
  CHECK(d->index != a->index && d->index != c->index);
  const auto index = a->index;
  for (mlx5dv_pp* pp : {a, b, brief}) mlx5dv_pp_free(pp);
  mlx5dv_pp* again = alloc_pp(w, 300, kDedicated);
  CHECK(again && again->index == index);  // the first free entry
  for (mlx5dv_pp* pp : {again, c, d}) mlx5dv_pp_free(pp);

  CHECK(!alloc_pp(w, 0) && errno == EINVAL);
  CHECK(!alloc_pp(w, 100'000'001) && errno == EINVAL);
  CHECK(!alloc_pp(w, 100, 0, 49) && errno == EINVAL);
  CHECK(!alloc_pp(w, 100, 2) && errno == EOPNOTSUPP);
  mlx5dv_pp* all[127];
  for (mlx5dv_pp*& pp : all) CHECK((pp = alloc_pp(w, 100, kDedicated)));
  CHECK(!alloc_pp(w, 100) && errno == ENOSPC);
  for (mlx5dv_pp* pp : all) mlx5dv_pp_free(pp);
}

// A rate of a QP's own is for raw packet QPs.
void rate_limit_of_a_qp(World* w, ibv_qp* qp) {
  ibv_qp_rate_limit_attr limit = {};
  limit.rate_limit = 1000;
  CHECK(ibv_modify_qp_rate_limit(qp, &limit) == EINVAL);
  limit.comp_mask = 1;
  CHECK(ibv_modify_qp_rate_limit(qp, &limit) == EINVAL);
  limit = {};
  limit.max_burst_sz = 1;
  CHECK(ibv_modify_qp_rate_limit(qp, &limit) == EINVAL);
  ibv_device_attr_ex attr = {};
  CHECK(!ibv_query_device_ex(w->context, nullptr, &attr));
  const ibv_packet_pacing_caps& caps = attr.packet_pacing_caps;
  CHECK(!caps.supported_qpts == !caps.qp_rate_limit_max);
  CHECK(!(caps.supported_qpts & ~(1u << IBV_QPT_RAW_PACKET)));
}

// ---- the tree ----

mlx5dv_sched_attr under(mlx5dv_sched_node* parent, std::uint32_t mbit = 0, std::uint32_t share = 0) {
  mlx5dv_sched_attr attr = {};
  attr.parent = parent;
  attr.flags = (mbit ? kLimit : 0) | (share ? kShare : 0);
  attr.max_avg_bw = mbit;
  attr.bw_share = share;
  return attr;
}
mlx5dv_sched_node* make_node(World* w, const mlx5dv_sched_attr& attr) {
  errno = 0;
  return mlx5dv_sched_node_create(w->context, &attr);
}
mlx5dv_sched_leaf* make_leaf(World* w, const mlx5dv_sched_attr& attr) {
  errno = 0;
  return mlx5dv_sched_leaf_create(w->context, &attr);
}

void wrong_elements(World* w) {
  mlx5dv_sched_node* root = make_node(w, under(nullptr));
  mlx5dv_sched_leaf* leaf = make_leaf(w, under(root, 10, 2));
  CHECK(root && leaf);
  mlx5dv_sched_attr bad = under(root);
  bad.comp_mask = 1;
  CHECK(!make_node(w, bad) && errno == EINVAL);
  CHECK(!make_leaf(w, bad) && errno == EINVAL);
  CHECK(mlx5dv_sched_leaf_modify(leaf, &bad) == EINVAL);
  bad = under(root);
  bad.flags = 4;
  CHECK(!make_node(w, bad) && errno == EINVAL);
  CHECK(!make_node(w, under(nullptr, 10)) && errno == EINVAL);
  CHECK(!make_leaf(w, under(nullptr)) && errno == EINVAL);
  CHECK(!mlx5dv_sched_node_create(w->context, nullptr) && errno == EINVAL);
  CHECK(mlx5dv_sched_node_modify(root, nullptr) == EINVAL);
  bad = under(root, 5);
  CHECK(mlx5dv_sched_node_modify(root, &bad) == EINVAL);  // a root has no limit: the device says so
  CHECK(!make_leaf(w, under(root, 0, 101)) && errno == EINVAL);
  CHECK(mlx5dv_sched_node_destroy(root) == EINVAL);
  CHECK(!mlx5dv_sched_leaf_destroy(leaf) && !mlx5dv_sched_node_destroy(root));
}

// The commands of the same name, by DEVX.
void by_hand(World* w) {
  using Create = Command<prm::CreateSchedulingElementIn, prm::CreateSchedulingElementOut>;
  using Query = Command<prm::QuerySchedulingElementIn, prm::QuerySchedulingElementOut>;
  using Context = prm::SchedulingContext;
  Create create(prm::Opcode::create_scheduling_element);
  create.in.set<prm::CreateSchedulingElementIn::scheduling_hierarchy>(3);
  mlx5dv_devx_obj* root = create.create(w->context);
  CHECK(root);
  const auto id = create.out.get<prm::CreateSchedulingElementOut::scheduling_element_id>();
  const auto context = create.in.sub<prm::CreateSchedulingElementIn::scheduling_context>();
  context.set<Context::parent_element_id>(id).set<Context::max_average_bw>(7);
  mlx5dv_devx_obj* node = create.create(w->context);
  CHECK(node);
  Query query(prm::Opcode::query_scheduling_element);
  query.in.set<prm::QuerySchedulingElementIn::scheduling_hierarchy>(3);
  query.in.set<prm::QuerySchedulingElementIn::scheduling_element_id>(
      create.out.get<prm::CreateSchedulingElementOut::scheduling_element_id>());
  CHECK(!query.query(node));
  CHECK(query.out.sub<prm::QuerySchedulingElementOut::scheduling_context>().get<Context::max_average_bw>() == 7);
  errno = 0;
  CHECK(query.query(root) == EINVAL);  // not the object of this handle
  context.set<Context::element_type>(1);
  CHECK(!create.create(w->context) && errno == EREMOTEIO && create.syndrome() == 0x160004);
  CHECK(mlx5dv_devx_obj_destroy(root) == EINVAL);  // not while the other hangs on it
  CHECK(!mlx5dv_devx_obj_destroy(node) && !mlx5dv_devx_obj_destroy(root));
}

// ---- traffic ----

struct Pair {
  World* w;
  ibv_cq* cq;
  ibv_qp *a, *b;
  ibv_mr* mr;
  char* data;

  explicit Pair(World* world, ibv_qp_type type = IBV_QPT_RC) : w(world) {
    CHECK((cq = ibv_create_cq(w->context, 64, nullptr, nullptr, 0)));
    a = make_qp(w, type, cq, cq, nullptr);
    b = make_qp(w, type, cq, cq, nullptr);
    connect_qp(w, a, b->qp_num);
    connect_qp(w, b, a->qp_num);
    data = static_cast<char*>(std::aligned_alloc(4096, 1 << 17));
    std::memset(data, 1, 1 << 17);
    CHECK((mr = ibv_reg_mr(w->pd, data, 1 << 17, kAllAccess)));
  }
  ~Pair() {
    CHECK(!ibv_destroy_qp(a) && !ibv_destroy_qp(b) && !ibv_dereg_mr(mr) && !ibv_destroy_cq(cq));
    std::free(data);
  }
  void post(ibv_wr_opcode opcode, std::uint32_t length) const {
    ibv_sge sge = {reinterpret_cast<std::uintptr_t>(data), length, mr->lkey};
    ibv_send_wr wr = {}, *bad = nullptr;
    wr.opcode = opcode;
    wr.sg_list = &sge;
    wr.num_sge = 1;
    wr.send_flags = IBV_SEND_SIGNALED;
    wr.wr.rdma.remote_addr = reinterpret_cast<std::uintptr_t>(data) + (1 << 16);
    wr.wr.rdma.rkey = mr->rkey;
    CHECK(!ibv_post_send(a, &wr, &bad));
  }
  // Milliseconds that `count` requests take, 16 under way at a time.
  double run(int count, ibv_wr_opcode opcode = IBV_WR_RDMA_WRITE, std::uint32_t length = 1024) const {
    const double begin = now_ms();
    int posted = 0;
    for (int done = 0; done < count; ++done) {
      for (; posted < count && posted - done < 16; ++posted) post(opcode, length);
      CHECK(next_wc(cq).status == IBV_WC_SUCCESS);
    }
    return now_ms() - begin;
  }
};

// Whether what nothing holds back takes less than so long: a busy machine may be slow at times, but not always.
template <class Run>
bool faster_than(double ms, Run&& run) {
  for (int i = 0; i < 20; ++i)
    if (run() < ms) return true;
  return false;
}

double expected_ms(int frames, std::uint32_t mbit) { return frames * kFrame * 8.0 / (mbit * 1000.0); }

void limits_hold(World* w) {
  mlx5dv_sched_node* root = make_node(w, under(nullptr));
  mlx5dv_sched_leaf *leaf = make_leaf(w, under(root, 20)), *other = make_leaf(w, under(root, 40));
  CHECK(root && leaf && other);
  {
    const Pair pair(w);
    CHECK(!mlx5dv_modify_qp_sched_elem(pair.a, leaf, nullptr));
    CHECK(pair.run(100) >= expected_ms(99, 20) - kAheadMs);
    CHECK(mlx5dv_sched_leaf_destroy(leaf) == EINVAL);  // a QP hangs on it
    // Faster, while in use.
    const mlx5dv_sched_attr faster = under(root, 2000);
    CHECK(!mlx5dv_sched_leaf_modify(leaf, &faster));
    CHECK(faster_than(expected_ms(99, 20), [&] { return pair.run(100); }));
    CHECK(!mlx5dv_modify_qp_sched_elem(pair.a, other, nullptr));
    CHECK(pair.run(100) >= expected_ms(99, 40) - kAheadMs);
    CHECK(!mlx5dv_modify_qp_sched_elem(pair.a, nullptr, nullptr));
    CHECK(faster_than(expected_ms(99, 40), [&] { return pair.run(100); }) && !mlx5dv_sched_leaf_destroy(leaf));
    // Responses: in the responder's name.
    CHECK(faster_than(expected_ms(63, 40), [&] { return pair.run(1, IBV_WR_RDMA_READ, 65536); }));
    CHECK(!mlx5dv_modify_qp_sched_elem(pair.b, nullptr, other));
    CHECK(pair.run(4, IBV_WR_RDMA_READ, 32768) >= 0.95 * expected_ms(127, 40) - kAheadMs);
  }
  {
    const Pair pair(w, IBV_QPT_UC);
    CHECK(mlx5dv_modify_qp_sched_elem(pair.a, nullptr, other) == EINVAL);
    CHECK(!mlx5dv_modify_qp_sched_elem(pair.a, other, nullptr));
    CHECK(pair.run(60) >= expected_ms(59, 40) - kAheadMs);
    CHECK(!go(pair.a, IBV_QPS_ERR, attributes(w, 0), 0));
    CHECK(mlx5dv_modify_qp_sched_elem(pair.a, other, nullptr) == EOPNOTSUPP);  // not INIT, not RTS
    rate_limit_of_a_qp(w, pair.b);
  }
  CHECK(!mlx5dv_sched_leaf_destroy(other) && !mlx5dv_sched_node_destroy(root));
}

// Two senders at once, each with 16 requests under way, until both together have had so many completions: how long it took,
// and how many were the first's.
struct Shared {
  double ms;
  double first;
};
Shared run_both(const Pair& a, const Pair& b, int count) {
  const Pair* pairs[] = {&a, &b};
  int under_way[2] = {}, done[2] = {};
  const double begin = now_ms();
  double took = 0;
  for (bool over = false; !over || under_way[0] || under_way[1];) {
    for (int i = 0; i < 2; ++i) {
      for (; !over && under_way[i] < 16; ++under_way[i]) pairs[i]->post(IBV_WR_RDMA_WRITE, 1024);
      for (ibv_wc wc = {}; ibv_poll_cq(pairs[i]->cq, 1, &wc); --under_way[i]) {
        CHECK(wc.status == IBV_WC_SUCCESS);
        if (!over) ++done[i];
      }
    }
    if (!over && done[0] + done[1] >= count) {
      over = true;
      took = now_ms() - begin;
    }
    CHECK(now_ms() < begin + 20000);
  }
  return {took, static_cast<double>(done[0]) / (done[0] + done[1])};
}

// What a node allows is what its leaves have together, in the proportion of their weights, as both change in use.
void nodes_share(World* w) {
  mlx5dv_sched_node* root = make_node(w, under(nullptr));
  mlx5dv_sched_node* node = make_node(w, under(root, 20));
  CHECK(root && node);
  mlx5dv_sched_leaf *heavy = make_leaf(w, under(node, 0, 3)), *light = make_leaf(w, under(node, 0, 1));
  CHECK(heavy && light);
  {
    const Pair a(w), b(w);
    CHECK(!mlx5dv_modify_qp_sched_elem(a.a, heavy, nullptr) && !mlx5dv_modify_qp_sched_elem(b.a, light, nullptr));
    constexpr int kCount = 200;
    // A machine that lets nobody run for a while may spoil one try.
    const auto shares = [&](double least, double most) {
      Shared s = {};
      for (int i = 0; i < 10; ++i) {
        s = run_both(a, b, kCount);
        if (s.first > least && s.first < most) return true;
      }
      fprintf(stderr, "the first has %.2f\n", s.first);
      return false;
    };
    EXPECT(run_both(a, b, kCount).ms >= expected_ms(kCount - 1, 20) - kAheadMs, "two leaves under a node of 20 Mbit/s");
    EXPECT(shares(0.65, 0.85), "3 to 1");
    const mlx5dv_sched_attr wider = under(root, 40);
    CHECK(!mlx5dv_sched_node_modify(node, &wider));
    const double took = run_both(a, b, kCount).ms;
    EXPECT(took >= expected_ms(kCount - 1, 40) - kAheadMs, "%.1f ms at 40 Mbit/s", took);
    EXPECT(faster_than(expected_ms(kCount - 1, 20), [&] { return run_both(a, b, kCount).ms; }), "faster than at 20 Mbit/s");
    const mlx5dv_sched_attr even = under(node, 0, 3);
    CHECK(!mlx5dv_sched_leaf_modify(light, &even));
    EXPECT(shares(0.4, 0.6), "3 to 3");
    const mlx5dv_sched_attr free = under(root, 4000);
    CHECK(!mlx5dv_sched_node_modify(node, &free));
    EXPECT(faster_than(expected_ms(kCount - 1, 40), [&] { return run_both(a, b, kCount).ms; }), "4 Gbit/s hold nobody back");
    CHECK(mlx5dv_sched_node_destroy(node) == EINVAL && mlx5dv_sched_leaf_destroy(heavy) == EINVAL);
  }
  CHECK(!mlx5dv_sched_leaf_destroy(heavy) && !mlx5dv_sched_leaf_destroy(light));
  CHECK(!mlx5dv_sched_node_destroy(node) && !mlx5dv_sched_node_destroy(root));
}

// The static rate of an address: 2.5 Gbit/s is the slowest that there is.
void static_rates(World* w) {
  const Pair pair(w);
  ibv_qp_attr a = attributes(w, pair.b->qp_num);
  const auto reconnect = [&](ibv_rate rate, ibv_mtu mtu) {
    a.ah_attr.static_rate = static_cast<std::uint8_t>(rate);
    a.path_mtu = mtu;
    CHECK(!go(pair.a, IBV_QPS_RESET, a, 0) && !go(pair.b, IBV_QPS_RESET, a, 0));
    connect_qp(w, pair.b, pair.a->qp_num);
    CHECK(!go(pair.a, IBV_QPS_INIT, a, required(IBV_QPT_RC, IBV_QPS_INIT)));
    return go(pair.a, IBV_QPS_RTR, a, required(IBV_QPT_RC, IBV_QPS_RTR));
  };
  const auto rate_now = [&] {
    ibv_qp_attr now = {};
    ibv_qp_init_attr init = {};
    CHECK(!ibv_query_qp(pair.a, &now, IBV_QP_AV, &init));
    return now.ah_attr.static_rate;
  };
  CHECK(reconnect(static_cast<ibv_rate>(1), IBV_MTU_1024) == EINVAL);
  CHECK(reconnect(static_cast<ibv_rate>(24), IBV_MTU_1024) == EINVAL);
  CHECK(!reconnect(IBV_RATE_100_GBPS, IBV_MTU_1024) && rate_now() == IBV_RATE_100_GBPS);
  CHECK(!reconnect(IBV_RATE_2_5_GBPS, IBV_MTU_1024) && rate_now() == IBV_RATE_2_5_GBPS);
  CHECK(!go(pair.a, IBV_QPS_RTS, a, required(IBV_QPT_RC, IBV_QPS_RTS)));
  constexpr int kMessages = 200;
  const double slow = pair.run(kMessages, IBV_WR_RDMA_WRITE, 65536);
  CHECK(slow >= kMessages * 64 * kFrame * 8 / 2.5e6 - kAheadMs);
  CHECK(!reconnect(IBV_RATE_MAX, IBV_MTU_1024) && rate_now() == IBV_RATE_MAX);
  CHECK(!go(pair.a, IBV_QPS_RTS, a, required(IBV_QPT_RC, IBV_QPS_RTS)));
  CHECK(faster_than(slow, [&] { return pair.run(kMessages, IBV_WR_RDMA_WRITE, 65536); }));
}

// The same in the address vector of a datagram.
void static_rate_of_datagrams(World* w) {
  const Pair pair(w, IBV_QPT_UD);
  ibv_ah_attr to = attributes(w, 0).ah_attr;
  const auto time_with = [&](ibv_rate rate) {
    to.static_rate = static_cast<std::uint8_t>(rate);
    ibv_ah* ah = ibv_create_ah(w->pd, &to);
    CHECK(ah);
    ibv_sge sge = {reinterpret_cast<std::uintptr_t>(pair.data), 4096, pair.mr->lkey};
    ibv_send_wr wr = {}, *bad = nullptr;
    wr.opcode = IBV_WR_SEND;
    wr.sg_list = &sge;
    wr.num_sge = 1;
    wr.send_flags = IBV_SEND_SIGNALED;
    wr.wr.ud.ah = ah;
    wr.wr.ud.remote_qpn = pair.b->qp_num;
    wr.wr.ud.remote_qkey = 0x1111;
    const double begin = now_ms();
    for (int i = 0; i < 2000; ++i) {
      CHECK(!ibv_post_send(pair.a, &wr, &bad));
      CHECK(next_wc(pair.cq).status == IBV_WC_SUCCESS);
    }
    const double took = now_ms() - begin;
    CHECK(!ibv_destroy_ah(ah));
    return took;
  };
  CHECK(time_with(IBV_RATE_2_5_GBPS) >= 2000 * 4166 * 8 / 2.5e6 - kAheadMs);
  time_with(IBV_RATE_MAX);
}

// ---- raw send queues ----

// A send queue of Ethernet frames, in memory of the program; its completions go to the CQ of a Queues.
struct RawQueue {
  static constexpr unsigned kLogSq = 6, kFrameBytes = 1000, kHead = 18;
  static constexpr std::size_t kBytes = 16384, kDbr = 4096, kDataAt = 8192;
  World* w;
  Queues cq;  // its QP is not used
  char* memory;
  mlx5dv_devx_umem* umem;
  ibv_mr* mr;
  mlx5dv_devx_obj *domain, *tis, *sq;
  std::uint32_t sqn = 0;
  std::uint16_t pi = 0;

  RawQueue(World* world, std::uint16_t rate) : w(world), cq(world) {
    memory = static_cast<char*>(std::aligned_alloc(4096, kBytes));
    std::memset(memory, 0, kBytes);
    CHECK((umem = mlx5dv_devx_umem_reg(w->context, memory, kBytes, IBV_ACCESS_LOCAL_WRITE)));
    CHECK((mr = ibv_reg_mr(w->pd, memory + kDataAt, 4096, IBV_ACCESS_LOCAL_WRITE)));
    Command<prm::AllocTransportDomainIn, prm::AllocTransportDomainOut> alloc(prm::Opcode::alloc_transport_domain);
    CHECK((domain = alloc.create(w->context)));
    Command<prm::CreateTisIn, prm::CreateTisOut> make_tis(prm::Opcode::create_tis);
    make_tis.in.sub<prm::CreateTisIn::ctx>().set<prm::Tisc::transport_domain>(
        alloc.out.get<prm::AllocTransportDomainOut::transport_domain>());
    CHECK((tis = make_tis.create(w->context)));
    Command<prm::CreateSqIn, prm::CreateSqOut> make_sq(prm::Opcode::create_sq);
    const auto sqc = make_sq.in.sub<prm::CreateSqIn::ctx>();
    sqc.set<prm::Sqc::cqn>(cq.cqn).set<prm::Sqc::tis_lst_sz>(1);
    sqc.set<prm::Sqc::tis_num_0>(make_tis.out.get<prm::CreateTisOut::tisn>());
    sqc.set<prm::Sqc::packet_pacing_rate_limit_index>(rate).set<prm::Sqc::ts_format>(prm::TimestampFormat::standard);
    const auto wq = sqc.sub<prm::Sqc::wq>();
    wq.set<prm::Wq::wq_type>(prm::WqType::cyclic).set<prm::Wq::log_wq_stride>(6).set<prm::Wq::log_wq_sz>(kLogSq);
    wq.set<prm::Wq::pd>(pd_number(w->pd)).set<prm::Wq::uar_page>(cq.uar->page_id);
    wq.set<prm::Wq::wq_umem_valid>(1).set<prm::Wq::wq_umem_id>(umem->umem_id);
    wq.set<prm::Wq::dbr_umem_valid>(1).set<prm::Wq::dbr_umem_id>(umem->umem_id).set<prm::Wq::dbr_addr>(kDbr);
    CHECK((sq = make_sq.create(w->context)));
    sqn = make_sq.out.get<prm::CreateSqOut::sqn>();
    move(prm::SqState::rst, prm::SqState::rdy, 0, 0);
  }
  ~RawQueue() {
    CHECK(!mlx5dv_devx_obj_destroy(sq) && !mlx5dv_devx_obj_destroy(tis) && !mlx5dv_devx_obj_destroy(domain));
    CHECK(!ibv_dereg_mr(mr) && !mlx5dv_devx_umem_dereg(umem));
    std::free(memory);
  }
  RawQueue(const RawQueue&) = delete;
  RawQueue& operator=(const RawQueue&) = delete;

  void move(prm::SqState from, prm::SqState to, std::uint64_t mask, std::uint16_t rate) {
    Command<prm::ModifySqIn, prm::ModifySqOut> modify(prm::Opcode::modify_sq);
    modify.in.set<prm::ModifySqIn::sqn>(sqn).set<prm::ModifySqIn::sq_state>(from);
    modify.in.set<prm::ModifySqIn::modify_bitmask>(mask);
    const auto sqc = modify.in.sub<prm::ModifySqIn::ctx>();
    sqc.set<prm::Sqc::state>(to).set<prm::Sqc::packet_pacing_rate_limit_index>(rate);
    CHECK(!modify.modify(sq));
  }
  // A frame whose head stands in the WQE and goes on behind the Ethernet segment.
  void post() {
    auto* wqe = reinterpret_cast<std::byte*>(memory + (pi & ((1u << kLogSq) - 1)) * 64u);
    std::memset(wqe, 0, 64);
    prm::View<prm::CtrlSeg> ctrl(wqe);
    ctrl.set<prm::CtrlSeg::wqe_index>(pi).set<prm::CtrlSeg::opcode>(prm::WqeOpcode::send).set<prm::CtrlSeg::qpn>(sqn);
    ctrl.set<prm::CtrlSeg::ds>(4).set<prm::CtrlSeg::ce>(prm::WqeCompletion::always);
    prm::View<prm::EthSeg>(wqe + 16).set<prm::EthSeg::inline_hdr_sz>(kHead);
    constexpr unsigned char head[kHead] = {2, 0, 0, 0, 0, 2, 2, 0, 0, 0, 0, 1, 0x88, 0xb5, 'v', 'b', 'n', 'a'};
    std::memcpy(wqe + 16 + prm::EthSeg::inline_hdr_start::offset, head, kHead);
    prm::View<prm::DataSeg> data(wqe + 48);
    data.set<prm::DataSeg::byte_count>(kFrameBytes - kHead).set<prm::DataSeg::lkey>(mr->lkey);
    data.set<prm::DataSeg::addr>(reinterpret_cast<std::uintptr_t>(memory + kDataAt));
    store_be32(memory + kDbr + 4, ++pi);
    __atomic_thread_fence(__ATOMIC_SEQ_CST);
    *static_cast<volatile std::uint64_t*>(cq.uar->reg_addr) = *reinterpret_cast<std::uint64_t*>(wqe);
  }
  double run(int count) {
    const double begin = now_ms();
    int posted = 0;
    for (int done = 0; done < count; ++done) {
      for (; posted < count && posted - done < 16; ++posted) post();
      const auto cqe = cq.next_cqe();
      CHECK(cqe.get<prm::Cqe64::opcode>() == prm::CqeOpcode::req && cqe.get<prm::Cqe64::qpn>() == sqn);
    }
    return now_ms() - begin;
  }
};

void paced_frames(World* w) {
  mlx5dv_pp *slow = alloc_pp(w, 20'000), *fast = alloc_pp(w, 40'000);
  CHECK(slow && fast);
  {
    RawQueue queue(w, slow->index);
    CHECK(queue.run(100) >= 99 * 0.4 - 1);
    queue.move(prm::SqState::rdy, prm::SqState::rdy, prm::SqModify::packet_pacing_rate_limit_index, fast->index);
    CHECK(queue.run(100) >= 99 * 0.2 - 1);
    queue.move(prm::SqState::rdy, prm::SqState::rdy, prm::SqModify::packet_pacing_rate_limit_index, 0);
    CHECK(faster_than(99 * 0.2, [&] { return queue.run(100); }));
  }
  mlx5dv_pp_free(slow);
  mlx5dv_pp_free(fast);
}

void send_frames_for_a_second(World* w, std::uint32_t mbit) {
  mlx5dv_pp* pp = alloc_pp(w, mbit * 1000);
  CHECK(pp);
  {
    RawQueue queue(w, pp->index);
    const double end = now_ms() + 1200;
    while (now_ms() < end) queue.run(16);
  }
  mlx5dv_pp_free(pp);
}

void send_for_a_second(World* w, bool responder, std::uint32_t mbit) {
  mlx5dv_sched_node* root = make_node(w, under(nullptr));
  mlx5dv_sched_leaf* leaf = make_leaf(w, under(root, mbit));
  CHECK(root && leaf);
  {
    const Pair pair(w);
    CHECK(!mlx5dv_modify_qp_sched_elem(responder ? pair.b : pair.a, responder ? nullptr : leaf, responder ? leaf : nullptr));
    const double end = now_ms() + 1200;
    while (now_ms() < end) pair.run(16, responder ? IBV_WR_RDMA_READ : IBV_WR_RDMA_WRITE, responder ? 8192 : 1024);
  }
  CHECK(!mlx5dv_sched_leaf_destroy(leaf) && !mlx5dv_sched_node_destroy(root));
}

}  // namespace

// A context that is closed gives back what nobody has freed: entries, and groups that its QPs hang on.
void closing_frees() {
  static auto& kept = *new std::vector<void*>;  // what a closed context had is never freed; that is the point
  for (int i = 0; i < 200; ++i) {
    World w = open_devx();
    kept.push_back(alloc_pp(&w, 100 + static_cast<std::uint32_t>(i)));
    CHECK(kept.back());
    CHECK(!ibv_dealloc_pd(w.pd) && !ibv_close_device(w.context));
  }
  for (int i = 0; i < 600; ++i) {
    World w = open_devx();
    mlx5dv_sched_node* root = make_node(&w, under(nullptr));
    mlx5dv_sched_leaf* leaf = make_leaf(&w, under(root, 1000));
    CHECK(root && leaf);
    auto* pair = new Pair(&w);
    kept.insert(kept.end(), {pair, leaf, root, w.pd});
    CHECK(!mlx5dv_modify_qp_sched_elem(pair->a, leaf, nullptr));
    CHECK(!ibv_close_device(w.context));
  }
}

int main(int argc, char** argv) {
  World w = open_devx();
  if (argc == 3 && !std::strcmp(argv[1], "paced")) {
    send_frames_for_a_second(&w, static_cast<std::uint32_t>(std::atoi(argv[2])));
  } else if (argc == 3) {
    send_for_a_second(&w, !std::strcmp(argv[1], "responder"), static_cast<std::uint32_t>(std::atoi(argv[2])));
  } else {
    closing_frees();
    packet_pacing(&w);
    wrong_elements(&w);
    by_hand(&w);
    limits_hold(&w);
    nodes_share(&w);
    paced_frames(&w);
    static_rates(&w);
    static_rate_of_datagrams(&w);
  }
  close_world(&w);
  if (failures) return 1;
  puts("ok");
  return 0;
}
