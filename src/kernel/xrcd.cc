#include "kernel/xrcd.h"

#include <fcntl.h>
#include <rdma/ib_user_verbs.h>
#include <sys/stat.h>

#include <cerrno>

#include "kernel/command.h"
#include "kernel/method.h"
#include "kernel/node.h"
#include "prm/cq.h"
#include "prm/cqe.h"
#include "prm/misc.h"
#include "prm/srq.h"

namespace verbena::kernel {

// ---- domains ----

namespace {

int alloc_xrcd(Node& node, std::uint32_t* xrcdn) {
  Command<prm::AllocXrcdIn, prm::AllocXrcdOut> command(prm::Opcode::alloc_xrcd);
  if (int error = command.run(node.device())) return error;
  *xrcdn = command.out().get<prm::AllocXrcdOut::xrcd>();
  return 0;
}

}  // namespace

int XrcState::open(Node& node, int fd, int oflags, std::uint32_t* xrcdn) {
  std::lock_guard guard(lock_);
  if (fd == -1) {
    if (int error = alloc_xrcd(node, xrcdn)) return error;
  } else {
    struct stat file {};
    if (fstat(fd, &file) != 0) return EBADF;
    if (int error = node.device().join_xrcd(file.st_dev, file.st_ino, oflags & O_CREAT, oflags & O_EXCL, xrcdn)) return error;
  }
  ++opens_[*xrcdn];
  return 0;
}

int XrcState::close(Node& node, std::uint32_t xrcdn) {
  std::lock_guard guard(lock_);
  const auto it = opens_.find(xrcdn);
  if (it == opens_.end()) return EINVAL;
  if (it->second > 1) {
    --it->second;
    return 0;
  }
  Command<prm::DeallocXrcdIn, prm::DeallocXrcdOut> command(prm::Opcode::dealloc_xrcd);
  command.in().set<prm::DeallocXrcdIn::xrcd>(xrcdn);
  if (int error = command.run(node.device())) return error;
  opens_.erase(it);
  return 0;
}

// ---- what the driver puts into contexts ----

namespace {

constexpr std::size_t kPage = 4096;
// The one page that the driver's CQ and receive queue share.
constexpr std::size_t kCqRing = 0, kSrqRing = 1024, kCqRecord = 2048, kSrqRecord = 3072;

int make_cq(Node& node, std::byte* page, std::uint32_t* cqn) {
  std::uint32_t eqn = 0;
  if (int error = node.completion_eqn(0, &eqn)) return error;
  Command<prm::CreateCqIn, prm::CreateCqOut> command(prm::Opcode::create_cq, 0, prm::Pas::size);
  const auto cqc = command.in().sub<prm::CreateCqIn::cq_context>();
  cqc.set<prm::Cqc::uar_page>(node.kernel_uar()).set<prm::Cqc::c_eqn_or_apu_element>(eqn);
  cqc.set<prm::Cqc::dbr_addr>(reinterpret_cast<std::uintptr_t>(page + kCqRecord));
  fill_pages<prm::CreateCqIn::pas>(command.in(), {reinterpret_cast<std::uintptr_t>(page), 1, 0});
  if (int error = command.run(node.device())) return error;
  *cqn = command.out().get<prm::CreateCqOut::cqn>();
  return 0;
}

int make_srq(Node& node, std::byte* page, const XrcDefaults& of, std::uint32_t xrcdn, std::uint32_t* srqn) {
  using prm::XrcSrqc;
  Command<prm::CreateXrcSrqIn, prm::CreateXrcSrqOut> command(prm::Opcode::create_xrc_srq, 0, prm::Pas::size);
  const auto context = command.in().sub<prm::CreateXrcSrqIn::xrc_srq_context_entry>();
  context.set<XrcSrqc::log_xrc_srq_size>(1).set<XrcSrqc::log_rq_stride>(1).set<XrcSrqc::page_offset>(kSrqRing / 64);
  context.set<XrcSrqc::xrcd>(xrcdn).set<XrcSrqc::cqn>(of.cqn).set<XrcSrqc::pd>(of.pdn);
  context.set<XrcSrqc::user_index>(prm::kNoUserIndex);
  context.set<XrcSrqc::dbr_addr>(reinterpret_cast<std::uintptr_t>(page + kSrqRecord));
  fill_pages<prm::CreateXrcSrqIn::pas>(command.in(), {reinterpret_cast<std::uintptr_t>(page), 1, 0});
  if (int error = command.run(node.device())) return error;
  *srqn = command.out().get<prm::CreateXrcSrqOut::xrc_srqn>();
  return 0;
}

}  // namespace

// They live as long as the node; what was made before a failure is left to it too.
int XrcState::make_defaults(Node& node) {
  auto* page = static_cast<std::byte*>(node.device().alloc_dma(kPage));
  if (!page) return ENOMEM;
  Command<prm::AllocPdIn, prm::AllocPdOut> pd(prm::Opcode::alloc_pd);
  if (int error = pd.run(node.device())) return error;
  defaults_.pdn = pd.out().get<prm::AllocPdOut::pd>();
  std::uint32_t receive_xrcd = 0;
  if (int error = make_cq(node, page, &defaults_.cqn)) return error;
  if (int error = alloc_xrcd(node, &receive_xrcd)) return error;
  if (int error = alloc_xrcd(node, &defaults_.initiator_xrcd)) return error;
  return make_srq(node, page, defaults_, receive_xrcd, &defaults_.srqn);
}

int XrcState::defaults(Node& node, XrcDefaults* out) {
  std::lock_guard guard(lock_);
  if (!has_defaults_)
    if (int error = make_defaults(node)) return error;
  has_defaults_ = true;
  *out = defaults_;
  return 0;
}

// ---- target queue pairs ----

void XrcState::add_target(const std::shared_ptr<TargetQp>& target) {
  std::lock_guard guard(lock_);
  targets_[target->qpn] = target;
}

std::shared_ptr<TargetQp> XrcState::find_target(Node& node, std::uint32_t qpn, std::uint32_t xrcdn) {
  std::lock_guard guard(lock_);
  if (const auto it = targets_.find(qpn); it != targets_.end())
    if (auto target = it->second.lock(); target && target->xrcdn == xrcdn) return target;
  if (!node.device().has_xrc_target(qpn, xrcdn)) return nullptr;
  auto target = std::make_shared<TargetQp>();
  target->qpn = qpn;
  target->xrcdn = xrcdn;
  target->elsewhere = true;
  return target;
}

bool XrcState::leave_target(std::shared_ptr<TargetQp>& target) {
  std::lock_guard guard(lock_);
  const std::uint32_t qpn = target->qpn;
  const bool last = target.use_count() == 1;
  if (last && !target->elsewhere) targets_.erase(qpn);
  target.reset();
  return last;
}

// ---- requests ----

int Xrcd::destroy(File& file) { return file.node().xrc().close(file.node(), xrcdn); }

namespace {

int write_open(File& file, WriteCall& call) {
  const auto cmd = call.read<ib_uverbs_open_xrcd>();
  if (!file.node().caps().xrc) return EOPNOTSUPP;
  auto xrcd = std::make_unique<Xrcd>();
  if (int error = file.node().xrc().open(file.node(), static_cast<int>(cmd.fd), static_cast<int>(cmd.oflags), &xrcd->xrcdn))
    return error;
  ib_uverbs_open_xrcd_resp response{};
  response.xrcd_handle = file.objects().add(std::move(xrcd));
  call.write(&response, sizeof response);
  return 0;
}

int write_close(File& file, WriteCall& call) {
  int error = 0;
  Xrcd* xrcd = file.find<Xrcd>(call.read<ib_uverbs_close_xrcd>().xrcd_handle, UVERBS_OBJECT_XRCD, &error);
  return xrcd ? file.destroy(xrcd) : error;
}

constexpr AttrSpec kDestroyAttrs[] = {
    uverbs::object_attr(UVERBS_ATTR_DESTROY_XRCD_HANDLE, UVERBS_OBJECT_XRCD, AttrAccess::destroy)};

constexpr Method kMethods[] = {
    {{UVERBS_OBJECT_XRCD, UVERBS_METHOD_XRCD_DESTROY, kDestroyAttrs},
     destroy_method<UVERBS_OBJECT_XRCD, UVERBS_ATTR_DESTROY_XRCD_HANDLE>},
};
constexpr WriteCommand kCommands[] = {
    {IB_USER_VERBS_CMD_OPEN_XRCD, sizeof(ib_uverbs_open_xrcd), sizeof(ib_uverbs_open_xrcd_resp), write_open},
    {IB_USER_VERBS_CMD_CLOSE_XRCD, sizeof(ib_uverbs_close_xrcd), 0, write_close},
};

}  // namespace

std::span<const Method> xrcd_methods() { return kMethods; }
std::span<const WriteCommand> xrcd_commands() { return kCommands; }

}  // namespace verbena::kernel
