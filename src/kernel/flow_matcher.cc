// Flows by the device's own match: a matcher says which bits count, a flow gives their values and what becomes of the frame.
#include <rdma/ib_user_verbs.h>
#include <rdma/mlx5_user_ioctl_cmds.h>
#include <rdma/mlx5_user_ioctl_verbs.h>

#include <cerrno>
#include <cstring>

#include "kernel/devx.h"
#include "kernel/flow.h"
#include "kernel/method.h"
#include "kernel/privilege.h"
#include "kernel/qp.h"

namespace verbena::kernel {
namespace {

constexpr std::uint32_t kEgress = 1u << 2;  // IB_FLOW_ATTR_FLAGS_EGRESS
constexpr std::uint32_t kTagEnd = 1u << 24;

struct FlowMatcher : Object {
  FlowMatcher() : Object(MLX5_IB_OBJECT_FLOW_MATCHER) {}
  int destroy(File&) override { return 0; }

  FlowMatch::Bytes mask{};
  std::uint8_t criteria = 0, type = MLX5_IB_FLOW_TYPE_NORMAL;
  std::uint16_t priority = 0;
  std::uint32_t table = MLX5_IB_UAPI_FLOW_TABLE_TYPE_NIC_RX;
};

bool is_roce(std::uint32_t table) {
  return table == MLX5_IB_UAPI_FLOW_TABLE_TYPE_RDMA_RX || table == MLX5_IB_UAPI_FLOW_TABLE_TYPE_RDMA_TX;
}

constexpr AttrSpec match_attr(std::uint16_t id) {
  return {id, uverbs::AttrKind::ptr_in, true, 1, sizeof(FlowMatch::Bytes), false, 0, AttrAccess::read};
}

// ---- matchers ----

constexpr AttrSpec kMatcherAttrs[] = {
    uverbs::object_attr(MLX5_IB_ATTR_FLOW_MATCHER_CREATE_HANDLE, MLX5_IB_OBJECT_FLOW_MATCHER, AttrAccess::create),
    match_attr(MLX5_IB_ATTR_FLOW_MATCHER_MATCH_MASK),
    {MLX5_IB_ATTR_FLOW_MATCHER_FLOW_TYPE, uverbs::AttrKind::enum_in, true, MLX5_IB_FLOW_TYPE_MC_DEFAULT + 1, 2, false, 0,
     AttrAccess::read},
    uverbs::in_attr(MLX5_IB_ATTR_FLOW_MATCHER_MATCH_CRITERIA, 1),
    uverbs::flags_attr(MLX5_IB_ATTR_FLOW_MATCHER_FLOW_FLAGS),
    uverbs::const_attr(MLX5_IB_ATTR_FLOW_MATCHER_FT_TYPE, false),
};

std::uint8_t alternative(const Request& request, std::uint16_t id) {
  const ib_uverbs_ioctl_hdr& header = *request.header();
  for (unsigned i = 0; i < header.num_attrs; ++i)
    if (header.attrs[i].attr_id == id) return header.attrs[i].attr_data.enum_data.elem_id;
  return 0;
}

int read_table(const Request& request, FlowMatcher& matcher) {
  const bool by_type = request.has(MLX5_IB_ATTR_FLOW_MATCHER_FT_TYPE);
  if (by_type && request.has(MLX5_IB_ATTR_FLOW_MATCHER_FLOW_FLAGS)) return EINVAL;
  if (by_type) {
    const auto type = request.value<std::uint64_t>(MLX5_IB_ATTR_FLOW_MATCHER_FT_TYPE);
    if (type > MLX5_IB_UAPI_FLOW_TABLE_TYPE_RDMA_TX) return EINVAL;
    matcher.table = static_cast<std::uint32_t>(type);
    return 0;
  }
  std::uint32_t flags = 0;
  if (int error = request.flags(MLX5_IB_ATTR_FLOW_MATCHER_FLOW_FLAGS, kEgress, &flags)) return error;
  if (flags) matcher.table = MLX5_IB_UAPI_FLOW_TABLE_TYPE_NIC_TX;
  return 0;
}

int create_matcher(File& file, Request& request) {
  auto matcher = std::make_unique<FlowMatcher>();
  const auto mask = request.in(MLX5_IB_ATTR_FLOW_MATCHER_MATCH_MASK);
  std::memcpy(matcher->mask.data(), mask.data(), mask.size());
  matcher->type = alternative(request, MLX5_IB_ATTR_FLOW_MATCHER_FLOW_TYPE);
  const auto priority = request.in(MLX5_IB_ATTR_FLOW_MATCHER_FLOW_TYPE);
  const bool normal = matcher->type == MLX5_IB_FLOW_TYPE_NORMAL;
  if (priority.size() != (normal ? sizeof(std::uint16_t) : 0)) return EINVAL;
  if (normal) matcher->priority = request.value<std::uint16_t>(MLX5_IB_ATTR_FLOW_MATCHER_FLOW_TYPE);
  matcher->criteria = request.value<std::uint8_t>(MLX5_IB_ATTR_FLOW_MATCHER_MATCH_CRITERIA);
  if (int error = read_table(request, *matcher)) return error;
  request.set_id(MLX5_IB_ATTR_FLOW_MATCHER_CREATE_HANDLE, file.objects().add(std::move(matcher)));
  return 0;
}

constexpr AttrSpec kDestroyMatcherAttrs[] = {
    uverbs::object_attr(MLX5_IB_ATTR_FLOW_MATCHER_DESTROY_HANDLE, MLX5_IB_OBJECT_FLOW_MATCHER, AttrAccess::destroy)};

// ---- flows ----

constexpr AttrSpec kFlowAttrs[] = {
    uverbs::object_attr(MLX5_IB_ATTR_CREATE_FLOW_HANDLE, UVERBS_OBJECT_FLOW, AttrAccess::create),
    match_attr(MLX5_IB_ATTR_CREATE_FLOW_MATCH_VALUE),
    uverbs::object_attr(MLX5_IB_ATTR_CREATE_FLOW_MATCHER, MLX5_IB_OBJECT_FLOW_MATCHER, AttrAccess::read),
    uverbs::object_attr(MLX5_IB_ATTR_CREATE_FLOW_DEST_QP, UVERBS_OBJECT_QP, AttrAccess::read, false),
    uverbs::object_attr(MLX5_IB_ATTR_CREATE_FLOW_DEST_DEVX, MLX5_IB_OBJECT_DEVX_OBJ, AttrAccess::read, false),
    {MLX5_IB_ATTR_CREATE_FLOW_ARR_FLOW_ACTIONS, uverbs::AttrKind::idrs_in, false, 0, 0, false, UVERBS_OBJECT_FLOW_ACTION,
     AttrAccess::read},
    uverbs::in_attr(MLX5_IB_ATTR_CREATE_FLOW_TAG, 4, false),
    {MLX5_IB_ATTR_CREATE_FLOW_ARR_COUNTERS_DEVX, uverbs::AttrKind::idrs_in, false, 0, 0, false, MLX5_IB_OBJECT_DEVX_OBJ,
     AttrAccess::read},
    uverbs::any_in_attr(MLX5_IB_ATTR_CREATE_FLOW_ARR_COUNTERS_DEVX_OFFSET, false),
    uverbs::flags_attr(MLX5_IB_ATTR_CREATE_FLOW_FLAGS),
};

// A TIR or a table of DEVX, or the TIR of a raw packet QP.
int find_destination(File& file, const Request& request, FlowVerdict* verdict, Flow& flow) {
  int error = 0;
  if (request.has(MLX5_IB_ATTR_CREATE_FLOW_DEST_DEVX)) {
    auto* object = file.find<DevxObject>(request.handle(MLX5_IB_ATTR_CREATE_FLOW_DEST_DEVX), MLX5_IB_OBJECT_DEVX_OBJ, &error);
    if (!object) return error;
    const bool tir = object->id.kind == prm::Opcode::create_tir;
    if (!tir && object->id.kind != prm::Opcode::create_flow_table) return EINVAL;
    verdict->target = FlowTarget{tir ? prm::FlowDestination::tir : prm::FlowDestination::flow_table, object->id.number};
    return 0;
  }
  if (!request.has(MLX5_IB_ATTR_CREATE_FLOW_DEST_QP)) return 0;
  Qp* qp = file.find<Qp>(request.handle(MLX5_IB_ATTR_CREATE_FLOW_DEST_QP), UVERBS_OBJECT_QP, &error);
  if (!qp) return error;
  if (!qp->raw || !qp->raw->tirn) return EINVAL;
  verdict->target = FlowTarget{prm::FlowDestination::tir, qp->raw->tirn};
  flow.under.push_back(qp);
  return 0;
}

// What the type of table allows of destinations and of the flags that stand for one.
bool is_possible(std::uint32_t table, bool devx, bool qp, bool flags) {
  switch (table) {
    case MLX5_IB_UAPI_FLOW_TABLE_TYPE_NIC_RX: return devx + qp + flags == 1;
    case MLX5_IB_UAPI_FLOW_TABLE_TYPE_FDB: return devx || flags;
    case MLX5_IB_UAPI_FLOW_TABLE_TYPE_RDMA_RX: return devx != qp && !flags;
    default: return !qp && !(devx && flags);
  }
}

int read_verdict(File& file, const Request& request, std::uint32_t table, FlowVerdict* verdict, Flow& flow) {
  constexpr std::uint32_t miss = MLX5_IB_ATTR_CREATE_FLOW_FLAGS_DEFAULT_MISS, drop = MLX5_IB_ATTR_CREATE_FLOW_FLAGS_DROP;
  std::uint32_t flags = 0;
  if (request.flags(MLX5_IB_ATTR_CREATE_FLOW_FLAGS, miss | drop, &flags) || flags == (miss | drop)) return EINVAL;
  const bool devx = request.has(MLX5_IB_ATTR_CREATE_FLOW_DEST_DEVX), qp = request.has(MLX5_IB_ATTR_CREATE_FLOW_DEST_QP);
  if (!is_possible(table, devx, qp, flags != 0)) return EINVAL;
  if (int error = find_destination(file, request, verdict, flow)) return error == ENOENT ? ENOENT : EINVAL;
  verdict->drop = flags & drop;
  // Behind this process's tables there is nothing, so a default miss is nobody's; RoCE packets go their way.
  const bool roce = is_roce(table);
  verdict->leaves = flags & miss && !roce;
  verdict->allow = roce && !devx && !qp && !verdict->drop;
  const bool tir = verdict->target && verdict->target->type == prm::FlowDestination::tir;
  if (tir && devx && table != MLX5_IB_UAPI_FLOW_TABLE_TYPE_NIC_RX) return EINVAL;
  if (request.has(MLX5_IB_ATTR_CREATE_FLOW_TAG)) {
    verdict->tag = request.value<std::uint32_t>(MLX5_IB_ATTR_CREATE_FLOW_TAG);
    verdict->has_tag = true;
    if (verdict->tag >= kTagEnd) return EINVAL;
  }
  return request.in(MLX5_IB_ATTR_CREATE_FLOW_ARR_FLOW_ACTIONS).empty() ? 0 : ENOENT;  // there are no flow actions
}

int read_counter(File& file, const Request& request, FlowVerdict* verdict) {
  const auto handles = request.in(MLX5_IB_ATTR_CREATE_FLOW_ARR_COUNTERS_DEVX);
  if (handles.empty()) return 0;
  if (handles.size() != sizeof(std::uint32_t)) return EINVAL;
  std::uint32_t handle = 0, offset = 0;
  std::memcpy(&handle, handles.data(), sizeof handle);
  if (request.has(MLX5_IB_ATTR_CREATE_FLOW_ARR_COUNTERS_DEVX_OFFSET)) {
    const auto offsets = request.in(MLX5_IB_ATTR_CREATE_FLOW_ARR_COUNTERS_DEVX_OFFSET);
    if (offsets.size() != sizeof offset) return EINVAL;
    std::memcpy(&offset, offsets.data(), sizeof offset);
  }
  int error = 0;
  auto* object = file.find<DevxObject>(handle, MLX5_IB_OBJECT_DEVX_OBJ, &error);
  if (!object) return error;
  if (object->id.kind != prm::Opcode::alloc_flow_counter || offset >= object->counters) return EINVAL;
  verdict->counter = object->id.number + offset;
  return 0;
}

int create_flow(File& file, Request& request) {
  if (!may_use_raw_packets()) return EPERM;
  int error = 0;
  auto* matcher = file.find<FlowMatcher>(request.handle(MLX5_IB_ATTR_CREATE_FLOW_MATCHER), MLX5_IB_OBJECT_FLOW_MATCHER, &error);
  if (!matcher) return error;
  auto flow = std::make_unique<Flow>();
  FlowVerdict verdict;
  if ((error = read_verdict(file, request, matcher->table, &verdict, *flow)) || (error = read_counter(file, request, &verdict))) return error;
  if (matcher->type != MLX5_IB_FLOW_TYPE_NORMAL) return EOPNOTSUPP;
  if (matcher->priority >= FlowPriority::regular) return ENOMEM;
  const bool roce = is_roce(matcher->table);
  if (!roce && matcher->table != MLX5_IB_UAPI_FLOW_TABLE_TYPE_NIC_RX) return EOPNOTSUPP;  // this device has no others
  FlowMatch match;
  match.mask = matcher->mask;
  match.criteria = matcher->criteria;
  const auto value = request.in(MLX5_IB_ATTR_CREATE_FLOW_MATCH_VALUE);
  std::memcpy(match.value.data(), value.data(), value.size());
  FlowTables::Rule* rule = nullptr;
  const unsigned priority =
      is_multicast(match) && !roce ? FlowPriority::multicast : FlowPriority::of(matcher->priority, false);
  if (roce) flow->tables = &file.node().roce_tables(matcher->table == MLX5_IB_UAPI_FLOW_TABLE_TYPE_RDMA_TX);
  FlowTables& tables = roce ? *flow->tables : file.node().flow_tables();
  if ((error = tables.add(file.device(), priority, match, verdict, &rule))) return error;
  flow->rules.push_back(rule);
  flow->under.push_back(matcher);
  for (Object* object : flow->under) ++object->users;
  request.set_id(MLX5_IB_ATTR_CREATE_FLOW_HANDLE, file.objects().add(std::move(flow)));
  return 0;
}

constexpr AttrSpec kDestroyFlowAttrs[] = {
    uverbs::object_attr(MLX5_IB_ATTR_DESTROY_FLOW_HANDLE, UVERBS_OBJECT_FLOW, AttrAccess::destroy)};

constexpr Method kMethods[] = {
    {{MLX5_IB_OBJECT_FLOW_MATCHER, MLX5_IB_METHOD_FLOW_MATCHER_CREATE, kMatcherAttrs}, create_matcher},
    {{MLX5_IB_OBJECT_FLOW_MATCHER, MLX5_IB_METHOD_FLOW_MATCHER_DESTROY, kDestroyMatcherAttrs},
     destroy_method<MLX5_IB_OBJECT_FLOW_MATCHER, MLX5_IB_ATTR_FLOW_MATCHER_DESTROY_HANDLE>},
    {{UVERBS_OBJECT_FLOW, MLX5_IB_METHOD_CREATE_FLOW, kFlowAttrs}, create_flow},
    {{UVERBS_OBJECT_FLOW, MLX5_IB_METHOD_DESTROY_FLOW, kDestroyFlowAttrs},
     destroy_method<UVERBS_OBJECT_FLOW, MLX5_IB_ATTR_DESTROY_FLOW_HANDLE>},
};

}  // namespace

std::span<const Method> flow_matcher_methods() { return kMethods; }

}  // namespace verbena::kernel
