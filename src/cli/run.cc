// verbena run: start a program on the emulated NIC. Only the environment is prepared; the program itself is executed
// in this very process, so signals, exit status and terminal are its own.
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <filesystem>
#include <memory>

#include "cli/commands.h"

namespace verbena::cli {
namespace {

struct RunOptions {
  HostOptions host;
  std::string capture;
  std::string record;
  std::string stack = "own";
  std::string netdev;
  std::vector<std::string> program;
};

// A library before all others gives the program the virtual uverbs node.
bool prepare_node(const std::string& libraries) {
  const std::string preload = libraries + "/libverbena-preload.so";
  if (access(preload.c_str(), R_OK) != 0 || preload.find_first_of(" :") != std::string::npos) {
    complain("the virtual uverbs node needs " + preload + ", which is missing or has a blank or colon in its name");
    return false;
  }
  const char* old = getenv("LD_PRELOAD");
  setenv("LD_PRELOAD", old && *old ? (preload + ":" + old).c_str() : preload.c_str(), 1);
  return true;
}

void prepend_path(const char* variable, const std::string& folder) {
  const char* old = getenv(variable);
  setenv(variable, old && *old ? (folder + ":" + old).c_str() : folder.c_str(), 1);
}

int run(const RunOptions& options) {
  const std::string libraries = library_folder();
  if (libraries.empty()) {
    complain("its libraries (libibverbs.so.1, libverbena-nic.so) are not beside this program; is the build complete?");
    return kFailed;
  }
  if (options.stack != "own" && !prepare_node(libraries)) return kFailed;
  if (options.stack != "system") prepend_path("LD_LIBRARY_PATH", libraries);
  if (options.stack == "kernel") setenv("VERBENA_MODE", "kernel", 1);
  options.host.export_environment();
  if (!options.netdev.empty()) setenv("VERBENA_NETDEV", options.netdev.c_str(), 1);
  if (!options.capture.empty()) setenv("VERBENA_CAPTURE", std::filesystem::absolute(options.capture).c_str(), 1);
  if (!options.record.empty()) setenv("VERBENA_RECORD", std::filesystem::absolute(options.record).c_str(), 1);

  std::vector<char*> argv;
  for (const std::string& word : options.program) argv.push_back(const_cast<char*>(word.c_str()));
  argv.push_back(nullptr);
  execvp(argv[0], argv.data());
  const int error = errno;
  complain("cannot run " + options.program[0] + ": " + strerror(error));
  return error == ENOENT ? kNotFound : kNotRunnable;
}

}  // namespace

void HostOptions::add_to(CLI::App& app) {
  app.add_option("--host", host, "Virtual host to be on; programs on the same one share its NIC (default: localhost)")
      ->type_name("NAME")
      ->check([](const std::string& name) {
        const bool good = !name.empty() && name.size() <= 63 && name[0] != '.' &&
                          name.find_first_not_of("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-") ==
                              std::string::npos;
        return good ? std::string() : "a host name is 1 to 63 letters, digits, '.', '_' or '-'";
      });
  app.add_option("--profile", profile, "TOML file that describes the NIC (default: a ConnectX-7 RoCE device)")
      ->type_name("FILE")
      ->check(CLI::ExistingFile);
  app.add_option("--devices", devices, "Number of NICs the host has: mlx5_0, mlx5_1, ... (default: 1)")
      ->type_name("N")
      ->check(CLI::Range(1, 16));
}

void HostOptions::export_environment() const {
  setenv("VERBENA_MODE", "embedded", 0);  // a mode the caller has set already stands
  if (!host.empty()) setenv("VERBENA_HOST", host.c_str(), 1);
  if (!profile.empty()) setenv("VERBENA_PROFILE", std::filesystem::absolute(profile).c_str(), 1);
  if (devices) setenv("VERBENA_DEVICES", std::to_string(devices).c_str(), 1);
}

void add_run(CLI::App& app, Action& chosen, std::vector<std::string> program) {
  auto options = std::make_shared<RunOptions>();
  CLI::App* command =
      app.add_subcommand("run", "Run a program on the emulated NIC: verbena run [OPTIONS] -- PROGRAM [ARGUMENTS]");
  options->host.add_to(*command);
  command
      ->add_option("--capture", options->capture,
                   "Write every packet to this pcapng file; several programs may name the same one")
      ->type_name("FILE");
  command
      ->add_option("--record", options->record,
                   "Append every request to the kernel to this file, a line of JSON each; several programs may name the same "
                   "one")
      ->type_name("FILE");
  command
      ->add_option("--netdev", options->netdev,
                   "Network interface of the machine that RDMA netlink names as that of mlx5_0, for programs that want one")
      ->type_name("NAME");
  command
      ->add_option("--stack", options->stack,
                   "Whose libibverbs and libmlx5 the program uses: our own, the system's on a virtual uverbs node, or our "
                   "own on that node, by system calls as on a kernel's")
      ->type_name("own|system|kernel")
      ->check(CLI::IsMember({"own", "system", "kernel"}));
  command->footer("The program's output, signals and exit status are its own.");
  command->prefix_command();  // without "--", the first word that is no option starts the program
  command->callback([options, command, program, &chosen] {
    options->program = command->remaining();
    if (!options->program.empty() && options->program[0].starts_with("-"))
      throw CLI::ValidationError("run", "unknown option " + options->program[0]);
    if (!options->program.empty() && !program.empty()) options->program.push_back("--");
    options->program.insert(options->program.end(), program.begin(), program.end());
    if (options->program.empty()) throw CLI::ValidationError("run", "which program? verbena run [OPTIONS] -- PROGRAM");
    chosen = [options] { return run(*options); };
  });
}

}  // namespace verbena::cli
