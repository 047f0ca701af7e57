#include "device/memory/operation_pages.h"

#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <ucontext.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <bit>
#include <cerrno>
#include <mutex>
#include <utility>

#include "device/memory/guard.h"
#include "device/memory/instruction.h"
#include "device/transport/clock.h"
#include "support/at_fork.h"

namespace verbena::device {

namespace {

constexpr std::uint64_t kPage = 4096;
constexpr unsigned kPlaces = 64;           // devices of a process
constexpr std::uint64_t kClockPlace = kPlaces;
constexpr unsigned kLogPlace = 32;         // a place's share of the file's offsets
constexpr std::uint64_t kPlaceMask = (std::uint64_t{1} << kLogPlace) - 1;

// The file behind all operation pages of the process has no content: it gives them an identity.
struct Identity {
  int fd = -1;
  std::uint64_t device = 0, inode = 0;
};
Identity identity;
std::atomic<bool> in_use{false};
std::array<std::atomic<std::byte*>, kPlaces> memories{};

std::mutex& places_mutex() { return mutex_over_fork<ForkRank::operation_pages>(); }

bool make_identity() {
  if (identity.fd >= 0) return true;
  const int fd = memfd_create("memic-operations", MFD_CLOEXEC);
  struct stat st {};
  if (fd < 0 || fstat(fd, &st) != 0) return false;
  identity = {fd, st.st_dev, st.st_ino};
  return true;
}

// ---- the handler's side: no locks, no allocation ----

// A line of /proc/self/maps, as far as it is needed.
class MapsLine {
 public:
  explicit MapsLine(const char* text) : at_(text) {}
  std::uint64_t number(unsigned base) {
    std::uint64_t value = 0;
    for (; digit() < base; ++at_) value = value * base + digit();
    return value;
  }
  void skip_word() {
    while (*at_ && *at_ != ' ') ++at_;
  }
  void skip() {
    if (*at_) ++at_;
  }
  void skip_spaces() {
    while (*at_ == ' ') ++at_;
  }

