// ibv_resolve_eth_l2_from_gid(): the MAC address and VLAN behind a destination GID.
//
// Multicast and EUI-64 link-local GIDs hold their MAC. For all others the host's neighbour table is asked (rtnetlink),
// after a datagram to the discard port has made the host resolve the address. The embedded device's addresses mean
// nothing to the host: there the device resolves, as the kernel does when an address handle is created.
#include <arpa/inet.h>
#include <linux/if_link.h>
#include <linux/neighbour.h>
#include <linux/netlink.h>
#include <linux/rtnetlink.h>
#include <net/if.h>
#include <netinet/in.h>
#include <poll.h>
#include <rdma/mlx5-abi.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>

#include "verbs/internal.h"

namespace verbena::verbs {
namespace {

constexpr std::uint16_t kNoVlan = 0xffff;
constexpr int kPatienceMs = 3000;
constexpr int kStepMs = 20;

struct Mac {
  std::uint8_t bytes[6];
};

bool is_mapped_ipv4(const ibv_gid& gid) {
  static constexpr std::uint8_t kPrefix[12] = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff};
  return std::memcmp(gid.raw, kPrefix, sizeof kPrefix) == 0;
}

// RFC 1112 and RFC 2464 mappings.
bool from_multicast(const ibv_gid& gid, Mac* mac) {
  if (gid.raw[0] == 0xff) {
    // ff0e::ffff:a.b.c.d is an IPv4 group.
    bool ipv4 = gid.raw[1] == 0x0e && gid.raw[10] == 0xff && gid.raw[11] == 0xff;
    if (ipv4)
      *mac = {{0x01, 0x00, 0x5e, static_cast<std::uint8_t>(gid.raw[13] & 0x7f), gid.raw[14], gid.raw[15]}};
    else
      *mac = {{0x33, 0x33, gid.raw[12], gid.raw[13], gid.raw[14], gid.raw[15]}};
    return true;
  }
  if (is_mapped_ipv4(gid) && (gid.raw[12] & 0xf0) == 0xe0) {
    *mac = {{0x01, 0x00, 0x5e, static_cast<std::uint8_t>(gid.raw[13] & 0x7f), gid.raw[14], gid.raw[15]}};
    return true;
  }
  return false;
}

bool from_link_local(const ibv_gid& gid, Mac* mac) {
  bool eui64 = gid.raw[0] == 0xfe && (gid.raw[1] & 0xc0) == 0x80 && gid.raw[11] == 0xff && gid.raw[12] == 0xfe;
  if (!eui64) return false;
  *mac = {
      {static_cast<std::uint8_t>(gid.raw[8] ^ 0x02), gid.raw[9], gid.raw[10], gid.raw[13], gid.raw[14], gid.raw[15]}};
  return true;
}

struct Address {
  int family;
  std::uint8_t bytes[16];
  std::size_t length;

