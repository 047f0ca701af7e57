// What the command interface of one device knows: the profile, the shared contexts' owner-side notes, the objects that
// need no shared context.
//
// Threads: everything is guarded by `mutex`; handlers run with it held.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <mutex>
#include <vector>

#include "device/command/memic.h"
#include "device/command/outcome.h"
#include "device/command/tables.h"
#include "device/profile.h"
#include "device/shared/nic.h"
#include "device/transport/engine.h"
#include "device/transport/shaping.h"
#include "prm/cq.h"
#include "prm/eq.h"
#include "prm/flow.h"
#include "prm/general_object.h"
#include "prm/layout.h"
#include "prm/misc.h"
#include "prm/mkey.h"
#include "prm/port.h"
#include "prm/qp.h"
#include "prm/raw.h"
#include "prm/scheduling.h"
#include "prm/srq.h"
#include "support/free_numbers.h"

namespace verbena::device::command {

struct Pd : Owned {};
struct TransportDomain : Owned {};
struct Xrcd : Owned {};
// State of signatures, of a protection domain.
struct Psv : Owned {
  std::uint32_t pd = 0;
};
inline constexpr std::uint32_t kPsvs = 1u << 16;
struct Uar : Owned {};
struct Uctx : Owned {
  std::uint32_t cap = 0;
};
// Memory that a user context declared: one run of virtual addresses.
struct Umem : Owned {
  std::uint64_t va = 0;
  std::uint64_t bytes = 0;
  bool writable = false;
};
// A counter set and what the port counters read when it was allocated or cleared.
struct QCounter : Owned {
  std::vector<std::uint64_t> base;
};

// Where a queue came from: kept so that the objects below are released with it.
struct Backing {
  std::uint32_t wq_umem = kNone;
  std::uint32_t dbr_umem = kNone;
  std::uint64_t va = 0;  // of the first byte of the queue
  std::uint64_t first_page = 0;
  std::uint32_t pages = 0;
  unsigned log_page = 12;
  std::uint64_t dbr = 0;  // address of the doorbell record
  static constexpr std::uint32_t kNone = ~0u;
};

struct EqRecord : Owned {
  prm::Box<prm::Eqc> context;
  Backing backing;
};
struct CqRecord : Owned {
  prm::Box<prm::Cqc> context;  // as commands wrote it
  Backing backing;
  std::uint32_t uar = 0;
};
struct SrqRecord : Owned {
  // As the command that made it wrote its context.
  prm::Box<prm::Srqc> srqc;         // CREATE_SRQ
  prm::Box<prm::Rmpc> rmpc;         // CREATE_RMP
  prm::Box<prm::XrcSrqc> xrc_srqc;  // CREATE_XRC_SRQ
  prm::Box<prm::Xrqc> xrqc;         // CREATE_XRQ
  Backing backing;
  std::uint32_t pdn = 0, cqn = 0, xrcd = 0;  // what it stands on; 0: none
};
struct QpRecord : Owned {
  prm::Box<prm::Qpc> context;
  Backing backing;
  bool has_send_cq = false;  // it counts as a user of the CQ its context names
  bool has_recv_cq = false;
  bool has_uar = false;
  std::map<std::array<std::uint8_t, 16>, std::uint32_t> groups;  // multicast groups it is attached to, and how often
  std::uint32_t leaf = 0, responder_leaf = 0;  // scheduling elements it hangs on; 0: none
};
struct MkeyRecord : Owned {
  prm::Box<prm::Mkc> context;
  std::uint32_t umem = Backing::kNone;
  std::uint64_t memic = 0;  // BAR address of the device memory it lies in; 0: none
  std::uint64_t table = 0;  // translation table in the slice; the shared context's copy is not trusted
  std::uint32_t entries = 0;
  std::uint64_t memory_va = 0, memory_bytes = 0;  // the user memory it reaches by address: what the engine was told of
};

// A run of QP numbers that no QP gets.
struct ReservedQpns : Owned {
  std::uint32_t log_range = 0;
};
inline constexpr std::uint32_t kLogReservedQpns = 6;
inline constexpr std::uint32_t kLogTis = 10;

// An address whose packets are to be treated as those of a QP. The QP may go first.
struct AvQpMapping : Owned {
  prm::Box<prm::AvQpMapping> object;
};
inline constexpr std::uint32_t kMappings = 1u << 16;

// An element of the transmit scheduler. Children and QPs under it count as its users.
struct SchedulingElement : Owned {
  prm::Box<prm::SchedulingContext> context;
  unsigned depth = 0;
};
// An entry of the packet pacing table.
struct RateEntry {
  bool set = false;
  std::uint16_t uid = 0;  // whose queues may use it
};

// What a raw send queue sends by.
struct Tis : Owned {
  prm::Box<prm::Tisc> context;
};
struct SqRecord : Owned {
  prm::Box<prm::Sqc> context;
  Backing backing;
  std::uint32_t leaf = 0;  // scheduling element it hangs on; 0: none
};

// What receives frames. TIRs and tables of queues have the same number here and in the slice.
struct RqRecord : Owned {
  prm::Box<prm::Rqc> context;
  Backing backing;
};
struct RqtRecord : Owned {
  prm::Box<prm::Rqtc> context;
  std::vector<std::uint32_t> rqns;
};
struct TirRecord : Owned {
  prm::Box<prm::Tirc> context;
};

// Flow tables, their groups and entries.
struct FlowGroup : Owned {
  prm::Box<prm::CreateFlowGroupIn> context;
};
struct FlowEntryRecord {
  std::uint32_t number = 0;                 // in the slice
  prm::Box<prm::FlowContext> context;
  std::vector<std::uint64_t> destinations;  // dest_format_struct as written
  std::uint32_t counter = 0;                // 0: none
};
struct FlowTable : Owned {
  prm::FlowTableType type{};
  prm::Box<prm::FlowTableContext> context;
  std::map<std::uint32_t, std::uint32_t> groups;     // their numbers, by their first index
  std::map<std::uint32_t, FlowEntryRecord> entries;  // by flow index
};
// One of a bulk, which is allocated and freed as a whole and named by its first.
struct FlowCounter : Owned {
  std::uint32_t bulk = 0;  // number of the first
  std::uint32_t size = 1;  // of the bulk
};

struct State {
  State(const Profile& p, Nic& n, Engine& e);
  Steering& steering() { return nic.slice().steering; }

