// From a frame's headers to the receive queues of one process: its flow tables and TIRs.
// Threads: any; takes the owner's steering lock.
#pragma once

#include <array>
#include <cstdint>

#include "device/shared/nic.h"
#include "device/transport/frame_headers.h"

namespace verbena::device {

struct FrameTarget {
  std::uint32_t rq;    // index of the QpContext
  std::uint32_t tag;   // of the last entry that had one
  FrameHash hash;
};
inline constexpr unsigned kFrameTargets = 16;

// Who sent the frame: TIRs may refuse what comes from queues beside them.
struct FrameOrigin {
  const Slice* slice;
  std::uint32_t transport_domain;
};

// The queues that get the frame of `octets` bytes; counts it in the entries it passes.
unsigned steer(Peer& owner, const FrameHeaders& headers, const FrameOrigin& origin, std::uint64_t octets,
               std::uint32_t me, std::array<FrameTarget, kFrameTargets>& out);

}  // namespace verbena::device
