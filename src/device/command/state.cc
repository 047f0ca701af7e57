#include "device/command/state.h"

#include <algorithm>
#include <cstring>

namespace verbena::device::command {

State::State(const Profile& p, Nic& n, Engine& e)
    : profile(p),
      nic(n),
      engine(e),
      uctxs(counts, 1, std::min<unsigned>(1u << p.limits.log_max_uctx, prm::kSharedResourceUid)),
      pds(counts, 1, 1u << p.limits.log_max_pd),
      transport_domains(counts, 1, 1u << p.limits.log_max_transport_domain),
      xrcds(counts),
      psvs(counts, 1, kPsvs),
      uars(counts, 1, p.limits.max_uar),
      umems(counts, 1, 1u << p.limits.log_max_umem),
      q_counters(counts, 1, std::min(256u, p.limits.max_q_counters + 1)),
      eqs(counts),
      cqs(counts),
      srqs(counts),
      qps(counts),
      mkeys(counts),
      reserved_qpns(counts),
      mappings(counts, 1, kMappings),
      scheduling_elements(counts, 1, kShapers),
      tiss(counts, 1, 1u << kLogTis),
      sqs(counts),
      rqs(counts),
      rqts(counts, 1, kMaxRqTables),
      tirs(counts, 1, kMaxTirs),
      flow_tables(counts, 1, kMaxFlowTables),
      flow_groups(counts, 1, kMaxFlowEntries),
      flow_counters(counts, 1, kMaxFlowCounters) {
  nic_vport.view().set<prm::NicVportContext::roce_en>(1).set<prm::NicVportContext::mtu>(p.mtu);
  std::strncpy(node_description.data(), "verbena", node_description.size() - 1);
}

}  // namespace verbena::device::command
