// What the tree consists of: the files that rdma-core, UCX, DPDK, libfabric, Open MPI, hwloc and infiniband-diags read.
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "preload/tree.h"

namespace verbena::preload {
namespace {

constexpr const char* kDeviceAttributes[] = {"node_type", "node_guid", "sys_image_guid", "node_desc",
                                             "fw_ver",    "hw_rev",    "hca_type",       "board_id"};
constexpr const char* kPortAttributes[] = {"state",  "phys_state", "rate",     "link_layer",    "lid",
                                           "sm_lid", "sm_sl",      "cap_mask", "lid_mask_count"};
constexpr const char* kPciAttributes[] = {"modalias",
                                          "vendor",
                                          "device",
                                          "subsystem_vendor",
                                          "subsystem_device",
                                          "class",
                                          "revision",
                                          "numa_node",
                                          "local_cpus",
                                          "local_cpulist",
                                          "irq",
                                          "resource",
                                          "uevent",
                                          "config",
                                          "max_link_speed",
                                          "max_link_width",
                                          "current_link_speed",
                                          "current_link_width"};
constexpr const char* kNetAttributes[] = {"address", "broadcast", "addr_len", "type",   "mtu",      "ifindex", "iflink",
                                          "carrier", "operstate", "speed",    "duplex", "dev_id",   "dev_port", "uevent"};
constexpr const char* kCounters[] = {"port_xmit_data",         "port_rcv_data",        "port_xmit_packets",
                                     "port_rcv_packets",       "port_xmit_discards",   "port_rcv_errors",
                                     "symbol_error",           "link_downed",          "link_error_recovery",
                                     "port_xmit_wait",         "unicast_xmit_packets", "unicast_rcv_packets",
                                     "multicast_xmit_packets", "multicast_rcv_packets"};
constexpr const char* kHwCounters[] = {"out_of_sequence",
                                       "out_of_buffer",
                                       "packet_seq_err",
                                       "rnr_nak_retry_err",
                                       "local_ack_timeout_err",
                                       "implied_nak_seq_err",
                                       "duplicate_request",
                                       "rx_write_requests",
                                       "rx_read_requests",
                                       "rx_atomic_requests",
                                       "req_cqe_error",
                                       "resp_cqe_error",
                                       "resp_local_length_error",
                                       "req_remote_access_errors",
                                       "np_cnp_sent"};

std::string host_file(const char* path) {
  char buffer[4096];
  const int fd = ::open(path, O_RDONLY | O_CLOEXEC);
  if (fd < 0) return {};
  const ssize_t length = ::read(fd, buffer, sizeof buffer);
  ::close(fd);
  return length > 0 ? std::string(buffer, static_cast<std::size_t>(length)) : std::string();
}

std::string hex(unsigned value, int digits) {
  char text[32];
  snprintf(text, sizeof text, "0x%0*x\n", digits, value);
  return text;
}

// The first 64 bytes of PCI configuration space: an Ethernet controller.
std::string pci_header(const uverbs::DeviceInfo& info) {
  std::string bytes(256, '\0');
  const auto put16 = [&](unsigned at, unsigned value) {
    bytes[at] = static_cast<char>(value & 0xff);
    bytes[at + 1] = static_cast<char>(value >> 8);
  };
  put16(0x00, 0x15b3);
  put16(0x02, info.device_id);
  put16(0x04, 0x0406);  // memory space, bus master, INTx off
  put16(0x0a, 0x0200);
  put16(0x2c, 0x15b3);
  return bytes;
}

// Attributes of the PCI function that a Backend may leave to us.
std::string pci_default(const TreeDevice& device, std::string_view name) {
  if (name == "modalias") return std::string(device.info.modalias) + "\n";
  if (name == "vendor" || name == "subsystem_vendor") return hex(0x15b3, 4);
  if (name == "device") return hex(device.info.device_id, 4);
  if (name == "subsystem_device") return hex(0, 4);
  if (name == "class") return hex(0x020000, 6);
  if (name == "revision") return hex(0, 2);
  if (name == "numa_node") return "-1\n";
  if (name == "local_cpulist") return host_file("/sys/devices/system/cpu/online");
  if (name == "irq") return "0\n";
  if (name == "config") return pci_header(device.info);
  if (name == "max_link_speed" || name == "current_link_speed") return "32.0 GT/s PCIe\n";
  if (name == "max_link_width" || name == "current_link_width") return "16\n";
  if (name == "resource") {  // six BARs and the ROM; ours answers no bus accesses, so none is mapped
    std::string lines;
    for (int i = 0; i < 7; ++i) lines += "0x0000000000000000 0x0000000000000000 0x0000000000000000\n";
    return lines;
  }
  if (name == "uevent") {
    char text[512];
    snprintf(text, sizeof text,
             "DRIVER=mlx5_core\nPCI_CLASS=20000\nPCI_ID=15B3:%04X\nPCI_SUBSYS_ID=15B3:0000\nPCI_SLOT_NAME=%s\n"
             "MODALIAS=%s\n",
             device.info.device_id, device.slot.c_str(), device.info.modalias);
    return text;
  }
  return {};
}

class Writer {
 public:
  Writer(const uverbs::Backend& backend, std::vector<TreeEntry>& out) : backend_(backend), out_(out) {}

  void folder(std::string path) { out_.push_back({TreeEntry::folder, std::move(path), {}}); }
  void file(std::string path, std::string content) {
    out_.push_back({TreeEntry::file, std::move(path), std::move(content)});
  }
  void link(std::string path, std::string target) {
    out_.push_back({TreeEntry::link, std::move(path), std::move(target)});
  }
  // A file if the Backend knows the attribute or, failing that, there is a default.
  void attribute(const std::string& path, const char* dir, const std::string& name, const std::string& otherwise = {}) {
    char value[4096];
    const int length = backend_.read_sysfs(dir, name.c_str(), value, sizeof value);
    if (length >= 0)
      file(path, std::string(value, static_cast<std::size_t>(length)) + "\n");
    else if (errno != ENOENT || !otherwise.empty())
      file(path, otherwise);
  }

