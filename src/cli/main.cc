// verbena: see an mlx5 NIC where there is none.
#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <string_view>

#include "cli/commands.h"

namespace verbena::cli {

void complain(const std::string& text) { std::fprintf(stderr, "verbena: %s\n", text.c_str()); }

std::string library_folder() {
  std::error_code ignored;
  const auto bin = std::filesystem::read_symlink("/proc/self/exe", ignored).parent_path();
  for (const char* folder : {"../lib/verbena", "../lib", "."}) {
    const auto candidate = (bin / folder).lexically_normal();
    if (std::filesystem::exists(candidate / "libibverbs.so.1", ignored) &&
        std::filesystem::exists(candidate / "libverbena-nic.so", ignored))
      return candidate.string();
  }
  return {};
}

namespace {

constexpr const char* kAbout =
    "Verbena runs RDMA programs without the NIC. A program started by `verbena run` finds an emulated\n"
    "ConnectX device (mlx5_0); programs started this way talk to each other. No root, no kernel module,\n"
    "no change to the program.";
constexpr const char* kExamples =
    "Examples:\n"
    "  verbena run -- ibv_devinfo                          what a program sees\n"
    "  verbena run -- ib_write_bw &                        a server ...\n"
    "  verbena run -- ib_write_bw localhost                ... and its client\n"
    "  verbena run --host b -- ib_write_bw localhost       the client, as if on another machine\n"
    "  verbena run --capture c.pcapng -- PROGRAM           then: tshark -r c.pcapng\n"
    "  verbena port mlx5_0 2 down                          a cable is pulled\n"
    "  verbena explain 0x1a2b3c                            why a command was refused";

// The first line of what CLI11 found wrong.
std::string first_line(const std::string& text) { return text.substr(0, text.find('\n')); }

int run_main(int argc, char** argv) {
  CLI::App app{kAbout, "verbena"};
  app.footer(kExamples);
  app.require_subcommand(1);
  app.set_version_flag("--version", "verbena " VERBENA_VERSION);
  Action chosen;
  char** const end = argv + argc;
  char** const dashes = std::find_if(argv, end, [](const char* word) { return std::string_view(word) == "--"; });
  add_run(app, chosen, std::vector<std::string>(dashes == end ? end : dashes + 1, end));
  add_devices(app, chosen);
  add_explain(app, chosen);
  add_port(app, chosen);
  try {
    app.parse(static_cast<int>(dashes - argv), argv);
  } catch (const CLI::Success& help) {
    return app.exit(help);
  } catch (const CLI::ParseError& error) {
    const bool command_missing = error.get_exit_code() == static_cast<int>(CLI::ExitCodes::RequiredError);
    const std::string what = argc < 2          ? "what to do?"
                             : command_missing ? "no such command: " + std::string(argv[1])
                                               : first_line(error.what());
    complain(what + " (see `verbena --help`)");
    return kUsage;
  }
  return chosen();
}

}  // namespace
}  // namespace verbena::cli

int main(int argc, char** argv) {
  try {
    return verbena::cli::run_main(argc, argv);
  } catch (const std::exception& error) {
    verbena::cli::complain(error.what());
    return verbena::cli::kFailed;
  }
}