 private:
  unsigned digit() const {
    const char c = *at_;
    return c >= '0' && c <= '9' ? static_cast<unsigned>(c - '0') : c >= 'a' && c <= 'f' ? static_cast<unsigned>(c - 'a' + 10) : 99;
  }
  const char* at_;
};

// Whether the line is of a mapping of ours that holds `address`; then where in the file that is.
bool file_offset(const char* text, std::uint64_t address, std::uint64_t* offset) {
  MapsLine line(text);
  const std::uint64_t start = line.number(16);
  line.skip();
  const std::uint64_t end = line.number(16);
  if (address < start || address >= end) return false;
  line.skip_spaces();
  line.skip_word();  // permissions
  line.skip_spaces();
  const std::uint64_t from = line.number(16);
  line.skip_spaces();
  const auto major = static_cast<unsigned>(line.number(16));
  line.skip();
  const auto minor = static_cast<unsigned>(line.number(16));
  line.skip_spaces();
  if (makedev(major, minor) != identity.device || line.number(10) != identity.inode) return false;
  *offset = from + (address - start);
  return true;
}

// Looks for the mapping of `address` in /proc/self/maps.
bool find_in_maps(std::uint64_t address, std::uint64_t* offset) {
  const int fd = open("/proc/self/maps", O_RDONLY | O_CLOEXEC);
  if (fd < 0) return false;
  char buffer[4096];
  std::size_t held = 0;
  bool found = false;
  while (!found) {
    const ssize_t n = read(fd, buffer + held, sizeof buffer - 1 - held);
    if (n <= 0) break;
    held += static_cast<std::size_t>(n);
    buffer[held] = 0;
    char* at = buffer;
    for (char* end; !found && (end = strchr(at, '\n')) != nullptr; at = end + 1) {
      *end = 0;
      found = file_offset(at, address, offset);
    }
    held = static_cast<std::size_t>(buffer + held - at);
    memmove(buffer, at, held);
    if (held == sizeof buffer - 1) held = 0;  // a name longer than all this: not a line of ours
  }
  close(fd);
  return found;
}

template <class T>
std::uint64_t perform_on(std::byte* memory, MemoryOperation op, bool store, std::uint64_t value) {
  std::atomic_ref<T> word(*reinterpret_cast<T*>(memory));
  const auto operand = static_cast<T>(value);
  if (!store) return op == MemoryOperation::test_and_set ? word.exchange(static_cast<T>(~T{0})) : word.load();
  if (op == MemoryOperation::increment)
    word.fetch_add(operand);
  else
    word.store(operand);
  return 0;
}

std::uint64_t perform(std::byte* memory, MemoryOperation op, const MemoryAccess& access, std::uint64_t value) {
  switch (access.bytes) {
    case 1: return perform_on<std::uint8_t>(memory, op, access.store, value);
    case 2: return perform_on<std::uint16_t>(memory, op, access.store, value);
    case 4: return perform_on<std::uint32_t>(memory, op, access.store, value);
    default: return perform_on<std::uint64_t>(memory, op, access.store, value);
  }
}

// Bytes of the clock page; the clock is all there is on it.
std::uint64_t clock_bytes(std::uint64_t offset, unsigned count) {
  const std::uint64_t now = __builtin_bswap64(device_clock());
  std::uint64_t value = 0;
  if (offset < sizeof now) memcpy(&value, reinterpret_cast<const std::byte*>(&now) + offset, std::min<std::size_t>(count, sizeof now - offset));
  return value;
}

// The interrupted thread's registers.
class Registers {
 public:
  explicit Registers(void* context) : machine_(static_cast<ucontext_t*>(context)->uc_mcontext) {}
  const std::uint8_t* instruction() const { return reinterpret_cast<const std::uint8_t*>(machine_.gregs[REG_RIP]); }
  void advance(unsigned bytes) { machine_.gregs[REG_RIP] += bytes; }
  std::uint64_t stored(const MemoryAccess& access) const {
    switch (access.kind) {
      case MemoryAccess::Register::immediate: return access.immediate;
      case MemoryAccess::Register::high_byte: return general(access.number) >> 8;
      case MemoryAccess::Register::general: return general(access.number);
      case MemoryAccess::Register::vector: break;
    }
    const auto& xmm = machine_.fpregs->_xmm[access.number].element;
    return xmm[0] | std::uint64_t{xmm[1]} << 32;
  }
  void load(const MemoryAccess& access, std::uint64_t value) {
    using Action = MemoryAccess::Action;
    if (access.action != Action::move) {
      auto& flags = machine_.gregs[REG_EFL];
      const Computed result = compute(access, value, stored(access), static_cast<std::uint64_t>(flags));
      flags = static_cast<greg_t>(result.flags);
      if (access.action == Action::cmp || access.action == Action::test) return;
      value = result.value;
    }
    if (access.kind != MemoryAccess::Register::vector) {
      auto& reg = machine_.gregs[kOrder[access.number]];
      reg = static_cast<greg_t>(loaded(access, static_cast<std::uint64_t>(reg), value));
      return;
    }
    const std::uint64_t low[2] = {value, 0};
    memcpy(machine_.fpregs->_xmm[access.number].element, low, sizeof low);
    mark_vectors(access);
  }

 private:
  static constexpr int kOrder[] = {REG_RAX, REG_RCX, REG_RDX, REG_RBX, REG_RSP, REG_RBP, REG_RSI, REG_RDI,
                                   REG_R8,  REG_R9,  REG_R10, REG_R11, REG_R12, REG_R13, REG_R14, REG_R15};
  std::uint64_t general(unsigned number) const { return static_cast<std::uint64_t>(machine_.gregs[kOrder[number]]); }

