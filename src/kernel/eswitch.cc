#include "kernel/eswitch.h"

#include "kernel/command.h"
#include "prm/caps.h"
#include "prm/port.h"

namespace verbena::kernel {
namespace {

// Register C0 of a packet begins with where it came from: 4 bits for the function whose switch it is, 12 for the vport,
// by a number that the driver gives out (<linux/mlx5/eswitch.h>). 1 is that of all uplinks, so vports begin at 2, in their
// order; port n of a switchdev device is its n-th vport.
constexpr unsigned kVportBits = 12, kFunctionBits = 4, kSourceShift = 32 - kFunctionBits - kVportBits;
constexpr std::uint32_t kFirstVportMetadata = 2;
constexpr std::uint32_t kSourceMask = ~0u << kSourceShift;

std::uint32_t vport_metadata(unsigned function, unsigned port) {
  return (function << kVportBits | (kFirstVportMetadata + port - 1)) << kSourceShift;
}

int fill_vhca_id(device::Device& device, std::uint16_t vport, mlx5_ib_uapi_query_port* info) {
  using In = prm::QueryHcaCapIn;
  Command<In, prm::QueryHcaCapOut> query(prm::Opcode::query_hca_cap);
  query.in().set<In::op_mod>(prm::cap_op_mod(prm::CapType::general, prm::CapMode::current));
  query.in().set<In::other_function>(1).set<In::function_id>(vport);
  if (int error = query.run(device)) return error;
  const auto cap = query.out().sub<prm::QueryHcaCapOut::capability>().sub<prm::HcaCapUnion::cmd_hca_cap>();
  info->vport_vhca_id = static_cast<std::uint16_t>(cap.get<prm::CmdHcaCap::vhca_id>());
  info->flags |= MLX5_IB_UAPI_QUERY_PORT_VPORT_VHCA_ID;
  return 0;
}

int fill_steering_addresses(device::Device& device, std::uint16_t vport, mlx5_ib_uapi_query_port* info) {
  using In = prm::QueryEswVportContextIn;
  using Context = prm::EswVportContext;
  Command<In, prm::QueryEswVportContextOut> query(prm::Opcode::query_esw_vport_context);
  query.in().set<In::other_vport>(1).set<In::vport_number>(vport);
  if (int error = query.run(device)) return error;
  const auto context = query.out().sub<prm::QueryEswVportContextOut::esw_vport_context>();
  info->vport_steering_icm_rx = context.get<Context::sw_steering_vport_icm_address_rx>();
  info->vport_steering_icm_tx = context.get<Context::sw_steering_vport_icm_address_tx>();
  if (info->vport_steering_icm_rx) info->flags |= MLX5_IB_UAPI_QUERY_PORT_VPORT_STEERING_ICM_RX;
  if (info->vport_steering_icm_tx) info->flags |= MLX5_IB_UAPI_QUERY_PORT_VPORT_STEERING_ICM_TX;
  return 0;
}

}  // namespace

int fill_switchdev_info(Node& node, unsigned port, mlx5_ib_uapi_query_port* info) {
  info->vport = static_cast<std::uint16_t>(port - 1);
  info->flags |= MLX5_IB_UAPI_QUERY_PORT_VPORT;
  if (int error = fill_vhca_id(node.device(), info->vport, info)) return error;
  info->esw_owner_vhca_id = node.caps().vhca_id;
  info->flags |= MLX5_IB_UAPI_QUERY_PORT_ESW_OWNER_VHCA_ID;
  if (int error = fill_steering_addresses(node.device(), info->vport, info)) return error;
  info->reg_c0 = {vport_metadata(node.index(), port), kSourceMask};
  info->flags |= MLX5_IB_UAPI_QUERY_PORT_VPORT_REG_C0;
  return 0;
}

}  // namespace verbena::kernel
