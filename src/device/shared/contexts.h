// The device's own state of each object, as it lies in shared memory.
//
// A process owns a *slice* of its host's NIC: a file mapped by every process that talks to it. The slice holds
// arrays of these contexts and the DMA arena (rings, doorbell records, hot user memory). Whoever sends a packet
// to a QP runs the responder on the target's context, in its own thread: that is how a NIC behaves, which needs
// no help from the target's CPU.
//
// Rules for everything here: plain data and lock-free atomics only, no pointers (indices, offsets and the
// owner's virtual addresses instead), and no value is trusted when read: another process may have written
// anything (so no bool: not every byte is one). Values are host-endian; the device formats (WQE, CQE, doorbell record) stay as the hardware has them.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "device/shared/lock.h"

namespace verbena::device {

// QPC.state values (PRM, Queue Pair Context).
enum class QpState : std::uint32_t { rst = 0, init = 1, rtr = 2, rts = 3, sqer = 4, sqd = 5, err = 6 };

// QPC.st values the device implements.
enum class QpType : std::uint8_t { rc = 0, uc = 1, ud = 2, xrc = 3, mlx = 4, dci = 5, dct = 6,
                                    // None of QPC.st: an SQ, an RQ of Ethernet frames.
                                    raw = 0x80, raw_rq = 0x81 };

// Whether every request is answered.
constexpr bool is_reliable(QpType type) { return type == QpType::rc || type == QpType::xrc; }

// A value that its owner may change while others read it without a lock: loads acquire, stores release. That is what
// reading under a generation needs (the values first, then the generation again), without fences.
template <class T>
class Published {
 public:
  Published() = default;
  Published(T value) : value_(value) {}
  Published(const Published& from) : value_(from.get()) {}
  Published& operator=(const Published& from) { return *this = from.get(); }
  Published& operator=(T value) {
    __atomic_store(&value_, &value, __ATOMIC_RELEASE);
    return *this;
  }
  operator T() const { return get(); }
  T get() const {
    T value;
    __atomic_load(&value_, &value, __ATOMIC_ACQUIRE);
    return value;
  }

 private:
  T value_;
};

// Where a ring or a doorbell record lies: the owner's virtual address. If it is inside the owner's DMA arena
// (SliceHeader), other processes reach it by offset; otherwise only through process_vm or the owner's help.
struct Ring {
  std::uint64_t va;
  std::uint32_t log_entries;  // entries of (1 << log_stride) bytes
  std::uint32_t log_stride;
};

inline constexpr unsigned kMaxPorts = 2;  // physical ports of a NIC

// The path of a connected QP, or an address vector of a UD work request (PRM, Address Vector / ADS).
struct Path {
  std::uint8_t rgid[16];
  std::uint8_t rmac[6];
  std::uint8_t port;        // physical port it leaves by, 1-based (the QP's primary_address_path.vhca_port_num)
  std::uint8_t sgid_index;
  std::uint8_t hop_limit;
  std::uint8_t traffic_class;
  std::uint8_t sl;
  std::uint8_t lag_tx_port_affinity;
  std::uint32_t flow_label;
  std::uint16_t udp_sport;  // 0: derived from the flow label and the QP numbers
  std::uint16_t rlid;
  std::uint16_t pkey_index;
  std::uint8_t stat_rate;   // code of ads.stat_rate; 0: no limit
  std::uint8_t reserved;
};

// One entry of the responder's replay list: an RDMA READ or atomic whose response may be asked for again.
struct ResponderResource {
  std::uint32_t psn;     // first PSN of the request
  std::uint32_t npsn;    // PSNs it occupies
  std::uint8_t opcode;   // BTH opcode; 0: empty
  std::uint8_t pad[3];
  std::uint32_t rkey;
  std::uint64_t va;
  std::uint64_t length;  // READ: bytes; atomic: unused
  std::uint64_t result;  // atomic: the original value to answer again
};
inline constexpr unsigned kMaxResponderResources = 16;

// What passed by: added to by one thread at a time, read by any.
struct Traffic {
  std::atomic<std::uint64_t> packets, octets;
};
inline void add_alone(std::atomic<std::uint64_t>& sum, std::uint64_t more) {
  sum.store(sum.load(std::memory_order_relaxed) + more, std::memory_order_relaxed);
}
struct TwoWays {
  Traffic out, in;
};

struct alignas(64) QpContext {
  // -- set by commands, read by everyone --
  std::atomic<std::uint32_t> state;       // QpState; changed under both locks
  std::atomic<std::uint32_t> generation;  // odd while the context is in use; +1 at create and at destroy
  std::uint32_t qpn;
  std::uint32_t pdn;
  QpType type;
  std::uint8_t port;             // 1-based
  std::uint8_t log_mtu;          // 8..12: path MTU 256..4096
  std::uint8_t log_msg_max;      // qpc.log_msg_max
  std::uint8_t retry_count;      // transport retries, 0..7
  std::uint8_t rnr_retry;        // 7: without end
  std::uint8_t min_rnr_nak;      // 5-bit IBTA code this QP sends in RNR NAKs
  std::uint8_t ack_timeout;      // 5-bit IBTA code; 0: no timeout
  std::uint8_t log_sra_max;      // requester: outstanding reads+atomics
  std::uint8_t log_rra_max;      // responder: same
  std::uint8_t rre, rwe, rae;    // remote read / write / atomic allowed
  std::uint8_t atomic_mode;      // qpc.atomic_mode
  std::uint8_t cs_req, cs_res;   // scatter-to-CQE settings of requester and responder
  std::uint8_t block_lb_mc;      // its own multicasts do not come back to it
  std::uint8_t rq_type;          // qpc.rq_type: 0 regular, 1 SRQ/RMP, 3 none
  std::uint8_t pm_state;
  std::uint8_t rlky;             // may use the reserved lkey
  std::uint16_t uid;
  std::atomic<std::uint16_t> responder_leaf;  // scheduling element of its READ responses; 0: none
  std::uint32_t send_cq;         // index of the CqContext in the same slice
  std::uint32_t recv_cq;
  std::uint32_t srq;             // index of the SrqContext in the same slice, ~0: none
  std::uint32_t user_index;      // what CQEs carry (cqe_version 1)
  std::uint32_t qkey;
  std::uint32_t dest_qpn;
  std::uint32_t ts_format;
  std::uint32_t q_counter;
  std::uint32_t transport_domain;  // of an SQ's TIS
  std::uint32_t keep_vlan;         // RQ of frames: the tag stays in the data
  std::uint32_t no_send_record;    // qpc.send_dbr_mode: the UAR store alone says what was posted
  std::atomic<std::uint32_t> rung; // then: the send counter of the last store
  std::uint32_t xrcd;              // XRC: the domain that receive queues must be of
  Path path;
  Path alt_path;
  Ring sq;                       // entries are 64-byte WQEBBs
  Ring rq;
  std::uint64_t dbrec_va;        // [0] receive, [1] send; big-endian 32 bits, low 16 count

