// What the device can do: the verbs query with the driver's part, and the capability pages behind it.

#include "prm/caps.h"

#include <cstddef>
#include <memory>

#include "mlx5/devx/command.h"
#include "mlx5/ops.h"

namespace verbena::mlx5 {

namespace {

using CapReply = prm::Box<prm::QueryHcaCapOut>;

// Null if the kernel or the device refuses; then what depends on the page is simply not offered.
std::unique_ptr<CapReply> query_page(Context* context, prm::CapType type) {
  prm::Box<prm::QueryHcaCapIn> in;
  in.set<prm::QueryHcaCapIn::opcode>(prm::Opcode::query_hca_cap);
  in.set<prm::QueryHcaCapIn::op_mod>(prm::cap_op_mod(type, prm::CapMode::current));
  auto out = std::make_unique<CapReply>();
  if (general_command(context, in.data(), prm::QueryHcaCapIn::size, out->data(), prm::QueryHcaCapOut::size))
    return nullptr;
  return out;
}

void read_qos(Context* context) {
  const auto page = query_page(context, prm::CapType::qos);
  if (!page) return;
  using Cap = prm::QosCap;
  const auto cap = page->sub<prm::QueryHcaCapOut::capability>().sub<prm::HcaCapUnion::qos_cap>();
  context->hca.nic_sq_scheduling = cap.get<Cap::nic_sq_scheduling>();
  context->hca.nic_qp_scheduling = cap.get<Cap::nic_qp_scheduling>();
  context->hca.nic_bw_share = context->hca.nic_sq_scheduling && cap.get<Cap::nic_bw_share>();
  context->hca.nic_rate_limit = context->hca.nic_sq_scheduling && cap.get<Cap::nic_rate_limit>();
  context->hca.nic_element_type = cap.get<Cap::nic_element_type>();
  context->hca.nic_tsar_type = cap.get<Cap::nic_tsar_type>();
}

void read_general(Context* context) {
  const auto page = query_page(context, prm::CapType::general);
  if (!page) return;
  using Cap = prm::CmdHcaCap;
  const auto cap = page->sub<prm::QueryHcaCapOut::capability>().sub<prm::HcaCapUnion::cmd_hca_cap>();
  context->hca.num_lag_ports = static_cast<std::uint8_t>(cap.get<Cap::num_lag_ports>());
  context->hca.lag_tx_port_affinity = cap.get<Cap::lag_tx_port_affinity>();
  context->hca.rts2rts_qp_udp_sport = cap.get<Cap::rts2rts_qp_udp_sport>();
  context->hca.rts2rts_lag_tx_port_affinity = cap.get<Cap::rts2rts_lag_tx_port_affinity>();
  context->hca.qp_data_in_order = cap.get<Cap::qp_data_in_order>();
  context->hca.general_obj_types = cap.get<Cap::general_obj_types>();
  context->hca.qos = cap.get<Cap::qos>();
  context->hca.qpc_extension = cap.get<Cap::qpc_extension>();
  if (!cap.get<Cap::hca_cap_2>()) return;
  const auto second = query_page(context, prm::CapType::general_2);
  if (!second) return;
  const auto cap_2 = second->sub<prm::QueryHcaCapOut::capability>().sub<prm::HcaCapUnion::cmd_hca_cap_2>();
  context->hca.log_reserved_qpns = cap_2.get<prm::CmdHcaCap2::log_reserved_qpn_granularity>();
}

void read_pci_atomics(Context* context, ibv_pci_atomic_caps* out) {
  const auto page = query_page(context, prm::CapType::atomic);
  if (!page) return;
  using Cap = prm::AtomicCaps;
  const auto cap = page->sub<prm::QueryHcaCapOut::capability>().sub<prm::HcaCapUnion::atomic_caps>();
  out->fetch_add = static_cast<std::uint16_t>(cap.get<Cap::fetch_add_pci_atomic>());
  out->swap = static_cast<std::uint16_t>(cap.get<Cap::swap_pci_atomic>());
  out->compare_swap = static_cast<std::uint16_t>(cap.get<Cap::compare_swap_pci_atomic>());
}

int query(Context* context, const ibv_query_device_ex_input* input, ibv_device_attr_ex* attr, std::size_t size,
          mlx5_ib_query_device_resp* vendor) {
  const bool driver_part = context->caps.cmds_supp_uhw & MLX5_USER_CMDS_SUPP_UHW_QUERY_DEVICE;
  const verbs::Udata udata{.out = vendor, .out_length = driver_part ? sizeof *vendor : 0};
  std::size_t filled = 0;
  return verbena_cmd_query_device_ex(context->ibv(), input, attr, size, &udata, &filled);
}

#define HAS(member) \
  (size >= offsetof(ibv_device_attr_ex, member) + sizeof(static_cast<ibv_device_attr_ex*>(nullptr)->member))

}  // namespace

void read_capabilities(Context* context) {
  read_general(context);
  if (context->hca.qos) read_qos(context);
  ibv_device_attr_ex attr = {};
  if (query(context, nullptr, &attr, sizeof attr, &context->vendor)) return;
  context->atomic_cap = attr.orig_attr.atomic_cap;
  context->device_cap_flags = attr.orig_attr.device_cap_flags;
  context->max_dm_size = attr.max_dm_size;
}

int query_device_ex(ibv_context* ibv, const ibv_query_device_ex_input* input, ibv_device_attr_ex* attr,
                    std::size_t size) {
  Context* context = context_of(ibv);
  mlx5_ib_query_device_resp vendor = {};
  if (int error = query(context, input, attr, size, &vendor)) return error;
  if (HAS(tso_caps)) {
    attr->tso_caps.max_tso = vendor.tso_caps.max_tso;
    attr->tso_caps.supported_qpts = vendor.tso_caps.supported_qpts;
  }
  if (HAS(rss_caps)) {
    attr->rss_caps.rx_hash_fields_mask = vendor.rss_caps.rx_hash_fields_mask;
    attr->rss_caps.rx_hash_function = vendor.rss_caps.rx_hash_function;
  }
  if (HAS(packet_pacing_caps)) {
    attr->packet_pacing_caps.qp_rate_limit_min = vendor.packet_pacing_caps.qp_rate_limit_min;
    attr->packet_pacing_caps.qp_rate_limit_max = vendor.packet_pacing_caps.qp_rate_limit_max;
    attr->packet_pacing_caps.supported_qpts = vendor.packet_pacing_caps.supported_qpts;
  }
  if (HAS(pci_atomic_caps)) read_pci_atomics(context, &attr->pci_atomic_caps);
  return 0;
}

#undef HAS

int query_port(ibv_context* ibv, std::uint8_t port, ibv_port_attr* attr) {
  return verbena_cmd_query_port(ibv, port, attr);
}

}  // namespace verbena::mlx5
