#include "fabric/registry.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstring>
#include <map>
#include <mutex>

#include "support/at_fork.h"

namespace verbena::fabric {

namespace {

constexpr std::uint32_t kMagic = 0x56524247;  // "VRBG"
constexpr std::uint32_t kAbi = 1;
constexpr unsigned kHosts = 512;
constexpr unsigned kGids = 1u << 14;  // power of two; open addressing
constexpr std::uint32_t kEmpty = 0, kUsed = 1, kDeleted = 2;

struct HostEntry {
  char name[64];
};
struct RouteEntry {
  std::atomic<std::uint32_t> sequence;  // odd while being written
  std::atomic<std::uint32_t> use;
  std::atomic<std::uint64_t> gid[2];
  std::atomic<std::uint32_t> host;
  std::atomic<std::uint16_t> device, port;
};

struct Contents {
  std::atomic<std::uint32_t> magic;
  std::uint32_t abi;
  std::atomic<std::uint32_t> host_count;
  std::atomic<std::uint64_t> version;
  HostEntry hosts[kHosts];
  RouteEntry routes[kGids];
};

unsigned hash(const std::uint64_t gid[2]) {
  std::uint64_t h = (gid[0] ^ (gid[1] * 0x9e3779b97f4a7c15u)) * 0xbf58476d1ce4e5b9u;
  return static_cast<unsigned>(h >> 40) & (kGids - 1);
}
void split(const Gid& gid, std::uint64_t out[2]) { std::memcpy(out, gid.data(), 16); }

}  // namespace

struct Registry::File {
  int fd = -1;
  int pid = 0;
  Contents* contents = nullptr;
  std::mutex mutex;

