#include "kernel/file.h"

#include <fcntl.h>
#include <rdma/ib_user_ioctl_cmds.h>
#include <rdma/ib_user_verbs.h>
#include <rdma/mlx5-abi.h>
#include <rdma/mlx5_user_ioctl_cmds.h>
#include <sys/mman.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstdio>
#include <new>
#include <utility>

#include "device/memory/guard.h"
#include "kernel/context.h"
#include "kernel/cq.h"
#include "kernel/devx.h"
#include "kernel/ib.h"
#include "kernel/method.h"
#include "prm/doorbell.h"
#include "uverbs/newer.h"

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
constexpr std::uint16_t kReleaseOrder[] = {
    UVERBS_OBJECT_COUNTERS, MLX5_IB_OBJECT_FLOW_MATCHER, UVERBS_OBJECT_QP,   UVERBS_OBJECT_RWQ_IND_TBL,
    UVERBS_OBJECT_WQ,       UVERBS_OBJECT_MW,            UVERBS_OBJECT_SRQ,  UVERBS_OBJECT_CQ,
    UVERBS_OBJECT_XRCD,     UVERBS_OBJECT_AH,            UVERBS_OBJECT_MR,   uverbs::newer::kObjectDmah,
    UVERBS_OBJECT_DM,       MLX5_IB_OBJECT_VAR,          MLX5_IB_OBJECT_DEVX_UMEM, MLX5_IB_OBJECT_PP,
    MLX5_IB_OBJECT_UAR,     UVERBS_OBJECT_PD};

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

}  // namespace

std::shared_ptr<File> File::open(std::shared_ptr<Node> node) {
  device::ensure_guard();
  char name[32];
  std::snprintf(name, sizeof name, "uverbs%u", node->index());
  std::shared_ptr<File> file(new File(std::move(node)));
  file->user_ = memfd_create(name, MFD_CLOEXEC | MFD_ALLOW_SEALING);
  if (file->user_ < 0) return nullptr;
  if (ftruncate(file->user_, kFileBytes)) return nullptr;
  // The program has this file, too, and must not take pages away that we look at.
  fcntl(file->user_, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL);
  file->memory_ = fcntl(file->user_, F_DUPFD_CLOEXEC, 0);
  if (file->memory_ < 0) return nullptr;
  file->id_ = file_id(file->user_);
  return file;
}

std::shared_ptr<File> File::inherit(std::shared_ptr<Node> node, const File& parents) {
  auto file = open(std::move(node));
  if (!file) return nullptr;
  ::close(file->user_);
  file->user_ = -1;
  file->id_ = parents.id_;
  file->context_ = parents.context_;
  file->context_.uid = 0;
  file->context_.transport_domain.reset();
  if (parents.context_.uid && create_uctx(*file, &file->context_.uid)) return nullptr;
  file->objects_.start_at(kHeirHandles);
  if (file->context_.ready) file->start_tracking();
  return file;
}

