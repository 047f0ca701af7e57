// Ethernet from applications: raw packet QPs and their flows, work queues and hashing, checksums, counters, rates, and every
// documented errno.
#include <infiniband/mlx5dv.h>

#include <algorithm>
#include <array>
#include <utility>
#include <vector>

#include "ethernet.h"
#include "prm/flow.h"
#include "prm/raw.h"

namespace {

void flows(Side& server, Side& client) {
  const auto frame = make_frame(kServer);
  CHECK(!client.send(frame));
  SILENT(server);  // no flow, no frame
  {
    Flow flow(Rule().to(kServer), server.qp);
    CHECK(!client.send(frame));
    RECEIVED(server, frame);
    CHECK(!client.send(make_frame(kOther)));
    SILENT(server);
    CHECK(ibv_destroy_qp(server.qp) == EBUSY);  // a flow leads to it
  }
  CHECK(!client.send(frame));
  SILENT(server);
  {  // all specifications of a flow must fit
    Flow flow(Rule().to(kServer).from_ip(7).udp(1234), server.qp);
    const auto fits = make_frame(kServer, 7, 1234);
    for (const auto& f : {make_frame(kServer, 8, 1234), make_frame(kServer, 7, 1235), fits}) CHECK(!client.send(f));
    RECEIVED(server, fits);
    SILENT(server);
  }
  {  // the lower number comes first; one that does not trap lets the frame go on
    Flow low(Rule(IBV_FLOW_ATTR_NORMAL, 3).to(kServer).tag(33), server.qp);
    CHECK(!client.send(frame));
    EXPECT(RECEIVED(server, frame).qp_num == 33, "the tag of the flow");
    Flow high(Rule(IBV_FLOW_ATTR_NORMAL, 1).to(kServer).drop(), server.qp);
    CHECK(!client.send(frame));
    SILENT(server);
    Flow first(Rule(IBV_FLOW_ATTR_NORMAL, 0, IBV_FLOW_ATTR_FLAGS_DONT_TRAP).to(kServer), client.qp);
    CHECK(!client.send(frame));
    SILENT(server);
  }
  {  // equal flows of two QPs: both get the frame
    ibv_qp* second = server.make();
    Side::to_rts(second);
    Flow a(Rule().to(kServer), server.qp), b(Rule().to(kServer), second);
    CHECK(!client.send(frame));
    RECEIVED(server, frame);
    CHECK(Rule().to(kServer).tag(1).error(server.qp) == EEXIST);
    CHECK(!ibv_destroy_flow(std::exchange(b.flow, Rule().to(kOther).make(second))));
    CHECK(!client.send(frame));
    RECEIVED(server, frame);
    CHECK(!ibv_destroy_flow(std::exchange(b.flow, Rule().to(kOther).make(server.qp))));
    CHECK(!ibv_destroy_qp(second));
  }
  {  // the rest of the traffic
    Flow all(Rule(IBV_FLOW_ATTR_ALL_DEFAULT), server.qp);
    for (const auto& f : {frame, make_frame(kOther), make_frame(kGroup)}) {
      CHECK(!client.send(f));
      RECEIVED(server, f);
    }
  }
  {
    Flow groups(Rule(IBV_FLOW_ATTR_MC_DEFAULT), server.qp);
    CHECK(!client.send(frame));
    SILENT(server);
    CHECK(!client.send(make_frame(kGroup)));
    RECEIVED(server, make_frame(kGroup));
  }
  {
    Flow group(Rule().to(kGroup), server.qp);
    CHECK(!client.send(make_frame(kGroup)));
    RECEIVED(server, make_frame(kGroup));
  }
}

void flow_errors(Side& server) {
  ibv_qp* rc = make_qp(&server.w, IBV_QPT_RC, server.cq, server.cq, nullptr);
  const auto rule = [](unsigned flags = 0, unsigned priority = 0, ibv_flow_attr_type type = IBV_FLOW_ATTR_NORMAL) {
    return Rule(type, priority, flags);
  };
  EXPECT(rule().to(kServer).error(rc) == EINVAL, "an RC QP has no flows");
  EXPECT(rule(1u << 3).error(server.qp) == EINVAL, "unknown flags");
  EXPECT(rule(0, 16).error(server.qp) == ENOMEM, "priorities end");
  EXPECT(rule(IBV_FLOW_ATTR_FLAGS_DONT_TRAP, 0, IBV_FLOW_ATTR_ALL_DEFAULT).error(server.qp) == EINVAL, "the rest traps");
  EXPECT(rule(0, 0, IBV_FLOW_ATTR_SNIFFER).error(server.qp) == EOPNOTSUPP, "no sniffer");
  EXPECT(rule(IBV_FLOW_ATTR_FLAGS_EGRESS).to(kServer).error(server.qp) == EOPNOTSUPP, "no egress tables");
  EXPECT(rule().tag(1u << 24).error(server.qp) == EINVAL, "tags have 24 bits");
  EXPECT(rule().udp(1).udp(1, IBV_FLOW_SPEC_TCP).error(server.qp) == EINVAL, "UDP and TCP");
  EXPECT(rule(0, 0, IBV_FLOW_ATTR_ALL_DEFAULT).tag(1).error(server.qp) == EINVAL, "the rest has no tag");
  Rule port;
  port.all.attr.port = 2;
  EXPECT(port.to(kServer).error(server.qp) == EINVAL, "there is one port");
  Rule many;
  for (int i = 0; i < 11; ++i) many.tag(1);
  EXPECT(many.error(server.qp) == EINVAL, "too many specifications");
  CHECK(!ibv_destroy_qp(rc));
}

// ---- checksums ----

void checksums(Side& server, Side& client) {
  Flow flow(Rule().to(kServer), server.qp);
  const auto frame = make_frame(kServer);
  CHECK(!client.send(frame));
  EXPECT(!(RECEIVED(server, frame).wc_flags & IBV_WC_IP_CSUM_OK), "a header without checksum");
  CHECK(!client.send(frame, IBV_SEND_IP_CSUM));
  const ibv_wc wc = RECEIVED(server, frame, false);
  EXPECT(wc.wc_flags & IBV_WC_IP_CSUM_OK, "both checksums are right");
  const std::uint8_t* got = server.slot(static_cast<unsigned>(wc.wr_id));
  EXPECT(sum_of(got + 14, 20) == 0xffff, "the IPv4 checksum");
  EXPECT(sum_of(got + 34, kFrame - 34, sum_of(got + 26, 8, 17 + kFrame - 34)) == 0xffff, "the UDP checksum");
  CHECK(!client.send(frame, IBV_SEND_INLINE));
  RECEIVED(server, frame);
}

// ---- counters ----

void counters(Side& server, Side& client) {
  ibv_counters_init_attr init = {};
  ibv_counters* object = ibv_create_counters(server.w.context, &init);
  CHECK(object);
  std::uint64_t values[3] = {};
  const auto attach = [&](ibv_counter_description what, std::uint32_t index, ibv_flow* flow = nullptr) {
    ibv_counter_attach_attr attr = {};
    attr.counter_desc = what;
    attr.index = index;
    return ibv_attach_counters_point_flow(object, &attr, flow);
  };
  EXPECT(ibv_read_counters(object, values, 3, 0) == EINVAL, "no flow counts");
  EXPECT(Rule().to(kServer).count(object).error(server.qp) == EINVAL, "nothing is attached");
  CHECK(!attach(IBV_COUNTER_PACKETS, 2) && !attach(IBV_COUNTER_BYTES, 0));
  EXPECT(attach(static_cast<ibv_counter_description>(2), 1) == ENOTSUP, "no such counter");
  {
    Flow flow(Rule().to(kServer).count(object), server.qp);
    EXPECT(attach(IBV_COUNTER_BYTES, 1) == EBUSY, "it is bound");
    EXPECT(attach(IBV_COUNTER_BYTES, 1, flow.flow) == ENOTSUP, "points are bound when the flow is made");
    for (int i = 0; i < 3; ++i) {
      CHECK(!client.send(make_frame(kServer)));
      RECEIVED(server, make_frame(kServer));
    }
    CHECK(!client.send(make_frame(kOther)));
    EXPECT(ibv_read_counters(object, values, 2, 0) == EINVAL, "too little room");
    CHECK(!ibv_read_counters(object, values, 3, IBV_READ_COUNTERS_ATTR_PREFER_CACHED));
    EXPECT(values[0] == 3 * kFrame && values[1] == 0 && values[2] == 3, "%llu bytes, %llu frames",
           static_cast<unsigned long long>(values[0]), static_cast<unsigned long long>(values[2]));
    EXPECT(ibv_destroy_counters(object) == EBUSY, "a flow counts");
  }
  CHECK(!ibv_destroy_counters(object));
}

// ---- the device's own match ----

struct Match {
  struct alignas(8) {
    std::size_t size = prm::FteMatchParam::size;
    std::byte bytes[prm::FteMatchParam::size] = {};
  } mask, value;
  Match& to(const Mac& mac) {
    constexpr std::size_t at = prm::FteMatchSetLyr24::dmac_47_16::offset;
    std::memcpy(value.bytes + at, mac.data(), 6);
    std::memset(mask.bytes + at, 0xff, 6);
    return *this;
  }
  mlx5dv_flow_matcher* matcher(ibv_context* context, std::uint16_t priority = 0, std::uint8_t criteria = 1,
                               std::uint32_t flags = 0) {
    mlx5dv_flow_matcher_attr attr = {};
    attr.type = IBV_FLOW_ATTR_NORMAL;
    attr.priority = priority;
    attr.flags = flags;
    attr.match_criteria_enable = criteria;
    attr.match_mask = reinterpret_cast<mlx5dv_flow_match_parameters*>(&mask);
    errno = 0;
    return mlx5dv_create_flow_matcher(context, &attr);
  }
  ibv_flow* flow(mlx5dv_flow_matcher* matcher, std::vector<mlx5dv_flow_action_attr> actions) {
    errno = 0;
    return mlx5dv_create_flow(matcher, reinterpret_cast<mlx5dv_flow_match_parameters*>(&value), actions.size(),
                              actions.data());
  }
};
mlx5dv_flow_action_attr action(mlx5dv_flow_action_type type) {
  mlx5dv_flow_action_attr a = {};
  a.type = type;
  return a;
}
mlx5dv_flow_action_attr to_qp(ibv_qp* qp) {
  auto a = action(MLX5DV_FLOW_ACTION_DEST_IBV_QP);
  a.qp = qp;
  return a;
}
mlx5dv_flow_action_attr with(mlx5dv_flow_action_type type, mlx5dv_devx_obj* object) {
  auto a = action(type);
  a.obj = object;
  return a;
}

void matchers(Side& server, Side& client) {
  const auto frame = make_frame(kServer);
  Match match;
  match.to(kServer);
  mlx5dv_flow_matcher* matcher = match.matcher(server.w.context);
  CHECK(matcher);
  auto tag = action(MLX5DV_FLOW_ACTION_TAG);
  tag.tag_value = 0x123456;
  Command<prm::AllocFlowCounterIn, prm::AllocFlowCounterOut> alloc(prm::Opcode::alloc_flow_counter);
  mlx5dv_devx_obj* counter = alloc.create(server.w.context);
  CHECK(counter);
  ibv_flow* flow = match.flow(matcher, {tag, with(MLX5DV_FLOW_ACTION_COUNTERS_DEVX, counter), to_qp(server.qp)});
  CHECK(flow);
  CHECK(!client.send(frame));
  EXPECT(RECEIVED(server, frame).qp_num == 0x123456, "the tag");
  EXPECT(mlx5dv_destroy_flow_matcher(matcher) == EBUSY, "a flow stands on it");
  prm::Box<prm::QueryFlowCounterIn> ask;
  ask.set<prm::QueryFlowCounterIn::opcode>(prm::Opcode::query_flow_counter);
  ask.set<prm::QueryFlowCounterIn::flow_counter_id>(alloc.out.get<prm::AllocFlowCounterOut::flow_counter_id>());
  prm::Box<prm::QueryFlowCounterOut, prm::TrafficCounter::size> told;
  CHECK(!mlx5dv_devx_obj_query(counter, ask.data(), ask.size(), told.data(), told.size()));
  EXPECT(std::as_const(told).view().at<prm::QueryFlowCounterOut::flow_statistics>(0).get<prm::TrafficCounter::octets>() == kFrame,
         "the counter of the flow");
  CHECK(!ibv_destroy_flow(flow));
#ifdef mlx5dv_create_flow  // of headers that know counters of a bulk
  auto of_bulk = action(MLX5DV_FLOW_ACTION_COUNTERS_DEVX_WITH_OFFSET);
  of_bulk.bulk_obj.obj = counter;
  flow = match.flow(matcher, {of_bulk, to_qp(server.qp)});
  CHECK(flow && !ibv_destroy_flow(flow));
  of_bulk.bulk_obj.offset = 1;
  EXPECT(!match.flow(matcher, {of_bulk, to_qp(server.qp)}) && errno == EINVAL, "counters come one by one");
#endif
  CHECK(!mlx5dv_devx_obj_destroy(counter));
  SILENT(server);

  // A default miss goes on behind the other priorities.
  ibv_flow* miss = match.flow(matcher, {action(MLX5DV_FLOW_ACTION_DEFAULT_MISS)});
  CHECK(miss);
  {
    Flow later(Rule(IBV_FLOW_ATTR_NORMAL, 5).to(kServer), server.qp);
    CHECK(!client.send(frame));
    SILENT(server);
    Flow rest(Rule(IBV_FLOW_ATTR_ALL_DEFAULT), server.qp);
    CHECK(!client.send(frame));
    RECEIVED(server, frame);
  }
  CHECK(!ibv_destroy_flow(miss));
  ibv_flow* drop = match.flow(matcher, {action(MLX5DV_FLOW_ACTION_DROP)});
  CHECK(drop);
  CHECK(!client.send(frame));
  SILENT(server);
  CHECK(!ibv_destroy_flow(drop));

  const auto error = [&](mlx5dv_flow_matcher* m, std::vector<mlx5dv_flow_action_attr> actions) {
    ibv_flow* made = match.flow(m, std::move(actions));
    if (made) ibv_destroy_flow(made);
    return made ? 0 : errno;
  };
  EXPECT(error(matcher, {to_qp(server.qp), action(MLX5DV_FLOW_ACTION_DROP)}) == EOPNOTSUPP, "two destinations");
  EXPECT(error(matcher, {tag, tag, to_qp(server.qp)}) == EINVAL, "two tags");
  EXPECT(error(matcher, {action(MLX5DV_FLOW_ACTION_IBV_COUNTER)}) == EOPNOTSUPP, "counters of the verbs");
  tag.tag_value = 1u << 24;
  EXPECT(error(matcher, {tag, to_qp(server.qp)}) == EINVAL, "tags have 24 bits");
  EXPECT(error(matcher, {}) == EINVAL, "nowhere to go");
  mlx5dv_flow_matcher* far = match.matcher(server.w.context, 16);
  mlx5dv_flow_matcher* out = match.matcher(server.w.context, 0, 1, IBV_FLOW_ATTR_FLAGS_EGRESS);
  mlx5dv_flow_matcher* inner = match.matcher(server.w.context, 0, 4);
  CHECK(far && out && inner);
  EXPECT(error(far, {to_qp(server.qp)}) == ENOMEM, "priorities end");
  EXPECT(error(out, {to_qp(server.qp)}) == EINVAL, "what is sent is not received by a QP");
  EXPECT(error(out, {}) == EOPNOTSUPP, "no egress tables");
  EXPECT(error(inner, {to_qp(server.qp)}) == EINVAL, "inner headers are not matched");
  for (auto* m : {matcher, far, out, inner}) CHECK(!mlx5dv_destroy_flow_matcher(m));
}

// ---- work queues ----

struct Queues {
  Side side{false};
  std::array<ibv_cq*, 4> cqs;
  std::array<ibv_wq*, 4> wqs;
  ibv_rwq_ind_table* table = nullptr;
  ibv_qp* qp = nullptr;

