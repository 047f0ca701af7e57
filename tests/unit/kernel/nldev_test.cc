// NETLINK_RDMA: what is asked, what is answered, and what is not.
#include "kernel/nldev.h"

#include <net/if.h>
#include <rdma/rdma_netlink.h>

#include <random>

#include "tests/unit/kernel/node_fixture.h"

namespace verbena::kernel {
namespace {

struct Message {
  nlmsghdr header;
  std::vector<std::byte> bytes;
};

class NldevTest : public NodeTest {
 protected:
  static constexpr std::uint16_t type(unsigned op) { return static_cast<std::uint16_t>(RDMA_NL_NLDEV << 10 | op); }

  // A request with 32-bit attributes.
  static std::vector<std::byte> request(std::uint16_t kind, std::uint16_t flags,
                                        std::initializer_list<std::pair<unsigned, std::uint32_t>> attributes) {
    std::vector<std::byte> out;
    const NetlinkSink sink = [&](std::span<const std::byte> datagram) { out.assign(datagram.begin(), datagram.end()); };
    NetlinkAnswer writer({0, 0, 0, 77, 0}, 0, sink);
    writer.begin(kind, static_cast<std::uint16_t>(NLM_F_REQUEST | flags));
    for (const auto& [attribute, value] : attributes) writer.put(attribute, value);
    writer.end();
    writer.flush();
    return out;
  }
  std::vector<Message> ask(std::span<const std::byte> datagram, bool capped = true) {
    std::vector<Message> messages;
    datagrams_ = 0;
    const std::shared_ptr<Node> nodes[] = {node_};
    answer_netlink(nodes, datagram, {4711, capped}, [&](std::span<const std::byte> answer) {
      ++datagrams_;
      EXPECT_LE(answer.size(), NetlinkAnswer::kDatagram);
      while (!answer.empty()) {
        Message message;
        ASSERT_GE(answer.size(), sizeof message.header);
        std::memcpy(&message.header, answer.data(), sizeof message.header);
        ASSERT_LE(message.header.nlmsg_len, answer.size());
        message.bytes.assign(answer.begin(), answer.begin() + message.header.nlmsg_len);
        answer = answer.subspan(std::min<std::size_t>(NLMSG_ALIGN(message.header.nlmsg_len), answer.size()));
        messages.push_back(std::move(message));
      }
    });
    return messages;
  }
  std::vector<Message> ask(unsigned op, std::uint16_t flags,
                           std::initializer_list<std::pair<unsigned, std::uint32_t>> attributes = {}) {
    return ask(request(type(op), flags, attributes));
  }
  // The errno of an acknowledgement; -1 if the message is none.
  static int error_of(const Message& message) {
    int error = 0;
    if (message.header.nlmsg_type != NLMSG_ERROR) return -1;
    std::memcpy(&error, message.bytes.data() + NLMSG_HDRLEN, sizeof error);
    return -error;
  }
  // How many attributes of kind `entry` the tables of `messages` hold.
  static unsigned entries(const std::vector<Message>& messages, unsigned table) {
    unsigned count = 0;
    for (const Message& message : messages) {
      NetlinkRequest parsed;
      if (message.header.nlmsg_type < NLMSG_MIN_TYPE || !parsed.parse(message.bytes) || !parsed.has(table)) continue;
      for (auto rest = parsed.get(table); rest.size() >= NLA_HDRLEN; ++count) {
        nlattr attribute;
        std::memcpy(&attribute, rest.data(), sizeof attribute);
        rest = rest.subspan(std::min<std::size_t>(NLA_ALIGN(attribute.nla_len), rest.size()));
      }
    }
    return count;
  }

