// Tables of what a File answers: native ioctl methods and the legacy commands inside INVOKE_WRITE.
// Each object family brings its rows; dispatch.cc finds them.
// Threads: handlers run under the File's lock.
#pragma once

#include <cerrno>
#include <cstring>
#include <span>
#include <type_traits>
#include <vector>

#include "kernel/file.h"
#include "uverbs/request.h"

namespace verbena::kernel {

using uverbs::AttrAccess;
using uverbs::AttrSpec;
using uverbs::MethodSpec;
using uverbs::Request;
using uverbs::Udata;
using uverbs::UserMemory;

// A native method. Handlers return 0 or an errno.
struct Method {
  MethodSpec spec;
  int (*handler)(File& file, Request& request);
  bool needs_context = true;
};

// A legacy command: its core part and its driver part.
struct WriteCall {
  std::span<const std::byte> in;
  std::byte* out = nullptr;
  std::size_t out_length = 0;
  Udata driver;

  template <class T>
  requires std::is_trivially_copyable_v<T> T read() const {
    T value{};
    std::memcpy(&value, in.data(), in.size() < sizeof value ? in.size() : sizeof value);
    return value;
  }
  // Extended commands: what lies behind the known structure must be zero.
  bool tail_is_zero(std::size_t known) const { return Udata{in}.tail_is_zero(known); }
  void write(const void* data, std::size_t length) const {
    if (out && out_length) std::memcpy(out, data, length < out_length ? length : out_length);
  }
};

struct WriteCommand {
  std::uint32_t command;  // IB_USER_VERBS_CMD_*, with IB_USER_VERBS_CMD_FLAG_EXTENDED
  std::size_t in_size;    // shortest core parts
  std::size_t out_size;
  int (*handler)(File& file, WriteCall& call);
  bool needs_context = true;
};

// Rows of each family.
std::span<const Method> context_methods();
std::span<const Method> port_methods();
std::span<const Method> pd_methods();
std::span<const Method> mr_methods();
std::span<const Method> mw_methods();
std::span<const Method> cq_methods();
std::span<const Method> qp_methods();
std::span<const Method> srq_methods();
std::span<const Method> ah_methods();
std::span<const Method> wq_methods();
std::span<const Method> flow_methods();
std::span<const Method> counters_methods();
std::span<const Method> flow_matcher_methods();
std::span<const Method> uar_methods();
std::span<const Method> dm_methods();
std::span<const Method> var_methods();
std::span<const Method> pp_methods();
std::span<const Method> xrcd_methods();
std::span<const Method> devx_general_methods();
std::span<const Method> devx_object_methods();
std::span<const Method> devx_umem_methods();
std::span<const Method> devx_event_methods();
std::span<const WriteCommand> context_commands();
std::span<const WriteCommand> port_commands();
std::span<const WriteCommand> pd_commands();
std::span<const WriteCommand> mr_commands();
std::span<const WriteCommand> mw_commands();
std::span<const WriteCommand> cq_commands();
std::span<const WriteCommand> qp_commands();
std::span<const WriteCommand> srq_commands();
std::span<const WriteCommand> ah_commands();
std::span<const WriteCommand> wq_commands();
std::span<const WriteCommand> flow_commands();
std::span<const WriteCommand> xrcd_commands();

// All of them, for tests that try every one.
std::vector<std::span<const Method>> method_tables();
std::vector<std::span<const WriteCommand>> command_tables();

// Finds a row; null if there is none.
const Method* find_method(std::uint16_t object, std::uint16_t method);
const WriteCommand* find_command(std::uint32_t command);

// Answers one request under the File's lock. 0 or an errno.
int dispatch(File& file, ib_uverbs_ioctl_hdr* header);

// The descriptor of asynchronous events that an object names in attribute `id`, or the context's. 0 or EBADF.
inline int find_async(File& file, const Request& request, std::uint16_t id, std::shared_ptr<EventPipe>* async) {
  *async = request.has(id) ? file.async(request.fd(id)) : file.default_async();
  return request.has(id) && !*async ? EBADF : 0;
}

// A native destroy method that has nothing but a handle.
template <std::uint16_t Class, std::uint16_t Attr>
int destroy_method(File& file, Request& request) {
  int error = 0;
  Object* object = file.find<Object>(request.handle(Attr), Class, &error);
  return object ? file.destroy(object) : error;
}

}  // namespace verbena::kernel
