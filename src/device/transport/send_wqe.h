// A send WQE, copied out of the ring (its owner may scribble on it meanwhile) and taken apart.
// Threads: under the QP's sq_lock.
#pragma once

#include <cstdint>

#include "device/memory/pieces.h"
#include "device/memory/translate.h"
#include "device/shared/nic.h"
#include "prm/wqe.h"

namespace verbena::device {

struct SendWqe {
  static constexpr unsigned kMaxBytes = 63 * prm::kWqeOctoword;
  static constexpr unsigned kMaxSegments = 62;

  struct Segment {
    std::uint64_t va;      // inline data: offset in raw
    std::uint32_t lkey;
    std::uint32_t length;
    bool in_wqe;
  };

  prm::WqeOpcode opcode;
  std::uint8_t opmod;
  bool signaled, solicited, fenced;
  bool event;                       // its completion is one that a CQ armed for solicited ones waits for
  std::uint16_t index;     // position in WQEBBs
  std::uint16_t blocks;    // WQEBBs it takes
  unsigned bytes;          // of raw that are valid
  std::uint32_t immediate;
  std::uint64_t raddr;
  std::uint32_t rkey;
  std::uint64_t swap_add, compare;
  std::uint64_t swap_mask, compare_mask;  // extended atomics; of a fetch and add, `compare` has the fields' boundaries
  std::uint8_t atomic_bytes;
  std::uint8_t checksums;  // of a frame: which are to be written (prm::EthCsFlag)
  const std::byte* address_vector;  // UD
  std::uint32_t xrc_srqn;  // XRC
  unsigned control;        // offset of what follows the control segment (UMR)
  unsigned count;
  std::uint64_t length;    // of the message
  Segment segment[kMaxSegments];
  alignas(64) std::byte raw[1024];

  enum class Fetch : std::uint8_t { ok, bad, unreadable };
  // Reads the WQE at position `at`; `available` WQEBBs are posted. On `bad` the header fields that could be read
  // are set (opcode, index, blocks >= 1), for the error CQE.
  Fetch fetch(const QpContext& qp, Peer& self, std::uint16_t at, std::uint32_t available);
  // Its data segments as memory: `rights` of the local keys.
  KeyError gather(NicMap& nic, Peer& self, const QpContext& qp, std::uint32_t rights, PieceList& out) const;

 private:
  bool parse(const QpContext& qp);
  bool data_segments(unsigned at);
  bool frame_segments(unsigned at);
  bool extended_atomic(unsigned at);
};

}  // namespace verbena::device
