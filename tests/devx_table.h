// The table of commands in docs/devx.md, as tests read it: "| `NAME` | 0x123 | door, door | device |".
// Threads: any.
#pragma once

#include <cstdio>
#include <fstream>
#include <map>
#include <string>

namespace verbena {

struct DevxCommand {
  std::string name, doors, device;
  // DESTROY_CQ and the like.
  bool undoes() const {
    for (const char* head : {"DESTROY_", "DEALLOC_", "DELETE_", "DETACH_"})
      if (name.starts_with(head)) return true;
    return false;
  }
};

// By opcode; empty if there is no such file.
inline std::map<unsigned, DevxCommand> documented_commands() {
  std::ifstream file(VERBENA_SOURCE_DIR "/docs/devx.md");
  std::map<unsigned, DevxCommand> rows;
  for (std::string line; std::getline(file, line);) {
    char name[64], doors[64], device[64];
    unsigned opcode = 0;
    if (std::sscanf(line.c_str(), "| `%63[^`]` | %x | %63[^|] | %63[^|] |", name, &opcode, doors, device) != 4) continue;
    const auto trimmed = [](std::string text) { return text.substr(0, text.find_last_not_of(' ') + 1); };
    rows[opcode] = {name, trimmed(doors), trimmed(device)};
  }
  return rows;
}

}  // namespace verbena
