#include "preload/state.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdlib.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <mutex>
#include <string>
#include <vector>

#include "support/at_fork.h"

namespace verbena::preload {

thread_local bool inside = false;

namespace {

constexpr int kDescriptors = 65536;
// Device index + 1 of a node's descriptor, 0 of others.
std::atomic<std::uint8_t> nodes[kDescriptors];
std::atomic<pid_t> owner{0};

// The library that holds kernel role and device lies beside this one.
const uverbs::Backend* load_backend() {
  Dl_info self;
  if (dladdr(reinterpret_cast<const void*>(&load_backend), &self) == 0 || self.dli_fname == nullptr) return nullptr;
  std::string path = self.dli_fname;
  path.erase(path.rfind('/') == std::string::npos ? 0 : path.rfind('/') + 1);
  void* library = dlopen((path + "libverbena-nic.so").c_str(), RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) return nullptr;
  const auto entry = reinterpret_cast<decltype(&verbena_embedded_backend)>(dlsym(library, "verbena_embedded_backend"));
  return entry == nullptr ? nullptr : entry(uverbs::kBackendAbi);
}

std::string environment(const char* name, const std::string& otherwise) {
  const char* value = getenv(name);
  return value && *value ? value : otherwise;
}

const State* make() {
  if (getauxval(AT_SECURE)) return nullptr;  // a program with more rights than its caller gets no device from us
  const Undisturbed guard;
  const int saved = errno;
  if (locks_future.load(std::memory_order_relaxed)) mlockall(MCL_FUTURE | MCL_ONFAULT);
  State* made = nullptr;  // lives as long as the process
  if (const uverbs::Backend* backend = load_backend()) {
    const std::string run_dir = environment("VERBENA_RUN_DIR", "/dev/shm/verbena-" + std::to_string(geteuid()));
    if (auto tree = Tree::build(*backend, run_dir, environment("VERBENA_HOST", "localhost")))
      made = new State{backend, std::move(*tree)};
  }
  if (made) {
    owner.store(static_cast<pid_t>(syscall(SYS_getpid)), std::memory_order_relaxed);
    pthread_atfork(nullptr, nullptr,
                   [] { owner.store(static_cast<pid_t>(syscall(SYS_getpid)), std::memory_order_relaxed); });
    awake.store(made, std::memory_order_release);
  }
  errno = saved;
  return made;
}

}  // namespace

const State* wake() {
  if (inside) return nullptr;
  if (const State* made = awake.load(std::memory_order_acquire)) return made;
  static std::once_flag once;
  std::call_once(once, make);
  return awake.load(std::memory_order_acquire);
}

bool is_own_process() { return syscall(SYS_getpid) == owner.load(std::memory_order_relaxed); }

void remember_node(int fd, int device) {
  if (fd >= 0 && fd < kDescriptors) nodes[fd].store(static_cast<std::uint8_t>(device + 1), std::memory_order_relaxed);
}

bool maybe_node(int fd) { return fd >= 0 && fd < kDescriptors && nodes[fd].load(std::memory_order_relaxed) != 0; }

int node_of(const State& state, int fd) {
  const Undisturbed guard;
  const int saved = errno;
  const int device = state.backend->device_of(fd);
  errno = saved;
  return device;
}

void keep_open(int fd) {
  const Undisturbed guard;
  const int saved = errno;
  static auto* kept = new std::vector<ino_t>;  // outlives every thread
  struct stat status;
  if (fstat(fd, &status) == 0) {
    const std::lock_guard locked(mutex_over_fork<ForkRank::kept_nodes>());
    if (std::find(kept->begin(), kept->end(), status.st_ino) == kept->end() && fcntl(fd, F_DUPFD_CLOEXEC, 0) >= 0)
      kept->push_back(status.st_ino);
  }
  errno = saved;
}

void forget_node(int fd) {
  if (fd >= 0 && fd < kDescriptors) nodes[fd].store(0, std::memory_order_relaxed);
}

}  // namespace verbena::preload
