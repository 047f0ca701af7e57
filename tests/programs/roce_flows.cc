// Rules of RoCE packets, by matchers of the RDMA_RX and RDMA_TX tables and by tables of DEVX that these lead to: what
// they drop is lost as on a wire, what they count is what went by, and what they say nothing of goes its way.
#include "devx_pieces.h"
#include "prm/flow.h"

namespace {

using Action = mlx5dv_flow_action_attr;
constexpr auto kIn = MLX5DV_FLOW_TABLE_TYPE_RDMA_RX, kOut = MLX5DV_FLOW_TABLE_TYPE_RDMA_TX;

// Two queue pairs of this process: what one sends the other receives, so that rules of both kinds concern both.
struct Pair : ConnectedPair {
  using ConnectedPair::ConnectedPair;
  void write() {
    ibv_sge sge = {reinterpret_cast<std::uintptr_t>(data), 8, mr->lkey};
    ibv_send_wr wr = {}, *bad;
    wr.sg_list = &sge;
    wr.num_sge = 1;
    wr.opcode = IBV_WR_RDMA_WRITE;
    wr.send_flags = IBV_SEND_SIGNALED;
    wr.wr.rdma.remote_addr = reinterpret_cast<std::uintptr_t>(data) + 128;
    wr.wr.rdma.rkey = mr->rkey;
    CHECK(!ibv_post_send(a, &wr, &bad));
  }
  bool arrives() {
    std::memset(data, 0, sizeof data);
    std::memset(data, 0x5c, 8);
    write();
    const auto status = next_wc(cq).status;
    CHECK(status == IBV_WC_SUCCESS || status == IBV_WC_RETRY_EXC_ERR);
    CHECK(status != IBV_WC_SUCCESS || data[128] == 0x5c);
    return status == IBV_WC_SUCCESS;
  }
};

struct alignas(8) Bytes {
  std::size_t size = prm::FteMatchParam::size;
  std::byte bytes[prm::FteMatchParam::size] = {};
  prm::View<prm::FteMatchSetLyr24> outer() { return prm::View<prm::FteMatchSetLyr24>(bytes); }
  mlx5dv_flow_match_parameters* get() { return reinterpret_cast<mlx5dv_flow_match_parameters*>(this); }
};

// A rule for the packets to this UDP port; 0: for all.
struct Rule {
  mlx5dv_flow_matcher* matcher;
  ibv_flow* flow;
  Rule(World* w, mlx5dv_flow_table_type type, unsigned port, std::vector<Action> actions) {
    Bytes mask, value;
    if (port) {
      mask.outer().set<prm::FteMatchSetLyr24::udp_dport>(0xffff);
      value.outer().set<prm::FteMatchSetLyr24::udp_dport>(port);
    }
    mlx5dv_flow_matcher_attr attr = {};
    attr.type = IBV_FLOW_ATTR_NORMAL;
    attr.match_criteria_enable = port != 0;
    attr.match_mask = mask.get();
    attr.comp_mask = MLX5DV_FLOW_MATCHER_MASK_FT_TYPE;
    attr.ft_type = type;
    CHECK((matcher = mlx5dv_create_flow_matcher(w->context, &attr)));
    flow = mlx5dv_create_flow(matcher, value.get(), actions.size(), actions.data());
    if (!flow) error = errno;
  }
  ~Rule() {
    CHECK(!flow || !ibv_destroy_flow(flow));
    CHECK(!mlx5dv_destroy_flow_matcher(matcher));
  }
  int error = 0;
};

Action drop() {
  Action action = {};
  action.type = MLX5DV_FLOW_ACTION_DROP;
  return action;
}
Action with(const Object& object, mlx5dv_flow_action_type type) {
  Action action = {};
  action.type = type;
  action.obj = object.handle;
  return action;
}

Object make_counter(World* w) {
  Command<prm::AllocFlowCounterIn, prm::AllocFlowCounterOut> alloc(prm::Opcode::alloc_flow_counter);
  return made<prm::AllocFlowCounterOut::flow_counter_id>(w, alloc, prm::Opcode::dealloc_flow_counter);
}
std::uint64_t counted(const Object& counter) {
  prm::Box<prm::QueryFlowCounterIn> ask;
  ask.set<prm::QueryFlowCounterIn::opcode>(prm::Opcode::query_flow_counter)
      .set<prm::QueryFlowCounterIn::flow_counter_id>(counter.number);
  prm::Box<prm::QueryFlowCounterOut, prm::TrafficCounter::size> told;
  CHECK(!mlx5dv_devx_obj_query(counter.handle, ask.data(), ask.size(), told.data(), told.size()));
  return std::as_const(told).view().at<prm::QueryFlowCounterOut::flow_statistics>(0).get<prm::TrafficCounter::packets>();
}

// A table of one entry for all packets, which does this.
struct Table {
  Object table, group, entry;
  Table(World* w, prm::FlowTableType type, std::uint32_t action) {
    Command<prm::CreateFlowTableIn, prm::CreateFlowTableOut> create(prm::Opcode::create_flow_table);
    create.in.set<prm::CreateFlowTableIn::table_type>(type);
    create.in.sub<prm::CreateFlowTableIn::flow_table_context>().set<prm::FlowTableContext::level>(200);
    table = made<prm::CreateFlowTableOut::table_id>(w, create, prm::Opcode::destroy_flow_table);
    Command<prm::CreateFlowGroupIn, prm::CreateFlowGroupOut> divide(prm::Opcode::create_flow_group);
    divide.in.set<prm::CreateFlowGroupIn::table_type>(type).set<prm::CreateFlowGroupIn::table_id>(table.number);
    group = made<prm::CreateFlowGroupOut::group_id>(w, divide, prm::Opcode::destroy_flow_group);
    Command<prm::SetFteIn, prm::SetFteOut> set(prm::Opcode::set_flow_table_entry);
    set.in.set<prm::SetFteIn::table_type>(type).set<prm::SetFteIn::table_id>(table.number);
    set.in.sub<prm::SetFteIn::flow_context>().set<prm::FlowContext::group_id>(group.number).set<prm::FlowContext::action>(action);
    entry = made_with(w, set, {}, prm::Opcode::delete_flow_table_entry);
  }
  ~Table() {
    for (Object* o : {&entry, &group, &table}) o->drop();
  }
};

void by_matchers(World* w) {
  {
    const Object counter = make_counter(w);
    Pair p(w);
    Rule counting(w, kOut, 4791, {with(counter, MLX5DV_FLOW_ACTION_COUNTERS_DEVX)});
    CHECK(counting.flow && p.arrives());
    CHECK(counted(counter) == 2);  // the request, and its acknowledgement
    Rule elsewhere(w, kOut, 4790, {drop()});
    CHECK(elsewhere.flow && p.arrives() && counted(counter) == 4);
  }
  {
    Pair p(w);
    CHECK(p.arrives());
    Rule dropping(w, kOut, 0, {drop()});
    CHECK(dropping.flow && !p.arrives());
  }
  Pair p(w);
  CHECK(p.arrives());  // the rule is gone
}

void by_tables(World* w) {
  for (const auto action : {prm::FlowAction::drop, prm::FlowAction::allow})
    for (const auto type : {kIn, kOut}) {
      const Object counter = make_counter(w);
      Table table(w, type == kIn ? prm::FlowTableType::rdma_rx : prm::FlowTableType::rdma_tx, action);
      Pair p(w);
      Rule leading(w, type, 0, {with(table.table, MLX5DV_FLOW_ACTION_DEST_DEVX), with(counter, MLX5DV_FLOW_ACTION_COUNTERS_DEVX)});
      CHECK(leading.flow && p.arrives() == (action == prm::FlowAction::allow));
      CHECK(counted(counter) == 2);  // a request and its acknowledgement; dropped, a request and its only retry
    }
}

void refusals(World* w) {
  Table received(w, prm::FlowTableType::rdma_rx, prm::FlowAction::drop);
  Table sent(w, prm::FlowTableType::rdma_tx, prm::FlowAction::drop);
  const Action to_received = with(received.table, MLX5DV_FLOW_ACTION_DEST_DEVX);
  const auto error = [&](mlx5dv_flow_table_type type, std::vector<Action> actions) {
    return Rule(w, type, 0, std::move(actions)).error;
  };
  CHECK(error(kIn, {drop()}) == EINVAL && error(kIn, {}) == EINVAL);  // the driver wants a destination there
  CHECK(error(kIn, {to_received, drop()}) == EOPNOTSUPP && error(kOut, {to_received, drop()}) == EOPNOTSUPP);
  CHECK(error(kOut, {to_received}) != 0);  // a table of another type
  CHECK(error(MLX5DV_FLOW_TABLE_TYPE_NIC_TX, {}) == EOPNOTSUPP);
}

}  // namespace

int main() {
  World w = open_devx();
  by_matchers(&w);
  by_tables(&w);
  refusals(&w);
  CHECK(!ibv_dealloc_pd(w.pd) && !ibv_close_device(w.context));
  puts("ok");
  return 0;
}
