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

template <class In, class Out>
int run_group(File& file, prm::Opcode opcode, std::uint32_t qpn, const McastMember& group) {
  Command<In, Out> command(opcode, file.context().uid);
  command.in().template set<typename In::qpn>(qpn);
  std::memcpy(command.in().template bytes<typename In::multicast_gid>().data(), group.gid.data(), group.gid.size());
  return command.run(file.device());
}

// The two commands have one layout.
int find_member(File& file, const ib_uverbs_attach_mcast& cmd, Qp** qp, McastMember* group) {
  int error = 0;
  *qp = file.find<Qp>(cmd.qp_handle, UVERBS_OBJECT_QP, &error);
  if (!*qp) return EINVAL;
  std::memcpy(group->gid.data(), cmd.gid, group->gid.size());
  group->mlid = cmd.mlid;
  return 0;
}

}  // namespace

int detach_group(File& file, Qp& qp, const McastMember& group) {
  return run_group<prm::DetachFromMcgIn, prm::DetachFromMcgOut>(file, prm::Opcode::detach_from_mcg, qp.qpn, group);
}

int write_attach_mcast(File& file, WriteCall& call) {
  Qp* qp = nullptr;
  McastMember group;
  if (int error = find_member(file, call.read<ib_uverbs_attach_mcast>(), &qp, &group)) return error;
  if (std::find(qp->groups.begin(), qp->groups.end(), group) != qp->groups.end()) return 0;
  if (qp->type != QpType::ud || !is_multicast(group.gid)) return EINVAL;
  int error = run_group<prm::AttachToMcgIn, prm::AttachToMcgOut>(file, prm::Opcode::attach_to_mcg, qp->qpn, group);
  if (!error) qp->groups.push_back(group);
  return error;
}

int write_detach_mcast(File& file, WriteCall& call) {
  Qp* qp = nullptr;
  McastMember group;
  if (int error = find_member(file, call.read<ib_uverbs_attach_mcast>(), &qp, &group)) return error;
  auto it = std::find(qp->groups.begin(), qp->groups.end(), group);
  if (it == qp->groups.end()) return EINVAL;
  if (int error = detach_group(file, *qp, group)) return error;
  qp->groups.erase(it);
  return 0;
}

}  // namespace verbena::kernel