 private:
  const uverbs::Backend& backend_;
  std::vector<TreeEntry>& out_;
};

void add_port(Writer& writer, const TreeDevice& device, const std::string& ib, unsigned port) {
  const std::string name = "ports/" + std::to_string(port);
  const std::string base = ib + "/" + name;
  writer.folder(base);
  const auto attributes = [&](const std::string& folder, const auto& list) {
    if (!folder.empty()) writer.folder(base + folder);
    for (const char* attribute : list)
      writer.attribute(base + folder + "/" + attribute, device.info.ibdev_path, name + folder + "/" + attribute);
  };
  attributes("", kPortAttributes);
  attributes("/counters", kCounters);
  attributes("/hw_counters", kHwCounters);
  writer.folder(base + "/pkeys");
  for (unsigned i = 0; i < device.pkeys; ++i)
    writer.attribute(base + "/pkeys/" + std::to_string(i), device.info.ibdev_path,
                     name + "/pkeys/" + std::to_string(i));
  for (const char* folder : {"/gids", "/gid_attrs", "/gid_attrs/types", "/gid_attrs/ndevs"})
    writer.folder(base + folder);
  // Every index has its three files, in use or not; what an unused one answers, the Backend says at open.
  for (unsigned i = 0; i < device.gids; ++i)
    for (const char* folder : {"/gids/", "/gid_attrs/types/", "/gid_attrs/ndevs/"})
      writer.file(base + folder + std::to_string(i), "");
}

// The network interface of the port. The class's own folder is the host's.
void add_interface(Writer& writer, const TreeDevice& device) {
  const std::string name = "net/" + device.interface, base = device.directory + "/" + name;
  writer.folder(base);
  for (const char* attribute : kNetAttributes)
    writer.attribute(base + "/" + attribute, device.info.ibdev_path, "device/" + name + "/" + attribute);
  writer.link(base + "/device", "../../../" + device.slot);
  writer.link(base + "/subsystem", "../../../../../class/net");
  writer.link("/sys/class/net/" + device.interface, "../.." + base.substr(4));
}

void add_device(Writer& writer, const TreeDevice& device) {
  const std::string& pci = device.directory;
  const std::string ib = pci + "/infiniband/" + device.info.ibdev_name;
  const std::string uverbs = pci + "/infiniband_verbs/" + device.info.uverbs_name;
  writer.folder(pci);
  for (const char* name : kPciAttributes)
    writer.attribute(pci + "/" + name, device.info.ibdev_path, std::string("device/") + name,
                     pci_default(device, name));
  writer.link(pci + "/subsystem", "../../../bus/pci");
  writer.link(pci + "/driver", "../../../bus/pci/drivers/mlx5_core");
  writer.link("/sys/bus/pci/drivers/mlx5_core/" + device.slot, "../../../../" + device.directory.substr(5));
  writer.link("/sys/bus/pci/devices/" + device.slot, "../../../" + device.directory.substr(5));

  writer.folder(ib);
  for (const char* name : kDeviceAttributes) writer.attribute(ib + "/" + name, device.info.ibdev_path, name);
  writer.link(ib + "/device", "../../../" + device.slot);
  writer.link(ib + "/subsystem", "../../../../../class/infiniband");
  writer.link("/sys/class/infiniband/" + std::string(device.info.ibdev_name), "../.." + ib.substr(4));
  writer.folder(ib + "/ports");
  for (unsigned port = 1; port <= device.ports; ++port) add_port(writer, device, ib, port);

  add_interface(writer, device);
  writer.folder(uverbs);
  writer.file(uverbs + "/dev",
              std::to_string(major(device.number)) + ":" + std::to_string(minor(device.number)) + "\n");
  writer.file(uverbs + "/ibdev", std::string(device.info.ibdev_name) + "\n");
  writer.file(uverbs + "/abi_version", std::to_string(device.info.abi_version) + "\n");
  writer.link(uverbs + "/device", "../../../" + device.slot);
  writer.link(uverbs + "/subsystem", "../../../../../class/infiniband_verbs");
  writer.link("/sys/class/infiniband_verbs/" + std::string(device.info.uverbs_name), "../.." + uverbs.substr(4));
  writer.file("/dev/infiniband/" + std::string(device.info.uverbs_name), "");
}

// The host's own PCI functions stay visible beside ours.
void add_host_functions(Writer& writer) {
  DIR* folder = ::opendir("/sys/bus/pci/devices");
  if (folder == nullptr) return;
  while (const dirent* entry = ::readdir(folder))
    if (entry->d_name[0] != '.')
      writer.link(std::string("/sys/bus/pci/devices/") + entry->d_name,
                  std::string("/sys/bus/pci/devices/") + entry->d_name);
  ::closedir(folder);
}

}  // namespace

std::vector<TreeEntry> describe(const uverbs::Backend& backend, const std::vector<TreeDevice>& devices) {
  std::vector<TreeEntry> out;
  Writer writer(backend, out);
  for (const char* folder : {"/dev/infiniband", "/sys/class/infiniband", "/sys/class/infiniband_verbs",
                             "/sys/bus/pci/devices", "/sys/bus/pci/drivers/mlx5_core", "/sys/devices"})
    writer.folder(folder);
  writer.file("/sys/class/infiniband_verbs/abi_version", "6\n");
  add_host_functions(writer);
  for (const TreeDevice& device : devices) add_device(writer, device);
  return out;
}

}  // namespace verbena::preload
