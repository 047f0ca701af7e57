#include "kernel/port.h"

#include <rdma/mlx5_user_ioctl_cmds.h>
#include <rdma/mlx5_user_ioctl_verbs.h>

#include <cerrno>

#include "kernel/device_query.h"
#include "kernel/eswitch.h"
#include "kernel/ib.h"
#include "kernel/method.h"
#include "uverbs/newer.h"

namespace verbena::kernel {

LinkRate link_rate(unsigned gbps) {
  // Widths 1x 1, 4x 2, 2x 16; speeds EDR 32, HDR 64, NDR 128, QDR/FDR10 4 and 8, as mlx5 translates Ethernet rates.
  switch (gbps) {
    case 10: return {1, 8, "10 Gb/sec (1X FDR10)"};
    case 25: return {1, 32, "25 Gb/sec (1X EDR)"};
    case 40: return {2, 4, "40 Gb/sec (4X QDR)"};
    case 50: return {1, 64, "50 Gb/sec (1X HDR)"};
    case 100: return {2, 32, "100 Gb/sec (4X EDR)"};
    case 400: return {2, 128, "400 Gb/sec (4X NDR)"};
    default: return {2, 64, "200 Gb/sec (4X HDR)"};
  }
}

int query_port(Node& node, unsigned port, ib_uverbs_query_port_resp* out) {
  bool up = false;
  if (int error = node.port_state(port, &up)) return error;
  const Caps& caps = node.caps();
  const LinkRate rate = link_rate(node.profile().link_gbps);
  *out = {};
  out->port_cap_flags = IB_UVERBS_PCF_CM_SUP | IB_UVERBS_PCF_IP_BASED_GIDS;
  out->max_msg_sz = 1u << caps.log_max_msg;
  out->gid_tbl_len = caps.gid_table_size;
  out->pkey_tbl_len = static_cast<std::uint16_t>(caps.pkey_table_size);
  out->state = up ? kPortActive : kPortDown;
  out->phys_state = up ? 5 : 3;
  out->max_mtu = 5;
  out->active_mtu = static_cast<std::uint8_t>(node.path_mtu());
  out->active_width = rate.width;
  out->active_speed = rate.speed;
  out->link_layer = kLinkLayerEthernet;
  out->flags = IB_UVERBS_QPF_GRH_REQUIRED;
  return 0;
}

namespace {

int write_query_port(File& file, WriteCall& call) {
  ib_uverbs_query_port_resp response;
  if (int error = query_port(file.node(), call.read<ib_uverbs_query_port>().port_num, &response)) return error;
  call.write(&response, sizeof response);
  return 0;
}

constexpr AttrSpec kQueryPortAttrs[] = {
    uverbs::const_attr(UVERBS_ATTR_QUERY_PORT_PORT_NUM),
    uverbs::out_attr(UVERBS_ATTR_QUERY_PORT_RESP, sizeof(ib_uverbs_query_port_resp_ex), true, false),
};

int native_query_port(File& file, Request& request) {
  const auto port = request.value<std::uint64_t>(UVERBS_ATTR_QUERY_PORT_PORT_NUM);
  if (port > UINT8_MAX) return EINVAL;
  ib_uverbs_query_port_resp_ex response{};
  if (int error = query_port(file.node(), static_cast<unsigned>(port), &response.legacy_resp)) return error;
  const std::uint32_t speed = response.legacy_resp.active_speed;
  std::memcpy(reinterpret_cast<std::byte*>(&response.legacy_resp + 1) + uverbs::newer::kActiveSpeedEx, &speed, sizeof speed);
  return request.write_or_zero(UVERBS_ATTR_QUERY_PORT_RESP, &response, sizeof response);
}

constexpr AttrSpec kPortSpeedAttrs[] = {
    uverbs::const_attr(uverbs::newer::kQueryPortSpeedPort),
    uverbs::out_attr(uverbs::newer::kQueryPortSpeedResp, 8),
};

int native_port_speed(File& file, Request& request) {
  if (request.value<std::uint64_t>(uverbs::newer::kQueryPortSpeedPort) != 1) return EINVAL;
  request.write(uverbs::newer::kQueryPortSpeedResp, std::uint64_t{file.node().profile().link_gbps} * 10);
  return 0;
}

// ---- GID table ----

ib_uverbs_gid_entry entry_of(const Gid& gid, std::uint32_t index, std::uint32_t port) {
  ib_uverbs_gid_entry entry{};
  std::memcpy(entry.gid, gid.raw.data(), gid.raw.size());
  entry.gid_index = index;
  entry.port_num = port;
  entry.gid_type = gid.type;
  return entry;
}

constexpr AttrSpec kGidTableAttrs[] = {
    uverbs::const_attr(UVERBS_ATTR_QUERY_GID_TABLE_ENTRY_SIZE),
    uverbs::flags_attr(UVERBS_ATTR_QUERY_GID_TABLE_FLAGS),
    uverbs::out_attr(UVERBS_ATTR_QUERY_GID_TABLE_RESP_ENTRIES, 0, true, false),
    uverbs::out_attr(UVERBS_ATTR_QUERY_GID_TABLE_RESP_NUM_ENTRIES, 8),
};

int native_gid_table(File& file, Request& request) {
  std::uint32_t flags = 0;
  if (int error = request.flags(UVERBS_ATTR_QUERY_GID_TABLE_FLAGS, 0, &flags)) return error;
  const auto entry_size = request.value<std::uint64_t>(UVERBS_ATTR_QUERY_GID_TABLE_ENTRY_SIZE);
  const std::size_t room = request.out_length(UVERBS_ATTR_QUERY_GID_TABLE_RESP_ENTRIES);
  if (!entry_size || entry_size > room || room % entry_size) return EINVAL;
  const std::size_t max_entries = room / entry_size;

  std::vector<std::byte> table;
  std::uint64_t count = 0;
  for (unsigned i = 0; i < file.node().caps().gid_table_size; ++i) {
    Gid gid;
    if (int error = file.node().gid(1, i, &gid)) return error;
    if (!gid.valid) continue;
    if (count == max_entries) return EINVAL;
    const ib_uverbs_gid_entry entry = entry_of(gid, i, 1);
    table.resize((count + 1) * entry_size);
    std::memcpy(table.data() + count * entry_size, &entry, std::min<std::size_t>(sizeof entry, entry_size));
    ++count;
  }
  request.write(UVERBS_ATTR_QUERY_GID_TABLE_RESP_NUM_ENTRIES, count);
  return request.write_or_zero(UVERBS_ATTR_QUERY_GID_TABLE_RESP_ENTRIES, table.data(), table.size());
}

constexpr AttrSpec kGidEntryAttrs[] = {
    uverbs::const_attr(UVERBS_ATTR_QUERY_GID_ENTRY_PORT),
    uverbs::const_attr(UVERBS_ATTR_QUERY_GID_ENTRY_GID_INDEX),
    uverbs::flags_attr(UVERBS_ATTR_QUERY_GID_ENTRY_FLAGS),
    uverbs::out_attr(UVERBS_ATTR_QUERY_GID_ENTRY_RESP_ENTRY, sizeof(ib_uverbs_gid_entry), true, false),
};

int native_gid_entry(File& file, Request& request) {
  std::uint32_t flags = 0;
  if (int error = request.flags(UVERBS_ATTR_QUERY_GID_ENTRY_FLAGS, 0, &flags)) return error;
  const auto port = request.value<std::uint64_t>(UVERBS_ATTR_QUERY_GID_ENTRY_PORT);
  const auto index = request.value<std::uint64_t>(UVERBS_ATTR_QUERY_GID_ENTRY_GID_INDEX);
  if (port != 1 || index >= file.node().caps().gid_table_size) return EINVAL;
  Gid gid;
  if (int error = file.node().gid(1, static_cast<unsigned>(index), &gid)) return error;
  if (!gid.valid) return ENODATA;
  const ib_uverbs_gid_entry entry = entry_of(gid, static_cast<std::uint32_t>(index), 1);
  return request.write_or_zero(UVERBS_ATTR_QUERY_GID_ENTRY_RESP_ENTRY, &entry, sizeof entry);
}

// ---- mlx5 ----

constexpr AttrSpec kMlx5QueryPortAttrs[] = {
    uverbs::in_attr(MLX5_IB_ATTR_QUERY_PORT_PORT_NUM, 4),
    uverbs::out_attr(MLX5_IB_ATTR_QUERY_PORT, sizeof(mlx5_ib_uapi_query_port), true, false),
};

int native_mlx5_query_port(File& file, Request& request) {
  const auto port = request.value<std::uint32_t>(MLX5_IB_ATTR_QUERY_PORT_PORT_NUM);
  if (port != 1) return EINVAL;
  mlx5_ib_uapi_query_port response{};
  if (file.node().profile().eswitch == device::EswitchMode::switchdev) {
    if (int error = fill_switchdev_info(file.node(), port, &response)) return error;
  }
  return request.write_or_zero(MLX5_IB_ATTR_QUERY_PORT, &response, sizeof response);
}

constexpr AttrSpec kDataDirectAttrs[] = {uverbs::any_out_attr(uverbs::newer::kDataDirectSysfsPath, true)};

// The device has no such function.
int native_data_direct(File&, Request&) { return ENODEV; }

constexpr Method kMethods[] = {
    {{UVERBS_OBJECT_DEVICE, UVERBS_METHOD_QUERY_PORT, kQueryPortAttrs}, native_query_port},
    {{UVERBS_OBJECT_DEVICE, uverbs::newer::kQueryPortSpeed, kPortSpeedAttrs}, native_port_speed},
    {{UVERBS_OBJECT_DEVICE, UVERBS_METHOD_QUERY_GID_TABLE, kGidTableAttrs}, native_gid_table},
    {{UVERBS_OBJECT_DEVICE, UVERBS_METHOD_QUERY_GID_ENTRY, kGidEntryAttrs}, native_gid_entry},
    {{UVERBS_OBJECT_DEVICE, MLX5_IB_METHOD_QUERY_PORT, kMlx5QueryPortAttrs}, native_mlx5_query_port},
    {{UVERBS_OBJECT_DEVICE, uverbs::newer::kGetDataDirectSysfsPath, kDataDirectAttrs}, native_data_direct},
};
constexpr WriteCommand kCommands[] = {
    {IB_USER_VERBS_CMD_QUERY_DEVICE, sizeof(ib_uverbs_query_device), sizeof(ib_uverbs_query_device_resp),
     write_query_device},
    {IB_USER_VERBS_CMD_FLAG_EXTENDED | IB_USER_VERBS_EX_CMD_QUERY_DEVICE, sizeof(ib_uverbs_ex_query_device),
     offsetof(ib_uverbs_ex_query_device_resp, odp_caps), write_query_device_ex},
    {IB_USER_VERBS_CMD_QUERY_PORT, sizeof(ib_uverbs_query_port), sizeof(ib_uverbs_query_port_resp), write_query_port},
};

}  // namespace

std::span<const Method> port_methods() { return kMethods; }
std::span<const WriteCommand> port_commands() { return kCommands; }

}  // namespace verbena::kernel
