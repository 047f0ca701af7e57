#include "verbs/cmd/request.h"

#include <cstdlib>

namespace verbena::verbs {
namespace {

// Both sides of the unsupported bitmap; racing threads only repeat a probe.
bool known_unsupported(const Context& context, Native method) {
  auto bit = static_cast<unsigned>(method);
  return context.unsupported[bit / 64].load(std::memory_order_relaxed) >> (bit % 64) & 1;
}
void note_unsupported(Context& context, Native method) {
  auto bit = static_cast<unsigned>(method);
  context.unsupported[bit / 64].fetch_or(std::uint64_t{1} << (bit % 64), std::memory_order_relaxed);
}

}  // namespace

Outcome try_native(Context& context, Native method, uverbs::Bundle& bundle, int* error) {
  if (known_unsupported(context, method)) return Outcome::legacy;
  *error = verbena_execute(&context, &bundle);
  if (*error == 0) return Outcome::done;
  // ENOTTY: no ioctl interface at all. EPROTONOSUPPORT: this method or a mandatory attribute is unknown.
  if (*error == EPROTONOSUPPORT || *error == ENOTTY) {
    note_unsupported(context, method);
    return Outcome::legacy;
  }
  return Outcome::failed;
}

int execute_with(Context& context, uverbs::Bundle& core, uverbs::Bundle* driver) {
  if (!driver) return verbena_execute(&context, &core);
  auto first = core.append(*driver);
  int error = verbena_execute(&context, &core);
  core.read_back(first, *driver);
  return error;
}

bool treat_as_destroyed(int error) {
  static const bool allowed = std::getenv("RDMAV_ALLOW_DISASSOC_DESTROY") != nullptr;
  return error == EIO && allowed;
}

}  // namespace verbena::verbs

using verbena::verbs::report;

int verbena_execute(verbena_context* context, verbena_bundle* bundle) {
  ib_uverbs_ioctl_hdr* request = bundle->finish(context->driver_id);
  if (!request) return report(EINVAL);
  return context->backend->ioctl(context->verbs.context.cmd_fd, request) ? errno : 0;
}

int verbena_write(verbena_context* context, std::uint32_t command, const void* in, std::size_t in_length, void* out,
                  std::size_t out_length, const verbena_udata* udata) {
  verbena_bundle bundle(UVERBS_OBJECT_DEVICE, UVERBS_METHOD_INVOKE_WRITE);
  bundle.in_const(UVERBS_ATTR_WRITE_CMD, command);
  if (in_length) bundle.in(UVERBS_ATTR_CORE_IN, in, in_length);
  if (out_length) bundle.out(UVERBS_ATTR_CORE_OUT, out, out_length);
  verbena::verbs::add_udata(bundle, udata);
  return verbena_execute(context, &bundle);
}
