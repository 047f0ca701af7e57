#include "fabric/capture.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <optional>
#include <string_view>

namespace verbena::fabric {
namespace {

// Block and option codes of the pcapng draft; all values in the writer's byte order.
constexpr std::uint32_t kSectionHeader = 0x0a0d0d0a, kInterfaceDescription = 1, kEnhancedPacket = 6;
constexpr std::uint32_t kByteOrderMagic = 0x1a2b3c4d;
constexpr std::uint16_t kOptEnd = 0, kOptIfName = 2, kOptIfTsResol = 9, kOptUserAppl = 4, kOptEpbFlags = 2;
constexpr std::uint16_t kLinkTypeEthernet = 1;
constexpr std::uint32_t kOutbound = 2;
constexpr std::size_t kBlockHeadBytes = 8;

// Builds one block: fixed part, options, length at both ends.
class Block {
 public:
  explicit Block(std::uint32_t type) { put(type).put(std::uint32_t{0}); }
  template <class T>
  Block& put(T value) {
    const auto* p = reinterpret_cast<const char*>(&value);
    bytes_.append(p, sizeof value);
    return *this;
  }
  Block& option(std::uint16_t code, std::string_view value) {
    put(code).put(static_cast<std::uint16_t>(value.size()));
    bytes_.append(value);
    bytes_.append((4 - value.size() % 4) % 4, '\0');
    return *this;
  }
  const std::string& finish() {
    put(kOptEnd).put(std::uint16_t{0});
    const auto length = static_cast<std::uint32_t>(bytes_.size() + 4);
    put(length);
    std::memcpy(bytes_.data() + 4, &length, sizeof length);
    return bytes_;
  }

