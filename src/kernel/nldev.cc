#include "kernel/nldev.h"

#include <net/if.h>
#include <rdma/ib_user_verbs.h>
#include <rdma/rdma_netlink.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <string>

#include "kernel/counters.h"
#include "kernel/device_query.h"
#include "kernel/ib.h"
#include "kernel/port.h"
#include "kernel/privilege.h"
#include "uverbs/backend.h"
#include "uverbs/interface.h"

namespace verbena::kernel {
namespace {

using Nodes = std::span<const std::shared_ptr<Node>>;

constexpr std::uint16_t answer_type(unsigned op) { return static_cast<std::uint16_t>(RDMA_NL_NLDEV << 10 | op); }

constexpr unsigned kPorts = 1;  // as the verbs see the device
constexpr std::uint8_t kNodeTypeCa = 1, kSharedNamespaces = 1;

int put_device(NetlinkAnswer& answer, Node& node) {
  std::uint64_t guid = 0;
  if (int error = node.node_guid(&guid)) return error;
  put_handle(answer, node);
  answer.put(RDMA_NLDEV_ATTR_PORT_INDEX, std::uint32_t{kPorts});
  answer.put(RDMA_NLDEV_ATTR_CAP_FLAGS, std::uint64_t{capability_flags(node.caps())});
  answer.put(RDMA_NLDEV_ATTR_FW_VERSION, node.profile().firmware_text());
  answer.put(RDMA_NLDEV_ATTR_NODE_GUID, __builtin_bswap64(guid));
  answer.put(RDMA_NLDEV_ATTR_SYS_IMAGE_GUID, __builtin_bswap64(guid));
  answer.put(RDMA_NLDEV_ATTR_DEV_NODE_TYPE, kNodeTypeCa);
  answer.put(RDMA_NLDEV_ATTR_DEV_DIM, std::uint8_t{1});
  answer.put(RDMA_NLDEV_ATTR_DEV_PROTOCOL, "roce");
  return 0;
}

// The network interface of the port: a virtual one, or of the first device that of the machine which
// `verbena run --netdev` names.
void put_interface(NetlinkAnswer& answer, const Node& node) {
  const char* named = std::getenv("VERBENA_NETDEV");
  std::uint32_t index = named && *named && node.index() == 0 ? if_nametoindex(named) : 0;
  char name[IF_NAMESIZE];
  std::snprintf(name, sizeof name, uverbs::kInterfaceName, node.index());
  if (!index) index = uverbs::kFirstInterface + node.index(), named = name;
  answer.put(RDMA_NLDEV_ATTR_NDEV_INDEX, index);
  answer.put(RDMA_NLDEV_ATTR_NDEV_NAME, std::string(named));
}

int put_port(NetlinkAnswer& answer, Node& node, std::uint32_t number) {
  ib_uverbs_query_port_resp port;
  if (int error = query_port(node, number, &port)) return error;
  put_handle(answer, node);
  answer.put(RDMA_NLDEV_ATTR_PORT_INDEX, number);
  answer.put(RDMA_NLDEV_ATTR_PORT_STATE, port.state);
  answer.put(RDMA_NLDEV_ATTR_PORT_PHYS_STATE, port.phys_state);
  put_interface(answer, node);
  return 0;
}

// A message of its own for each of what is dumped.
template <class Put>
int add_message(NetlinkAnswer& answer, unsigned op, bool part_of_dump, Put put) {
  answer.begin(answer_type(op), part_of_dump ? NLM_F_MULTI : 0);
  const int error = put();
  if (error)
    answer.cancel();
  else
    answer.end();
  return error;
}

int get_device(Nodes nodes, const NetlinkRequest& request, bool dump, NetlinkAnswer& answer) {
  if (!dump) {
    Node* node = named_node(nodes, request);
    return node ? add_message(answer, RDMA_NLDEV_CMD_GET, false, [&] { return put_device(answer, *node); }) : EINVAL;
  }
  for (const auto& node : nodes) add_message(answer, RDMA_NLDEV_CMD_GET, true, [&] { return put_device(answer, *node); });
  return 0;
}

int get_port(Nodes nodes, const NetlinkRequest& request, bool dump, NetlinkAnswer& answer) {
  Node* node = named_node(nodes, request);
  if (!node) return EINVAL;
  std::uint32_t number = 0;
  if (!dump) {
    if (!request.get(RDMA_NLDEV_ATTR_PORT_INDEX, &number) || number < 1 || number > kPorts) return EINVAL;
    return add_message(answer, RDMA_NLDEV_CMD_PORT_GET, false, [&] { return put_port(answer, *node, number); });
  }
  for (number = 1; number <= kPorts; ++number)
    add_message(answer, RDMA_NLDEV_CMD_PORT_GET, true, [&] { return put_port(answer, *node, number); });
  return 0;
}

int get_chardev(Nodes nodes, const NetlinkRequest& request, NetlinkAnswer& answer) {
  std::string_view type;
  if (!request.get(RDMA_NLDEV_ATTR_CHARDEV_TYPE, &type)) return EINVAL;
  Node* node = named_node(nodes, request);
  if (request.has(RDMA_NLDEV_ATTR_DEV_INDEX) && !node) return EINVAL;
  if (!node || type != "uverbs") return EOPNOTSUPP;  // the other nodes (umad, rdma_cm) do not exist
  return add_message(answer, RDMA_NLDEV_CMD_GET_CHARDEV, false, [&] {
    constexpr std::uint64_t kDriverAbi = 1;
    put_handle(answer, *node);
    answer.put(RDMA_NLDEV_ATTR_UVERBS_DRIVER_ID, std::uint32_t{kDriverId});
    answer.put(RDMA_NLDEV_ATTR_CHARDEV, std::uint64_t{uverbs::kUverbsMajor << 8 | (uverbs::kUverbsFirstMinor + node->index())});
    answer.put(RDMA_NLDEV_ATTR_CHARDEV_ABI, kDriverAbi);
    answer.put(RDMA_NLDEV_ATTR_CHARDEV_NAME, "uverbs" + std::to_string(node->index()));
    return 0;
  });
}

int get_system(NetlinkAnswer& answer) {
  return add_message(answer, RDMA_NLDEV_CMD_SYS_GET, false, [&] {
    answer.put(RDMA_NLDEV_SYS_ATTR_NETNS_MODE, kSharedNamespaces);
    answer.put(RDMA_NLDEV_SYS_ATTR_COPY_ON_FORK, std::uint8_t{1});
    return 0;
  });
}

// The counters of a port. Those of single QPs (STAT_RES) need counters that are bound to them: there are none.
int get_statistics(Nodes nodes, const NetlinkRequest& request, bool dump, NetlinkAnswer& answer) {
  std::uint32_t resource = 0, number = 0;
  const bool of_resource = request.get(RDMA_NLDEV_ATTR_STAT_RES, &resource);
  if (dump) return of_resource && (resource == RDMA_NLDEV_ATTR_RES_QP || resource == RDMA_NLDEV_ATTR_RES_MR) ? 0 : EINVAL;
  Node* node = named_node(nodes, request);
  if (!node || of_resource) return EINVAL;
  if (!request.get(RDMA_NLDEV_ATTR_PORT_INDEX, &number) || number < 1 || number > kPorts) return EINVAL;
  return add_message(answer, RDMA_NLDEV_CMD_STAT_GET, false, [&] {
    put_handle(answer, *node);
    answer.put(RDMA_NLDEV_ATTR_PORT_INDEX, number);
    const std::size_t table = answer.open(RDMA_NLDEV_ATTR_STAT_HWCOUNTERS);
    for (const std::string_view name : hw_counter_names()) {
      std::uint64_t value = 0;
      if (int error = read_counter(*node, std::string(name), &value)) return error;
      const std::size_t entry = answer.open(RDMA_NLDEV_ATTR_STAT_HWCOUNTER_ENTRY);
      answer.put(RDMA_NLDEV_ATTR_STAT_HWCOUNTER_ENTRY_NAME, name);
      answer.put(RDMA_NLDEV_ATTR_STAT_HWCOUNTER_ENTRY_VALUE, value);
      answer.close(entry);
    }
    answer.close(table);
    return 0;
  });
}

// What only an administrator may ask. Nothing of it exists here: names, namespaces and counters stay as they are.
bool needs_privilege(unsigned op) {
  switch (op) {
    case RDMA_NLDEV_CMD_SET:
    case RDMA_NLDEV_CMD_NEWLINK:
    case RDMA_NLDEV_CMD_DELLINK:
    case RDMA_NLDEV_CMD_SYS_SET:
    case RDMA_NLDEV_CMD_STAT_SET:
    case RDMA_NLDEV_CMD_STAT_DEL:
    case RDMA_NLDEV_CMD_RES_QP_GET_RAW:
    case RDMA_NLDEV_CMD_RES_CQ_GET_RAW:
    case RDMA_NLDEV_CMD_RES_MR_GET_RAW: return true;
    default: return false;
  }
}

int execute(Nodes nodes, const NetlinkRequest& request, bool* dumped, NetlinkAnswer& answer) {
  const unsigned client = request.header().nlmsg_type >> 10 & 0x3f, op = request.header().nlmsg_type & 0x3ff;
  if (client != RDMA_NL_NLDEV || op == RDMA_NLDEV_CMD_UNSPEC || op >= RDMA_NLDEV_NUM_OPS) return EINVAL;
  if (needs_privilege(op)) return may_administer_network() ? EOPNOTSUPP : EPERM;
  const bool dump = request.header().nlmsg_flags & NLM_F_DUMP;  // either bit, as the kernel takes it
  *dumped = dump;
  switch (op) {
    case RDMA_NLDEV_CMD_GET: return get_device(nodes, request, dump, answer);
    case RDMA_NLDEV_CMD_PORT_GET: return get_port(nodes, request, dump, answer);
    case RDMA_NLDEV_CMD_STAT_GET: return get_statistics(nodes, request, dump, answer);
    case RDMA_NLDEV_CMD_SYS_GET: return dump ? EINVAL : get_system(answer);
    case RDMA_NLDEV_CMD_GET_CHARDEV: return dump ? EINVAL : get_chardev(nodes, request, answer);
    default: return answer_resources(nodes, request, op, answer);
  }
}

}  // namespace

Node* named_node(Nodes nodes, const NetlinkRequest& request) {
  std::uint32_t index = 0;
  if (!request.get(RDMA_NLDEV_ATTR_DEV_INDEX, &index)) return nullptr;
  for (const auto& node : nodes)
    if (node->index() == index) return node.get();
  return nullptr;
}

void put_handle(NetlinkAnswer& answer, const Node& node) {
  answer.put(RDMA_NLDEV_ATTR_DEV_INDEX, std::uint32_t{node.index()});
  answer.put(RDMA_NLDEV_ATTR_DEV_NAME, node.name());
}

void answer_netlink(Nodes nodes, std::span<const std::byte> datagram, const NetlinkCaller& caller,
                    const NetlinkSink& sink) {
  while (datagram.size() >= NLMSG_HDRLEN) {
    nlmsghdr header;
    std::memcpy(&header, datagram.data(), sizeof header);
    if (header.nlmsg_len < NLMSG_HDRLEN || header.nlmsg_len > datagram.size()) return;  // as the kernel: in silence
    const std::span message = datagram.first(header.nlmsg_len);
    datagram = datagram.subspan(std::min<std::size_t>(NLMSG_ALIGN(header.nlmsg_len), datagram.size()));
    if (!(header.nlmsg_flags & NLM_F_REQUEST)) continue;

    NetlinkAnswer answer(header, caller.port, sink);
    int error = 0;
    bool dumped = false;
    if (header.nlmsg_type >= NLMSG_MIN_TYPE) {
      NetlinkRequest request;
      error = request.parse(message) ? execute(nodes, request, &dumped, answer) : EINVAL;
    }
    if (dumped && !error)
      answer.done();
    else if (error || header.nlmsg_flags & NLM_F_ACK)
      answer.acknowledge(error, message, caller.capped);
    answer.flush();
  }
}

}  // namespace verbena::kernel
