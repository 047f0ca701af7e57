#include "device/memory/maps.h"

#include <fcntl.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include <algorithm>
#include <cinttypes>
#include <cstdio>
#include <cstring>
#include <string_view>

namespace verbena::device {

namespace {
std::string read_all(const char* path) {
  std::string text;
  const int fd = open(path, O_RDONLY | O_CLOEXEC);
  if (fd < 0) return text;
  std::size_t used = 0;
  for (;;) {
    text.resize(used + (64 << 10));
    const ssize_t n = read(fd, text.data() + used, text.size() - used);
    if (n <= 0) break;
    used += static_cast<std::size_t>(n);
  }
  close(fd);
  text.resize(used);
  return text;
}

bool parse(const char* line, Mapping& m, bool& inaccessible) {
  char perms[5] = {};
  unsigned major_number = 0, minor_number = 0;
  int name_at = 0;
  if (std::sscanf(line, "%" SCNx64 "-%" SCNx64 " %4s %" SCNx64 " %x:%x %" SCNu64 " %n", &m.start, &m.end, perms,
                  &m.offset, &major_number, &minor_number, &m.inode, &name_at) < 7)
    return false;
  m.read = perms[0] == 'r';
  m.write = perms[1] == 'w';
  m.shared = perms[3] == 's';
  m.device = makedev(major_number, minor_number);
  const std::string_view name(line + name_at);
  m.named = !name.empty() && name != "[heap]" && !name.starts_with("[anon");
  inaccessible = perms[0] == '-' && perms[1] == '-' && perms[2] == '-' && m.inode == 0;
  return true;
}
}  // namespace

std::vector<Mapping> own_mappings() {
  std::string text = read_all("/proc/self/maps");
  std::vector<Mapping> out;
  std::uint64_t guard_end = 0;
  for (char* line = text.data(); line < text.data() + text.size();) {
    char* end = static_cast<char*>(std::memchr(line, '\n', static_cast<std::size_t>(text.data() + text.size() - line)));
    if (end == nullptr) break;
    *end = '\0';
    Mapping m{};
    bool inaccessible = false;
    if (parse(line, m, inaccessible)) {
      m.below_guard = m.start == guard_end;
      if (inaccessible) guard_end = m.end;
      out.push_back(m);
    }
    line = end + 1;
  }
  return out;
}

const Mapping* mapping_of(const std::vector<Mapping>& all, std::uint64_t va) {
  const auto after = std::upper_bound(all.begin(), all.end(), va, [](std::uint64_t v, const Mapping& m) { return v < m.end; });
  return after != all.end() && after->start <= va ? &*after : nullptr;
}

}  // namespace verbena::device