  // The frame's extended state: vector registers are in use from now on, and a VEX load clears the upper half.
  void mark_vectors(const MemoryAccess& access) {
    constexpr std::size_t magic_at = 464, features_at = 512, upper_halves_at = 576;
    constexpr std::uint32_t magic = 0x46505853;
    constexpr std::uint64_t sse = 2, avx = 4;
    auto* area = reinterpret_cast<std::byte*>(machine_.fpregs);
    std::uint32_t found;
    memcpy(&found, area + magic_at, sizeof found);
    if (found != magic) return;
    std::uint64_t features;
    memcpy(&features, area + features_at, sizeof features);
    features |= sse;
    memcpy(area + features_at, &features, sizeof features);
    if (access.vex && features & avx) memset(area + upper_halves_at + std::size_t{16} * access.number, 0, 16);
  }

  mcontext_t& machine_;
};

bool on_access(std::uintptr_t address, void* context) {
  if (!in_use.load(std::memory_order_acquire)) return false;
  Registers registers(context);
  std::uint8_t code[15];
  // An instruction at the end of a page may be followed by nothing.
  std::size_t have = sizeof code;
  if (guarded_copy(code, registers.instruction(), have) != 0) {
    have = kPage - reinterpret_cast<std::uintptr_t>(registers.instruction()) % kPage;
    if (have > sizeof code || guarded_copy(code, registers.instruction(), have) != 0) return false;
  }
  const auto access = decode_access({code, have});
  std::uint64_t offset = 0;
  if (!access || address % access->bytes || !find_in_maps(address, &offset)) return false;
  const std::uint64_t inside = offset & kPlaceMask;
  if (offset >> kLogPlace == kClockPlace) {
    if (access->store) return false;
    registers.load(*access, clock_bytes(inside, access->bytes));
    registers.advance(access->length);
    return true;
  }
  if (offset >> kLogPlace >= kPlaces || inside / kOperationBytes >= kMemoryOperations) return false;
  std::byte* memory = memories[offset >> kLogPlace].load(std::memory_order_acquire);
  if (!memory) return false;
  const auto op = static_cast<MemoryOperation>(inside / kOperationBytes);
  const std::uint64_t value = perform(memory + inside % kOperationBytes, op, *access, registers.stored(*access));
  if (!access->store) registers.load(*access, value);
  registers.advance(access->length);
  return true;
}

// With the mutex held, once there is something to map.
void* map_without_access(void* addr, std::size_t length, int flags, std::uint64_t at) {
  ensure_guard();
  set_access_hook(&on_access);
  in_use.store(true, std::memory_order_release);
  return ::mmap(addr, length, PROT_NONE, flags, identity.fd, static_cast<off_t>(at));
}

}  // namespace

OperationPages::~OperationPages() { withdraw(); }

void OperationPages::withdraw() {
  if (place_ >= 0) memories[static_cast<unsigned>(std::exchange(place_, -1))].store(nullptr, std::memory_order_release);
}

void* OperationPages::map(void* addr, std::size_t length, int flags, std::byte* memory, MemoryOperation op,
                          std::uint32_t offset) {
  std::lock_guard guard(places_mutex());
  if (place_ < 0) {
    const auto free = std::ranges::find_if(memories, [](const auto& m) { return m.load() == nullptr; });
    if (free == memories.end() || !make_identity()) {
      errno = ENOMEM;
      return MAP_FAILED;
    }
    place_ = static_cast<int>(free - memories.begin());
    free->store(memory, std::memory_order_release);
  }
  return map_without_access(addr, length, flags, (static_cast<std::uint64_t>(place_) << kLogPlace) +
                                                     std::uint64_t{kOperationBytes} * static_cast<unsigned>(op) + offset);
}

void* map_clock_page(void* addr, std::size_t length, int flags) {
  std::lock_guard guard(places_mutex());
  if (!make_identity()) {
    errno = ENOMEM;
    return MAP_FAILED;
  }
  return map_without_access(addr, length, flags, kClockPlace << kLogPlace);
}

}  // namespace verbena::device
