// A backend that records requests and answers them by a function of the test, and a context on it.
#pragma once

#include <rdma/ib_user_ioctl_verbs.h>
#include <rdma/rdma_user_ioctl_cmds.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "verbs/driver.h"

namespace verbena::test {

struct Request {
  std::uint16_t object;
  std::uint16_t method;
  std::map<std::uint16_t, ib_uverbs_attr> attrs;

  bool has(std::uint16_t id) const { return attrs.contains(id); }
  std::uint64_t value(std::uint16_t id) const { return attrs.at(id).data; }
  template <class T>
  T* pointer(std::uint16_t id) const {
    return reinterpret_cast<T*>(attrs.at(id).data);
  }
  bool is_write(std::uint32_t command) const {
    return object == UVERBS_OBJECT_DEVICE && method == UVERBS_METHOD_INVOKE_WRITE &&
           value(UVERBS_ATTR_WRITE_CMD) == command;
  }
};

class FakeKernel {
 public:
  // 0 or an errno; may write results through the request, and object handles by `handle`.
  using Answer = std::function<int(const Request&)>;

  FakeKernel() {
    current_ = this;
    backend_ = {};
    backend_.abi = uverbs::kBackendAbi;
    backend_.ioctl = [](int, ib_uverbs_ioctl_hdr* head) { return current_->serve(head); };
    backend_.open = [](int) { return 77; };
    backend_.close = [](int) { return 0; };
    backend_.read_sysfs = [](const char*, const char* file, char* buffer, std::size_t size) {
      auto found = current_->files.find(file);
      if (found == current_->files.end()) return errno = ENOENT, -1;
      std::size_t length = std::min(size, found->second.size());
      std::memcpy(buffer, found->second.data(), length);
      return static_cast<int>(length);
    };
    device_.provider = &provider_;
    device_.backend = &backend_;
    device_.references = 1;
    verbena_context_init(&context_, &device_, 77, RDMA_DRIVER_MLX5);
    context_.verbs.context.async_fd = 78;
  }
  ~FakeKernel() { verbena_context_uninit(&context_); }

  ibv_context* context() { return &context_.verbs.context; }
  ibv_device* device() { return &device_.device; }
  verbs::Context& own_context() { return context_; }

  Answer answer = [](const Request&) { return 0; };
  std::uint32_t next_handle = 100;  // put into the first zero-length attribute of value 0
  std::vector<Request> requests;
  std::map<std::string, std::string> files;

 private:
  int serve(ib_uverbs_ioctl_hdr* head) {
    Request request{head->object_id, head->method_id, {}};
    for (unsigned i = 0; i < head->num_attrs; ++i) request.attrs[head->attrs[i].attr_id] = head->attrs[i];
    requests.push_back(request);
    if (int error = answer(request)) {
      errno = error;
      return -1;
    }
    for (unsigned i = 0; i < head->num_attrs; ++i) {
      if (head->attrs[i].len == 0 && head->attrs[i].data == 0) {
        head->attrs[i].data = next_handle++;
        break;
      }
    }
    return 0;
  }

  static inline FakeKernel* current_ = nullptr;
  uverbs::Backend backend_;
  verbs::Provider provider_{.abi = verbs::kDriverAbi,
                            .name = "fake",
                            .free_device = [](verbs::Device*) {},
                            .alloc_context = [](verbs::Device*, int, void*) { return &current_->context_; }};
  verbs::Device device_{};
  verbs::Context context_{};
};

}  // namespace verbena::test
