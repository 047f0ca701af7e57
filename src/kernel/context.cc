#include "kernel/context.h"

#include <fcntl.h>
#include <rdma/ib_user_verbs.h>
#include <rdma/mlx5-abi.h>
#include <rdma/mlx5_user_ioctl_cmds.h>
#include <time.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include "kernel/command.h"
#include "kernel/ib.h"
#include "kernel/method.h"
#include "prm/misc.h"
#include "uverbs/newer.h"

namespace verbena::kernel {
namespace {

constexpr unsigned kMaxBfregs = 512;
constexpr unsigned kDynamicBfregs = 1024;  // 512 pages of two registers, made one by one
constexpr std::uint64_t kClockInfoOffset = std::uint64_t{MLX5_IB_MMAP_CLOCK_INFO} << 8 << 12;

// The driver's part of the request: two old forms and the current one differ in length.
int read_request(const Udata& driver, mlx5_ib_alloc_ucontext_req_v2* request) {
  if (driver.in.size() != sizeof(mlx5_ib_alloc_ucontext_req) &&
      driver.in.size() < offsetof(mlx5_ib_alloc_ucontext_req_v2, max_cqe_version))
    return EINVAL;
  *request = driver.read<mlx5_ib_alloc_ucontext_req_v2>();
  if (request->flags & ~std::uint32_t{MLX5_IB_ALLOC_UCTX_DEVX}) return EINVAL;
  if (request->comp_mask || request->reserved0 || request->reserved1 || request->reserved2) return EOPNOTSUPP;
  if (!request->total_num_bfregs) return EINVAL;
  if (request->total_num_bfregs > kMaxBfregs) return ENOMEM;
  const std::uint32_t total = (request->total_num_bfregs + 3) & ~3u;
  if (request->num_low_latency_bfregs > total - 1) return EINVAL;
  return 0;
}

mlx5_ib_alloc_ucontext_resp context_response(File& file) {
  const Caps& caps = file.node().caps();
  mlx5_ib_alloc_ucontext_resp response{};
  response.qp_tab_size = 1u << caps.log_max_qp;
  response.bf_reg_size = 1u << caps.log_bf_reg_size;
  response.tot_bfregs = 0;
  response.cache_line_size = 64;
  response.max_sq_desc_sz = static_cast<std::uint16_t>(caps.max_wqe_sz_sq);
  response.max_rq_desc_sz = static_cast<std::uint16_t>(caps.max_wqe_sz_rq);
  response.max_send_wqebb = 1u << caps.log_max_qp_sz;
  response.max_recv_wr = 1u << caps.log_max_qp_sz;
  response.max_srq_recv_wr = 1u << caps.log_max_srq_sz;
  response.num_ports = 1;
  response.response_length = sizeof response;
  response.cqe_version = file.context().cqe_version;
  response.cmds_supp_uhw = MLX5_USER_CMDS_SUPP_UHW_QUERY_DEVICE | MLX5_USER_CMDS_SUPP_UHW_CREATE_AH;
  response.eth_min_inline = MLX5_USER_INLINE_MODE_NONE;
  response.comp_mask = MLX5_IB_ALLOC_UCONTEXT_RESP_MASK_CORE_CLOCK_OFFSET;
  response.hca_core_clock_offset = 0;
  response.clock_info_versions = 1u << MLX5_IB_CLOCK_INFO_V1;
  response.log_uar_size = 12;
  response.num_uars_per_page = 1;
  response.num_dyn_bfregs = kDynamicBfregs;
  return response;
}

int get_context(File& file, const Udata& driver, bool needs_descriptor, int* async_fd) {
  UserContext& context = file.context();
  if (context.ready) return EINVAL;
  mlx5_ib_alloc_ucontext_req_v2 request;
  if (int error = read_request(driver, &request)) return error;
  if (request.flags & MLX5_IB_ALLOC_UCTX_DEVX)
    if (int error = create_uctx(file, &context.uid)) return error;
  // Registers mapped in advance are what libraries before dynamic UARs used. (After DEVX: a library that got none tries
  // again as an older one, and shall hear why it got none.)
  int error = request.lib_caps & MLX5_LIB_CAP_DYN_UAR ? 0 : EOPNOTSUPP;
  if (!error) error = file.node().start_async_events();
  if (!error) error = publish_clock(file);
  if (!error && needs_descriptor && (*async_fd = file.make_async()) < 0) error = errno;
  if (error) {
    if (context.uid) destroy_uctx(file);
    return error;
  }
  context.cqe_version = static_cast<std::uint8_t>(
      std::min<unsigned>(file.node().caps().cqe_version, request.max_cqe_version));
  context.lib_caps = request.lib_caps;
  context.ready = true;
  file.start_tracking();
  mlx5_ib_alloc_ucontext_resp response = context_response(file);
  response.response_length = static_cast<std::uint32_t>(std::min(sizeof response, driver.out_length));
  driver.write(response);
  return 0;
}

// ---- requests ----

constexpr std::uint64_t kCoreSupport = 1;  // IB_UVERBS_CORE_SUPPORT_OPTIONAL_MR_ACCESS

constexpr AttrSpec kGetContextAttrs[] = {
    uverbs::out_attr(UVERBS_ATTR_GET_CONTEXT_NUM_COMP_VECTORS, 4, false),
    uverbs::out_attr(UVERBS_ATTR_GET_CONTEXT_CORE_SUPPORT, 8, false),
    {uverbs::newer::kGetContextFdArr, uverbs::AttrKind::ptr_in, false, sizeof(int), 0xffff, false, 0, AttrAccess::read},
};

// Rights come from descriptors of nodes that stand for them; this device has no such nodes, so every other file is a
// wrong one.
int check_rights(std::span<const std::byte> fds) {
  if (fds.size() % sizeof(int)) return EINVAL;
  int fd;
  std::memcpy(&fd, fds.data(), sizeof fd);
  return fcntl(fd, F_GETFD) < 0 ? EBADF : EINVAL;
}

int native_get_context(File& file, Request& request) {
  if (file.context().ready) return EINVAL;
  if (request.has(uverbs::newer::kGetContextFdArr))
    if (int error = check_rights(request.in(uverbs::newer::kGetContextFdArr))) return error;
  int none = -1;
  if (int error = get_context(file, request.udata(), false, &none)) return error;
  request.write(UVERBS_ATTR_GET_CONTEXT_NUM_COMP_VECTORS, std::uint32_t{file.node().completion_vectors()});
  request.write(UVERBS_ATTR_GET_CONTEXT_CORE_SUPPORT, kCoreSupport);
  return 0;
}

constexpr AttrSpec kQueryContextAttrs[] = {
    uverbs::out_attr(UVERBS_ATTR_QUERY_CONTEXT_NUM_COMP_VECTORS, 4, false),
    uverbs::out_attr(UVERBS_ATTR_QUERY_CONTEXT_CORE_SUPPORT, 8, false),
    uverbs::any_out_attr(MLX5_IB_ATTR_QUERY_CONTEXT_RESP_UCTX, false),
};

int native_query_context(File& file, Request& request) {
  request.write(UVERBS_ATTR_QUERY_CONTEXT_NUM_COMP_VECTORS, std::uint32_t{file.node().completion_vectors()});
  request.write(UVERBS_ATTR_QUERY_CONTEXT_CORE_SUPPORT, kCoreSupport);
  const mlx5_ib_alloc_ucontext_resp response = context_response(file);
  request.write_or_zero(MLX5_IB_ATTR_QUERY_CONTEXT_RESP_UCTX, &response, sizeof response);
  return 0;
}

constexpr AttrSpec kInfoHandlesAttrs[] = {
    uverbs::const_attr(UVERBS_ATTR_INFO_OBJECT_ID),
    uverbs::out_attr(UVERBS_ATTR_INFO_TOTAL_HANDLES, 4, false),
    uverbs::out_attr(UVERBS_ATTR_INFO_HANDLES_LIST, 4, true, false),
};

int native_info_handles(File& file, Request& request) {
  const auto object = request.value<std::uint64_t>(UVERBS_ATTR_INFO_OBJECT_ID);
  if (object > UINT16_MAX) return EINVAL;
  std::vector<std::uint32_t> handles = file.objects().of_class(static_cast<std::uint16_t>(object));
  const std::size_t room = request.out_length(UVERBS_ATTR_INFO_HANDLES_LIST) / sizeof(std::uint32_t);
  if (handles.size() > room) handles.resize(room);
  const auto total = static_cast<std::uint32_t>(handles.size());
  request.write(UVERBS_ATTR_INFO_HANDLES_LIST, handles.data(), handles.size() * sizeof(std::uint32_t));
  request.write(UVERBS_ATTR_INFO_TOTAL_HANDLES, total);
  return 0;
}

constexpr AttrSpec kAsyncEventAttrs[] = {
    uverbs::fd_attr(UVERBS_ATTR_ASYNC_EVENT_ALLOC_FD_HANDLE, UVERBS_OBJECT_ASYNC_EVENT, AttrAccess::create),
};

int native_async_event(File& file, Request& request) {
  int fd = file.make_async();
  if (fd < 0) return errno;
  request.set_id(UVERBS_ATTR_ASYNC_EVENT_ALLOC_FD_HANDLE, fd);
  return 0;
}

int write_get_context(File& file, WriteCall& call) {
  int async_fd = -1;
  if (int error = get_context(file, call.driver, true, &async_fd)) return error;
  ib_uverbs_get_context_resp response{};
  response.async_fd = static_cast<std::uint32_t>(async_fd);
  response.num_comp_vectors = file.node().completion_vectors();
  call.write(&response, sizeof response);
  return 0;
}

int write_create_channel(File& file, WriteCall& call) {
  ib_uverbs_create_comp_channel_resp response{};
  int fd = file.make_channel();
  if (fd < 0) return errno;
  response.fd = static_cast<std::uint32_t>(fd);
  call.write(&response, sizeof response);
  return 0;
}

constexpr Method kMethods[] = {
    {{UVERBS_OBJECT_DEVICE, UVERBS_METHOD_GET_CONTEXT, kGetContextAttrs, true}, native_get_context, false},
    {{UVERBS_OBJECT_DEVICE, UVERBS_METHOD_QUERY_CONTEXT, kQueryContextAttrs, true}, native_query_context},
    {{UVERBS_OBJECT_DEVICE, UVERBS_METHOD_INFO_HANDLES, kInfoHandlesAttrs}, native_info_handles},
    {{UVERBS_OBJECT_ASYNC_EVENT, UVERBS_METHOD_ASYNC_EVENT_ALLOC, kAsyncEventAttrs}, native_async_event},
};
constexpr WriteCommand kCommands[] = {
    {IB_USER_VERBS_CMD_GET_CONTEXT, sizeof(ib_uverbs_get_context), sizeof(ib_uverbs_get_context_resp),
     write_get_context, false},
    {IB_USER_VERBS_CMD_CREATE_COMP_CHANNEL, sizeof(ib_uverbs_create_comp_channel),
     sizeof(ib_uverbs_create_comp_channel_resp), write_create_channel},
};

}  // namespace

std::span<const Method> context_methods() { return kMethods; }
std::span<const WriteCommand> context_commands() { return kCommands; }

int transport_domain(File& file, std::uint32_t* domain) {
  auto& known = file.context().transport_domain;
  if (!known) {
    Command<prm::AllocTransportDomainIn, prm::AllocTransportDomainOut> command(prm::Opcode::alloc_transport_domain,
                                                                              file.context().uid);
    if (int error = command.run(file.device())) return error;
    known = command.out().get<prm::AllocTransportDomainOut::transport_domain>();
  }
  *domain = *known;
  return 0;
}

void give_back_transport_domain(File& file) {
  const auto domain = std::exchange(file.context().transport_domain, std::nullopt);
  if (!domain) return;
  using In = prm::DeallocTransportDomainIn;
  Command<In, prm::CommandOut> command(prm::Opcode::dealloc_transport_domain, file.context().uid);
  command.in().set<In::transport_domain>(*domain);
  command.run(file.device());
}

int create_uctx(File& file, std::uint16_t* uid) {
  Command<prm::CreateUctxIn, prm::CreateUctxOut> create(prm::Opcode::create_uctx);
  if (!file.node().caps().devx) return EINVAL;
  if (int error = create.run(file.device())) return error;
  *uid = static_cast<std::uint16_t>(create.out().get<prm::CreateUctxOut::uid>());
  return 0;
}

void destroy_uctx(File& file) {
  Command<prm::DestroyUctxIn, prm::DestroyUctxOut> destroy(prm::Opcode::destroy_uctx);
  destroy.in().set<prm::DestroyUctxIn::uid>(file.context().uid);
  destroy.run(file.device());
  file.context().uid = 0;
}

int publish_clock(File& file) {
  // The device counts from CLOCK_MONOTONIC at `frequency_khz`: one cycle is 10^6/kHz nanoseconds.
  auto nanoseconds = [](clockid_t clock) {
    timespec now{};
    clock_gettime(clock, &now);
    return static_cast<std::uint64_t>(now.tv_sec) * 1000000000u + static_cast<std::uint64_t>(now.tv_nsec);
  };
  const std::uint64_t khz = std::max(1u, file.node().caps().frequency_khz);
  mlx5_ib_clock_info info{};
  // The product of cycles and mult must fit 64 bits for as long as the page stands: no shift where none is needed.
  info.shift = 1000000 % khz ? 8 : 0;
  info.mult = static_cast<std::uint32_t>((std::uint64_t{1000000} << info.shift) / khz);
  info.mask = ~std::uint64_t{0};
  info.nsec = nanoseconds(CLOCK_REALTIME);
  info.cycles = static_cast<std::uint64_t>(static_cast<unsigned __int128>(nanoseconds(CLOCK_MONOTONIC)) * khz / 1000000u);
  info.overflow_period = (~std::uint64_t{0} >> 1) / info.mult;
  if (int error = file.fill_page(kClockInfoOffset, &info, sizeof info)) return error;
  file.add_mapping(kClockInfoOffset, false);
  file.add_clock();
  return 0;
}

}  // namespace verbena::kernel