  unsigned datagrams_ = 0;
};

TEST_F(NldevTest, NamesTheDevice) {
  const auto messages = ask(RDMA_NLDEV_CMD_GET, NLM_F_DUMP);
  ASSERT_EQ(messages.size(), 2u);
  EXPECT_EQ(messages[0].header.nlmsg_type, type(RDMA_NLDEV_CMD_GET));
  EXPECT_EQ(messages[0].header.nlmsg_flags, NLM_F_MULTI);
  EXPECT_EQ(messages[0].header.nlmsg_seq, 77u);
  EXPECT_EQ(messages[0].header.nlmsg_pid, 4711u);
  NetlinkRequest parsed;
  ASSERT_TRUE(parsed.parse(messages[0].bytes));
  std::string_view name;
  std::uint32_t ports = 0;
  EXPECT_TRUE(parsed.get(RDMA_NLDEV_ATTR_DEV_NAME, &name) && name == "mlx5_0");
  EXPECT_TRUE(parsed.get(RDMA_NLDEV_ATTR_PORT_INDEX, &ports) && ports == 1);
  EXPECT_EQ(messages[1].header.nlmsg_type, NLMSG_DONE);
}

TEST_F(NldevTest, APortHasAnInterfaceOfItsOwnOrOfTheMachine) {
  const auto named = [&](std::uint32_t* index, std::string_view* name) {
    const auto messages = ask(RDMA_NLDEV_CMD_PORT_GET, 0, {{RDMA_NLDEV_ATTR_DEV_INDEX, 0}, {RDMA_NLDEV_ATTR_PORT_INDEX, 1}});
    static std::vector<std::byte> bytes;
    bytes.assign(messages.at(0).bytes.begin(), messages.at(0).bytes.end());
    NetlinkRequest parsed;
    return parsed.parse(bytes) && parsed.get(RDMA_NLDEV_ATTR_NDEV_INDEX, index) && parsed.get(RDMA_NLDEV_ATTR_NDEV_NAME, name);
  };
  std::uint32_t index = 0;
  std::string_view name;
  const auto own = [&] { return named(&index, &name) && index == 200000 && name == "enp200s0np0"; };
  EXPECT_TRUE(own());
  setenv("VERBENA_NETDEV", "lo", 1);
  EXPECT_TRUE(named(&index, &name) && index == if_nametoindex("lo") && name == "lo");
  setenv("VERBENA_NETDEV", "no such interface", 1);
  EXPECT_TRUE(own());
  unsetenv("VERBENA_NETDEV");
}

TEST_F(NldevTest, RefusesWhatIsNotThere) {
  EXPECT_EQ(error_of(ask(RDMA_NLDEV_CMD_GET, 0).at(0)), EINVAL);
  EXPECT_EQ(error_of(ask(RDMA_NLDEV_CMD_GET, 0, {{RDMA_NLDEV_ATTR_DEV_INDEX, 1}}).at(0)), EINVAL);
  EXPECT_EQ(error_of(ask(RDMA_NLDEV_CMD_PORT_GET, 0,
                         {{RDMA_NLDEV_ATTR_DEV_INDEX, 0}, {RDMA_NLDEV_ATTR_PORT_INDEX, 2}}).at(0)), EINVAL);
  EXPECT_EQ(error_of(ask(RDMA_NLDEV_CMD_RES_PD_GET, 0,
                         {{RDMA_NLDEV_ATTR_DEV_INDEX, 0}, {RDMA_NLDEV_ATTR_RES_PDN, 99}}).at(0)), ENOENT);
  EXPECT_EQ(error_of(ask(RDMA_NLDEV_NUM_OPS, 0).at(0)), EINVAL);
  EXPECT_EQ(error_of(ask(request(static_cast<std::uint16_t>(RDMA_NL_LS << 10), 0, {})).at(0)), EINVAL);
  EXPECT_NE(error_of(ask(RDMA_NLDEV_CMD_NEWLINK, 0).at(0)), 0);
}

TEST_F(NldevTest, Acknowledges) {
  const auto plain = request(type(RDMA_NLDEV_CMD_SYS_GET), NLM_F_ACK, {{RDMA_NLDEV_ATTR_DEV_INDEX, 0}});
  const auto good = ask(plain, false);
  ASSERT_EQ(good.size(), 2u);
  EXPECT_EQ(error_of(good[1]), 0);
  EXPECT_EQ(good[1].bytes.size(), sizeof(nlmsghdr) + sizeof(nlmsgerr));
  // A refusal repeats the request unless it shall not.
  const auto bad = request(type(RDMA_NLDEV_CMD_PORT_GET), 0, {{RDMA_NLDEV_ATTR_DEV_INDEX, 0}});
  EXPECT_EQ(ask(bad, false).at(0).bytes.size(), sizeof(nlmsghdr) + sizeof(int) + bad.size());
  EXPECT_EQ(ask(bad, true).at(0).bytes.size(), sizeof(nlmsghdr) + sizeof(nlmsgerr));
  // Control messages are acknowledged, what is no request is not looked at.
  EXPECT_EQ(error_of(ask(request(NLMSG_NOOP, NLM_F_ACK, {})).at(0)), 0);
  auto no_request = plain;
  std::memset(no_request.data() + offsetof(nlmsghdr, nlmsg_flags), 0, 2);
  EXPECT_TRUE(ask(no_request).empty());
}

TEST_F(NldevTest, ListsWhatThereIs) {
  constexpr unsigned kMany = 300;
  const auto list = [&](unsigned op) { return ask(op, NLM_F_DUMP, {{RDMA_NLDEV_ATTR_DEV_INDEX, 0}}); };
  EXPECT_EQ(entries(list(RDMA_NLDEV_CMD_RES_CTX_GET), RDMA_NLDEV_ATTR_RES_CTX), 1u);
  EXPECT_EQ(list(RDMA_NLDEV_CMD_RES_PD_GET).size(), 1u);  // the end alone
  std::vector<std::uint32_t> handles;
  for (unsigned i = 0; i < kMany; ++i) handles.push_back(pd());
  EXPECT_EQ(entries(list(RDMA_NLDEV_CMD_RES_PD_GET), RDMA_NLDEV_ATTR_RES_PD), kMany);
  EXPECT_GT(datagrams_, 2u);
  const auto region = mr(handles[0]);
  EXPECT_EQ(entries(list(RDMA_NLDEV_CMD_RES_MR_GET), RDMA_NLDEV_ATTR_RES_MR), 1u);
  // Its domain has a user now.
  std::uint32_t domain = 0;
  {
    const auto one = ask(RDMA_NLDEV_CMD_RES_MR_GET, 0, {{RDMA_NLDEV_ATTR_DEV_INDEX, 0}, {RDMA_NLDEV_ATTR_RES_MRN, 1}});
    NetlinkRequest parsed;
    ASSERT_TRUE(parsed.parse(one.at(0).bytes));
    ASSERT_TRUE(parsed.get(RDMA_NLDEV_ATTR_RES_PDN, &domain));
    std::uint32_t pid = 0;
    EXPECT_TRUE(parsed.get(RDMA_NLDEV_ATTR_RES_PID, &pid) && pid == static_cast<std::uint32_t>(getpid()));
  }
  const auto users = [&] {
    const auto one = ask(RDMA_NLDEV_CMD_RES_PD_GET, 0,
                         {{RDMA_NLDEV_ATTR_DEV_INDEX, 0}, {RDMA_NLDEV_ATTR_RES_PDN, domain}});
    NetlinkRequest parsed;
    std::uint32_t count = ~0u;
    EXPECT_TRUE(parsed.parse(one.at(0).bytes) && parsed.get(RDMA_NLDEV_ATTR_RES_USECNT, &count));
    return count;
  };
  EXPECT_EQ(users(), 1u);
  EXPECT_EQ(write(IB_USER_VERBS_CMD_DEREG_MR, ib_uverbs_dereg_mr{region.mr_handle}), 0);
  EXPECT_EQ(users(), 0u);
  for (const std::uint32_t handle : handles)
    EXPECT_EQ(write(IB_USER_VERBS_CMD_DEALLOC_PD, ib_uverbs_dealloc_pd{handle}), 0);
  EXPECT_EQ(list(RDMA_NLDEV_CMD_RES_PD_GET).size(), 1u);
  file_->release();
  EXPECT_EQ(list(RDMA_NLDEV_CMD_RES_CTX_GET).size(), 1u);
}

TEST_F(NldevTest, SurvivesNonsense) {
  std::mt19937 random(7);
  const auto good = request(type(RDMA_NLDEV_CMD_RES_QP_GET), NLM_F_DUMP, {{RDMA_NLDEV_ATTR_DEV_INDEX, 0}});
  for (int i = 0; i < 20000; ++i) {
    auto bad = good;
    bad.resize(random() % (good.size() + 40));
    for (unsigned n = random() % 4; n-- && !bad.empty();) bad[random() % bad.size()] = static_cast<std::byte>(random());
    ask(bad);
  }
}

}  // namespace
}  // namespace verbena::kernel
