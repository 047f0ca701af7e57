// This process's attachment to a NIC: the mapped segment, its own slice, and the slices of its peers.
//
// NicMap is a view of one (virtual host, device): anyone on the machine may open one to deliver packets there.
// Nic is a NicMap in which this process owns a slot, and so may create objects.
//
// Threads: any thread may call anything here; allocators take a process-local mutex (never on the data path).
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "device/shared/contexts.h"
#include "device/shared/own.h"
#include "device/shared/segments.h"
#include "support/result.h"

namespace verbena::device {

// What the creator of a NIC segment fills in; ignored by those who come later.
struct NicConfig {
  std::string run_dir;  // empty: VERBENA_RUN_DIR or /dev/shm/verbena-<uid>
  std::string host = "localhost";
  unsigned index = 0;
  unsigned ports = 1;
  std::uint64_t node_guid = 0;  // 0: from the first port's MAC
  struct Port {
    std::uint8_t mac[6] = {};                // all zero: 02:00:<host>:<device>:<port>
    std::vector<std::uint32_t> ipv4;         // host order; empty: 198.18.<host>.<device * 2 + port>
    std::vector<std::array<std::uint8_t, 16>> ipv6;  // global addresses, after the IPv4 ones
    bool link_local = true;                  // fe80:: from the MAC comes first, as Linux lays it out
  };
  std::vector<Port> port;       // missing entries: defaults
};

// A process's slice as it is mapped here.
struct Peer {
  Slice* slice = nullptr;
  std::byte* arena = nullptr;    // our address of the arena
  std::uint64_t arena_va = 0;    // the owner's address of it
  std::int32_t pid = 0;
  std::uint32_t slot = 0;
  std::uint32_t generation = 0;  // of the slot; another value there means that this process is gone
  bool self = false;             // addresses of the owner are our addresses
  std::atomic<std::uint64_t> next_probe{0};  // tsc after which death is looked for again
  std::atomic<bool> dead{false};
  enum class ProcessVm : std::uint8_t { unknown, yes, no };
  std::atomic<ProcessVm> process_vm{ProcessVm::unknown};  // whether the kernel lets us into its memory
  bool attached = false;                      // our own slot: no word in shared memory takes it away from us
  std::shared_ptr<Own> own_kept;
  Own* own = nullptr;                         // of a process that is ourselves; else null
  const MkeyContext* key_facts = nullptr;     // where its keys lead: own->keys(), or the slice's

  // Our address of [va, va + length) of the owner if it lies in the arena, else null. Overflow-safe.
  std::byte* in_arena(std::uint64_t va, std::uint64_t length) const {
    const std::uint64_t offset = va - arena_va;
    if (offset >= kArenaBytes || length > kArenaBytes - offset) return nullptr;
    return arena + offset;
  }
};

template <class T>
struct Found {
  Peer* peer = nullptr;
  T* context = nullptr;
  explicit operator bool() const { return context != nullptr; }
};

class NicFile;  // the open, mapped nic file; shared by all views in this process (nic_file.h)

class NicMap {
 public:
  // Opens an existing NIC as a visitor. ENOENT if there is none.
  static Result<std::unique_ptr<NicMap>> visit(const std::string& run_dir, const std::string& host, unsigned index);
  virtual ~NicMap();
  NicMap(const NicMap&) = delete;
  NicMap& operator=(const NicMap&) = delete;

  NicSegment& segment() const { return *segment_; }
  // The slice of the process in `slot`, mapped on demand; null if there is none or it is dead. O(1) once mapped.
  Peer* peer(std::uint32_t slot);
  // Looks whether the peer's process still lives, by system call but only every few milliseconds.
  bool alive(Peer& peer);
  const std::string& run_dir() const;
  // The context that a number stands for, whoever owns it. The caller checks `generation` and the number again
  // under the context's lock.
  Found<QpContext> find_qp(std::uint32_t qpn);
  Found<MkeyContext> find_mkey(std::uint32_t key);
  Found<SrqContext> find_srq(std::uint32_t srqn);