  const Profile profile;
  Nic& nic;
  Engine& engine;
  std::mutex mutex;

  bool initialised = true;  // between INIT_HCA and TEARDOWN_HCA; a device attaches initialised
  std::uint16_t issi = 1;
  prm::Box<prm::NicVportContext> nic_vport;  // what MODIFY_NIC_VPORT_CONTEXT may change
  std::array<char, 64> node_description{};

  UidCounts counts;
  Table<Uctx> uctxs;
  Table<Pd> pds;
  Table<TransportDomain> transport_domains;
  Records<Xrcd> xrcds;
  Table<Psv> psvs;
  Table<Uar> uars;
  Table<Umem> umems;
  Table<QCounter> q_counters;
  Records<EqRecord> eqs;
  Records<CqRecord> cqs;
  Records<SrqRecord> srqs;
  Records<QpRecord> qps;
  Records<MkeyRecord> mkeys;
  Records<ReservedQpns> reserved_qpns;
  Table<AvQpMapping> mappings;
  Table<SchedulingElement> scheduling_elements;
  std::array<RateEntry, kRates> rates;
  Table<Tis> tiss;
  Records<SqRecord> sqs;
  Records<RqRecord> rqs;
  Table<RqtRecord> rqts;
  Table<TirRecord> tirs;
  Table<FlowTable> flow_tables;
  Table<FlowGroup> flow_groups;
  FreeNumbers flow_entry_numbers{1, kMaxFlowEntries + 1};  // of the slice
  Table<FlowCounter> flow_counters;
  Memic memic;
};

// May a command of `uid` name this object? The driver (uid 0) may name all.
inline bool may_use(const Owned& object, std::uint16_t uid) {
  return uid == 0 || object.uid == uid || object.uid == prm::kSharedResourceUid;
}
// The same for what the driver makes for everybody: EQs, UARs, counter sets.
inline bool may_use_shared(const Owned& object, std::uint16_t uid) { return object.uid == 0 || may_use(object, uid); }

// The object, or the syndrome: missing and foreign ones look the same to the caller.
template <class T>
Maybe<T*> own(T* object, std::uint16_t uid, Syndrome missing) {
  if (!object || !may_use(*object, uid)) return refuse(missing);
  return object;
}

// An object of which the commands keep a record, and its context in shared memory.
template <class Record, class Context>
struct Live {
  Record* record;
  Context* context;
};
template <class Record, class Context>
Maybe<Live<Record, Context>> live(Record* record, Context* context, std::uint16_t uid, Syndrome missing) {
  if (!record || !context || !may_use(*record, uid)) return refuse(missing);
  return Live<Record, Context>{record, context};
}

}  // namespace verbena::device::command
