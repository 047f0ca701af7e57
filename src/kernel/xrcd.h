// XRC: domains, which processes share by a file, target queue pairs, which contexts share by their number, and what the
// driver puts into the contexts of XRC queue pairs.
//
// Threads: XrcState has its own lock; lock order is File, XrcState, and the device may be called under both.
#pragma once

#include <rdma/ib_user_ioctl_cmds.h>

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>

#include "kernel/ib.h"
#include "kernel/object.h"

namespace verbena::kernel {

class Node;

struct Xrcd : Object {
  Xrcd() : Object(UVERBS_OBJECT_XRCD) {}
  int destroy(File& file) override;

  std::uint32_t xrcdn = 0;
};

// An XRC target queue pair: what its handles have in common. It lives as long as one of them.
struct TargetQp {
  std::mutex lock;  // of a modification as a whole
  std::uint32_t qpn = 0, xrcdn = 0;
  bool elsewhere = false;  // another process made it: there is nothing but its number here
  // as Qp has them
  QpState state = QpState::reset;
  std::uint8_t port = 0, dest_rd_atomic = 0;
  std::uint32_t access = 0;
};

// The driver's own objects, which stand in contexts where nothing of the program's does.
struct XrcDefaults {
  std::uint32_t pdn = 0, cqn = 0, srqn = 0;
  std::uint32_t initiator_xrcd = 0;
};

// What a Node keeps of it for all its Files.
class XrcState {
 public:
  // A domain by file, or a new one (fd -1). 0 or an errno.
  int open(Node& node, int fd, int oflags, std::uint32_t* xrcdn);
  int close(Node& node, std::uint32_t xrcdn);

  // Made on first use.
  int defaults(Node& node, XrcDefaults* out);

  void add_target(const std::shared_ptr<TargetQp>& target);
  // Null: no such queue pair in this domain.
  std::shared_ptr<TargetQp> find_target(Node& node, std::uint32_t qpn, std::uint32_t xrcdn);
  // A handle let go of it. True: it was the last.
  bool leave_target(std::shared_ptr<TargetQp>& target);

 private:
  int make_defaults(Node& node);

  std::mutex lock_;
  std::map<std::uint32_t, std::uint32_t> opens_;  // handles of a domain, by its number
  std::map<std::uint32_t, std::weak_ptr<TargetQp>> targets_;
  XrcDefaults defaults_;
  bool has_defaults_ = false;
};

}  // namespace verbena::kernel
