// verbena explain: from the syndrome in a refused command's output back to the rule it broke.
#include <cstdio>
#include <memory>

#include "cli/commands.h"
#include "device/refusals.h"

namespace verbena::cli {
namespace {

int explain(std::uint32_t syndrome) {
  const auto refusal = device::find_refusal(syndrome);
  if (!refusal) {
    std::fprintf(stderr, "verbena: this device gives no syndrome 0x%x (all of them: verbena explain --all)\n",
                 syndrome);
    return kFailed;
  }
  std::printf("0x%08x  status 0x%02x  %s\n", syndrome, static_cast<unsigned>(refusal->status), refusal->reason.c_str());
  return 0;
}

int list_all() {
  for (const device::RefusalRow& row : device::refusal_table())
    std::printf("0x%08x  status 0x%02x  %-32.*s  %.*s\n", row.syndrome, static_cast<unsigned>(row.status),
                static_cast<int>(row.name.size()), row.name.data(), static_cast<int>(row.reason.size()),
                row.reason.data());
  return 0;
}

}  // namespace

void add_explain(CLI::App& app, Action& chosen) {
  struct Options {
    std::string syndrome;
    bool all = false;
  };
  auto options = std::make_shared<Options>();
  CLI::App* command = app.add_subcommand("explain", "Say why the device refused a command, given its syndrome");
  command->add_option("SYNDROME", options->syndrome, "As printed or returned: 0x... or decimal");
  command->add_flag("--all", options->all, "List every syndrome of the table");
  command->footer("");
  command->callback([options, &chosen] {
    if (options->all) {
      chosen = list_all;
      return;
    }
    if (options->syndrome.empty()) throw CLI::ValidationError("explain", "which syndrome?");
    std::size_t used = 0;
    unsigned long value = 0;
    try {
      value = std::stoul(options->syndrome, &used, 0);
    } catch (const std::exception&) {
      used = 0;
    }
    if (used != options->syndrome.size() || value > 0xffffffffu)
      throw CLI::ValidationError("explain", "not a 32-bit number: " + options->syndrome);
    chosen = [value] { return explain(static_cast<std::uint32_t>(value)); };
  });
}

}  // namespace verbena::cli
