// Queue pairs.
// Threads: under the File's lock.
#pragma once

#include <rdma/ib_user_ioctl_cmds.h>
#include <rdma/ib_user_ioctl_verbs.h>
#include <rdma/mlx5-abi.h>

#include <array>
#include <memory>
#include <vector>

#include "kernel/cq.h"
#include "kernel/events.h"
#include "kernel/file.h"
#include "kernel/ib.h"
#include "kernel/method.h"
#include "kernel/pd.h"
#include "kernel/rates.h"
#include "kernel/srq.h"
#include "kernel/xrcd.h"
#include "prm/qp.h"
#include "prm/raw.h"
#include "prm/wqe.h"

namespace verbena::kernel {

struct IndTable;
struct WriteCall;

// What a raw packet QP consists of on the device. Number 0: it has no such part. One that only hashes has a TIR alone.
struct RawParts {
  std::uint32_t tisn = 0, sqn = 0, rqn = 0, tirn = 0;
  prm::SqState sq_state = prm::SqState::rst;
  prm::RqState rq_state = prm::RqState::rst;
  RateContents rate{};
  std::uint16_t rate_index = 0;  // of the packet pacing table; 0: no limit
};

// A multicast group as a program names it. The LID means nothing on Ethernet, but another LID is another attachment.
struct McastMember {
  std::array<std::uint8_t, 16> gid;
  std::uint16_t mlid;
  bool operator==(const McastMember&) const = default;
};

struct Qp : Object {
  Qp() : Object(UVERBS_OBJECT_QP) {}
  int destroy(File& file) override;
  bool track(device::TrackFacts* facts) const override {
    facts->kind = device::TrackKind::qp;
    facts->id = qpn;
    facts->pd = pd ? pd->track_id() : 0;
    facts->srq = srq ? srq->track_id() : 0;
    facts->type = static_cast<std::uint32_t>(type);
    return !opened;
  }

  std::uint32_t qpn = 0;
  QpType type = QpType::rc;
  QpState state = QpState::reset;  // as modify and query last left it; the device may have gone to an error since
  std::uint8_t port = 0;
  std::uint32_t access = 0;         // of the last modify
  std::uint8_t dest_rd_atomic = 0;
  bool sq_sig_all = false;
  std::uint32_t rq_entries = 0, rq_sge = 0, max_inline = 0;
  Pd* pd = nullptr;
  Cq* send_cq = nullptr;
  Cq* recv_cq = nullptr;
  Srq* srq = nullptr;
  std::unique_ptr<RawParts> raw;  // of raw packet QPs
  IndTable* table = nullptr;      // the QP spreads over: it has no queues of its own
  // XRC
  std::shared_ptr<TargetQp> target;  // what all handles of a target share; null: not one
  Xrcd* xrcd = nullptr;              // of a target
  bool opened = false;               // a further handle of it
  std::uint64_t user_handle = 0;
  std::uint16_t uid = 0;             // in whose name its commands go; a target is the driver's
  std::vector<McastMember> groups;   // multicast groups it is attached to
  EventCounts reported;
  std::uint64_t doorbell = 0;      // address of the doorbell record
  std::uint32_t seen_doorbell = 0; // send counter the last look saw
};

// What a program asks of a new QP.
struct QpParams {
  std::uint64_t user_handle = 0;
  QpType type = QpType::rc;
  std::uint32_t flags = 0;
  ib_uverbs_qp_cap cap{};
  Pd* pd = nullptr;
  Cq* send_cq = nullptr;
  Cq* recv_cq = nullptr;
  Srq* srq = nullptr;
  IndTable* table = nullptr;
  Xrcd* xrcd = nullptr;
  std::shared_ptr<EventPipe> async;
  bool sends_only() const { return type == QpType::xrc_ini; }
};

// Geometry of the two rings: of a raw packet QP in two buffers, of the others in one, receive ring first.
struct Rings {
  std::uint32_t rq_entries = 0, rq_shift = 0, sq_entries = 0;
  std::uint64_t bytes() const {
    return (std::uint64_t{rq_entries} << rq_shift) + (std::uint64_t{sq_entries} << prm::kLogSendWqeBasicBlock);
  }
};

prm::QpServiceType service_of(QpType type);

// raw_qp.cc: raw packet QPs, and those that hash over a table. All return 0 or an errno.
int make_raw_parts(File& file, const QpParams& params, const mlx5_ib_create_qp& request, const Rings& rings, Qp& qp);
int make_hash_parts(File& file, const QpParams& params, const Udata& driver, Qp& qp);
int destroy_raw_parts(File& file, Qp& qp);
// Says in the answer to the library which parts there are.
void describe_parts(File& file, const Qp& qp, mlx5_ib_create_qp_resp* response);
struct RateRequest {
  std::uint32_t kbps = 0, burst = 0;
  std::uint16_t packet = 0;
};
// `rate`: null if the limit stays.
int modify_raw_parts(File& file, Qp& qp, QpState current, QpState next, const RateRequest* rate);
int query_raw_state(File& file, Qp& qp);

// xrc_qp.cc. The rings of an initiator are like those of any other.
struct XrcTarget {
  std::uint64_t user_handle = 0;
  Xrcd* xrcd = nullptr;
  std::shared_ptr<EventPipe> async;
  bool sq_sig_all = false;
};
int create_target_qp(File& file, const XrcTarget& params, Qp** out);
int destroy_target_qp(File& file, Qp& qp);
int fill_initiator(File& file, const prm::View<prm::Qpc>& qpc);
int write_open_qp(File& file, WriteCall& call);

// MODIFY_QP to RESET, whatever the state: the first half of destroying.
int reset_qp(File& file, Qp& qp);

// Commands of qp_modify.cc, qp_query.cc and mcast.cc, for the table in qp.cc.
// IB_QPS_* and IB_MIG_* of what the device says.
QpState verbs_state(prm::QpState state);
std::uint8_t verbs_migration(prm::PathMigrationState state);

int write_modify_qp(File& file, WriteCall& call);
int write_modify_qp_ex(File& file, WriteCall& call);
int write_query_qp(File& file, WriteCall& call);
int write_attach_mcast(File& file, WriteCall& call);
int write_detach_mcast(File& file, WriteCall& call);
int detach_group(File& file, Qp& qp, const McastMember& group);

}  // namespace verbena::kernel