 protected:
  explicit NicMap(std::shared_ptr<NicFile> file);
  Peer* map_peer(std::uint32_t slot);
  void retire(Peer* peer);

  std::shared_ptr<NicFile> file_;
  NicSegment* segment_;
  std::unique_ptr<std::atomic<Peer*>[]> peers_;  // kMaxSlots
  std::mutex map_mutex_;
  std::vector<std::unique_ptr<Peer>> all_peers_;  // never freed before the map: other threads may hold pointers
};

class Nic : public NicMap {
 public:
  static Result<std::unique_ptr<Nic>> attach(const NicConfig& config);
  ~Nic() override;

  const NicConfig& config() const { return config_; }
  std::uint32_t slot() const { return me_.slot; }
  // Whether frames that arrive are offered to this process's flow tables.
  void take_frames(bool on) {
    const std::uint64_t bit = 1ull << (me_.slot % 64);
    std::atomic<std::uint64_t>& word = segment_->frame_slots[me_.slot / 64];
    on ? word.fetch_or(bit, std::memory_order_release) : word.fetch_and(~bit, std::memory_order_release);
  }
  // What SharedLock wants: nonzero and unique among the processes on this machine, dead ones included.
  std::uint32_t me() const { return lock_id_; }
  Slice& slice() const { return *me_.slice; }
  Peer& self() { return me_; }

  // ---- contexts of this process ----
  // alloc_*() gives a zeroed context with its number filled in, not yet visible; publish() makes it so.
  // free_*() hides it, waits for whoever is using it (takes its locks) and recycles the number. Null: none left.
  QpContext* alloc_qp();
  CqContext* alloc_cq();
  SrqContext* alloc_srq();
  EqContext* alloc_eq();
  MkeyContext* alloc_mkey();  // key = index << 8; the command adds the variant
  void free_qp(QpContext& qp);
  void free_cq(CqContext& cq);
  void free_srq(SrqContext& srq);
  void free_eq(EqContext& eq);
  void free_mkey(MkeyContext& mkey);
  template <class T>
  void publish(T& context) {
    note(context);
    context.generation.fetch_add(1, std::memory_order_release);
  }
  // A context's keys or ring changed by our own doing: under its lock, or hidden.
  void note(const MkeyContext& key) { me_.own->note(index_of(key), key, reinterpret_cast<std::byte*>(me_.slice)); }
  void note(const CqContext& cq) { me_.own->cq(cq_index(cq)) = {cq.ring.va, ring_bytes(cq.ring, cq.cqe_bytes_log)}; }
  void note(const EqContext& eq) { me_.own->eq(eq_index(eq)) = {eq.ring.va, ring_bytes(eq.ring, 6)}; }
  void note(const QpContext&) {}
  void note(const SrqContext&) {}
  // Our own account of a key (own.h).
  MkeyContext& facts(const MkeyContext& key) { return me_.own->key(index_of(key)); }
  template <class T>
  static bool in_use(const T& context) {
    return context.generation.load(std::memory_order_acquire) & 1;
  }
  // Own contexts by number; null unless in use. cqn and eqn are indices into the slice.
  QpContext* own_qp(std::uint32_t qpn);
  CqContext* own_cq(std::uint32_t cqn);
  SrqContext* own_srq(std::uint32_t srqn);
  EqContext* own_eq(std::uint32_t eqn);
  // Indices at and above this were never given out; for walks over all own QPs.
  std::uint32_t qp_high_water();
  MkeyContext* own_mkey(std::uint32_t index);  // key >> 8
  // A block of QP numbers that no QP will get while it is reserved; its first number, or 0: none left.
  std::uint32_t reserve_qpns();
  void release_qpns(std::uint32_t first);
  std::uint32_t index_of(const QpContext& qp) const { return static_cast<std::uint32_t>(&qp - me_.slice->qps); }
  std::uint32_t index_of(const SrqContext& srq) const { return static_cast<std::uint32_t>(&srq - me_.slice->srqs); }

