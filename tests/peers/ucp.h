// A few lines on top of UCP, so that the program beside this reads like what it tests. Every failure ends the process
// with a line that says where.
//
// Threads: a Worker belongs to whoever made it, or to many if it was made `shared`.
#pragma once

#include <stdio.h>
#include <stdlib.h>
#include <ucp/api/ucp.h>

#include <functional>
#include <string>
#include <vector>

namespace peers {

[[noreturn]] inline void give_up(const char* what, const char* why, int line) {
  fprintf(stderr, "line %d: %s: %s\n", line, what, why);
  _Exit(1);
}

#define REQUIRE(condition) \
  if (!(condition)) peers::give_up(#condition, "is not so", __LINE__)
#define CHECK(call)                                                                                 \
  if (const ucs_status_t status_of_call = (call); status_of_call != UCS_OK)                         \
  peers::give_up(#call, ucs_status_string(status_of_call), __LINE__)

class Worker {
 public:
  Worker(ucp_context_h context, bool shared) {
    ucp_worker_params_t params{};
    params.field_mask = UCP_WORKER_PARAM_FIELD_THREAD_MODE;
    params.thread_mode = shared ? UCS_THREAD_MODE_MULTI : UCS_THREAD_MODE_SINGLE;
    CHECK(ucp_worker_create(context, &params, &worker_));
    ucp_worker_attr_t attr{};
    attr.field_mask = UCP_WORKER_ATTR_FIELD_THREAD_MODE;
    CHECK(ucp_worker_query(worker_, &attr));
    REQUIRE(!shared || attr.thread_mode == UCS_THREAD_MODE_MULTI);
  }
  ~Worker() { ucp_worker_destroy(worker_); }
  Worker(const Worker&) = delete;
  Worker& operator=(const Worker&) = delete;

  std::string address() const {
    ucp_address_t* address;
    size_t length;
    CHECK(ucp_worker_get_address(worker_, &address, &length));
    std::string bytes(reinterpret_cast<char*>(address), length);
    ucp_worker_release_address(worker_, address);
    return bytes;
  }
  void connect(const std::string& peer) {
    ucp_ep_params_t params{};
    params.field_mask = UCP_EP_PARAM_FIELD_REMOTE_ADDRESS;
    params.address = reinterpret_cast<const ucp_address_t*>(peer.data());
    CHECK(ucp_ep_create(worker_, &params, &endpoint_));
  }
  // The peer's worker must be there until this is done.
  void disconnect() {
    ucp_request_param_t param{};
    finish(ucp_ep_close_nbx(endpoint_, &param));
  }

  // Waits for what a non-blocking call returned.
  void finish(void* request) {
    if (request == nullptr) return;
    REQUIRE(!UCS_PTR_IS_ERR(request));
    while (ucp_request_check_status(request) == UCS_INPROGRESS) ucp_worker_progress(worker_);
    CHECK(ucp_request_check_status(request));
    ucp_request_free(request);
  }
  void flush() {
    ucp_request_param_t param{};
    finish(ucp_ep_flush_nbx(endpoint_, &param));
  }
  void progress() { ucp_worker_progress(worker_); }

  ucp_worker_h handle() const { return worker_; }
  ucp_ep_h peer() const { return endpoint_; }

 private:
  ucp_worker_h worker_ = nullptr;
  ucp_ep_h endpoint_ = nullptr;
};

// Byte `i` of the message `number`: no two messages of a run are alike, nor two places of one.
inline unsigned char pattern(size_t number, size_t i) {
  const size_t mixed = (i + number * 7919) * 2654435761u;
  return static_cast<unsigned char>(mixed >> 24 ^ mixed >> 8 ^ i >> 16);
}
inline void fill(void* to, size_t length, size_t number) {
  auto* bytes = static_cast<unsigned char*>(to);
  for (size_t i = 0; i < length; ++i) bytes[i] = pattern(number, i);
}
inline void verify(const void* from, size_t length, size_t number, const char* what) {
  const auto* bytes = static_cast<const unsigned char*>(from);
  for (size_t i = 0; i < length; ++i)
    if (bytes[i] != pattern(number, i)) {
      fprintf(stderr, "%s: byte %zu of %zu is %02x, not %02x\n", what, i, length, bytes[i], pattern(number, i));
      _Exit(1);
    }
}

}  // namespace peers
