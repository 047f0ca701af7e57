// RDMA_NLDEV_CMD_RES_*: what every process of the virtual host has on the NIC.
#include <rdma/rdma_netlink.h>
#include <signal.h>

#include <algorithm>
#include <cerrno>

#include "kernel/ib.h"
#include "kernel/nldev.h"
#include "kernel/privilege.h"
#include "kernel/qp.h"

namespace verbena::kernel {
namespace {

using device::Tracked;
using device::TrackKind;

constexpr std::uint16_t answer_type(unsigned op) { return static_cast<std::uint16_t>(RDMA_NL_NLDEV << 10 | op); }

// Who lists sees the processes of its own pid namespace.
std::vector<Tracked> visible(Node& node, TrackKind kind) {
  device::Tracker* tracker = node.device().tracker();
  if (tracker == nullptr) return {};
  std::vector<Tracked> all = tracker->list(kind);
  std::int32_t last = 0;
  bool seen = false;
  std::erase_if(all, [&](const Tracked& object) {
    if (object.pid != last) seen = object.pid > 0 && (kill(object.pid, 0) == 0 || errno != ESRCH);
    last = object.pid;
    return !seen;
  });
  std::ranges::stable_sort(all, {}, [](const Tracked& object) { return object.facts.id; });
  return all;
}

void put_pid(NetlinkAnswer& answer, const Tracked& object) {
  answer.put(RDMA_NLDEV_ATTR_RES_PID, static_cast<std::uint32_t>(object.pid));
}

void put_qp(NetlinkAnswer& answer, Node&, const Tracked& qp, bool) {
  const auto type = static_cast<QpType>(qp.facts.type);
  const bool connected = type == QpType::rc || type == QpType::uc;
  if (qp.port) answer.put(RDMA_NLDEV_ATTR_PORT_INDEX, std::uint32_t{1});
  answer.put(RDMA_NLDEV_ATTR_RES_LQPN, qp.facts.id);
  if (connected) {
    answer.put(RDMA_NLDEV_ATTR_RES_RQPN, qp.dest_qpn);
    answer.put(RDMA_NLDEV_ATTR_RES_RQ_PSN, qp.rq_psn);
  }
  answer.put(RDMA_NLDEV_ATTR_RES_SQ_PSN, qp.sq_psn);
  if (connected || type == QpType::xrc_ini || type == QpType::xrc_tgt)
    answer.put(RDMA_NLDEV_ATTR_RES_PATH_MIG_STATE, verbs_migration(qp.path_migration));
  answer.put(RDMA_NLDEV_ATTR_RES_TYPE, static_cast<std::uint8_t>(qp.facts.type));
  answer.put(RDMA_NLDEV_ATTR_RES_STATE, static_cast<std::uint8_t>(verbs_state(qp.state)));
  if (qp.facts.pd) answer.put(RDMA_NLDEV_ATTR_RES_PDN, qp.facts.pd);
}

void put_cq(NetlinkAnswer& answer, Node&, const Tracked& cq, bool) {
  answer.put(RDMA_NLDEV_ATTR_RES_CQE, cq.facts.entries);
  answer.put(RDMA_NLDEV_ATTR_RES_USECNT, std::uint64_t{cq.users});
  answer.put(RDMA_NLDEV_ATTR_DEV_DIM, std::uint8_t{0});
  answer.put(RDMA_NLDEV_ATTR_RES_CQN, cq.facts.id);
  answer.put(RDMA_NLDEV_ATTR_RES_CTXN, cq.facts.context);
}

void put_mr(NetlinkAnswer& answer, Node&, const Tracked& mr, bool privileged) {
  if (privileged) {
    answer.put(RDMA_NLDEV_ATTR_RES_RKEY, mr.facts.key);
    answer.put(RDMA_NLDEV_ATTR_RES_LKEY, mr.facts.key);
  }
  answer.put(RDMA_NLDEV_ATTR_RES_MRLEN, mr.facts.length);
  answer.put(RDMA_NLDEV_ATTR_RES_MRN, mr.facts.id);
  answer.put(RDMA_NLDEV_ATTR_RES_PDN, mr.facts.pd);
}

void put_pd(NetlinkAnswer& answer, Node&, const Tracked& pd, bool privileged) {
  if (privileged) answer.put(RDMA_NLDEV_ATTR_RES_LOCAL_DMA_LKEY, std::uint32_t{0});  // the kernel's own PDs have one
  answer.put(RDMA_NLDEV_ATTR_RES_USECNT, std::uint64_t{pd.users});
  answer.put(RDMA_NLDEV_ATTR_RES_PDN, pd.facts.id);
  answer.put(RDMA_NLDEV_ATTR_RES_CTXN, pd.facts.context);
}

void put_context(NetlinkAnswer& answer, Node&, const Tracked& context, bool) {
  answer.put(RDMA_NLDEV_ATTR_RES_CTXN, context.facts.id);
}

// The QPs that take their receives there; neighbours as a range.
void put_qps_of(NetlinkAnswer& answer, Node& node, const Tracked& srq) {
  const std::size_t table = answer.open(NLA_F_NESTED | RDMA_NLDEV_ATTR_RES_QP);
  std::uint32_t first = 0, last = 0;
  const auto end_range = [&] {
    if (!first) return;
    const std::size_t entry = answer.open(NLA_F_NESTED | RDMA_NLDEV_ATTR_RES_QP_ENTRY);
    if (first == last) {
      answer.put(RDMA_NLDEV_ATTR_RES_LQPN, first);
    } else {
      answer.put(RDMA_NLDEV_ATTR_MIN_RANGE, first);
      answer.put(RDMA_NLDEV_ATTR_MAX_RANGE, last);
    }
    answer.close(entry);
  };
  for (const Tracked& qp : visible(node, TrackKind::qp)) {
    if (qp.facts.srq != srq.facts.id) continue;
    if (qp.facts.id != last + 1 || !first) {
      end_range();
      first = qp.facts.id;
    }
    last = qp.facts.id;
  }
  end_range();
  answer.close(table);
}

void put_srq(NetlinkAnswer& answer, Node& node, const Tracked& srq, bool) {
  answer.put(RDMA_NLDEV_ATTR_RES_SRQN, srq.facts.id);
  answer.put(RDMA_NLDEV_ATTR_RES_TYPE, static_cast<std::uint8_t>(srq.facts.type));
  answer.put(RDMA_NLDEV_ATTR_RES_PDN, srq.facts.pd);
  if (srq.facts.cq) answer.put(RDMA_NLDEV_ATTR_RES_CQN, srq.facts.cq);
  put_qps_of(answer, node, srq);
}

void put_nothing(NetlinkAnswer&, Node&, const Tracked&, bool) {}

struct Resource {
  unsigned op;
  TrackKind kind;
  const char* name;  // in the summary
  unsigned table, entry, id;
  void (*put)(NetlinkAnswer&, Node&, const Tracked&, bool privileged);
};
// In the order of the summary. No connection manager runs here: there are never any cm_ids.
constexpr Resource kResources[] = {
    {RDMA_NLDEV_CMD_RES_PD_GET, TrackKind::pd, "pd", RDMA_NLDEV_ATTR_RES_PD, RDMA_NLDEV_ATTR_RES_PD_ENTRY,
     RDMA_NLDEV_ATTR_RES_PDN, put_pd},
    {RDMA_NLDEV_CMD_RES_CQ_GET, TrackKind::cq, "cq", RDMA_NLDEV_ATTR_RES_CQ, RDMA_NLDEV_ATTR_RES_CQ_ENTRY,
     RDMA_NLDEV_ATTR_RES_CQN, put_cq},
    {RDMA_NLDEV_CMD_RES_QP_GET, TrackKind::qp, "qp", RDMA_NLDEV_ATTR_RES_QP, RDMA_NLDEV_ATTR_RES_QP_ENTRY,
     RDMA_NLDEV_ATTR_RES_LQPN, put_qp},
    {RDMA_NLDEV_CMD_RES_CM_ID_GET, TrackKind::cm_id, "cm_id", RDMA_NLDEV_ATTR_RES_CM_ID,
     RDMA_NLDEV_ATTR_RES_CM_ID_ENTRY, RDMA_NLDEV_ATTR_RES_CM_IDN, put_nothing},
    {RDMA_NLDEV_CMD_RES_MR_GET, TrackKind::mr, "mr", RDMA_NLDEV_ATTR_RES_MR, RDMA_NLDEV_ATTR_RES_MR_ENTRY,
     RDMA_NLDEV_ATTR_RES_MRN, put_mr},
    {RDMA_NLDEV_CMD_RES_CTX_GET, TrackKind::ctx, "ctx", RDMA_NLDEV_ATTR_RES_CTX, RDMA_NLDEV_ATTR_RES_CTX_ENTRY,
     RDMA_NLDEV_ATTR_RES_CTXN, put_context},
    {RDMA_NLDEV_CMD_RES_SRQ_GET, TrackKind::srq, "srq", RDMA_NLDEV_ATTR_RES_SRQ, RDMA_NLDEV_ATTR_RES_SRQ_ENTRY,
     RDMA_NLDEV_ATTR_RES_SRQN, put_srq},
};

void add_summary(NetlinkAnswer& answer, Node& node, bool part_of_dump) {
  answer.begin(answer_type(RDMA_NLDEV_CMD_RES_GET), part_of_dump ? NLM_F_MULTI : 0);
  put_handle(answer, node);
  const std::size_t table = answer.open(RDMA_NLDEV_ATTR_RES_SUMMARY);
  for (const Resource& resource : kResources) {
    const std::size_t entry = answer.open(RDMA_NLDEV_ATTR_RES_SUMMARY_ENTRY);
    answer.put(RDMA_NLDEV_ATTR_RES_SUMMARY_ENTRY_NAME, resource.name);
    answer.put(RDMA_NLDEV_ATTR_RES_SUMMARY_ENTRY_CURR, std::uint64_t{visible(node, resource.kind).size()});
    answer.close(entry);
  }
  answer.close(table);
  answer.end();
}

int summary(std::span<const std::shared_ptr<Node>> nodes, const NetlinkRequest& request, bool dump,
            NetlinkAnswer& answer) {
  if (dump) {
    for (const auto& node : nodes) add_summary(answer, *node, true);
    return 0;
  }
  Node* node = named_node(nodes, request);
  if (!node) return EINVAL;
  add_summary(answer, *node, false);
  return 0;
}

// Messages with one table each, of as many entries as fit.
class Table {
 public:
  Table(NetlinkAnswer& answer, Node& node, const Resource& resource)
      : answer_(answer), node_(node), resource_(resource) {}
  void add(const Tracked& object, bool privileged) {
    if (!open_) start();
    if (!put(object, privileged)) {
      finish();
      start();
      put(object, privileged);
    }
  }
  void finish() {
    if (!open_) return;
    answer_.close(table_);
    answer_.end();
    open_ = false;
  }

