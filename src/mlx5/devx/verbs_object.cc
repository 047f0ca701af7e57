// The ten: a raw query or change of an object that verbs made.
//
// Whatever a command changes behind the library's back, the library must know: a QP takes work only in states that it
// thinks are right for it.

#include "mlx5/devx/verbs_object.h"

#include "mlx5/devx/object.h"
#include "mlx5/export.h"
#include "mlx5/qp_state.h"
#include "prm/general_object.h"

namespace {

using namespace verbena;
using namespace verbena::mlx5;

ibv_qp_state state_after(prm::Opcode opcode) {
  switch (opcode) {
    case prm::Opcode::rst2init_qp:
    case prm::Opcode::init2init_qp:
      return IBV_QPS_INIT;
    case prm::Opcode::init2rtr_qp:
      return IBV_QPS_RTR;
    case prm::Opcode::rtr2rts_qp:
    case prm::Opcode::rts2rts_qp:
    case prm::Opcode::sqerr2rts_qp:
    case prm::Opcode::sqd_rts_qp:
      return IBV_QPS_RTS;
    case prm::Opcode::qp_2err:
      return IBV_QPS_ERR;
    case prm::Opcode::qp_2rst:
      return IBV_QPS_RESET;
    default:
      return IBV_QPS_UNKNOWN;
  }
}

template <class Object>
int query(Object* object, const void* in, std::size_t in_length, void* out, std::size_t out_length) {
  Context* context = mlx5_context(object->context);
  return context ? query_by_handle(context, object->handle, in, in_length, out, out_length) : EOPNOTSUPP;
}

template <class Object>
int modify(Object* object, const void* in, std::size_t in_length, void* out, std::size_t out_length) {
  Context* context = mlx5_context(object->context);
  return context ? modify_by_handle(context, object->handle, in, in_length, out, out_length) : EOPNOTSUPP;
}

// Work queues and their tables are numbered by other members.
struct Named {
  ibv_context* context;
  std::uint32_t handle;
};
Named named(const ibv_wq* wq) { return {wq->context, wq->handle}; }
Named named(const ibv_rwq_ind_table* table) {
  return {table->context, static_cast<std::uint32_t>(table->ind_tbl_handle)};
}

}  // namespace

namespace verbena::mlx5 {

int modify_qp_by_command(ibv_qp* qp, const void* in, std::size_t in_length, void* out, std::size_t out_length) {
  if (int error = modify(qp, in, in_length, out, out_length)) return error;
  using Head = prm::GeneralObjInCmdHdr;
  const auto opcode = prm::ConstView<Head>(static_cast<const std::byte*>(in)).get<Head::opcode>();
  set_operational(qp_of(qp), state_after(static_cast<prm::Opcode>(opcode)));
  return 0;
}

int query_qp_by_command(ibv_qp* qp, const void* in, std::size_t in_length, void* out, std::size_t out_length) {
  return query(qp, in, in_length, out, out_length);
}

}  // namespace verbena::mlx5

extern "C" {

VERBENA_MLX5_EXPORT int mlx5dv_devx_qp_query(ibv_qp* qp, const void* in, std::size_t in_length, void* out,
                                             std::size_t out_length) {
  return query_qp_by_command(qp, in, in_length, out, out_length);
}
VERBENA_MLX5_EXPORT int mlx5dv_devx_qp_modify(ibv_qp* qp, const void* in, std::size_t in_length, void* out,
                                              std::size_t out_length) {
  return modify_qp_by_command(qp, in, in_length, out, out_length);
}
VERBENA_MLX5_EXPORT int mlx5dv_devx_cq_query(ibv_cq* cq, const void* in, std::size_t in_length, void* out,
                                             std::size_t out_length) {
  return query(cq, in, in_length, out, out_length);
}
VERBENA_MLX5_EXPORT int mlx5dv_devx_cq_modify(ibv_cq* cq, const void* in, std::size_t in_length, void* out,
                                              std::size_t out_length) {
  return modify(cq, in, in_length, out, out_length);
}
VERBENA_MLX5_EXPORT int mlx5dv_devx_srq_query(ibv_srq* srq, const void* in, std::size_t in_length, void* out,
                                              std::size_t out_length) {
  return query(srq, in, in_length, out, out_length);
}
VERBENA_MLX5_EXPORT int mlx5dv_devx_srq_modify(ibv_srq* srq, const void* in, std::size_t in_length, void* out,
                                               std::size_t out_length) {
  return modify(srq, in, in_length, out, out_length);
}
VERBENA_MLX5_EXPORT int mlx5dv_devx_wq_query(ibv_wq* wq, const void* in, std::size_t in_length, void* out,
                                             std::size_t out_length) {
  Named object = named(wq);
  return query(&object, in, in_length, out, out_length);
}
VERBENA_MLX5_EXPORT int mlx5dv_devx_wq_modify(ibv_wq* wq, const void* in, std::size_t in_length, void* out,
                                              std::size_t out_length) {
  Named object = named(wq);
  return modify(&object, in, in_length, out, out_length);
}
VERBENA_MLX5_EXPORT int mlx5dv_devx_ind_tbl_query(ibv_rwq_ind_table* table, const void* in, std::size_t in_length,
                                                  void* out, std::size_t out_length) {
  Named object = named(table);
  return query(&object, in, in_length, out, out_length);
}
VERBENA_MLX5_EXPORT int mlx5dv_devx_ind_tbl_modify(ibv_rwq_ind_table* table, const void* in, std::size_t in_length,
                                                   void* out, std::size_t out_length) {
  Named object = named(table);
  return modify(&object, in, in_length, out, out_length);
}

}  // extern "C"