  // -- requester: under sq_lock; touched by the owner's threads only --
  alignas(64) SharedLock sq_lock;
  std::uint16_t sq_head;         // next WQEBB to execute (free-running)
  std::uint16_t sq_done;         // first WQEBB not yet completed
  std::atomic<std::uint32_t> sq_flags;  // kSq* bits below; may be set without the lock
  std::uint32_t next_psn;        // PSN of the next request packet
  std::uint32_t una_psn;         // oldest unacknowledged PSN
  std::uint32_t ssn;             // send sequence number
  std::uint32_t reads_in_flight;
  std::uint8_t retries_left;
  std::uint8_t rnr_left;
  std::uint8_t timer;            // what deadline_ns is for: TimerKind
  std::uint8_t shaped;           // kShaped* bits: by what its packets are held back
  std::uint64_t deadline_ns;     // CLOCK_MONOTONIC; 0: no timer
  std::uint64_t wqe_offset;      // bytes of the WQE at sq_head already sent
  std::uint32_t req_flags;       // kReq* bits
  std::uint32_t msg_psn;         // first PSN of the WQE at sq_head
  std::uint64_t pace_ns;         // kShapedRate: no packet before
  std::uint32_t leaf;            // kShapedLeaf: scheduling element of what it sends
  std::uint16_t rate_index;      // kShapedRate: entry of the packet pacing table
  std::uint16_t pad2;
  TwoWays requests[kMaxPorts];   // sent, and what answered them, by the port (from 0)

