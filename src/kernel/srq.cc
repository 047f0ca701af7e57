#include "kernel/srq.h"

#include <rdma/ib_user_ioctl_verbs.h>
#include <rdma/ib_user_verbs.h>
#include <rdma/mlx5-abi.h>

#include <algorithm>
#include <bit>
#include <cerrno>

#include "kernel/command.h"
#include "kernel/ib.h"
#include "kernel/method.h"
#include "kernel/mr.h"
#include "prm/misc.h"
#include "prm/srq.h"

namespace verbena::kernel {
namespace {

constexpr std::uint32_t kNextSegment = 16, kDataSegment = 16, kSmallestWqe = 32;

struct SrqParams {
  std::uint64_t user_handle = 0;
  std::uint32_t max_wr = 0, max_sge = 0;
  SrqType type = SrqType::basic;
  Pd* pd = nullptr;
  Cq* cq = nullptr;
  Xrcd* xrcd = nullptr;
  std::shared_ptr<EventPipe> async;
};

// What the device is told of the rings, whichever command makes the queue.
struct Ring {
  PageRun pages{};
  std::uint32_t log_entries = 0, log_stride = 0;
  std::uint64_t doorbell = 0;
  std::uint32_t user_index = 0;
};

int check_type(std::uint64_t type, SrqType* out) {
  if (type > IB_UVERBS_SRQT_TM) return EINVAL;
  *out = static_cast<SrqType>(type);
  return *out == SrqType::tm ? EOPNOTSUPP : 0;
}

int make_pool(File& file, const SrqParams& params, const Ring& ring, std::uint32_t* srqn) {
  using prm::Wq;
  Command<prm::CreateRmpIn, prm::CreateRmpOut> command(prm::Opcode::create_rmp, file.context().uid,
                                                       ring.pages.count * prm::Pas::size);
  const auto context = command.in().sub<prm::CreateRmpIn::ctx>();
  context.set<prm::Rmpc::state>(prm::RmpState::rdy);
  const auto wq = context.sub<prm::Rmpc::wq>();
  wq.set<Wq::log_wq_sz>(ring.log_entries).set<Wq::log_wq_stride>(ring.log_stride).set<Wq::page_offset>(ring.pages.offset64);
  wq.set<Wq::pd>(params.pd->pdn).set<Wq::dbr_addr>(ring.doorbell);
  fill_pages<Wq::pas>(wq, ring.pages);
  if (int error = command.run(file.device())) return error;
  *srqn = command.out().get<prm::CreateRmpOut::rmpn>();
  return 0;
}

int make_xrc(File& file, const SrqParams& params, const Ring& ring, std::uint32_t* srqn) {
  using prm::XrcSrqc;
  Command<prm::CreateXrcSrqIn, prm::CreateXrcSrqOut> command(prm::Opcode::create_xrc_srq, file.context().uid,
                                                             ring.pages.count * prm::Pas::size);
  const auto context = command.in().sub<prm::CreateXrcSrqIn::xrc_srq_context_entry>();
  context.set<XrcSrqc::log_xrc_srq_size>(ring.log_entries).set<XrcSrqc::log_rq_stride>(ring.log_stride - 4);
  context.set<XrcSrqc::page_offset>(ring.pages.offset64).set<XrcSrqc::pd>(params.pd->pdn);
  context.set<XrcSrqc::cqn>(params.cq->cqn).set<XrcSrqc::xrcd>(params.xrcd->xrcdn);
  context.set<XrcSrqc::user_index>(file.context().cqe_version ? ring.user_index : prm::kNoUserIndex);
  context.set<XrcSrqc::dbr_addr>(ring.doorbell);
  fill_pages<prm::CreateXrcSrqIn::pas>(command.in(), ring.pages);
  if (int error = command.run(file.device())) return error;
  *srqn = command.out().get<prm::CreateXrcSrqOut::xrc_srqn>();
  return 0;
}

int create_srq(File& file, SrqParams& params, const Udata& driver, Srq** out) {
  const Caps& caps = file.node().caps();
  if (params.max_wr >= 1u << caps.log_max_srq_sz) return EINVAL;
  auto srq = std::make_unique<Srq>();
  srq->entries = std::bit_ceil(params.max_wr + 1);
  srq->max_sge = params.max_sge;
  if (params.max_sge > caps.max_wqe_sz_rq / kDataSegment) return EINVAL;
  const std::uint32_t wqe = std::max(kSmallestWqe, std::bit_ceil(kNextSegment + params.max_sge * kDataSegment));
  if (wqe > caps.max_wqe_sz_rq) return EINVAL;

  if (driver.in.size() < offsetof(mlx5_ib_create_srq, uidx)) return EINVAL;
  const auto request = driver.read<mlx5_ib_create_srq>();
  if (request.reserved0 || request.reserved1) return EINVAL;
  if (!driver.tail_is_zero(sizeof request) || request.flags) return EINVAL;
  const bool xrc = params.type == SrqType::xrc;
  if (xrc && (file.context().cqe_version ? request.uidx & ~prm::kNoUserIndex : request.uidx != prm::kNoUserIndex)) return EINVAL;
  const std::uint64_t bytes = std::uint64_t{srq->entries} * wqe;
  PageRun pages{};
  if (int error = check_memory(request.buf_addr, bytes, false)) return error;
  if (!page_run(request.buf_addr, bytes, &pages) || request.db_addr % 8) return EINVAL;
  if (int error = check_memory(request.db_addr, 8, true)) return error;

  const Ring ring{pages, static_cast<std::uint32_t>(std::countr_zero(srq->entries)),
                  static_cast<std::uint32_t>(std::countr_zero(wqe)), request.db_addr, request.uidx};
  if (int error = (xrc ? make_xrc : make_pool)(file, params, ring, &srq->srqn)) return error;
  srq->type = params.type;
  srq->pd = params.pd;
  ++params.pd->users;
  if (xrc) {
    srq->cq = params.cq;
    srq->xrcd = params.xrcd;
    ++srq->cq->users;
    ++srq->xrcd->users;
  }
  file.node().events().add(EventSource::srq, srq->srqn, {nullptr, params.async, params.user_handle, 0, 0});
  driver.write(mlx5_ib_create_srq_resp{srq->srqn, 0});
  params.max_wr = srq->entries - 1;
  *out = srq.get();
  file.objects().add(std::move(srq));
  return 0;
}

// ---- native methods ----

constexpr AttrSpec kCreateAttrs[] = {
    uverbs::object_attr(UVERBS_ATTR_CREATE_SRQ_HANDLE, UVERBS_OBJECT_SRQ, AttrAccess::create),
    uverbs::object_attr(UVERBS_ATTR_CREATE_SRQ_PD_HANDLE, UVERBS_OBJECT_PD, AttrAccess::read),
    uverbs::object_attr(UVERBS_ATTR_CREATE_SRQ_XRCD_HANDLE, UVERBS_OBJECT_XRCD, AttrAccess::read, false),
    uverbs::object_attr(UVERBS_ATTR_CREATE_SRQ_CQ_HANDLE, UVERBS_OBJECT_CQ, AttrAccess::read, false),
    uverbs::in_attr(UVERBS_ATTR_CREATE_SRQ_USER_HANDLE, 8),
    uverbs::in_attr(UVERBS_ATTR_CREATE_SRQ_MAX_WR, 4),
    uverbs::in_attr(UVERBS_ATTR_CREATE_SRQ_MAX_SGE, 4),
    uverbs::in_attr(UVERBS_ATTR_CREATE_SRQ_LIMIT, 4),
    uverbs::in_attr(UVERBS_ATTR_CREATE_SRQ_MAX_NUM_TAGS, 4, false),
    uverbs::const_attr(UVERBS_ATTR_CREATE_SRQ_TYPE),
    uverbs::fd_attr(UVERBS_ATTR_CREATE_SRQ_EVENT_FD, UVERBS_OBJECT_ASYNC_EVENT, AttrAccess::read, false),
    uverbs::out_attr(UVERBS_ATTR_CREATE_SRQ_RESP_MAX_WR, 4),
    uverbs::out_attr(UVERBS_ATTR_CREATE_SRQ_RESP_MAX_SGE, 4),
    uverbs::out_attr(UVERBS_ATTR_CREATE_SRQ_RESP_SRQ_NUM, 4, false),
};

int native_create(File& file, Request& request) {
  SrqParams params;
  if (int error = check_type(request.value<std::uint64_t>(UVERBS_ATTR_CREATE_SRQ_TYPE), &params.type)) return error;
  int error = 0;
  params.pd = file.find<Pd>(request.handle(UVERBS_ATTR_CREATE_SRQ_PD_HANDLE), UVERBS_OBJECT_PD, &error);
  if (!params.pd) return error;
  if (params.type == SrqType::xrc) {
    if (!request.has(UVERBS_ATTR_CREATE_SRQ_CQ_HANDLE) || !request.has(UVERBS_ATTR_CREATE_SRQ_XRCD_HANDLE)) return ENOENT;
    params.cq = file.find<Cq>(request.handle(UVERBS_ATTR_CREATE_SRQ_CQ_HANDLE), UVERBS_OBJECT_CQ, &error);
    if (!params.cq) return error;
    params.xrcd = file.find<Xrcd>(request.handle(UVERBS_ATTR_CREATE_SRQ_XRCD_HANDLE), UVERBS_OBJECT_XRCD, &error);
    if (!params.xrcd) return error;
  }
  if ((error = find_async(file, request, UVERBS_ATTR_CREATE_SRQ_EVENT_FD, &params.async))) return error;
  params.user_handle = request.value<std::uint64_t>(UVERBS_ATTR_CREATE_SRQ_USER_HANDLE);
  params.max_wr = request.value<std::uint32_t>(UVERBS_ATTR_CREATE_SRQ_MAX_WR);
  params.max_sge = request.value<std::uint32_t>(UVERBS_ATTR_CREATE_SRQ_MAX_SGE);
  Srq* srq = nullptr;
  if ((error = create_srq(file, params, request.udata(), &srq))) return error;
  request.set_id(UVERBS_ATTR_CREATE_SRQ_HANDLE, srq->handle);
  request.write(UVERBS_ATTR_CREATE_SRQ_RESP_MAX_WR, params.max_wr);
  request.write(UVERBS_ATTR_CREATE_SRQ_RESP_MAX_SGE, params.max_sge);
  if (srq->type == SrqType::xrc) request.write(UVERBS_ATTR_CREATE_SRQ_RESP_SRQ_NUM, srq->srqn);
  return 0;
}

constexpr AttrSpec kDestroyAttrs[] = {
    uverbs::object_attr(UVERBS_ATTR_DESTROY_SRQ_HANDLE, UVERBS_OBJECT_SRQ, AttrAccess::destroy),
    uverbs::out_attr(UVERBS_ATTR_DESTROY_SRQ_RESP, sizeof(ib_uverbs_destroy_srq_resp)),
};

int destroy_srq(File& file, std::uint32_t handle, ib_uverbs_destroy_srq_resp* response) {
  int error = 0;
  Srq* srq = file.find<Srq>(handle, UVERBS_OBJECT_SRQ, &error);
  if (!srq) return error;
  if (srq->users) return EBUSY;
  if ((error = srq->destroy(file))) return error;
  response->events_reported = srq->reported.async;
  file.remove(srq);
  return 0;
}

int native_destroy(File& file, Request& request) {
  ib_uverbs_destroy_srq_resp response{};
  if (int error = destroy_srq(file, request.handle(UVERBS_ATTR_DESTROY_SRQ_HANDLE), &response)) return error;
  return request.write(UVERBS_ATTR_DESTROY_SRQ_RESP, response);
}

// ---- legacy commands ----

template <class Cmd>
int create_from(File& file, const Cmd& cmd, SrqParams& params, WriteCall& call) {
  int error = 0;
  params.pd = file.find<Pd>(cmd.pd_handle, UVERBS_OBJECT_PD, &error);
  if (!params.pd) return EINVAL;
  params.user_handle = cmd.user_handle;
  params.max_wr = cmd.max_wr;
  params.max_sge = cmd.max_sge;
  params.async = file.default_async();
  Srq* srq = nullptr;
  if ((error = create_srq(file, params, call.driver, &srq))) return error;
  ib_uverbs_create_srq_resp response{};
  response.srq_handle = srq->handle;
  response.max_wr = params.max_wr;
  response.max_sge = params.max_sge;
  if (srq->type == SrqType::xrc) response.srqn = srq->srqn;
  call.write(&response, sizeof response);
  return 0;
}

int write_create(File& file, WriteCall& call) {
  SrqParams params;
  return create_from(file, call.read<ib_uverbs_create_srq>(), params, call);
}

int write_create_xsrq(File& file, WriteCall& call) {
  const auto cmd = call.read<ib_uverbs_create_xsrq>();
  SrqParams params;
  if (int error = check_type(cmd.srq_type, &params.type)) return error;
  if (params.type == SrqType::xrc) {
    int error = 0;
    params.xrcd = file.find<Xrcd>(cmd.xrcd_handle, UVERBS_OBJECT_XRCD, &error);
    params.cq = file.find<Cq>(cmd.cq_handle, UVERBS_OBJECT_CQ, &error);
    if (!params.xrcd || !params.cq) return EINVAL;
  }
  return create_from(file, cmd, params, call);
}

// Sets the limit, or reads it.
int arm(File& file, const Srq& srq, std::uint32_t limit) {
  if (srq.type == SrqType::xrc) {
    Command<prm::ArmXrcSrqIn, prm::ArmXrcSrqOut> command(prm::Opcode::arm_xrc_srq, file.context().uid);
    using In = prm::ArmXrcSrqIn;
    command.in().set<In::op_mod>(static_cast<std::uint32_t>(prm::ArmRqOpMod::srq));
    command.in().set<In::xrc_srqn>(srq.srqn).set<In::lwm>(limit);
    return command.run(file.device());
  }
  using In = prm::ModifyRmpIn;
  Command<In, prm::ModifyRmpOut> command(prm::Opcode::modify_rmp, file.context().uid);
  const auto in = command.in();
  in.set<In::rmp_state>(prm::RmpState::rdy).set<In::rmpn>(srq.srqn);
  in.sub<In::bitmask>().set<prm::RmpBitmask::lwm>(1);
  in.sub<In::ctx>().set<prm::Rmpc::state>(prm::RmpState::rdy);
  in.sub<In::ctx>().sub<prm::Rmpc::wq>().set<prm::Wq::lwm>(limit);
  return command.run(file.device());
}

int limit_of(File& file, const Srq& srq, std::uint32_t* limit) {
  if (srq.type == SrqType::xrc) {
    Command<prm::QueryXrcSrqIn, prm::QueryXrcSrqOut> command(prm::Opcode::query_xrc_srq);
    command.in().set<prm::QueryXrcSrqIn::xrc_srqn>(srq.srqn);
    if (int error = command.run(file.device())) return error;
    *limit = command.out().sub<prm::QueryXrcSrqOut::xrc_srq_context_entry>().get<prm::XrcSrqc::lwm>();
    return 0;
  }
  Command<prm::QueryRmpIn, prm::QueryRmpOut> command(prm::Opcode::query_rmp);
  command.in().set<prm::QueryRmpIn::rmpn>(srq.srqn);
  if (int error = command.run(file.device())) return error;
  *limit = command.out().sub<prm::QueryRmpOut::rmp_context>().sub<prm::Rmpc::wq>().get<prm::Wq::lwm>();
  return 0;
}

int write_modify(File& file, WriteCall& call) {
  const auto cmd = call.read<ib_uverbs_modify_srq>();
  int error = 0;
  Srq* srq = file.find<Srq>(cmd.srq_handle, UVERBS_OBJECT_SRQ, &error);
  if (!srq) return EINVAL;
  if (cmd.attr_mask & SrqAttr::max_wr) return EINVAL;  // resizing is a capability mlx5 does not have
  if (!(cmd.attr_mask & SrqAttr::limit)) return 0;  // bits that it does not know it does not look at
  if (cmd.srq_limit >= srq->entries) return EINVAL;
  return arm(file, *srq, cmd.srq_limit);
}

int write_query(File& file, WriteCall& call) {
  int error = 0;
  Srq* srq = file.find<Srq>(call.read<ib_uverbs_query_srq>().srq_handle, UVERBS_OBJECT_SRQ, &error);
  if (!srq) return EINVAL;
  std::uint32_t limit = 0;
  if ((error = limit_of(file, *srq, &limit))) return error;
  ib_uverbs_query_srq_resp response{};
  response.max_wr = srq->entries - 1;
  response.max_sge = srq->max_sge;
  response.srq_limit = limit;
  call.write(&response, sizeof response);
  return 0;
}

int write_destroy(File& file, WriteCall& call) {
  ib_uverbs_destroy_srq_resp response{};
  if (int error = destroy_srq(file, call.read<ib_uverbs_destroy_srq>().srq_handle, &response)) return error;
  call.write(&response, sizeof response);
  return 0;
}

constexpr Method kMethods[] = {
    {{UVERBS_OBJECT_SRQ, UVERBS_METHOD_SRQ_CREATE, kCreateAttrs, true}, native_create},
    {{UVERBS_OBJECT_SRQ, UVERBS_METHOD_SRQ_DESTROY, kDestroyAttrs}, native_destroy},
};
constexpr WriteCommand kCommands[] = {
    {IB_USER_VERBS_CMD_CREATE_SRQ, sizeof(ib_uverbs_create_srq), sizeof(ib_uverbs_create_srq_resp), write_create},
    {IB_USER_VERBS_CMD_CREATE_XSRQ, sizeof(ib_uverbs_create_xsrq), sizeof(ib_uverbs_create_srq_resp), write_create_xsrq},
    {IB_USER_VERBS_CMD_MODIFY_SRQ, sizeof(ib_uverbs_modify_srq), 0, write_modify},
    {IB_USER_VERBS_CMD_QUERY_SRQ, sizeof(ib_uverbs_query_srq), sizeof(ib_uverbs_query_srq_resp), write_query},
    {IB_USER_VERBS_CMD_DESTROY_SRQ, sizeof(ib_uverbs_destroy_srq), sizeof(ib_uverbs_destroy_srq_resp), write_destroy},
};

}  // namespace

int Srq::destroy(File& file) {
  // Both requests name it at the same place.
  static_assert(prm::DestroyRmpIn::rmpn::offset == prm::DestroyXrcSrqIn::xrc_srqn::offset);
  Command<prm::DestroyRmpIn, prm::DestroyRmpOut> command(
      type == SrqType::xrc ? prm::Opcode::destroy_xrc_srq : prm::Opcode::destroy_rmp, file.context().uid);
  command.in().set<prm::DestroyRmpIn::rmpn>(srqn);
  if (int error = command.run(file.device())) return error;
  file.node().drain_events();
  reported = file.node().events().remove(EventSource::srq, srqn);
  --pd->users;
  if (cq) --cq->users;
  if (xrcd) --xrcd->users;
  return 0;
}

std::span<const Method> srq_methods() { return kMethods; }
std::span<const WriteCommand> srq_commands() { return kCommands; }

}  // namespace verbena::kernel
