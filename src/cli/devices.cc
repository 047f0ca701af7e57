// verbena devices: what a program started by `verbena run` would find, asked through the same public interface.
#include <arpa/inet.h>
#include <dlfcn.h>
#include <infiniband/verbs.h>
#include <stdlib.h>
#include <string.h>

#include <cstdio>
#include <memory>

#include "cli/commands.h"

namespace verbena::cli {
namespace {

// The few functions of libibverbs.so.1 needed here, from our own copy and no other.
class Verbs {
 public:
  explicit Verbs(const std::string& folder) {
    const std::string path = folder + "/libibverbs.so.1";
    handle_ = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (!handle_) throw std::runtime_error(dlerror());
    load(get_device_list, "ibv_get_device_list", "IBVERBS_1.1");
    load(get_device_name, "ibv_get_device_name", "IBVERBS_1.1");
    load(open_device, "ibv_open_device", "IBVERBS_1.1");
    load(close_device, "ibv_close_device", "IBVERBS_1.1");
    load(query_device, "ibv_query_device", "IBVERBS_1.1");
    load(query_port, "ibv_query_port", "IBVERBS_1.1");
    load(query_gid_table, "_ibv_query_gid_table", "IBVERBS_1.11");
  }
  ibv_device** (*get_device_list)(int*);
  const char* (*get_device_name)(ibv_device*);
  ibv_context* (*open_device)(ibv_device*);
  int (*close_device)(ibv_context*);
  int (*query_device)(ibv_context*, ibv_device_attr*);
  int (*query_port)(ibv_context*, std::uint8_t, _compat_ibv_port_attr*);
  ssize_t (*query_gid_table)(ibv_context*, ibv_gid_entry*, size_t, std::uint32_t, size_t);

 private:
  template <class F>
  void load(F& function, const char* name, const char* version) {
    void* symbol = dlvsym(handle_, name, version);
    if (!symbol) throw std::runtime_error(std::string(name) + " is missing from " + version);
    function = reinterpret_cast<F>(symbol);
  }
  void* handle_;
};

const char* port_state(unsigned state) {
  constexpr const char* kNames[] = {"no state", "DOWN", "INIT", "ARMED", "ACTIVE", "ACTIVE_DEFER"};
  return state < std::size(kNames) ? kNames[state] : "unknown";
}

void print_gid(const ibv_gid_entry& entry) {
  char text[INET6_ADDRSTRLEN] = "";
  inet_ntop(AF_INET6, entry.gid.raw, text, sizeof text);
  const char* type = entry.gid_type == IBV_GID_TYPE_ROCE_V2   ? "RoCE v2"
                     : entry.gid_type == IBV_GID_TYPE_ROCE_V1 ? "RoCE v1"
                                                              : "IB";
  std::printf("    gid %-3u %-8s %s\n", entry.gid_index, type, text);
}

void print_device(const Verbs& verbs, ibv_context* context, const char* name) {
  ibv_device_attr device{};
  if (const int error = verbs.query_device(context, &device)) {
    complain(std::string(name) + ": " + strerror(error));
    return;
  }
  std::printf("%s  part 0x%x, firmware %s, %u port%s\n", name, device.vendor_part_id, device.fw_ver,
              device.phys_port_cnt, device.phys_port_cnt == 1 ? "" : "s");
  std::vector<ibv_gid_entry> gids(1024);
  const ssize_t found = verbs.query_gid_table(context, gids.data(), gids.size(), 0, sizeof(ibv_gid_entry));
  for (unsigned port = 1; port <= device.phys_port_cnt; ++port) {
    ibv_port_attr attributes{};
    verbs.query_port(context, static_cast<std::uint8_t>(port), reinterpret_cast<_compat_ibv_port_attr*>(&attributes));
    std::printf("  port %u  %s, %s, MTU %u\n", port, port_state(attributes.state),
                attributes.link_layer == IBV_LINK_LAYER_ETHERNET ? "RoCE" : "InfiniBand",
                128u << attributes.active_mtu);
    for (ssize_t i = 0; i < found; ++i)
      if (gids[static_cast<std::size_t>(i)].port_num == port) print_gid(gids[static_cast<std::size_t>(i)]);
  }
}

int devices(const HostOptions& options) {
  options.export_environment();
  const std::string folder = library_folder();
  if (folder.empty()) {
    complain("its libraries (libibverbs.so.1, libverbena-nic.so) are not beside this program; is the build complete?");
    return kFailed;
  }
  const Verbs verbs(folder);
  int count = 0;
  ibv_device** list = verbs.get_device_list(&count);
  if (!list || count == 0) {
    complain(std::string("no device: ") + strerror(errno));
    return kFailed;
  }
  int status = 0;
  for (int i = 0; i < count; ++i) {
    const char* name = verbs.get_device_name(list[i]);
    ibv_context* context = verbs.open_device(list[i]);
    if (!context) {
      complain(std::string(name) + ": " + strerror(errno));
      status = kFailed;
      continue;
    }
    print_device(verbs, context, name);
    verbs.close_device(context);
  }
  return status;
}

}  // namespace

void add_devices(CLI::App& app, Action& chosen) {
  auto options = std::make_shared<HostOptions>();
  CLI::App* command = app.add_subcommand("devices", "List the devices of a virtual host, with ports and GIDs");
  options->add_to(*command);
  command->footer("");
  command->callback([options, &chosen] { chosen = [options] { return devices(*options); }; });
}

}  // namespace verbena::cli
