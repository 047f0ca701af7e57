// Which paths of the file system the virtual node owns. Pure functions over strings.
//
// Threads: any.
#pragma once

#include <string>
#include <string_view>

namespace verbena::preload {

// The one check that every intercepted call makes: whether the path can be ours at all.
inline bool worth_a_look(const char* path) {
  if (path == nullptr || path[0] != '/') return false;
  if (path[1] == 's') return path[2] == 'y' && path[3] == 's';
  return path[1] == 'd' && path[2] == 'e' && path[3] == 'v' && path[4] == '/' && (path[5] == 'i' || path[5] == '/');
}

// Doubled slashes and "." components removed; ".." stays, for symbolic links give it its meaning.
std::string tidy(const char* path);

// Whether `path` is `prefix` or lies below it.
bool is_below(std::string_view path, std::string_view prefix);

// Paths that exist for RDMA alone: touching one of them brings the virtual device to life.
bool is_rdma_path(std::string_view path);

// Whether a network interface may be the one of an emulated port (uverbs/interface.h), and its folder in sysfs.
bool is_interface_name(std::string_view name);
bool is_interface_path(std::string_view path);

// Paths where our device is one among the host's own: the PCI bus and its devices.
bool is_shared_path(std::string_view path);

}  // namespace verbena::preload