 private:
  std::string bytes_;
};

std::string section_header() {
  Block block(kSectionHeader);
  block.put(kByteOrderMagic).put(std::uint16_t{1}).put(std::uint16_t{0}).put(std::int64_t{-1});
  return block.option(kOptUserAppl, "verbena").finish();
}

std::string interface_description(const std::string& name) {
  Block block(kInterfaceDescription);
  block.put(kLinkTypeEthernet).put(std::uint16_t{0}).put(std::uint32_t{0});
  return block.option(kOptIfName, name).option(kOptIfTsResol, "\x09").finish();
}

// The if_name option of an interface description block's body.
std::string name_of(std::string_view body) {
  std::size_t at = 8;
  while (at + 4 <= body.size()) {
    std::uint16_t code, length;
    std::memcpy(&code, body.data() + at, 2);
    std::memcpy(&length, body.data() + at + 2, 2);
    if (code == kOptEnd || at + 4 + length > body.size()) break;
    if (code == kOptIfName) return std::string(body.substr(at + 4, length));
    at += 4 + (length + 3u) / 4 * 4;
  }
  return {};
}

// Names of the interfaces the file describes, in order; nullopt if it is not a pcapng file of our byte order.
// A block cut short at the end is one that another process is writing now.
std::optional<std::vector<std::string>> interfaces_in(int fd, std::uint64_t size) {
  std::vector<std::string> names;
  std::uint64_t at = 0;
  while (at + kBlockHeadBytes <= size) {
    std::array<std::uint32_t, 3> head{};
    if (pread(fd, head.data(), sizeof head, static_cast<off_t>(at)) < static_cast<ssize_t>(kBlockHeadBytes)) break;
    if (at == 0 && (head[0] != kSectionHeader || head[2] != kByteOrderMagic)) return std::nullopt;
    if (head[1] < 12 || head[1] % 4) return std::nullopt;
    if (head[0] == kInterfaceDescription && head[1] < 4096) {
      std::string body(head[1] - 12, '\0');
      if (pread(fd, body.data(), body.size(), static_cast<off_t>(at + 8)) != static_cast<ssize_t>(body.size())) break;
      names.push_back(name_of(body));
    }
    at += head[1];
  }
  return at ? std::optional(names) : std::nullopt;
}

bool append(int fd, const std::string& bytes) {
  return ::write(fd, bytes.data(), bytes.size()) == static_cast<ssize_t>(bytes.size());
}

// Under the file's lock: makes sure that the section header and our interfaces are there. Returns their ids.
Result<std::vector<std::uint32_t>> describe(int fd, const std::string& path, const std::vector<std::string>& ours) {
  struct stat st;
  if (fstat(fd, &st) != 0) return fail(errno, path + ": " + std::strerror(errno));
  std::vector<std::string> known;
  if (st.st_size == 0) {
    if (!append(fd, section_header())) return fail(errno ? errno : EIO, path + ": cannot write");
  } else {
    auto found = interfaces_in(fd, static_cast<std::uint64_t>(st.st_size));
    if (!found) return fail(EINVAL, path + ": exists and is not a pcapng capture");
    known = std::move(*found);
  }
  std::vector<std::uint32_t> ids;
  for (const std::string& name : ours) {
    auto it = std::find(known.begin(), known.end(), name);
    if (it == known.end()) {
      if (!append(fd, interface_description(name))) return fail(errno ? errno : EIO, path + ": cannot write");
      known.push_back(name);
      it = known.end() - 1;
    }
    ids.push_back(static_cast<std::uint32_t>(it - known.begin()));
  }
  return ids;
}

}  // namespace

std::string Capture::port_name(const std::string& host, unsigned device, unsigned port) {
  std::string name = "mlx5_" + std::to_string(device) + "/" + std::to_string(port);
  return host.empty() || host == "localhost" ? name : host + ":" + name;
}

Result<std::unique_ptr<Capture>> Capture::open(const std::string& path, const std::vector<std::string>& interfaces) {
  const int fd = ::open(path.c_str(), O_RDWR | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
  if (fd < 0) return fail(errno, path + ": " + std::strerror(errno));
  while (flock(fd, LOCK_EX) != 0)
    if (errno != EINTR) {
      const int error = errno;
      ::close(fd);
      return fail(error, path + ": cannot lock");
    }
  auto ids = describe(fd, path, interfaces);
  flock(fd, LOCK_UN);
  if (!ids) {
    ::close(fd);
    return std::unexpected(ids.error());
  }
  return std::unique_ptr<Capture>(new Capture(fd, std::move(*ids)));
}

Capture::~Capture() { ::close(fd_); }

void Capture::write(unsigned interface, std::span<const std::byte> frame) {
  if (interface >= ids_.size()) return;
  timespec now;
  clock_gettime(CLOCK_REALTIME, &now);
  const std::uint64_t ns =
      static_cast<std::uint64_t>(now.tv_sec) * 1'000'000'000u + static_cast<std::uint64_t>(now.tv_nsec);

  const auto size = static_cast<std::uint32_t>(frame.size());
  const std::uint32_t pad = (4 - size % 4) % 4;
  struct {
    std::uint32_t type = kEnhancedPacket, length, interface, time_high, time_low, captured, original;
  } head;
  struct {
    std::uint16_t code = kOptEpbFlags, bytes = 4;
    std::uint32_t flags = kOutbound;
    std::uint32_t end = 0;
    std::uint32_t length;
  } tail;
  head.length = tail.length = static_cast<std::uint32_t>(sizeof head + size + pad + sizeof tail);
  head.interface = ids_[interface];
  head.time_high = static_cast<std::uint32_t>(ns >> 32);
  head.time_low = static_cast<std::uint32_t>(ns);
  head.captured = head.original = size;
  std::uint32_t zero = 0;
  const std::array<iovec, 4> parts{
      {{&head, sizeof head}, {const_cast<std::byte*>(frame.data()), size}, {&zero, pad}, {&tail, sizeof tail}}};
  if (writev(fd_, parts.data(), parts.size()) != static_cast<ssize_t>(head.length))
    lost_.fetch_add(1, std::memory_order_relaxed);
}

}  // namespace verbena::fabric
