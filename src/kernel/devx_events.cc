// DEVX: channels of events and of asynchronous results, and subscriptions.
#include <fcntl.h>
#include <rdma/mlx5_user_ioctl_verbs.h>
#include <unistd.h>

#include <cstdio>
#include <string_view>

#include "kernel/devx.h"
#include "kernel/devx_mailbox.h"
#include "prm/caps.h"
#include "prm/eqe.h"

namespace verbena::kernel {
namespace {

constexpr std::size_t kMaxEvents = 16;  // of one subscribe request

constexpr AttrSpec kResultsAttrs[] = {
    uverbs::fd_attr(MLX5_IB_ATTR_DEVX_ASYNC_CMD_FD_ALLOC_HANDLE, MLX5_IB_OBJECT_DEVX_ASYNC_CMD_FD, AttrAccess::create),
};

int native_results(File& file, Request& request) {
  const int fd = file.make_devx_results();
  if (fd < 0) return errno;
  request.set_id(MLX5_IB_ATTR_DEVX_ASYNC_CMD_FD_ALLOC_HANDLE, fd);
  return 0;
}

constexpr AttrSpec kChannelAttrs[] = {
    uverbs::fd_attr(MLX5_IB_ATTR_DEVX_ASYNC_EVENT_FD_ALLOC_HANDLE, MLX5_IB_OBJECT_DEVX_ASYNC_EVENT_FD,
                    AttrAccess::create),
    uverbs::flags_attr(MLX5_IB_ATTR_DEVX_ASYNC_EVENT_FD_ALLOC_FLAGS, true),
};

int native_channel(File& file, Request& request) {
  std::uint32_t flags = 0;
  constexpr std::uint32_t omit = MLX5_IB_UAPI_DEVX_CR_EV_CH_FLAGS_OMIT_DATA;
  if (int error = request.flags(MLX5_IB_ATTR_DEVX_ASYNC_EVENT_FD_ALLOC_FLAGS, omit, &flags)) return error;
  const int fd = file.make_devx_events(flags & omit);
  if (fd < 0) return errno;
  request.set_id(MLX5_IB_ATTR_DEVX_ASYNC_EVENT_FD_ALLOC_HANDLE, fd);
  return 0;
}

// ---- subscriptions ----

constexpr AttrSpec kSubscribeAttrs[] = {
    uverbs::fd_attr(MLX5_IB_ATTR_DEVX_SUBSCRIBE_EVENT_FD_HANDLE, MLX5_IB_OBJECT_DEVX_ASYNC_EVENT_FD, AttrAccess::read),
    uverbs::object_attr(MLX5_IB_ATTR_DEVX_SUBSCRIBE_EVENT_OBJ_HANDLE, MLX5_IB_OBJECT_DEVX_OBJ, AttrAccess::read, false),
    {MLX5_IB_ATTR_DEVX_SUBSCRIBE_EVENT_TYPE_NUM_LIST, uverbs::AttrKind::ptr_in, true, sizeof(std::uint16_t), 0xffff,
     false, 0, AttrAccess::read},
    uverbs::in_attr(MLX5_IB_ATTR_DEVX_SUBSCRIBE_EVENT_COOKIE, 8, false),
    uverbs::in_attr(MLX5_IB_ATTR_DEVX_SUBSCRIBE_EVENT_FD_NUM, 4, false),
};

// Which object of the device an event of this DEVX object would name; false: events name no object of its kind.
bool source_of(prm::Opcode kind, EventSource* source) {
  switch (kind) {
    case prm::Opcode::create_cq:
      *source = EventSource::cq;
      return true;
    case prm::Opcode::create_qp:
    case prm::Opcode::create_rq:
    case prm::Opcode::create_sq:
      *source = EventSource::qp;  // one number space
      return true;
    case prm::Opcode::create_srq:
    case prm::Opcode::create_rmp:
    case prm::Opcode::create_xrc_srq:
    case prm::Opcode::create_xrq:
      *source = EventSource::srq;
      return true;
    default:
      return false;
  }
}

// The events that the device lets user contexts have, as a bit set of 256.
struct EventMask {
  std::uint64_t words[4];
  bool has(std::uint16_t event) const { return event < 256 && (words[event / 64] >> (event % 64) & 1); }
};

int read_masks(File& file, EventMask* affiliated, EventMask* unaffiliated) {
  prm::Box<prm::QueryHcaCapIn> in;
  prm::Box<prm::QueryHcaCapOut> out;
  in.set<prm::QueryHcaCapIn::opcode>(prm::Opcode::query_hca_cap);
  in.set<prm::QueryHcaCapIn::op_mod>(prm::cap_op_mod(prm::CapType::device_event, prm::CapMode::current));
  file.device().execute({in.data(), prm::QueryHcaCapIn::size}, {out.data(), prm::QueryHcaCapOut::size});
  if (out.get<prm::QueryHcaCapOut::status>() != prm::Status::ok) return EOPNOTSUPP;
  const auto cap = out.sub<prm::QueryHcaCapOut::capability>().sub<prm::HcaCapUnion::device_event_cap>();
  for (unsigned i = 0; i < 4; ++i) {
    affiliated->words[i] = cap.at<prm::DeviceEventCap::user_affiliated_events>(i).get<prm::Qword::value>();
    unaffiliated->words[i] = cap.at<prm::DeviceEventCap::user_unaffiliated_events>(i).get<prm::Qword::value>();
  }
  affiliated->words[0] |= 1;  // completion
  return 0;
}

// A descriptor of our own for the program's eventfd; -errno if it is none.
int own_eventfd(int fd) {
  char path[32], target[32];
  std::snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
  const ssize_t n = readlink(path, target, sizeof target);
  if (n < 0) return -EBADF;
  if (std::string_view(target, static_cast<std::size_t>(n)) != "anon_inode:[eventfd]") return -EINVAL;
  const int own = fcntl(fd, F_DUPFD_CLOEXEC, 0);
  return own < 0 ? -errno : own;
}

// What the request says once for all its events.
struct Wish {
  std::shared_ptr<DevxEventChannel> channel;
  const DevxObject* object = nullptr;
  std::uint64_t cookie = 0;
  bool redirected = false;
  int eventfd = -1;  // the program's
};

int read_wish(File& file, const Request& request, Wish* wish) {
  if (request.has(MLX5_IB_ATTR_DEVX_SUBSCRIBE_EVENT_OBJ_HANDLE)) {
    int error = 0;
    wish->object = file.find<DevxObject>(request.handle(MLX5_IB_ATTR_DEVX_SUBSCRIBE_EVENT_OBJ_HANDLE),
                                         MLX5_IB_OBJECT_DEVX_OBJ, &error);
    if (!wish->object) return error;
  }
  wish->channel = file.devx_events(request.fd(MLX5_IB_ATTR_DEVX_SUBSCRIBE_EVENT_FD_HANDLE));
  if (!wish->channel) return EBADF;
  wish->redirected = request.has(MLX5_IB_ATTR_DEVX_SUBSCRIBE_EVENT_FD_NUM);
  if (wish->redirected)
    wish->eventfd = static_cast<int>(request.value<std::uint32_t>(MLX5_IB_ATTR_DEVX_SUBSCRIBE_EVENT_FD_NUM));
  if (!request.has(MLX5_IB_ATTR_DEVX_SUBSCRIBE_EVENT_COOKIE)) return 0;
  if (wish->redirected) return EINVAL;
  wish->cookie = request.value<std::uint64_t>(MLX5_IB_ATTR_DEVX_SUBSCRIBE_EVENT_COOKIE);
  return 0;
}

int native_subscribe(File& file, Request& request) {
  if (!file.context().uid) return EINVAL;
  Wish wish;
  if (int error = read_wish(file, request, &wish)) return error;
  const auto list = request.in(MLX5_IB_ATTR_DEVX_SUBSCRIBE_EVENT_TYPE_NUM_LIST);
  if (list.size() % sizeof(std::uint16_t) || list.size() / sizeof(std::uint16_t) > kMaxEvents) return EINVAL;
  EventMask affiliated{}, unaffiliated{};
  if (int error = read_masks(file, &affiliated, &unaffiliated)) return error;

  std::vector<DevxSubscription> subscriptions;
  for (std::size_t at = 0; at < list.size(); at += sizeof(std::uint16_t)) {
    DevxSubscription s;
    std::memcpy(&s.event, list.data() + at, sizeof s.event);
    if (!(wish.object ? affiliated : unaffiliated).has(s.event)) return EINVAL;
    s.channel = wish.channel;
    s.cookie = wish.cookie;
    if (wish.redirected && (s.eventfd = own_eventfd(wish.eventfd)) < 0) return -s.eventfd;
    if (wish.object) {
      s.affiliated = true;
      s.owner = wish.object;
      s.number = wish.object->id.number;
      // Of an object that no event ever names, nothing will come: the kernel grants that, too.
      if (!source_of(wish.object->id.kind, &s.source)) continue;
    }
    subscriptions.push_back(std::move(s));
  }
  file.node().events().subscribe(std::move(subscriptions));
  return 0;
}

constexpr Method kMethods[] = {
    {{MLX5_IB_OBJECT_DEVX_ASYNC_CMD_FD, MLX5_IB_METHOD_DEVX_ASYNC_CMD_FD_ALLOC, kResultsAttrs}, native_results},
    {{MLX5_IB_OBJECT_DEVX_ASYNC_EVENT_FD, MLX5_IB_METHOD_DEVX_ASYNC_EVENT_FD_ALLOC, kChannelAttrs}, native_channel},
    {{MLX5_IB_OBJECT_DEVX, MLX5_IB_METHOD_DEVX_SUBSCRIBE_EVENT, kSubscribeAttrs}, native_subscribe},
};

}  // namespace

std::span<const Method> devx_event_methods() { return kMethods; }

}  // namespace verbena::kernel
