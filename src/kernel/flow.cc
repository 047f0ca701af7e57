#include "kernel/flow.h"

#include <rdma/ib_user_verbs.h>
#include <rdma/mlx5-abi.h>

#include <cerrno>

#include "kernel/command.h"
#include "kernel/counters_object.h"
#include "kernel/method.h"
#include "kernel/privilege.h"
#include "kernel/qp.h"

namespace verbena::kernel {
namespace {

// IB_FLOW_ATTR_*
constexpr std::uint32_t kNormal = 0, kAllDefault = 1, kMcDefault = 2, kSniffer = 3;
constexpr std::uint32_t kDontTrap = 1u << 1, kEgress = 1u << 2, kFlagsEnd = 1u << 3;
constexpr unsigned kMaxSpecs = 10, kLastPriority = FlowPriority::regular - 1;

// What ib_uverbs looks at, before the driver sees the request.
int check_attr(const ib_uverbs_create_flow& cmd, std::size_t bytes) {
  const ib_uverbs_flow_attr& attr = cmd.flow_attr;
  if (cmd.comp_mask) return EINVAL;
  if (!may_use_raw_packets()) return EPERM;
  if (attr.flags >= kFlagsEnd) return EINVAL;
  if (attr.flags & kDontTrap && (attr.type == kAllDefault || attr.type == kMcDefault)) return EINVAL;
  if (attr.num_of_specs > kMaxSpecs) return EINVAL;
  if (attr.size > bytes || attr.reserved[0] || attr.reserved[1]) return EINVAL;
  return 0;
}

// What mlx5_ib does.
int check_driver(const ib_uverbs_flow_attr& attr, const Udata& driver) {
  if (!driver.in.empty()) {
    if (driver.in.size() < sizeof(mlx5_ib_create_flow)) return EOPNOTSUPP;
    const auto head = driver.read<mlx5_ib_create_flow>();
    if (head.ncounters_data > 1) return EINVAL;
    const std::size_t known = sizeof head + head.ncounters_data * sizeof(mlx5_ib_flow_counters_data);
    if (driver.in.size() < known) return EFAULT;
    if (!driver.tail_is_zero(known)) return EOPNOTSUPP;
  }
  if (attr.priority > kLastPriority) return ENOMEM;
  if (attr.port > 1) return EINVAL;
  if (attr.flags & kEgress && (attr.type == kAllDefault || attr.type == kMcDefault)) return EINVAL;
  if (attr.flags & kEgress || attr.type == kSniffer) return EOPNOTSUPP;  // tables this device does not have
  return attr.type > kSniffer ? EINVAL : 0;
}

// The rest of the traffic: unicast and multicast, behind all other rules.
FlowMatch leftovers(bool multicast) {
  using Match = prm::FteMatchSetLyr24;
  FlowMatch match;
  match.criteria = prm::kMatchOuterHeaders;
  match.mask[Match::dmac_47_16::offset] = std::byte{1};
  match.value[Match::dmac_47_16::offset] = std::byte{multicast};
  return match;
}

int add_rule(File& file, Flow& flow, unsigned priority, const FlowMatch& match, const FlowVerdict& verdict) {
  FlowTables::Rule* rule = nullptr;
  if (int error = file.node().flow_tables().add(file.device(), priority, match, verdict, &rule)) return error;
  flow.rules.push_back(rule);
  return 0;
}

int add_rules(File& file, Flow& flow, const ib_uverbs_flow_attr& attr, FlowRequest& request) {
  if (attr.type == kNormal) {
    const bool dont_trap = attr.flags & kDontTrap;
    const unsigned priority =
        request.multicast_only && !dont_trap ? FlowPriority::multicast : FlowPriority::of(attr.priority, dont_trap);
    request.verdict.next = dont_trap && !request.verdict.drop;
    return add_rule(file, flow, priority, request.match, request.verdict);
  }
  if (request.verdict.has_tag) return EINVAL;
  if (int error = add_rule(file, flow, FlowPriority::leftovers, leftovers(true), request.verdict)) return error;
  return attr.type == kAllDefault ? add_rule(file, flow, FlowPriority::leftovers, leftovers(false), request.verdict) : 0;
}

int create_flow(File& file, const ib_uverbs_create_flow& cmd, std::span<const std::byte> specs, const Udata& driver,
                std::uint32_t* handle) {
  int error = 0;
  Qp* qp = file.find<Qp>(cmd.qp_handle, UVERBS_OBJECT_QP, &error);
  if (!qp || (qp->type != QpType::ud && qp->type != QpType::raw_packet)) return EINVAL;
  FlowRequest request;
  const ib_uverbs_flow_attr& attr = cmd.flow_attr;
  if ((error = read_specs(file, specs, attr.num_of_specs, &request))) return error;
  if ((error = check_driver(attr, driver))) return error;
  // A QP without receive queue is no place to go to.
  if (!qp->raw || !qp->raw->tirn) return EINVAL;
  if (!request.verdict.drop) request.verdict.target = FlowTarget{prm::FlowDestination::tir, qp->raw->tirn};
  auto flow = std::make_unique<Flow>();
  if (request.counters && attr.type == kNormal) {
    if ((error = bind_counters(file, *request.counters, driver))) return error;
    request.verdict.counter = request.counters->number;
    flow->counters = request.counters;
  }
  if ((error = add_rules(file, *flow, attr, request))) {
    flow->destroy(file);
    return error;
  }
  flow->under.push_back(qp);
  if (flow->counters) flow->under.push_back(flow->counters);
  for (Object* object : flow->under) ++object->users;
  *handle = file.objects().add(std::move(flow));
  return 0;
}

int write_create(File& file, WriteCall& call) {
  const auto cmd = call.read<ib_uverbs_create_flow>();
  const std::span<const std::byte> behind = call.in.subspan(sizeof cmd);
  if (int error = check_attr(cmd, behind.size())) return error;
  if (!call.tail_is_zero(sizeof cmd + cmd.flow_attr.size)) return EOPNOTSUPP;
  ib_uverbs_create_flow_resp response{};
  if (int error = create_flow(file, cmd, behind.first(cmd.flow_attr.size), call.driver, &response.flow_handle)) return error;
  call.write(&response, sizeof response);
  return 0;
}

int write_destroy(File& file, WriteCall& call) {
  const auto cmd = call.read<ib_uverbs_destroy_flow>();
  if (cmd.comp_mask) return EINVAL;
  int error = 0;
  Flow* flow = file.find<Flow>(cmd.flow_handle, UVERBS_OBJECT_FLOW, &error);
  return flow ? file.destroy(flow) : ENOENT;
}

constexpr AttrSpec kDestroyAttrs[] = {
    uverbs::object_attr(UVERBS_ATTR_DESTROY_FLOW_HANDLE, UVERBS_OBJECT_FLOW, AttrAccess::destroy)};

constexpr Method kMethods[] = {
    {{UVERBS_OBJECT_FLOW, UVERBS_METHOD_FLOW_DESTROY, kDestroyAttrs},
     destroy_method<UVERBS_OBJECT_FLOW, UVERBS_ATTR_DESTROY_FLOW_HANDLE>},
};
constexpr WriteCommand kCommands[] = {
    {IB_USER_VERBS_CMD_FLAG_EXTENDED | IB_USER_VERBS_EX_CMD_CREATE_FLOW, sizeof(ib_uverbs_create_flow),
     sizeof(ib_uverbs_create_flow_resp), write_create},
    {IB_USER_VERBS_CMD_FLAG_EXTENDED | IB_USER_VERBS_EX_CMD_DESTROY_FLOW, sizeof(ib_uverbs_destroy_flow), 0, write_destroy},
};

}  // namespace

int Flow::destroy(File& file) {
  FlowTables& from = tables ? *tables : file.node().flow_tables();
  for (FlowTables::Rule* rule : rules) from.remove(file.device(), rule);
  rules.clear();
  for (Object* object : under) --object->users;
  under.clear();
  if (counters) unbind_counters(*counters);
  return 0;
}

std::span<const Method> flow_methods() { return kMethods; }
std::span<const WriteCommand> flow_commands() { return kCommands; }

}  // namespace verbena::kernel
