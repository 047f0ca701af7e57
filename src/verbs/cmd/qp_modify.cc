// Modifying and querying queue pairs.
#include <cstring>

#include "support/c_enum.h"
#include "verbs/cmd/request.h"

namespace verbena::verbs {
namespace {

ib_uverbs_qp_dest to_kernel(const ibv_ah_attr& from) {
  ib_uverbs_qp_dest to{};
  std::memcpy(to.dgid, from.grh.dgid.raw, sizeof to.dgid);
  to.flow_label = from.grh.flow_label;
  to.sgid_index = from.grh.sgid_index;
  to.hop_limit = from.grh.hop_limit;
  to.traffic_class = from.grh.traffic_class;
  to.dlid = from.dlid;
  to.sl = from.sl;
  to.src_path_bits = from.src_path_bits;
  to.static_rate = from.static_rate;
  to.is_global = from.is_global;
  to.port_num = from.port_num;
  return to;
}

ibv_ah_attr from_kernel(const ib_uverbs_qp_dest& from) {
  ibv_ah_attr to{};
  std::memcpy(to.grh.dgid.raw, from.dgid, sizeof from.dgid);
  to.grh.flow_label = from.flow_label;
  to.grh.sgid_index = from.sgid_index;
  to.grh.hop_limit = from.hop_limit;
  to.grh.traffic_class = from.traffic_class;
  to.dlid = from.dlid;
  to.sl = from.sl;
  to.src_path_bits = from.src_path_bits;
  to.static_rate = from.static_rate;
  to.is_global = from.is_global;
  to.port_num = from.port_num;
  return to;
}

ib_uverbs_modify_qp describe(const ibv_qp& qp, const ibv_qp_attr& attr, int mask) {
  ib_uverbs_modify_qp to{};
  to.qp_handle = qp.handle;
  to.attr_mask = static_cast<std::uint32_t>(mask);
  // A member outside the mask may be uninitialized in the program, so it is not read.
  if (mask & IBV_QP_STATE) to.qp_state = static_cast<std::uint8_t>(number_of(attr.qp_state));
  if (mask & IBV_QP_CUR_STATE) to.cur_qp_state = static_cast<std::uint8_t>(number_of(attr.cur_qp_state));
  if (mask & IBV_QP_EN_SQD_ASYNC_NOTIFY) to.en_sqd_async_notify = attr.en_sqd_async_notify;
  if (mask & IBV_QP_ACCESS_FLAGS) to.qp_access_flags = attr.qp_access_flags;
  if (mask & IBV_QP_PKEY_INDEX) to.pkey_index = attr.pkey_index;
  if (mask & IBV_QP_PORT) to.port_num = attr.port_num;
  if (mask & IBV_QP_QKEY) to.qkey = attr.qkey;
  if (mask & IBV_QP_AV) to.dest = to_kernel(attr.ah_attr);
  if (mask & IBV_QP_PATH_MTU) to.path_mtu = static_cast<std::uint8_t>(attr.path_mtu);
  if (mask & IBV_QP_TIMEOUT) to.timeout = attr.timeout;
  if (mask & IBV_QP_RETRY_CNT) to.retry_cnt = attr.retry_cnt;
  if (mask & IBV_QP_RNR_RETRY) to.rnr_retry = attr.rnr_retry;
  if (mask & IBV_QP_RQ_PSN) to.rq_psn = attr.rq_psn;
  if (mask & IBV_QP_MAX_QP_RD_ATOMIC) to.max_rd_atomic = attr.max_rd_atomic;
  if (mask & IBV_QP_ALT_PATH) {
    to.alt_pkey_index = attr.alt_pkey_index;
    to.alt_port_num = attr.alt_port_num;
    to.alt_timeout = attr.alt_timeout;
    to.alt_dest = to_kernel(attr.alt_ah_attr);
  }
  if (mask & IBV_QP_MIN_RNR_TIMER) to.min_rnr_timer = attr.min_rnr_timer;
  if (mask & IBV_QP_SQ_PSN) to.sq_psn = attr.sq_psn;
  if (mask & IBV_QP_MAX_DEST_RD_ATOMIC) to.max_dest_rd_atomic = attr.max_dest_rd_atomic;
  if (mask & IBV_QP_PATH_MIG_STATE) to.path_mig_state = static_cast<std::uint8_t>(number_of(attr.path_mig_state));
  if (mask & IBV_QP_DEST_QPN) to.dest_qp_num = attr.dest_qp_num;
  return to;
}

void fill(const ib_uverbs_query_qp_resp& from, ibv_qp_attr* to) {
  to->qkey = from.qkey;
  to->rq_psn = from.rq_psn;
  to->sq_psn = from.sq_psn;
  to->dest_qp_num = from.dest_qp_num;
  to->qp_access_flags = from.qp_access_flags;
  to->pkey_index = from.pkey_index;
  to->alt_pkey_index = from.alt_pkey_index;
  to->qp_state = static_cast<ibv_qp_state>(from.qp_state);
  to->cur_qp_state = static_cast<ibv_qp_state>(from.cur_qp_state);
  to->path_mtu = static_cast<ibv_mtu>(from.path_mtu);
  to->path_mig_state = static_cast<ibv_mig_state>(from.path_mig_state);
  to->sq_draining = from.sq_draining;
  to->max_rd_atomic = from.max_rd_atomic;
  to->max_dest_rd_atomic = from.max_dest_rd_atomic;
  to->min_rnr_timer = from.min_rnr_timer;
  to->port_num = from.port_num;
  to->timeout = from.timeout;
  to->retry_cnt = from.retry_cnt;
  to->rnr_retry = from.rnr_retry;
  to->alt_port_num = from.alt_port_num;
  to->alt_timeout = from.alt_timeout;
  to->cap = {from.max_send_wr, from.max_recv_wr, from.max_send_sge, from.max_recv_sge, from.max_inline_data};
  to->ah_attr = from_kernel(from.dest);
  to->alt_ah_attr = from_kernel(from.alt_dest);
}

}  // namespace
}  // namespace verbena::verbs

