// Opening, importing and closing devices; device and port queries.
#include <unistd.h>

#include <cstdlib>
#include <cstring>

#include "verbs/internal.h"

#undef ibv_query_port
#undef ibv_get_device_list

// What old binaries pass to ibv_query_port: ibv_port_attr up to `flags`.
struct _compat_ibv_port_attr {
  std::byte bytes[offsetof(ibv_port_attr, port_cap_flags2)];
};

namespace verbena::verbs {
namespace {

// The last steps of open and import. Closes the context on failure.
ibv_context* finish_open(Context* context, bool imported) {
  if (!context) return nullptr;
  context->imported = imported;
  // The legacy GET_CONTEXT brings the descriptor along.
  if (context->verbs.context.async_fd == -1) {
    if (int error = alloc_async_fd(*context)) {
      ibv_close_device(public_context(context));
      return refuse<ibv_context>(error);
    }
  }
  return public_context(context);
}

}  // namespace

int query_port_sized(ibv_context* context, std::uint8_t port, ibv_port_attr* attr, std::size_t attr_size) {
  // Providers fill the whole structure; a program compiled against a shorter one gets its part of it.
  ibv_port_attr full{};
  int error = ops(context).query_port(context, port, &full);
  if (error) return error;
  if (attr_size > sizeof full) std::memset(attr, 0, attr_size);
  std::memcpy(attr, &full, attr_size < sizeof full ? attr_size : sizeof full);
  return 0;
}

}  // namespace verbena::verbs

using namespace verbena::verbs;

void verbena_context_init(verbena_context* context, Device* device, int cmd_fd, std::uint32_t driver_id) {
  hold(*device);
  context->backend = device->backend;
  context->device = device;
  context->driver_id = driver_id;
  context->imported = false;
  context->ops = default_ops();
  for (auto& word : context->unsupported) word.store(0, std::memory_order_relaxed);
  std::memset(&context->verbs, 0, sizeof context->verbs);
  context->verbs.sz = sizeof context->verbs;
  context->verbs.priv = reinterpret_cast<verbs_ex_private*>(context);
  ibv_context& base = context->verbs.context;
  base.device = &device->device;
  base.cmd_fd = cmd_fd;
  base.async_fd = -1;
  base.abi_compat = __VERBS_ABI_IS_EXTENDED;
  pthread_mutex_init(&base.mutex, nullptr);
  publish_ops(*context);
}

void verbena_context_uninit(verbena_context* context) {
  ibv_context& base = context->verbs.context;
  if (base.async_fd != -1) context->backend->close(base.async_fd);
  if (base.cmd_fd != -1) context->backend->close(base.cmd_fd);
  base.async_fd = base.cmd_fd = -1;
  pthread_mutex_destroy(&base.mutex);
  put(*context->device);
}

ibv_context* verbena_open_device(ibv_device* device, void* private_data) {
  Device& own = *device_of(device);
  int fd = own.backend->open(own.backend_index);
  if (fd < 0) return nullptr;
  return finish_open(own.provider->alloc_context(&own, fd, private_data), false);
}

void* verbena_mmap(verbena_context* context, std::size_t length, int prot, std::int64_t offset) {
  constexpr int kMapShared = 1;  // MAP_SHARED
  return context->backend->mmap(nullptr, length, prot, kMapShared, context->verbs.context.cmd_fd, offset);
}

int verbena_munmap(verbena_context* context, void* addr, std::size_t length) {
  return context->backend->munmap(addr, length) ? errno : 0;
}

extern "C" {

ibv_context* ibv_open_device(ibv_device* device) { return verbena_open_device(device, nullptr); }

ibv_context* ibv_import_device(int cmd_fd) {
  const verbena::uverbs::Backend* backend = verbena::uverbs::backend();
  if (!backend || !backend->device_of) return refuse<ibv_context>(EOPNOTSUPP);
  int index = backend->device_of(cmd_fd);
  if (index < 0) return refuse<ibv_context>(EINVAL);
  ibv_device** list = ibv_get_device_list(nullptr);
  if (!list) return refuse<ibv_context>(ENODEV);

  ibv_context* context = refuse<ibv_context>(ENODEV);
  for (ibv_device** entry = list; *entry; ++entry) {
    Device& device = *device_of(*entry);
    if (device.backend_index != index) continue;
    context = device.provider->import_context ? finish_open(device.provider->import_context(&device, cmd_fd), true)
                                              : refuse<ibv_context>(EOPNOTSUPP);
    break;
  }
  int error = errno;
  ibv_free_device_list(list);
  errno = error;
  return context;
}

int ibv_close_device(ibv_context* context) {
  ops(context).free_context(context_of(context));
  return 0;
}

int ibv_query_device(ibv_context* context, ibv_device_attr* attr) {
  // The short structure is the first member of the long one, and the size says how much there is.
  return ops(context).query_device_ex(context, nullptr, reinterpret_cast<ibv_device_attr_ex*>(attr), sizeof *attr);
}

int ibv_query_port(ibv_context* context, std::uint8_t port, _compat_ibv_port_attr* attr) {
  return query_port_sized(context, port, reinterpret_cast<ibv_port_attr*>(attr), sizeof *attr);
}

}  // extern "C"
