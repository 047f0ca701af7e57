// What a flow rule costs with 10 rules alive and with many: as an entry of a table of DEVX, and as a flow of the verbs;
// and what a frame costs, sent and received. Prints "name value" lines for bench/run.py: microseconds.
//
//   bench_rules RULES
#include <chrono>
#include <cstdlib>
#include <string>

#include "prm/flow.h"
#include "tests/programs/ethernet.h"

namespace {

constexpr unsigned kFew = 10, kSample = 300, kPriorities = 16;

double now_us() {
  return std::chrono::duration<double, std::micro>(std::chrono::steady_clock::now().time_since_epoch()).count();
}
double median(std::vector<double> v) {
  std::nth_element(v.begin(), v.begin() + static_cast<long>(v.size() / 2), v.end());
  return v[v.size() / 2];
}

template <class Make, class Drop>
void measure(const char* name, const char* load, Make make, Drop drop) {
  std::vector<double> create, destroy;
  for (unsigned i = 0; i < kSample; ++i) {
    const double start = now_us();
    auto* rule = make();
    const double made = now_us();
    drop(rule);
    create.push_back(made - start);
    destroy.push_back(now_us() - made);
  }
  std::printf("create_%s_%s %.3f\ndestroy_%s_%s %.3f\n", name, load, median(create), name, load, median(destroy));
}

// Entries of a table, which drop: by their source address.
void entries(World* w, unsigned count) {
  Command<prm::CreateFlowTableIn, prm::CreateFlowTableOut> table(prm::Opcode::create_flow_table);
  table.in.sub<prm::CreateFlowTableIn::flow_table_context>().set<prm::FlowTableContext::log_size>(13);
  mlx5dv_devx_obj* t = table.create(w->context);
  CHECK(t);
  const std::uint32_t number = table.out.get<prm::CreateFlowTableOut::table_id>();
  Command<prm::CreateFlowGroupIn, prm::CreateFlowGroupOut> group(prm::Opcode::create_flow_group);
  group.in.set<prm::CreateFlowGroupIn::table_id>(number).set<prm::CreateFlowGroupIn::end_flow_index>(8191);
  group.in.set<prm::CreateFlowGroupIn::match_criteria_enable>(1);
  group.in.sub<prm::CreateFlowGroupIn::match_criteria>()
      .sub<prm::FteMatchParam::outer_headers>()
      .set<prm::FteMatchSetLyr24::smac_47_16>(~0u);
  mlx5dv_devx_obj* g = group.create(w->context);
  CHECK(g);
  Command<prm::SetFteIn, prm::SetFteOut> set(prm::Opcode::set_flow_table_entry);
  const auto flow = set.in.sub<prm::SetFteIn::flow_context>();
  flow.set<prm::FlowContext::group_id>(group.out.get<prm::CreateFlowGroupOut::group_id>())
      .set<prm::FlowContext::action>(prm::FlowAction::drop);
  set.in.set<prm::SetFteIn::table_id>(number);
  const auto make = [&](std::uint32_t index) {
    set.in.set<prm::SetFteIn::flow_index>(index);
    flow.sub<prm::FlowContext::match_value>()
        .sub<prm::FteMatchParam::outer_headers>()
        .set<prm::FteMatchSetLyr24::smac_47_16>(index);
    mlx5dv_devx_obj* made = set.create(w->context);
    CHECK(made);
    return made;
  };
  const auto drop = [](mlx5dv_devx_obj* o) { CHECK(!mlx5dv_devx_obj_destroy(o)); };
  std::vector<mlx5dv_devx_obj*> alive;
  for (const unsigned until : {kFew, count}) {
    while (alive.size() < until) alive.push_back(make(static_cast<std::uint32_t>(alive.size() + 1)));
    measure(
        "entry", until == kFew ? "few" : "many", [&] { return make(0); }, drop);
  }
  for (mlx5dv_devx_obj* o : alive) drop(o);
  drop(g);
  drop(t);
}

// Flows of the verbs, by address and UDP port, of all priorities; frames that the last one takes.
void flows(Side& server, Side& client, unsigned count) {
  const auto make = [&](unsigned i) {
    ibv_flow* flow = Rule(IBV_FLOW_ATTR_NORMAL, i % kPriorities)
                         .to(kServer)
                         .udp(static_cast<std::uint16_t>(2000 + i))
                         .make(server.qp);
    CHECK(flow);
    return flow;
  };
  const auto drop = [](ibv_flow* flow) { CHECK(!ibv_destroy_flow(flow)); };
  std::vector<ibv_flow*> alive;
  for (const unsigned until : {kFew, count}) {
    const char* load = until == kFew ? "few" : "many";
    while (alive.size() < until) alive.push_back(make(static_cast<unsigned>(alive.size())));
    measure(
        "flow", load, [&] { return make(count); }, drop);
    std::vector<double> us;
    // Of the first priority in both cases: the tables before it would cost a look each.
    const auto frame =
        make_frame(kServer, 1, static_cast<std::uint16_t>(2000 + (until - 1) / kPriorities * kPriorities));
    for (unsigned i = 0; i < kSample; ++i) {
      const double start = now_us();
      CHECK(!client.send(frame));
      const ibv_wc wc = server.wait(kPatienceMs);
      CHECK(wc.opcode == IBV_WC_RECV);
      us.push_back(now_us() - start);
      server.receive(static_cast<unsigned>(wc.wr_id));
    }
    std::printf("frame_%s %.3f\n", load, median(us));
  }
  for (ibv_flow* flow : alive) drop(flow);
}

}  // namespace

int main(int argc, char** argv) {
  const unsigned count = argc > 1 ? static_cast<unsigned>(std::atoi(argv[1])) : 8000;
  Side server, client;
  entries(&server.w, count);
  flows(server, client, count);
  return 0;
}
