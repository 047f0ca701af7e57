// mlx5dv: the device itself.

#include <rdma/mlx5_user_ioctl_cmds.h>

#include <cstring>

#include "mlx5/export.h"
#include "mlx5/ops.h"

namespace {

using namespace verbena;
using namespace verbena::mlx5;

// Answers one bit of comp_mask: what is asked for and known comes back set.
class Answer {
 public:
  explicit Answer(mlx5dv_context* out) : asked_(out->comp_mask) {}
  bool wants(std::uint64_t bit) const { return asked_ & bit; }
  void gave(std::uint64_t bit) { given_ |= bit; }
  std::uint64_t given() const { return given_; }

 private:
  std::uint64_t asked_;
  std::uint64_t given_ = 0;
};

std::uint64_t context_flags(const Context& context) {
  std::uint64_t flags = MLX5DV_CONTEXT_FLAGS_CQE_V1;
  const auto& vendor = context.vendor;
  if (vendor.mlx5_ib_support_multi_pkt_send_wqes & MLX5_IB_ALLOW_MPW) flags |= MLX5DV_CONTEXT_FLAGS_MPW_ALLOWED;
  if (vendor.mlx5_ib_support_multi_pkt_send_wqes & MLX5_IB_SUPPORT_EMPW) flags |= MLX5DV_CONTEXT_FLAGS_ENHANCED_MPW;
  if (vendor.flags & MLX5_IB_QUERY_DEV_RESP_FLAGS_CQE_128B_COMP) flags |= MLX5DV_CONTEXT_FLAGS_CQE_128B_COMP;
  if (vendor.flags & MLX5_IB_QUERY_DEV_RESP_FLAGS_CQE_128B_PAD) flags |= MLX5DV_CONTEXT_FLAGS_CQE_128B_PAD;
  if (vendor.flags & MLX5_IB_QUERY_DEV_RESP_PACKET_BASED_CREDIT_MODE)
    flags |= MLX5DV_CONTEXT_FLAGS_PACKET_BASED_CREDIT_MODE;
  if (context.real_time_ts) flags |= MLX5DV_CONTEXT_FLAGS_REAL_TIME_TS;
  if (context.caps.bf_reg_size) flags |= MLX5DV_CONTEXT_FLAGS_BLUEFLAME;
  return flags;
}

void answer_vendor_caps(const Context& context, mlx5dv_context* out, Answer& answer) {
  const auto& vendor = context.vendor;
  if (answer.wants(MLX5DV_CONTEXT_MASK_CQE_COMPRESION)) {
    out->cqe_comp_caps = {vendor.cqe_comp_caps.max_num, vendor.cqe_comp_caps.supported_format};
    answer.gave(MLX5DV_CONTEXT_MASK_CQE_COMPRESION);
  }
  if (answer.wants(MLX5DV_CONTEXT_MASK_SWP)) {
    out->sw_parsing_caps = {vendor.sw_parsing_caps.sw_parsing_offloads, vendor.sw_parsing_caps.supported_qpts};
    answer.gave(MLX5DV_CONTEXT_MASK_SWP);
  }
  if (answer.wants(MLX5DV_CONTEXT_MASK_STRIDING_RQ)) {
    const auto& rq = vendor.striding_rq_caps;
    out->striding_rq_caps = {rq.min_single_stride_log_num_of_bytes, rq.max_single_stride_log_num_of_bytes,
                             rq.min_single_wqe_log_num_of_strides, rq.max_single_wqe_log_num_of_strides,
                             rq.supported_qpts};
    answer.gave(MLX5DV_CONTEXT_MASK_STRIDING_RQ);
  }
  if (answer.wants(MLX5DV_CONTEXT_MASK_TUNNEL_OFFLOADS)) {
    out->tunnel_offloads_caps = vendor.tunnel_offloads_caps;
    answer.gave(MLX5DV_CONTEXT_MASK_TUNNEL_OFFLOADS);
  }
  if (answer.wants(MLX5DV_CONTEXT_MASK_DCI_STREAMS)) {
    out->dci_streams_caps = {vendor.dci_streams_caps.max_log_num_concurent,
                             vendor.dci_streams_caps.max_log_num_errored};
    answer.gave(MLX5DV_CONTEXT_MASK_DCI_STREAMS);
  }
}

void answer_context_caps(const Context& context, mlx5dv_context* out, Answer& answer) {
  if (answer.wants(MLX5DV_CONTEXT_MASK_DYN_BFREGS)) {
    out->max_dynamic_bfregs = context.caps.num_dyn_bfregs;
    answer.gave(MLX5DV_CONTEXT_MASK_DYN_BFREGS);
  }
  if (answer.wants(MLX5DV_CONTEXT_MASK_CLOCK_INFO_UPDATE) && context.clock_info) {
    out->max_clock_info_update_nsec = context.clock_info->overflow_period;
    answer.gave(MLX5DV_CONTEXT_MASK_CLOCK_INFO_UPDATE);
  }
  if (answer.wants(MLX5DV_CONTEXT_MASK_FLOW_ACTION_FLAGS)) {
    out->flow_action_flags = context.caps.flow_action_flags;
    answer.gave(MLX5DV_CONTEXT_MASK_FLOW_ACTION_FLAGS);
  }
  if (answer.wants(MLX5DV_CONTEXT_MASK_DC_ODP_CAPS)) {
    out->dc_odp_caps = 0;
    answer.gave(MLX5DV_CONTEXT_MASK_DC_ODP_CAPS);
  }
  if (answer.wants(MLX5DV_CONTEXT_MASK_HCA_CORE_CLOCK) && context.core_clock) {
    out->hca_core_clock = const_cast<char*>(context.core_clock);
    answer.gave(MLX5DV_CONTEXT_MASK_HCA_CORE_CLOCK);
  }
  if (answer.wants(MLX5DV_CONTEXT_MASK_NUM_LAG_PORTS) && context.hca.num_lag_ports) {
    out->num_lag_ports = context.hca.num_lag_ports;
    answer.gave(MLX5DV_CONTEXT_MASK_NUM_LAG_PORTS);
  }
}

// Offloads that this library does not drive: their sizes are answered as zero.
void answer_absent(mlx5dv_context* out, Answer& answer) {
  if (answer.wants(MLX5DV_CONTEXT_MASK_SIGNATURE_OFFLOAD)) {
    out->sig_caps = {};
    answer.gave(MLX5DV_CONTEXT_MASK_SIGNATURE_OFFLOAD);
  }
  if (answer.wants(MLX5DV_CONTEXT_MASK_WR_MEMCPY_LENGTH)) {
    out->max_wr_memcpy_length = 0;
    answer.gave(MLX5DV_CONTEXT_MASK_WR_MEMCPY_LENGTH);
  }
  if (answer.wants(MLX5DV_CONTEXT_MASK_CRYPTO_OFFLOAD)) {
    out->crypto_caps = {};
    answer.gave(MLX5DV_CONTEXT_MASK_CRYPTO_OFFLOAD);
  }
}

}  // namespace

