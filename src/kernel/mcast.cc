// Multicast groups of datagram QPs.
#include <rdma/ib_user_verbs.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "kernel/address.h"
#include "kernel/command.h"
#include "kernel/method.h"
#include "kernel/qp.h"
#include "prm/misc.h"

namespace verbena::kernel {
namespace {

using Group = std::array<std::uint8_t, 16>;

template <class In, class Out>
int run_group(File& file, prm::Opcode opcode, std::uint32_t qpn, const Group& gid) {
  Command<In, Out> command(opcode, file.context().uid);
  command.in().template set<typename In::qpn>(qpn);
  std::memcpy(command.in().template bytes<typename In::multicast_gid>().data(), gid.data(), gid.size());
  return command.run(file.device());
}

// The two commands have one layout.
int find_member(File& file, const ib_uverbs_attach_mcast& cmd, Qp** qp, Group* gid) {
  int error = 0;
  *qp = file.find<Qp>(cmd.qp_handle, UVERBS_OBJECT_QP, &error);
  if (!*qp) return EINVAL;
  std::memcpy(gid->data(), cmd.gid, gid->size());
  return 0;
}

}  // namespace

int detach_group(File& file, Qp& qp, const Group& gid) {
  return run_group<prm::DetachFromMcgIn, prm::DetachFromMcgOut>(file, prm::Opcode::detach_from_mcg, qp.qpn, gid);
}

int write_attach_mcast(File& file, WriteCall& call) {
  Qp* qp = nullptr;
  Group gid;
  if (int error = find_member(file, call.read<ib_uverbs_attach_mcast>(), &qp, &gid)) return error;
  if (std::find(qp->groups.begin(), qp->groups.end(), gid) != qp->groups.end()) return 0;
  if (qp->type != QpType::ud || !is_multicast(gid)) return EINVAL;
  int error = run_group<prm::AttachToMcgIn, prm::AttachToMcgOut>(file, prm::Opcode::attach_to_mcg, qp->qpn, gid);
  if (!error) qp->groups.push_back(gid);
  return error;
}

int write_detach_mcast(File& file, WriteCall& call) {
  Qp* qp = nullptr;
  Group gid;
  if (int error = find_member(file, call.read<ib_uverbs_attach_mcast>(), &qp, &gid)) return error;
  auto it = std::find(qp->groups.begin(), qp->groups.end(), gid);
  if (it == qp->groups.end()) return EINVAL;
  if (int error = detach_group(file, *qp, gid)) return error;
  qp->groups.erase(it);
  return 0;
}

}  // namespace verbena::kernel
