#include "nic/sysfs.h"

#include <rdma/ib_user_ioctl_verbs.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <string_view>
#include <utility>

#include "kernel/counters.h"
#include "kernel/port.h"
#include "uverbs/backend.h"
#include "uverbs/interface.h"

namespace verbena::nic {
namespace {

template <class... Args>
std::string format(const char* pattern, Args... args) {
  char text[160];
  std::snprintf(text, sizeof text, pattern, args...);
  return text;
}

Attribute found(std::string text) { return {0, std::move(text)}; }
Attribute missing(int error = ENOENT) { return {error, {}}; }

// A whole number and nothing else, as the name of a file.
bool number(std::string_view text, unsigned* out) {
  if (text.empty() || text.size() > 6) return false;
  *out = 0;
  for (char c : text) {
    if (c < '0' || c > '9') return false;
    *out = *out * 10 + static_cast<unsigned>(c - '0');
  }
  return true;
}

// "a/b/c": takes "a/" off if it is there.
bool take(std::string_view& path, std::string_view prefix) {
  if (!path.starts_with(prefix)) return false;
  path.remove_prefix(prefix.size());
  return true;
}

Attribute gid_attribute(kernel::Node& node, std::string_view name, char what) {
  unsigned index = 0;
  if (!number(name, &index) || index >= node.caps().gid_table_size) return missing();
  kernel::Gid gid;
  if (int error = node.gid(1, index, &gid)) return missing(error);
  if (what == 'g') {
    const auto* g = gid.raw.data();
    std::string text;
    for (unsigned i = 0; i < 16; i += 2) text += format(i ? ":%02x%02x" : "%02x%02x", g[i], g[i + 1]);
    return found(text);
  }
  // An empty entry has no attributes; there is no network interface behind the port.
  if (!gid.valid || what == 'n') return missing(EINVAL);
  return found(gid.type == IB_UVERBS_GID_TYPE_ROCE_V2 ? "RoCE v2" : "IB/RoCE v1");
}

Attribute port_attribute(kernel::Node& node, std::string_view name) {
  if (take(name, "gids/")) return gid_attribute(node, name, 'g');
  if (take(name, "gid_attrs/types/")) return gid_attribute(node, name, 't');
  if (take(name, "gid_attrs/ndevs/")) return gid_attribute(node, name, 'n');
  if (take(name, "pkeys/")) {
    unsigned index = 0;
    return number(name, &index) && index < node.caps().pkey_table_size ? found("0xffff") : missing();
  }
  if (take(name, "counters/") || take(name, "hw_counters/")) {
    std::uint64_t value = 0;
    int error = kernel::read_counter(node, std::string(name), &value);
    return error ? missing(error) : found(format("%llu", static_cast<unsigned long long>(value)));
  }
  ib_uverbs_query_port_resp port;
  if (int error = kernel::query_port(node, 1, &port)) return missing(error);
  if (name == "state") return found(port.state == 4 ? "4: ACTIVE" : "1: DOWN");
  if (name == "phys_state") return found(port.phys_state == 5 ? "5: LinkUp" : "3: Disabled");
  if (name == "rate") return found(kernel::link_rate(node.profile().link_gbps).name);
  if (name == "link_layer") return found("Ethernet");
  if (name == "lid" || name == "sm_lid") return found("0x0");
  if (name == "lid_mask_count" || name == "sm_sl") return found("0");
  if (name == "cap_mask") return found(format("0x%08x", port.port_cap_flags));
  return missing();
}

// The network interface of the port.
Attribute interface_attribute(kernel::Node& node, std::string_view name) {
  const std::string own = format(uverbs::kInterfaceName, node.index()) + "/";
  if (!take(name, own)) return missing();
  bool up = false;
  if (int error = node.port_state(1, &up)) return missing(error);
  if (name == "address") {
    std::array<std::uint8_t, 6> mac;
    if (int error = node.port_mac(1, &mac)) return missing(error);
    return found(format("%02x:%02x:%02x:%02x:%02x:%02x", mac[0], mac[1], mac[2], mac[3], mac[4], mac[5]));
  }
  if (name == "carrier") return found(up ? "1" : "0");
  if (name == "operstate") return found(up ? "up" : "down");
  if (name == "speed") return found(format("%u", unsigned{node.profile().link_gbps} * 1000));
  if (name == "ifindex" || name == "iflink") return found(format("%u", uverbs::kFirstInterface + node.index()));
  if (name == "mtu") return found(format("%u", unsigned{node.profile().mtu}));
  if (name == "broadcast") return found("ff:ff:ff:ff:ff:ff");
  if (name == "uevent")
    return found(format("INTERFACE=%s\nIFINDEX=%u", own.substr(0, own.size() - 1).c_str(), uverbs::kFirstInterface + node.index()));
  constexpr std::pair<const char*, const char*> constant[] = {{"type", "1"}, {"addr_len", "6"}, {"duplex", "full"}, {"dev_id", "0x0"}, {"dev_port", "0"}};
  for (const auto& [known, value] : constant)
    if (name == known) return found(value);
  return missing();
}

// The PCI device behind it, as far as programs look.
Attribute pci_attribute(kernel::Node& node, std::string_view name) {
  if (take(name, "net/")) return interface_attribute(node, name);
  const device::Profile& profile = node.profile();
  if (name == "vendor" || name == "subsystem_vendor") return found("0x15b3");
  if (name == "device") return found(format("0x%04x", profile.part_id));
  if (name == "subsystem_device") return found("0x0041");
  if (name == "class") return found("0x020000");
  if (name == "revision") return found(format("0x%02x", profile.hw_rev));
  if (name == "modalias") return found(modalias(profile));
  if (name == "numa_node") return found("-1");
  if (name == "local_cpus") {
    // One bit a CPU, in groups of 32.
    const long cpus = std::max(1l, sysconf(_SC_NPROCESSORS_CONF));
    std::string text;
    for (long left = cpus; left > 0; left -= 32) {
      const std::uint32_t group = left >= 32 ? ~0u : (1u << left) - 1;
      text = format("%08x", group) + (text.empty() ? "" : "," + text);
    }
    return found(text);
  }
  return missing();
}

}  // namespace

std::string modalias(const device::Profile& profile) {
  return format("pci:v000015B3d%08Xsv000015B3sd00000041bc02sc00i00", profile.part_id);
}

std::string guid_text(std::uint64_t guid_be) {
  const std::uint64_t guid = __builtin_bswap64(guid_be);
  return format("%04x:%04x:%04x:%04x", static_cast<unsigned>(guid >> 48), static_cast<unsigned>(guid >> 32 & 0xffff),
                static_cast<unsigned>(guid >> 16 & 0xffff), static_cast<unsigned>(guid & 0xffff));
}

Attribute ibdev_attribute(kernel::Node& node, const std::string& file) {
  std::string_view name = file;
  const device::Profile& profile = node.profile();
  if (name == "fw_ver") return found(profile.firmware_text());
  if (name == "hca_type") return found(format("MT%u", unsigned{profile.part_id}));
  if (name == "hw_rev") return found(format("%x", profile.hw_rev));
  if (name == "board_id") return found(profile.board_id);
  if (name == "node_type") return found("1: CA");
  if (name == "node_desc") return found(node.name());
  if (name == "node_guid" || name == "sys_image_guid") {
    std::uint64_t guid = 0;
    int error = node.node_guid(&guid);
    return error ? missing(error) : found(guid_text(guid));
  }
  if (take(name, "device/")) return pci_attribute(node, name);
  if (take(name, "ports/1/")) return port_attribute(node, name);
  return missing();
}

Attribute uverbs_attribute(kernel::Node& node, const std::string& file) {
  std::string_view name = file;
  if (name == "ibdev") return found(node.name());
  if (name == "abi_version") return found("1");
  if (name == "dev") return found(format("%u:%u", uverbs::kUverbsMajor, uverbs::kUverbsFirstMinor + node.index()));
  if (take(name, "device/")) return pci_attribute(node, name);
  return missing();
}

}  // namespace verbena::nic
