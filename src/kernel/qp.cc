#include "kernel/qp.h"

#include <rdma/ib_user_ioctl_verbs.h>
#include <rdma/ib_user_verbs.h>
#include <rdma/mlx5-abi.h>

#include <algorithm>
#include <bit>
#include <cerrno>

#include "kernel/command.h"
#include "kernel/method.h"
#include "kernel/mr.h"
#include "kernel/privilege.h"
#include "kernel/wq.h"

namespace verbena::kernel {
namespace {

constexpr std::uint32_t kNoBfreg = 1u << 31;
constexpr std::uint32_t kUserIndexMask = 0xffffff;
constexpr std::uint32_t kSupportedFlags = IB_UVERBS_QP_CREATE_BLOCK_MULTICAST_LOOPBACK | IB_UVERBS_QP_CREATE_SQ_SIG_ALL;
// What the kernel knows; the rest of it this device cannot do.
constexpr std::uint32_t kKnownFlags = kSupportedFlags | IB_UVERBS_QP_CREATE_SCATTER_FCS |
                                      IB_UVERBS_QP_CREATE_CVLAN_STRIPPING | IB_UVERBS_QP_CREATE_PCI_WRITE_END_PADDING;
constexpr std::uint32_t kSourceQpn = 1u << 10;

int check_type(std::uint64_t type, QpType* out) {
  *out = static_cast<QpType>(type);
  switch (type) {
    case IB_UVERBS_QPT_RC:
    case IB_UVERBS_QPT_UC:
    case IB_UVERBS_QPT_UD:
    case IB_UVERBS_QPT_XRC_INI:
    case IB_UVERBS_QPT_XRC_TGT:
      return 0;
    case IB_UVERBS_QPT_RAW_PACKET:
      return may_use_raw_packets() ? 0 : EPERM;
    case IB_UVERBS_QPT_DRIVER:
      return EOPNOTSUPP;
    default:
      return EINVAL;
  }
}

// The flags of the two structures: what they are for decides whether the device can do it.
int check_flags(const Caps& caps, const QpParams& params, std::uint32_t driver_flags) {
  const bool raw = params.type == QpType::raw_packet;
  constexpr std::uint32_t self_loopback = MLX5_QP_FLAG_TIR_ALLOW_SELF_LB_UC | MLX5_QP_FLAG_TIR_ALLOW_SELF_LB_MC;
  constexpr std::uint32_t known = MLX5_QP_FLAG_SCATTER_CQE | MLX5_QP_FLAG_ALLOW_SCATTER_CQE | MLX5_QP_FLAG_BFREG_INDEX |
                                  MLX5_QP_FLAG_UAR_PAGE_INDEX | MLX5_QP_FLAG_TUNNEL_OFFLOADS;
  // Asking for scatter to CQE where there is none is ignored; every other unknown wish is refused.
  if (driver_flags & ~(known | (raw ? self_loopback : 0u))) return EINVAL;
  if (driver_flags & MLX5_QP_FLAG_TUNNEL_OFFLOADS) return raw ? EOPNOTSUPP : EINVAL;
  if (driver_flags & MLX5_QP_FLAG_BFREG_INDEX || !(driver_flags & MLX5_QP_FLAG_UAR_PAGE_INDEX)) return EINVAL;
  const std::uint32_t possible = kSupportedFlags | (raw && caps.strips_vlan ? IB_UVERBS_QP_CREATE_CVLAN_STRIPPING : 0u);
  if (params.flags & ~possible) return EOPNOTSUPP;
  return params.flags & IB_UVERBS_QP_CREATE_BLOCK_MULTICAST_LOOPBACK && !caps.block_lb_mc ? EOPNOTSUPP : 0;
}

int check_driver(File& file, const QpParams& params, const Udata& driver, mlx5_ib_create_qp* out) {
  if (driver.in.size() < offsetof(mlx5_ib_create_qp, sq_buf_addr)) return EINVAL;
  if (!driver.tail_is_zero(sizeof *out)) return EOPNOTSUPP;
  *out = driver.read<mlx5_ib_create_qp>();
  if (file.context().cqe_version ? out->uidx & ~kUserIndexMask : out->uidx != kUserIndexMask) return EINVAL;
  return check_flags(file.node().caps(), params, out->flags);
}

int check_rings(const Caps& caps, const QpParams& params, const mlx5_ib_create_qp& request, Rings* rings) {
  const std::uint32_t max = 1u << caps.log_max_qp_sz;
  if (params.sends_only() && (request.rq_wqe_count || request.rq_wqe_shift)) return EINVAL;
  if (params.cap.max_recv_wr > max) return EINVAL;
  if (params.cap.max_recv_wr && !params.srq) {
    if (request.rq_wqe_shift < 4 || request.rq_wqe_shift > 4 + 7) return EINVAL;
    if (!std::has_single_bit(request.rq_wqe_count) || request.rq_wqe_count > max) return EINVAL;
    rings->rq_entries = request.rq_wqe_count;
    rings->rq_shift = request.rq_wqe_shift;
  }
  if (request.sq_wqe_count && !std::has_single_bit(request.sq_wqe_count)) return EINVAL;
  if (request.sq_wqe_count > max) return EINVAL;
  rings->sq_entries = request.sq_wqe_count;
  return 0;
}

void set_scatter_to_cqe(const prm::View<prm::Qpc>& qpc, const QpParams& params, const mlx5_ib_create_qp& request) {
  if ((params.type != QpType::rc && params.type != QpType::uc) || !(request.flags & MLX5_QP_FLAG_SCATTER_CQE)) return;
  qpc.set<prm::Qpc::cs_res>(params.recv_cq->cqe_size == 128 ? prm::ScatterToCqe::res_up_to_64b
                                                            : prm::ScatterToCqe::res_up_to_32b);
  // An unsignalled work request leaves no CQE to scatter into, unless the program says it knows.
  if (!(params.flags & IB_UVERBS_QP_CREATE_SQ_SIG_ALL) && !(request.flags & MLX5_QP_FLAG_ALLOW_SCATTER_CQE)) return;
  qpc.set<prm::Qpc::cs_req>(params.send_cq->cqe_size == 128 ? prm::ScatterToCqe::req_up_to_64b
                                                            : prm::ScatterToCqe::req_up_to_32b);
}

int fill_context(const prm::View<prm::Qpc>& qpc, File& file, const QpParams& params, const mlx5_ib_create_qp& request,
                 const Rings& rings, const PageRun& pages) {
  using prm::Qpc;
  qpc.set<Qpc::st>(service_of(params.type));
  qpc.set<Qpc::pm_state>(prm::PathMigrationState::migrated);
  qpc.set<Qpc::pd>(params.pd->pdn);
  qpc.set<Qpc::cqn_snd>(params.send_cq->cqn);
  if (params.recv_cq) qpc.set<Qpc::cqn_rcv>(params.recv_cq->cqn);
  qpc.set<Qpc::dbr_addr>(request.db_addr);
  qpc.set<Qpc::uar_page>(request.bfreg_index);
  qpc.set<Qpc::page_offset>(pages.offset64);
  if (file.context().cqe_version) qpc.set<Qpc::user_index>(request.uidx);
  if (params.flags & IB_UVERBS_QP_CREATE_BLOCK_MULTICAST_LOOPBACK) qpc.set<Qpc::block_lb_mc>(1);
  if (rings.sq_entries)
    qpc.set<Qpc::log_sq_size>(static_cast<std::uint32_t>(std::countr_zero(rings.sq_entries)));
  else
    qpc.set<Qpc::no_sq>(1);
  if (params.sends_only()) {
    if (int error = fill_initiator(file, qpc)) return error;
  } else if (params.srq) {
    qpc.set<Qpc::rq_type>(prm::RqType::srq_rmp_xrq);
    qpc.set<Qpc::srqn_rmpn_xrqn>(params.srq->srqn);
  } else if (rings.rq_entries) {
    qpc.set<Qpc::rq_type>(prm::RqType::regular);
    qpc.set<Qpc::log_rq_size>(static_cast<std::uint32_t>(std::countr_zero(rings.rq_entries)));
    qpc.set<Qpc::log_rq_stride>(rings.rq_shift - 4);
  } else {
    qpc.set<Qpc::rq_type>(prm::RqType::zero_size);
  }
  if (file.node().caps().scatter_to_cqe) set_scatter_to_cqe(qpc, params, request);
  return 0;
}

// A QP that is one object of the device.
int make_qp(File& file, const QpParams& params, const mlx5_ib_create_qp& request, const Rings& rings, Qp& qp) {
  PageRun pages{};
  if (rings.bytes()) {
    if (int error = check_memory(request.buf_addr, rings.bytes(), true)) return error;
    if (!page_run(request.buf_addr, rings.bytes(), &pages)) return EINVAL;
  }
  if (request.db_addr % 8) return EINVAL;
  if (int error = check_memory(request.db_addr, 8, true)) return error;
  Command<prm::CreateQpIn, prm::CreateQpOut> command(prm::Opcode::create_qp, file.context().uid,
                                                     pages.count * prm::Pas::size);
  if (int error = fill_context(command.in().sub<prm::CreateQpIn::qpc>(), file, params, request, rings, pages)) return error;
  fill_pages<prm::CreateQpIn::pas>(command.in(), pages);
  if (int error = command.run(file.device())) return error;
  qp.qpn = command.out().get<prm::CreateQpOut::qpn>();
  return 0;
}

int make_with_rings(File& file, QpParams& params, const Udata& driver, Qp& qp) {
  mlx5_ib_create_qp request;
  Rings rings;
  if (int error = check_driver(file, params, driver, &request)) return error;
  if (int error = check_rings(file.node().caps(), params, request, &rings)) return error;
  const bool raw = params.type == QpType::raw_packet;
  if (int error = raw ? make_raw_parts(file, params, request, rings, qp) : make_qp(file, params, request, rings, qp))
    return error;
  qp.rq_entries = rings.rq_entries;
  qp.rq_sge = rings.rq_entries ? (1u << rings.rq_shift) / 16 : 0;
  if (!raw || rings.sq_entries) qp.doorbell = request.db_addr;
  if (!rings.rq_entries) params.cap.max_recv_wr = params.cap.max_recv_sge = 0;
  return 0;
}

void listen(File& file, const Qp& qp, const QpParams& params) {
  const EventTarget target{nullptr, params.async, params.user_handle, 0, 0};
  if (qp.qpn) file.node().events().add(EventSource::qp, qp.qpn, target);
  if (qp.raw && qp.raw->rqn && qp.raw->rqn != qp.qpn) file.node().events().add(EventSource::qp, qp.raw->rqn, target);
}

int create_qp(File& file, QpParams& params, const Udata& driver, Qp** out) {
  if ((params.sends_only() || params.type == QpType::xrc_tgt) && !file.node().caps().xrc) return EOPNOTSUPP;
  if (params.type == QpType::xrc_tgt) {
    if (params.flags & ~kSupportedFlags) return EOPNOTSUPP;
    const bool signal_all = params.flags & IB_UVERBS_QP_CREATE_SQ_SIG_ALL;
    return create_target_qp(file, {params.user_handle, params.xrcd, params.async, signal_all}, out);
  }
  if (params.sends_only()) params.cap.max_recv_wr = params.cap.max_recv_sge = 0;
  auto qp = std::make_unique<Qp>();
  qp->type = params.type;
  if (int error = params.table ? make_hash_parts(file, params, driver, *qp) : make_with_rings(file, params, driver, *qp))
    return error;
  qp->sq_sig_all = params.flags & IB_UVERBS_QP_CREATE_SQ_SIG_ALL;
  qp->max_inline = params.cap.max_inline_data;
  qp->pd = params.pd;
  qp->send_cq = params.send_cq;
  qp->recv_cq = params.recv_cq;
  qp->srq = params.srq;
  qp->table = params.table;
  qp->user_handle = params.user_handle;
  qp->uid = file.context().uid;
  for (Object* under : std::initializer_list<Object*>{qp->pd, qp->send_cq, qp->recv_cq, qp->srq, qp->table})
    if (under) ++under->users;
  listen(file, *qp, params);
  mlx5_ib_create_qp_resp response{};
  response.bfreg_index = params.table ? 0 : kNoBfreg;
  describe_parts(file, *qp, &response);
  driver.write(response);
  *out = qp.get();
  file.objects().add(std::move(qp));
  return 0;
}

// ---- native methods ----

constexpr AttrSpec kCreateAttrs[] = {
    uverbs::object_attr(UVERBS_ATTR_CREATE_QP_HANDLE, UVERBS_OBJECT_QP, AttrAccess::create),
    uverbs::object_attr(UVERBS_ATTR_CREATE_QP_XRCD_HANDLE, UVERBS_OBJECT_XRCD, AttrAccess::read, false),
    uverbs::object_attr(UVERBS_ATTR_CREATE_QP_PD_HANDLE, UVERBS_OBJECT_PD, AttrAccess::read, false),
    uverbs::object_attr(UVERBS_ATTR_CREATE_QP_SRQ_HANDLE, UVERBS_OBJECT_SRQ, AttrAccess::read, false),
    uverbs::object_attr(UVERBS_ATTR_CREATE_QP_SEND_CQ_HANDLE, UVERBS_OBJECT_CQ, AttrAccess::read, false),
    uverbs::object_attr(UVERBS_ATTR_CREATE_QP_RECV_CQ_HANDLE, UVERBS_OBJECT_CQ, AttrAccess::read, false),
    uverbs::object_attr(UVERBS_ATTR_CREATE_QP_IND_TABLE_HANDLE, UVERBS_OBJECT_RWQ_IND_TBL, AttrAccess::read, false),
    uverbs::in_attr(UVERBS_ATTR_CREATE_QP_USER_HANDLE, 8),
    uverbs::in_attr(UVERBS_ATTR_CREATE_QP_CAP, sizeof(ib_uverbs_qp_cap)),
    uverbs::const_attr(UVERBS_ATTR_CREATE_QP_TYPE),
    uverbs::flags_attr(UVERBS_ATTR_CREATE_QP_FLAGS),
    uverbs::in_attr(UVERBS_ATTR_CREATE_QP_SOURCE_QPN, 4, false),
    uverbs::fd_attr(UVERBS_ATTR_CREATE_QP_EVENT_FD, UVERBS_OBJECT_ASYNC_EVENT, AttrAccess::read, false),
    uverbs::out_attr(UVERBS_ATTR_CREATE_QP_RESP_CAP, sizeof(ib_uverbs_qp_cap)),
    uverbs::out_attr(UVERBS_ATTR_CREATE_QP_RESP_QP_NUM, 4),
};

bool receives_into_queues(const QpParams& params) { return !params.table && !params.sends_only(); }

// What an XRC target has: a domain, and nothing else.
int find_target_parts(File& file, Request& request, QpParams* params) {
  for (std::uint16_t id : {UVERBS_ATTR_CREATE_QP_PD_HANDLE, UVERBS_ATTR_CREATE_QP_SEND_CQ_HANDLE,
                           UVERBS_ATTR_CREATE_QP_RECV_CQ_HANDLE, UVERBS_ATTR_CREATE_QP_IND_TABLE_HANDLE})
    if (request.has(id)) return EINVAL;
  if (!request.has(UVERBS_ATTR_CREATE_QP_XRCD_HANDLE)) return ENOENT;
  int error = 0;
  params->xrcd = file.find<Xrcd>(request.handle(UVERBS_ATTR_CREATE_QP_XRCD_HANDLE), UVERBS_OBJECT_XRCD, &error);
  return error;
}

int find_native_parts(File& file, Request& request, QpParams* params) {
  if (params->type == QpType::xrc_tgt) return find_target_parts(file, request, params);
  if (request.has(UVERBS_ATTR_CREATE_QP_XRCD_HANDLE)) return EINVAL;
  int error = 0;
  auto object = [&](std::uint16_t id, std::uint16_t cls) { return file.find<Object>(request.handle(id), cls, &error); };
  if (!(params->pd = static_cast<Pd*>(object(UVERBS_ATTR_CREATE_QP_PD_HANDLE, UVERBS_OBJECT_PD)))) return error;
  const bool hashes = request.has(UVERBS_ATTR_CREATE_QP_IND_TABLE_HANDLE);
  const bool shared = request.has(UVERBS_ATTR_CREATE_QP_SRQ_HANDLE);
  if (hashes) {
    params->table = static_cast<IndTable*>(object(UVERBS_ATTR_CREATE_QP_IND_TABLE_HANDLE, UVERBS_OBJECT_RWQ_IND_TBL));
    if (!params->table) return error;
    if (params->cap.max_recv_wr || params->cap.max_recv_sge || request.has(UVERBS_ATTR_CREATE_QP_RECV_CQ_HANDLE) || shared)
      return EINVAL;
  }
  if (!hashes || params->cap.max_send_wr)
    if (!(params->send_cq = static_cast<Cq*>(object(UVERBS_ATTR_CREATE_QP_SEND_CQ_HANDLE, UVERBS_OBJECT_CQ)))) return error;
  if (receives_into_queues(*params) &&
      !(params->recv_cq = static_cast<Cq*>(object(UVERBS_ATTR_CREATE_QP_RECV_CQ_HANDLE, UVERBS_OBJECT_CQ))))
    return error;
  if (!shared) return 0;
  if (!(params->srq = static_cast<Srq*>(object(UVERBS_ATTR_CREATE_QP_SRQ_HANDLE, UVERBS_OBJECT_SRQ)))) return error;
  // XRC receive queues are for XRC packets alone.
  if (params->srq->type == SrqType::xrc) return EINVAL;
  if (params->sends_only()) params->srq = nullptr;
  return 0;
}

int native_create(File& file, Request& request) {
  QpParams params;
  if (int error = check_type(request.value<std::uint64_t>(UVERBS_ATTR_CREATE_QP_TYPE), &params.type)) return error;
  params.cap = request.value<ib_uverbs_qp_cap>(UVERBS_ATTR_CREATE_QP_CAP);
  int error = find_native_parts(file, request, &params);
  if (error) return error;
  if ((error = request.flags(UVERBS_ATTR_CREATE_QP_FLAGS, kKnownFlags, &params.flags))) return error;
  if (request.has(UVERBS_ATTR_CREATE_QP_SOURCE_QPN)) return may_use_raw_packets() ? EOPNOTSUPP : EPERM;
  if ((error = find_async(file, request, UVERBS_ATTR_CREATE_QP_EVENT_FD, &params.async))) return error;
  params.user_handle = request.value<std::uint64_t>(UVERBS_ATTR_CREATE_QP_USER_HANDLE);
  Qp* qp = nullptr;
  if ((error = create_qp(file, params, request.udata(), &qp))) return error;
  request.set_id(UVERBS_ATTR_CREATE_QP_HANDLE, qp->handle);
  request.write(UVERBS_ATTR_CREATE_QP_RESP_CAP, params.cap);
  return request.write(UVERBS_ATTR_CREATE_QP_RESP_QP_NUM, qp->qpn);
}

constexpr AttrSpec kDestroyAttrs[] = {
    uverbs::object_attr(UVERBS_ATTR_DESTROY_QP_HANDLE, UVERBS_OBJECT_QP, AttrAccess::destroy),
    uverbs::out_attr(UVERBS_ATTR_DESTROY_QP_RESP, sizeof(ib_uverbs_destroy_qp_resp)),
};

int destroy_qp(File& file, std::uint32_t handle, ib_uverbs_destroy_qp_resp* response) {
  int error = 0;
  Qp* qp = file.find<Qp>(handle, UVERBS_OBJECT_QP, &error);
  if (!qp) return error;
  if (qp->users || !qp->groups.empty()) return EBUSY;
  if ((error = qp->destroy(file))) return error;
  response->events_reported = qp->reported.async;
  file.remove(qp);
  return 0;
}

int native_destroy(File& file, Request& request) {
  ib_uverbs_destroy_qp_resp response{};
  if (int error = destroy_qp(file, request.handle(UVERBS_ATTR_DESTROY_QP_HANDLE), &response)) return error;
  return request.write(UVERBS_ATTR_DESTROY_QP_RESP, response);
}

// ---- legacy commands ----

// The two forms of CREATE_QP share their fields; an object that is not there is EINVAL.
template <class Cmd>
int find_parts(File& file, const Cmd& cmd, bool hashes, QpParams* params) {
  int error = 0;
  if (hashes) {
    if constexpr (requires { cmd.rwq_ind_tbl_handle; })
      params->table = file.find<IndTable>(cmd.rwq_ind_tbl_handle, UVERBS_OBJECT_RWQ_IND_TBL, &error);
    if (!params->table || cmd.max_recv_wr || cmd.max_recv_sge || cmd.is_srq) return EINVAL;
  }
  if (params->type == QpType::xrc_tgt) {
    params->xrcd = file.find<Xrcd>(cmd.pd_handle, UVERBS_OBJECT_XRCD, &error);
    return params->xrcd ? 0 : EINVAL;
  }
  params->pd = file.find<Pd>(cmd.pd_handle, UVERBS_OBJECT_PD, &error);
  if (!params->pd) return EINVAL;
  if (!hashes || cmd.max_send_wr) {
    params->send_cq = file.find<Cq>(cmd.send_cq_handle, UVERBS_OBJECT_CQ, &error);
    if (!params->send_cq) return EINVAL;
  }
  if (receives_into_queues(*params)) {
    params->recv_cq = file.find<Cq>(cmd.recv_cq_handle, UVERBS_OBJECT_CQ, &error);
    if (!params->recv_cq) return EINVAL;
  }
  if (!cmd.is_srq || params->sends_only()) return 0;
  params->srq = file.find<Srq>(cmd.srq_handle, UVERBS_OBJECT_SRQ, &error);
  return params->srq && params->srq->type != SrqType::xrc ? 0 : EINVAL;
}

template <class Cmd>
int create_from(File& file, const Cmd& cmd, std::uint32_t flags, bool hashes, const Udata& driver,
                ib_uverbs_create_qp_resp* out) {
  QpParams params;
  if (int error = check_type(cmd.qp_type, &params.type)) return error;
  int error = find_parts(file, cmd, hashes, &params);
  if (error) return error;
  params.flags = flags | (cmd.sq_sig_all ? std::uint32_t{IB_UVERBS_QP_CREATE_SQ_SIG_ALL} : 0u);
  params.user_handle = cmd.user_handle;
  params.cap = {cmd.max_send_wr, cmd.max_recv_wr, cmd.max_send_sge, cmd.max_recv_sge, cmd.max_inline_data};
  params.async = file.default_async();
  Qp* qp = nullptr;
  if ((error = create_qp(file, params, driver, &qp))) return error;
  out->qp_handle = qp->handle;
  out->qpn = qp->qpn;
  out->max_send_wr = params.cap.max_send_wr;
  out->max_recv_wr = params.cap.max_recv_wr;
  out->max_send_sge = params.cap.max_send_sge;
  out->max_recv_sge = params.cap.max_recv_sge;
  out->max_inline_data = params.cap.max_inline_data;
  return 0;
}

int write_create(File& file, WriteCall& call) {
  ib_uverbs_create_qp_resp response{};
  if (int error = create_from(file, call.read<ib_uverbs_create_qp>(), 0, false, call.driver, &response)) return error;
  call.write(&response, sizeof response);
  return 0;
}

int write_create_ex(File& file, WriteCall& call) {
  const auto cmd = call.read<ib_uverbs_ex_create_qp>();
  if (!call.tail_is_zero(sizeof cmd)) return EOPNOTSUPP;
  if (cmd.comp_mask & ~std::uint32_t{IB_UVERBS_CREATE_QP_SUP_COMP_MASK} || cmd.reserved) return EINVAL;
  const bool hashes = cmd.comp_mask & IB_UVERBS_CREATE_QP_MASK_IND_TABLE;
  if (cmd.create_flags & kSourceQpn) return may_use_raw_packets() ? EOPNOTSUPP : EPERM;
  if (cmd.create_flags & ~kKnownFlags) return EINVAL;
  ib_uverbs_ex_create_qp_resp response{};
  if (int error = create_from(file, cmd, cmd.create_flags, hashes, call.driver, &response.base)) return error;
  response.response_length = static_cast<std::uint32_t>(std::min(sizeof response, call.out_length));
  call.write(&response, sizeof response);
  return 0;
}

int write_destroy(File& file, WriteCall& call) {
  ib_uverbs_destroy_qp_resp response{};
  if (int error = destroy_qp(file, call.read<ib_uverbs_destroy_qp>().qp_handle, &response)) return error;
  call.write(&response, sizeof response);
  return 0;
}

constexpr Method kMethods[] = {
    {{UVERBS_OBJECT_QP, UVERBS_METHOD_QP_CREATE, kCreateAttrs, true}, native_create},
    {{UVERBS_OBJECT_QP, UVERBS_METHOD_QP_DESTROY, kDestroyAttrs}, native_destroy},
};
constexpr WriteCommand kCommands[] = {
    {IB_USER_VERBS_CMD_CREATE_QP, sizeof(ib_uverbs_create_qp), sizeof(ib_uverbs_create_qp_resp), write_create},
    {IB_USER_VERBS_CMD_FLAG_EXTENDED | IB_USER_VERBS_EX_CMD_CREATE_QP, offsetof(ib_uverbs_ex_create_qp, rwq_ind_tbl_handle),
     sizeof(ib_uverbs_ex_create_qp_resp), write_create_ex},
    {IB_USER_VERBS_CMD_OPEN_QP, sizeof(ib_uverbs_open_qp), sizeof(ib_uverbs_create_qp_resp), write_open_qp},
    {IB_USER_VERBS_CMD_DESTROY_QP, sizeof(ib_uverbs_destroy_qp), sizeof(ib_uverbs_destroy_qp_resp), write_destroy},
    {IB_USER_VERBS_CMD_MODIFY_QP, sizeof(ib_uverbs_modify_qp), 0, write_modify_qp},
    {IB_USER_VERBS_CMD_FLAG_EXTENDED | IB_USER_VERBS_EX_CMD_MODIFY_QP, sizeof(ib_uverbs_modify_qp),
     sizeof(ib_uverbs_ex_modify_qp_resp), write_modify_qp_ex},
    {IB_USER_VERBS_CMD_QUERY_QP, sizeof(ib_uverbs_query_qp), sizeof(ib_uverbs_query_qp_resp), write_query_qp},
    {IB_USER_VERBS_CMD_ATTACH_MCAST, sizeof(ib_uverbs_attach_mcast), 0, write_attach_mcast},
    {IB_USER_VERBS_CMD_DETACH_MCAST, sizeof(ib_uverbs_detach_mcast), 0, write_detach_mcast},
};

}  // namespace

prm::QpServiceType service_of(QpType type) {
  switch (type) {
    case QpType::uc: return prm::QpServiceType::uc;
    case QpType::ud: return prm::QpServiceType::ud;
    case QpType::xrc_ini:
    case QpType::xrc_tgt: return prm::QpServiceType::xrc;
    default: return prm::QpServiceType::rc;
  }
}

int Qp::destroy(File& file) {
  if (target) return destroy_target_qp(file, *this);
  // Only a dying context comes here with groups left; a program must detach first.
  for (const McastMember& group : groups) detach_group(file, *this, group);
  groups.clear();
  if (raw) {
    if (int error = destroy_raw_parts(file, *this)) return error;
  } else {
    if (state != QpState::reset)
      if (int error = reset_qp(file, *this)) return error;
    Command<prm::DestroyQpIn, prm::DestroyQpOut> command(prm::Opcode::destroy_qp, file.context().uid);
    command.in().set<prm::DestroyQpIn::qpn>(qpn);
    if (int error = command.run(file.device())) return error;
  }
  file.node().drain_events();
  reported = file.node().events().remove(EventSource::qp, qpn);
  // Events of both halves have one handle: what the first took back counts for the second.
  if (raw && raw->rqn && raw->rqn != qpn) reported.async += file.node().events().remove(EventSource::qp, raw->rqn).async;
  for (Object* under : std::initializer_list<Object*>{pd, send_cq, recv_cq, srq, table})
    if (under) --under->users;
  return 0;
}

std::span<const Method> qp_methods() { return kMethods; }
std::span<const WriteCommand> qp_commands() { return kCommands; }

}  // namespace verbena::kernel
