#include "preload/interface.h"

#include <errno.h>
#include <linux/ethtool.h>
#include <linux/if_arp.h>
#include <linux/rtnetlink.h>
#include <linux/sockios.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <string>

#include "uverbs/interface.h"

namespace verbena::preload {
namespace {

constexpr unsigned kMost = 16;  // devices of a host
constexpr int kLeastMtu = 68, kMostMtu = 9978;
constexpr short kFlags = IFF_UP | IFF_BROADCAST | IFF_RUNNING | IFF_MULTICAST;
// What a program may change.
constexpr short kOwnFlags = IFF_UP | IFF_PROMISC | IFF_ALLMULTI;
std::array<std::atomic<int>, kMost> mtus;      // 0: as it was
std::array<std::atomic<short>, kMost> flags;   // exclusive or with kFlags

using Mac = std::array<unsigned char, 6>;

const TreeDevice& device_at(const State& state, unsigned index) { return state.tree.devices()[index]; }

std::string attribute(const State& state, unsigned index, const char* name) {
  const Undisturbed guard;
  const TreeDevice& device = device_at(state, index);
  char value[64];
  const std::string file = "device/net/" + device.interface + "/" + name;
  const int length = state.backend->read_sysfs(device.info.ibdev_path, file.c_str(), value, sizeof value);
  return length > 0 ? std::string(value, static_cast<std::size_t>(length)) : std::string();
}

Mac address(const State& state, unsigned index) {
  Mac mac{};
  sscanf(attribute(state, index, "address").c_str(), "%hhx:%hhx:%hhx:%hhx:%hhx:%hhx", &mac[0], &mac[1], &mac[2], &mac[3],
         &mac[4], &mac[5]);
  return mac;
}
bool carrier(const State& state, unsigned index) { return attribute(state, index, "carrier") == "1"; }
unsigned speed(const State& state, unsigned index) {  // Mb/s
  return static_cast<unsigned>(strtoul(attribute(state, index, "speed").c_str(), nullptr, 10));
}
int mtu(const State& state, unsigned index) {
  const int set = mtus[index].load(std::memory_order_relaxed);
  return set ? set : static_cast<int>(strtoul(attribute(state, index, "mtu").c_str(), nullptr, 10));
}
short shown_flags(const State& state, unsigned index) {
  const auto now = static_cast<short>(kFlags ^ flags[index].load(std::memory_order_relaxed));
  return carrier(state, index) ? now : static_cast<short>(now & ~IFF_RUNNING);
}

// ---- ethtool ----

int link_mode(unsigned mbps) {
  switch (mbps) {
    case 10000: return ETHTOOL_LINK_MODE_10000baseKR_Full_BIT;
    case 25000: return ETHTOOL_LINK_MODE_25000baseCR_Full_BIT;
    case 40000: return ETHTOOL_LINK_MODE_40000baseCR4_Full_BIT;
    case 50000: return ETHTOOL_LINK_MODE_50000baseCR2_Full_BIT;
    case 100000: return ETHTOOL_LINK_MODE_100000baseCR4_Full_BIT;
    case 200000: return ETHTOOL_LINK_MODE_200000baseCR4_Full_BIT;
    default: return ETHTOOL_LINK_MODE_400000baseCR4_Full_BIT;
  }
}

// The caller learns first how many words a mask has, by a negative number.
int link_settings(const State& state, unsigned index, ethtool_link_settings* out) {
  constexpr int kWords = 4;
  const int words = out->link_mode_masks_nwords;
  const std::size_t masks = words == kWords ? 3u * kWords : 0u;
  memset(out, 0, sizeof *out + masks * sizeof(std::uint32_t));
  out->cmd = ETHTOOL_GLINKSETTINGS;
  out->link_mode_masks_nwords = words == kWords ? kWords : -kWords;
  if (words != kWords) return 0;
  const unsigned mbps = speed(state, index);
  out->speed = carrier(state, index) ? mbps : static_cast<std::uint32_t>(SPEED_UNKNOWN);
  out->duplex = carrier(state, index) ? DUPLEX_FULL : DUPLEX_UNKNOWN;
  out->port = PORT_DA;
  out->autoneg = AUTONEG_ENABLE;
  const auto bit = static_cast<unsigned>(link_mode(mbps));
  for (unsigned mask = 0; mask < 3; ++mask)  // supported, advertised, advertised by the other end
    out->link_mode_masks[mask * kWords + bit / 32] |= 1u << bit % 32;
  return 0;
}

void copy_text(char* to, std::size_t room, const std::string& text) { snprintf(to, room, "%s", text.c_str()); }

int ethtool(const State& state, unsigned index, void* data) {
  if (data == nullptr) return EFAULT;
  switch (*static_cast<std::uint32_t*>(data)) {
    case ETHTOOL_GLINKSETTINGS: return link_settings(state, index, static_cast<ethtool_link_settings*>(data));
    case ETHTOOL_GLINK:
      static_cast<ethtool_value*>(data)->data = carrier(state, index);
      return 0;
    case ETHTOOL_GDRVINFO: {
      auto* info = static_cast<ethtool_drvinfo*>(data);
      memset(info, 0, sizeof *info);
      info->cmd = ETHTOOL_GDRVINFO;
      copy_text(info->driver, sizeof info->driver, "mlx5_core");
      copy_text(info->bus_info, sizeof info->bus_info, device_at(state, index).slot);
      return 0;
    }
    case ETHTOOL_GPAUSEPARAM:
      *static_cast<ethtool_pauseparam*>(data) = {.cmd = ETHTOOL_GPAUSEPARAM, .autoneg = 0, .rx_pause = 0, .tx_pause = 0};
      return 0;
    default: return EOPNOTSUPP;
  }
}

// ---- SIOC* ----

int answer(const State& state, unsigned index, unsigned long request, ifreq& r) {
  const auto put_mac = [&r](const Mac& mac) {
    r.ifr_hwaddr.sa_family = ARPHRD_ETHER;
    memcpy(r.ifr_hwaddr.sa_data, mac.data(), mac.size());
  };
  switch (request) {
    case SIOCGIFINDEX: r.ifr_ifindex = static_cast<int>(uverbs::kFirstInterface + index); return 0;
    case SIOCGIFNAME: copy_text(r.ifr_name, sizeof r.ifr_name, device_at(state, index).interface); return 0;
    case SIOCGIFFLAGS: r.ifr_flags = shown_flags(state, index); return 0;
    case SIOCSIFFLAGS: flags[index] = static_cast<short>((r.ifr_flags ^ kFlags) & kOwnFlags); return 0;
    case SIOCGIFMTU: r.ifr_mtu = mtu(state, index); return 0;
    case SIOCSIFMTU:
      if (r.ifr_mtu < kLeastMtu || r.ifr_mtu > kMostMtu) return EINVAL;
      mtus[index] = r.ifr_mtu;
      return 0;
    case SIOCGIFHWADDR: put_mac(address(state, index)); return 0;
    case SIOCGIFTXQLEN: r.ifr_qlen = 1000; return 0;
    case SIOCGIFMETRIC: r.ifr_metric = 0; return 0;
    case SIOCETHTOOL: return ethtool(state, index, r.ifr_data);
    case SIOCGIFADDR:
    case SIOCGIFBRDADDR:
    case SIOCGIFNETMASK: return EADDRNOTAVAIL;  // it has no address of the machine's
    default: return EOPNOTSUPP;
  }
}

// ---- rtnetlink ----

// Beyond the types the kernel knows: ours with the index of a device, and whether an acknowledgement is wanted.
constexpr std::uint16_t kQuestion = 0x7e00, kQuestionMask = 0xffe0, kWantsAck = kMost;

class Message {
 public:
  explicit Message(std::uint16_t type, std::uint32_t seq, std::uint32_t port) : start_(0) { begin(type, seq, port); }
  void begin(std::uint16_t type, std::uint32_t seq, std::uint32_t port) {
    start_ = bytes.size();
    const nlmsghdr header{0, type, 0, seq, port};
    put(&header, sizeof header);
  }
  void put(const void* data, std::size_t length) {
    const auto* from = static_cast<const std::byte*>(data);
    bytes.insert(bytes.end(), from, from + length);
    bytes.resize(NLMSG_ALIGN(bytes.size()));
  }
  void attribute(std::uint16_t type, const void* data, std::size_t length) {
    const rtattr head{static_cast<unsigned short>(RTA_LENGTH(length)), type};
    put(&head, sizeof head);
    put(data, length);
  }
  void number(std::uint16_t type, std::uint32_t value) { attribute(type, &value, sizeof value); }
  void end() {
    const auto length = static_cast<std::uint32_t>(bytes.size() - start_);
    memcpy(bytes.data() + start_, &length, sizeof length);
  }
  std::vector<std::byte> bytes;

