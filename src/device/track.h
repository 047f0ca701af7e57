// Resource tracking: what the driver made for programs, published in shared memory so that any process of the virtual
// host can list it (RDMA_NLDEV_CMD_RES_*). The kinds and their numbers are the kernel's (enum rdma_restrack_type).
//
// Threads: plain values; Tracker is called from any thread.
#pragma once

#include <cstdint>
#include <vector>

#include "prm/qp.h"

namespace verbena::device {

enum class TrackKind : std::uint32_t { pd = 0, cq = 1, qp = 2, cm_id = 3, mr = 4, ctx = 5, counter = 6, srq = 7 };
inline constexpr unsigned kTrackKinds = 8;

// What the driver says of an object. Numbers are those of the tracking: unique on the NIC, across processes.
struct TrackFacts {
  TrackKind kind = TrackKind::pd;
  std::uint32_t id = 0;       // 0: the next free one; a QP's is its QPN
  std::uint32_t context = 0;  // the user context that it belongs to
  std::uint32_t pd = 0;       // QP, MR, SRQ
  std::uint32_t cq = 0;       // SRQ with a CQ of its own
  std::uint32_t srq = 0;      // QP that takes its receives there
  std::uint32_t key = 0;      // MR: lkey and rkey
  std::uint32_t entries = 0;  // CQ
  std::uint32_t type = 0;     // QP, SRQ: as the verbs number them
  std::uint64_t length = 0;   // MR
};

// What can be told of an object of any process.
struct Tracked {
  TrackFacts facts;
  std::int32_t pid = 0;
  std::uint32_t users = 0;  // objects built on it
  // QP, if the device knows it (raw packet queues have no transport context)
  bool has_transport = false;
  prm::QpState state{};
  prm::PathMigrationState path_migration{};
  std::uint32_t dest_qpn = 0, rq_psn = 0, sq_psn = 0;
  std::uint8_t port = 0;
};

// An entry of this process; opaque.
struct TrackRecord;

class Tracker {
 public:
  virtual ~Tracker() = default;
  // Null: there is no room, and the object goes untracked.
  virtual TrackRecord* add(const TrackFacts& facts) = 0;
  // The facts changed; kind and id stay.
  virtual void change(TrackRecord* record, const TrackFacts& facts) = 0;
  virtual void set_users(TrackRecord* record, std::uint32_t users) = 0;
  virtual void remove(TrackRecord* record) = 0;
  static std::uint32_t id_of(const TrackRecord* record);
  // Those of every live process on the NIC, by process.
  virtual std::vector<Tracked> list(TrackKind kind) = 0;
};

}  // namespace verbena::device