  // Excludes other processes and threads while the table changes.
  struct Lock {
    explicit Lock(File& f) : file(f), guard(f.mutex) {
      while (flock(file.fd, LOCK_EX) != 0 && errno == EINTR) {
      }
    }
    ~Lock() { flock(file.fd, LOCK_UN); }
    File& file;
    std::lock_guard<std::mutex> guard;
  };
};

Registry::Registry() = default;
Registry::~Registry() {
  if (!file_ || file_->pid != getpid()) {
    (void)file_.release();
    return;
  }
  if (file_->contents != nullptr) munmap(file_->contents, sizeof(Contents));
  if (file_->fd >= 0) close(file_->fd);
}

Result<std::shared_ptr<Registry>> Registry::open(const std::string& run_dir) {
  static auto* cache = new std::map<std::pair<std::string, int>, std::weak_ptr<Registry>>;
  std::lock_guard guard(mutex_over_fork<ForkRank::registry>());
  auto& cached = (*cache)[{run_dir, getpid()}];
  if (auto existing = cached.lock()) return existing;

  const std::string path = run_dir + "/registry";
  std::shared_ptr<Registry> registry(new Registry);
  registry->file_ = std::make_unique<File>();
  File& file = *registry->file_;
  file.pid = getpid();
  if (mkdir(run_dir.c_str(), 0700) != 0 && errno != EEXIST)
    return fail(errno, "cannot create " + run_dir + ": " + strerror(errno));
  file.fd = ::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
  if (file.fd < 0) return fail(errno, "cannot open " + path + ": " + strerror(errno));
  File::Lock lock(file);
  struct stat st {};
  if (fstat(file.fd, &st) != 0 ||
      (static_cast<std::size_t>(st.st_size) < sizeof(Contents) && ftruncate(file.fd, sizeof(Contents)) != 0))
    return fail(errno, "cannot size " + path + ": " + strerror(errno));
  void* p = mmap(nullptr, sizeof(Contents), PROT_READ | PROT_WRITE, MAP_SHARED, file.fd, 0);
  if (p == MAP_FAILED) return fail(errno, "cannot map " + path + ": " + strerror(errno));
  file.contents = static_cast<Contents*>(p);
  if (file.contents->magic.load(std::memory_order_acquire) == 0) {
    file.contents->abi = kAbi;
    file.contents->magic.store(kMagic, std::memory_order_release);
  }
  if (file.contents->magic.load() != kMagic || file.contents->abi != kAbi)
    return fail(EPROTO, path + " is of another version; remove the run dir when nothing uses it");
  cached = registry;
  return registry;
}

Result<std::uint32_t> Registry::host_index(const std::string& host) {
  if (host.size() >= sizeof(HostEntry::name)) return fail(EINVAL, "the host name is too long");
  File::Lock lock(*file_);
  Contents& c = *file_->contents;
  const std::uint32_t count = std::min(c.host_count.load(), std::uint32_t{kHosts});
  for (std::uint32_t i = 0; i < count; ++i)
    if (host == std::string(c.hosts[i].name, strnlen(c.hosts[i].name, sizeof c.hosts[i].name))) return i;
  if (count == kHosts) return fail(ENOSPC, "the run dir knows 512 virtual hosts already");
  std::memset(c.hosts[count].name, 0, sizeof c.hosts[count].name);
  std::memcpy(c.hosts[count].name, host.data(), host.size());
  c.host_count.store(count + 1, std::memory_order_release);
  return count;
}

std::string Registry::host_name(std::uint32_t index) const {
  const Contents& c = *file_->contents;
  if (index >= kHosts || index >= c.host_count.load(std::memory_order_acquire)) return {};
  return std::string(c.hosts[index].name, strnlen(c.hosts[index].name, sizeof c.hosts[index].name));
}

std::optional<Route> Registry::find(const Gid& gid) const {
  std::uint64_t want[2];
  split(gid, want);
  const Contents& c = *file_->contents;
  for (unsigned i = 0, at = hash(want); i < kGids; ++i, at = (at + 1) & (kGids - 1)) {
    const RouteEntry& e = c.routes[at];
    for (int attempt = 0; attempt < 1000; ++attempt) {
      const std::uint32_t before = e.sequence.load(std::memory_order_acquire);
      if (before & 1) continue;
      // Acquiring loads of what is stored releasing: whoever sees a new value sees the odd sequence before it.
      const std::uint32_t use = e.use.load(std::memory_order_acquire);
      const bool match = e.gid[0].load(std::memory_order_acquire) == want[0] &&
                         e.gid[1].load(std::memory_order_acquire) == want[1];
      const Route route{e.host.load(std::memory_order_acquire),
                        static_cast<std::uint8_t>(e.device.load(std::memory_order_acquire)),
                        static_cast<std::uint8_t>(e.port.load(std::memory_order_acquire))};
      if (e.sequence.load(std::memory_order_relaxed) != before) continue;
      if (use == kEmpty) return std::nullopt;
      if (use == kUsed && match) return route;
      break;
    }
  }
  return std::nullopt;
}

int Registry::add(const Gid& gid, const Route& route) {
  std::uint64_t want[2];
  split(gid, want);
  File::Lock lock(*file_);
  Contents& c = *file_->contents;
  RouteEntry* free = nullptr;
  for (unsigned i = 0, at = hash(want); i < kGids; ++i, at = (at + 1) & (kGids - 1)) {
    RouteEntry& e = c.routes[at];
    const std::uint32_t use = e.use.load();
    if (use == kUsed && e.gid[0].load() == want[0] && e.gid[1].load() == want[1]) {
      if (e.host.load() == route.host && e.device.load() == route.device && e.port.load() == route.port) return 0;
      return EADDRINUSE;  // the same address on two ports: the first keeps it
    }
    if (use != kUsed && free == nullptr) free = &e;
    if (use == kEmpty) break;
  }
  if (free == nullptr) return ENOSPC;
  free->sequence.store(free->sequence.load() | 1, std::memory_order_release);
  free->gid[0].store(want[0], std::memory_order_release);
  free->gid[1].store(want[1], std::memory_order_release);
  free->host.store(route.host, std::memory_order_release);
  free->device.store(route.device, std::memory_order_release);
  free->port.store(route.port, std::memory_order_release);
  free->use.store(kUsed, std::memory_order_release);
  free->sequence.store(free->sequence.load() + 1, std::memory_order_release);
  c.version.fetch_add(1);
  return 0;
}

int Registry::remove(const Gid& gid, const Route& route) {
  std::uint64_t want[2];
  split(gid, want);
  File::Lock lock(*file_);
  Contents& c = *file_->contents;
  for (unsigned i = 0, at = hash(want); i < kGids; ++i, at = (at + 1) & (kGids - 1)) {
    RouteEntry& e = c.routes[at];
    const std::uint32_t use = e.use.load();
    if (use == kEmpty) break;
    if (use != kUsed || e.gid[0].load() != want[0] || e.gid[1].load() != want[1]) continue;
    if (e.host.load() != route.host || e.device.load() != route.device || e.port.load() != route.port) return ENOENT;
    e.use.store(kDeleted, std::memory_order_release);
    c.version.fetch_add(1);
    return 0;
  }
  return ENOENT;
}

void Registry::touch() { file_->contents->version.fetch_add(1); }

std::uint64_t Registry::version() const { return file_->contents->version.load(std::memory_order_acquire); }

}  // namespace verbena::fabric
