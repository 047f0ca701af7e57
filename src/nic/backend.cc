// The Backend table of the embedded device (uverbs/backend.h): system calls answered in process.
#include <rdma/ib_user_ioctl_cmds.h>
#include <rdma/ib_user_verbs.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <string_view>

#include "device/memory/guard.h"
#include "device/refusals.h"
#include "kernel/nldev.h"
#include "nic/runtime.h"
#include "nic/sysfs.h"
#include "nic/tokens.h"
#include "nic/watcher.h"
#include "uverbs/backend.h"
#include "uverbs/record.h"

namespace verbena::nic {
namespace {

int device_count() { return static_cast<int>(Runtime::get().device_count()); }

template <std::size_t N>
void copy(char (&to)[N], const std::string& from) {
  std::size_t n = from.size() < N - 1 ? from.size() : N - 1;
  std::memcpy(to, from.data(), n);
  to[n] = 0;
}

int device_info(int index, uverbs::DeviceInfo* out) {
  if (index < 0) return -ENODEV;
  auto node = Runtime::get().node(static_cast<unsigned>(index));
  if (!node) return -node.error().code;
  const device::Profile& profile = (*node)->profile();
  const std::string number = std::to_string(index);
  *out = {};
  copy(out->ibdev_name, (*node)->name());
  copy(out->uverbs_name, "uverbs" + number);
  copy(out->ibdev_path, kIbdevRoot + number);
  copy(out->uverbs_path, kUverbsRoot + number);
  copy(out->modalias, modalias(profile));
  if (int error = (*node)->node_guid(&out->node_guid_be)) return -error;
  out->vendor_id = profile.vendor_id;
  out->device_id = profile.part_id;
  out->abi_version = 1;
  out->index = index;
  out->node_type = 1;
  return 0;
}

// "<root>N/rest": the device number and the rest.
bool split(std::string_view path, std::string_view root, unsigned* index, std::string* rest) {
  if (!path.starts_with(root)) return false;
  path.remove_prefix(root.size());
  std::size_t digits = 0;
  *index = 0;
  while (digits < path.size() && digits < 3 && path[digits] >= '0' && path[digits] <= '9')
    *index = *index * 10 + static_cast<unsigned>(path[digits++] - '0');
  if (!digits || digits >= path.size() || path[digits] != '/') return false;
  *rest = path.substr(digits + 1);
  return true;
}

int read_sysfs(const char* dir, const char* file, char* buffer, std::size_t size) {
  const std::string path = std::string(dir ? dir : "") + "/" + (file ? file : "");
  unsigned index = 0;
  std::string rest;
  const bool ibdev = split(path, kIbdevRoot, &index, &rest);
  if (!ibdev && !split(path, kUverbsRoot, &index, &rest)) {
    errno = ENOENT;
    return -1;
  }
  auto node = Runtime::get().node(index);
  if (!node) {
    errno = ENOENT;
    return -1;
  }
  const Attribute attribute = ibdev ? ibdev_attribute(**node, rest) : uverbs_attribute(**node, rest);
  if (attribute.error) {
    errno = attribute.error;
    return -1;
  }
  const std::size_t n = attribute.text.size() < size ? attribute.text.size() : size;
  std::memcpy(buffer, attribute.text.data(), n);
  if (n < size) buffer[n] = 0;
  return static_cast<int>(n);
}

int open_device(int index) {
  if (index < 0) {
    errno = ENODEV;
    return -1;
  }
  return Runtime::get().open(static_cast<unsigned>(index));
}

// Requests that name no object of the process that opened the descriptor: a forked child may make them.
bool stands_alone(const ib_uverbs_ioctl_hdr& request) {
  if (request.object_id == UVERBS_OBJECT_DM) return request.method_id == UVERBS_METHOD_DM_ALLOC;
  if (request.object_id != UVERBS_OBJECT_DEVICE) return false;
  if (request.method_id != UVERBS_METHOD_INVOKE_WRITE) return request.method_id != UVERBS_METHOD_GET_CONTEXT;
  if (request.num_attrs > (request.length - sizeof request) / sizeof(ib_uverbs_attr)) return false;  // to be refused
  constexpr std::uint64_t query_ex = IB_USER_VERBS_CMD_FLAG_EXTENDED | IB_USER_VERBS_EX_CMD_QUERY_DEVICE;
  for (unsigned i = 0; i < request.num_attrs; ++i)
    if (request.attrs[i].attr_id == UVERBS_ATTR_WRITE_CMD)
      return request.attrs[i].data == query_ex || request.attrs[i].data == IB_USER_VERBS_CMD_QUERY_DEVICE;
  return false;
}

int ioctl_device(int fd, ib_uverbs_ioctl_hdr* request) {
  auto file = Runtime::get().file(fd);
  if (file && file->dead() && request && stands_alone(*request)) file = Runtime::get().heir(fd);
  int error = file ? file->ioctl(request) : EBADF;
  if (file && file->take_new_watch()) Watcher::get().watch(file);
  if (!error) return 0;
  errno = error;
  return -1;
}

void* mmap_device(void* addr, std::size_t length, int prot, int flags, int fd, std::int64_t offset) {
  if (auto file = Runtime::get().file(fd)) return file->mmap(addr, length, prot, flags, offset);
  errno = EBADF;
  return MAP_FAILED;
}

int close_device(int fd) { return Runtime::get().close(fd); }

void* alloc_dma(int fd, std::size_t length) { return Runtime::get().alloc_dma(fd, length); }
void free_dma(void* addr, std::size_t length) { Runtime::get().free_dma(addr, length); }

// ---- data path ----

void* sq_token(int fd, std::uint32_t qpn) {
  auto file = Runtime::get().file(fd);
  return file ? Tokens::get().send_queue(file->node(), qpn) : nullptr;
}

void* cq_token(int fd, std::uint32_t cqn) {
  auto file = Runtime::get().file(fd);
  return file ? Tokens::get().completion_queue(file->node(), cqn) : nullptr;
}

void ring_sq(void* token) {
  auto* t = static_cast<Token*>(token);
  if (!t->node->dead()) t->node->device().ring_sq(t->inner);
}

void arm_cq(void* token) {
  auto* t = static_cast<Token*>(token);
  if (!t->node->dead()) t->node->device().arm_cq(t->inner);
}

int device_of(int fd) {
  if (auto file = Runtime::get().file(fd)) return static_cast<int>(file->node().index());
  errno = EBADF;
  return -1;
}

void* cq_token_by_handle(int fd, std::uint32_t handle) {
  auto file = Runtime::get().file(fd);
  std::uint32_t cqn = 0;
  return file && file->cqn_of(handle, &cqn) ? Tokens::get().completion_queue(file->node(), cqn) : nullptr;
}

int watch(int fd, std::uint16_t cls, std::uint32_t handle) {
  auto file = Runtime::get().file(fd);
  if (!file) return EBADF;
  int error = file->watch(cls, handle);
  if (!error) Watcher::get().watch(file);
  return error;
}

int watch_sq(int fd, std::uint32_t handle) { return watch(fd, UVERBS_OBJECT_QP, handle); }
int watch_cq(int fd, std::uint32_t handle) { return watch(fd, UVERBS_OBJECT_CQ, handle); }

const std::uint32_t* pending(int fd) {
  static const std::uint32_t never = 0;
  auto file = Runtime::get().file(fd);
  return file && !file->dead() ? file->node().device().pending() : &never;
}

void step(int fd) {
  auto file = Runtime::get().file(fd);
  if (!file || file->dead()) return;
  file->node().device().step();
  if (file->watching()) file->serve_watched();
}

void netlink(const void* datagram, std::size_t length, std::uint32_t port, bool capped, void* argument,
             void (*sink)(void* argument, const void* datagram, std::size_t length)) {
  std::vector<std::shared_ptr<kernel::Node>> nodes;
  for (unsigned i = 0; i < Runtime::get().device_count(); ++i)
    if (auto node = Runtime::get().node(i)) nodes.push_back(*node);
  kernel::answer_netlink(nodes, {static_cast<const std::byte*>(datagram), length}, {port, capped},
                         [&](std::span<const std::byte> answer) { sink(argument, answer.data(), answer.size()); });
}

constexpr uverbs::Backend kBackend{
    .abi = uverbs::kBackendAbi,
    .device_count = device_count,
    .device_info = device_info,
    .read_sysfs = read_sysfs,
    .open = open_device,
    .device_of = device_of,
    .ioctl = ioctl_device,
    .mmap = mmap_device,
    .munmap = ::munmap,
    .close = close_device,
    .alloc_dma = alloc_dma,
    .free_dma = free_dma,
    .sq_token = sq_token,
    .cq_token = cq_token,
    .ring_sq = ring_sq,
    .arm_cq = arm_cq,
    .pending = pending,
    .step = step,
    .cq_token_by_handle = cq_token_by_handle,
    .watch_sq = watch_sq,
    .watch_cq = watch_cq,
    .netlink = netlink,
};

// A recorder reads the program's memory as the kernel's role does: a wrong pointer is no signal.
constexpr uverbs::UserMemory kProgramMemory{
    [](void* to, const void* from, std::size_t n) { return device::guarded_read(to, from, n) == 0; },
    [](void*, const void*, std::size_t) { return false; }};

}  // namespace
}  // namespace verbena::nic

extern "C" __attribute__((visibility("default"))) const verbena::uverbs::Backend* verbena_embedded_backend(
    std::uint32_t abi) {
  using namespace verbena;
  return abi == uverbs::kBackendAbi ? &uverbs::recorded(nic::kBackend, nic::kProgramMemory) : nullptr;
}

// For the C++ interface (include/verbena/error.h): why the device gave a syndrome. 0, or ENOENT if it never gives it.
extern "C" __attribute__((visibility("default"))) int verbena_explain(std::uint32_t syndrome, char* text,
                                                                      std::size_t room) {
  const auto refusal = verbena::device::find_refusal(syndrome);
  if (!refusal || room == 0) return ENOENT;
  text[refusal->reason.copy(text, room - 1)] = '\0';
  return 0;
}
