// The virtual part of the file system as real files: a skeleton of /sys and /dev in the run directory, built once for
// a virtual host and then shared by its processes. Attribute files hold what was true when the tree was made; whoever
// opens one gets the present value from the Backend (Tree::attribute).
//
// Threads: build() belongs to one thread; a built Tree is constant.
#pragma once

#include <sys/stat.h>
#include <sys/types.h>

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "support/result.h"
#include "uverbs/backend.h"

namespace verbena::preload {

struct TreeDevice {
  uverbs::DeviceInfo info;
  std::string slot;       // "0000:c8:00.0"
  std::string directory;  // "/sys/devices/pci0000:c8/0000:c8:00.0"
  std::string interface;  // "enp200s0np0"
  dev_t number = 0;       // of the uverbs node
  ino_t placeholder = 0;  // inode of its stand-in in the tree
  unsigned ports = 1, gids = 0, pkeys = 0;
};

class Tree {
 public:
  // `run_dir` is created if need be; `host` names the virtual host.
  static Result<Tree> build(const uverbs::Backend& backend, const std::string& run_dir, const std::string& host);

  const std::string& root() const { return root_; }
  const std::vector<TreeDevice>& devices() const { return devices_; }

  // The real path that stands for a virtual one; nothing if the host's own file is meant. `path` is tidy.
  std::optional<std::string> real_path(std::string_view path) const;
  // The virtual path of a real one in the tree; nothing if it is not in the tree.
  std::optional<std::string_view> virtual_path(std::string_view real) const;

  // The device whose node this virtual path is ("/dev/infiniband/uverbs0"); -1 if it is none.
  int node_of(std::string_view path) const;
  // Makes the status of a stand-in look like the node's. Returns whether it was one.
  bool disguise(struct stat* status) const;
  // What the Backend says of an attribute by its canonical virtual path, newline included. Errors: errno; ENOENT if
  // the Backend does not know it, and then the file in the tree holds its value.
  Result<std::string> attribute(const uverbs::Backend& backend, std::string_view path) const;

 private:
  std::string root_;
  dev_t file_system_ = 0;
  std::vector<TreeDevice> devices_;
};

// One file, folder or link of the tree; exposed for tests.
struct TreeEntry {
  enum Kind { folder, file, link } kind;
  std::string path;     // below the root, "/sys/..."
  std::string content;  // of a file; target of a link
};
std::vector<TreeEntry> describe(const uverbs::Backend& backend, const std::vector<TreeDevice>& devices);

}  // namespace verbena::preload
