// QUERY_DEVICE in both forms: the device's limits as mlx5_ib derives them from the capability pages.
#include <rdma/ib_user_ioctl_verbs.h>
#include <rdma/ib_user_verbs.h>
#include <rdma/mlx5-abi.h>

#include <algorithm>
#include <cerrno>
#include <climits>

#include "kernel/device_query.h"
#include "kernel/ib.h"

namespace verbena::kernel {
namespace {

constexpr unsigned kCtrlSegment = 16, kRaddrSegment = 16, kDataSegment = 16;
constexpr unsigned kMaxSendDescriptor = 512;  // the provider builds no longer WQE from scatter entries
constexpr unsigned kMaxSgeRead = (kMaxSendDescriptor - kCtrlSegment - kRaddrSegment) / kDataSegment;
constexpr std::uint32_t kAtomicHca = 1;
constexpr std::uint16_t kMaxCqCount = 0xffff, kMaxCqPeriod = 0xfff;

}  // namespace

std::uint32_t capability_flags(const Caps& caps) {
  std::uint32_t flags = IB_UVERBS_DEVICE_CHANGE_PHY_PORT | IB_UVERBS_DEVICE_PORT_ACTIVE_EVENT |
                        IB_UVERBS_DEVICE_SYS_IMAGE_GUID | IB_UVERBS_DEVICE_RC_RNR_NAK_GEN;
  if (caps.pkey_violations) flags |= IB_UVERBS_DEVICE_BAD_PKEY_CNTR;
  if (caps.qkey_violations) flags |= IB_UVERBS_DEVICE_BAD_QKEY_CNTR;
  if (caps.raw_ethernet) flags |= IB_UVERBS_DEVICE_MANAGED_FLOW_STEERING;
  if (caps.checksums) flags |= IB_UVERBS_DEVICE_RAW_IP_CSUM;
  if (caps.path_migration) flags |= IB_UVERBS_DEVICE_AUTO_PATH_MIG;
  if (caps.xrc) flags |= IB_UVERBS_DEVICE_XRC;
  if (caps.memory_windows)
    flags |= IB_UVERBS_DEVICE_MEM_WINDOW | IB_UVERBS_DEVICE_MEM_WINDOW_TYPE_2B | IB_UVERBS_DEVICE_MEM_MGT_EXTENSIONS;
  return flags;
}

namespace {

int base_attributes(Node& node, ib_uverbs_query_device_resp* attr) {
  const Caps& caps = node.caps();
  const device::Profile& profile = node.profile();
  std::uint64_t guid = 0;
  if (int error = node.node_guid(&guid)) return error;
  attr->fw_ver = std::uint64_t{profile.firmware[0]} << 32 | std::uint64_t{profile.firmware[1]} << 16 |
                 profile.firmware[2];
  attr->node_guid = guid;
  attr->sys_image_guid = guid;
  attr->max_mr_size = ~std::uint64_t{0};
  attr->page_size_cap = ~(kPageSize - 1);
  attr->vendor_id = profile.vendor_id;
  attr->vendor_part_id = profile.part_id;
  attr->hw_ver = profile.hw_rev;
  attr->device_cap_flags = capability_flags(caps);

  const unsigned max_rq_sge = caps.max_wqe_sz_rq / kDataSegment;
  const unsigned max_sq_sge =
      (std::min(caps.max_wqe_sz_sq, kMaxSendDescriptor) - kCtrlSegment - kRaddrSegment) / kDataSegment;
  attr->max_qp = 1u << caps.log_max_qp;
  attr->max_qp_wr = 1u << caps.log_max_qp_sz;
  attr->max_sge = std::min(max_rq_sge, max_sq_sge);
  attr->max_sge_rd = kMaxSgeRead;
  attr->max_cq = 1u << caps.log_max_cq;
  attr->max_cqe = (1u << caps.log_max_cq_sz) - 1;
  attr->max_mr = 1u << caps.log_max_mkey;
  attr->max_mw = caps.memory_windows ? 1u << caps.log_max_mkey : 0;
  attr->max_pd = 1u << caps.log_max_pd;
  attr->max_qp_rd_atom = 1u << caps.log_max_ra_req_qp;
  attr->max_qp_init_rd_atom = 1u << caps.log_max_ra_res_qp;
  attr->max_res_rd_atom = attr->max_qp_rd_atom * attr->max_qp;
  attr->atomic_cap = caps.atomics ? kAtomicHca : 0;
  attr->max_mcast_grp = caps.log_max_mcg ? 1u << caps.log_max_mcg : 0;
  attr->max_mcast_qp_attach = caps.max_qp_mcg;
  attr->max_total_mcast_qp_attach = attr->max_mcast_grp * attr->max_mcast_qp_attach;
  attr->max_ah = INT_MAX;
  attr->max_srq = 1u << caps.log_max_srq;
  attr->max_srq_wr = (1u << caps.log_max_srq_sz) - 1;
  attr->max_srq_sge = max_rq_sge - 1;
  attr->max_pkeys = static_cast<std::uint16_t>(caps.pkey_table_size);
  attr->local_ca_ack_delay = static_cast<std::uint8_t>(caps.local_ca_ack_delay);
  attr->phys_port_cnt = 1;
  return 0;
}

// What the driver adds. Offloads that the device lacks stay zero, field by field as long as the room lasts.
int driver_attributes(const Caps& caps, const Udata& driver) {
  if (!driver.tail_is_zero(0)) return EINVAL;
  if (!driver.out_length) return 0;
  if (driver.out_length < offsetof(mlx5_ib_query_device_resp, tso_caps)) return EINVAL;
  mlx5_ib_query_device_resp response{};
  if (caps.raw_ethernet) {
    response.rss_caps.rx_hash_function = MLX5_RX_HASH_FUNC_TOEPLITZ;
    response.rss_caps.rx_hash_fields_mask = MLX5_RX_HASH_SRC_IPV4 | MLX5_RX_HASH_DST_IPV4 | MLX5_RX_HASH_SRC_IPV6 |
                                            MLX5_RX_HASH_DST_IPV6 | MLX5_RX_HASH_SRC_PORT_TCP |
                                            MLX5_RX_HASH_DST_PORT_TCP | MLX5_RX_HASH_SRC_PORT_UDP |
                                            MLX5_RX_HASH_DST_PORT_UDP;
  }
  // The queues that can be paced are those of raw packet QPs.
  if (caps.rate_entries && caps.raw_ethernet) {
    response.packet_pacing_caps.qp_rate_limit_min = caps.min_rate_kbps;
    response.packet_pacing_caps.qp_rate_limit_max = caps.max_rate_kbps;
    response.packet_pacing_caps.supported_qpts = 1u << IB_UVERBS_QPT_RAW_PACKET;
    if (caps.rate_bursts) response.packet_pacing_caps.cap_flags = MLX5_IB_PP_SUPPORT_BURST;
  }
  if (caps.cqe_compression) {
    response.cqe_comp_caps.max_num = caps.cqe_compression_max;
    response.cqe_comp_caps.supported_format = MLX5_IB_CQE_RES_FORMAT_HASH | MLX5_IB_CQE_RES_FORMAT_CSUM;
    if (caps.mini_cqe_stride_index) response.cqe_comp_caps.supported_format |= MLX5_IB_CQE_RES_FORMAT_CSUM_STRIDX;
  }
  if (caps.cqe_128) response.flags |= MLX5_IB_QUERY_DEV_RESP_FLAGS_CQE_128B_PAD;
  if (caps.cqe_compression_128) response.flags |= MLX5_IB_QUERY_DEV_RESP_FLAGS_CQE_128B_COMP;
  response.response_length = static_cast<std::uint32_t>(std::min(sizeof response, driver.out_length));
  driver.write(response);
  return 0;
}

}  // namespace

int write_query_device(File& file, WriteCall& call) {
  ib_uverbs_query_device_resp response{};
  if (int error = base_attributes(file.node(), &response)) return error;
  call.write(&response, sizeof response);
  return 0;
}

int write_query_device_ex(File& file, WriteCall& call) {
  const auto request = call.read<ib_uverbs_ex_query_device>();
  if (!call.tail_is_zero(sizeof request)) return EOPNOTSUPP;
  if (request.comp_mask || request.reserved) return EINVAL;
  ib_uverbs_ex_query_device_resp response{};
  if (int error = driver_attributes(file.node().caps(), call.driver)) return error;
  if (int error = base_attributes(file.node(), &response.base)) return error;
  const Caps& caps = file.node().caps();
  response.timestamp_mask = 0x7fffffffffffffffull;
  response.hca_core_clock = caps.frequency_khz;
  response.max_dm_size = caps.max_memic;
  response.device_cap_flags_ex = response.base.device_cap_flags;
  if (caps.cq_moderation) {
    response.cq_moderation_caps.max_cq_moderation_count = kMaxCqCount;
    response.cq_moderation_caps.max_cq_moderation_period = kMaxCqPeriod;
  }
  if (caps.raw_ethernet) {
    response.rss_caps.supported_qpts = 1u << IB_UVERBS_QPT_RAW_PACKET;
    response.rss_caps.max_rwq_indirection_tables = 1u << caps.log_max_rqt;
    response.rss_caps.max_rwq_indirection_table_size = 1u << caps.log_max_rqt_size;
    response.max_wq_type_rq = 1u << caps.log_max_rq;
    response.raw_packet_caps = (caps.strips_vlan ? RawPacketCap::cvlan_stripping : 0u) |
                               (caps.checksums ? RawPacketCap::ip_csum : 0u);
  }
  response.response_length = static_cast<std::uint32_t>(std::min(sizeof response, call.out_length));
  call.write(&response, sizeof response);
  return 0;
}

}  // namespace verbena::kernel
