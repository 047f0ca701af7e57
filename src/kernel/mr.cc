#include "kernel/mr.h"

#include <rdma/ib_user_verbs.h>

#include <algorithm>
#include <cerrno>

#include "kernel/ib.h"
#include "kernel/method.h"
#include "uverbs/newer.h"

namespace verbena::kernel {
namespace {

constexpr std::uint64_t kKlmBytes = 1u << 30;  // largest piece one indirect entry describes here

struct MrParams {
  std::uint64_t start, length, iova;
  std::uint32_t access;
};

void set_access(const prm::View<prm::Mkc>& mkc, std::uint32_t access, const Caps& caps) {
  mkc.set<prm::Mkc::lr>(1);
  mkc.set<prm::Mkc::lw>(access & Access::local_write ? 1 : 0);
  mkc.set<prm::Mkc::rr>(access & Access::remote_read ? 1 : 0);
  mkc.set<prm::Mkc::rw>(access & Access::remote_write ? 1 : 0);
  mkc.set<prm::Mkc::a>(access & Access::remote_atomic ? 1 : 0);
  if (!(access & Access::relaxed_ordering)) return;
  if (caps.relaxed_write) mkc.set<prm::Mkc::relaxed_ordering_write>(1);
  if (caps.relaxed_read) mkc.set<prm::Mkc::relaxed_ordering_read>(1);
}

// The memory itself: bus addresses are virtual addresses, so the region needs no page list, however large it is.
int create_direct(File& file, Pd& pd, const MrParams& mr, std::uint32_t* key) {
  MkeyRequest request(file, pd.pdn);
  auto mkc = request.context();
  prm::set_mkey_access_mode(mkc, prm::MkeyAccessMode::pa);
  set_access(mkc, mr.access, file.node().caps());
  mkc.set<prm::Mkc::start_addr>(mr.start);
  mkc.set<prm::Mkc::len>(mr.length);
  return request.run(key);
}

// The same memory at another address: an indirect key over the direct one.
int create_shifted(File& file, Pd& pd, const MrParams& mr, std::uint32_t inner, std::uint32_t* key) {
  const std::size_t entries = std::max<std::size_t>(1, (mr.length + kKlmBytes - 1) / kKlmBytes);
  MkeyRequest request(file, pd.pdn, entries);
  auto mkc = request.context();
  set_access(mkc, mr.access, file.node().caps());
  mkc.set<prm::Mkc::start_addr>(mr.iova);
  mkc.set<prm::Mkc::len>(mr.length);
  for (std::size_t i = 0; i < entries; ++i) {
    const std::uint64_t offset = i * kKlmBytes;
    auto klm = request.klm(i);
    klm.set<prm::Klm::byte_count>(static_cast<std::uint32_t>(std::min(kKlmBytes, mr.length - offset)));
    klm.set<prm::Klm::key>(inner);
    klm.set<prm::Klm::address>(mr.start + offset);
  }
  return request.run(key);
}

bool is_writable(std::uint32_t access) {
  return access & (Access::local_write | Access::remote_write | Access::remote_atomic | Access::mw_bind);
}

int create_keys(File& file, Pd& pd, const MrParams& mr, std::uint32_t* key, std::uint32_t* inner) {
  *inner = 0;
  if (mr.iova == mr.start) return create_direct(file, pd, mr, key);
  if (int error = create_direct(file, pd, mr, inner)) return error;
  int error = create_shifted(file, pd, mr, *inner, key);
  if (error) destroy_mkey(file, *inner);
  return error;
}

// Over memory that is known to be there.
int reg_mr(File& file, Pd& pd, const MrParams& params, std::unique_ptr<Mr>* out) {
  auto mr = std::make_unique<Mr>();
  if (int error = create_keys(file, pd, params, &mr->key, &mr->inner)) return error;
  mr->pd = &pd;
  ++pd.users;
  mr->start = params.start;
  mr->length = params.length;
  mr->iova = params.iova;
  mr->access = params.access;
  *out = std::move(mr);
  return 0;
}

// Rights and domain, and the range of a region that lies at its own address, change in place: the keys stay. Any other
// change makes new keys first, so that on failure the region stays as it was.
int update_keys(File& file, Mr& mr, Pd& pd, const MrParams& params) {
  if (int error = check_memory(params.start, params.length, is_writable(params.access))) return error;
  const bool moved = params.start != mr.start || params.length != mr.length || params.iova != mr.iova;
  if (moved && (mr.inner || params.iova != params.start)) {
    std::uint32_t key = 0, inner = 0;
    if (int error = create_keys(file, pd, params, &key, &inner)) return error;
    destroy_mkey(file, mr.key);
    if (mr.inner) destroy_mkey(file, mr.inner);
    mr.key = key;
    mr.inner = inner;
    return 0;
  }
  prm::Box<prm::Mkc> mkc;
  set_access(mkc.view(), params.access, file.node().caps());
  mkc.set<prm::Mkc::pd>(pd.pdn);
  mkc.set<prm::Mkc::start_addr>(params.start);
  mkc.set<prm::Mkc::len>(params.length);
  const std::span<const std::byte, 64> context(mkc.data(), 64);
  if (mr.inner)
    if (int error = file.device().update_mkey(mr.inner, context, false)) return error;
  return file.device().update_mkey(mr.key, context, !mr.inner);
}

}  // namespace

int create_memic_key(File& file, const Pd& pd, std::uint64_t address, std::uint64_t length, std::uint32_t access,
                     std::uint32_t* key) {
  MkeyRequest request(file, pd.pdn);
  auto mkc = request.context();
  prm::set_mkey_access_mode(mkc, prm::MkeyAccessMode::memic);
  set_access(mkc, access, file.node().caps());
  mkc.set<prm::Mkc::start_addr>(address);
  mkc.set<prm::Mkc::len>(length);
  mkc.set<prm::Mkc::umr_en>(0);
  return request.run(key);
}

namespace {

// ---- legacy commands ----

int write_reg_mr(File& file, WriteCall& call) {
  const auto cmd = call.read<ib_uverbs_reg_mr>();
  int error = 0;
  Pd* pd = file.find<Pd>(cmd.pd_handle, UVERBS_OBJECT_PD, &error);
  if (!pd) return EINVAL;
  if (cmd.start % kPageSize != cmd.hca_va % kPageSize) return EINVAL;
  if ((error = check_access(cmd.access_flags))) return error;
  if ((error = check_memory(cmd.start, cmd.length, is_writable(cmd.access_flags)))) return error;
  std::unique_ptr<Mr> mr;
  if ((error = reg_mr(file, *pd, {cmd.start, cmd.length, cmd.hca_va, cmd.access_flags}, &mr))) return error;
  ib_uverbs_reg_mr_resp response{};
  response.lkey = response.rkey = mr->key;
  response.mr_handle = file.objects().add(std::move(mr));
  call.write(&response, sizeof response);
  return 0;
}

int write_rereg_mr(File& file, WriteCall& call) {
  const auto cmd = call.read<ib_uverbs_rereg_mr>();
  if (!cmd.flags) return EINVAL;
  if (cmd.flags & ~Rereg::known) return EOPNOTSUPP;
  if (cmd.flags & Rereg::translation && cmd.start % kPageSize != cmd.hca_va % kPageSize) return EINVAL;
  int error = 0;
  Mr* mr = file.find<Mr>(cmd.mr_handle, UVERBS_OBJECT_MR, &error);
  if (!mr) return error;
  if (mr->users) return EBUSY;
  if (mr->dm || mr->dmabuf) return EINVAL;
  MrParams params{mr->start, mr->length, mr->iova, mr->access};
  if (cmd.flags & Rereg::access) {
    if ((error = check_access(cmd.access_flags))) return error;
    params.access = cmd.access_flags;
  }
  Pd* pd = mr->pd;
  if (cmd.flags & Rereg::pd && !(pd = file.find<Pd>(cmd.pd_handle, UVERBS_OBJECT_PD, &error))) return EINVAL;
  if (cmd.flags & Rereg::translation) {
    params.start = cmd.start;
    params.length = cmd.length;
    params.iova = cmd.hca_va;
  }
  if ((error = update_keys(file, *mr, *pd, params))) return error;
  --mr->pd->users;
  ++pd->users;
  mr->pd = pd;
  mr->start = params.start;
  mr->length = params.length;
  mr->iova = params.iova;
  mr->access = params.access;
  file.objects().changed(*mr);
  ib_uverbs_rereg_mr_resp response{};
  response.lkey = response.rkey = mr->key;
  call.write(&response, sizeof response);
  return 0;
}

int write_dereg_mr(File& file, WriteCall& call) {
  int error = 0;
  Mr* mr = file.find<Mr>(call.read<ib_uverbs_dereg_mr>().mr_handle, UVERBS_OBJECT_MR, &error);
  return mr ? file.destroy(mr) : error;
}

// ---- native methods ----

constexpr AttrSpec kDestroyAttrs[] = {
    uverbs::object_attr(UVERBS_ATTR_DESTROY_MR_HANDLE, UVERBS_OBJECT_MR, AttrAccess::destroy)};

constexpr AttrSpec kQueryAttrs[] = {
    uverbs::object_attr(UVERBS_ATTR_QUERY_MR_HANDLE, UVERBS_OBJECT_MR, AttrAccess::read),
    uverbs::out_attr(UVERBS_ATTR_QUERY_MR_RESP_LKEY, 4),
    uverbs::out_attr(UVERBS_ATTR_QUERY_MR_RESP_RKEY, 4),
    uverbs::out_attr(UVERBS_ATTR_QUERY_MR_RESP_LENGTH, 8),
    uverbs::out_attr(UVERBS_ATTR_QUERY_MR_RESP_IOVA, 8, false),
};

int native_query_mr(File& file, Request& request) {
  int error = 0;
  Mr* mr = file.find<Mr>(request.handle(UVERBS_ATTR_QUERY_MR_HANDLE), UVERBS_OBJECT_MR, &error);
  if (!mr) return error;
  request.write(UVERBS_ATTR_QUERY_MR_RESP_LKEY, mr->key);
  request.write(UVERBS_ATTR_QUERY_MR_RESP_RKEY, mr->key);
  request.write(UVERBS_ATTR_QUERY_MR_RESP_LENGTH, mr->length);
  request.write(UVERBS_ATTR_QUERY_MR_RESP_IOVA, mr->iova);
  return 0;
}

constexpr AttrSpec kAdviseAttrs[] = {
    uverbs::object_attr(UVERBS_ATTR_ADVISE_MR_PD_HANDLE, UVERBS_OBJECT_PD, AttrAccess::read),
    uverbs::const_attr(UVERBS_ATTR_ADVISE_MR_ADVICE),
    uverbs::flags_attr(UVERBS_ATTR_ADVISE_MR_FLAGS, true),
    {UVERBS_ATTR_ADVISE_MR_SGE_LIST, uverbs::AttrKind::ptr_in, true, sizeof(ib_uverbs_sge), 0xffff, false, 0,
     AttrAccess::read},
};

int native_advise_mr(File& file, Request& request) {
  int error = 0;
  if (!file.find<Pd>(request.handle(UVERBS_ATTR_ADVISE_MR_PD_HANDLE), UVERBS_OBJECT_PD, &error)) return error;
  return EOPNOTSUPP;  // advice is for paging on demand
}

constexpr AttrSpec kDmabufAttrs[] = {
    uverbs::object_attr(UVERBS_ATTR_REG_DMABUF_MR_HANDLE, UVERBS_OBJECT_MR, AttrAccess::create),
    uverbs::object_attr(UVERBS_ATTR_REG_DMABUF_MR_PD_HANDLE, UVERBS_OBJECT_PD, AttrAccess::read),
    uverbs::in_attr(UVERBS_ATTR_REG_DMABUF_MR_OFFSET, 8),
    uverbs::in_attr(UVERBS_ATTR_REG_DMABUF_MR_LENGTH, 8),
    uverbs::in_attr(UVERBS_ATTR_REG_DMABUF_MR_IOVA, 8),
    {UVERBS_ATTR_REG_DMABUF_MR_FD, uverbs::AttrKind::ptr_in, true, 4, 8, false, 0, AttrAccess::read},
    uverbs::flags_attr(UVERBS_ATTR_REG_DMABUF_MR_ACCESS_FLAGS, true),
    uverbs::flags_attr(uverbs::newer::kRegDmabufAccessFlags),
    uverbs::out_attr(UVERBS_ATTR_REG_DMABUF_MR_RESP_LKEY, 4),
    uverbs::out_attr(UVERBS_ATTR_REG_DMABUF_MR_RESP_RKEY, 4),
};

constexpr std::uint32_t kDmabufAccess = Access::local_write | Access::remote_read | Access::remote_write |
                                        Access::remote_atomic | Access::relaxed_ordering;

int native_reg_dmabuf(File& file, Request& request) {
  int error = 0;
  Pd* pd = file.find<Pd>(request.handle(UVERBS_ATTR_REG_DMABUF_MR_PD_HANDLE), UVERBS_OBJECT_PD, &error);
  if (!pd) return error;
  std::uint32_t access = 0, vendor = 0;
  if ((error = request.flags(UVERBS_ATTR_REG_DMABUF_MR_ACCESS_FLAGS, kDmabufAccess, &access))) return error;
  if ((error = check_access(access))) return error;
  const auto offset = request.value<std::uint64_t>(UVERBS_ATTR_REG_DMABUF_MR_OFFSET);
  const auto length = request.value<std::uint64_t>(UVERBS_ATTR_REG_DMABUF_MR_LENGTH);
  const auto iova = request.value<std::uint64_t>(UVERBS_ATTR_REG_DMABUF_MR_IOVA);
  if (offset % kPageSize != iova % kPageSize) return EINVAL;
  if ((error = request.flags(uverbs::newer::kRegDmabufAccessFlags, uverbs::newer::kRegDmabufDataDirect, &vendor)))
    return error;
  if (vendor) return iova % kPageSize ? EOPNOTSUPP : EINVAL;  // there is no data-direct function
  const int fd = request.value<std::int32_t>(UVERBS_ATTR_REG_DMABUF_MR_FD);
  std::unique_ptr<DmaBuf> memory;
  if ((error = DmaBuf::map(fd, offset, length, is_writable(access), &memory))) return error;
  std::unique_ptr<Mr> mr;
  if ((error = reg_mr(file, *pd, {memory->address(), length, iova, access}, &mr))) return error;
  mr->dmabuf = std::move(memory);
  request.write(UVERBS_ATTR_REG_DMABUF_MR_RESP_LKEY, mr->key);
  request.write(UVERBS_ATTR_REG_DMABUF_MR_RESP_RKEY, mr->key);
  request.set_id(UVERBS_ATTR_REG_DMABUF_MR_HANDLE, file.objects().add(std::move(mr)));
  return 0;
}

constexpr AttrSpec kRegAttrs[] = {
    uverbs::object_attr(uverbs::newer::kRegMrHandle, UVERBS_OBJECT_MR, AttrAccess::create),
    uverbs::object_attr(uverbs::newer::kRegMrPd, UVERBS_OBJECT_PD, AttrAccess::read),
    uverbs::object_attr(uverbs::newer::kRegMrDmah, uverbs::newer::kObjectDmah, AttrAccess::read, false),
    uverbs::in_attr(uverbs::newer::kRegMrIova, 8),
    uverbs::in_attr(uverbs::newer::kRegMrAddress, 8, false),
    uverbs::in_attr(uverbs::newer::kRegMrLength, 8),
    uverbs::flags_attr(uverbs::newer::kRegMrAccess, true),
    uverbs::fd_attr(uverbs::newer::kRegMrFd, 0, AttrAccess::read, false),  // anybody's descriptor
    uverbs::in_attr(uverbs::newer::kRegMrFdOffset, 8, false),
    uverbs::out_attr(uverbs::newer::kRegMrLkey, 4),
    uverbs::out_attr(uverbs::newer::kRegMrRkey, 4),
};

// Memory of the program by its address, or a dma-buf by its descriptor and an offset.
int native_reg_mr(File& file, Request& request) {
  using namespace uverbs::newer;
  int error = 0;
  Pd* pd = file.find<Pd>(request.handle(kRegMrPd), UVERBS_OBJECT_PD, &error);
  if (!pd) return error;
  const bool by_fd = request.has(kRegMrFd);
  if (by_fd != request.has(kRegMrFdOffset) || by_fd == request.has(kRegMrAddress)) return EINVAL;
  std::uint32_t access = 0;
  if ((error = request.flags(kRegMrAccess, by_fd ? kDmabufAccess : Access::known, &access))) return error;
  if ((error = check_access(access))) return error;
  Dmah* dmah = nullptr;
  if (request.has(kRegMrDmah) && !(dmah = file.find<Dmah>(request.handle(kRegMrDmah), kObjectDmah, &error))) return error;
  const auto iova = request.value<std::uint64_t>(kRegMrIova), length = request.value<std::uint64_t>(kRegMrLength);
  const auto from = request.value<std::uint64_t>(by_fd ? kRegMrFdOffset : kRegMrAddress);
  if (from % kPageSize != iova % kPageSize) return EINVAL;
  std::unique_ptr<DmaBuf> memory;
  error = by_fd ? DmaBuf::map(request.fd(kRegMrFd), from, length, is_writable(access), &memory)
                : check_memory(from, length, is_writable(access));
  if (error) return error;
  std::unique_ptr<Mr> mr;
  if ((error = reg_mr(file, *pd, {memory ? memory->address() : from, length, iova, access}, &mr))) return error;
  mr->dmabuf = std::move(memory);
  if ((mr->dmah = dmah)) ++dmah->users;
  request.write(kRegMrLkey, mr->key);
  request.write(kRegMrRkey, mr->key);
  request.set_id(kRegMrHandle, file.objects().add(std::move(mr)));
  return 0;
}

constexpr Method kMethods[] = {
    {{UVERBS_OBJECT_MR, UVERBS_METHOD_MR_DESTROY, kDestroyAttrs},
     destroy_method<UVERBS_OBJECT_MR, UVERBS_ATTR_DESTROY_MR_HANDLE>},
    {{UVERBS_OBJECT_MR, UVERBS_METHOD_QUERY_MR, kQueryAttrs}, native_query_mr},
    {{UVERBS_OBJECT_MR, UVERBS_METHOD_ADVISE_MR, kAdviseAttrs}, native_advise_mr},
    {{UVERBS_OBJECT_MR, UVERBS_METHOD_REG_DMABUF_MR, kDmabufAttrs}, native_reg_dmabuf},
    {{UVERBS_OBJECT_MR, uverbs::newer::kRegMr, kRegAttrs}, native_reg_mr},
};
constexpr WriteCommand kCommands[] = {
    {IB_USER_VERBS_CMD_REG_MR, sizeof(ib_uverbs_reg_mr), sizeof(ib_uverbs_reg_mr_resp), write_reg_mr},
    {IB_USER_VERBS_CMD_REREG_MR, sizeof(ib_uverbs_rereg_mr), sizeof(ib_uverbs_rereg_mr_resp), write_rereg_mr},
    {IB_USER_VERBS_CMD_DEREG_MR, sizeof(ib_uverbs_dereg_mr), 0, write_dereg_mr},
};

}  // namespace

int Mr::destroy(File& file) {
  if (int error = destroy_mkey(file, key)) return error;
  if (inner) destroy_mkey(file, inner);
  --pd->users;
  if (dm) --dm->users;
  if (dmah) --dmah->users;
  return 0;
}

std::span<const Method> mr_methods() { return kMethods; }
std::span<const WriteCommand> mr_commands() { return kCommands; }

}  // namespace verbena::kernel
