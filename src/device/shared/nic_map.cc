// Finding peers and their contexts.
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>
#include <x86intrin.h>

#include "device/shared/nic.h"
#include "device/shared/nic_file.h"
#include "device/shared/sparse.h"

namespace verbena::device {

namespace {
// How stale the belief that a peer lives may be: about 5 ms at 2 to 4 GHz.
constexpr std::uint64_t kProbeCycles = 15'000'000;
}  // namespace

NicMap::NicMap(std::shared_ptr<NicFile> file)
    : file_(std::move(file)),
      segment_(&file_->segment()),
      peers_(std::make_unique<std::atomic<Peer*>[]>(kMaxSlots)) {}

NicMap::~NicMap() {
  for (auto& peer : all_peers_)
    if (peer->slice != nullptr) munmap(peer->slice, kSliceBytes);
}

Result<std::unique_ptr<NicMap>> NicMap::visit(const std::string& dir, const std::string& host, unsigned index) {
  auto file = NicFile::open(verbena::device::run_dir(dir), host, index, nullptr);
  if (!file) return std::unexpected(file.error());
  return std::unique_ptr<NicMap>(new NicMap(*file));
}

const std::string& NicMap::run_dir() const { return file_->run_dir(); }

Peer* NicMap::peer(std::uint32_t slot) {
  if (slot >= kMaxSlots) return nullptr;
  Peer* p = peers_[slot].load(std::memory_order_acquire);
  const Slot& entry = segment_->slots[slot];
  if (p != nullptr && p->generation == entry.generation.load(std::memory_order_acquire) &&
      !p->dead.load(std::memory_order_relaxed)) [[likely]]
    return p;
  if (p != nullptr && p->attached) return p;
  if (p != nullptr && p->generation == entry.generation.load()) return nullptr;  // dead, not yet reaped
  return map_peer(slot);
}

Peer* NicMap::map_peer(std::uint32_t slot) {
  std::lock_guard guard(map_mutex_);
  const Slot& entry = segment_->slots[slot];
  const std::uint32_t generation = entry.generation.load(std::memory_order_acquire);
  Peer* old = peers_[slot].load(std::memory_order_acquire);
  if (old != nullptr && old->generation == generation) return old->dead ? nullptr : old;
  if (old != nullptr) retire(old);
  if (entry.state.load(std::memory_order_acquire) != 2 || !file_->live(slot)) return nullptr;
  const int fd = open(file_->slice_path(slot).c_str(), O_RDWR | O_CLOEXEC);
  if (fd < 0) return nullptr;
  struct stat st {};
  void* p = MAP_FAILED;
  if (fstat(fd, &st) == 0 && static_cast<std::uint64_t>(st.st_size) == kSliceBytes)
    p = map_sparse(kSliceBytes, MAP_SHARED, fd);
  close(fd);
  if (p == MAP_FAILED) return nullptr;
  madvise(p, kSliceBytes, MADV_DONTDUMP);
  madvise(p, kSliceBytes, MADV_DONTFORK);
  auto* slice = static_cast<Slice*>(p);
  if (slice->header.magic.load(std::memory_order_acquire) != kSharedMagic || slice->header.slot != slot ||
      slice->header.generation != generation || entry.generation.load() != generation) {
    munmap(p, kSliceBytes);
    return nullptr;
  }
  auto peer = std::make_unique<Peer>();
  peer->slice = slice;
  peer->arena = static_cast<std::byte*>(p) + kArenaOffset;
  peer->arena_va = slice->header.arena_va;
  peer->pid = entry.pid;
  peer->slot = slot;
  peer->generation = generation;
  peer->self = file_->local(slot);
  if (peer->self) peer->own_kept = file_->own(slot);
  peer->own = peer->own_kept.get();
  peer->key_facts = peer->own != nullptr ? peer->own->keys() : slice->mkeys;
  Peer* raw = peer.get();
  all_peers_.push_back(std::move(peer));
  peers_[slot].store(raw, std::memory_order_release);
  return raw;
}

void NicMap::retire(Peer* peer) {
  peer->dead.store(true);
  peers_[peer->slot].store(nullptr, std::memory_order_release);
  // Other threads may still be inside it. They get private zeros: the file's memory is freed, nothing faults, and
  // the address range is never given to another slice.
  if (peer->slice != nullptr) replace_sparse(peer->slice, kSliceBytes);
}

bool NicMap::alive(Peer& peer) {
  if (peer.dead.load(std::memory_order_relaxed)) return false;
  if (peer.self) return true;
  const std::uint64_t now = __rdtsc();
  if (now < peer.next_probe.load(std::memory_order_relaxed)) [[likely]]
    return true;
  peer.next_probe.store(now + kProbeCycles, std::memory_order_relaxed);
  if (segment_->slots[peer.slot].generation.load() == peer.generation && file_->live(peer.slot)) return true;
  peer.dead.store(true);
  NicFile::Exclusive exclusive(*file_);
  file_->reap();
  return false;
}

namespace {
struct Place {
  std::uint32_t slot, index;
};
bool decode(std::uint32_t entry, std::uint32_t number, std::uint32_t limit, Place& out) {
  if (entry == 0) return false;
  out.slot = (entry & 0xffff) - 1;
  out.index = (entry >> 16) << kLogBlock | (number & ((1u << kLogBlock) - 1));
  return out.index < limit;
}
}  // namespace

Found<QpContext> NicMap::find_qp(std::uint32_t qpn) {
  Place at{};
  if (qpn >> 24 != 0 ||
      !decode(segment_->qpn_block[qpn >> kLogBlock].load(std::memory_order_acquire), qpn, kMaxQps, at))
    return {};
  Peer* p = peer(at.slot);
  if (p == nullptr) return {};
  return {p, &p->slice->qps[at.index]};
}

Found<SrqContext> NicMap::find_srq(std::uint32_t srqn) {
  Place at{};
  if (srqn >> 24 != 0 ||
      !decode(segment_->srqn_block[srqn >> kLogBlock].load(std::memory_order_acquire), srqn, kMaxSrqs, at))
    return {};
  Peer* p = peer(at.slot);
  if (p == nullptr) return {};
  return {p, &p->slice->srqs[at.index]};
}

Found<MkeyContext> NicMap::find_mkey(std::uint32_t key) {
  const std::uint32_t index = key >> 8;
  Place at{};
  if (!decode(segment_->mkey_block[index >> kLogBlock].load(std::memory_order_acquire), index, kMaxMkeys, at))
    return {};
  Peer* p = peer(at.slot);
  if (p == nullptr) return {};
  return {p, &p->slice->mkeys[at.index]};
}

}  // namespace verbena::device
