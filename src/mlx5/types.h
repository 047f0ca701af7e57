// The provider's objects. Each begins with the public structure (or the shared one of verbs/driver.h), so that the
// pointer a program holds is the object. Members that the data path touches come first and share cache lines.
//
// Threads: send side under SendQueue::lock, receive side under RecvQueue::lock, a CQ under Cq::lock; `tail` of a
// queue is written by the poller and read by the poster. The rest is fixed at creation or guarded by Context's mutexes.
#pragma once

#include <infiniband/mlx5dv.h>
#include <rdma/mlx5-abi.h>

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <deque>
#include <mutex>
#include <unordered_set>
#include <vector>

#include "mlx5/buffer.h"
#include "mlx5/spinlock.h"
#include "mlx5/uidx_table.h"
#include "mlx5/wire.h"
#include "verbs/driver.h"

namespace verbena::mlx5 {

struct Context;
struct Cq;
class Heap;
struct Qp;
struct ReservedQpns;
struct Srq;

// One doorbell register of a UAR page. Several QPs may share it, then `lock` keeps their writes apart.
struct Uar {
  void* page = nullptr;  // mapping
  std::uint64_t length = 0;
  std::uint64_t mmap_offset = 0;
  std::uint32_t handle = 0;
  std::uint32_t page_id = 0;
  bool owns_mapping = false;   // the first register of a page unmaps it
  bool kernel_object = false;  // allocated by the UAR object; otherwise a page fixed at open
  bool dedicated = false;
  bool shared = false;
  bool alone = false;          // a page that goes with its only register
  unsigned users = 0;  // of a shared one

  char* reg = nullptr;
  std::uint32_t bf_size = 0;  // BlueFlame half; 0: doorbell only
  std::uint32_t bf_offset = 0;
  std::uint32_t static_index = 0;
  SpinLock lock;
  mlx5dv_devx_uar devx = {};  // what a program that rings by itself gets to see
  Context* context = nullptr;  // set with it
};

// Whose CQE it is: a QP's, or (negated, which no address is) an XRC SRQ's.
using CqeOwners = UidxTable<Qp>;
inline Qp* as_owner(Srq* srq) { return reinterpret_cast<Qp*>(-reinterpret_cast<std::intptr_t>(srq)); }
inline bool is_queue_pair(const Qp* owner) { return reinterpret_cast<std::intptr_t>(owner) > 0; }
inline Srq* receive_queue_of(Qp* owner) { return reinterpret_cast<Srq*>(-reinterpret_cast<std::intptr_t>(owner)); }

// What the poller needs to know about a posted send.
struct SendEntry {
  std::uint64_t wr_id;
  std::uint32_t next_tail;  // SendQueue::head after this one: completing it completes all before
  std::uint32_t wc_opcode;  // for WQEs whose opcode does not tell (UMR)
};

struct SendQueue {
  SpinLock lock;
  std::uint32_t head = 0;         // work requests posted
  std::uint32_t cur_post = 0;     // WQE blocks posted
  std::uint32_t mask = 0;         // blocks - 1
  std::uint32_t qpn_field = 0;    // QPN << 8
  std::int32_t max_sge_now = -1;  // max_sge in states that send, -1 in the others
  std::uint32_t max_post = 0;
  std::uint32_t max_inline = 0;
  std::uint8_t signal_bits = 0;  // kCqUpdate if every WQE completes
  std::uint8_t next_fence = 0;
  char* start = nullptr;
  char* end = nullptr;
  SendEntry* entries = nullptr;
  __be32* dbrec = nullptr;
  void (*ring)(void* token) = nullptr;  // embedded device; null: write the UAR
  void* ring_token = nullptr;
  Uar* uar = nullptr;
  std::uint32_t max_sge = 0;
  std::uint32_t blocks = 0;

  alignas(64) std::atomic<std::uint32_t> tail{0};
};

struct RecvQueue {
  SpinLock lock;
  std::uint32_t head = 0;
  std::uint32_t mask = 0;
  std::uint32_t shift = 0;  // log2 of a WQE
  std::int32_t max_sge_now = -1;
  std::uint32_t max_sge = 0;
  std::uint32_t count = 0;
  char* start = nullptr;
  std::uint64_t* wr_ids = nullptr;
  __be32* dbrec = nullptr;

