#include "device/shared/nic.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <array>
#include <cstring>

#include "device/shared/arena.h"
#include "device/shared/counters.h"
#include "device/shared/nic_file.h"
#include "device/shared/numbers.h"
#include "device/shared/sparse.h"

namespace verbena::device {

namespace {
constexpr std::uint32_t kQpRest = 64;  // QP numbers that rest before they are used again
constexpr std::uint64_t kBackStep = 256 << 10;
}  // namespace

Result<std::unique_ptr<Nic>> Nic::attach(const NicConfig& given) {
  NicConfig config = given;
  config.run_dir = verbena::device::run_dir(given.run_dir);
  auto file = NicFile::open(config.run_dir, config.host, config.index, &config);
  if (!file) return std::unexpected(file.error());
  std::unique_ptr<Nic> nic(new Nic(*file, std::move(config)));
  if (auto slot = nic->take_slot(); !slot) {
    nic->abandoned_ = true;
    return std::unexpected(slot.error());
  }
  return nic;
}

Nic::Nic(std::shared_ptr<NicFile> file, NicConfig config) : NicMap(std::move(file)), config_(std::move(config)) {}

Result<void> Nic::take_slot() {
  NicFile::Exclusive exclusive(*file_);
  file_->reap();
  std::uint32_t slot = 0;
  while (slot < kMaxSlots && (segment_->slots[slot].state.load() != kSlotFree || !file_->lock_slot(slot))) ++slot;
  if (slot == kMaxSlots) return fail(EUSERS, "all process slots of the NIC are taken");
  Slot& entry = segment_->slots[slot];
  const std::string path = file_->slice_path(slot);
  const auto give_up = [&](std::string what) -> std::unexpected<Error> {
    const int error = errno;
    if (slice_fd_ >= 0) close(slice_fd_);
    slice_fd_ = -1;
    unlink(path.c_str());
    file_->unlock_slot(slot);
    return fail(error, what + " " + path + ": " + strerror(error));
  };
  unlink(path.c_str());
  slice_fd_ = open(path.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
  if (slice_fd_ < 0) return give_up("cannot create");
  if (ftruncate(slice_fd_, static_cast<off_t>(kSliceBytes)) != 0) return give_up("cannot size");
  if (fallocate(slice_fd_, 0, 0, offsetof(Slice, promoted)) != 0) return give_up("no memory for");
  void* p = map_sparse(kSliceBytes, MAP_SHARED, slice_fd_);
  if (p == MAP_FAILED) return give_up("cannot map");
  madvise(p, kSliceBytes, MADV_DONTDUMP);
  // A child must not ring its parent's doorbells. (Not MADV_DONTFORK: the hole could be taken by another library's
  // fork handler before ours puts zeros there.)
  NicFile::replace_in_child(p, kSliceBytes);

  entry.state.store(kSlotSettingUp);
  entry.pid = getpid();
  me_.slice = static_cast<Slice*>(p);
  me_.arena = static_cast<std::byte*>(p) + kArenaOffset;
  me_.arena_va = reinterpret_cast<std::uint64_t>(me_.arena);
  me_.pid = getpid();
  me_.slot = slot;
  me_.generation = entry.generation.load();
  me_.self = me_.attached = true;
  lock_id_ = NicFile::lock_id(segment_->host_index, segment_->device_index, slot, me_.generation);
  if (lock_id_ == 0) {
    me_.generation = entry.generation.fetch_add(1) + 1;
    lock_id_ = NicFile::lock_id(segment_->host_index, segment_->device_index, slot, me_.generation);
  }
  set_process_id(lock_id_);
  me_.own_kept = Own::make();
  me_.own = me_.own_kept.get();
  if (me_.own == nullptr) {
    NicFile::keep_in_child(p);
    munmap(p, kSliceBytes);
    errno = ENOMEM;
    me_.slice = nullptr;
    return give_up("no address space for");
  }
  me_.key_facts = me_.own->keys();
  file_->set_own(slot, me_.own_kept);
  SliceHeader& header = me_.slice->header;
  header.abi = kSharedAbi;
  header.slot = slot;
  header.pid = getpid();
  header.arena_va = me_.arena_va;
  header.generation = me_.generation;
  if (getrandom(&header.cookie, sizeof header.cookie, GRND_NONBLOCK) != sizeof header.cookie)
    header.cookie = reinterpret_cast<std::uint64_t>(p) * 0x9e3779b97f4a7c15u ^ static_cast<std::uint64_t>(getpid());
  header.magic.store(kSharedMagic, std::memory_order_release);

  qps_ = std::make_unique<Numbers>(kMaxQps, 0, segment_->qpn_block, &segment_->qpn_hint,
                                    &segment_->qpn_top, slot, kQpRest);
  mkeys_ = std::make_unique<Numbers>(kMaxMkeys, 0, segment_->mkey_block, &segment_->mkey_hint,
                                      &segment_->mkey_top, slot);
  cqs_ = std::make_unique<Numbers>(kMaxCqs, 1, nullptr, nullptr, nullptr, slot);
  srqs_ = std::make_unique<Numbers>(kMaxSrqs, 0, segment_->srqn_block, &segment_->srqn_hint, &segment_->srqn_top, slot);
  eqs_ = std::make_unique<Numbers>(kMaxEqs, 1, nullptr, nullptr, nullptr, slot);
  arena_ = std::make_unique<Arena>(me_.arena, slice_fd_);
  peers_[slot].store(&me_, std::memory_order_release);
  // Lets peers reach our memory where Yama would forbid it; where prctl knows no such thing nothing forbids it.
  prctl(PR_SET_PTRACER, PR_SET_PTRACER_ANY, 0, 0, 0);
  take_frames(false);
  entry.state.store(kSlotLive, std::memory_order_release);
  return {};
}

void Nic::release() {
  NicFile::Exclusive exclusive(*file_);
  peers_[me_.slot].store(nullptr, std::memory_order_release);
  file_->set_own(me_.slot, nullptr);
  file_->free_slot(me_.slot);
  file_->unlock_slot(me_.slot);
}

Nic::~Nic() {
  if (abandoned_ || me_.slice == nullptr || me_.pid != getpid()) return;
  release();
  NicFile::keep_in_child(me_.slice);
  munmap(me_.slice, kSliceBytes);
  close(slice_fd_);
}

void Nic::abandon_in_child() {
  // The nic file's descriptor was closed by the fork handler and the slice is zeros here.
  abandoned_ = true;
  if (slice_fd_ >= 0) close(slice_fd_);
  slice_fd_ = -1;
}

bool Nic::back(const void* start, std::size_t length) {
  const auto offset = static_cast<const std::byte*>(start) - reinterpret_cast<const std::byte*>(me_.slice);
  return fallocate(slice_fd_, 0, offset, static_cast<off_t>(length)) == 0;
}

bool Nic::back_slice(std::uint64_t offset, std::size_t length) {
  return back(reinterpret_cast<const std::byte*>(me_.slice) + offset, length);
}

namespace {
// Zeroes a context for its next life, except the generation, whose history must go on (stale references compare against
// it), and the locks: who follows a stale reference may hold one at any time. Word by word and releasing, for such
// readers' sake.
template <class T>
void clear(T& context) {
  const auto* first = reinterpret_cast<const std::byte*>(&context);
  const auto place = [first](const auto& member) {
    return static_cast<std::size_t>(reinterpret_cast<const std::byte*>(&member) - first);
  };
  std::array<std::size_t, 2> locks;
  if constexpr (std::is_same_v<T, QpContext>)
    locks = {place(context.sq_lock), place(context.rx_lock)};
  else
    locks = {place(context.lock), place(context.lock)};
  const std::size_t generation = place(context.generation);
  auto* word = reinterpret_cast<std::uint32_t*>(&context);
  for (std::size_t at = 0; at < sizeof context; at += sizeof *word, ++word)
    if (at != generation && at != locks[0] && at != locks[1]) __atomic_store_n(word, 0, __ATOMIC_RELEASE);
}
}  // namespace

template <class T>
T* Nic::alloc_context(Numbers& numbers, T* array) {
  std::lock_guard guard(alloc_mutex_);
  const auto index = numbers.take();
  if (!index) return nullptr;
  const std::uint64_t end = (*index + std::uint64_t{1}) * sizeof(T);
  if (end > numbers.backed) {
    const std::uint64_t step = std::max(kBackStep, sizeof(T));
    if (!back(reinterpret_cast<std::byte*>(array) + numbers.backed, step)) {
      numbers.give_back(*index);
      return nullptr;
    }
    numbers.backed += step;
  }
  T& context = array[*index];
  clear(context);
  return &context;
}

QpContext* Nic::alloc_qp() {
  QpContext* qp = alloc_context(*qps_, me_.slice->qps);
  if (qp != nullptr) {
    qp->qpn = qps_->number(index_of(*qp));
    qp->srq = ~0u;
  }
  return qp;
}
CqContext* Nic::alloc_cq() {
  CqContext* cq = alloc_context(*cqs_, me_.slice->cqs);
  if (cq != nullptr) cq->cqn = static_cast<std::uint32_t>(cq - me_.slice->cqs);
  return cq;
}
SrqContext* Nic::alloc_srq() {
  SrqContext* srq = alloc_context(*srqs_, me_.slice->srqs);
  if (srq != nullptr) srq->srqn = srqs_->number(index_of(*srq));
  return srq;
}
EqContext* Nic::alloc_eq() {
  EqContext* eq = alloc_context(*eqs_, me_.slice->eqs);
  if (eq != nullptr) eq->eqn = static_cast<std::uint32_t>(eq - me_.slice->eqs);
  return eq;
}
std::uint32_t Nic::qp_high_water() {
  std::lock_guard guard(alloc_mutex_);
  return qps_->high_water();
}
std::uint32_t Nic::reserve_qpns() {
  std::lock_guard guard(alloc_mutex_);
  return qps_->reserve();
}
void Nic::release_qpns(std::uint32_t first) {
  std::lock_guard guard(alloc_mutex_);
  qps_->release(first);
}
MkeyContext* Nic::alloc_mkey() {
  MkeyContext* mkey = alloc_context(*mkeys_, me_.slice->mkeys);
  if (mkey != nullptr) mkey->key.store(mkeys_->number(static_cast<std::uint32_t>(mkey - me_.slice->mkeys)) << 8);
  return mkey;
}

namespace {
// Hides a context. Whoever holds one of its locks has finished when this returns; later comers see the generation.
template <class T>
void hide(T& context) {
  if (Nic::in_use(context)) context.generation.fetch_add(1, std::memory_order_acq_rel);
}
}  // namespace

void Nic::free_qp(QpContext& qp) {
  {
    SharedGuard sq(qp.sq_lock, me());
    SharedGuard rx(qp.rx_lock, me());
    qp.state.store(static_cast<std::uint32_t>(QpState::rst), std::memory_order_release);
    settle_counts(qp, segment(), me_.slice);
    hide(qp);
  }
  std::lock_guard guard(alloc_mutex_);
  qps_->give_back(index_of(qp));
}
void Nic::free_cq(CqContext& cq) {
  {
    SharedGuard lock(cq.lock, me());
    hide(cq);
  }
  std::lock_guard guard(alloc_mutex_);
  cqs_->give_back(static_cast<std::uint32_t>(&cq - me_.slice->cqs));
}
void Nic::free_srq(SrqContext& srq) {
  {
    SharedGuard lock(srq.lock, me());
    hide(srq);
  }
  std::lock_guard guard(alloc_mutex_);
  srqs_->give_back(index_of(srq));
}
void Nic::free_eq(EqContext& eq) {
  {
    SharedGuard lock(eq.lock, me());
    hide(eq);
  }
  std::lock_guard guard(alloc_mutex_);
  eqs_->give_back(static_cast<std::uint32_t>(&eq - me_.slice->eqs));
}
void Nic::free_mkey(MkeyContext& mkey) {
  {
    SharedGuard lock(mkey.lock, me());
    hide(mkey);
  }
  me_.own->forget(index_of(mkey));
  std::lock_guard guard(alloc_mutex_);
  mkeys_->give_back(static_cast<std::uint32_t>(&mkey - me_.slice->mkeys));
}

QpContext* Nic::own_qp(std::uint32_t qpn) {
  const auto found = find_qp(qpn);
  if (!found || found.peer != &me_ || !in_use(*found.context) || found.context->qpn != qpn) return nullptr;
  return found.context;
}
CqContext* Nic::own_cq(std::uint32_t n) {
  return n < kMaxCqs && n < cqs_->high_water() && in_use(me_.slice->cqs[n]) ? &me_.slice->cqs[n] : nullptr;
}
SrqContext* Nic::own_srq(std::uint32_t n) {
  const auto found = find_srq(n);
  return found && found.peer == &me_ && in_use(*found.context) && found.context->srqn == n ? found.context : nullptr;
}
EqContext* Nic::own_eq(std::uint32_t n) {
  return n < kMaxEqs && in_use(me_.slice->eqs[n]) ? &me_.slice->eqs[n] : nullptr;
}
MkeyContext* Nic::own_mkey(std::uint32_t index) {
  if (index >> 24 != 0) return nullptr;
  const auto found = find_mkey(index << 8);
  if (!found || found.peer != &me_ || !in_use(*found.context) || found.context->key.load() >> 8 != index)
    return nullptr;
  return found.context;
}

void* Nic::alloc_dma(std::size_t length) {
  std::lock_guard guard(alloc_mutex_);
  const auto offset = arena_->alloc_pages(length);
  return offset ? me_.arena + *offset : nullptr;
}

void Nic::free_dma(void* addr, std::size_t length) {
  const std::uint64_t offset = reinterpret_cast<std::uint64_t>(addr) - me_.arena_va;
  if (offset >= kArenaBytes) return;
  std::lock_guard guard(alloc_mutex_);
  arena_->free_pages(offset, length);
}

std::uint64_t Nic::reserve_arena(std::size_t length, std::size_t align) {
  std::lock_guard guard(alloc_mutex_);
  return arena_->reserve(length, align).value_or(0);
}

void Nic::free_arena(std::uint64_t offset, std::size_t length) {
  std::lock_guard guard(alloc_mutex_);
  arena_->free_pages(offset, length);
}

bool Nic::map_arena(void* at, std::size_t length, std::uint64_t offset) {
  // By system call: sanitizers would take the range for new memory.
  return syscall(SYS_mmap, at, length, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, slice_fd_,
                 kArenaOffset + offset) == reinterpret_cast<long>(at);
}

bool Nic::slice_identity(std::uint64_t& device, std::uint64_t& inode) const {
  struct stat st {};
  if (fstat(slice_fd_, &st) != 0) return false;
  device = st.st_dev;
  inode = st.st_ino;
  return true;
}

std::uint64_t Nic::alloc_table(std::uint32_t entries) {
  std::lock_guard guard(alloc_mutex_);
  const auto offset = arena_->alloc_small(std::uint64_t{std::max(entries, 1u)} * sizeof(Translation));
  return offset ? kArenaOffset + *offset : 0;
}

void Nic::free_table(std::uint64_t offset, std::uint32_t entries) {
  if (offset < kArenaOffset) return;
  std::lock_guard guard(alloc_mutex_);
  arena_->free_small(offset - kArenaOffset, std::uint64_t{std::max(entries, 1u)} * sizeof(Translation));
}

Translation* Nic::table(std::uint64_t offset) const {
  return reinterpret_cast<Translation*>(reinterpret_cast<std::byte*>(me_.slice) + offset);
}

}  // namespace verbena::device
