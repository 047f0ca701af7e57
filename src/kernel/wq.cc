#include "kernel/wq.h"

#include <rdma/ib_user_ioctl_verbs.h>
#include <rdma/ib_user_verbs.h>
#include <rdma/mlx5-abi.h>

#include <bit>
#include <cerrno>

#include "kernel/frame_queues.h"
#include "kernel/method.h"

namespace verbena::kernel {
namespace {

constexpr std::uint32_t kTypeRq = 0;  // IB_WQT_RQ
constexpr std::uint32_t kKnownFlags = IB_UVERBS_WQ_FLAGS_CVLAN_STRIPPING | IB_UVERBS_WQ_FLAGS_SCATTER_FCS |
                                      IB_UVERBS_WQ_FLAGS_DELAY_DROP | IB_UVERBS_WQ_FLAGS_PCI_WRITE_END_PADDING;
// IB_WQ_*: attribute mask of modify.
constexpr std::uint32_t kMaskState = 1u << 0, kMaskCurState = 1u << 1, kMaskFlags = 1u << 2;

struct WqParams {
  std::uint64_t user_handle = 0, type = 0;
  std::uint32_t max_wr = 0, max_sge = 0, flags = 0;
  Pd* pd = nullptr;
  Cq* cq = nullptr;
  std::shared_ptr<EventPipe> async;
};

int check_driver(const Caps& caps, const WqParams& params, const Udata& driver, mlx5_ib_create_wq* out) {
  if (driver.out_length && driver.out_length < sizeof(mlx5_ib_create_wq_resp)) return EINVAL;
  if (params.type != kTypeRq) return EINVAL;
  if (driver.in.size() < offsetof(mlx5_ib_create_wq, single_wqe_log_num_of_strides)) return EINVAL;
  if (!driver.tail_is_zero(sizeof *out)) return EOPNOTSUPP;
  *out = driver.read<mlx5_ib_create_wq>();
  if (out->comp_mask) return EOPNOTSUPP;  // striding queues
  if (params.max_wr > 1u << caps.log_max_wq_sz || !out->rq_wqe_count) return EINVAL;
  // What the kernel leaves to the device.
  if (!std::has_single_bit(out->rq_wqe_count) || out->rq_wqe_count > 1u << caps.log_max_wq_sz) return EINVAL;
  if (out->rq_wqe_shift < 4 || 1u << std::min(out->rq_wqe_shift, 31u) > caps.max_wqe_sz_rq) return EINVAL;
  if (out->flags) return EOPNOTSUPP;  // signatures
  if (params.flags & ~kKnownFlags) return EINVAL;
  const bool strip = params.flags & IB_UVERBS_WQ_FLAGS_CVLAN_STRIPPING;
  return (params.flags & ~std::uint32_t{IB_UVERBS_WQ_FLAGS_CVLAN_STRIPPING}) || (strip && !caps.strips_vlan) ? EOPNOTSUPP : 0;
}

int create_wq(File& file, const WqParams& params, const Udata& driver, Wq** out) {
  mlx5_ib_create_wq request;
  if (int error = check_driver(file.node().caps(), params, driver, &request)) return error;
  const RqRequest rq{.ring = {request.buf_addr, request.db_addr, request.rq_wqe_count, request.rq_wqe_shift},
                     .pdn = params.pd->pdn,
                     .cqn = params.cq->cqn,
                     .user_index = request.user_index,
                     .strip_vlan = (params.flags & IB_UVERBS_WQ_FLAGS_CVLAN_STRIPPING) != 0};
  auto wq = std::make_unique<Wq>();
  if (int error = make_rq(file, rq, &wq->rqn)) return error;
  wq->pd = params.pd;
  wq->cq = params.cq;
  ++wq->pd->users;
  ++wq->cq->users;
  file.node().events().add(EventSource::wq, wq->rqn, {nullptr, params.async, params.user_handle, 0, 0});
  if (driver.out_length) driver.write(mlx5_ib_create_wq_resp{sizeof(std::uint32_t), 0});
  *out = wq.get();
  file.objects().add(std::move(wq));
  return 0;
}

prm::RqState device_state(WqState state) { return state == WqState::err ? prm::RqState::err : static_cast<prm::RqState>(state); }

int check_flags(const Caps& caps, const ib_uverbs_ex_modify_wq& cmd, RqChange* change) {
  if (!(cmd.attr_mask & kMaskFlags)) return 0;
  if (cmd.flags_mask & IB_UVERBS_WQ_FLAGS_CVLAN_STRIPPING) {
    if (!caps.strips_vlan) return EOPNOTSUPP;
    change->mask |= prm::RqModify::vsd;
    change->strip_vlan = cmd.flags & IB_UVERBS_WQ_FLAGS_CVLAN_STRIPPING;
  }
  return cmd.flags_mask & IB_UVERBS_WQ_FLAGS_PCI_WRITE_END_PADDING ? EOPNOTSUPP : 0;
}

int modify_wq(File& file, const ib_uverbs_ex_modify_wq& cmd, const Udata& driver) {
  constexpr auto last = static_cast<std::uint32_t>(WqState::err);
  if (!cmd.attr_mask || cmd.attr_mask > (kMaskState | kMaskCurState | kMaskFlags)) return EINVAL;
  int error = 0;
  Wq* wq = file.find<Wq>(cmd.wq_handle, UVERBS_OBJECT_WQ, &error);
  if (!wq) return EINVAL;
  if (cmd.attr_mask & kMaskCurState && cmd.curr_wq_state > last) return EINVAL;
  if (cmd.attr_mask & kMaskState && cmd.wq_state > last) return EINVAL;
  if (driver.in.size() < sizeof(mlx5_ib_modify_wq)) return EINVAL;
  if (!driver.tail_is_zero(0)) return EOPNOTSUPP;
  const WqState current = cmd.attr_mask & kMaskCurState ? static_cast<WqState>(cmd.curr_wq_state) : wq->state;
  const WqState next = cmd.attr_mask & kMaskState ? static_cast<WqState>(cmd.wq_state) : current;
  RqChange change;
  if ((error = check_flags(file.node().caps(), cmd, &change))) return error;
  if (current == WqState::reset && next == WqState::rdy) {
    change.mask |= prm::RqModify::counter_set_id;
    change.counter_set = file.node().counter_set();
  }
  if ((error = modify_rq(file, wq->rqn, device_state(current), device_state(next), change))) return error;
  wq->state = next;
  return 0;
}

int destroy_wq(File& file, std::uint32_t handle, std::uint32_t* events, bool legacy) {
  int error = 0;
  Wq* wq = file.find<Wq>(handle, UVERBS_OBJECT_WQ, &error);
  if (!wq) return legacy ? ENOENT : error;
  if (wq->users) return EBUSY;
  if ((error = wq->destroy(file))) return error;
  *events = wq->reported.async;
  file.remove(wq);
  return 0;
}

// ---- native methods ----

constexpr AttrSpec kCreateAttrs[] = {
    uverbs::object_attr(UVERBS_ATTR_CREATE_WQ_HANDLE, UVERBS_OBJECT_WQ, AttrAccess::create),
    uverbs::object_attr(UVERBS_ATTR_CREATE_WQ_PD_HANDLE, UVERBS_OBJECT_PD, AttrAccess::read),
    uverbs::const_attr(UVERBS_ATTR_CREATE_WQ_TYPE),
    uverbs::in_attr(UVERBS_ATTR_CREATE_WQ_USER_HANDLE, 8),
    uverbs::in_attr(UVERBS_ATTR_CREATE_WQ_MAX_WR, 4),
    uverbs::in_attr(UVERBS_ATTR_CREATE_WQ_MAX_SGE, 4),
    uverbs::flags_attr(UVERBS_ATTR_CREATE_WQ_FLAGS, true),
    uverbs::object_attr(UVERBS_ATTR_CREATE_WQ_CQ_HANDLE, UVERBS_OBJECT_CQ, AttrAccess::read),
    uverbs::fd_attr(UVERBS_ATTR_CREATE_WQ_EVENT_FD, UVERBS_OBJECT_ASYNC_EVENT, AttrAccess::read, false),
    uverbs::out_attr(UVERBS_ATTR_CREATE_WQ_RESP_MAX_WR, 4),
    uverbs::out_attr(UVERBS_ATTR_CREATE_WQ_RESP_MAX_SGE, 4),
    uverbs::out_attr(UVERBS_ATTR_CREATE_WQ_RESP_WQ_NUM, 4, false),
};

int native_create(File& file, Request& request) {
  WqParams params;
  if (int error = request.flags(UVERBS_ATTR_CREATE_WQ_FLAGS, kKnownFlags, &params.flags)) return error;
  int error = 0;
  params.pd = file.find<Pd>(request.handle(UVERBS_ATTR_CREATE_WQ_PD_HANDLE), UVERBS_OBJECT_PD, &error);
  if (!params.pd) return error;
  params.cq = file.find<Cq>(request.handle(UVERBS_ATTR_CREATE_WQ_CQ_HANDLE), UVERBS_OBJECT_CQ, &error);
  if (!params.cq) return error;
  params.type = request.value<std::uint64_t>(UVERBS_ATTR_CREATE_WQ_TYPE);
  if (params.type != kTypeRq) return EINVAL;
  if ((error = find_async(file, request, UVERBS_ATTR_CREATE_WQ_EVENT_FD, &params.async))) return error;
  params.user_handle = request.value<std::uint64_t>(UVERBS_ATTR_CREATE_WQ_USER_HANDLE);
  params.max_wr = request.value<std::uint32_t>(UVERBS_ATTR_CREATE_WQ_MAX_WR);
  params.max_sge = request.value<std::uint32_t>(UVERBS_ATTR_CREATE_WQ_MAX_SGE);
  Wq* wq = nullptr;
  if ((error = create_wq(file, params, request.udata(), &wq))) return error;
  request.set_id(UVERBS_ATTR_CREATE_WQ_HANDLE, wq->handle);
  request.write(UVERBS_ATTR_CREATE_WQ_RESP_MAX_WR, params.max_wr);
  request.write(UVERBS_ATTR_CREATE_WQ_RESP_MAX_SGE, params.max_sge);
  request.write(UVERBS_ATTR_CREATE_WQ_RESP_WQ_NUM, wq->rqn);
  return 0;
}

constexpr AttrSpec kDestroyAttrs[] = {
    uverbs::object_attr(UVERBS_ATTR_DESTROY_WQ_HANDLE, UVERBS_OBJECT_WQ, AttrAccess::destroy),
    uverbs::out_attr(UVERBS_ATTR_DESTROY_WQ_RESP, 4),
};

int native_destroy(File& file, Request& request) {
  std::uint32_t events = 0;
  if (int error = destroy_wq(file, request.handle(UVERBS_ATTR_DESTROY_WQ_HANDLE), &events, false)) return error;
  return request.write(UVERBS_ATTR_DESTROY_WQ_RESP, events);
}

constexpr AttrSpec kDestroyTableAttrs[] = {
    uverbs::object_attr(UVERBS_ATTR_DESTROY_RWQ_IND_TBL_HANDLE, UVERBS_OBJECT_RWQ_IND_TBL, AttrAccess::destroy)};

// ---- legacy commands ----

template <class Response>
void answer(WriteCall& call, Response& response) {
  response.response_length = static_cast<std::uint32_t>(std::min(sizeof response, call.out_length));
  call.write(&response, sizeof response);
}

int write_create(File& file, WriteCall& call) {
  const auto cmd = call.read<ib_uverbs_ex_create_wq>();
  if (!call.tail_is_zero(sizeof cmd) || cmd.comp_mask) return EOPNOTSUPP;
  WqParams params;
  int error = 0;
  params.pd = file.find<Pd>(cmd.pd_handle, UVERBS_OBJECT_PD, &error);
  params.cq = file.find<Cq>(cmd.cq_handle, UVERBS_OBJECT_CQ, &error);
  if (!params.pd || !params.cq) return EINVAL;
  params.type = cmd.wq_type;
  params.user_handle = cmd.user_handle;
  params.max_wr = cmd.max_wr;
  params.max_sge = cmd.max_sge;
  params.flags = cmd.create_flags;
  params.async = file.default_async();
  Wq* wq = nullptr;
  if ((error = create_wq(file, params, call.driver, &wq))) return error;
  ib_uverbs_ex_create_wq_resp response{};
  response.wq_handle = wq->handle;
  response.max_wr = params.max_wr;
  response.max_sge = params.max_sge;
  response.wqn = wq->rqn;
  answer(call, response);
  return 0;
}

int write_modify(File& file, WriteCall& call) {
  const auto cmd = call.read<ib_uverbs_ex_modify_wq>();
  if (!call.tail_is_zero(sizeof cmd)) return EOPNOTSUPP;
  return modify_wq(file, cmd, call.driver);
}

int write_destroy(File& file, WriteCall& call) {
  const auto cmd = call.read<ib_uverbs_ex_destroy_wq>();
  if (cmd.comp_mask) return EOPNOTSUPP;
  ib_uverbs_ex_destroy_wq_resp response{};
  if (int error = destroy_wq(file, cmd.wq_handle, &response.events_reported, true)) return error;
  answer(call, response);
  return 0;
}

int write_create_table(File& file, WriteCall& call) {
  const auto cmd = call.read<ib_uverbs_ex_create_rwq_ind_table>();
  if (cmd.comp_mask) return EOPNOTSUPP;
  if (cmd.log_ind_tbl_size > IB_USER_VERBS_MAX_LOG_IND_TBL_SIZE) return EINVAL;
  const std::size_t count = std::size_t{1} << cmd.log_ind_tbl_size;
  const std::size_t list = offsetof(ib_uverbs_ex_create_rwq_ind_table, wq_handles), end = list + count * sizeof(std::uint32_t);
  if (call.in.size() < end) return ENOSPC;
  if (!call.tail_is_zero(end)) return EOPNOTSUPP;
  auto table = std::make_unique<IndTable>();
  std::vector<std::uint32_t> rqns(count);
  for (std::size_t i = 0; i < count; ++i) {
    std::uint32_t handle = 0;
    std::memcpy(&handle, call.in.data() + list + i * sizeof handle, sizeof handle);
    int error = 0;
    Wq* wq = file.find<Wq>(handle, UVERBS_OBJECT_WQ, &error);
    if (!wq) return EINVAL;
    table->queues.push_back(wq);
    rqns[i] = wq->rqn;
  }
  if (!call.driver.tail_is_zero(0)) return EOPNOTSUPP;
  if (cmd.log_ind_tbl_size > file.node().caps().log_max_rqt_size) return EINVAL;
  if (call.driver.out_length && call.driver.out_length < sizeof(mlx5_ib_create_rwq_ind_tbl_resp)) return EINVAL;
  if (int error = make_rqt(file, rqns, &table->rqtn)) return error;
  for (Wq* wq : table->queues) ++wq->users;
  if (call.driver.out_length) call.driver.write(mlx5_ib_create_rwq_ind_tbl_resp{sizeof(std::uint32_t), 0});
  ib_uverbs_ex_create_rwq_ind_table_resp response{};
  response.ind_tbl_num = table->rqtn;
  response.ind_tbl_handle = file.objects().add(std::move(table));
  answer(call, response);
  return 0;
}

int write_destroy_table(File& file, WriteCall& call) {
  const auto cmd = call.read<ib_uverbs_ex_destroy_rwq_ind_table>();
  if (cmd.comp_mask) return EOPNOTSUPP;
  int error = 0;
  IndTable* table = file.find<IndTable>(cmd.ind_tbl_handle, UVERBS_OBJECT_RWQ_IND_TBL, &error);
  return table ? file.destroy(table) : ENOENT;
}

constexpr Method kMethods[] = {
    {{UVERBS_OBJECT_WQ, UVERBS_METHOD_WQ_CREATE, kCreateAttrs, true}, native_create},
    {{UVERBS_OBJECT_WQ, UVERBS_METHOD_WQ_DESTROY, kDestroyAttrs}, native_destroy},
    {{UVERBS_OBJECT_RWQ_IND_TBL, UVERBS_METHOD_RWQ_IND_TBL_DESTROY, kDestroyTableAttrs},
     destroy_method<UVERBS_OBJECT_RWQ_IND_TBL, UVERBS_ATTR_DESTROY_RWQ_IND_TBL_HANDLE>},
};
constexpr std::uint32_t extended(std::uint32_t command) { return IB_USER_VERBS_CMD_FLAG_EXTENDED | command; }
constexpr WriteCommand kCommands[] = {
    {extended(IB_USER_VERBS_EX_CMD_CREATE_WQ), offsetof(ib_uverbs_ex_create_wq, reserved),
     offsetof(ib_uverbs_ex_create_wq_resp, wqn) + sizeof(std::uint32_t), write_create},
    {extended(IB_USER_VERBS_EX_CMD_MODIFY_WQ), offsetof(ib_uverbs_ex_modify_wq, curr_wq_state) + sizeof(std::uint32_t), 0,
     write_modify},
    {extended(IB_USER_VERBS_EX_CMD_DESTROY_WQ), sizeof(ib_uverbs_ex_destroy_wq),
     offsetof(ib_uverbs_ex_destroy_wq_resp, reserved), write_destroy},
    {extended(IB_USER_VERBS_EX_CMD_CREATE_RWQ_IND_TBL), sizeof(ib_uverbs_ex_create_rwq_ind_table),
     sizeof(ib_uverbs_ex_create_rwq_ind_table_resp), write_create_table},
    {extended(IB_USER_VERBS_EX_CMD_DESTROY_RWQ_IND_TBL), sizeof(ib_uverbs_ex_destroy_rwq_ind_table), 0, write_destroy_table},
};

}  // namespace

int Wq::destroy(File& file) {
  if (int error = destroy_rq(file, rqn)) return error;
  file.node().drain_events();
  reported = file.node().events().remove(EventSource::wq, rqn);
  --pd->users;
  --cq->users;
  return 0;
}

int IndTable::destroy(File& file) {
  if (int error = destroy_rqt(file, rqtn)) return error;
  for (Wq* wq : queues) --wq->users;
  return 0;
}

std::span<const Method> wq_methods() { return kMethods; }
std::span<const WriteCommand> wq_commands() { return kCommands; }

}  // namespace verbena::kernel
