// NETLINK_RDMA as the kernel speaks it (drivers/infiniband/core/nldev.c): devices, ports, counters, resources.
//
// Threads: any.
#pragma once

#include <cstdint>
#include <memory>
#include <span>

#include "kernel/netlink_message.h"
#include "kernel/node.h"

namespace verbena::kernel {

struct NetlinkCaller {
  std::uint32_t port;  // of the socket
  bool capped;         // NETLINK_CAP_ACK: acknowledgements do not repeat the request
};

// Answers one datagram that was sent to the kernel: any number of requests.
void answer_netlink(std::span<const std::shared_ptr<Node>> nodes, std::span<const std::byte> datagram,
                    const NetlinkCaller& caller, const NetlinkSink& sink);

// Of nldev_resources.cc: RDMA_NLDEV_CMD_RES_*. 0 or an errno; EOPNOTSUPP if `op` is none of them.
int answer_resources(std::span<const std::shared_ptr<Node>> nodes, const NetlinkRequest& request, unsigned op,
                     NetlinkAnswer& answer);
// The device that a request names; null if there is none.
Node* named_node(std::span<const std::shared_ptr<Node>> nodes, const NetlinkRequest& request);
// Attributes that every answer about a device begins with.
void put_handle(NetlinkAnswer& answer, const Node& node);

}  // namespace verbena::kernel
