// How the cmd/*.cc files issue requests: the native ioctl method first, the legacy command where the kernel does
// not know the method. What a context has learnt about its kernel is remembered per method.
//
// Threads: any.
#pragma once

#include <type_traits>

#include "verbs/driver.h"
#include "verbs/internal.h"

namespace verbena::verbs {

// Native methods that have a legacy form, one bit each in Context::unsupported.
enum class Native : unsigned {
  get_context,
  query_port,
  query_gid,
  destroy_pd,
  destroy_mr,
  destroy_mw,
  create_cq,
  destroy_cq,
  create_qp,
  destroy_qp,
  create_srq,
  destroy_srq,
  create_wq,
  destroy_wq,
  destroy_rwq_ind_table,
  destroy_ah,
  destroy_flow,
  destroy_xrcd,
};

enum class Outcome {
  done,    // the native method succeeded
  legacy,  // the kernel does not know it: issue the legacy command
  failed,  // it refused; *error says why
};

// Tries the native method unless this kernel is known not to have it.
Outcome try_native(Context& context, Native method, uverbs::Bundle& bundle, int* error);

// Adds a provider's private bytes to a native request.
inline void add_udata(uverbs::Bundle& bundle, const Udata* udata) {
  if (!udata) return;
  if (udata->in_length) bundle.in(UVERBS_ATTR_UHW_IN, udata->in, udata->in_length);
  if (udata->out_length) bundle.out(UVERBS_ATTR_UHW_OUT, udata->out, udata->out_length);
}

// A native method without legacy form, with attributes of the provider behind the core's.
int execute_with(Context& context, uverbs::Bundle& core, uverbs::Bundle* driver);

// Legacy command with a response. Structures of rdma/ib_user_verbs.h; `response` is filled as write(2) wants it.
template <class Request, class Response>
requires(!std::is_pointer_v<Response>)  // a lone Udata* is no response
int legacy(Context& context, std::uint32_t command, Request& request, Response& response,
           const Udata* udata = nullptr) {
  if constexpr (requires { request.response; }) request.response = reinterpret_cast<std::uintptr_t>(&response);
  return verbena_write(&context, command, &request, sizeof request, &response, sizeof response, udata);
}
template <class Request>
int legacy(Context& context, std::uint32_t command, const Request& request, const Udata* udata = nullptr) {
  return verbena_write(&context, command, &request, sizeof request, nullptr, 0, udata);
}

inline constexpr std::uint32_t extended(std::uint32_t command) { return IB_USER_VERBS_CMD_FLAG_EXTENDED | command; }

// Destroying on a kernel whose device has gone gives EIO; RDMAV_ALLOW_DISASSOC_DESTROY asks for success instead.
bool treat_as_destroyed(int error);

// Waits on an object's condition variable until `done`; used by destroy, as the man pages ask for.
template <class Done>
void wait_for_acks(pthread_mutex_t& mutex, pthread_cond_t& cond, Done done) {
  pthread_mutex_lock(&mutex);
  while (!done()) pthread_cond_wait(&cond, &mutex);
  pthread_mutex_unlock(&mutex);
}

// A destroy method with nothing but a handle in and a legacy twin.
template <class Request>
int destroy_by_handle(Context& context, Native native, std::uint16_t object, std::uint16_t method, std::uint16_t attr,
                      std::uint32_t handle, std::uint32_t command, const Request& request) {
  uverbs::Bundle bundle(object, method);
  bundle.in_object(attr, handle);
  int error = 0;
  if (try_native(context, native, bundle, &error) == Outcome::legacy) error = legacy(context, command, request);
  return treat_as_destroyed(error) ? 0 : report(error);
}

}  // namespace verbena::verbs
