// Queue pairs.
// Threads: under the File's lock.
#pragma once

#include <rdma/ib_user_ioctl_cmds.h>

#include <array>
#include <vector>

#include "kernel/cq.h"
#include "kernel/events.h"
#include "kernel/file.h"
#include "kernel/ib.h"
#include "kernel/pd.h"
#include "kernel/srq.h"
#include "prm/qp.h"

namespace verbena::kernel {

struct Qp : Object {
  Qp() : Object(UVERBS_OBJECT_QP) {}
  int destroy(File& file) override;
  bool track(device::TrackFacts* facts) const override {
    facts->kind = device::TrackKind::qp;
    facts->id = qpn;
    facts->pd = pd ? pd->track_id() : 0;
    facts->srq = srq ? srq->track_id() : 0;
    facts->type = static_cast<std::uint32_t>(type);
    return true;
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
  std::vector<std::array<std::uint8_t, 16>> groups;  // multicast groups it is attached to
  EventCounts reported;
  std::uint64_t doorbell = 0;      // address of the doorbell record
  std::uint32_t seen_doorbell = 0; // send counter ring_all() saw last
};

prm::QpServiceType service_of(QpType type);

// MODIFY_QP to RESET, whatever the state: the first half of destroying.
int reset_qp(File& file, Qp& qp);

// Commands of qp_modify.cc, qp_query.cc and mcast.cc, for the table in qp.cc.
struct WriteCall;
// IB_QPS_* and IB_MIG_* of what the device says.
QpState verbs_state(prm::QpState state);
std::uint8_t verbs_migration(prm::PathMigrationState state);

int write_modify_qp(File& file, WriteCall& call);
int write_modify_qp_ex(File& file, WriteCall& call);
int write_query_qp(File& file, WriteCall& call);
int write_attach_mcast(File& file, WriteCall& call);
int write_detach_mcast(File& file, WriteCall& call);
int detach_group(File& file, Qp& qp, const std::array<std::uint8_t, 16>& gid);

}  // namespace verbena::kernel