File::~File() {
  for (int fd : {user_, memory_})
    if (fd >= 0) ::close(fd);
  for (const auto& [offset, words] : uars_)
    if (words) ::munmap(words, kPageSize);
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

void File::start_tracking() {
  device::Tracker* tracker = device().tracker();
  if (tracker == nullptr || track_record_ != nullptr) return;
  device::TrackFacts facts;
  facts.kind = device::TrackKind::ctx;
  track_record_ = tracker->add(facts);
  objects_.track_in(tracker, device::Tracker::id_of(track_record_));
}

int File::destroy(Object* object) {
  if (object->users) return EBUSY;
  if (int error = object->destroy(*this)) return error;
  remove(object);
  return 0;
}

void File::remove(Object* object) {
  watched_.remove(*object);
  objects_.remove(object->handle);
}

void File::release() {
  if (dead()) return;
  std::lock_guard guard(lock_);
  // Flows lead to DEVX objects and to those of the verbs.
  for (std::uint32_t handle : objects_.of_class(UVERBS_OBJECT_FLOW)) destroy(objects_.find(handle));
  release_devx();
  for (std::uint16_t cls : kReleaseOrder) {
    for (std::uint32_t handle : objects_.of_class(cls)) {
      int error = 0;
      // A refusal leaves the object to the end of the process; there is nobody to tell.
      if (Object* object = objects_.find(handle, cls, &error)) destroy(object);
    }
  }
  release_devx();  // what QPs of the verbs stood on: queue groups, counters
  give_back_uars(*this);
  for (const auto& [id, channel] : devx_events_) node_->events().unsubscribe_channel(channel);
  for (const auto& [id, pipe] : async_) node_->events().remove_listener(pipe);
  give_back_transport_domain(*this);
  if (context_.uid) destroy_uctx(*this);
  if (track_record_) device().tracker()->remove(track_record_);
  track_record_ = nullptr;
}

// DEVX objects stand on each other in ways that only the device knows: it refuses to destroy what is in use, so they are
// tried, youngest first, until nothing more goes. They may stand on objects of the verbs, and QPs of the verbs on them:
// what is refused before those go is tried again afterwards.
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

int File::watch(std::uint16_t cls, std::uint32_t handle) {
  if (dead()) return EIO;
  std::lock_guard guard(lock_);
  int error = 0;
  Object* object = objects_.find(handle, cls, &error);
  if (!object) return error;
  watched_.add(*object);
  watching_.store(true, std::memory_order_release);
  return 0;
}

void File::watch_devx(DevxObject& object) {
  watched_.add(object);
  watching_.store(true, std::memory_order_release);
  new_watch_.store(true, std::memory_order_release);
}

bool File::serve_watched() {
  bool worked = false;
  for (bool through = false; !through;) {
    std::vector<WatchList::Ring> rings;
    std::vector<std::uint64_t> doorbells;
    {
      if (dead()) break;
      std::unique_lock guard(lock_, std::try_to_lock);
      if (!guard) break;  // a request is under way; the next look will do
      through = watched_.look(&rings);
      if (through) look_at_uars(&rings, &doorbells);
      if (watched_.empty()) watching_.store(false, std::memory_order_release);
    }
    for (const auto& [send, number] : rings) {
      if (send) {
        if (void* token = device().sq_token(number)) device().ring_sq(token);
      } else if (void* token = device().cq_token(number)) {
        device().arm_cq(token);
      }
    }
    for (const std::uint64_t& doorbell : doorbells)
      device().send_doorbell(std::as_bytes(std::span<const std::uint64_t, 1>(&doorbell, 1)));
    worked = worked || !rings.empty() || !doorbells.empty();
  }
  return worked;
}

// A CQ may be armed twice with the same record, so the register is looked at too. It is emptied, so that the next store
// shows whatever it says.
void File::look_at_uars(std::vector<WatchList::Ring>* rings, std::vector<std::uint64_t>* doorbells) {
  for (auto& [offset, words] : uars_) {
    if (!words) {
      void* page = ::mmap(nullptr, kPageSize, PROT_READ | PROT_WRITE, MAP_SHARED, memory_, static_cast<off_t>(offset));
      if (page == MAP_FAILED) continue;
      words = static_cast<std::uint64_t*>(page);
    }
    std::atomic_ref<std::uint64_t> send(words[prm::UarPage::send_without_record / sizeof(std::uint64_t)]);
    if (send.load(std::memory_order_relaxed)) doorbells->push_back(send.exchange(0, std::memory_order_acq_rel));
    std::atomic_ref<std::uint64_t> word(words[prm::UarPage::cq_arm / sizeof(std::uint64_t)]);
    if (!word.load(std::memory_order_relaxed)) continue;
    const std::uint64_t stored = word.exchange(0, std::memory_order_acq_rel);
    const prm::ConstView<prm::CqArmDoorbell> doorbell(reinterpret_cast<const std::byte*>(&stored));
    const std::uint32_t cqn = doorbell.get<prm::CqArmDoorbell::cqn>();
    if (watched_.register_is_news(cqn)) rings->push_back({false, cqn});
  }
}

// ---- descriptors ----

int File::make_channel() {
  auto pipe = EventPipe::create(sizeof(ib_uverbs_comp_event_desc));
  if (!pipe) return -1;
  int fd = pipe->take_user_fd();
  channels_.add(std::move(pipe));
  return fd;
}

int File::make_async() {
  auto pipe = EventPipe::create(sizeof(ib_uverbs_async_event_desc));
  if (!pipe) return -1;
  int fd = pipe->take_user_fd();
  node_->events().add_listener(pipe);
  if (!default_async_) default_async_ = pipe;
  async_.add(std::move(pipe));
  return fd;
}

int File::make_devx_events(bool omit_data) {
  auto channel = DevxEventChannel::create(omit_data);
  if (!channel) return -1;
  int fd = channel->take_user_fd();
  devx_events_.add(std::move(channel));
  return fd;
}

int File::make_devx_results() {
  auto channel = DevxResultChannel::create();
  if (!channel) return -1;
  int fd = channel->take_user_fd();
  devx_results_.add(std::move(channel));
  return fd;
}

void File::forget_fd(int fd) {
  if (dead()) return;
  const FileId id = file_id(fd);
  std::lock_guard guard(lock_);
  // Queues that still use the channel keep it alive.
  channels_.remove(id);
  devx_results_.remove(id);
  if (const auto channel = devx_events_.find(id)) node_->events().unsubscribe_channel(channel);
  devx_events_.remove(id);
}

// ---- memory map ----

void File::add_mapping(std::uint64_t offset, bool writable) { mappings_[offset] = {writable}; }

void File::add_clock() { mappings_[mapping_offset(MLX5_IB_MMAP_CORE_CLOCK, 0)] = {.writable = false, .clock = true}; }

void File::remove_mapping(std::uint64_t offset) {
  mappings_.erase(offset);
  fallocate(memory_, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, static_cast<off_t>(offset), kPageSize);
}

bool File::add_uar(std::uint64_t* offset) {
  if (!add_at_index(kUarCommand, {true}, next_uar_, offset)) return false;
  try {
    uars_[*offset] = nullptr;
    return true;
  } catch (const std::bad_alloc&) {
    remove_mapping(*offset);
    return false;
  }
}

void File::remove_uar(std::uint64_t offset) {
  remove_mapping(offset);
  const auto uar = uars_.find(offset);
  if (uar->second) ::munmap(uar->second, kPageSize);
  uars_.erase(uar);
}

void File::retire_uar(std::uint64_t offset, std::uint32_t page) {
  mappings_[offset].retired = true;
  retired_uars_.push_back({offset, page});
}

bool File::add_virtio(std::uint64_t* offset) { return add_at_index(kVirtioCommand, {true}, next_virtio_, offset); }

bool File::add_device_memory(void* memory, std::size_t length, std::uint64_t* offset) {
  return add_at_index(kDeviceMemoryCommand, {true, length, memory}, next_memory_, offset);
}

bool File::add_operations(std::uint64_t bar, std::size_t length, std::uint64_t* offset) {
  return add_at_index(kDeviceMemoryCommand, {true, length, nullptr, bar}, next_memory_, offset);
}

bool File::add_at_index(std::uint64_t command, const Mapping& mapping, std::uint16_t& next, std::uint64_t* offset) {
  for (unsigned tries = 0; tries <= 0xffff; ++tries) {
    *offset = mapping_offset(command, next++);
    try {
      if (mappings_.try_emplace(*offset, mapping).second) return true;
    } catch (const std::bad_alloc&) {
      return false;
    }
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
    const auto it = mappings_.find(static_cast<std::uint64_t>(offset));
    if (!context_.ready || it == mappings_.end() || it->second.retired || length != it->second.length || !(flags & MAP_SHARED))
      error = EINVAL;
    else if (!it->second.writable && (prot & PROT_WRITE))
      error = EPERM;
    else
      found = it->second;
  }
  if (error) {
    errno = error;
    return MAP_FAILED;
  }
  if (found.clock) return device().map_clock(addr, length, flags);
  if (found.bar) return device().map_operations(addr, length, flags, found.bar);
  return found.memory ? map_again(found.memory, addr, length, prot, flags)
                      : ::mmap(addr, length, prot, flags, memory_, offset);
}

}  // namespace verbena::kernel