extern "C" {

VERBENA_MLX5_EXPORT bool mlx5dv_is_supported(ibv_device* device) { return is_mlx5(device); }

VERBENA_MLX5_EXPORT ibv_context* mlx5dv_open_device(ibv_device* device, mlx5dv_context_attr* attr) {
  if (!is_mlx5(device)) return fail_null(EOPNOTSUPP);
  return verbena_open_device(device, attr);
}

VERBENA_MLX5_EXPORT int mlx5dv_query_device(ibv_context* ibv, mlx5dv_context* out) {
  const Context* context = mlx5_context(ibv);
  if (!context) return EOPNOTSUPP;
  Answer answer(out);
  out->version = 0;
  out->flags = context_flags(*context);
  answer_vendor_caps(*context, out, answer);
  answer_context_caps(*context, out, answer);
  answer_absent(out, answer);
  out->comp_mask = answer.given();
  return 0;
}

VERBENA_MLX5_EXPORT int _mlx5dv_query_port(ibv_context* ibv, std::uint32_t port, mlx5dv_port* info,
                                           std::size_t info_length) {
  Context* context = mlx5_context(ibv);
  if (!context) return EOPNOTSUPP;
  uverbs::Bundle bundle(UVERBS_OBJECT_DEVICE, MLX5_IB_METHOD_QUERY_PORT);
  bundle.in_u32(MLX5_IB_ATTR_QUERY_PORT_PORT_NUM, port);
  bundle.out(MLX5_IB_ATTR_QUERY_PORT, info, info_length);
  return verbena_execute(context, &bundle);
}

VERBENA_MLX5_EXPORT int mlx5dv_set_context_attr(ibv_context* ibv, mlx5dv_set_ctx_attr_type type, void* attr) {
  Context* context = mlx5_context(ibv);
  if (!context) return EOPNOTSUPP;
  if (type != MLX5DV_CTX_ATTR_BUF_ALLOCATORS) return ENOTSUP;
  context->allocators = *static_cast<const mlx5dv_ctx_allocators*>(attr);
  return 0;
}

VERBENA_MLX5_EXPORT int mlx5dv_get_clock_info(ibv_context* ibv, mlx5dv_clock_info* out) {
  const Context* context = mlx5_context(ibv);
  return context ? read_clock_info(context, out) : EOPNOTSUPP;
}

}  // extern "C"
