#include "kernel/file.h"

#include <fcntl.h>
#include <rdma/ib_user_ioctl_cmds.h>
#include <rdma/ib_user_verbs.h>
#include <rdma/mlx5-abi.h>
#include <rdma/mlx5_user_ioctl_cmds.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <utility>

#include "device/memory/guard.h"
#include "kernel/context.h"
#include "kernel/cq.h"
#include "kernel/devx.h"
#include "kernel/ib.h"
#include "kernel/method.h"
#include "kernel/qp.h"
#include "prm/doorbell.h"

namespace verbena::kernel {
namespace {

// The command descriptor is a sparse file whose pages stand for doorbell pages and the clock page, so that mmap(2)
// on it works. It is as long as the largest offset there is: command 255 of an extended index of 255.
constexpr off_t kFileBytes = off_t{1} << 37;

// Offsets of UAR objects, as mlx5_ib lays them out: page offset = (index >> 8) << 16 | command << 8 | index & 0xff.
constexpr std::uint64_t kUarCommand = 9, kDeviceMemoryCommand = MLX5_IB_MMAP_DEVICE_MEM, kVirtioCommand = 10;

std::uint64_t mapping_offset(std::uint64_t command, std::uint64_t index) {
  return ((index >> 8) << 16 | command << 8 | (index & 0xff)) * kPageSize;
}

// Where the handles of a forked child begin: far from any of its parent's.
constexpr std::uint32_t kHeirHandles = 1u << 20;

// Order in which a dying context's objects go: what stands on others first.
constexpr std::uint16_t kReleaseOrder[] = {UVERBS_OBJECT_QP, UVERBS_OBJECT_MW, UVERBS_OBJECT_SRQ, UVERBS_OBJECT_CQ,
                                           UVERBS_OBJECT_AH, UVERBS_OBJECT_MR, UVERBS_OBJECT_DM, MLX5_IB_OBJECT_VAR,
                                           MLX5_IB_OBJECT_DEVX_UMEM,
                                           MLX5_IB_OBJECT_UAR, UVERBS_OBJECT_PD};

std::uint32_t number_of(const Object& object) {
  if (object.cls == MLX5_IB_OBJECT_DEVX_OBJ) return static_cast<const DevxObject&>(object).id.number;
  return object.cls == UVERBS_OBJECT_QP ? static_cast<const Qp&>(object).qpn : static_cast<const Cq&>(object).cqn;
}

// Whether the second word of the record (send counter, or what arms the CQ) changed since the last call. The program may
// have unmapped it meanwhile.
bool second_word_changed(std::uint64_t record, std::uint32_t* seen) {
  std::uint32_t word = 0;
  if (device::guarded_read(&word, reinterpret_cast<const void*>(record + 4), sizeof word) != 0) return false;
  if (word == *seen) return false;
  *seen = word;
  return true;
}

// The same of a record in a UMEM, which the program may have unmapped since.
bool record_changed(DevxObject& object) {
  std::uint32_t word = object.seen_doorbell;
  const iovec here{&word, sizeof word}, there{reinterpret_cast<void*>(object.doorbell + 4), sizeof word};
  if (process_vm_readv(getpid(), &here, 1, &there, 1, 0) != sizeof word) return false;
  return word != std::exchange(object.seen_doorbell, word);
}

bool record_changed(Object& object) {
  if (object.cls == MLX5_IB_OBJECT_DEVX_OBJ) return record_changed(static_cast<DevxObject&>(object));
  if (object.cls != UVERBS_OBJECT_QP) {
    auto& cq = static_cast<Cq&>(object);
    return second_word_changed(cq.doorbell, &cq.seen_arm);
  }
  auto& qp = static_cast<Qp&>(object);
  return second_word_changed(qp.doorbell, &qp.seen_doorbell);
}

// A second mapping of shared memory that this process has mapped already.
void* map_again(void* memory, void* addr, std::size_t length, int prot, int flags) {
  const bool fixed = flags & MAP_FIXED;
  void* mapped = fixed ? mremap(memory, 0, length, MREMAP_MAYMOVE | MREMAP_FIXED, addr)
                       : mremap(memory, 0, length, MREMAP_MAYMOVE);
  if (mapped == MAP_FAILED) return mapped;
  if (!mprotect(mapped, length, prot)) return mapped;
  munmap(mapped, length);
  return MAP_FAILED;
}

bool is_send_queue(const Object& object) {
  if (object.cls == UVERBS_OBJECT_QP) return true;
  if (object.cls != MLX5_IB_OBJECT_DEVX_OBJ) return false;
  const prm::Opcode kind = static_cast<const DevxObject&>(object).id.kind;
  return kind == prm::Opcode::create_qp || kind == prm::Opcode::create_sq;
}

}  // namespace

std::shared_ptr<File> File::open(std::shared_ptr<Node> node) {
  device::ensure_guard();
  char name[32];
  std::snprintf(name, sizeof name, "uverbs%u", node->index());
  std::shared_ptr<File> file(new File(std::move(node)));
  file->user_ = memfd_create(name, MFD_CLOEXEC);
  if (file->user_ < 0) return nullptr;
  struct stat st {};
  if (ftruncate(file->user_, kFileBytes) || fstat(file->user_, &st)) return nullptr;
  file->memory_ = fcntl(file->user_, F_DUPFD_CLOEXEC, 0);
  if (file->memory_ < 0) return nullptr;
  file->dev_ = st.st_dev;
  file->ino_ = st.st_ino;
  return file;
}

std::shared_ptr<File> File::inherit(std::shared_ptr<Node> node, const File& parents) {
  auto file = open(std::move(node));
  if (!file) return nullptr;
  ::close(file->user_);
  file->user_ = -1;
  file->dev_ = parents.dev_;
  file->ino_ = parents.ino_;
  file->context_ = parents.context_;
  file->context_.uid = 0;
  if (parents.context_.uid && create_uctx(*file, &file->context_.uid)) return nullptr;
  file->objects_.start_at(kHeirHandles);
  return file;
}

File::~File() {
  for (int fd : {user_, memory_})
    if (fd >= 0) ::close(fd);
  for (const UarPage& uar : uars_)
    if (uar.words) ::munmap(uar.words, kPageSize);
}

bool File::is(int fd) const {
  struct stat st {};
  return fd >= 0 && !fstat(fd, &st) && st.st_dev == dev_ && st.st_ino == ino_;
}

int File::take_user_fd() {
  int fd = user_;
  user_ = -1;
  return fd;
}

int File::ioctl(ib_uverbs_ioctl_hdr* request) {
  if (dead()) return EIO;
  std::lock_guard guard(lock_);
  return dispatch(*this, request);
}

int File::destroy(Object* object) {
  if (object->users) return EBUSY;
  if (int error = object->destroy(*this)) return error;
  objects_.remove(object->handle);
  return 0;
}

void File::release() {
  if (dead()) return;
  std::lock_guard guard(lock_);
  release_devx();
  for (std::uint16_t cls : kReleaseOrder) {
    for (std::uint32_t handle : objects_.of_class(cls)) {
      int error = 0;
      // A refusal leaves the object to the end of the process; there is nobody to tell.
      if (Object* object = objects_.find(handle, cls, &error)) destroy(object);
    }
  }
  for (const auto& channel : devx_events_) node_->events().unsubscribe_channel(channel);
  for (const auto& pipe : async_) node_->events().remove_listener(pipe);
  if (context_.uid) destroy_uctx(*this);
}

// DEVX objects stand on each other in ways that only the device knows: it refuses to destroy what is in use, so they are
// tried, youngest first, until nothing more goes. They may stand on objects of the verbs, never the other way round.
void File::release_devx() {
  for (bool progress = true; progress;) {
    progress = false;
    std::vector<std::uint32_t> handles = objects_.of_class(MLX5_IB_OBJECT_DEVX_OBJ);
    for (auto it = handles.rbegin(); it != handles.rend(); ++it)
      progress = !destroy(objects_.find(*it)) || progress;
  }
}

bool File::cqn_of(std::uint32_t handle, std::uint32_t* cqn) {
  if (dead()) return false;
  std::lock_guard guard(lock_);
  int error = 0;
  const Cq* cq = find<Cq>(handle, UVERBS_OBJECT_CQ, &error);
  if (cq) *cqn = cq->cqn;
  return cq;
}

bool File::ring_all() {
  std::vector<std::uint32_t> advanced;
  {
    if (dead()) return false;
    std::unique_lock guard(lock_, std::try_to_lock);
    if (!guard) return false;  // a request is under way; the next look will do
    for (std::uint32_t handle : objects_.of_class(UVERBS_OBJECT_QP)) {
      int error = 0;
      Qp* qp = find<Qp>(handle, UVERBS_OBJECT_QP, &error);
      if (record_changed(*qp)) advanced.push_back(qp->qpn);
    }
  }
  for (std::uint32_t qpn : advanced)
    if (void* token = device().sq_token(qpn)) device().ring_sq(token);
  return !advanced.empty();
}

int File::watch(std::uint16_t cls, std::uint32_t number) {
  if (dead()) return EIO;
  std::lock_guard guard(lock_);
  for (std::uint32_t handle : objects_.of_class(cls)) {
    int error = 0;
    Object* object = objects_.find(handle, cls, &error);
    if (!object || number_of(*object) != number) continue;
    if (std::none_of(watched_.begin(), watched_.end(),
                     [&](const Watched& w) { return w.cls == cls && w.handle == handle && w.number == number; }))
      watched_.push_back({cls, handle, number});
    watching_.store(true, std::memory_order_release);
    return 0;
  }
  return EINVAL;
}

void File::watch_devx(std::uint32_t handle, std::uint32_t number) {
  watched_.push_back({MLX5_IB_OBJECT_DEVX_OBJ, handle, number});
  watching_.store(true, std::memory_order_release);
  new_watch_.store(true, std::memory_order_release);
}

bool File::serve_watched() {
  std::vector<Ring> rings;
  {
    if (dead()) return false;
    std::unique_lock guard(lock_, std::try_to_lock);
    if (!guard) return false;  // a request is under way; the next look will do
    look_at_records(&rings);
    look_at_uars(&rings);
    if (watched_.empty()) watching_.store(false, std::memory_order_release);
  }
  for (const Ring& ring : rings) {
    if (ring.send) {
      if (void* token = device().sq_token(ring.number)) device().ring_sq(token);
    } else if (void* token = device().cq_token(ring.number)) {
      device().arm_cq(token);
    }
  }
  return !rings.empty();
}

void File::look_at_records(std::vector<Ring>* rings) {
  std::erase_if(watched_, [&](Watched& w) {
    Object* object = objects_.find(w.handle);
    if (!object || object->cls != w.cls || number_of(*object) != w.number) return true;
    const bool send = is_send_queue(*object);
    const bool changed = record_changed(*object);
    if (changed) rings->push_back({send, w.number});
    // A program writes the record, then the register: what the register says next is what we know already.
    const bool before = std::exchange(w.armed_before, changed);
    w.just_armed = !send && (changed || before);
    return false;
  });
}

// A CQ may be armed twice with the same record, so the register is looked at too. It is emptied, so that the next store
// shows whatever it says.
void File::look_at_uars(std::vector<Ring>* rings) {
  for (UarPage& uar : uars_) {
    if (!uar.words) {
      void* page = ::mmap(nullptr, kPageSize, PROT_READ | PROT_WRITE, MAP_SHARED, memory_, static_cast<off_t>(uar.offset));
      if (page == MAP_FAILED) continue;
      uar.words = static_cast<std::uint64_t*>(page);
    }
    std::atomic_ref<std::uint64_t> word(uar.words[prm::UarPage::cq_arm / sizeof(std::uint64_t)]);
    if (!word.load(std::memory_order_relaxed)) continue;
    const std::uint64_t stored = word.exchange(0, std::memory_order_acq_rel);
    const prm::ConstView<prm::CqArmDoorbell> doorbell(reinterpret_cast<const std::byte*>(&stored));
    const std::uint32_t cqn = doorbell.get<prm::CqArmDoorbell::cqn>();
    for (Watched& w : watched_) {
      const Object* object = objects_.find(w.handle);
      if (w.number != cqn || !object || is_send_queue(*object)) continue;
      if (!std::exchange(w.just_armed, false)) rings->push_back({false, cqn});
    }
  }
}

// ---- descriptors ----

int File::make_channel() {
  auto pipe = EventPipe::create(sizeof(ib_uverbs_comp_event_desc));
  if (!pipe) return -1;
  int fd = pipe->take_user_fd();
  channels_.push_back(std::move(pipe));
  return fd;
}

int File::make_async() {
  auto pipe = EventPipe::create(sizeof(ib_uverbs_async_event_desc));
  if (!pipe) return -1;
  int fd = pipe->take_user_fd();
  node_->events().add_listener(pipe);
  async_.push_back(std::move(pipe));
  return fd;
}

int File::make_devx_events(bool omit_data) {
  auto channel = DevxEventChannel::create(omit_data);
  if (!channel) return -1;
  int fd = channel->take_user_fd();
  devx_events_.push_back(std::move(channel));
  return fd;
}

int File::make_devx_results() {
  auto channel = DevxResultChannel::create();
  if (!channel) return -1;
  int fd = channel->take_user_fd();
  devx_results_.push_back(std::move(channel));
  return fd;
}

std::shared_ptr<DevxEventChannel> File::devx_events(int fd) const {
  auto it = std::find_if(devx_events_.begin(), devx_events_.end(), [fd](const auto& c) { return c->is(fd); });
  return it == devx_events_.end() ? nullptr : *it;
}

std::shared_ptr<DevxResultChannel> File::devx_results(int fd) const {
  auto it = std::find_if(devx_results_.begin(), devx_results_.end(), [fd](const auto& c) { return c->is(fd); });
  return it == devx_results_.end() ? nullptr : *it;
}

std::shared_ptr<EventPipe> File::channel(int fd) const {
  auto it = std::find_if(channels_.begin(), channels_.end(), [fd](const auto& pipe) { return pipe->is(fd); });
  return it == channels_.end() ? nullptr : *it;
}

std::shared_ptr<EventPipe> File::async(int fd) const {
  auto it = std::find_if(async_.begin(), async_.end(), [fd](const auto& pipe) { return pipe->is(fd); });
  return it == async_.end() ? nullptr : *it;
}

void File::forget_fd(int fd) {
  if (dead()) return;
  std::lock_guard guard(lock_);
  // Queues that still use the channel keep it alive.
  std::erase_if(channels_, [fd](const auto& pipe) { return pipe->is(fd); });
  std::erase_if(devx_results_, [fd](const auto& channel) { return channel->is(fd); });
  if (const auto channel = devx_events(fd)) {
    node_->events().unsubscribe_channel(channel);
    std::erase(devx_events_, channel);
  }
}

// ---- memory map ----

void File::add_mapping(std::uint64_t offset, bool writable) { mappings_.push_back({offset, writable}); }

void File::remove_mapping(std::uint64_t offset) {
  std::erase_if(mappings_, [offset](const Mapping& m) { return m.offset == offset; });
  fallocate(memory_, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, static_cast<off_t>(offset), kPageSize);
}

void File::add_uar(std::uint64_t offset) {
  add_mapping(offset, true);
  uars_.push_back({offset});
}

void File::remove_uar(std::uint64_t offset) {
  remove_mapping(offset);
  std::erase_if(uars_, [offset](const UarPage& uar) {
    if (uar.offset == offset && uar.words) ::munmap(uar.words, kPageSize);
    return uar.offset == offset;
  });
}

std::uint64_t File::new_uar_offset() {
  return mapping_offset(kUarCommand, next_uar_++ & 0xffff);
}

std::uint64_t File::new_virtio_offset() { return mapping_offset(kVirtioCommand, next_virtio_++ & 0xffff); }

bool File::add_device_memory(void* memory, std::size_t length, std::uint64_t* offset, std::uint16_t* index) {
  return add_at_index({0, true, length, memory}, offset, index);
}

bool File::add_operations(std::uint64_t bar, std::size_t length, std::uint64_t* offset, std::uint16_t* index) {
  return add_at_index({0, true, length, nullptr, bar}, offset, index);
}

bool File::add_at_index(Mapping mapping, std::uint64_t* offset, std::uint16_t* index) {
  for (unsigned tries = 0; tries <= 0xffff; ++tries) {
    *index = static_cast<std::uint16_t>(next_memory_++);
    *offset = mapping_offset(kDeviceMemoryCommand, *index);
    if (std::ranges::any_of(mappings_, [&](const Mapping& m) { return m.offset == *offset; })) continue;
    mapping.offset = *offset;
    mappings_.push_back(mapping);
    return true;
  }
  return false;
}

std::uint16_t File::device_memory_index(std::uint64_t offset) {
  const std::uint64_t page = offset / kPageSize;
  return static_cast<std::uint16_t>((page >> 16) << 8 | (page & 0xff));
}

int File::fill_page(std::uint64_t offset, const void* data, std::size_t length) {
  ssize_t n = pwrite(memory_, data, length, static_cast<off_t>(offset));
  return n == static_cast<ssize_t>(length) ? 0 : ENOMEM;
}

void* File::mmap(void* addr, std::size_t length, int prot, int flags, std::int64_t offset) {
  int error = 0;
  Mapping found{};
  if (dead()) {
    error = EIO;
  } else {
    std::lock_guard guard(lock_);
    auto it = std::find_if(mappings_.begin(), mappings_.end(),
                           [offset](const Mapping& m) { return m.offset == static_cast<std::uint64_t>(offset); });
    if (!context_.ready || it == mappings_.end() || length != it->length || !(flags & MAP_SHARED))
      error = EINVAL;
    else if (!it->writable && (prot & PROT_WRITE))
      error = EPERM;
    else
      found = *it;
  }
  if (error) {
    errno = error;
    return MAP_FAILED;
  }
  if (found.bar) return device().map_operations(addr, length, flags, found.bar);
  return found.memory ? map_again(found.memory, addr, length, prot, flags)
                      : ::mmap(addr, length, prot, flags, memory_, offset);
}

}  // namespace verbena::kernel
