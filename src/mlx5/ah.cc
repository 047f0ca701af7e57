// Address handles: the address vector as the device wants it in a UD WQE.

#include <memory>
#include <random>

#include "mlx5/ops.h"

namespace verbena::mlx5 {

namespace {

constexpr std::uint32_t kFlowLabelMask = 0xfffff;
constexpr std::uint16_t kLowestSport = 0xc000;  // of RoCE v2
constexpr std::uint16_t kSportRange = 0x4000;
constexpr unsigned kGrhFlag = 30;

// Device code of an IB static rate; 0 is "no limit".
constexpr std::uint8_t kRates[] = {0, 0, 7, 8, 9, 10, 11, 12, 13, 14, 15, 11, 13, 15, 0, 9, 15, 0, 0, 9, 13, 0, 0};

std::uint8_t device_rate(std::uint8_t rate) { return rate < sizeof kRates ? kRates[rate] : 0; }

// Flows spread over paths by the source port: from the flow label where there is one, by chance otherwise.
std::uint16_t source_port(std::uint32_t flow_label) {
  if (flow_label & kFlowLabelMask) return ibv_flow_label_to_udp_sport(flow_label & kFlowLabelMask);
  static thread_local std::minstd_rand random{std::random_device{}()};
  return static_cast<std::uint16_t>(kLowestSport + random() % kSportRange);
}

bool is_ethernet(Context* context, std::uint8_t port, bool* grh_required) {
  const unsigned index = port - 1u;
  if (index < context->link_layer.size() && context->link_layer[index]) {
    *grh_required = context->port_flags[index] & IBV_QPF_GRH_REQUIRED;
    return context->link_layer[index] == IBV_LINK_LAYER_ETHERNET;
  }
  ibv_port_attr attr = {};
  *grh_required = false;
  if (query_port(context->ibv(), port, &attr)) return false;
  *grh_required = attr.flags & IBV_QPF_GRH_REQUIRED;
  return attr.link_layer == IBV_LINK_LAYER_ETHERNET;
}

// The destination MAC: the kernel resolves it while making its own AH, or the library does from the GID.
int resolve(Context* context, ibv_pd* pd, ibv_ah_attr* attr, Ah* ah) {
  if (!(context->caps.cmds_supp_uhw & MLX5_USER_CMDS_SUPP_UHW_CREATE_AH))
    return ibv_resolve_eth_l2_from_gid(context->ibv(), attr, ah->av.rmac, nullptr) ? (errno ? errno : EINVAL) : 0;
  mlx5_ib_create_ah_resp response = {};
  const verbs::Udata udata{.out = &response, .out_length = sizeof response};
  if (int error = verbena_cmd_create_ah(pd, &ah->ah, attr, &udata)) return error;
  ah->in_kernel = true;
  std::memcpy(ah->av.rmac, response.dmac, sizeof ah->av.rmac);
  return 0;
}

}  // namespace

ibv_ah* create_ah(ibv_pd* pd, ibv_ah_attr* attr) {
  Context* context = context_of(pd->context);
  if (attr->port_num < 1 || attr->port_num > context->caps.num_ports) return fail_null(EINVAL);
  bool grh_required;
  const bool ethernet = is_ethernet(context, attr->port_num, &grh_required);
  if (!attr->is_global && (ethernet || grh_required)) return fail_null(EINVAL);

  auto ah = std::make_unique<Ah>();
  mlx5_wqe_av& av = ah->av;
  const auto rate = static_cast<std::uint8_t>(device_rate(attr->static_rate) << 4);
  if (ethernet) {
    ibv_gid_entry gid = {};
    if (int error = ibv_query_gid_ex(pd->context, attr->port_num, attr->grh.sgid_index, &gid, 0))
      return fail_null(error > 0 ? error : errno);
    if (gid.gid_type == IBV_GID_TYPE_ROCE_V2) av.rlid = be(source_port(attr->grh.flow_label));
    av.stat_rate_sl = static_cast<std::uint8_t>(rate | (attr->sl & 7) << 1);
  } else {
    av.fl_mlid = attr->src_path_bits & 0x7f;
    av.rlid = be(attr->dlid);
    av.stat_rate_sl = static_cast<std::uint8_t>(rate | (attr->sl & 0xf));
  }
  ah->global = attr->is_global;
  if (attr->is_global) {
    av.tclass = attr->grh.traffic_class;
    av.hop_limit = attr->grh.hop_limit;
    av.grh_gid_fl = be((ethernet ? 0u : 1u << kGrhFlag) | std::uint32_t{attr->grh.sgid_index} << 20 |
                       (attr->grh.flow_label & kFlowLabelMask));
    std::memcpy(av.rgid, attr->grh.dgid.raw, sizeof av.rgid);
  }
  if (ethernet)
    if (int error = resolve(context, pd, attr, ah.get())) return fail_null(error);
  return &ah.release()->ah;
}

int destroy_ah(ibv_ah* ibah) {
  Ah* ah = ah_of(ibah);
  if (ah->in_kernel)
    if (int error = verbena_cmd_destroy_ah(ibah)) return error;
  if (ah->mapping) mlx5dv_devx_obj_destroy(ah->mapping);
  delete ah;
  return 0;
}

}  // namespace verbena::mlx5
