// Capture of frames to a pcapng file (draft-ietf-opsawg-pcapng) that several processes and virtual hosts write
// together.
//
// Whoever comes first writes the section header; everyone adds an interface description for each of its ports that
// is not there yet, under a lock of the file. Packet blocks are then appended by one write each, without a lock:
// O_APPEND keeps them whole. An existing capture is continued; a file that is something else is refused.
//
// Threads: write() may be called from any thread.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "support/result.h"

namespace verbena::fabric {

class Capture {
 public:
  // Opens (or creates) `path`. interfaces[i] names what write(i, ...) captures on, such as "mlx5_0/1".
  static Result<std::unique_ptr<Capture>> open(const std::string& path, const std::vector<std::string>& interfaces);

  // The name of a port as interfaces are named: "mlx5_0/1", or "HOST:mlx5_0/1" on a virtual host that was named.
  static std::string port_name(const std::string& host, unsigned device, unsigned port);

  ~Capture();
  Capture(const Capture&) = delete;
  Capture& operator=(const Capture&) = delete;

  // Appends one frame leaving by interfaces[interface] now. A frame that cannot be written (disk full) is counted as
  // lost: traffic must not suffer from being watched.
  void write(unsigned interface, std::span<const std::byte> frame);

  std::uint64_t lost() const { return lost_.load(std::memory_order_relaxed); }

 private:
  Capture(int fd, std::vector<std::uint32_t> ids) : fd_(fd), ids_(std::move(ids)) {}

  int fd_;
  std::vector<std::uint32_t> ids_;  // pcapng interface id of each of our ports
  std::atomic<std::uint64_t> lost_{0};
};

}  // namespace verbena::fabric