  explicit Address(const ibv_gid& gid) {
    bool ipv4 = is_mapped_ipv4(gid);
    family = ipv4 ? AF_INET : AF_INET6;
    length = ipv4 ? 4 : 16;
    std::memcpy(bytes, gid.raw + (ipv4 ? 12 : 0), length);
  }
};

// Sends one empty datagram, so that the host looks for the neighbour.
void provoke(const Address& to, unsigned ifindex) {
  constexpr std::uint16_t kDiscard = 9;
  int fd = socket(to.family, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  if (fd < 0) return;
  sockaddr_storage storage{};
  socklen_t length = 0;
  if (to.family == AF_INET) {
    auto* in = reinterpret_cast<sockaddr_in*>(&storage);
    in->sin_family = AF_INET;
    in->sin_port = htons(kDiscard);
    std::memcpy(&in->sin_addr, to.bytes, 4);
    length = sizeof *in;
  } else {
    auto* in = reinterpret_cast<sockaddr_in6*>(&storage);
    in->sin6_family = AF_INET6;
    in->sin6_port = htons(kDiscard);
    in->sin6_scope_id = ifindex;
    std::memcpy(&in->sin6_addr, to.bytes, 16);
    length = sizeof *in;
  }
  (void)sendto(fd, "", 0, MSG_NOSIGNAL, reinterpret_cast<sockaddr*>(&storage), length);
  close(fd);
}

// One RTM_GETNEIGH dump for the interface. 1 found, 0 not there (yet), negative errno.
class NeighbourTable {
 public:
  NeighbourTable() : fd_(socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_ROUTE)) {}
  ~NeighbourTable() {
    if (fd_ >= 0) close(fd_);
  }
  NeighbourTable(const NeighbourTable&) = delete;
  NeighbourTable& operator=(const NeighbourTable&) = delete;

  int find(const Address& address, unsigned ifindex, Mac* mac) {
    if (fd_ < 0) return -errno;
    struct {
      nlmsghdr head;
      ndmsg body;
    } request{};
    request.head.nlmsg_len = sizeof request;
    request.head.nlmsg_type = RTM_GETNEIGH;
    request.head.nlmsg_flags = NLM_F_REQUEST | NLM_F_DUMP;
    request.head.nlmsg_seq = ++sequence_;
    request.body.ndm_family = static_cast<std::uint8_t>(address.family);
    if (send(fd_, &request, sizeof request, 0) < 0) return -errno;
    int found = 0;
    for (;;) {
      alignas(nlmsghdr) char buffer[16384];
      pollfd wait{fd_, POLLIN, 0};
      if (poll(&wait, 1, kPatienceMs) <= 0) return -ETIMEDOUT;
      ssize_t got = recv(fd_, buffer, sizeof buffer, 0);
      if (got < 0) return -errno;
      auto left = static_cast<unsigned>(got);
      for (auto* head = reinterpret_cast<nlmsghdr*>(buffer); NLMSG_OK(head, left); head = NLMSG_NEXT(head, left)) {
        if (head->nlmsg_seq != sequence_) continue;
        if (head->nlmsg_type == NLMSG_DONE) return found;
        if (head->nlmsg_type == NLMSG_ERROR) return -EIO;
        if (head->nlmsg_type == RTM_NEWNEIGH && matches(head, address, ifindex, mac)) found = 1;
      }
    }
  }

 private:
  static bool matches(nlmsghdr* head, const Address& address, unsigned ifindex, Mac* mac) {
    auto* body = static_cast<ndmsg*>(NLMSG_DATA(head));
    constexpr unsigned kUsable = NUD_PERMANENT | NUD_NOARP | NUD_REACHABLE | NUD_STALE | NUD_DELAY | NUD_PROBE;
    if (!(body->ndm_state & kUsable) || (ifindex && static_cast<unsigned>(body->ndm_ifindex) != ifindex)) return false;
    const void* destination = nullptr;
    const void* link = nullptr;
    long left = static_cast<long>(head->nlmsg_len) - static_cast<long>(NLMSG_LENGTH(sizeof *body));
    auto* attr = reinterpret_cast<rtattr*>(reinterpret_cast<char*>(body) + NLMSG_ALIGN(sizeof *body));
    for (; RTA_OK(attr, left); attr = RTA_NEXT(attr, left)) {
      if (attr->rta_type == NDA_DST && RTA_PAYLOAD(attr) == address.length) destination = RTA_DATA(attr);
      if (attr->rta_type == NDA_LLADDR && RTA_PAYLOAD(attr) == sizeof mac->bytes) link = RTA_DATA(attr);
    }
    if (!destination || !link || std::memcmp(destination, address.bytes, address.length) != 0) return false;
    std::memcpy(mac->bytes, link, sizeof mac->bytes);
    return true;
  }

  int fd_;
  std::uint32_t sequence_ = 0;
};

int from_neighbours(const ibv_gid& gid, unsigned ifindex, Mac* mac) {
  Address address(gid);
  NeighbourTable table;
  for (int waited = 0; waited <= kPatienceMs; waited += kStepMs) {
    int found = table.find(address, ifindex, mac);
    if (found) return found > 0 ? 0 : found;
    if (waited == 0) provoke(address, ifindex);
    poll(nullptr, 0, kStepMs);
  }
  return -EHOSTUNREACH;
}

int from_device(ibv_context* context, const ibv_ah_attr& attr, Mac* mac) {
  ibv_pd pd{};
  if (int error = verbena_cmd_alloc_pd(context, &pd, nullptr)) return -error;
  mlx5_ib_create_ah_resp resolved{};
  Udata udata{.out = &resolved, .out_length = sizeof resolved};
  ibv_ah ah{};
  int error = verbena_cmd_create_ah(&pd, &ah, &attr, &udata);
  if (!error) {
    std::memcpy(mac->bytes, resolved.dmac, sizeof mac->bytes);
    verbena_cmd_destroy_ah(&ah);
  }
  verbena_cmd_dealloc_pd(&pd);
  return -error;
}

// VLAN of a network interface named "<parent>.<id>" or as /proc/net/vlan knows it.
std::uint16_t vlan_of(unsigned ifindex) {
  char name[IF_NAMESIZE];
  if (!ifindex || !if_indextoname(ifindex, name)) return kNoVlan;
  const char* dot = std::strrchr(name, '.');
  if (!dot) return kNoVlan;
  char* end = nullptr;
  unsigned long id = std::strtoul(dot + 1, &end, 10);
  return end != dot + 1 && *end == '\0' && id <= 0xfff ? static_cast<std::uint16_t>(id) : kNoVlan;
}

}  // namespace
}  // namespace verbena::verbs

using namespace verbena::verbs;

extern "C" int ibv_resolve_eth_l2_from_gid(ibv_context* context, ibv_ah_attr* attr, std::uint8_t eth_mac[6],
                                           std::uint16_t* vid) {
  ibv_gid_entry source{};
  int error = query_gid_entry(context, attr->port_num, attr->grh.sgid_index, &source, 0, sizeof source, kGidAll);
  if (error) return -report(error);
  Mac mac{};
  const ibv_gid& to = attr->grh.dgid;
  if (!from_multicast(to, &mac) && !from_link_local(to, &mac))
    error = context_of(context)->backend->alloc_dma ? from_device(context, *attr, &mac)
                                                    : from_neighbours(to, source.ndev_ifindex, &mac);
  if (error) return -report(-error);
  std::memcpy(eth_mac, mac.bytes, sizeof mac.bytes);
  if (vid) *vid = vlan_of(source.ndev_ifindex);
  return 0;
}
