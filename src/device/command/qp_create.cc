// CREATE_QP: what the context must say, where the rings lie, which objects the QP stands on.
#include <cstring>

#include "device/command/qos.h"
#include "device/command/qp_objects.h"
#include "device/command/queues.h"
#include "device/command/srq_objects.h"
#include "prm/wqe.h"

namespace verbena::device::command {
namespace {

using prm::Qpc;
using prm::RqType;
using In = prm::CreateQpIn;

// Ring sizes in bytes; a queue that does not exist has none.
struct Geometry {
  bool has_rq, has_sq;
  unsigned log_rq_stride;
  std::uint64_t rq_bytes, sq_bytes;
};

Geometry geometry(const prm::ConstView<Qpc>& qpc) {
  Geometry g{};
  g.has_rq = qpc.get<Qpc::rq_type>() == RqType::regular;
  g.has_sq = !qpc.get<Qpc::no_sq>();
  g.log_rq_stride = qpc.get<Qpc::log_rq_stride>() + 4;
  g.rq_bytes = g.has_rq ? 1ull << (qpc.get<Qpc::log_rq_size>() + g.log_rq_stride) : 0;
  g.sq_bytes = g.has_sq ? 1ull << (qpc.get<Qpc::log_sq_size>() + prm::kLogSendWqeBasicBlock) : 0;
  return g;
}

Outcome check_type(const prm::ConstView<Qpc>& qpc) {
  switch (qpc.get<Qpc::st>()) {
    case prm::QpServiceType::rc:
    case prm::QpServiceType::uc:
    case prm::QpServiceType::ud:
      return {};
    case prm::QpServiceType::xrc:
      return qpc.get<Qpc::rq_type>() == RqType::regular ? refuse(Syndrome::qp_xrc_rq) : Outcome{};
    default:
      return refuse(Syndrome::qp_service_type);
  }
}

Outcome check_features(const Call<In, prm::CreateQpOut>& call, const prm::ConstView<Qpc>& qpc) {
  using Scatter = prm::ScatterToCqe;
  if (call.in.get<In::input_qpn>()) return refuse(Syndrome::qp_input_qpn);
  if (call.in.get<In::ece>()) return refuse(Syndrome::qp_ece);
  if (qpc.get<Qpc::wq_signature>()) return refuse(Syndrome::qp_signature);
  if (qpc.get<Qpc::offload_type>() != prm::QpOffload::none) return refuse(Syndrome::qp_offload);
  if (qpc.get<Qpc::drain_sigerr>()) return refuse(Syndrome::qp_drain_sigerr);
  const auto mode = qpc.get<Qpc::send_dbr_mode>();
  if (mode != prm::SendDbrMode::dbr_valid && mode != prm::SendDbrMode::no_dbr_ext) return refuse(Syndrome::qp_dbr_mode);
  if (qpc.get<Qpc::ts_format>() > prm::TimestampFormat::standard) return refuse(Syndrome::qp_ts_format);
  if (qpc.get<Qpc::rlky>()) return refuse(Syndrome::qp_rlky);
  if (qpc.get<Qpc::cd_master>() || qpc.get<Qpc::cd_slave_send>() || qpc.get<Qpc::cd_slave_receive>())
    return refuse(Syndrome::qp_cross_channel);
  const auto req = qpc.get<Qpc::cs_req>();
  if (req != Scatter::req_disable && req != Scatter::req_up_to_32b && req != Scatter::req_up_to_64b)
    return refuse(Syndrome::qp_cs_req);
  if (qpc.get<Qpc::cs_res>() > Scatter::res_up_to_64b) return refuse(Syndrome::qp_cs_res);
  return {};
}

Outcome check_geometry(const State& state, const prm::ConstView<Qpc>& qpc, const Geometry& g) {
  const auto& limits = state.profile.limits;
  const auto rq_type = qpc.get<Qpc::rq_type>();
  if (rq_type != RqType::regular && rq_type != RqType::srq_rmp_xrq && rq_type != RqType::zero_size)
    return refuse(Syndrome::qp_rq_type);
  if (g.has_sq && qpc.get<Qpc::log_sq_size>() > limits.log_max_qp_sz) return refuse(Syndrome::qp_sq_size);
  if (g.has_rq && qpc.get<Qpc::log_rq_size>() > limits.log_max_qp_sz) return refuse(Syndrome::qp_rq_size);
  if (g.has_rq && (1u << g.log_rq_stride) > limits.max_wqe_sz_rq) return refuse(Syndrome::qp_rq_stride);
  return {};
}

// The objects a context names. Null where the QP has no use for one and none is named.
struct Parts {
  Pd* pd = nullptr;
  Uar* uar = nullptr;
  CqRecord* send_cq = nullptr;
  CqRecord* recv_cq = nullptr;
  SrqRecord* srq = nullptr;
  Xrcd* xrcd = nullptr;
};

bool is_xrc(const prm::ConstView<Qpc>& qpc) { return qpc.get<Qpc::st>() == prm::QpServiceType::xrc; }

Parts named_parts(State& state, const prm::ConstView<Qpc>& qpc) {
  return {state.pds.find(qpc.get<Qpc::pd>()), state.uars.find(qpc.get<Qpc::uar_page>()),
          state.cqs.find(qpc.get<Qpc::cqn_snd>()), state.cqs.find(qpc.get<Qpc::cqn_rcv>()),
          qpc.get<Qpc::rq_type>() == RqType::srq_rmp_xrq ? state.srqs.find(qpc.get<Qpc::srqn_rmpn_xrqn>()) : nullptr,
          is_xrc(qpc) ? state.xrcds.find(qpc.get<Qpc::xrcd>()) : nullptr};
}

// Only an SRQ and an RMP can stand below any queue pair.
bool is_below_any(State& state, std::uint32_t srqn) {
  const SrqContext* srq = state.nic.own_srq(srqn);
  return srq && (srq->type == kSrqTypeSrq || srq->type == kSrqTypeRmp);
}

// An XRC queue pair receives by the number in the packet: the queues in its context are the driver's, and only named.
Maybe<Parts> usable_xrc_parts(Parts parts, const prm::ConstView<Qpc>& qpc, std::uint16_t uid) {
  const auto may = [uid](const Owned* object) { return object && may_use_shared(*object, uid); };
  if (!parts.pd || !may_use(*parts.pd, uid)) return refuse(Syndrome::qp_pd);
  if (qpc.get<Qpc::no_sq>()) {
    parts.uar = may(parts.uar) ? parts.uar : nullptr;
    parts.send_cq = may(parts.send_cq) ? parts.send_cq : nullptr;
  } else {
    if (!may(parts.uar)) return refuse(Syndrome::qp_uar);
    if (!parts.send_cq || !may_use(*parts.send_cq, uid)) return refuse(Syndrome::qp_send_cq);
  }
  if (!may(parts.xrcd)) return refuse(Syndrome::qp_xrcd);
  if (!may(parts.recv_cq)) {
    if (qpc.get<Qpc::rq_type>() != RqType::zero_size) return refuse(Syndrome::qp_recv_cq);
    parts.recv_cq = nullptr;
  }
  if (qpc.get<Qpc::rq_type>() == RqType::srq_rmp_xrq && !may(parts.srq)) return refuse(Syndrome::qp_srq);
  return parts;
}

Maybe<Parts> usable_parts(State& state, const prm::ConstView<Qpc>& qpc, std::uint16_t uid) {
  Parts parts = named_parts(state, qpc);
  if (is_xrc(qpc)) return usable_xrc_parts(parts, qpc, uid);
  const bool receives = qpc.get<Qpc::rq_type>() != RqType::zero_size;
  if (!parts.pd || !may_use(*parts.pd, uid)) return refuse(Syndrome::qp_pd);
  if (!parts.uar || !may_use_shared(*parts.uar, uid)) return refuse(Syndrome::qp_uar);
  if (!parts.send_cq || !may_use(*parts.send_cq, uid)) {
    if (!qpc.get<Qpc::no_sq>()) return refuse(Syndrome::qp_send_cq);
    parts.send_cq = nullptr;
  }
  if (!parts.recv_cq || !may_use(*parts.recv_cq, uid)) {
    if (receives) return refuse(Syndrome::qp_recv_cq);
    parts.recv_cq = nullptr;
  }
  if (qpc.get<Qpc::rq_type>() == RqType::srq_rmp_xrq && (!parts.srq || !may_use(*parts.srq, uid) || !is_below_any(state, qpc.get<Qpc::srqn_rmpn_xrqn>())))
    return refuse(Syndrome::qp_srq);
  return parts;
}

void count_uses(const Parts& parts, int step) {
  const auto add = [step](Owned* object) {
    if (object) object->uses += static_cast<std::uint32_t>(step);
  };
  add(parts.pd);
  add(parts.uar);
  add(parts.send_cq);
  add(parts.recv_cq);
  add(parts.srq);
  add(parts.xrcd);
}

void fill(QpContext& qp, const prm::ConstView<Qpc>& qpc, const Geometry& g, const Backing& backing, std::uint64_t dbr,
          std::uint16_t uid) {
  qp.pdn = qpc.get<Qpc::pd>();
  qp.type = static_cast<QpType>(qpc.get<Qpc::st>());
  qp.cs_req = static_cast<std::uint8_t>(qpc.get<Qpc::cs_req>());
  qp.cs_res = static_cast<std::uint8_t>(qpc.get<Qpc::cs_res>());
  qp.rq_type = static_cast<std::uint8_t>(qpc.get<Qpc::rq_type>());
  qp.rlky = qpc.get<Qpc::rlky>();
  qp.block_lb_mc = static_cast<std::uint8_t>(qpc.get<Qpc::block_lb_mc>());
  qp.uid = uid;
  qp.send_cq = qpc.get<Qpc::cqn_snd>();
  qp.recv_cq = qpc.get<Qpc::cqn_rcv>();
  qp.srq = ~0u;
  qp.user_index = qpc.get<Qpc::user_index>();
  qp.no_send_record = qpc.get<Qpc::send_dbr_mode>() != prm::SendDbrMode::dbr_valid;
  qp.ts_format = static_cast<std::uint32_t>(qpc.get<Qpc::ts_format>());
  qp.port = qp.path.port = 1;
  // The receive ring comes first, the send ring behind it.
  if (g.has_rq) qp.rq = {backing.va, qpc.get<Qpc::log_rq_size>(), g.log_rq_stride};
  if (g.has_sq) qp.sq = {backing.va + g.rq_bytes, qpc.get<Qpc::log_sq_size>(), prm::kLogSendWqeBasicBlock};
  qp.dbrec_va = dbr;
}

}  // namespace

Outcome create_qp(State& state, const Call<In, prm::CreateQpOut>& call) {
  const auto qpc = call.in.sub<In::qpc>();
  if (auto ok = check_type(qpc); !ok) return ok;
  if (auto ok = check_features(call, qpc); !ok) return ok;
  const Geometry g = geometry(qpc);
  if (auto ok = check_geometry(state, qpc, g); !ok) return ok;
  const auto parts = usable_parts(state, qpc, call.uid);
  if (!parts) return refuse(parts.error());
  if (state.qps.size() >= 1ull << state.profile.limits.log_max_qp) return refuse(Syndrome::qp_none_left);

  Backing backing;
  std::uint64_t dbr = 0;
  if (g.has_rq || g.has_sq) {
    const auto located = locate_queue(state,
                                      {.umem_valid = call.in.get<In::wq_umem_valid>() != 0,
                                       .umem_id = call.in.get<In::wq_umem_id>(),
                                       .umem_offset = call.in.get<In::wq_umem_offset>(),
                                       .log_page_size = qpc.get<Qpc::log_page_size>(),
                                       .page_offset = qpc.get<Qpc::page_offset>(),
                                       .pages = call.tail()},
                                      g.rq_bytes + g.sq_bytes, call.uid);
    if (!located) return refuse(located.error());
    backing = *located;
    const auto record = locate_doorbell(state, qpc.get<Qpc::dbr_umem_valid>(), qpc.get<Qpc::dbr_umem_id>(),
                                        qpc.get<Qpc::dbr_addr>(), call.uid, backing);
    if (!record) return refuse(record.error());
    dbr = *record;
  }

  QpContext* qp = state.nic.alloc_qp();
  if (!qp) return refuse(Syndrome::qp_none_left);
  fill(*qp, qpc, g, backing, dbr, call.uid);
  if (is_xrc(qpc))
    qp->xrcd = qpc.get<Qpc::xrcd>();
  else if (parts->srq)
    qp->srq = state.nic.index_of(*state.nic.own_srq(qpc.get<Qpc::srqn_rmpn_xrqn>()));
  QpRecord& record = state.qps.create(qp->qpn, call.uid);
  std::memcpy(record.context.data(), qpc.data(), Qpc::size);
  record.context.view().set<Qpc::state>(prm::QpState::rst);
  record.backing = backing;
  record.has_send_cq = parts->send_cq;
  record.has_recv_cq = parts->recv_cq;
  record.has_uar = parts->uar;
  count_uses(*parts, 1);
  hold(state, backing);
  call.out.set<prm::CreateQpOut::qpn>(qp->qpn);
  state.engine.reset(*qp);
  state.nic.publish(*qp);
  return {};
}

void release_parts(State& state, QpRecord& record) {
  Parts parts = named_parts(state, record.context.view());
  if (!record.has_send_cq) parts.send_cq = nullptr;
  if (!record.has_recv_cq) parts.recv_cq = nullptr;
  if (!record.has_uar) parts.uar = nullptr;
  count_uses(parts, -1);
  leave_leaves(state, record);
  let_go(state, record.backing);
}

}  // namespace verbena::device::command