  alignas(64) std::atomic<std::uint32_t> tail{0};
};

// A work-request session, ibv_wr_start() to ibv_wr_complete().
struct Builder {
  mlx5_wqe_ctrl_seg* ctrl = nullptr;
  char* data = nullptr;    // next segment
  std::uint32_t size = 0;  // segments so far
  std::uint32_t requests = 0;
  std::uint32_t setters = 0;
  std::uint32_t old_cur_post = 0;
  std::uint32_t opcode_word = 0;
  int error = 0;
  std::uint8_t old_fence = 0;
  bool inlined = false;
};

struct Qp {
  verbs::Qp verbs;
  alignas(64) SendQueue sq;
  alignas(64) RecvQueue rq;
  alignas(64) int (*post_send)(Qp*, ibv_send_wr*, ibv_send_wr**) = nullptr;
  Builder build;
  Srq* srq = nullptr;
  std::uint32_t uidx = 0;
  bool rx_checksums = false;  // receives say whether IP and TCP or UDP checksums were right
  bool tx_checksums = false;  // sends may ask for them
  bool frames = false;        // raw packets
  bool hashes = false;        // it spreads over a table and has no queues
  std::uint8_t eth_inline = 0;  // how much of a frame must stand in the WQE
  bool atomics = false;
  std::uint32_t ece_set = 0;
  std::uint32_t ece_got = 0;
  Buffer buffer;
  Buffer send_buffer;  // of raw packet QPs, whose rings lie apart
  DoorbellRecord db;
  Uar* own_uar = nullptr;  // to be given back
  mlx5dv_qp_ex dv = {};
  __be32 held_dbrec = 0;   // what is posted before RTR, of raw packet QPs
  mlx5_ib_create_qp_resp parts = {};  // numbers of the queues and the TIR of a raw packet QP
};

// A work queue. Pollers know QPs only: `ring` is one that receives and nothing else.
struct Wq {
  ibv_wq wq;
  Qp ring;
};

struct Counters : verbs::Counters {
  struct Point {
    std::uint32_t description, index;
  };
  std::mutex mutex;
  std::vector<Point> points;
  unsigned flows = 0;  // it is bound to
};

struct Flow {
  ibv_flow flow;
  Counters* counters = nullptr;
};

struct Cq {
  verbs::Cq verbs;
  alignas(64) SpinLock lock;
  std::uint32_t ci = 0;
  std::uint32_t mask = 0;        // entries - 1
  std::uint32_t count_bit = 0;   // entries: the owner bit flips with it
  std::uint32_t shift = 0;       // log2 of an entry
  std::uint32_t cqe_offset = 0;  // of the 64 bytes that matter inside an entry
  char* buf = nullptr;
  __be32* dbrec = nullptr;
  const std::uint32_t* pending = nullptr;  // see uverbs::Backend
  std::uint32_t patience = 2048;           // polls that may find nothing before the next yield; see found_nothing()
  Qp* const* qps = nullptr;                // by user index
  // a cq_ex session
  const mlx5_cqe64* cqe = nullptr;
  bool checksums = false;  // session: of the last receive, whether its queue is told about checksums
  std::uint32_t wc_opcode = 0;
  mlx5dv_clock_info clock = {};
  std::uint32_t arm_sn = 0;
  std::uint32_t cqn = 0;
  bool dv_owned = false;
  bool extended = false;
  void (*arm)(void* token) = nullptr;
  void* arm_token = nullptr;
  ibv_pd* parent_domain = nullptr;
  Buffer buffer;
  DoorbellRecord db;
};

struct Srq {
  verbs::Srq verbs;
  alignas(64) SpinLock lock;
  std::uint32_t head = 0;
  std::uint32_t tail = 0;
  std::uint32_t shift = 0;
  std::uint32_t counter = 0;  // posted in all
  std::uint32_t max_sge = 0;
  std::uint32_t count = 0;
  char* start = nullptr;
  std::uint64_t* wr_ids = nullptr;
  __be32* dbrec = nullptr;
  std::uint32_t srqn = 0;
  std::uint32_t uidx = CqeOwners::kNone;  // XRC
  Buffer buffer;
  DoorbellRecord db;
};

struct Ah {
  ibv_ah ah;
  mlx5_wqe_av av;
  bool in_kernel = false;
  bool global = false;
  std::mutex mutex;
  mlx5dv_devx_obj* mapping = nullptr;  // to a QP; under the mutex
};

struct Td {
  ibv_td td;
  std::atomic<int> users{1};
  Uar* uar = nullptr;
};

struct Pd {
  ibv_pd pd;
  std::atomic<int> users{1};
  std::uint32_t pdn = 0;
  Pd* parent_of = nullptr;  // not null: this is a parent domain
};

struct ParentDomain : Pd {
  Td* thread = nullptr;
  void* (*alloc)(ibv_pd*, void* context, std::size_t size, std::size_t alignment, std::uint64_t type) = nullptr;
  void (*free)(ibv_pd*, void* context, void* ptr, std::uint64_t type) = nullptr;
  void* pd_context = nullptr;
};

struct Context : verbs::Context {
  // limits and abilities from GET_CONTEXT and QUERY_DEVICE
  mlx5_ib_alloc_ucontext_resp caps = {};
  mlx5_ib_query_device_resp vendor = {};
  std::uint32_t ece : 1, sqd2rts : 1, real_time_ts : 1;
  std::uint32_t static_uars : 1;  // the kernel fixed the UAR pages at open
  std::uint32_t single_threaded : 1;
  std::uint32_t prefer_blueflame : 1, no_blueflame : 1;
  std::uint32_t total_bfregs = 16;
  std::uint32_t low_latency_bfregs = 4;
  ibv_atomic_cap atomic_cap = IBV_ATOMIC_NONE;
  std::uint64_t device_cap_flags = 0;
  std::uint8_t eth_inline = 0;  // bytes of a frame's head that sends must carry in the WQE
  struct {
    std::uint8_t num_lag_ports = 0;
    bool lag_tx_port_affinity = false, rts2rts_qp_udp_sport = false, rts2rts_lag_tx_port_affinity = false;
    std::uint32_t qp_data_in_order = 0;
    std::uint64_t general_obj_types = 0;
    std::uint32_t log_reserved_qpns = 0;
    bool qos = false, qpc_extension = false;
    bool nic_sq_scheduling = false, nic_qp_scheduling = false, nic_bw_share = false, nic_rate_limit = false;
    std::uint32_t nic_element_type = 0, nic_tsar_type = 0;
  } hca;
  std::size_t max_dm_size = 0;
  std::shared_ptr<ReservedQpns> reserved_qpns;
  std::array<std::uint8_t, 2> link_layer = {};
  std::array<std::uint8_t, 2> port_flags = {};

