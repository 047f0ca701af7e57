// DEVX events: channels, subscriptions, taking an event.

#include <fcntl.h>
#include <poll.h>
#include <rdma/mlx5_user_ioctl_cmds.h>
#include <unistd.h>

#include <cstddef>
#include <memory>
#include <new>

#include "mlx5/devx/object.h"
#include "mlx5/export.h"

namespace {

using namespace verbena;
using namespace verbena::mlx5;

constexpr std::size_t kCookie = sizeof(mlx5dv_devx_async_event_hdr);
constexpr std::size_t kEqe = 64;

struct EventChannel {
  mlx5dv_devx_event_channel dv;  // first: what the program holds
  Context* context;
  std::size_t record;  // bytes of one event
};

EventChannel* channel_of(mlx5dv_devx_event_channel* dv) { return reinterpret_cast<EventChannel*>(dv); }

// An event that does not fit stays where it is.
bool fits(const EventChannel* channel, std::size_t room) {
  if (room >= channel->record) return true;
  const int flags = fcntl(channel->dv.fd, F_GETFL);
  pollfd wait{channel->dv.fd, POLLIN, 0};
  const int ready = poll(&wait, 1, flags >= 0 && (flags & O_NONBLOCK) ? 0 : -1);
  if (ready >= 0) errno = ready ? EINVAL : EAGAIN;
  return false;
}

}  // namespace

extern "C" {

VERBENA_MLX5_EXPORT mlx5dv_devx_event_channel* mlx5dv_devx_create_event_channel(
    ibv_context* ibv, mlx5dv_devx_create_event_channel_flags flags) {
  Context* context = mlx5_context(ibv);
  if (!context) return fail_null(EOPNOTSUPP);
  std::unique_ptr<EventChannel> channel(new (std::nothrow) EventChannel{});
  if (!channel) return fail_null(ENOMEM);
  uverbs::Bundle bundle(MLX5_IB_OBJECT_DEVX_ASYNC_EVENT_FD, MLX5_IB_METHOD_DEVX_ASYNC_EVENT_FD_ALLOC);
  const auto fd = bundle.out_fd(MLX5_IB_ATTR_DEVX_ASYNC_EVENT_FD_ALLOC_HANDLE);
  bundle.in_u32(MLX5_IB_ATTR_DEVX_ASYNC_EVENT_FD_ALLOC_FLAGS, static_cast<std::uint32_t>(flags));
  if (int error = verbena_execute(context, &bundle)) return fail_null(error);
  channel->dv.fd = bundle.fd(fd);
  channel->context = context;
  channel->record = kCookie + (flags & MLX5DV_DEVX_CREATE_EVENT_CHANNEL_FLAGS_OMIT_EV_DATA ? 0 : kEqe);
  return &channel.release()->dv;
}

VERBENA_MLX5_EXPORT void mlx5dv_devx_destroy_event_channel(mlx5dv_devx_event_channel* dv) {
  EventChannel* channel = channel_of(dv);
  channel->context->backend->close(dv->fd);
  delete channel;
}

VERBENA_MLX5_EXPORT int mlx5dv_devx_subscribe_devx_event(mlx5dv_devx_event_channel* dv, mlx5dv_devx_obj* object,
                                                         std::uint16_t events_size, std::uint16_t* events,
                                                         std::uint64_t cookie) {
  uverbs::Bundle bundle(MLX5_IB_OBJECT_DEVX, MLX5_IB_METHOD_DEVX_SUBSCRIBE_EVENT);
  bundle.in_fd(MLX5_IB_ATTR_DEVX_SUBSCRIBE_EVENT_FD_HANDLE, dv->fd);
  bundle.in_u64(MLX5_IB_ATTR_DEVX_SUBSCRIBE_EVENT_COOKIE, cookie);
  if (object) bundle.in_object(MLX5_IB_ATTR_DEVX_SUBSCRIBE_EVENT_OBJ_HANDLE, object->handle);
  bundle.in(MLX5_IB_ATTR_DEVX_SUBSCRIBE_EVENT_TYPE_NUM_LIST, events, events_size);
  return verbena_execute(channel_of(dv)->context, &bundle);
}

VERBENA_MLX5_EXPORT int mlx5dv_devx_subscribe_devx_event_fd(mlx5dv_devx_event_channel* dv, int fd,
                                                            mlx5dv_devx_obj* object, std::uint16_t event) {
  uverbs::Bundle bundle(MLX5_IB_OBJECT_DEVX, MLX5_IB_METHOD_DEVX_SUBSCRIBE_EVENT);
  bundle.in_fd(MLX5_IB_ATTR_DEVX_SUBSCRIBE_EVENT_FD_HANDLE, dv->fd);
  if (object) bundle.in_object(MLX5_IB_ATTR_DEVX_SUBSCRIBE_EVENT_OBJ_HANDLE, object->handle);
  bundle.in(MLX5_IB_ATTR_DEVX_SUBSCRIBE_EVENT_TYPE_NUM_LIST, &event, sizeof event);
  bundle.in_u32(MLX5_IB_ATTR_DEVX_SUBSCRIBE_EVENT_FD_NUM, static_cast<std::uint32_t>(fd));
  return verbena_execute(channel_of(dv)->context, &bundle);
}

VERBENA_MLX5_EXPORT ssize_t mlx5dv_devx_get_event(mlx5dv_devx_event_channel* dv, mlx5dv_devx_async_event_hdr* event,
                                                  std::size_t room) {
  if (!fits(channel_of(dv), room)) return -1;
  const ssize_t bytes = read(dv->fd, event, room);
  if (bytes < 0) return -1;
  if (static_cast<std::size_t>(bytes) < kCookie) {
    errno = bytes ? EINVAL : EIO;  // nothing: the channel is gone
    return -1;
  }
  return bytes;
}

}  // extern "C"
