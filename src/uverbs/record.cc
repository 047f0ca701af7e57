// The recording backend (record.h).
#include "uverbs/record.h"

#include <fcntl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "uverbs/record_names.h"

namespace verbena::uverbs {
namespace {

struct Recorder {
  const Backend* backend = nullptr;
  const UserMemory* memory = nullptr;
  std::string path;
};
// Written once, before the table that leads here is handed out.
Recorder recorder;

// The file is opened for each line: a descriptor that is kept could be closed, and its number reused, by the program.
void write_line(const std::string& members) {
  const std::string line = "{\"process\":" + std::to_string(getpid()) + ",\"thread\":" +
                           std::to_string(syscall(SYS_gettid)) + ',' + members + "}\n";
  const int fd = ::open(recorder.path.c_str(), O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0666);
  if (fd < 0) return;
  [[maybe_unused]] const ssize_t written = ::write(fd, line.data(), line.size());
  ::close(fd);
}

// Characters that JSON wants escaped do not occur in what is worth telling.
std::string plain(const std::string& text) {
  std::string kept;
  for (char c : text)
    if (c >= ' ' && c != '"' && c != '\\') kept += c;
  return kept;
}

void write_start() {
  std::string name;
  std::getline(std::ifstream("/proc/self/comm"), name);
  write_line("\"call\":\"start\",\"program\":\"" + plain(name) + '"');
}

std::string member(const char* name, std::int64_t value) {
  return std::string(",\"") + name + "\":" + std::to_string(value);
}

int open_recorded(int index) {
  const int fd = recorder.backend->open(index);
  const int error = errno;
  write_line("\"call\":\"open\"" + member("device", index) + member("errno", fd < 0 ? error : 0) + member("new fd", fd));
  errno = error;
  return fd;
}

int ioctl_recorded(int fd, ib_uverbs_ioctl_hdr* header) {
  const RequestRecord record(header, *recorder.memory);
  const int saved = errno;
  const int result = recorder.backend->ioctl(fd, header);
  const int error = result ? errno : saved;
  write_line("\"call\":\"ioctl\"" + member("fd", fd) + ',' + record.finish(result ? error : 0));
  errno = error;
  return result;
}

void* mmap_recorded(void* addr, std::size_t length, int prot, int flags, int fd, std::int64_t offset) {
  void* const result = recorder.backend->mmap(addr, length, prot, flags, fd, offset);
  const int error = errno;
  const bool failed = result == reinterpret_cast<void*>(-1);
  write_line("\"call\":\"mmap\"" + member("fd", fd) + ",\"page\":\"" +
             std::string(mmap_name(static_cast<std::uint64_t>(offset))) + '"' + member("offset", offset) +
             member("length", static_cast<std::int64_t>(length)) + member("prot", prot) + member("flags", flags) +
             member("errno", failed ? error : 0));
  errno = error;
  return result;
}

}  // namespace

const Backend& recorded(const Backend& backend, const UserMemory& memory) {
  static Backend table;
  const char* path = std::getenv("VERBENA_RECORD");
  if (!path || !*path) return backend;
  if (recorder.backend) return recorder.backend == &backend ? table : backend;
  std::error_code error;
  recorder = {&backend, &memory, std::filesystem::absolute(path, error).string()};
  table = backend;
  table.open = open_recorded;
  table.ioctl = ioctl_recorded;
  table.mmap = mmap_recorded;
  write_start();
  return table;
}

}  // namespace verbena::uverbs
