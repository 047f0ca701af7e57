// The files in shared memory: one NIC segment per (virtual host, device), one slice per process attached to it.
//
//   <run dir>/<host>/<device>/nic       NicSegment: what the NIC's processes share
//   <run dir>/<host>/<device>/slice-N   Slice of the process in slot N: contexts and DMA arena (sparse)
//
// The run dir is VERBENA_RUN_DIR, by default /dev/shm/verbena-<uid>. A live process holds a POSIX record lock on
// byte N of the nic file (fcntl F_SETLK), so death is seen by F_GETLK, without pids or their reuse.
#pragma once

#include <atomic>
#include <cstdint>

#include "device/shared/contexts.h"
#include "device/track.h"

namespace verbena::device {

inline constexpr std::uint32_t kSharedMagic = 0x56524241;  // "VRBA"
inline constexpr std::uint32_t kSharedAbi = 10;

inline constexpr unsigned kMaxSlots = 1024;         // processes attached to one NIC at once
inline constexpr unsigned kLogBlock = 6;            // QPNs and mkey indices are handed out in blocks of 64
inline constexpr unsigned kBlocks = 1u << (24 - kLogBlock);
inline constexpr unsigned kGidTableSize = 256;      // per port
inline constexpr unsigned kMulticastGroups = 4096;
inline constexpr unsigned kMulticastMembers = 240;  // per group
inline constexpr unsigned kXrcDomains = 1u << 12;

// Per slice.
inline constexpr unsigned kMaxQps = 1u << 18;
inline constexpr unsigned kMaxCqs = 1u << 18;
inline constexpr unsigned kMaxSrqs = 1u << 16;
inline constexpr unsigned kMaxEqs = 256;
inline constexpr unsigned kMaxMkeys = 1u << 20;
inline constexpr std::uint64_t kArenaBytes = 8ull << 30;

enum class GidType : std::uint8_t { none = 0, roce_v1 = 1, roce_v2 = 2, ib = 3 };

struct GidEntry {
  std::uint8_t gid[16];
  std::uint8_t mac[6];
  std::atomic<std::uint8_t> type;  // GidType; none: empty slot
  std::uint8_t l3_is_ipv6;
};

struct MulticastGroup {
  std::uint8_t gid[16];
  std::atomic<std::uint32_t> members;  // number of valid entries in qpn[]; 0 and gid 0: free
  std::uint32_t qpn[kMulticastMembers];
};

// An XRC domain: what queue pairs and receive queues of different processes have in common. By its number; 0 is nobody's.
struct XrcDomain {
  std::uint64_t holders[kMaxSlots / 64];  // a bit per slot whose process holds it; none: free
  std::uint64_t file_device, file_inode;  // of the file that stands for it; inode 0: none
};

inline constexpr std::uint32_t kSlotFree = 0, kSlotSettingUp = 1, kSlotLive = 2;
struct Slot {
  std::atomic<std::uint32_t> state;       // kSlot...
  std::atomic<std::uint32_t> generation;  // +1 whenever the slot gets a new process
  std::int32_t pid;                       // for process_vm_*; of the owner's pid namespace
  std::uint32_t reserved;
};

// Traffic of a port that QPs do not count: multicast, packets for nobody, and what QPs that are gone had counted.
// Relaxed adds from any process.
struct PortCounters {
  TwoWays ib, ib_multicast, eth;
};

// What a set of counters counts (QUERY_Q_COUNTER). Relaxed adds from any process.
struct EventCounters {
  std::atomic<std::uint64_t> out_of_sequence, out_of_buffer, packet_seq_err, rnr_nak_retry_err, local_ack_timeout_err,
      resp_local_length_error, resp_cqe_error, resp_cqe_flush_error, resp_remote_access_errors, req_cqe_error,
      req_cqe_flush_error, req_remote_invalid_request, req_remote_access_errors, duplicate_request, rx_write_requests,
      rx_read_requests, rx_atomic_requests;
};
inline constexpr unsigned kQCounters = 256;  // sets of a process; 0: of QPs that name none

// What IBTA calls PortState and PortPhysicalState, and verbs IBV_PORT_*: those that an Ethernet port has.
inline constexpr std::uint8_t kPortDown = 1, kPortActive = 4;
inline constexpr std::uint8_t kPhysDisabled = 3, kPhysLinkUp = 5;

struct PortState {
  bool is_up() const { return state.load(std::memory_order_relaxed) == kPortActive; }

