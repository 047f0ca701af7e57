// Captures of the engine's packets as frames of at most the path MTU.
// Threads: any.
#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "device/transport/responder.h"
#include "fabric/capture.h"
#include "fabric/packet.h"

namespace verbena::device {

// Where a piece of a READ response lies in the whole of it.
struct TracePart {
  bool begins = true, ends = true;
};

class Trace {
 public:
  // Null if the file cannot be opened.
  static std::unique_ptr<Trace> open(const std::string& file);

  // A packet leaves by (host, device, port). `payload` bytes are read from wherever they lie. READ responses are cut
  // into frames of `mtu` bytes.
  void packet(const std::string& host, unsigned device, unsigned port, const fabric::Packet& packet,
              const Payload& payload, unsigned mtu, TracePart part = {});

  // The same for a frame that is one already.
  void frame(const std::string& host, unsigned device, unsigned port, std::span<const std::byte> bytes);

 private:
  explicit Trace(std::string file) : file_(std::move(file)) {}
  fabric::Capture* port(const std::string& host, unsigned device, unsigned port);

  std::string file_;
  std::mutex mutex_;
  std::map<std::string, std::unique_ptr<fabric::Capture>> ports_;
};

}  // namespace verbena::device
