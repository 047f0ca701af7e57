// The commands of `verbena`, one source file each: each adds its options to `app` and stores what to do in `chosen`,
// which main() then runs; its result is the exit status.
//
// Threads: main thread only.
#pragma once

#include <CLI/CLI.hpp>
#include <functional>
#include <string>
#include <vector>

namespace verbena::cli {

using Action = std::function<int()>;

// `program` holds the words after a "--" on the command line, which CLI11 has not seen.
void add_run(CLI::App& app, Action& chosen, std::vector<std::string> program);
void add_devices(CLI::App& app, Action& chosen);
void add_explain(CLI::App& app, Action& chosen);
void add_port(CLI::App& app, Action& chosen);

// Options that describe the virtual host a program sees; shared by `run` and `devices`.
struct HostOptions {
  std::string host;
  std::string profile;
  unsigned devices = 0;  // 0: not given

  void add_to(CLI::App& app);
  // Puts them into this process's environment, where the library finds them.
  void export_environment() const;
};

// Folder of libibverbs.so.1 and its companions, found from where this executable lies; empty if they are not there.
std::string library_folder();

// Prints one line "verbena: TEXT" to standard error.
void complain(const std::string& text);

inline constexpr int kUsage = 2;       // wrong use
inline constexpr int kFailed = 1;      // the request was right but could not be done
inline constexpr int kNotFound = 127;  // as the shell has it: no such program
inline constexpr int kNotRunnable = 126;

}  // namespace verbena::cli
