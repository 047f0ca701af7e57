// Interposers of what names network interfaces by number.
#include <errno.h>
#include <linux/sockios.h>
#include <net/if.h>
#include <string.h>

#include "preload/interface.h"
#include "preload/next.h"

#define EXPORT extern "C" __attribute__((visibility("default")))

using namespace verbena::preload;

EXPORT unsigned if_nametoindex(const char* name) {
  if (name && is_interface_name({name, strnlen(name, IF_NAMESIZE)})) [[unlikely]]
    if (const State* now = wake())
      if (const auto index = interface_of_name(*now, name)) {
        ifreq request{};
        memcpy(request.ifr_name, name, strnlen(name, IF_NAMESIZE - 1));
        if (interface_ioctl(*now, SIOCGIFINDEX, &request) == 0) return static_cast<unsigned>(request.ifr_ifindex);
      }
  return next<"if_nametoindex", unsigned(const char*)>()(name);
}

EXPORT char* if_indextoname(unsigned number, char* name) {
  if (const State* now = state())
    if (const auto index = interface_of_number(*now, number))
      return strcpy(name, now->tree.devices()[*index].interface.c_str());
  return next<"if_indextoname", char*(unsigned, char*)>()(number, name);
}
