#include "preload/paths.h"

#include <net/if.h>

#include "uverbs/interface.h"

namespace verbena::preload {

std::string tidy(const char* path) {
  std::string out;
  for (const char* at = path; *at;) {
    if (at[0] == '/') {
      while (*at == '/') ++at;
      while (at[0] == '.' && (at[1] == '/' || at[1] == '\0')) {
        ++at;
        while (*at == '/') ++at;
      }
      if (*at || out.empty()) out += '/';
    } else {
      out += *at++;
    }
  }
  return out;
}

bool is_below(std::string_view path, std::string_view prefix) {
  return path.starts_with(prefix) && (path.size() == prefix.size() || path[prefix.size()] == '/');
}

bool is_rdma_path(std::string_view path) {
  return is_below(path, "/dev/infiniband") || is_below(path, "/sys/class/infiniband") ||
         is_below(path, "/sys/class/infiniband_verbs") || is_below(path, "/sys/class/infiniband_mad") ||
         is_below(path, "/sys/class/infiniband_cm");
}

bool is_interface_name(std::string_view name) {
  const std::string_view pattern = uverbs::kInterfaceName;
  const std::size_t number = pattern.find("%u");  // not constexpr: UBSan's checks for null are no constants to GCC 12
  return name.size() < IF_NAMESIZE && name.starts_with(pattern.substr(0, number)) && name.ends_with(pattern.substr(number + 2));
}

bool is_interface_path(std::string_view path) {
  constexpr std::string_view kClass = "/sys/class/net/";
  if (!path.starts_with(kClass)) return false;
  path.remove_prefix(kClass.size());
  return is_interface_name(path.substr(0, path.find('/')));
}

bool is_shared_path(std::string_view path) {
  return is_below(path, "/sys/bus/pci/devices") || is_below(path, "/sys/devices") || is_interface_path(path);
}

}  // namespace verbena::preload
