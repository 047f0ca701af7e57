// Netlink messages: attributes of a request, checked; answers, gathered into datagrams as the kernel sends them.
//
// Threads: plain objects.
#pragma once

#include <linux/netlink.h>

#include <array>
#include <cstdint>
#include <cstring>
#include <functional>
#include <span>
#include <string_view>
#include <vector>

namespace verbena::kernel {

// One message of `header` and attributes. Types 1 to kMost are known; others are skipped.
class NetlinkRequest {
 public:
  static constexpr unsigned kMost = 128;

  // `message` begins with its header, whose length lies within it. False: the attributes make no sense.
  bool parse(std::span<const std::byte> message);

  const nlmsghdr& header() const { return header_; }
  bool has(unsigned type) const { return attributes_[type].data() != nullptr; }
  // Empty if it is missing.
  std::span<const std::byte> get(unsigned type) const { return attributes_[type]; }
  // False if it is missing or too short.
  bool get(unsigned type, std::uint32_t* out) const;
  // Without what follows the terminating NUL.
  bool get(unsigned type, std::string_view* out) const;

 private:
  nlmsghdr header_{};
  std::array<std::span<const std::byte>, kMost> attributes_;
};

using NetlinkSink = std::function<void(std::span<const std::byte> datagram)>;

// The answer to one request: messages, of which as many as fit go into one datagram.
class NetlinkAnswer {
 public:
  // What the kernel's buffers take; readers bring at least a page.
  static constexpr std::size_t kDatagram = 3776;

  NetlinkAnswer(const nlmsghdr& request, std::uint32_t port, const NetlinkSink& sink)
      : request_(request), port_(port), sink_(sink) {}

  void begin(std::uint16_t type, std::uint16_t flags);
  // Takes back what was added since begin().
  void cancel();
  void end();
  void put(unsigned type, std::uint8_t value) { put(type, &value, sizeof value); }
  void put(unsigned type, std::uint32_t value) { put(type, &value, sizeof value); }
  void put(unsigned type, std::uint64_t value) { put(type, &value, sizeof value); }
  void put(unsigned type, std::string_view text);
  void put(unsigned type, const void* data, std::size_t length);
  // Attributes until the matching close() lie inside this one.
  std::size_t open(unsigned type);
  void close(std::size_t nest);
  std::size_t message_bytes() const { return message_.size(); }
  // Drops what was added since the message had this size.
  void truncate(std::size_t bytes) { message_.resize(bytes); }
  // Ends a dump, or tells how the request ended. `error`: 0 or an errno.
  void done();
  void acknowledge(int error, std::span<const std::byte> request, bool capped);
  void flush();

 private:
  template <class T>
  void append(const T& value);
  void append(const void* data, std::size_t length);

  const nlmsghdr request_;
  const std::uint32_t port_;
  const NetlinkSink& sink_;
  std::vector<std::byte> datagram_, message_;
};

}  // namespace verbena::kernel
