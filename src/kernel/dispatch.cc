#include <rdma/ib_user_verbs.h>
#include <rdma/mlx5_user_ioctl_cmds.h>

#include <array>
#include <cerrno>
#include <new>

#include "device/memory/guard.h"
#include "kernel/dmah.h"
#include "kernel/ib.h"
#include "kernel/method.h"

namespace verbena::kernel {
namespace {

// Every native method by object and method number. Families are few and their tables short.
std::array<std::span<const Method>, 23> all_methods() {
  return {context_methods(), port_methods(),         pd_methods(),          mr_methods(),       mw_methods(),
          cq_methods(),      qp_methods(),           srq_methods(),         ah_methods(),       uar_methods(),
          devx_general_methods(), devx_object_methods(), devx_umem_methods(), devx_event_methods(),
          dm_methods(), var_methods(), pp_methods(), wq_methods(), flow_methods(), counters_methods(), flow_matcher_methods(),
          xrcd_methods(), dmah_methods()};
}

std::array<std::span<const WriteCommand>, 12> all_commands() {
  return {context_commands(), port_commands(), pd_commands(), mr_commands(), mw_commands(),
          cq_commands(),      qp_commands(),   srq_commands(), ah_commands(), wq_commands(), flow_commands(), xrcd_commands()};
}

// The program's memory as it is now: a wrong pointer is an answer, not a signal.
constexpr UserMemory kProgramMemory{
    [](void* to, const void* from, std::size_t n) { return device::guarded_read(to, from, n) == 0; },
    [](void* to, const void* from, std::size_t n) { return device::guarded_copy(to, from, n) == 0; }};

constexpr AttrSpec kInvokeWriteAttrs[] = {
    uverbs::any_in_attr(UVERBS_ATTR_CORE_IN, true),
    uverbs::any_out_attr(UVERBS_ATTR_CORE_OUT, false),
    uverbs::const_attr(UVERBS_ATTR_WRITE_CMD),
};
constexpr MethodSpec kInvokeWrite{UVERBS_OBJECT_DEVICE, UVERBS_METHOD_INVOKE_WRITE, kInvokeWriteAttrs, true};

int invoke_write(File& file, Request& request) {
  const auto command = request.value<std::uint64_t>(UVERBS_ATTR_WRITE_CMD);
  constexpr std::uint64_t known = IB_USER_VERBS_CMD_FLAG_EXTENDED | IB_USER_VERBS_CMD_COMMAND_MASK;
  if (command & ~known) return EINVAL;
  const WriteCommand* row = find_command(static_cast<std::uint32_t>(command));
  if (!row) return EOPNOTSUPP;

  WriteCall call;
  call.in = request.in(UVERBS_ATTR_CORE_IN);
  call.out_length = request.out_length(UVERBS_ATTR_CORE_OUT);
  if (call.in.size() < row->in_size || call.out_length < row->out_size) return ENOSPC;
  std::vector<std::byte> out(call.out_length);
  call.out = out.data();
  call.driver = request.udata();
  if (row->needs_context && !file.context().ready) return EINVAL;
  if (int error = row->handler(file, call)) return error;
  return out.empty() ? 0 : request.write(UVERBS_ATTR_CORE_OUT, out.data(), out.size());
}

// Objects that the driver has only over a device that can make them: without it their methods are not there at all.
bool has_object(const Caps& caps, std::uint16_t object) {
  switch (object) {
    case MLX5_IB_OBJECT_DEVX:
    case MLX5_IB_OBJECT_DEVX_OBJ:
    case MLX5_IB_OBJECT_DEVX_UMEM:
    case MLX5_IB_OBJECT_DEVX_ASYNC_CMD_FD:
    case MLX5_IB_OBJECT_DEVX_ASYNC_EVENT_FD:
      return caps.devx;
    case MLX5_IB_OBJECT_PP:
      return caps.rate_entries && caps.rates_of_users;
    case MLX5_IB_OBJECT_VAR:
      return caps.virtio_pages;
    default:
      return true;
  }
}

}  // namespace

std::vector<std::span<const Method>> method_tables() {
  const auto tables = all_methods();
  return {tables.begin(), tables.end()};
}
std::vector<std::span<const WriteCommand>> command_tables() {
  const auto tables = all_commands();
  return {tables.begin(), tables.end()};
}

const Method* find_method(std::uint16_t object, std::uint16_t method) {
  static const auto tables = all_methods();
  for (const auto& table : tables)
    for (const Method& row : table)
      if (row.spec.object == object && row.spec.method == method) return &row;
  return nullptr;
}

const WriteCommand* find_command(std::uint32_t command) {
  static const auto tables = all_commands();
  for (const auto& table : tables)
    for (const WriteCommand& row : table)
      if (row.command == command) return &row;
  return nullptr;
}

namespace {

int serve(File& file, ib_uverbs_ioctl_hdr* program) {
  file.objects().make_room();
  Request request(kProgramMemory);
  if (int error = request.fetch(program, kDriverId)) return error;
  const ib_uverbs_ioctl_hdr& header = *request.header();
  int error = 0;
  if (header.object_id == UVERBS_OBJECT_DEVICE && header.method_id == UVERBS_METHOD_INVOKE_WRITE) {
    error = request.parse(kInvokeWrite);
    if (!error) error = invoke_write(file, request);
  } else {
    const Method* row = find_method(header.object_id, header.method_id);
    if (!row || !has_object(file.node().caps(), header.object_id)) return EPROTONOSUPPORT;
    if ((error = request.parse(row->spec))) return error;
    if (row->needs_context && !file.context().ready) return EINVAL;
    error = row->handler(file, request);
    // EPROTONOSUPPORT means "no such request" to the library, which would then try another form of it.
    if (error == EPROTONOSUPPORT) error = EINVAL;
  }
  return error ? error : request.finish();
}

}  // namespace

int dispatch(File& file, ib_uverbs_ioctl_hdr* program) {
  try {
    return serve(file, program);
  } catch (const std::bad_alloc&) {
    return ENOMEM;
  }
}

}  // namespace verbena::kernel
