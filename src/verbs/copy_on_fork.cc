// Whether pages that a device may touch stay where they are for the parent of a forked child: the kernel copies them for
// the child (Linux 5.12), and says so by NETLINK_RDMA.
#include <linux/netlink.h>
#include <poll.h>
#include <rdma/rdma_netlink.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cstdint>

#include "uverbs/backend.h"
#include "verbs/internal.h"

namespace verbena::verbs {
namespace {

constexpr int kPatienceMs = 1000;

bool says_so(const nlmsghdr* head) {
  const auto* at = reinterpret_cast<const char*>(head) + NLMSG_HDRLEN;
  const auto* end = reinterpret_cast<const char*>(head) + head->nlmsg_len;
  while (end - at >= NLA_HDRLEN) {
    const auto* attr = reinterpret_cast<const nlattr*>(at);
    if (attr->nla_len < NLA_HDRLEN || attr->nla_len > end - at) return false;
    if ((attr->nla_type & NLA_TYPE_MASK) == RDMA_NLDEV_SYS_ATTR_COPY_ON_FORK)
      return attr->nla_len > NLA_HDRLEN && at[NLA_HDRLEN] != 0;
    at += NLA_ALIGN(attr->nla_len);
  }
  return false;  // an older kernel does not know the word
}

bool ask(int fd) {
  nlmsghdr request{};
  request.nlmsg_len = sizeof request;
  request.nlmsg_type = RDMA_NL_GET_TYPE(RDMA_NL_NLDEV, RDMA_NLDEV_CMD_SYS_GET);
  request.nlmsg_flags = NLM_F_REQUEST;
  if (send(fd, &request, sizeof request, 0) < 0) return false;
  alignas(nlmsghdr) char buffer[4096];
  pollfd wait{fd, POLLIN, 0};
  if (poll(&wait, 1, kPatienceMs) <= 0) return false;
  const ssize_t got = recv(fd, buffer, sizeof buffer, 0);
  if (got < 0) return false;
  auto left = static_cast<unsigned>(got);
  for (auto* head = reinterpret_cast<nlmsghdr*>(buffer); NLMSG_OK(head, left); head = NLMSG_NEXT(head, left))
    if (head->nlmsg_type == request.nlmsg_type) return says_so(head);
  return false;
}

}  // namespace

bool copies_on_fork() {
  // The embedded device reaches memory by the address it has in the process: a child's copy is another's.
  const uverbs::Backend* backend = uverbs::backend();
  if (backend && backend->alloc_dma) return true;
  const int fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_RDMA);
  if (fd < 0) return false;
  const bool answer = ask(fd);
  close(fd);
  return answer;
}

}  // namespace verbena::verbs
