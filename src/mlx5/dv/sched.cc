// mlx5dv: the transmit scheduler: nodes, leaves, and QPs under leaves. Each call is one command through the raw layer.

#include <array>
#include <memory>
#include <new>

#include "mlx5/devx/command.h"
#include "mlx5/devx/verbs_object.h"
#include "mlx5/export.h"
#include "prm/qp.h"
#include "prm/raw.h"
#include "prm/scheduling.h"

namespace verbena::mlx5 {
namespace {

// What a node and a leaf are to us.
struct Element {
  mlx5dv_devx_obj* object;
  Context* context;
  std::uint32_t id;
};

using Type = prm::SchedulingElementType;
using Head = prm::GeneralObjInCmdHdr;
constexpr std::uint32_t kFlags = MLX5DV_SCHED_ELEM_ATTR_FLAGS_BW_SHARE | MLX5DV_SCHED_ELEM_ATTR_FLAGS_MAX_AVG_BW;
static_assert(MLX5DV_SCHED_ELEM_ATTR_FLAGS_BW_SHARE == prm::SchedulingSelect::bw_share &&
              MLX5DV_SCHED_ELEM_ATTR_FLAGS_MAX_AVG_BW == prm::SchedulingSelect::max_average_bw);

Element* element_of(const void* opaque) { return static_cast<Element*>(const_cast<void*>(opaque)); }

bool is_valid(const mlx5dv_sched_attr* attr, Type type) {
  if (!attr || attr->comp_mask || (attr->flags & ~kFlags)) return false;
  return attr->parent || (type == Type::tsar && !attr->flags);
}

bool has_attributes(const Context* context, std::uint32_t flags) {
  return (!(flags & MLX5DV_SCHED_ELEM_ATTR_FLAGS_BW_SHARE) || context->hca.nic_bw_share) &&
         (!(flags & MLX5DV_SCHED_ELEM_ATTR_FLAGS_MAX_AVG_BW) || context->hca.nic_rate_limit);
}

bool has_scheduling(const Context* context) {
  const auto has = [](std::uint32_t mask, auto bit) { return mask >> static_cast<unsigned>(bit) & 1; };
  return context->hca.qos && has(context->hca.nic_element_type, Type::tsar) &&
         has(context->hca.nic_element_type, Type::queue_group) &&
         has(context->hca.nic_tsar_type, prm::TsarType::dwrr);
}

// CREATE or MODIFY_GENERAL_OBJECT with the attributes that `flags` names.
struct Command {
  std::array<std::byte, Head::size + prm::SchedElem::size> in{};
  prm::Box<prm::GeneralObjOutCmdHdr> out;