 private:
  std::size_t start_;
};

std::vector<std::byte> link_answer(const State& state, unsigned index, bool ack, std::uint32_t seq, std::uint32_t port) {
  Message message(RTM_NEWLINK, seq, port);
  ifinfomsg link{};
  link.ifi_type = ARPHRD_ETHER;
  link.ifi_index = static_cast<int>(uverbs::kFirstInterface + index);
  link.ifi_flags = static_cast<unsigned short>(shown_flags(state, index)) | (carrier(state, index) ? unsigned{IFF_LOWER_UP} : 0u);
  message.put(&link, sizeof link);
  const std::string& name = device_at(state, index).interface;
  message.attribute(IFLA_IFNAME, name.c_str(), name.size() + 1);
  message.number(IFLA_TXQLEN, 1000);
  const std::uint8_t up = carrier(state, index) ? 6 : 2, mode = 0;  // IF_OPER_UP, IF_OPER_DOWN
  message.attribute(IFLA_OPERSTATE, &up, 1);
  message.attribute(IFLA_LINKMODE, &mode, 1);
  message.number(IFLA_MTU, static_cast<std::uint32_t>(mtu(state, index)));
  message.number(IFLA_MIN_MTU, kLeastMtu);
  message.number(IFLA_MAX_MTU, kMostMtu);
  const Mac mac = address(state, index), everybody{0xff, 0xff, 0xff, 0xff, 0xff, 0xff};
  message.attribute(IFLA_ADDRESS, mac.data(), mac.size());
  message.attribute(IFLA_BROADCAST, everybody.data(), everybody.size());
  message.attribute(IFLA_QDISC, "mq", 3);
  message.end();
  if (!ack) return std::move(message.bytes);
  message.begin(NLMSG_ERROR, seq, port);
  const nlmsgerr done{0, {sizeof(nlmsghdr), RTM_GETLINK, NLM_F_REQUEST | NLM_F_ACK, seq, port}};
  message.put(&done, sizeof done);
  message.end();
  return std::move(message.bytes);
}

// The device that a question of this datagram is about.
std::optional<unsigned> subject(const State& state, const std::byte* data, std::size_t length, nlmsghdr* header) {
  if (length < NLMSG_LENGTH(sizeof(ifinfomsg))) return std::nullopt;
  memcpy(header, data, sizeof *header);
  if (header->nlmsg_type != RTM_GETLINK || header->nlmsg_flags & NLM_F_DUMP || header->nlmsg_len > length) return std::nullopt;
  ifinfomsg link;
  memcpy(&link, data + NLMSG_HDRLEN, sizeof link);
  if (link.ifi_index != 0) return interface_of_number(state, static_cast<std::uint32_t>(link.ifi_index));
  for (std::size_t at = NLMSG_LENGTH(sizeof link); at + sizeof(rtattr) <= header->nlmsg_len;) {
    rtattr head;
    memcpy(&head, data + at, sizeof head);
    if (head.rta_len < sizeof head || head.rta_len > header->nlmsg_len - at) break;
    if (head.rta_type == IFLA_IFNAME || head.rta_type == IFLA_ALT_IFNAME) {
      const auto* text = reinterpret_cast<const char*>(data + at + sizeof head);
      return interface_of_name(state, {text, strnlen(text, head.rta_len - sizeof head)});
    }
    at += RTA_ALIGN(head.rta_len);
  }
  return std::nullopt;
}

bool is_route_socket(int fd) {
  int domain = 0, protocol = -1;
  socklen_t length = sizeof domain;
  return getsockopt(fd, SOL_SOCKET, SO_DOMAIN, &domain, &length) == 0 && domain == AF_NETLINK &&
         getsockopt(fd, SOL_SOCKET, SO_PROTOCOL, &protocol, &length) == 0 && protocol == NETLINK_ROUTE;
}

}  // namespace

std::optional<unsigned> interface_of_name(const State& state, std::string_view name) {
  const auto& devices = state.tree.devices();
  for (unsigned i = 0; i < devices.size() && i < kMost; ++i)
    if (name == devices[i].interface) return i;
  return std::nullopt;
}

std::optional<unsigned> interface_of_number(const State& state, std::uint32_t number) {
  const std::uint32_t index = number - uverbs::kFirstInterface;
  return index < std::min<std::size_t>(state.tree.devices().size(), kMost) ? std::optional(index) : std::nullopt;
}

int interface_ioctl(const State& state, unsigned long request, void* argument) {
  if (argument == nullptr) return kNotOurs;
  auto& r = *static_cast<ifreq*>(argument);
  const auto index = request == SIOCGIFNAME ? interface_of_number(state, static_cast<std::uint32_t>(r.ifr_ifindex))
                                            : interface_of_name(state, {r.ifr_name, strnlen(r.ifr_name, sizeof r.ifr_name)});
  if (!index) return kNotOurs;
  const int error = answer(state, *index, request, r);
  if (!error) return 0;
  errno = error;
  return -1;
}

std::vector<std::byte> disguised_question(const State& state, int fd, const iovec* pieces, std::size_t count) {
  if (count == 0) return {};
  nlmsghdr header;
  const auto index = subject(state, static_cast<const std::byte*>(pieces[0].iov_base), pieces[0].iov_len, &header);
  const int saved = errno;
  const bool ours = index && is_route_socket(fd);
  errno = saved;
  if (!ours) return {};
  const bool ack = header.nlmsg_flags & NLM_F_ACK;
  const std::size_t length = link_answer(state, *index, ack, 0, 0).size();
  std::vector<std::byte> question(length - NLMSG_LENGTH(sizeof(int)));
  const nlmsghdr disguise{static_cast<std::uint32_t>(question.size()),
                          static_cast<std::uint16_t>(kQuestion | *index | (ack ? kWantsAck : 0u)),
                          NLM_F_REQUEST | NLM_F_ACK, header.nlmsg_seq, header.nlmsg_pid};
  memcpy(question.data(), &disguise, sizeof disguise);
  questions_asked.store(true, std::memory_order_relaxed);
  return question;
}

void reveal_answer(const State& state, const iovec* pieces, std::size_t count, std::size_t length) {
  if (count == 0 || length < NLMSG_LENGTH(sizeof(nlmsgerr)) || pieces[0].iov_len < NLMSG_LENGTH(sizeof(nlmsgerr))) return;
  auto* const data = static_cast<std::byte*>(pieces[0].iov_base);
  nlmsghdr header;
  nlmsgerr refusal;
  memcpy(&header, data, sizeof header);
  memcpy(&refusal, data + NLMSG_HDRLEN, sizeof refusal);
  if (header.nlmsg_type != NLMSG_ERROR || refusal.error == 0 || (refusal.msg.nlmsg_type & kQuestionMask) != kQuestion) return;
  const unsigned what = refusal.msg.nlmsg_type & ~unsigned{kQuestionMask}, index = what % kMost;
  if (index >= state.tree.devices().size()) return;
  const auto truth = link_answer(state, index, what & kWantsAck, header.nlmsg_seq, header.nlmsg_pid);
  memcpy(data, truth.data(), std::min({truth.size(), length, pieces[0].iov_len}));
}

}  // namespace verbena::preload