 private:
  void start() {
    answer_.begin(answer_type(resource_.op), NLM_F_MULTI);
    put_handle(answer_, node_);
    table_ = answer_.open(resource_.table);
    open_ = true;
  }
  bool put(const Tracked& object, bool privileged) {
    const std::size_t before = answer_.message_bytes(), entry = answer_.open(resource_.entry);
    resource_.put(answer_, node_, object, privileged);
    put_pid(answer_, object);
    answer_.close(entry);
    if (answer_.message_bytes() <= NetlinkAnswer::kDatagram) return true;
    answer_.truncate(before);
    return false;
  }

  NetlinkAnswer& answer_;
  Node& node_;
  const Resource& resource_;
  std::size_t table_ = 0;
  bool open_ = false;
};

int list(Node& node, const NetlinkRequest& request, const Resource& resource, NetlinkAnswer& answer) {
  std::uint32_t port = 0;
  if (request.has(RDMA_NLDEV_ATTR_PORT_INDEX) && (!request.get(RDMA_NLDEV_ATTR_PORT_INDEX, &port) || port != 1))
    return EINVAL;
  const bool privileged = may_administer_network();
  Table table(answer, node, resource);
  for (const Tracked& object : visible(node, resource.kind)) {
    if (port && resource.kind == TrackKind::qp && !object.port) continue;
    table.add(object, privileged);
  }
  table.finish();
  return 0;
}

int get_one(Node& node, const NetlinkRequest& request, const Resource& resource, NetlinkAnswer& answer) {
  std::uint32_t id = 0;
  if (!request.get(resource.id, &id)) return EINVAL;
  const std::vector<Tracked> all = visible(node, resource.kind);
  const auto found = std::ranges::find(all, id, [](const Tracked& object) { return object.facts.id; });
  if (found == all.end()) return ENOENT;
  answer.begin(answer_type(resource.op), 0);
  put_handle(answer, node);
  resource.put(answer, node, *found, may_administer_network());
  put_pid(answer, *found);
  answer.end();
  return 0;
}

}  // namespace

int answer_resources(std::span<const std::shared_ptr<Node>> nodes, const NetlinkRequest& request, unsigned op,
                     NetlinkAnswer& answer) {
  const bool dump = request.header().nlmsg_flags & NLM_F_DUMP;
  if (op == RDMA_NLDEV_CMD_RES_GET) return summary(nodes, request, dump, answer);
  for (const Resource& resource : kResources) {
    if (resource.op != op) continue;
    Node* node = named_node(nodes, request);
    if (!node) return EINVAL;
    return dump ? list(*node, request, resource, answer) : get_one(*node, request, resource, answer);
  }
  return EOPNOTSUPP;
}

}  // namespace verbena::kernel
