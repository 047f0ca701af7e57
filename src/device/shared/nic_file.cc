#include "device/shared/nic_file.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cstddef>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <map>
#include <new>
#include <vector>

#include "device/shared/counters.h"
#include "device/shared/gids.h"
#include "support/at_fork.h"

namespace verbena::device {

namespace {

std::mutex& cache_mutex() {
  static auto* m = new std::mutex;
  return *m;
}
std::map<std::string, std::weak_ptr<NicFile>>& cache() {
  static auto* c = new std::map<std::string, std::weak_ptr<NicFile>>;
  return *c;
}
// Descriptors to close in a forked child before it can take locks of its own: closing them later would drop those.
constexpr unsigned kMaxFiles = 256;
std::atomic<int> open_fds[kMaxFiles];  // fd + 1

struct Replaced {
  std::atomic<void*> start;
  std::size_t length;
};
Replaced replaced[kMaxFiles];

void remember_fd(int fd) {
  for (auto& slot : open_fds) {
    int expected = 0;
    if (slot.compare_exchange_strong(expected, fd + 1)) return;
  }
}
void forget_fd(int fd) {
  for (auto& slot : open_fds) {
    int expected = fd + 1;
    if (slot.compare_exchange_strong(expected, 0)) return;
  }
}

Result<void> make_dir(const std::string& path) {
  if (mkdir(path.c_str(), 0700) == 0 || errno == EEXIST) return {};
  return fail(errno, "cannot create " + path + ": " + strerror(errno));
}

// Whether no thread of the process goes on before somebody lets it (SIGSTOP, a debugger). False too if the kernel does not say.
bool all_stopped(std::int32_t pid) {
  std::error_code failed;
  std::filesystem::directory_iterator threads("/proc/" + std::to_string(pid) + "/task", failed);
  bool any = false;
  for (; !failed && threads != std::filesystem::directory_iterator(); threads.increment(failed)) {
    std::string line;
    std::getline(std::ifstream(threads->path() / "stat"), line);  // "tid (name) state ...", and anything may be in the name
    const std::size_t name_end = line.rfind(')');
    if (name_end == std::string::npos || name_end + 2 >= line.size()) continue;  // it has ended
    const char state = line[name_end + 2];
    if (state == 'T' || state == 't')
      any = true;
    else if (state != 'Z' && state != 'X')
      return false;
  }
  return any && !failed;
}

bool plain_name(const std::string& name) {
  if (name.empty() || name.size() > 63 || name[0] == '.') return false;
  return name.find('/') == std::string::npos;
}

}  // namespace

std::string run_dir(const std::string& configured) {
  if (!configured.empty()) return configured;
  if (const char* env = getenv("VERBENA_RUN_DIR"); env != nullptr && *env != '\0') return env;
  return "/dev/shm/verbena-" + std::to_string(geteuid());
}

std::uint32_t NicFile::lock_id(std::uint32_t host, std::uint32_t device, std::uint32_t slot,
                               std::uint32_t generation) {
  return (generation & 0x3ff) << 22 | (host & 0x1ff) << 13 | (device & 7) << 10 | (slot & 0x3ff);
}

Holder NicFile::holder_state(std::uint32_t id) {
  const std::uint32_t slot = id & 0x3ff, device = id >> 10 & 7, host = id >> 13 & 0x1ff, generation = id >> 22;
  std::vector<std::shared_ptr<NicFile>> files;
  {
    std::lock_guard guard(cache_mutex());
    for (auto& [path, weak] : cache())
      if (auto file = weak.lock()) files.push_back(std::move(file));
  }
  std::shared_ptr<NicFile> any;
  const auto check = [&](NicFile& f) {
    const Slot& s = f.segment().slots[slot];
    if (s.state.load(std::memory_order_acquire) == 0 || (s.generation.load() & 0x3ff) != generation || !f.live(slot))
      return Holder::gone;
    return !f.local(slot) && all_stopped(s.pid) ? Holder::stopped : Holder::lives;
  };
  for (auto& f : files) {
    any = f;
    if (f->host_index_ == host && f->index_ == device) return check(*f);
  }
  if (!any) return Holder::lives;
  const std::string name = any->registry_->host_name(host);
  auto other = NicFile::open(any->run_dir_, name, device, nullptr);
  return other ? check(**other) : Holder::gone;
}

void NicFile::replace_in_child(void* start, std::size_t length) {
  std::lock_guard guard(cache_mutex());
  for (auto& r : replaced)
    if (r.start.load() == nullptr) {
      r.length = length;
      r.start.store(start);
      return;
    }
}
void NicFile::keep_in_child(void* start) {
  std::lock_guard guard(cache_mutex());
  for (auto& r : replaced)
    if (r.start.load() == start) r.start.store(nullptr);
}

void NicFile::in_child() {
  for (auto& r : replaced)
    if (void* start = r.start.exchange(nullptr); start != nullptr)
      // By system call: a sanitizer's idea of the range must not change while the child is half made.
      syscall(SYS_mmap, start, r.length, PROT_READ | PROT_WRITE,
              MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0);
  for (auto& slot : open_fds)
    if (const int fd = slot.exchange(0); fd != 0) close(fd - 1);
  // Objects of the parent stay where they are (others may point to them), but nobody finds them again.
  cache().clear();
}

Result<std::shared_ptr<NicFile>> NicFile::open(const std::string& run_dir, const std::string& host, unsigned index,
                                               const NicConfig* config) {
  at_fork(ForkRank::nic_file, {[] { cache_mutex().lock(); }, [] { cache_mutex().unlock(); },
                               [] {
                                 in_child();
                                 cache_mutex().unlock();
                               }});
  if (!plain_name(host)) return fail(EINVAL, "a host name is 1 to 63 characters, without slashes: \"" + host + "\"");
  if (index > 7) return fail(EINVAL, "a host has at most 8 devices");
  set_holder_check(&NicFile::holder_state);
  std::shared_ptr<NicFile> file(new NicFile);
  file->pid_ = getpid();
  file->run_dir_ = run_dir;
  file->host_ = host;
  file->index_ = index;
  file->dir_ = run_dir + "/" + host + "/" + std::to_string(index);
  std::lock_guard guard(cache_mutex());
  auto& cached = cache()[file->dir_];
  if (auto existing = cached.lock()) return existing;
  if (auto done = config ? file->create(*config) : file->map(); !done) return std::unexpected(done.error());
  cached = file;
  return file;
}

Result<void> NicFile::map() {
  auto registry = fabric::Registry::open(run_dir_);
  if (!registry) return std::unexpected(registry.error());
  registry_ = *registry;
  const std::string path = dir_ + "/nic";
  if (fd_ < 0) fd_ = ::open(path.c_str(), O_RDWR | O_CLOEXEC);
  if (fd_ < 0) return fail(errno, "cannot open " + path + ": " + strerror(errno));
  struct stat st {};
  if (fstat(fd_, &st) != 0 || static_cast<std::size_t>(st.st_size) < sizeof(NicSegment))
    return fail(EPROTO, path + " is not a NIC segment of this version");
  void* p = mmap(nullptr, sizeof(NicSegment), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE, fd_, 0);
  if (p == MAP_FAILED) return fail(errno, "cannot map " + path + ": " + strerror(errno));
  segment_ = static_cast<NicSegment*>(p);
  if (segment_->magic.load(std::memory_order_acquire) != kSharedMagic || segment_->abi != kSharedAbi ||
      segment_->bytes != sizeof(NicSegment))
    return fail(EPROTO, path + " is not a NIC segment of this version");
  host_index_ = segment_->host_index;
  remember_fd(fd_);
  return {};
}

Result<void> NicFile::create(const NicConfig& config) {
  for (const std::string& dir : {run_dir_, run_dir_ + "/" + host_, dir_})
    if (auto made = make_dir(dir); !made) return made;
  auto registry = fabric::Registry::open(run_dir_);
  if (!registry) return std::unexpected(registry.error());
  auto host = (*registry)->host_index(host_);
  if (!host) return std::unexpected(host.error());
  const std::string path = dir_ + "/nic";
  fd_ = ::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
  if (fd_ < 0) return fail(errno, "cannot open " + path + ": " + strerror(errno));
  while (flock(fd_, LOCK_EX) != 0)
    if (errno != EINTR) return fail(errno, "cannot lock " + path + ": " + strerror(errno));
  auto done = map();
  if (!done && done.error().code == EPROTO) {
    // New, half made by a process that died, or of another version. Never take it away from live processes.
    struct flock any {};
    any.l_type = F_WRLCK;
    any.l_whence = SEEK_SET;
    any.l_len = kMaxSlots;
    if (fcntl(fd_, F_GETLK, &any) == 0 && any.l_type != F_UNLCK) {
      flock(fd_, LOCK_UN);
      return done;
    }
    if (segment_ != nullptr) munmap(segment_, sizeof(NicSegment));
    segment_ = nullptr;
    if (ftruncate(fd_, 0) != 0 || ftruncate(fd_, sizeof(NicSegment)) != 0) {
      const int error = errno;
      flock(fd_, LOCK_UN);
      return fail(error, "cannot size " + path + ": " + strerror(error));
    }
    void* p = mmap(nullptr, sizeof(NicSegment), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE, fd_, 0);
    if (p == MAP_FAILED) {
      flock(fd_, LOCK_UN);
      return fail(errno, "cannot map " + path);
    }
    auto* segment = static_cast<NicSegment*>(p);
    segment->abi = kSharedAbi;
    segment->bytes = sizeof(NicSegment);
    segment->host_index = *host;
    segment->device_index = index_;
    fill_ports(*segment, config);
    segment->magic.store(kSharedMagic, std::memory_order_release);
    munmap(p, sizeof(NicSegment));
    done = map();
  }
  if (done) register_gids(*segment_, *registry_);
  flock(fd_, LOCK_UN);
  return done;
}

NicFile::~NicFile() {
  if (getpid() != pid_) return;
  if (segment_ != nullptr) munmap(segment_, sizeof(NicSegment));
  if (fd_ >= 0) {
    forget_fd(fd_);
    close(fd_);
  }
}

NicFile::Exclusive::Exclusive(NicFile& file) : file_(file), lock_(file.mutex_) {
  while (flock(file_.fd_, LOCK_EX) != 0 && errno == EINTR) {
  }
}
NicFile::Exclusive::~Exclusive() { flock(file_.fd_, LOCK_UN); }

bool NicFile::live(std::uint32_t slot) const {
  if (slot >= kMaxSlots) return false;
  if (local(slot)) return true;
  struct flock probe {};
  probe.l_type = F_WRLCK;
  probe.l_whence = SEEK_SET;
  probe.l_start = slot;
  probe.l_len = 1;
  if (fcntl(fd_, F_GETLK, &probe) != 0) return true;  // cannot tell: assume the best
  return probe.l_type != F_UNLCK;
}

std::shared_ptr<Own> NicFile::own(std::uint32_t slot) {
  std::lock_guard guard(own_mutex_);
  const auto it = own_.find(slot);
  return it == own_.end() ? nullptr : it->second;
}

void NicFile::set_own(std::uint32_t slot, std::shared_ptr<Own> own) {
  std::lock_guard guard(own_mutex_);
  if (own == nullptr)
    own_.erase(slot);
  else
    own_[slot] = std::move(own);
}

bool NicFile::lock_slot(std::uint32_t slot) {
  if (local(slot)) return false;
  struct flock lock {};
  lock.l_type = F_WRLCK;
  lock.l_whence = SEEK_SET;
  lock.l_start = slot;
  lock.l_len = 1;
  if (fcntl(fd_, F_SETLK, &lock) != 0) return false;
  local_[slot].store(true, std::memory_order_release);
  return true;
}

void NicFile::unlock_slot(std::uint32_t slot) {
  struct flock lock {};
  lock.l_type = F_UNLCK;
  lock.l_whence = SEEK_SET;
  lock.l_start = slot;
  lock.l_len = 1;
  local_[slot].store(false, std::memory_order_release);
  fcntl(fd_, F_SETLK, &lock);
}

void NicFile::reap() {
  for (std::uint32_t slot = 0; slot < kMaxSlots; ++slot)
    if (segment_->slots[slot].state.load(std::memory_order_acquire) != 0 && !live(slot)) free_slot(slot);
}

// The ports keep what the QPs of a process have counted when it goes.
void NicFile::settle_slot(std::uint32_t slot) {
  const int fd = ::open(slice_path(slot).c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) return;
  constexpr std::size_t kInBlock = 1u << kLogBlock;
  std::vector<QpContext> block(kInBlock);
  const std::uint32_t top = std::min(segment_->qpn_top.load(), kBlocks);
  for (std::uint32_t i = 0; i < top; ++i) {
    const std::uint32_t entry = segment_->qpn_block[i].load(std::memory_order_relaxed);
    const std::size_t first = std::size_t{entry >> 16} << kLogBlock;
    if ((entry & 0xffff) != slot + 1 || first + kInBlock > kMaxQps) continue;
    const std::size_t bytes = kInBlock * sizeof(QpContext), at = offsetof(Slice, qps) + first * sizeof(QpContext);
    if (pread(fd, static_cast<void*>(block.data()), bytes, static_cast<off_t>(at)) != static_cast<ssize_t>(bytes)) continue;
    for (QpContext& qp : block)
      if ((qp.generation.load(std::memory_order_relaxed) & 1) != 0) settle_counts(qp, *segment_, nullptr);
  }
  close(fd);
}

void NicFile::free_slot(std::uint32_t slot) {
  settle_slot(slot);
  Slot& s = segment_->slots[slot];
  s.generation.fetch_add(1, std::memory_order_release);
  if ((s.generation.load() & 0x3ff) == 0) s.generation.fetch_add(1);  // keeps lock ids from being 0
  const auto owned = [slot](std::uint32_t entry) { return (entry & 0xffff) == slot + 1; };
  const unsigned groups = std::min<unsigned>(segment_->multicast_top.load(), kMulticastGroups);
  for (unsigned g = 0; g < groups; ++g) {
    MulticastGroup& group = segment_->multicast[g];
    std::uint32_t count = group.members.load();
    if (count == 0) continue;
    count = std::min<std::uint32_t>(count, kMulticastMembers);
    std::uint32_t kept = 0;
    for (std::uint32_t i = 0; i < count; ++i)
      if (!owned(segment_->qpn_block[(group.qpn[i] & 0xffffff) >> kLogBlock].load())) group.qpn[kept++] = group.qpn[i];
    group.members.store(kept);
    if (kept == 0) memset(group.gid, 0, sizeof group.gid);
  }
  const auto release = [&owned](std::atomic<std::uint32_t>* table, std::uint32_t top) {
    for (unsigned i = 0; i < std::min(top, kBlocks); ++i)
      if (owned(table[i].load(std::memory_order_relaxed))) table[i].store(0, std::memory_order_release);
  };
  release(segment_->qpn_block, segment_->qpn_top.load());
  release(segment_->mkey_block, segment_->mkey_top.load());
  release(segment_->srqn_block, segment_->srqn_top.load());
  const unsigned domains = std::min<unsigned>(segment_->xrcd_top.load(), kXrcDomains);
  for (unsigned i = 0; i < domains; ++i) segment_->xrcds[i].holders[slot / 64] &= ~(1ull << (slot % 64));
  unlink(slice_path(slot).c_str());
  s.state.store(0, std::memory_order_release);
}

}  // namespace verbena::device
