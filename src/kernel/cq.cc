#include "kernel/cq.h"

#include <rdma/ib_user_ioctl_verbs.h>
#include <rdma/ib_user_verbs.h>
#include <rdma/mlx5-abi.h>

#include <bit>
#include <cerrno>

#include "kernel/command.h"
#include "kernel/ib.h"
#include "kernel/method.h"
#include "kernel/mr.h"
#include "prm/cq.h"

namespace verbena::kernel {
namespace {

constexpr std::uint32_t kCreateFlags = IB_UVERBS_CQ_FLAGS_TIMESTAMP_COMPLETION | IB_UVERBS_CQ_FLAGS_IGNORE_OVERRUN;
constexpr std::uint32_t kDriverFlags = MLX5_IB_CREATE_CQ_FLAGS_CQE_128B_PAD | MLX5_IB_CREATE_CQ_FLAGS_UAR_PAGE_INDEX |
                                       MLX5_IB_CREATE_CQ_FLAGS_REAL_TIME_TS;
constexpr std::uint32_t kModerate = 1;  // IB_CQ_MODERATE
constexpr std::uint16_t kMaxPeriod = 0xfff;

struct CqParams {
  std::uint64_t user_handle = 0;
  std::uint32_t cqe = 0;
  std::uint32_t comp_vector = 0;
  std::uint32_t flags = 0;
  std::shared_ptr<EventPipe> channel, async;
};

// Entries of the ring for `cqe` asked for: one is never used, and rings are powers of two. 0: too many.
std::uint32_t ring_entries(const Caps& caps, std::uint32_t cqe) {
  const std::uint32_t max = 1u << caps.log_max_cq_sz;
  if (!cqe || cqe > max - 1) return 0;
  return std::bit_ceil(cqe + 1);
}

int read_driver(File& file, const Udata& driver, mlx5_ib_create_cq* out) {
  if (driver.in.size() < offsetof(mlx5_ib_create_cq, flags)) return EINVAL;
  *out = driver.read<mlx5_ib_create_cq>();
  if (out->flags & ~kDriverFlags) return EINVAL;
  if ((out->cqe_size != 64 && out->cqe_size != 128) || out->reserved0 || out->reserved1) return EINVAL;
  if (out->flags & MLX5_IB_CREATE_CQ_FLAGS_CQE_128B_PAD && (out->cqe_size != 128 || !file.node().caps().cqe_128))
    return EOPNOTSUPP;
  if (out->flags & MLX5_IB_CREATE_CQ_FLAGS_REAL_TIME_TS) return EOPNOTSUPP;
  if (!(out->flags & MLX5_IB_CREATE_CQ_FLAGS_UAR_PAGE_INDEX) && file.context().lib_caps & MLX5_LIB_CAP_DYN_UAR)
    return EINVAL;
  return 0;
}

prm::CqeSize entry_size(std::uint32_t bytes, bool padded) {
  if (bytes != 128) return prm::CqeSize::bytes_64;
  return padded ? prm::CqeSize::bytes_128_padded : prm::CqeSize::bytes_128;
}

// The driver compresses if it is told 1, and minds nothing else. 0 or an errno.
int set_compression(const Caps& caps, const mlx5_ib_create_cq& request, const prm::View<prm::Cqc>& cqc) {
  if (request.cqe_comp_en != 1) return 0;
  if (!(request.cqe_size == 128 ? caps.cqe_compression_128 : caps.cqe_compression)) return EOPNOTSUPP;
  auto format = prm::MiniCqeFormat::hash;
  switch (request.cqe_comp_res_format) {
    case MLX5_IB_CQE_RES_FORMAT_HASH:
      break;
    case MLX5_IB_CQE_RES_FORMAT_CSUM:
      format = prm::MiniCqeFormat::checksum;
      break;
    case MLX5_IB_CQE_RES_FORMAT_CSUM_STRIDX:
      if (!caps.mini_cqe_stride_index) return EOPNOTSUPP;
      format = prm::MiniCqeFormat::checksum_stride_index;
      break;
    default:
      return EINVAL;
  }
  cqc.set<prm::Cqc::cqe_comp_en>(1).set<prm::Cqc::mini_cqe_res_format>(format);
  return 0;
}

int create_cq(File& file, const CqParams& params, const Udata& driver, std::uint32_t* handle, std::uint32_t* cqe) {
  if (params.comp_vector >= file.node().completion_vectors()) return EINVAL;
  if (params.flags & ~kCreateFlags) return EOPNOTSUPP;
  auto cq = std::make_unique<Cq>();
  cq->entries = ring_entries(file.node().caps(), params.cqe);
  if (!cq->entries) return EINVAL;
  mlx5_ib_create_cq request;
  if (int error = read_driver(file, driver, &request)) return error;
  cq->cqe_size = request.cqe_size;
  cq->padded = request.flags & MLX5_IB_CREATE_CQ_FLAGS_CQE_128B_PAD;

  const std::uint64_t bytes = std::uint64_t{cq->entries} * request.cqe_size;
  PageRun pages{};
  if (int error = check_memory(request.buf_addr, bytes, true)) return error;
  if (!page_run(request.buf_addr, bytes, &pages) || request.db_addr % 8) return EINVAL;
  if (int error = check_memory(request.db_addr, 8, true)) return error;
  std::uint32_t eqn = 0;
  if (int error = file.node().completion_eqn(params.comp_vector, &eqn)) return error;

  Command<prm::CreateCqIn, prm::CreateCqOut> command(prm::Opcode::create_cq, file.context().uid,
                                                     pages.count * prm::Pas::size);
  auto cqc = command.in().sub<prm::CreateCqIn::cq_context>();
  cqc.set<prm::Cqc::cqe_sz>(entry_size(request.cqe_size, cq->padded));
  if (int error = set_compression(file.node().caps(), request, cqc)) return error;
  cqc.set<prm::Cqc::oi>(params.flags & IB_UVERBS_CQ_FLAGS_IGNORE_OVERRUN ? 1 : 0);
  cqc.set<prm::Cqc::log_cq_size>(static_cast<std::uint32_t>(std::countr_zero(cq->entries)));
  cqc.set<prm::Cqc::page_offset>(pages.offset64);
  cqc.set<prm::Cqc::uar_page>(request.uar_page_index);
  cqc.set<prm::Cqc::c_eqn_or_apu_element>(eqn);
  cqc.set<prm::Cqc::dbr_addr>(request.db_addr);
  fill_pages<prm::CreateCqIn::pas>(command.in(), pages);
  if (int error = command.run(file.device())) return error;

  cq->doorbell = request.db_addr;
  cq->cqn = command.out().get<prm::CreateCqOut::cqn>();
  file.node().events().add(EventSource::cq, cq->cqn, {params.channel, params.async, params.user_handle, 0, 0});
  driver.write(mlx5_ib_create_cq_resp{cq->cqn, 0});
  *cqe = cq->entries - 1;
  *handle = file.objects().add(std::move(cq));
  return 0;
}

// ---- native methods ----

constexpr AttrSpec kCreateAttrs[] = {
    uverbs::object_attr(UVERBS_ATTR_CREATE_CQ_HANDLE, UVERBS_OBJECT_CQ, AttrAccess::create),
    uverbs::in_attr(UVERBS_ATTR_CREATE_CQ_CQE, 4),
    uverbs::in_attr(UVERBS_ATTR_CREATE_CQ_USER_HANDLE, 8),
    uverbs::fd_attr(UVERBS_ATTR_CREATE_CQ_COMP_CHANNEL, UVERBS_OBJECT_COMP_CHANNEL, AttrAccess::read, false),
    uverbs::in_attr(UVERBS_ATTR_CREATE_CQ_COMP_VECTOR, 4),
    uverbs::flags_attr(UVERBS_ATTR_CREATE_CQ_FLAGS),
    uverbs::out_attr(UVERBS_ATTR_CREATE_CQ_RESP_CQE, 4),
    uverbs::fd_attr(UVERBS_ATTR_CREATE_CQ_EVENT_FD, UVERBS_OBJECT_ASYNC_EVENT, AttrAccess::read, false),
};

int native_create(File& file, Request& request) {
  CqParams params;
  params.user_handle = request.value<std::uint64_t>(UVERBS_ATTR_CREATE_CQ_USER_HANDLE);
  params.cqe = request.value<std::uint32_t>(UVERBS_ATTR_CREATE_CQ_CQE);
  params.comp_vector = request.value<std::uint32_t>(UVERBS_ATTR_CREATE_CQ_COMP_VECTOR);
  if (int error = request.flags(UVERBS_ATTR_CREATE_CQ_FLAGS, kCreateFlags, &params.flags)) return error;
  if (request.has(UVERBS_ATTR_CREATE_CQ_COMP_CHANNEL) &&
      !(params.channel = file.channel(request.fd(UVERBS_ATTR_CREATE_CQ_COMP_CHANNEL))))
    return EBADF;
  if (int error = find_async(file, request, UVERBS_ATTR_CREATE_CQ_EVENT_FD, &params.async)) return error;
  std::uint32_t handle = 0, cqe = 0;
  if (int error = create_cq(file, params, request.udata(), &handle, &cqe)) return error;
  request.set_id(UVERBS_ATTR_CREATE_CQ_HANDLE, handle);
  return request.write(UVERBS_ATTR_CREATE_CQ_RESP_CQE, cqe);
}

constexpr AttrSpec kDestroyAttrs[] = {
    uverbs::object_attr(UVERBS_ATTR_DESTROY_CQ_HANDLE, UVERBS_OBJECT_CQ, AttrAccess::destroy),
    uverbs::out_attr(UVERBS_ATTR_DESTROY_CQ_RESP, sizeof(ib_uverbs_destroy_cq_resp)),
};

// Destroys the CQ and says how many of its events the program has read.
int destroy_cq(File& file, std::uint32_t handle, ib_uverbs_destroy_cq_resp* response) {
  int error = 0;
  Cq* cq = file.find<Cq>(handle, UVERBS_OBJECT_CQ, &error);
  if (!cq) return error;
  if (cq->users) return EBUSY;
  if ((error = cq->destroy(file))) return error;
  response->comp_events_reported = cq->reported.completions;
  response->async_events_reported = cq->reported.async;
  file.remove(cq);
  return 0;
}

int native_destroy(File& file, Request& request) {
  ib_uverbs_destroy_cq_resp response{};
  if (int error = destroy_cq(file, request.handle(UVERBS_ATTR_DESTROY_CQ_HANDLE), &response)) return error;
  return request.write(UVERBS_ATTR_DESTROY_CQ_RESP, response);
}

// ---- legacy commands ----

// The channel of a legacy command: a descriptor, negative for none.
int find_channel(File& file, std::int32_t fd, CqParams* params) {
  if (fd >= 0 && !(params->channel = file.channel(fd))) return EBADF;
  params->async = file.default_async();
  return 0;
}

int write_create(File& file, WriteCall& call) {
  const auto cmd = call.read<ib_uverbs_create_cq>();
  CqParams params{cmd.user_handle, cmd.cqe, cmd.comp_vector, 0, nullptr, nullptr};
  if (int error = find_channel(file, cmd.comp_channel, &params)) return error;
  ib_uverbs_create_cq_resp response{};
  if (int error = create_cq(file, params, call.driver, &response.cq_handle, &response.cqe)) return error;
  call.write(&response, sizeof response);
  return 0;
}

int write_create_ex(File& file, WriteCall& call) {
  const auto cmd = call.read<ib_uverbs_ex_create_cq>();
  if (!call.tail_is_zero(sizeof cmd)) return EOPNOTSUPP;
  if (cmd.comp_mask || cmd.reserved) return EINVAL;
  CqParams params{cmd.user_handle, cmd.cqe, cmd.comp_vector, cmd.flags, nullptr, nullptr};
  if (int error = find_channel(file, cmd.comp_channel, &params)) return error;
  ib_uverbs_ex_create_cq_resp response{};
  if (int error = create_cq(file, params, call.driver, &response.base.cq_handle, &response.base.cqe)) return error;
  response.response_length = static_cast<std::uint32_t>(std::min(sizeof response, call.out_length));
  call.write(&response, sizeof response);
  return 0;
}

int write_destroy(File& file, WriteCall& call) {
  ib_uverbs_destroy_cq_resp response{};
  if (int error = destroy_cq(file, call.read<ib_uverbs_destroy_cq>().cq_handle, &response)) return error;
  call.write(&response, sizeof response);
  return 0;
}

// Tells the device where the new ring is; it moves over by itself and says so with a CQE in the old one.
int resize(File& file, Cq& cq, std::uint32_t entries, const Udata& driver) {
  const auto request = driver.read<mlx5_ib_resize_cq>();
  if (request.reserved0 || request.reserved1 || (request.cqe_size != 64 && request.cqe_size != 128)) return EINVAL;
  const std::uint64_t bytes = std::uint64_t{entries} * request.cqe_size;
  PageRun pages{};
  if (int error = check_memory(request.buf_addr, bytes, true)) return error;
  if (!page_run(request.buf_addr, bytes, &pages)) return EINVAL;
  Command<prm::ModifyCqIn, prm::ModifyCqOut> command(prm::Opcode::modify_cq, file.context().uid,
                                                     pages.count * prm::Pas::size);
  auto in = command.in();
  in.set<prm::ModifyCqIn::op_mod>(static_cast<std::uint32_t>(prm::ModifyCqOpMod::resize));
  in.set<prm::ModifyCqIn::cqn>(cq.cqn);
  in.set<prm::ModifyCqIn::modify_field_select_resize_field_select>(
      prm::ResizeCqSelect::log_cq_size | prm::ResizeCqSelect::page_offset | prm::ResizeCqSelect::log_page_size);
  auto cqc = in.sub<prm::ModifyCqIn::cq_context>();
  cqc.set<prm::Cqc::page_offset>(pages.offset64);
  cqc.set<prm::Cqc::log_cq_size>(static_cast<std::uint32_t>(std::countr_zero(entries)));
  cqc.set<prm::Cqc::cqe_sz>(entry_size(request.cqe_size, cq.padded));
  fill_pages<prm::ModifyCqIn::pas>(in, pages);
  if (int error = command.run(file.device())) return error;
  cq.entries = entries;
  file.objects().changed(cq);
  cq.cqe_size = request.cqe_size;
  return 0;
}

int write_resize(File& file, WriteCall& call) {
  const auto cmd = call.read<ib_uverbs_resize_cq>();
  int error = 0;
  Cq* cq = file.find<Cq>(cmd.cq_handle, UVERBS_OBJECT_CQ, &error);
  if (!cq) return EINVAL;
  if (!file.node().caps().cq_resize) return EOPNOTSUPP;
  const std::uint32_t entries = ring_entries(file.node().caps(), cmd.cqe);
  if (!entries) return EINVAL;
  if (entries != cq->entries && (error = resize(file, *cq, entries, call.driver))) return error;
  ib_uverbs_resize_cq_resp response{};
  response.cqe = cq->entries - 1;
  call.write(&response, sizeof response);
  return 0;
}

int write_modify(File& file, WriteCall& call) {
  const auto cmd = call.read<ib_uverbs_ex_modify_cq>();
  if (!call.tail_is_zero(sizeof cmd)) return EOPNOTSUPP;
  if (!cmd.attr_mask || cmd.reserved) return EINVAL;
  if (cmd.attr_mask & ~kModerate) return EOPNOTSUPP;
  int error = 0;
  Cq* cq = file.find<Cq>(cmd.cq_handle, UVERBS_OBJECT_CQ, &error);
  if (!cq) return EINVAL;
  if (!file.node().caps().cq_moderation) return EOPNOTSUPP;
  if (cmd.attr.cq_period > kMaxPeriod) return EINVAL;
  Command<prm::ModifyCqIn, prm::ModifyCqOut> command(prm::Opcode::modify_cq, file.context().uid);
  auto in = command.in();
  in.set<prm::ModifyCqIn::cqn>(cq->cqn);
  in.set<prm::ModifyCqIn::modify_field_select_resize_field_select>(prm::ModifyCqSelect::period |
                                                                   prm::ModifyCqSelect::max_count);
  auto cqc = in.sub<prm::ModifyCqIn::cq_context>();
  cqc.set<prm::Cqc::cq_period>(cmd.attr.cq_period);
  cqc.set<prm::Cqc::cq_max_count>(cmd.attr.cq_count);
  return command.run(file.device());
}

constexpr Method kMethods[] = {
    {{UVERBS_OBJECT_CQ, UVERBS_METHOD_CQ_CREATE, kCreateAttrs, true}, native_create},
    {{UVERBS_OBJECT_CQ, UVERBS_METHOD_CQ_DESTROY, kDestroyAttrs}, native_destroy},
};
constexpr WriteCommand kCommands[] = {
    {IB_USER_VERBS_CMD_CREATE_CQ, sizeof(ib_uverbs_create_cq), sizeof(ib_uverbs_create_cq_resp), write_create},
    {IB_USER_VERBS_CMD_FLAG_EXTENDED | IB_USER_VERBS_EX_CMD_CREATE_CQ, sizeof(ib_uverbs_ex_create_cq),
     sizeof(ib_uverbs_ex_create_cq_resp), write_create_ex},
    {IB_USER_VERBS_CMD_DESTROY_CQ, sizeof(ib_uverbs_destroy_cq), sizeof(ib_uverbs_destroy_cq_resp), write_destroy},
    {IB_USER_VERBS_CMD_RESIZE_CQ, sizeof(ib_uverbs_resize_cq), offsetof(ib_uverbs_resize_cq_resp, reserved),
     write_resize},
    {IB_USER_VERBS_CMD_FLAG_EXTENDED | IB_USER_VERBS_EX_CMD_MODIFY_CQ, sizeof(ib_uverbs_ex_modify_cq), 0,
     write_modify},
};

}  // namespace

int Cq::destroy(File& file) {
  Command<prm::DestroyCqIn, prm::DestroyCqOut> command(prm::Opcode::destroy_cq, file.context().uid);
  command.in().set<prm::DestroyCqIn::cqn>(cqn);
  if (int error = command.run(file.device())) return error;
  file.node().drain_events();
  reported = file.node().events().remove(EventSource::cq, cqn);
  return 0;
}

std::span<const Method> cq_methods() { return kMethods; }
std::span<const WriteCommand> cq_commands() { return kCommands; }

}  // namespace verbena::kernel
