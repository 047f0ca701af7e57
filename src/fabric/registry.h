// The machine-wide table of virtual hosts and of the GIDs of their ports: who is reached by which address.
//
// One file, <run dir>/registry, mapped by every process. Written rarely (under flock), read by anyone at any time
// (a sequence word per entry), never trusted. GIDs are found by hash.
// Threads: any.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "fabric/packet.h"
#include "support/result.h"

namespace verbena::fabric {

struct Route {
  std::uint32_t host = 0;   // index in the registry
  std::uint8_t device = 0;  // of that host
  std::uint8_t port = 0;    // 1-based
};

class Registry {
 public:
  // The registry of `run_dir`, shared by everything in this process that asks for the same dir; created if missing.
  static Result<std::shared_ptr<Registry>> open(const std::string& run_dir);
  ~Registry();

  // The index of `host`, registering it if it is new.
  Result<std::uint32_t> host_index(const std::string& host);
  // Its name, or empty.
  std::string host_name(std::uint32_t index) const;

  std::optional<Route> find(const Gid& gid) const;
  // Adding what is there is no error. A GID may stand at several indices of a port (RoCE v1 and v2): the caller
  // removes it with the last one. 0 or an errno.
  int add(const Gid& gid, const Route& route);
  int remove(const Gid& gid, const Route& route);
  // Changes whenever a route does: lets callers keep what they found.
  std::uint64_t version() const;
  // What a route leads to has changed (a port went down or up).
  void touch();

 private:
  struct File;
  Registry();
  std::unique_ptr<File> file_;
};

}  // namespace verbena::fabric
