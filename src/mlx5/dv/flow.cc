// mlx5dv: flows by the device's own match, through the kernel.

#include <rdma/ib_user_ioctl_cmds.h>
#include <rdma/mlx5_user_ioctl_cmds.h>

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <memory>
#include <utility>

#include "mlx5/devx/object.h"
#include "mlx5/export.h"
#include "mlx5/ops.h"
#include "support/c_enum.h"

// The header turns the plain name into a macro; programs built before 45 bind the symbol.
#undef mlx5dv_create_flow

extern "C" ibv_flow* mlx5dv_create_flow(mlx5dv_flow_matcher*, mlx5dv_flow_match_parameters*, std::size_t,
                                        mlx5dv_flow_action_attr*);

// Opaque to programs.
struct mlx5dv_flow_matcher {
  verbena::mlx5::Context* context;
  std::uint32_t handle;
};

namespace {

using namespace verbena;
using namespace verbena::mlx5;

constexpr unsigned kMaxFlowActions = 8;
// An action as programs built before 45 have it: without an offset behind the object.
constexpr std::size_t kOldActionBytes = offsetof(mlx5dv_flow_action_attr, bulk_obj.offset);

// What the actions of one flow come to in the request.
class Actions {
 public:
  explicit Actions(uverbs::Bundle& bundle) : bundle_(bundle) {}

  // 0 or an errno.
  int add(const mlx5dv_flow_action_attr& action) {
    switch (action.type) {
      case MLX5DV_FLOW_ACTION_DEST_IBV_QP:
        if (!take_destination()) return EOPNOTSUPP;
        bundle_.in_object(MLX5_IB_ATTR_CREATE_FLOW_DEST_QP, action.qp->handle);
        return 0;
      case MLX5DV_FLOW_ACTION_DEST_DEVX:
        if (!take_destination()) return EOPNOTSUPP;
        bundle_.in_object(MLX5_IB_ATTR_CREATE_FLOW_DEST_DEVX, action.obj->handle);
        return 0;
      case MLX5DV_FLOW_ACTION_DEFAULT_MISS:
        return flags(MLX5_IB_ATTR_CREATE_FLOW_FLAGS_DEFAULT_MISS);
      case MLX5DV_FLOW_ACTION_DROP:
        return flags(MLX5_IB_ATTR_CREATE_FLOW_FLAGS_DROP);
      case MLX5DV_FLOW_ACTION_IBV_FLOW_ACTION:
        if (count_ == kMaxFlowActions) return EOPNOTSUPP;
        handles_[count_++] = verbs::derived<verbs::FlowAction>(action.action)->handle;
        return 0;
      case MLX5DV_FLOW_ACTION_TAG:
        if (std::exchange(tag_, true)) return EINVAL;
        bundle_.in_u32(MLX5_IB_ATTR_CREATE_FLOW_TAG, action.tag_value);
        return 0;
      case MLX5DV_FLOW_ACTION_COUNTERS_DEVX:
        if (std::exchange(counts_, true)) return EOPNOTSUPP;
        counter_ = action.obj->handle;
        bundle_.in_objects(MLX5_IB_ATTR_CREATE_FLOW_ARR_COUNTERS_DEVX, &counter_, 1);
        return 0;
      case MLX5DV_FLOW_ACTION_COUNTERS_DEVX_WITH_OFFSET:
        if (std::exchange(counts_, true)) return EOPNOTSUPP;
        counter_ = action.bulk_obj.obj->handle;
        offset_ = action.bulk_obj.offset;
        bundle_.in_objects(MLX5_IB_ATTR_CREATE_FLOW_ARR_COUNTERS_DEVX, &counter_, 1);
        bundle_.in(MLX5_IB_ATTR_CREATE_FLOW_ARR_COUNTERS_DEVX_OFFSET, &offset_, sizeof offset_);
        return 0;
      default:
        return EOPNOTSUPP;
    }
  }
  void finish() {
    if (count_) bundle_.in_objects(MLX5_IB_ATTR_CREATE_FLOW_ARR_FLOW_ACTIONS, handles_, count_);
  }

 private:
  bool take_destination() { return !std::exchange(has_destination_, true); }
  int flags(std::uint32_t bits) {
    if (!take_destination()) return EOPNOTSUPP;
    bundle_.in_u32(MLX5_IB_ATTR_CREATE_FLOW_FLAGS, bits);
    return 0;
  }

