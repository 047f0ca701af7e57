// Flows of the verbs, and their counters.

#include <algorithm>
#include <memory>

#include "mlx5/ops.h"
#include "support/c_enum.h"

namespace verbena::mlx5 {

namespace {

// The counters that the specifications name: one object at most.
int find_counters(const ibv_flow_attr& attr, Counters** out) {
  const auto* spec = reinterpret_cast<const char*>(&attr + 1);
  for (unsigned i = 0; i < attr.num_of_specs; ++i) {
    ibv_flow_spec_counter_action action;
    std::memcpy(&action, spec, offsetof(ibv_flow_spec_counter_action, counters));
    if (action.size == 0) return EINVAL;
    if (action.type == IBV_FLOW_SPEC_ACTION_COUNT) {
      if (*out || action.size < sizeof action) return EINVAL;
      std::memcpy(&action, spec, sizeof action);
      *out = counters_of(action.counters);
    }
    spec += action.size;
  }
  return 0;
}

// The driver's part of the request: what the counters count, told with their first flow.
struct DriverPart {
  mlx5_ib_create_flow* head() { return reinterpret_cast<mlx5_ib_create_flow*>(bytes); }
  std::size_t size = sizeof(mlx5_ib_create_flow);
  alignas(8) std::byte bytes[sizeof(mlx5_ib_create_flow) + sizeof(mlx5_ib_flow_counters_data)] = {};
};

int describe(const Counters& counters, DriverPart* part) {
  part->size = sizeof part->bytes;
  if (counters.flows) return 0;
  if (counters.points.empty()) return EINVAL;  // nothing to count
  mlx5_ib_flow_counters_data data = {};
  static_assert(sizeof(Counters::Point) == sizeof(mlx5_ib_flow_counters_desc));
  const void* list = counters.points.data();
  std::memcpy(&data, &list, sizeof list);
  data.ncounters = static_cast<std::uint32_t>(counters.points.size());
  std::memcpy(part->bytes + sizeof(mlx5_ib_create_flow), &data, sizeof data);
  part->head()->ncounters_data = 1;
  return 0;
}

}  // namespace

ibv_flow* create_flow(ibv_qp* qp, ibv_flow_attr* attr) {
  std::unique_ptr<Flow> flow(new (std::nothrow) Flow());
  if (!flow) return fail_null(ENOMEM);
  if (int error = find_counters(*attr, &flow->counters)) return fail_null(error);
  DriverPart part;
  std::unique_lock<std::mutex> guard;
  if (flow->counters) {
    guard = std::unique_lock(flow->counters->mutex);
    if (int error = describe(*flow->counters, &part)) return fail_null(error);
  }
  if (int error = verbena_cmd_create_flow(qp, &flow->flow, attr, part.bytes, part.size)) return fail_null(error);
  if (flow->counters) ++flow->counters->flows;
  return &flow.release()->flow;
}

int destroy_flow(ibv_flow* ibflow) {
  std::unique_ptr<Flow> flow(flow_of(ibflow));
  if (int error = verbena_cmd_destroy_flow(ibflow)) {
    flow.release();
    return error;
  }
  if (!flow->counters) return 0;
  std::lock_guard guard(flow->counters->mutex);
  --flow->counters->flows;
  return 0;
}

ibv_counters* create_counters(ibv_context* ibv, ibv_counters_init_attr* attr) {
  if (attr->comp_mask) return fail_null(EOPNOTSUPP);
  std::unique_ptr<Counters> counters(new (std::nothrow) Counters());
  if (!counters) return fail_null(ENOMEM);
  if (int error = verbena_cmd_create_counters(ibv, attr, counters.get(), nullptr)) return fail_null(error);
  return &counters.release()->counters;
}

int destroy_counters(ibv_counters* ibcounters) {
  Counters* counters = counters_of(ibcounters);
  if (int error = verbena_cmd_destroy_counters(counters)) return error;
  delete counters;
  return 0;
}

int read_counters(ibv_counters* counters, std::uint64_t* values, std::uint32_t count, std::uint32_t flags) {
  return verbena_cmd_read_counters(counters_of(counters), values, count, flags, nullptr);
}

// Points are bound when a flow is made, so they cannot be added to one.
int attach_counters_point_flow(ibv_counters* ibcounters, ibv_counter_attach_attr* attr, ibv_flow* flow) {
  if (flow) return ENOTSUP;
  if (attr->comp_mask) return EOPNOTSUPP;
  const auto what = number_of(attr->counter_desc);
  if (what != IBV_COUNTER_PACKETS && what != IBV_COUNTER_BYTES) return ENOTSUP;
  Counters* counters = counters_of(ibcounters);
  std::lock_guard guard(counters->mutex);
  if (counters->flows) return EBUSY;
  // The latest one stands first, as in rdma-core.
  counters->points.insert(counters->points.begin(), {what, attr->index});
  return 0;
}

}  // namespace verbena::mlx5
