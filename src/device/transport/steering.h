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

// The tables of RoCE packets: of those that arrive for the QPs of a process, and of those that these send.
enum class RoceWay : unsigned { in, out };

// Whether they let `packets` packets of `octets` bytes through, which are counted in the entries they pass. `back`: an
// answer, which goes the other way than `address` says.
bool walk_roce(Peer& owner, RoceWay way, const fabric::Address& address, bool back, std::uint32_t packets,
               std::uint64_t octets, std::uint32_t me);
inline bool passes(Peer& owner, RoceWay way, const fabric::Address& address, bool back, std::uint32_t packets,
                   std::uint64_t octets, std::uint32_t me) {
  const auto& root = owner.slice->steering.roce_root[static_cast<unsigned>(way)];
  return root.load(std::memory_order_relaxed) == 0 || walk_roce(owner, way, address, back, packets, octets, me);
}

}  // namespace verbena::device