using namespace verbena::verbs;

int verbena_cmd_modify_qp(ibv_qp* qp, const ibv_qp_attr* attr, int mask, const verbena_udata* udata) {
  Context& ctx = *context_of(qp->context);
  bool driver_data = udata && (udata->in_length || udata->out_length);
  // Everything from IBV_QP_RATE_LIMIT on exists in the extended command only.
  if (!driver_data && !(mask & ~(IBV_QP_RATE_LIMIT - 1)))
    return legacy(ctx, IB_USER_VERBS_CMD_MODIFY_QP, describe(*qp, *attr, mask));
  ib_uverbs_ex_modify_qp request{};
  request.base = describe(*qp, *attr, mask);
  if (mask & IBV_QP_RATE_LIMIT) request.rate_limit = attr->rate_limit;
  ib_uverbs_ex_modify_qp_resp response{};
  return legacy(ctx, extended(IB_USER_VERBS_EX_CMD_MODIFY_QP), request, response, udata);
}

int verbena_cmd_query_qp(ibv_qp* qp, ibv_qp_attr* attr, int mask, ibv_qp_init_attr* init) {
  if (mask & ~(IBV_QP_RATE_LIMIT - 1)) return report(EOPNOTSUPP);
  ib_uverbs_query_qp request{};
  request.qp_handle = qp->handle;
  request.attr_mask = static_cast<std::uint32_t>(mask);
  ib_uverbs_query_qp_resp response{};
  int error = legacy(*context_of(qp->context), IB_USER_VERBS_CMD_QUERY_QP, request, response);
  if (error) return error;
  fill(response, attr);
  init->qp_context = qp->qp_context;
  init->send_cq = qp->send_cq;
  init->recv_cq = qp->recv_cq;
  init->srq = qp->srq;
  init->qp_type = qp->qp_type;
  init->cap = attr->cap;
  init->sq_sig_all = response.sq_sig_all;
  return 0;
}