  // -- responder: under rx_lock; touched by whoever delivers a packet --
  alignas(64) SharedLock rx_lock;
  std::uint32_t epsn;            // next expected PSN
  std::uint32_t msn;             // message sequence number
  std::uint16_t rq_head;         // next receive WQE to consume (free-running)
  std::uint16_t rq_tail_seen;    // last producer index read from the doorbell record
  std::uint8_t rx_opcode;        // opcode class of a message in progress (0: none)
  std::uint8_t nak_sent;         // a sequence NAK is outstanding: drop until the expected PSN comes
  std::uint8_t rres_next;        // next slot of the replay ring
  std::uint8_t quiet_flush;      // SQ, RQ of frames: what an error leaves posted is not told of (flush_in_error_en is 0)
  std::uint32_t rx_srqn;         // XRC: the receive queue of the message in progress
  std::uint32_t rx_srq_wqe;      // receive WQE in use: index (SRQ) or rq_head (RQ)
  std::uint64_t rx_offset;       // bytes of the message in progress placed so far
  std::uint64_t rx_va;           // RDMA WRITE in progress: next address
  std::uint64_t rx_left;         // RDMA WRITE in progress: bytes left
  std::uint32_t rx_rkey;
  std::uint32_t rx_flags;
  std::uint32_t rx_dropped_at;   // UD: WQEs consumed when a datagram found none posted for too long; 0 at first
  TwoWays responses[kMaxPorts];  // sent, and the requests that came, by the port
  std::atomic<std::uint64_t> rx_writes, rx_reads, rx_atomics;  // RDMA WRITE, RDMA READ and atomic requests
  ResponderResource rres[kMaxResponderResources];
  // Posted receive WQEs read ahead, a cache line at a time, as hardware does: the owner posts into the same line while
  // the sender works through it, and the line must not travel for every message.
  std::uint16_t rq_ahead_first;  // free-running, as rq_head
  std::uint16_t rq_ahead_count;
  alignas(64) std::byte rq_ahead[64];
};

// sq_flags
inline constexpr std::uint32_t kSqFlushPending = 1;  // the QP went to an error state: flush when the lock is free
inline constexpr std::uint32_t kSqQueued = 2;        // on the owner's list of SQs with work left

// req_flags
inline constexpr std::uint32_t kReqStarted = 1;     // packets of the WQE at sq_head have been sent
inline constexpr std::uint32_t kReqDrainEvent = 2;  // raise SQ_DRAINED when it is done (state SQD)

// shaped
inline constexpr std::uint8_t kShapedRate = 1;  // by its own rate (packet pacing)
inline constexpr std::uint8_t kShapedLeaf = 2;  // by a tree of scheduling elements
inline constexpr std::uint8_t kShapedPath = 4;  // by the static rate of its path

// rx_flags
inline constexpr std::uint32_t kRxCommEst = 1;      // the first packet in RTR came
inline constexpr std::uint32_t kRxHasWqe = 2;       // a receive WQE is taken by the message in progress
inline constexpr std::uint32_t kRxLastWqe = 4;      // LAST_WQE_REACHED was raised

// rq_type (qpc.rq_type)
inline constexpr std::uint8_t kRqTypeRegular = 0, kRqTypeSrq = 1, kRqTypeNone = 3;

enum class TimerKind : std::uint8_t { none = 0, transport = 1, rnr = 2, pace = 3, held = 4 };

struct alignas(64) CqContext {
  std::atomic<std::uint32_t> generation;  // as in QpContext
  std::uint32_t cqn;
  std::uint32_t eq;              // index of the EqContext in the same slice
  std::uint8_t cqe_bytes_log;    // 6 or 7
  std::uint8_t overrun_ignore;   // cqc.oi
  std::uint8_t mini_format;      // kCqCompressed: prm::MiniCqeFormat
  std::uint8_t status;           // cqc.status: 0 ok, 9 overflow, 10 write fail
  Ring ring;                     // log_stride 6 or 7
  std::uint64_t dbrec_va;        // [0] consumer index, [1] arm word
  std::uint16_t uid;
  std::uint16_t period_us;       // kCqModerated
  std::uint16_t max_count;
  std::uint8_t features;         // kCq* bits; none: an entry is written and, if the CQ is armed, told of at once
  std::uint8_t padded;           // of 128 bytes, the half before the entry is zeroed where no data is put there
  alignas(64) SharedLock lock;
  std::uint32_t last_solicited_pi;  // pi after the newest solicited (or error) CQE
  std::uint32_t pi;              // producer index (free-running)
  std::uint32_t gathered;        // completions behind it in a session that is still open (CqSession); changed with pi at once
  std::atomic<std::uint32_t> arm;   // kCqArmed, or 0 once the event has fired
  std::uint32_t ci_seen;         // consumer index last read from the doorbell record
  std::uint32_t last_notified_pi;  // pi when the last event was raised
  std::uint32_t due_asked;         // the owner's timer knows that an event is due, or will hear of it
  std::uint64_t last_event_ns;     // when the last event was raised
  std::uint64_t last_cqe_ns;       // kCqModerated: when the newest CQE was written
  std::uint64_t event_due_ns;      // the CQ is armed and its event waits for more CQEs, until then; 0: it does not
};
inline constexpr std::uint32_t kCqArmed = 1;           // the next CQE raises an event
inline constexpr std::uint32_t kCqArmedSolicited = 2;  // the next solicited or error CQE does

// features
inline constexpr std::uint8_t kCqModerated = 1;        // max_count CQEs or period_us make an event
inline constexpr std::uint8_t kCqPeriodFromCqe = 2;    // the period begins anew with each CQE, not with the last event
inline constexpr std::uint8_t kCqSolicitedBreaks = 4;  // a solicited CQE is told of at once
inline constexpr std::uint8_t kCqCompressed = 8;       // completions of receives may be compressed

// A session of compressed CQEs that is still open (transport/compression.cc), under its CQ's lock.
struct alignas(64) CqSession {
  std::byte title[64];  // the CQE of its first completion
  std::byte minis[64];  // mini CQEs of the array that is being filled
};
inline constexpr std::uint32_t kMaxSession = 64;     // completions of a session: cqe_compression_max_num
inline constexpr std::uint64_t kSessionNs = 16'000;  // from the first to the last: cqe_compression_timeout

struct alignas(64) SrqContext {
  std::atomic<std::uint32_t> generation;
  std::uint32_t srqn;
  std::uint32_t pdn;
  std::uint32_t xrcd;
  std::uint32_t cq;              // index in the same slice; XRC SRQ and XRQ only, else ~0
  std::uint8_t type;             // 0 basic SRQ (CREATE_SRQ), 1 XRC SRQ, 2 RMP, 3 XRQ
  std::uint8_t state;            // 0 error, 1 good (srqc.state as the PRM has it)
  std::uint16_t uid;
  std::uint32_t user_index;
  Ring ring;                     // WQEs that begin with a next segment
  std::uint64_t dbrec_va;        // [0] receive counter
  std::atomic<std::uint32_t> limit;  // lwm; 0: no event wanted
  alignas(64) SharedLock lock;
  std::uint16_t consumed;        // counter of WQEs taken (compare with the doorbell record)
  std::uint16_t head;            // index of the next WQE
  std::uint8_t cyclic;           // the WQEs are taken in their order; else each names the next
};

struct alignas(64) EqContext {
  std::atomic<std::uint32_t> generation;
  std::uint32_t eqn;
  std::uint32_t intr;            // completion vector
  std::uint32_t uid;
  Ring ring;                     // log_stride 6
  std::uint64_t event_mask[4];
  alignas(64) SharedLock lock;
  std::uint32_t pi;
  std::atomic<std::uint32_t> ci; // set by the driver's doorbell
  std::atomic<std::uint32_t> armed;  // nonzero: the next EQE interrupts
  std::uint32_t status;
};

// mkc.access_mode
enum class MkeyMode : std::uint8_t { pa = 0, mtt = 1, klm = 2, ksm = 3, sw_icm = 4, memic = 5 };

// A memory key. mkeys never move while valid; `generation` is read before and after use, and raised before (to even)
// and after every change.
struct alignas(64) MkeyContext {
  std::atomic<std::uint32_t> generation;  // odd while in use
  std::atomic<std::uint32_t> key;         // full 32-bit key: index << 8 | variant
  Published<std::uint32_t> pdn;
  Published<std::uint32_t> qpn;             // bound QP of a type-2 window; 0xffffff: any
  std::atomic<std::uint32_t> flags;  // kMkey* below
  Published<MkeyMode> mode;
  Published<std::uint8_t> log_page;         // MTT/KSM entry size
  std::uint16_t uid;
  Published<std::uint64_t> start;           // first address it accepts (iova)
  Published<std::uint64_t> length;          // ignored if kMkeyLength64
  Published<std::uint64_t> translations;    // PA: owner VA - iova (so VA = address + translations)
                                 // MTT/KLM/KSM: byte offset in the owner's slice of its entry table
  Published<std::uint32_t> entries;         // of that table
  std::uint32_t parent;          // type-1/2 windows: key of the region they lie on
  std::atomic<std::uint32_t> remote_uses;  // one-sided accesses from other processes; drives promotion
  SharedLock lock;               // of whoever changes the key; readers go by the generation
};
inline constexpr std::uint32_t kMkeyFree = 1;        // mkc.free: exists but not usable yet (UMR target, unbound MW)
inline constexpr std::uint32_t kMkeyLocalWrite = 2;  // mkc.lw
inline constexpr std::uint32_t kMkeyLocalRead = 4;   // mkc.lr
inline constexpr std::uint32_t kMkeyRemoteWrite = 8;
inline constexpr std::uint32_t kMkeyRemoteRead = 16;
inline constexpr std::uint32_t kMkeyAtomic = 32;
inline constexpr std::uint32_t kMkeyUmr = 64;        // mkc.umr_en
inline constexpr std::uint32_t kMkeyLength64 = 128;
inline constexpr std::uint32_t kMkeyRemoteInvalidate = 256;  // mkc.en_rinval
inline constexpr std::uint32_t kMkeyRelaxed = 1024;

// One entry of a translation table (MTT: key unused).
struct Translation {
  Published<std::uint64_t> va;
  Published<std::uint32_t> bytes;
  Published<std::uint32_t> key;
};

static_assert(std::is_trivially_destructible_v<QpContext> && sizeof(QpContext) <= 1472);
static_assert(sizeof(CqContext) == 128 && sizeof(SrqContext) == 128 && sizeof(MkeyContext) == 64);

}  // namespace verbena::device
