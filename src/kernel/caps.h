// What the device says about itself (QUERY_HCA_CAP and its profile), as the driver uses it.
// Threads: plain values.
#pragma once

#include <cstdint>

#include "device/device.h"
#include "device/profile.h"

namespace verbena::kernel {

struct Caps {
  unsigned log_max_qp = 0, log_max_qp_sz = 0, log_max_cq = 0, log_max_cq_sz = 0, log_max_srq = 0, log_max_srq_sz = 0;
  unsigned log_max_mkey = 0, log_max_pd = 0, log_max_msg = 0, log_max_mcg = 0, max_qp_mcg = 0;
  unsigned log_max_ra_req_qp = 0, log_max_ra_res_qp = 0;
  unsigned max_wqe_sz_sq = 0, max_wqe_sz_rq = 0;
  unsigned log_bf_reg_size = 9, cqe_version = 0, local_ca_ack_delay = 0, gid_table_size = 0, pkey_table_size = 1;
  std::uint32_t frequency_khz = 0;
  std::uint16_t vhca_id = 0;
  std::uint64_t memic_bar_start = 0;
  std::uint32_t memic_bar_size = 0, max_memic = 0, log_max_memic_alignment = 0, memic_operations = 0;
  // Packet pacing; no entries: the device does not pace.
  std::uint32_t min_rate_kbps = 0, max_rate_kbps = 0, rate_entries = 0;
  bool rates_of_users = false, rate_bursts = false;
  // Ethernet offloads
  bool raw_ethernet = false, checksums = false, strips_vlan = false;
  unsigned log_max_wq_sz = 0, log_max_rq = 0, log_max_rqt = 0, log_max_rqt_size = 0;
  std::uint32_t stat_rates = 0;  // a bit for each code of ads.stat_rate
  std::uint32_t virtio_pages = 0;  // doorbell pages of virtio queues
  bool memic = false;
  std::uint8_t lag_ports = 1;  // ports that QPs are spread over
  bool memory_windows = false, atomics = false, extended_atomics = false, xrc = false, cq_moderation = false, cq_overrun_ignore = false;
  // Compressed CQEs; none in a session: there are none.
  std::uint32_t cqe_compression_max = 0;
  bool cqe_compression = false, cqe_compression_128 = false, mini_cqe_stride_index = false;
  bool cqe_128 = false, block_lb_mc = false, devx = false, scatter_to_cqe = false, pkey_violations = false,
       qkey_violations = false, path_migration = false, cq_resize = false, relaxed_write = false, relaxed_read = false;
};

// 0 or an errno.
int query_caps(device::Device& device, const device::Profile& profile, Caps* caps);

}  // namespace verbena::kernel
