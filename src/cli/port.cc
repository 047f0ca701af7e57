// verbena port: takes a physical port of a NIC down or up, as pulling its cable would, while programs use it.
#include <errno.h>
#include <string.h>

#include <cstdio>
#include <cstdlib>
#include <memory>

#include "cli/commands.h"
#include "device/device.h"
#include "device/profile.h"
#include "prm/registers.h"

namespace verbena::cli {
namespace {

struct PortOptions {
  HostOptions host;
  std::string device;
  unsigned port = 0;
  std::string state;
};

// The register that the driver's `ip link set up` and `down` write.
int set_port(device::Device& nic, unsigned port, bool up) {
  using In = prm::AccessRegisterIn;
  prm::Box<In, prm::PaosReg::size> in;
  prm::Box<prm::AccessRegisterOut, prm::PaosReg::size> out;
  in.set<In::opcode>(prm::Opcode::access_reg);
  in.set<In::op_mod>(static_cast<std::uint32_t>(prm::AccessRegisterOpMod::write));
  in.set<In::register_id>(static_cast<std::uint32_t>(prm::RegisterId::paos));
  const prm::View<prm::PaosReg> paos(in.data() + In::size);
  paos.set<prm::PaosReg::local_port>(port).set<prm::PaosReg::ase>(1);
  paos.set<prm::PaosReg::admin_status>(static_cast<std::uint32_t>(up ? prm::PaosStatus::up : prm::PaosStatus::down));
  nic.execute(in.span(), out.span());
  if (out.get<prm::AccessRegisterOut::status>() == prm::Status::ok) return 0;
  complain("no port " + std::to_string(port));
  return kFailed;
}

int run_port(const PortOptions& options) {
  options.host.export_environment();
  const char* profile_path = getenv("VERBENA_PROFILE");
  const char* host = getenv("VERBENA_HOST");
  const auto profile = device::load_profile(profile_path ? profile_path : "");
  if (!profile) {
    complain(std::string("profile: ") + profile.error().reason);
    return kFailed;
  }
  const auto index = static_cast<unsigned>(std::stoul(options.device.substr(5)));
  auto nic = device::Device::attach(*profile, host && *host ? host : "localhost", index);
  if (!nic) {
    complain(options.device + ": " + nic.error().reason);
    return kFailed;
  }
  return set_port(**nic, options.port, options.state == "up");
}

}  // namespace

void add_port(CLI::App& app, Action& chosen) {
  auto options = std::make_shared<PortOptions>();
  CLI::App* command = app.add_subcommand("port", "Take a port down or up: verbena port [OPTIONS] mlx5_0 2 down");
  options->host.add_to(*command);
  command->add_option("DEVICE", options->device, "mlx5_0, mlx5_1, ...")->required()->check([](const std::string& name) {
    const bool good = name.starts_with("mlx5_") && name.size() > 5 && name.size() < 8 &&
                      name.find_first_not_of("0123456789", 5) == std::string::npos;
    return good ? std::string() : "no such device: " + name;
  });
  command->add_option("PORT", options->port, "Physical port, 1 or 2")->required()->check(CLI::Range(1, 2));
  command->add_option("STATE", options->state, "down or up")->required()->check(CLI::IsMember({"down", "up"}));
  command->footer("For programs that have the device open: a port comes up again when the last of them is gone.");
  command->callback([options, &chosen] { chosen = [options] { return run_port(*options); }; });
}

}  // namespace verbena::cli