  // ---- the DMA arena ----
  // Page-granular, zeroed, backed (never faults for want of memory). Null when full.
  void* alloc_dma(std::size_t length);
  void free_dma(void* addr, std::size_t length);
  // For promotion: a place in the arena at a multiple of `align`, by offset (0: full); pages for a part of it (false:
  // no memory); and its mapping at an address of the caller's choice.
  std::uint64_t reserve_arena(std::size_t length, std::size_t align);
  bool back_arena(std::uint64_t offset, std::size_t length) { return back(me_.arena + offset, length); }
  void free_arena(std::uint64_t offset, std::size_t length);
  bool map_arena(void* at, std::size_t length, std::uint64_t offset);
  // What /proc/self/maps calls the slice file: device and inode.
  bool slice_identity(std::uint64_t& device, std::uint64_t& inode) const;
  // A table of Translation entries in the arena; its MkeyContext.translations offset, or 0 when full.
  std::uint64_t alloc_table(std::uint32_t entries);
  void free_table(std::uint64_t offset, std::uint32_t entries);
  Translation* table(std::uint64_t offset) const;

  // ---- port tables ----
  // Writes or (type none) clears an entry and tells the fabric registry. 0 or an errno.
  int set_gid(unsigned port, unsigned index, const std::uint8_t gid[16], const std::uint8_t mac[6], GidType type,
              bool l3_is_ipv6);
  // Takes a port (from 0) down or up. Whether it was up.
  bool set_port(unsigned port, bool up);
  // 0 or an errno: ENOMEM (table or group full), EINVAL (not attached).
  int attach_multicast(const std::uint8_t gid[16], std::uint32_t qpn);
  int detach_multicast(const std::uint8_t gid[16], std::uint32_t qpn);

  // ---- XRC domains, which all processes of the NIC number alike ----
  // A new one that this process holds; 0: none left.
  std::uint32_t alloc_xrcd();
  // The one that a file stands for; holding it again changes nothing. 0 or an errno: EAGAIN (there is none and `create`
  // is false), EINVAL (there is one and `exclusive` is true), ENOMEM.
  int join_xrcd(std::uint64_t file_device, std::uint64_t file_inode, bool create, bool exclusive, std::uint32_t* number);
  void leave_xrcd(std::uint32_t number);

  // Makes sure that [offset, offset + length) of the slice has pages. False: no memory.
  bool back_slice(std::uint64_t offset, std::size_t length);

  // In the child of a fork: closes descriptors and unmaps, leaves the parent's slot and slice alone.
  void abandon_in_child();

 private:
  class Numbers;  // blocks and free numbers of one kind
  class Arena;
  explicit Nic(std::shared_ptr<NicFile> file, NicConfig config);
  Result<void> take_slot();
  void release();
  bool back(const void* start, std::size_t length);  // makes sure that the file has pages there
  std::uint32_t index_of(const MkeyContext& key) const { return static_cast<std::uint32_t>(&key - me_.slice->mkeys); }
  std::uint32_t cq_index(const CqContext& cq) const { return static_cast<std::uint32_t>(&cq - me_.slice->cqs); }
  std::uint32_t eq_index(const EqContext& eq) const { return static_cast<std::uint32_t>(&eq - me_.slice->eqs); }
  static std::uint64_t ring_bytes(const Ring& ring, unsigned log_stride) {
    return std::uint64_t{1} << ((ring.log_entries & 31) + log_stride);
  }

  NicConfig config_;
  Peer me_;
  std::uint32_t lock_id_ = 0;
  int slice_fd_ = -1;
  bool abandoned_ = false;
  std::mutex alloc_mutex_;
  std::unique_ptr<Numbers> qps_, cqs_, srqs_, eqs_, mkeys_;
  template <class T>
  T* alloc_context(Numbers& numbers, T* array);
  std::unique_ptr<Arena> arena_;
};

// The run dir in effect: `configured`, or VERBENA_RUN_DIR, or /dev/shm/verbena-<uid>.
std::string run_dir(const std::string& configured);

}  // namespace verbena::device