  Queues() {
    for (unsigned i = 0; i < 4; ++i) {
      CHECK((cqs[i] = ibv_create_cq(side.w.context, 64, nullptr, nullptr, 0)));
      ibv_wq_init_attr init = {};
      init.wq_type = IBV_WQT_RQ;
      init.max_wr = 16;
      init.max_sge = 1;
      init.pd = side.w.pd;
      init.cq = cqs[i];
      mlx5dv_wq_init_attr plain = {};
      CHECK((wqs[i] = i % 2 ? mlx5dv_create_wq(side.w.context, &init, &plain) : ibv_create_wq(side.w.context, &init)));
      CHECK(!to(wqs[i], IBV_WQS_RDY));
      for (unsigned n = 0; n < 15; ++n) receive(i);
    }
    ibv_rwq_ind_table_init_attr init = {};
    init.log_ind_tbl_size = 2;
    init.ind_tbl = wqs.data();
    CHECK((table = ibv_create_rwq_ind_table(side.w.context, &init)));
    qp = make_qp(IBV_RX_HASH_SRC_IPV4 | IBV_RX_HASH_DST_IPV4 | IBV_RX_HASH_SRC_PORT_UDP | IBV_RX_HASH_DST_PORT_UDP);
    CHECK(qp);
  }
  ~Queues() {
    CHECK(!ibv_destroy_qp(qp) && !ibv_destroy_rwq_ind_table(table));
    for (unsigned i = 0; i < 4; ++i) CHECK(!ibv_destroy_wq(wqs[i]) && !ibv_destroy_cq(cqs[i]));
  }
  void receive(unsigned i) {
    ibv_sge sge = side.entry(i, kRoom);
    ibv_recv_wr wr = {}, *bad = nullptr;
    wr.wr_id = i;
    wr.sg_list = &sge;
    wr.num_sge = 1;
    CHECK(!ibv_post_wq_recv(wqs[i], &wr, &bad));
  }
  static int to(ibv_wq* wq, ibv_wq_state state) {
    ibv_wq_attr attr = {};
    attr.attr_mask = IBV_WQ_ATTR_STATE;
    attr.wq_state = state;
    return ibv_modify_wq(wq, &attr);
  }
  ibv_qp* make_qp(std::uint64_t fields, unsigned key_length = 40, unsigned function = IBV_RX_HASH_FUNC_TOEPLITZ,
                  ibv_qp_type type = IBV_QPT_RAW_PACKET) {
    static std::uint8_t key[128];
    for (unsigned i = 0; i < sizeof key; ++i) key[i] = static_cast<std::uint8_t>(i * 37 + 11);
    ibv_qp_init_attr_ex init = {};
    init.qp_type = type;
    init.comp_mask = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_IND_TABLE | IBV_QP_INIT_ATTR_RX_HASH;
    init.pd = side.w.pd;
    init.rwq_ind_tbl = table;
    init.rx_hash_conf = {static_cast<std::uint8_t>(function), static_cast<std::uint8_t>(key_length), key, fields};
    errno = 0;
    return ibv_create_qp_ex(side.w.context, &init);
  }
  int error(ibv_qp* made) {
    if (made) ibv_destroy_qp(made);
    return made ? 0 : errno;
  }
  // Which queue got a frame; -1: none.
  int arrival() {
    for (const double end = now_ms() + kPatienceMs; now_ms() < end;)
      for (unsigned i = 0; i < 4; ++i)
        if (ibv_wc wc = {}; ibv_poll_cq(cqs[i], 1, &wc)) {
          CHECK(wc.status == IBV_WC_SUCCESS && wc.opcode == IBV_WC_RECV && wc.wr_id == i);
          receive(i);
          return static_cast<int>(i);
        }
    return -1;
  }
};

void hashing(Side& client) {
  Queues q;
  Flow flow(Rule().to(kServer), q.qp);
  unsigned got[4] = {};
  for (std::uint16_t port = 0; port < 20; ++port) {
    const auto frame = make_frame(kServer, static_cast<std::uint8_t>(port), static_cast<std::uint16_t>(3000 + port));
    CHECK(!client.send(frame));
    const int first = q.arrival();
    CHECK(!client.send(frame));
    EXPECT(first >= 0 && q.arrival() == first, "a flow stays on its queue");
    if (first >= 0) ++got[first];
  }
  EXPECT(std::ranges::count_if(got, [](unsigned n) { return n > 0; }) >= 3, "%u %u %u %u flows", got[0], got[1], got[2], got[3]);

  // The raw doors: all entries to one queue, and its state.
  prm::Box<prm::ModifyRqtIn, 16> spread;
  prm::Box<prm::ModifyRqtOut> done;
  spread.set<prm::ModifyRqtIn::opcode>(prm::Opcode::modify_rqt);
  spread.set<prm::ModifyRqtIn::rqtn>(static_cast<std::uint32_t>(q.table->ind_tbl_num));
  spread.sub<prm::ModifyRqtIn::bitmask>().set<prm::RqtBitmask::rqn_list>(1);
  const auto rqtc = spread.sub<prm::ModifyRqtIn::ctx>();
  rqtc.set<prm::Rqtc::rqt_actual_size>(1);
  rqtc.at<prm::Rqtc::rq_num>(0).set<prm::RqNum::rq_num>(q.wqs[3]->wq_num);
  CHECK(!mlx5dv_devx_ind_tbl_modify(q.table, spread.data(), spread.size(), done.data(), done.size()));
  for (std::uint8_t i = 0; i < 4; ++i) {
    CHECK(!client.send(make_frame(kServer, i)));
    EXPECT(q.arrival() == 3, "the table leads to one queue");
  }
  Command<prm::QueryRqIn, prm::QueryRqOut> state(prm::Opcode::query_rq);
  state.in.set<prm::QueryRqIn::rqn>(q.wqs[3]->wq_num);
  CHECK(!mlx5dv_devx_wq_query(q.wqs[3], state.in.data(), state.in.size(), state.out.data(), state.out.size()));
  EXPECT(std::as_const(state.out).view().sub<prm::QueryRqOut::rq_context>().get<prm::Rqc::state>() == prm::RqState::rdy, "ready");
  EXPECT(mlx5dv_devx_wq_query(q.wqs[2], state.in.data(), state.in.size(), state.out.data(), state.out.size()) == EINVAL,
         "the number of another queue");
  Command<prm::QueryRqtIn, prm::QueryRqtOut> table(prm::Opcode::query_rqt);
  table.in.set<prm::QueryRqtIn::rqtn>(static_cast<std::uint32_t>(q.table->ind_tbl_num));
  prm::Box<prm::QueryRqtOut, 16> listed;
  CHECK(!mlx5dv_devx_ind_tbl_query(q.table, table.in.data(), table.in.size(), listed.data(), listed.size()));
  const auto now = std::as_const(listed).view().sub<prm::QueryRqtOut::rqt_context>();
  EXPECT(now.get<prm::Rqtc::rqt_max_size>() == 4 && now.get<prm::Rqtc::rqt_actual_size>() == 1 &&
             now.at<prm::Rqtc::rq_num>(0).get<prm::RqNum::rq_num>() == q.wqs[3]->wq_num,
         "the table as it was changed");

  // States: an error flushes; a reset queue is empty.
  CHECK(!Queues::to(q.wqs[3], IBV_WQS_ERR));
  ibv_wc wc = {};
  for (const double end = now_ms() + kPatienceMs; !ibv_poll_cq(q.cqs[3], 1, &wc);) CHECK(now_ms() < end);
  EXPECT(wc.status == IBV_WC_WR_FLUSH_ERR, "flushed, not %s", ibv_wc_status_str(wc.status));
  EXPECT(Queues::to(q.wqs[3], IBV_WQS_RDY) == EINVAL, "an error ends with a reset");
  CHECK(!Queues::to(q.wqs[3], IBV_WQS_RESET) && !Queues::to(q.wqs[3], IBV_WQS_RDY));
  // The same by the raw door: what was posted is flushed, and the state can be read.
  Command<prm::ModifyRqIn, prm::ModifyRqOut> fail(prm::Opcode::modify_rq);
  fail.in.set<prm::ModifyRqIn::rqn>(q.wqs[2]->wq_num).set<prm::ModifyRqIn::rq_state>(prm::RqState::rdy);
  fail.in.sub<prm::ModifyRqIn::ctx>().set<prm::Rqc::state>(prm::RqState::err);
  CHECK(!mlx5dv_devx_wq_modify(q.wqs[2], fail.in.data(), fail.in.size(), fail.out.data(), fail.out.size()));
  for (const double end = now_ms() + kPatienceMs; !ibv_poll_cq(q.cqs[2], 1, &wc);) CHECK(now_ms() < end);
  EXPECT(wc.status == IBV_WC_WR_FLUSH_ERR && wc.wr_id == 2, "flushed, not %s", ibv_wc_status_str(wc.status));
  state.in.set<prm::QueryRqIn::rqn>(q.wqs[2]->wq_num);
  CHECK(!mlx5dv_devx_wq_query(q.wqs[2], state.in.data(), state.in.size(), state.out.data(), state.out.size()));
  EXPECT(std::as_const(state.out).view().sub<prm::QueryRqOut::rq_context>().get<prm::Rqc::state>() == prm::RqState::err, "error");

  EXPECT(ibv_destroy_wq(q.wqs[3]) == EBUSY, "the table has it");
  EXPECT(ibv_destroy_rwq_ind_table(q.table) == EBUSY, "a QP spreads over it");
  EXPECT(q.error(q.make_qp(IBV_RX_HASH_SRC_IPV4 | IBV_RX_HASH_SRC_IPV6)) == EINVAL, "two IPs");
  EXPECT(q.error(q.make_qp(IBV_RX_HASH_SRC_PORT_TCP | IBV_RX_HASH_SRC_PORT_UDP)) == EINVAL, "two protocols");
  EXPECT(q.error(q.make_qp(IBV_RX_HASH_SRC_IPV4, 39)) == EINVAL, "a short key");
  EXPECT(q.error(q.make_qp(0)) == EINVAL, "nothing to spread by");
  EXPECT(q.error(q.make_qp(IBV_RX_HASH_SRC_IPV4, 40, 2)) == EOPNOTSUPP, "another function");
  EXPECT(q.error(q.make_qp(std::uint64_t{1} << 31)) == EOPNOTSUPP, "inner headers");
  EXPECT(q.error(q.make_qp(IBV_RX_HASH_SRC_IPV4, 40, 1, IBV_QPT_UD)) == EOPNOTSUPP, "hashing is for raw packets");
  ibv_qp_attr attr = {};
  EXPECT(go(q.qp, IBV_QPS_INIT, attr, IBV_QP_PORT) == EOPNOTSUPP, "it has no states");
}

void wq_errors(Side& side) {
  ibv_wq_init_attr init = {};
  const auto error = [&](auto change) {
    init = {};
    init.max_wr = init.max_sge = 1;
    init.pd = side.w.pd;
    init.cq = side.cq;
    change();
    errno = 0;
    ibv_wq* wq = ibv_create_wq(side.w.context, &init);
    if (wq) ibv_destroy_wq(wq);
    return wq ? 0 : errno;
  };
  EXPECT(error([] {}) == 0, "a queue");
  EXPECT(error([&] { init.max_wr = 0; }) == EINVAL, "without entries");
  EXPECT(error([&] { init.max_wr = 1u << 17; }) == EINVAL, "too many");
  EXPECT(error([&] { init.max_sge = 1000; }) == EINVAL, "too wide");
  EXPECT(error([&] { init.wq_type = static_cast<ibv_wq_type>(1); }) == EINVAL, "not to receive");
  init.comp_mask = 0;
  for (const unsigned flag : {IBV_WQ_FLAGS_SCATTER_FCS, IBV_WQ_FLAGS_DELAY_DROP, IBV_WQ_FLAGS_PCI_WRITE_END_PADDING})
    EXPECT(error([&] {
             init.comp_mask = IBV_WQ_INIT_ATTR_FLAGS;
             init.create_flags = flag;
           }) == EOPNOTSUPP,
           "flag %x", flag);
}

// ---- states and rates of raw packet QPs ----

void states(Side& side) {
  ibv_qp* qp = side.make();
  ibv_qp_attr attr = {};
  attr.port_num = 1;
  ibv_qp_init_attr init = {};
  const auto state = [&] {
    ibv_qp_attr now = {};
    CHECK(!ibv_query_qp(qp, &now, IBV_QP_STATE, &init));
    return now.qp_state;
  };
  EXPECT(go(qp, IBV_QPS_INIT, attr, 0) == EINVAL, "INIT wants a port");
  EXPECT(go(qp, IBV_QPS_INIT, attr, IBV_QP_PORT | IBV_QP_PKEY_INDEX) == EINVAL, "and nothing else");
  CHECK(!go(qp, IBV_QPS_INIT, attr, IBV_QP_PORT) && state() == IBV_QPS_INIT);
  EXPECT(go(qp, IBV_QPS_RTS, attr, 0) == EINVAL, "RTR comes before RTS");
  CHECK(!go(qp, IBV_QPS_RTR, attr, 0) && !go(qp, IBV_QPS_RTS, attr, 0) && state() == IBV_QPS_RTS);
  EXPECT(go(qp, IBV_QPS_SQD, attr, 0) == EINVAL, "nothing drains");
  CHECK(!go(qp, IBV_QPS_ERR, attr, 0) && state() == IBV_QPS_ERR && !go(qp, IBV_QPS_RESET, attr, 0));
  CHECK(state() == IBV_QPS_RESET && init.cap.max_recv_wr == kSlots);

  // The parts of the QP, as mlx5dv shows them.
  mlx5dv_qp view = {};
  view.comp_mask = MLX5DV_QP_MASK_RAW_QP_HANDLES;
  mlx5dv_obj object = {};
  object.qp = {qp, &view};
  CHECK(!mlx5dv_init_obj(&object, MLX5DV_OBJ_QP));
  EXPECT(view.sqn == qp->qp_num && view.rqn && view.tirn && view.tisn, "sq %u rq %u tir %u tis %u", view.sqn, view.rqn,
         view.tirn, view.tisn);
  CHECK(!ibv_destroy_qp(qp));
}

void rates(Side& client) {
  ibv_qp_rate_limit_attr limit = {};
  limit.rate_limit = 8000;  // 8 Mbit/s: a byte a microsecond
  CHECK(!ibv_modify_qp_rate_limit(client.qp, &limit));
  const double start = now_ms();
  for (int i = 0; i < 600; ++i) CHECK(!client.send(make_frame(kOther)));
  const double ms = now_ms() - start, due = 600 * kFrame / 1e3;
  EXPECT(ms > due * 0.85, "%.1f ms for what takes %.1f", ms, due);
  limit.rate_limit = 0;
  CHECK(!ibv_modify_qp_rate_limit(client.qp, &limit));
  limit.rate_limit = ~0u;
  EXPECT(ibv_modify_qp_rate_limit(client.qp, &limit) == EINVAL, "no such rate");
  limit.rate_limit = 0;
  limit.max_burst_sz = 100;
  EXPECT(ibv_modify_qp_rate_limit(client.qp, &limit) == EINVAL, "bursts of no rate");
}

}  // namespace

int main() {
  Side server, client;
  ibv_device_attr_ex attr = {};
  CHECK(!ibv_query_device_ex(server.w.context, nullptr, &attr));
  EXPECT(attr.raw_packet_caps == (IBV_RAW_PACKET_CAP_CVLAN_STRIPPING | IBV_RAW_PACKET_CAP_IP_CSUM), "%x", attr.raw_packet_caps);
  flows(server, client);
  flow_errors(server);
  checksums(server, client);
  counters(server, client);
  matchers(server, client);
  hashing(client);
  wq_errors(server);
  states(server);
  rates(client);
  return failures != 0;
}