  CqeOwners qps;
  const std::uint32_t* pending = nullptr;

  // doorbells
  std::mutex uar_mutex;
  Uar* nc_uar = nullptr;
  void* cq_uar = nullptr;
  std::deque<Uar*> dedicated_free, shared_uars, thread_free;
  std::unordered_set<Uar*> all_uars;
  unsigned dedicated_count = 0, shared_count = 0;
  std::vector<Uar> static_regs;

  // memory
  Heap* heap = nullptr;  // of rings and doorbell records
  mlx5dv_ctx_allocators allocators = {};
  DoorbellPages db_pages;

  // clocks
  void* core_clock_map = nullptr;
  const char* core_clock = nullptr;
  mlx5_ib_clock_info* clock_info = nullptr;

  ibv_context* ibv() { return verbs::public_context(this); }
};

inline Context* context_of(ibv_context* context) { return static_cast<Context*>(verbs::context_of(context)); }
inline Qp* qp_of(ibv_qp* qp) { return verbs::derived<Qp>(qp); }
inline Cq* cq_of(ibv_cq* cq) { return verbs::derived<Cq>(cq); }
inline Srq* srq_of(ibv_srq* srq) { return verbs::derived<Srq>(srq); }
inline Wq* wq_of(ibv_wq* wq) { return verbs::derived<Wq>(wq); }
inline Counters* counters_of(ibv_counters* counters) { return verbs::derived<Counters>(counters); }
inline Flow* flow_of(ibv_flow* flow) { return verbs::derived<Flow>(flow); }
inline Ah* ah_of(ibv_ah* ah) { return verbs::derived<Ah>(ah); }
inline Td* td_of(ibv_td* td) { return verbs::derived<Td>(td); }
inline Pd* pd_of(ibv_pd* pd) { return verbs::derived<Pd>(pd); }
inline ParentDomain* parent_domain_of(ibv_pd* pd) {
  return pd && pd_of(pd)->parent_of ? static_cast<ParentDomain*>(pd_of(pd)) : nullptr;
}
// True where the program promised to use what hangs on this domain from one thread at a time.
inline bool single_threaded(const Context* context, ibv_pd* pd) {
  ParentDomain* domain = parent_domain_of(pd);
  return context->single_threaded || (domain && domain->thread);
}

inline int fail(int error) {
  errno = error;
  return error;
}
inline std::nullptr_t fail_null(int error) {
  errno = error;
  return nullptr;
}

bool is_mlx5(ibv_device* device);

}  // namespace verbena::mlx5