  uverbs::Bundle& bundle_;
  std::uint32_t handles_[kMaxFlowActions] = {};
  std::uint32_t counter_ = 0, offset_ = 0;
  unsigned count_ = 0;
  bool has_destination_ = false, tag_ = false, counts_ = false;
};

ibv_flow* create_flow(mlx5dv_flow_matcher* matcher, const mlx5dv_flow_match_parameters* value, std::size_t count,
                      const mlx5dv_flow_action_attr* list, std::size_t action_bytes) {
  std::unique_ptr<Flow> flow(new (std::nothrow) Flow());
  if (!flow) return fail_null(ENOMEM);
  uverbs::Bundle bundle(UVERBS_OBJECT_FLOW, MLX5_IB_METHOD_CREATE_FLOW);
  const auto handle = bundle.out_object(MLX5_IB_ATTR_CREATE_FLOW_HANDLE);
  bundle.in(MLX5_IB_ATTR_CREATE_FLOW_MATCH_VALUE, value->match_buf, value->match_sz);
  bundle.in_object(MLX5_IB_ATTR_CREATE_FLOW_MATCHER, matcher->handle);
  Actions actions(bundle);
  for (std::size_t i = 0; i < count; ++i) {
    mlx5dv_flow_action_attr action = {};
    std::memcpy(&action, reinterpret_cast<const char*>(list) + i * action_bytes, std::min(action_bytes, sizeof action));
    if (int error = actions.add(action)) return fail_null(error);
  }
  actions.finish();
  if (int error = verbena_execute(matcher->context, &bundle)) return fail_null(error);
  flow->flow.handle = bundle.object(handle);
  flow->flow.context = matcher->context->ibv();
  return &flow.release()->flow;
}

}  // namespace

extern "C" {

// Newer programs say how long an action is.
VERBENA_MLX5_EXPORT ibv_flow* __mlx5dv_create_flow(mlx5dv_flow_matcher* matcher, mlx5dv_flow_match_parameters* value,
                                                   std::size_t count, mlx5dv_flow_action_attr* actions,
                                                   std::size_t action_bytes) {
  return create_flow(matcher, value, count, actions, action_bytes);
}
VERBENA_MLX5_EXPORT ibv_flow* mlx5dv_create_flow(mlx5dv_flow_matcher* matcher, mlx5dv_flow_match_parameters* value,
                                                 std::size_t count, mlx5dv_flow_action_attr* actions) {
  return create_flow(matcher, value, count, actions, kOldActionBytes);
}

VERBENA_MLX5_EXPORT mlx5dv_flow_matcher* mlx5dv_create_flow_matcher(ibv_context* ibv, mlx5dv_flow_matcher_attr* attr) {
  Context* context = mlx5_context(ibv);
  if (!context) return fail_null(EOPNOTSUPP);
  if (attr->comp_mask & ~std::uint64_t{MLX5DV_FLOW_MATCHER_MASK_FT_TYPE}) return fail_null(EOPNOTSUPP);
  if (number_of(attr->type) != IBV_FLOW_ATTR_NORMAL) return fail_null(EOPNOTSUPP);
  std::unique_ptr<mlx5dv_flow_matcher> matcher(new (std::nothrow) mlx5dv_flow_matcher{context, 0});
  if (!matcher) return fail_null(ENOMEM);
  uverbs::Bundle bundle(MLX5_IB_OBJECT_FLOW_MATCHER, MLX5_IB_METHOD_FLOW_MATCHER_CREATE);
  const auto handle = bundle.out_object(MLX5_IB_ATTR_FLOW_MATCHER_CREATE_HANDLE);
  bundle.in(MLX5_IB_ATTR_FLOW_MATCHER_MATCH_MASK, attr->match_mask->match_buf, attr->match_mask->match_sz);
  bundle.in(MLX5_IB_ATTR_FLOW_MATCHER_MATCH_CRITERIA, &attr->match_criteria_enable, sizeof attr->match_criteria_enable);
  bundle.in_enum(MLX5_IB_ATTR_FLOW_MATCHER_FLOW_TYPE, IBV_FLOW_ATTR_NORMAL, &attr->priority, sizeof attr->priority);
  if (attr->comp_mask & MLX5DV_FLOW_MATCHER_MASK_FT_TYPE)
    bundle.in_const(MLX5_IB_ATTR_FLOW_MATCHER_FT_TYPE, number_of(attr->ft_type));
  if (attr->flags) bundle.in_const(MLX5_IB_ATTR_FLOW_MATCHER_FLOW_FLAGS, attr->flags);
  if (int error = verbena_execute(context, &bundle)) return fail_null(error);
  matcher->handle = bundle.object(handle);
  return matcher.release();
}

VERBENA_MLX5_EXPORT int mlx5dv_destroy_flow_matcher(mlx5dv_flow_matcher* matcher) {
  uverbs::Bundle bundle(MLX5_IB_OBJECT_FLOW_MATCHER, MLX5_IB_METHOD_FLOW_MATCHER_DESTROY);
  bundle.in_object(MLX5_IB_ATTR_FLOW_MATCHER_DESTROY_HANDLE, matcher->handle);
  if (int error = verbena_execute(matcher->context, &bundle)) return error;
  delete matcher;
  return 0;
}

}  // extern "C"