  Command(prm::Opcode opcode, std::uint32_t id, const mlx5dv_sched_attr& attr, Type type) {
    using C = prm::SchedulingContext;
    const prm::View<Head> head(in.data());
    head.set<Head::opcode>(static_cast<std::uint16_t>(opcode)).set<Head::obj_id>(id);
    head.set<Head::obj_type>(prm::GeneralObjectType::scheduling_element);
    const prm::View<prm::SchedElem> body(in.data() + Head::size);
    body.set<prm::SchedElem::modify_field_select>(attr.flags);
    body.set<prm::SchedElem::scheduling_hierarchy>(static_cast<std::uint32_t>(prm::SchedulingHierarchy::nic));
    const auto context = body.sub<prm::SchedElem::sched_context>();
    context.set<C::element_type>(static_cast<std::uint32_t>(type));
    if (attr.flags & MLX5DV_SCHED_ELEM_ATTR_FLAGS_BW_SHARE) context.set<C::bw_share>(attr.bw_share);
    if (attr.flags & MLX5DV_SCHED_ELEM_ATTR_FLAGS_MAX_AVG_BW) context.set<C::max_average_bw>(attr.max_avg_bw);
  }
  void set_parent(std::uint32_t id) {
    const prm::View<prm::SchedElem> body(in.data() + Head::size);
    body.sub<prm::SchedElem::sched_context>().set<prm::SchedulingContext::parent_element_id>(id);
  }
};

Element* create(ibv_context* ibv, const mlx5dv_sched_attr* attr, Type type) {
  Context* context = mlx5_context(ibv);
  if (!context) return fail_null(EOPNOTSUPP);
  if (!is_valid(attr, type)) return fail_null(EINVAL);
  if ((type == Type::tsar && !has_scheduling(context)) || !has_attributes(context, attr->flags))
    return fail_null(EOPNOTSUPP);
  std::unique_ptr<Element> element(new (std::nothrow) Element{nullptr, context, 0});
  if (!element) return fail_null(ENOMEM);
  Command command(prm::Opcode::create_general_object, 0, *attr, type);
  if (attr->parent) command.set_parent(element_of(attr->parent)->id);
  element->object = mlx5dv_devx_obj_create(ibv, command.in.data(), command.in.size(), command.out.data(),
                                           prm::GeneralObjOutCmdHdr::size);
  if (!element->object) return fail_null(command_errno(errno, command.out.data()));
  element->id = command.out.get<prm::GeneralObjOutCmdHdr::obj_id>();
  return element.release();
}

int modify(Element* element, const mlx5dv_sched_attr* attr, Type type) {
  if (!element || !is_valid(attr, type)) return fail(EINVAL);
  if (!has_attributes(element->context, attr->flags)) return fail(EOPNOTSUPP);
  Command command(prm::Opcode::modify_general_object, element->id, *attr, type);
  const int error = mlx5dv_devx_obj_modify(element->object, command.in.data(), command.in.size(), command.out.data(),
                                           prm::GeneralObjOutCmdHdr::size);
  return error ? command_errno(error, command.out.data()) : 0;
}

int destroy(Element* element) {
  if (int error = mlx5dv_devx_obj_destroy(element->object)) return error;
  delete element;
  return 0;
}

// INIT2INIT_QP or RTS2RTS_QP with nothing but the two queue groups.
template <class In, class Out>
int move_qp(ibv_qp* qp, prm::Opcode opcode, std::uint32_t requester, std::uint32_t responder) {
  prm::Box<In, prm::QpcExt::size> in;
  prm::Box<Out> out;
  in.template set<typename In::opcode>(opcode).template set<typename In::qpn>(qp->qp_num);
  in.template set<typename In::qpc_ext>(1);
  in.template set<typename In::opt_param_mask_95_32>(prm::QpExtOptParam::qos_queue_group_id);
  const prm::View<prm::QpcExt> ext(in.data() + In::size);
  ext.set<prm::QpcExt::qos_queue_group_id_requester>(requester);
  ext.set<prm::QpcExt::qos_queue_group_id_responder>(responder);
  const int error = modify_qp_by_command(qp, in.data(), in.size(), out.data(), Out::size);
  return error ? command_errno(error, out.data()) : 0;
}

int move_connected_qp(ibv_qp* qp, std::uint32_t requester, std::uint32_t responder) {
  const auto& hca = context_of(qp->context)->hca;
  if (!hca.qpc_extension || !hca.nic_qp_scheduling) return EOPNOTSUPP;
  if (qp->state == IBV_QPS_INIT)
    return move_qp<prm::Init2initQpIn, prm::Init2initQpOut>(qp, prm::Opcode::init2init_qp, requester, responder);
  if (qp->state == IBV_QPS_RTS)
    return move_qp<prm::Rts2rtsQpIn, prm::Rts2rtsQpOut>(qp, prm::Opcode::rts2rts_qp, requester, responder);
  return EOPNOTSUPP;
}

// Of a raw packet QP it is its send queue that has a queue group.
int move_frame_qp(ibv_qp* qp, std::uint32_t group) {
  using In = prm::ModifySqIn;
  if (qp->state != IBV_QPS_RTS || !context_of(qp->context)->hca.nic_sq_scheduling) return EOPNOTSUPP;
  prm::Box<In> in;
  prm::Box<prm::ModifySqOut> out;
  in.set<In::opcode>(prm::Opcode::modify_sq).set<In::sqn>(qp_of(qp)->parts.sqn);
  in.set<In::sq_state>(prm::SqState::rdy).set<In::modify_bitmask>(prm::SqModify::qos_queue_group_id);
  in.sub<In::ctx>().set<prm::Sqc::state>(prm::SqState::rdy).set<prm::Sqc::qos_queue_group_id>(group);
  const int error = modify_qp_by_command(qp, in.data(), In::size, out.data(), prm::ModifySqOut::size);
  return error ? command_errno(error, out.data()) : 0;
}

}  // namespace
}  // namespace verbena::mlx5

using namespace verbena;
using namespace verbena::mlx5;

extern "C" {

VERBENA_MLX5_EXPORT mlx5dv_sched_node* mlx5dv_sched_node_create(ibv_context* ibv, const mlx5dv_sched_attr* attr) {
  return reinterpret_cast<mlx5dv_sched_node*>(create(ibv, attr, Type::tsar));
}
VERBENA_MLX5_EXPORT mlx5dv_sched_leaf* mlx5dv_sched_leaf_create(ibv_context* ibv, const mlx5dv_sched_attr* attr) {
  return reinterpret_cast<mlx5dv_sched_leaf*>(create(ibv, attr, Type::queue_group));
}
VERBENA_MLX5_EXPORT int mlx5dv_sched_node_modify(mlx5dv_sched_node* node, const mlx5dv_sched_attr* attr) {
  return modify(element_of(node), attr, Type::tsar);
}
VERBENA_MLX5_EXPORT int mlx5dv_sched_leaf_modify(mlx5dv_sched_leaf* leaf, const mlx5dv_sched_attr* attr) {
  return modify(element_of(leaf), attr, Type::queue_group);
}
VERBENA_MLX5_EXPORT int mlx5dv_sched_node_destroy(mlx5dv_sched_node* node) { return destroy(element_of(node)); }
VERBENA_MLX5_EXPORT int mlx5dv_sched_leaf_destroy(mlx5dv_sched_leaf* leaf) { return destroy(element_of(leaf)); }

VERBENA_MLX5_EXPORT int mlx5dv_modify_qp_sched_elem(ibv_qp* qp, const mlx5dv_sched_leaf* requester,
                                                    const mlx5dv_sched_leaf* responder) {
  if (!mlx5_context(qp->context)) return EOPNOTSUPP;
  const std::uint32_t sends = requester ? element_of(requester)->id : 0;
  const std::uint32_t answers = responder ? element_of(responder)->id : 0;
  switch (qp->qp_type) {
    case IBV_QPT_UC:
    case IBV_QPT_UD:
      if (responder) return EINVAL;
      [[fallthrough]];
    case IBV_QPT_RC:
      return move_connected_qp(qp, sends, answers);
    case IBV_QPT_RAW_PACKET:
      return responder ? EINVAL : move_frame_qp(qp, sends);
    default:
      return EOPNOTSUPP;
  }
}

}  // extern "C"