  std::atomic<std::uint8_t> state;       // kPort...
  std::atomic<std::uint8_t> phys_state;  // kPhys...
  std::uint8_t mac[6];
  PortCounters counters;
};

struct NicSegment {
  std::atomic<std::uint32_t> magic;  // kSharedMagic, written last at creation
  std::uint32_t abi;
  std::uint64_t bytes;               // of this segment
  std::uint32_t host_index;          // in the fabric registry
  std::uint32_t device_index;
  std::uint64_t node_guid;
  SharedLock lock;                   // multicast, XRC domains, GID table writes
  std::uint32_t ports_count;         // valid entries of ports[] and gids[]
  std::atomic<std::uint32_t> qpn_hint, mkey_hint, srqn_hint;  // where to look next for a free block
  std::atomic<std::uint32_t> qpn_top, mkey_top, srqn_top;    // no block at or above this was ever taken: bounds searches, so that
  std::atomic<std::uint32_t> multicast_top, xrcd_top;  // unused parts of the tables cost no memory; same for groups, domains
  std::atomic<std::uint32_t> track_ids[kTrackKinds];  // last number given out
  Slot slots[kMaxSlots];
  std::atomic<std::uint32_t> qpn_block[kBlocks];   // owner slot + 1, or 0; bits 31..16: index of the block in the
  std::atomic<std::uint32_t> mkey_block[kBlocks];  // owner's array: context index = that << kLogBlock | low bits
  std::atomic<std::uint32_t> srqn_block[kBlocks];
  PortState ports[kMaxPorts];
  EventCounters events;                            // of all QPs
  GidEntry gids[kMaxPorts][kGidTableSize];
  MulticastGroup multicast[kMulticastGroups];
  XrcDomain xrcds[kXrcDomains];
  std::atomic<std::uint64_t> frame_slots[kMaxSlots / 64];  // a bit per slot whose process has a root table for frames
};

// A promoted chunk of the owner's memory: private pages moved into the arena so that peers reach them directly.
struct PromotedChunk {
  std::atomic<std::uint64_t> va;      // chunk-aligned owner address + 1 (so 0 is "empty"); kPromotedGone: was used
  std::atomic<std::uint64_t> where;   // the chunk's place in the arena | a bit for each of its 16 pages that is there
};
inline constexpr std::uint64_t kPromotedGone = ~std::uint64_t{0};
inline constexpr unsigned kLogChunk = 16;
inline constexpr unsigned kPromotedSlots = 1u << 17;  // open addressing on va >> kLogChunk

// An object of the driver, for whoever lists the resources of the NIC. The values first, then the generation again.
struct alignas(64) TrackRecord {
  std::atomic<std::uint32_t> generation;  // odd while in use; raised before and after every change
  Published<std::uint32_t> kind, id, context, pd, cq, srq, key, entries, type;
  std::atomic<std::uint32_t> users;
  Published<std::uint64_t> length;
};
inline constexpr unsigned kMaxTracked = 1u << 21;
static_assert(sizeof(TrackRecord) == 64);

// A copy that the owner's own threads make for a peer whom the kernel lets not into the owner's memory.
struct Errand {
  std::atomic<std::uint32_t> state;  // ErrandState
  std::uint32_t who;                 // Nic::me() of the peer
  std::uint64_t va;                  // in the owner
  std::uint32_t bytes;               // at most kErrandBytes; to or from errand_data
  std::uint32_t write;               // 1: into the owner's memory
  std::uint32_t failed;              // 1: nothing is mapped there, or not for that access
};
enum class ErrandState : std::uint32_t { free, filling, asked, running, done };
inline constexpr unsigned kErrands = 8;
inline constexpr std::uint64_t kErrandBytes = 64 << 10;
inline constexpr unsigned kVisitors = 64;

// The rate of a scheduling element, for whoever sends in its name: the owner's send queues, and the peers that fetch
// READ responses from the owner's QPs.
struct alignas(64) ShaperClock {
  std::atomic<std::uint64_t> next_ns;      // the packets admitted so far take until then
  std::atomic<std::uint64_t> ps_per_byte;  // 0: no limit
  std::atomic<std::uint32_t> parent;       // 0: a root
};
inline constexpr unsigned kShapers = 1024;  // of a process; number 0 is nobody
inline constexpr unsigned kShaperDepth = 16;

// How Ethernet frames find receive queues of the owner: its flow tables, and what they lead to.
inline constexpr unsigned kMaxTirs = 1u << 12;
inline constexpr unsigned kMaxRqTables = 1u << 9, kRqTableEntries = 1u << 9;
inline constexpr unsigned kMaxFlowTables = 1u << 10, kMaxFlowEntries = 1u << 13, kMaxFlowCounters = 1u << 13;
inline constexpr unsigned kFlowDestinations = 8, kMatchBytes = 64, kFlowBuckets = 1u << 14;

// A TIR. What it names are contexts of the same slice.
struct TirContext {
  std::uint32_t in_use;
  std::uint32_t rq;                // index of the QpContext of a direct TIR; ~0: spread over `table`
  std::uint32_t table;             // RqTable
  std::uint32_t transport_domain;
  std::uint32_t hash_fields;       // rx_hash_field_select.selected_fields
  std::uint8_t hash_ipv6, hash_udp;  // the protocols whose packets are hashed
  std::uint8_t hash_fn;            // prm::RxHashFn
  std::uint8_t hash_symmetric;
  std::uint8_t self_lb_block;      // tirc.self_lb_block
  std::uint8_t pad[3];
  std::uint8_t key[40];
};
struct RqTable {
  std::uint32_t size;              // a power of two
  std::uint32_t rq[kRqTableEntries];  // indices of QpContexts
};
struct FlowDestinationShape {
  std::uint32_t type;              // prm::FlowDestination: tir, flow_table
  std::uint32_t id;
};
// Groups and entries name each other by their numbers (flow_index.h).
struct FlowGroupShape {
  std::uint32_t next;              // the group behind it in the table; 0: none
  std::uint32_t entries;           // how many it has
  std::byte mask[kMatchBytes];     // of fte_match_set_lyr_2_4: what its entries compare
};
struct FlowEntry {
  std::uint32_t group, index;
  std::uint32_t next;              // the entry behind it in the bucket; 0: none
  std::uint32_t action;            // prm::FlowAction bits
  std::uint32_t tag;
  std::uint32_t counter;           // 0: none
  std::uint32_t destinations;
  FlowDestinationShape destination[kFlowDestinations];
  std::byte value[kMatchBytes];    // what is left of the packet's headers under the mask
};
struct FlowCount {
  std::atomic<std::uint64_t> packets, octets;
};
struct Steering {
  SharedLock lock;                 // all below but the counts
  std::uint32_t root;              // flow table that arriving frames begin at; 0: none
  std::atomic<std::uint32_t> roce_root[2];  // tables that the packets of its QPs begin at (RoceWay); 0: none
  std::uint32_t first_group[kMaxFlowTables];  // of a table; 0: none
  std::uint32_t miss[kMaxFlowTables];         // where a table sends what no entry matches; 0: nowhere
  TirContext tirs[kMaxTirs];
  RqTable rq_tables[kMaxRqTables];
  FlowGroupShape groups[kMaxFlowEntries];
  std::uint32_t buckets[kFlowBuckets];  // of entries, by group and value
  FlowEntry entries[kMaxFlowEntries];
  FlowCount counts[kMaxFlowCounters];
};

struct SliceHeader {
  std::atomic<std::uint32_t> magic;
  std::uint32_t abi;
  std::uint32_t slot;
  std::int32_t pid;
  std::uint64_t arena_va;             // owner's address of the arena's first byte
  std::uint32_t generation;           // of the slot, when this process took it
  std::uint64_t cookie;               // random; proves that a pid reaches this process (process_vm across pid namespaces)
  alignas(64) std::atomic<std::uint32_t> pending;  // kPending* bits: the owner's step() has something to do
  std::atomic<std::uint32_t> wake;    // futex: bumped to wake the owner's helper thread
  std::atomic<std::uint32_t> helper_sleeps;  // 1 while the helper waits on `wake`
  std::atomic<std::uint32_t> irq;     // bit per completion vector with new EQEs (owner clears)
  // Chunks that peers would like promoted: (va >> kLogChunk) << 16 | number of chunks; 0: free place.
  alignas(64) std::atomic<std::uint64_t> promote_wish[16];
  // Odd while pages move: nobody may begin to reach the owner's private memory by system call, and the owner waits
  // for those who have begun (Nic::me() of each; 0: free place).
  std::atomic<std::uint32_t> promoting;
  alignas(64) std::atomic<std::uint32_t> visitors[kVisitors];
  alignas(64) SharedLock atomic_lock; // serialises atomics on this process's memory
  std::atomic<std::uint64_t> promoted_count;
  // QPs that a peer's delivery left something to do for (a bit per QP context, and a bit per word of those).
  alignas(64) std::atomic<std::uint64_t> attention_summary[kMaxQps / 64 / 64];
  // The same of CQs: one owes an event later, or a session was opened.
  alignas(64) std::atomic<std::uint64_t> cq_attention_summary[kMaxCqs / 64 / 64];
  Errand errands[kErrands];
  std::atomic<std::uint32_t> track_top;  // records at or above this were never used
};
inline constexpr std::uint32_t kPendingWork = 1;       // SQs with work left over by a budget
inline constexpr std::uint32_t kPendingTimer = 2;      // a timer is armed
inline constexpr std::uint32_t kPendingAttention = 4;  // attention bits are set
inline constexpr std::uint32_t kPendingError = 8;      // a QP is in the error state: its RQ is flushed as it fills
inline constexpr std::uint32_t kPendingIrq = 16;       // a peer raised an interrupt
inline constexpr std::uint32_t kPendingPromote = 32;   // promote_wish has entries (for the helper thread)
inline constexpr std::uint32_t kPendingErrand = 64;    // a peer asks for a copy
inline constexpr std::uint32_t kPendingCq = 128;       // attention bits of CQs are set

struct Slice {
  SliceHeader header;
  EqContext eqs[kMaxEqs];
  alignas(4096) std::atomic<std::uint64_t> attention[kMaxQps / 64];
  alignas(4096) std::atomic<std::uint64_t> cq_attention[kMaxCqs / 64];
  alignas(4096) PromotedChunk promoted[kPromotedSlots];
  alignas(4096) std::byte errand_data[kErrands][kErrandBytes];
  alignas(4096) ShaperClock shapers[kShapers];
  alignas(4096) EventCounters q_counters[kQCounters];
  alignas(4096) Steering steering;
  alignas(4096) SrqContext srqs[kMaxSrqs];
  alignas(4096) CqContext cqs[kMaxCqs];
  alignas(4096) CqSession cq_sessions[kMaxCqs];  // of CQs that compress, the others' have no memory
  alignas(4096) MkeyContext mkeys[kMaxMkeys];
  alignas(4096) QpContext qps[kMaxQps];
  alignas(4096) TrackRecord tracked[kMaxTracked];
  // the arena (kArenaBytes) follows at the next 2 MiB boundary
};
inline constexpr std::uint64_t kArenaOffset = (sizeof(Slice) + (2u << 20) - 1) & ~std::uint64_t{(2u << 20) - 1};
inline constexpr std::uint64_t kSliceBytes = kArenaOffset + kArenaBytes;

}  // namespace verbena::device
