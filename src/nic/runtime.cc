#include "nic/runtime.h"

#include <dirent.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>

#include "support/at_fork.h"

namespace verbena::nic {
namespace {

constexpr unsigned kMaxDevices = 16;

std::string environment(const char* name, const char* fallback) {
  const char* value = std::getenv(name);
  return value && *value ? value : fallback;
}

}  // namespace

Runtime& Runtime::get() {
  // Never destroyed: other threads may still be inside while the process exits.
  static Runtime* runtime = new Runtime;
  return *runtime;
}

Runtime::Runtime() : host_(environment("VERBENA_HOST", "localhost")), profile_(device::load_profile(environment("VERBENA_PROFILE", ""))) {
  const long count = std::strtol(environment("VERBENA_DEVICES", "1").c_str(), nullptr, 10);
  count_ = static_cast<unsigned>(std::clamp(count, 0l, static_cast<long>(kMaxDevices)));
  nodes_.resize(count_);
  at_fork(ForkRank::runtime, {before_fork, after_fork_parent, after_fork_child});
}

Result<std::shared_ptr<kernel::Node>> Runtime::node(unsigned index) {
  std::lock_guard guard(lock_);
  if (index >= count_) return fail(ENODEV, "no such device");
  if (!profile_) return std::unexpected(profile_.error());
  if (!nodes_[index]) {
    auto made = kernel::Node::create(*profile_, host_, index);
    if (!made) return std::unexpected(made.error());
    nodes_[index] = std::move(*made);
  }
  return nodes_[index];
}

int Runtime::open(unsigned index) {
  auto node = this->node(index);
  if (!node) {
    errno = node.error().code;
    return -1;
  }
  auto file = kernel::File::open(*node);
  if (!file) return -1;
  int fd = file->take_user_fd();
  std::lock_guard guard(lock_);
  files_.push_back(file);
  by_fd_[fd] = std::move(file);
  return fd;
}

std::shared_ptr<kernel::File> Runtime::find_locked(int fd) {
  if (auto it = by_fd_.find(fd); it != by_fd_.end()) {
    if (it->second->is(fd)) return it->second;
    by_fd_.erase(it);  // the program closed it behind our back and the number is in use again
  }
  for (const auto& file : files_) {
    if (!file->is(fd)) continue;
    by_fd_[fd] = file;
    return file;
  }
  return nullptr;
}

std::shared_ptr<kernel::File> Runtime::file(int fd) {
  std::lock_guard guard(lock_);
  return find_locked(fd);
}

std::shared_ptr<kernel::File> Runtime::heir(int fd) {
  const auto parents = file(fd);
  if (!parents || !parents->dead()) return parents;
  auto node = this->node(parents->node().index());
  if (!node) {
    errno = node.error().code;
    return nullptr;
  }
  auto own = kernel::File::inherit(*node, *parents);
  if (!own) return nullptr;
  std::lock_guard guard(lock_);
  const auto now = find_locked(fd);
  if (now != parents) return now;  // another thread was faster
  std::replace(files_.begin(), files_.end(), parents, own);
  std::erase_if(by_fd_, [&](const auto& entry) { return entry.second == parents; });
  return own;
}

// Whether the program still holds a descriptor of `file`; the file itself holds one, which does not count.
bool Runtime::has_other_descriptor(const kernel::File& file) const {
  DIR* dir = opendir("/proc/self/fd");
  if (!dir) return true;  // cannot tell: keep it
  unsigned count = 0;
  while (dirent* entry = readdir(dir)) {
    // By name: the other threads' descriptors are none of ours to use, not even for fstat().
    struct stat st {};
    if (entry->d_name[0] != '.' && fstatat(dirfd(dir), entry->d_name, &st, 0) == 0 && file.is(kernel::FileId{st.st_dev, st.st_ino}))
      ++count;
  }
  closedir(dir);
  return count > 1;
}

int Runtime::close(int fd) {
  std::shared_ptr<kernel::File> dying;
  std::vector<std::shared_ptr<kernel::File>> all;
  {
    std::lock_guard guard(lock_);
    dying = find_locked(fd);
    all = files_;
  }
  if (!dying)
    for (const auto& file : all) file->forget_fd(fd);
  int result = ::close(fd);
  if (!dying) return result;
  {
    std::lock_guard guard(lock_);
    by_fd_.erase(fd);
    if (has_other_descriptor(*dying)) return result;
    std::erase(files_, dying);
    std::erase_if(by_fd_, [&](const auto& entry) { return entry.second == dying; });
  }
  dying->release();
  return result;
}

void* Runtime::alloc_dma(int fd, std::size_t length) {
  std::lock_guard guard(lock_);
  auto file = find_locked(fd);
  if (!file || file->dead()) {
    errno = file ? EIO : EBADF;
    return nullptr;
  }
  void* memory = file->device().alloc_dma(length);
  if (!memory) {
    errno = ENOMEM;
    return nullptr;
  }
  dma_[memory] = file->shared_node();
  return memory;
}

void Runtime::free_dma(void* addr, std::size_t length) {
  std::lock_guard guard(lock_);
  auto it = dma_.find(addr);
  if (it == dma_.end()) return;
  // What a parent allocated is the parent's to give back.
  if (!it->second->dead()) it->second->device().free_dma(addr, length);
  dma_.erase(it);
}

// ---- fork ----

void Runtime::before_fork() { get().lock_.lock(); }
void Runtime::after_fork_parent() { get().lock_.unlock(); }

void Runtime::after_fork_child() {
  Runtime& runtime = get();
  for (const auto& file : runtime.files_) file->mark_dead();
  for (auto& node : runtime.nodes_) {
    if (!node) continue;
    node->abandon_in_child();
    // Kept for ever: a thread of the parent may have held its locks when it forked.
    static auto* abandoned = new std::vector<std::shared_ptr<kernel::Node>>;
    abandoned->push_back(std::move(node));
    node = nullptr;
  }
  runtime.lock_.unlock();
}

}  // namespace verbena::nic
