#include "uverbs/record_names.h"

#include <rdma/ib_user_ioctl_cmds.h>
#include <rdma/ib_user_ioctl_verbs.h>
#include <rdma/ib_user_verbs.h>
#include <rdma/mlx5-abi.h>
#include <rdma/mlx5_user_ioctl_cmds.h>
#include <rdma/mlx5_user_ioctl_verbs.h>

#include <cstddef>
#include <type_traits>

#include "uverbs/newer.h"

namespace verbena::uverbs {
namespace {

// ---- structures ----

// By the kernel's habits of naming. `start` and `hca_va` are those of memory regions.
constexpr bool is_address(std::string_view name) {
  for (std::string_view known : {"response", "user_handle", "start", "hca_va", "addr"})
    if (name == known) return true;
  return name.ends_with("_addr");
}

template <class Member>
constexpr FieldName field(std::string_view name, std::size_t offset) {
  using Element = std::remove_extent_t<Member>;
  const auto at = static_cast<std::uint16_t>(offset);
  if constexpr (std::is_array_v<Member> && sizeof(Element) == 1)
    return {name, at, sizeof(Member), 1, true, false};
  else
    return {name, at, sizeof(Element), sizeof(Member) / sizeof(Element), false, is_address(name)};
}

// Every byte has a name, or a request could differ where nobody looks.
constexpr bool covers(std::span<const FieldName> fields, std::size_t size) {
  std::size_t end = 0;
  for (const FieldName& field : fields) {
    if (field.offset != end) return false;
    end += std::size_t{field.size} * field.count;
  }
  return end == size;
}

#define F(member) field<decltype(Type::member)>(#member, offsetof(Type, member)),
#define STRUCT(type, ...)                          \
  struct fields_of_##type {                        \
    using Type = ::type;                           \
    static constexpr FieldName fields[] = {__VA_ARGS__}; \
  };                                               \
  static_assert(covers(fields_of_##type::fields, sizeof(type))); \
  constexpr StructName struct_##type{#type, sizeof(type), fields_of_##type::fields};
#include "uverbs/record_structs.inc"
#undef STRUCT
#undef F

// ---- methods and their attributes ----

constexpr std::string_view without_prefix(std::string_view name) {
  for (std::string_view prefix : {"UVERBS_OBJECT_", "UVERBS_METHOD_", "UVERBS_ATTR_", "MLX5_IB_OBJECT_", "MLX5_IB_METHOD_",
                                  "MLX5_IB_ATTR_", "IB_USER_VERBS_CMD_", "IB_USER_VERBS_EX_CMD_"})
    if (name.starts_with(prefix)) return name.substr(prefix.size());
  return name;
}
#define ID(id) id, without_prefix(#id)

#include "uverbs/record_attrs.inc"

constexpr AttrName kGetDataDirectSysfsPath[] = {
    {newer::kDataDirectSysfsPath, "GET_DATA_DIRECT_SYSFS_PATH", Carries::result},
};

constexpr AttrName kQueryPortSpeed[] = {
    {newer::kQueryPortSpeedPort, "QUERY_PORT_SPEED_PORT_NUM", Carries::value},
    {newer::kQueryPortSpeedResp, "QUERY_PORT_SPEED_RESP", Carries::result},
};
constexpr AttrName kDmahAlloc[] = {
    {newer::kAllocDmahHandle, "ALLOC_DMAH_HANDLE", Carries::created},
    {newer::kAllocDmahCpuId, "ALLOC_DMAH_CPU_ID", Carries::value},
    {newer::kAllocDmahMemoryType, "ALLOC_DMAH_TPH_MEM_TYPE", Carries::choice},
    {newer::kAllocDmahHint, "ALLOC_DMAH_PH", Carries::value},
};
constexpr AttrName kDmahFree[] = {{newer::kFreeDmahHandle, "FREE_DMAH_HANDLE", Carries::handle}};
constexpr AttrName kRegMr[] = {
    {newer::kRegMrHandle, "REG_MR_HANDLE", Carries::created},
    {newer::kRegMrPd, "REG_MR_PD_HANDLE", Carries::handle},
    {newer::kRegMrDmah, "REG_MR_DMA_HANDLE", Carries::handle},
    {newer::kRegMrIova, "REG_MR_IOVA", Carries::address},
    {newer::kRegMrAddress, "REG_MR_ADDR", Carries::address},
    {newer::kRegMrLength, "REG_MR_LENGTH", Carries::value},
    {newer::kRegMrAccess, "REG_MR_ACCESS_FLAGS", Carries::value},
    {newer::kRegMrFd, "REG_MR_FD", Carries::fd},
    {newer::kRegMrFdOffset, "REG_MR_FD_OFFSET", Carries::value},
    {newer::kRegMrLkey, "REG_MR_RESP_LKEY", Carries::result},
    {newer::kRegMrRkey, "REG_MR_RESP_RKEY", Carries::result},
};

constexpr MethodName kMethods[] = {
    {ID(UVERBS_OBJECT_DEVICE), ID(UVERBS_METHOD_INVOKE_WRITE), kInvokeWrite},
    {ID(UVERBS_OBJECT_DEVICE), ID(UVERBS_METHOD_INFO_HANDLES), kInfoHandles},
    {ID(UVERBS_OBJECT_DEVICE), ID(UVERBS_METHOD_QUERY_PORT), kQueryPort},
    {ID(UVERBS_OBJECT_DEVICE), ID(UVERBS_METHOD_GET_CONTEXT), kGetContext, &struct_mlx5_ib_alloc_ucontext_req_v2, &struct_mlx5_ib_alloc_ucontext_resp},
    {ID(UVERBS_OBJECT_DEVICE), ID(UVERBS_METHOD_QUERY_CONTEXT), kQueryContext},
    {ID(UVERBS_OBJECT_DEVICE), ID(UVERBS_METHOD_QUERY_GID_TABLE), kQueryGidTable},
    {ID(UVERBS_OBJECT_DEVICE), ID(UVERBS_METHOD_QUERY_GID_ENTRY), kQueryGidEntry},
    {ID(UVERBS_OBJECT_DEVICE), ID(MLX5_IB_METHOD_QUERY_PORT), kMlx5QueryPort},
    {ID(UVERBS_OBJECT_PD), ID(UVERBS_METHOD_PD_DESTROY), kPdDestroy},
    {ID(UVERBS_OBJECT_PD), ID(MLX5_IB_METHOD_PD_QUERY), kPdQuery},
    {ID(UVERBS_OBJECT_CQ), ID(UVERBS_METHOD_CQ_CREATE), kCqCreate, &struct_mlx5_ib_create_cq, &struct_mlx5_ib_create_cq_resp},
    {ID(UVERBS_OBJECT_CQ), ID(UVERBS_METHOD_CQ_DESTROY), kCqDestroy},
    {ID(UVERBS_OBJECT_QP), ID(UVERBS_METHOD_QP_CREATE), kQpCreate, &struct_mlx5_ib_create_qp, &struct_mlx5_ib_create_qp_resp},
    {ID(UVERBS_OBJECT_QP), ID(UVERBS_METHOD_QP_DESTROY), kQpDestroy},
    {ID(UVERBS_OBJECT_SRQ), ID(UVERBS_METHOD_SRQ_CREATE), kSrqCreate, &struct_mlx5_ib_create_srq, &struct_mlx5_ib_create_srq_resp},
    {ID(UVERBS_OBJECT_SRQ), ID(UVERBS_METHOD_SRQ_DESTROY), kSrqDestroy},
    {ID(UVERBS_OBJECT_AH), ID(UVERBS_METHOD_AH_DESTROY), kAhDestroy},
    {ID(UVERBS_OBJECT_MR), ID(UVERBS_METHOD_DM_MR_REG), kDmMrReg},
    {ID(UVERBS_OBJECT_MR), ID(UVERBS_METHOD_MR_DESTROY), kMrDestroy},
    {ID(UVERBS_OBJECT_MR), ID(UVERBS_METHOD_ADVISE_MR), kAdviseMr},
    {ID(UVERBS_OBJECT_MR), ID(UVERBS_METHOD_QUERY_MR), kQueryMr},
    {ID(UVERBS_OBJECT_MR), ID(UVERBS_METHOD_REG_DMABUF_MR), kRegDmabufMr},
    {ID(UVERBS_OBJECT_MW), ID(UVERBS_METHOD_MW_DESTROY), kMwDestroy},
    {ID(UVERBS_OBJECT_FLOW), ID(UVERBS_METHOD_FLOW_DESTROY), kFlowDestroy},
    {ID(UVERBS_OBJECT_FLOW), ID(MLX5_IB_METHOD_CREATE_FLOW), kCreateFlow},
    {ID(UVERBS_OBJECT_FLOW), ID(MLX5_IB_METHOD_DESTROY_FLOW), kDestroyFlow},
    {ID(UVERBS_OBJECT_XRCD), ID(UVERBS_METHOD_XRCD_DESTROY), kXrcdDestroy},
    {ID(UVERBS_OBJECT_RWQ_IND_TBL), ID(UVERBS_METHOD_RWQ_IND_TBL_DESTROY), kRwqIndTblDestroy},
    {ID(UVERBS_OBJECT_WQ), ID(UVERBS_METHOD_WQ_CREATE), kWqCreate, &struct_mlx5_ib_create_wq, &struct_mlx5_ib_create_wq_resp},
    {ID(UVERBS_OBJECT_WQ), ID(UVERBS_METHOD_WQ_DESTROY), kWqDestroy},
    {ID(UVERBS_OBJECT_FLOW_ACTION), ID(UVERBS_METHOD_FLOW_ACTION_ESP_CREATE), kFlowActionEspCreate},
    {ID(UVERBS_OBJECT_FLOW_ACTION), ID(UVERBS_METHOD_FLOW_ACTION_DESTROY), kFlowActionDestroy},
    {ID(UVERBS_OBJECT_FLOW_ACTION), ID(UVERBS_METHOD_FLOW_ACTION_ESP_MODIFY), kFlowActionEspModify},
    {ID(UVERBS_OBJECT_FLOW_ACTION), ID(MLX5_IB_METHOD_FLOW_ACTION_CREATE_MODIFY_HEADER), kFlowActionCreateModifyHeader},
    {ID(UVERBS_OBJECT_FLOW_ACTION), ID(MLX5_IB_METHOD_FLOW_ACTION_CREATE_PACKET_REFORMAT), kFlowActionCreatePacketReformat},
    {ID(UVERBS_OBJECT_DM), ID(UVERBS_METHOD_DM_ALLOC), kDmAlloc},
    {ID(UVERBS_OBJECT_DM), ID(UVERBS_METHOD_DM_FREE), kDmFree},
    {ID(UVERBS_OBJECT_DM), ID(MLX5_IB_METHOD_DM_MAP_OP_ADDR), kDmMapOpAddr},
    {ID(UVERBS_OBJECT_DM), ID(MLX5_IB_METHOD_DM_QUERY), kDmQuery},
    {ID(UVERBS_OBJECT_COUNTERS), ID(UVERBS_METHOD_COUNTERS_CREATE), kCountersCreate},
    {ID(UVERBS_OBJECT_COUNTERS), ID(UVERBS_METHOD_COUNTERS_DESTROY), kCountersDestroy},
    {ID(UVERBS_OBJECT_COUNTERS), ID(UVERBS_METHOD_COUNTERS_READ), kCountersRead},
    {ID(UVERBS_OBJECT_ASYNC_EVENT), ID(UVERBS_METHOD_ASYNC_EVENT_ALLOC), kAsyncEventAlloc},
    {ID(MLX5_IB_OBJECT_DEVX), ID(MLX5_IB_METHOD_DEVX_OTHER), kDevxOther},
    {ID(MLX5_IB_OBJECT_DEVX), ID(MLX5_IB_METHOD_DEVX_QUERY_UAR), kDevxQueryUar},
    {ID(MLX5_IB_OBJECT_DEVX), ID(MLX5_IB_METHOD_DEVX_QUERY_EQN), kDevxQueryEqn},
    {ID(MLX5_IB_OBJECT_DEVX), ID(MLX5_IB_METHOD_DEVX_SUBSCRIBE_EVENT), kDevxSubscribeEvent},
    {ID(MLX5_IB_OBJECT_DEVX_OBJ), ID(MLX5_IB_METHOD_DEVX_OBJ_CREATE), kDevxObjCreate},
    {ID(MLX5_IB_OBJECT_DEVX_OBJ), ID(MLX5_IB_METHOD_DEVX_OBJ_DESTROY), kDevxObjDestroy},
    {ID(MLX5_IB_OBJECT_DEVX_OBJ), ID(MLX5_IB_METHOD_DEVX_OBJ_MODIFY), kDevxObjModify},
    {ID(MLX5_IB_OBJECT_DEVX_OBJ), ID(MLX5_IB_METHOD_DEVX_OBJ_QUERY), kDevxObjQuery},
    {ID(MLX5_IB_OBJECT_DEVX_OBJ), ID(MLX5_IB_METHOD_DEVX_OBJ_ASYNC_QUERY), kDevxObjAsyncQuery},
    {ID(MLX5_IB_OBJECT_DEVX_UMEM), ID(MLX5_IB_METHOD_DEVX_UMEM_REG), kDevxUmemReg},
    {ID(MLX5_IB_OBJECT_DEVX_UMEM), ID(MLX5_IB_METHOD_DEVX_UMEM_DEREG), kDevxUmemDereg},
    {ID(MLX5_IB_OBJECT_FLOW_MATCHER), ID(MLX5_IB_METHOD_FLOW_MATCHER_CREATE), kFlowMatcherCreate},
    {ID(MLX5_IB_OBJECT_FLOW_MATCHER), ID(MLX5_IB_METHOD_FLOW_MATCHER_DESTROY), kFlowMatcherDestroy},
    {ID(MLX5_IB_OBJECT_DEVX_ASYNC_CMD_FD), ID(MLX5_IB_METHOD_DEVX_ASYNC_CMD_FD_ALLOC), kDevxAsyncCmdFdAlloc},
    {ID(MLX5_IB_OBJECT_DEVX_ASYNC_EVENT_FD), ID(MLX5_IB_METHOD_DEVX_ASYNC_EVENT_FD_ALLOC), kDevxAsyncEventFdAlloc},
    {ID(MLX5_IB_OBJECT_VAR), ID(MLX5_IB_METHOD_VAR_OBJ_ALLOC), kVarObjAlloc},
    {ID(MLX5_IB_OBJECT_VAR), ID(MLX5_IB_METHOD_VAR_OBJ_DESTROY), kVarObjDestroy},
    {ID(MLX5_IB_OBJECT_PP), ID(MLX5_IB_METHOD_PP_OBJ_ALLOC), kPpObjAlloc},
    {ID(MLX5_IB_OBJECT_PP), ID(MLX5_IB_METHOD_PP_OBJ_DESTROY), kPpObjDestroy},
    {ID(MLX5_IB_OBJECT_UAR), ID(MLX5_IB_METHOD_UAR_OBJ_ALLOC), kUarObjAlloc},
    {ID(MLX5_IB_OBJECT_UAR), ID(MLX5_IB_METHOD_UAR_OBJ_DESTROY), kUarObjDestroy},
    {ID(MLX5_IB_OBJECT_STEERING_ANCHOR), ID(MLX5_IB_METHOD_STEERING_ANCHOR_CREATE), kSteeringAnchorCreate},
    {ID(MLX5_IB_OBJECT_STEERING_ANCHOR), ID(MLX5_IB_METHOD_STEERING_ANCHOR_DESTROY), kSteeringAnchorDestroy},
    {ID(UVERBS_OBJECT_DEVICE), newer::kGetDataDirectSysfsPath, "GET_DATA_DIRECT_SYSFS_PATH", kGetDataDirectSysfsPath},
    {ID(UVERBS_OBJECT_DEVICE), newer::kQueryPortSpeed, "QUERY_PORT_SPEED", kQueryPortSpeed},
    {newer::kObjectDmah, "DMAH", newer::kDmahAlloc, "DMAH_ALLOC", kDmahAlloc},
    {newer::kObjectDmah, "DMAH", newer::kDmahFree, "DMAH_FREE", kDmahFree},
    {ID(UVERBS_OBJECT_MR), newer::kRegMr, "REG_MR", kRegMr},
};

// ---- legacy commands ----

#define CMD(command) IB_USER_VERBS_CMD_##command, #command
#define EX_CMD(command) IB_USER_VERBS_CMD_FLAG_EXTENDED | IB_USER_VERBS_EX_CMD_##command, "EX_" #command
#define CORE(type) &struct_ib_uverbs_##type
#define DRIVER(type) &struct_mlx5_ib_##type

constexpr CommandName kCommands[] = {
    {CMD(GET_CONTEXT), CORE(get_context), CORE(get_context_resp), DRIVER(alloc_ucontext_req_v2), DRIVER(alloc_ucontext_resp)},
    {CMD(QUERY_DEVICE), CORE(query_device), CORE(query_device_resp)},
    {EX_CMD(QUERY_DEVICE), CORE(ex_query_device), CORE(ex_query_device_resp), nullptr, DRIVER(query_device_resp)},
    {CMD(QUERY_PORT), CORE(query_port), CORE(query_port_resp)},
    {CMD(ALLOC_PD), CORE(alloc_pd), CORE(alloc_pd_resp), nullptr, DRIVER(alloc_pd_resp)},
    {CMD(DEALLOC_PD), CORE(dealloc_pd)},
    {CMD(OPEN_XRCD), CORE(open_xrcd), CORE(open_xrcd_resp)},
    {CMD(CLOSE_XRCD), CORE(close_xrcd)},
    {CMD(REG_MR), CORE(reg_mr), CORE(reg_mr_resp)},
    {CMD(REREG_MR), CORE(rereg_mr), CORE(rereg_mr_resp)},
    {CMD(DEREG_MR), CORE(dereg_mr)},
    {CMD(ALLOC_MW), CORE(alloc_mw), CORE(alloc_mw_resp), DRIVER(alloc_mw)},
    {CMD(DEALLOC_MW), CORE(dealloc_mw)},
    {CMD(CREATE_COMP_CHANNEL), CORE(create_comp_channel), CORE(create_comp_channel_resp)},
    {CMD(CREATE_CQ), CORE(create_cq), CORE(create_cq_resp), DRIVER(create_cq), DRIVER(create_cq_resp)},
    {EX_CMD(CREATE_CQ), CORE(ex_create_cq), CORE(ex_create_cq_resp), DRIVER(create_cq), DRIVER(create_cq_resp)},
    {CMD(RESIZE_CQ), CORE(resize_cq), CORE(resize_cq_resp), DRIVER(resize_cq)},
    {EX_CMD(MODIFY_CQ), CORE(ex_modify_cq)},
    {CMD(DESTROY_CQ), CORE(destroy_cq), CORE(destroy_cq_resp)},
    {CMD(CREATE_QP), CORE(create_qp), CORE(create_qp_resp), DRIVER(create_qp), DRIVER(create_qp_resp)},
    {EX_CMD(CREATE_QP), CORE(ex_create_qp), CORE(ex_create_qp_resp), DRIVER(create_qp), DRIVER(create_qp_resp)},
    {CMD(OPEN_QP), CORE(open_qp), CORE(create_qp_resp)},
    {CMD(QUERY_QP), CORE(query_qp), CORE(query_qp_resp)},
    {CMD(MODIFY_QP), CORE(modify_qp), nullptr, DRIVER(modify_qp), DRIVER(modify_qp_resp)},
    {EX_CMD(MODIFY_QP), CORE(ex_modify_qp), CORE(ex_modify_qp_resp), DRIVER(modify_qp), DRIVER(modify_qp_resp)},
    {CMD(DESTROY_QP), CORE(destroy_qp), CORE(destroy_qp_resp)},
    {CMD(CREATE_AH), CORE(create_ah), CORE(create_ah_resp), nullptr, DRIVER(create_ah_resp)},
    {CMD(DESTROY_AH), CORE(destroy_ah)},
    {CMD(ATTACH_MCAST), CORE(attach_mcast)},
    {CMD(DETACH_MCAST), CORE(detach_mcast)},
    {CMD(CREATE_SRQ), CORE(create_srq), CORE(create_srq_resp), DRIVER(create_srq), DRIVER(create_srq_resp)},
    {CMD(CREATE_XSRQ), CORE(create_xsrq), CORE(create_srq_resp), DRIVER(create_srq), DRIVER(create_srq_resp)},
    {CMD(MODIFY_SRQ), CORE(modify_srq)},
    {CMD(QUERY_SRQ), CORE(query_srq), CORE(query_srq_resp)},
    {CMD(DESTROY_SRQ), CORE(destroy_srq), CORE(destroy_srq_resp)},
    {EX_CMD(CREATE_FLOW), CORE(create_flow), CORE(create_flow_resp), DRIVER(create_flow)},
    {EX_CMD(DESTROY_FLOW), CORE(destroy_flow)},
    {EX_CMD(CREATE_WQ), CORE(ex_create_wq), CORE(ex_create_wq_resp), DRIVER(create_wq), DRIVER(create_wq_resp)},
    {EX_CMD(MODIFY_WQ), CORE(ex_modify_wq), nullptr, DRIVER(modify_wq)},
    {EX_CMD(DESTROY_WQ), CORE(ex_destroy_wq), CORE(ex_destroy_wq_resp)},
    {EX_CMD(CREATE_RWQ_IND_TBL), CORE(ex_create_rwq_ind_table), CORE(ex_create_rwq_ind_table_resp), nullptr,
     DRIVER(create_rwq_ind_tbl_resp)},
    {EX_CMD(DESTROY_RWQ_IND_TBL), CORE(ex_destroy_rwq_ind_table)},
};

// ---- offsets of mmap(2) ----

#define PAGE(command) {MLX5_IB_MMAP_##command, #command}
constexpr struct {
  unsigned command;
  std::string_view name;
} kPages[] = {PAGE(REGULAR_PAGE), PAGE(GET_CONTIGUOUS_PAGES), PAGE(WC_PAGE),    PAGE(NC_PAGE),
              PAGE(CORE_CLOCK),   PAGE(ALLOC_WC),             PAGE(CLOCK_INFO), PAGE(DEVICE_MEM)};

}  // namespace

std::span<const MethodName> method_names() { return kMethods; }
std::span<const CommandName> command_names() { return kCommands; }

const MethodName* find_method_name(std::uint16_t object, std::uint16_t method) {
  for (const MethodName& row : kMethods)
    if (row.object == object && row.method == method) return &row;
  return nullptr;
}

const CommandName* find_command_name(std::uint64_t command) {
  for (const CommandName& row : kCommands)
    if (row.command == command) return &row;
  return nullptr;
}

const AttrName* find_attr_name(const MethodName& method, std::uint16_t id) {
  for (const AttrName& row : method.attrs)
    if (row.id == id) return &row;
  return nullptr;
}

const StructName* layout_of(const StructName* expected, std::size_t length) {
  const bool hashed = expected == &struct_mlx5_ib_create_qp && length == sizeof(mlx5_ib_create_qp_rss);
  return hashed ? &struct_mlx5_ib_create_qp_rss : expected;
}

std::string_view object_name(std::uint16_t object) {
  for (const MethodName& row : kMethods)
    if (row.object == object) return row.object_name;
  return {};
}

std::string_view mmap_name(std::uint64_t offset) {
  constexpr unsigned page_shift = 12, command_shift = 8, command_mask = 0xff;
  for (const auto& page : kPages)
    if (page.command == (offset >> page_shift >> command_shift & command_mask)) return page.name;
  return {};
}

}  // namespace verbena::uverbs
