// One RoCE packet, decoded: the headers as values, the payload as bytes elsewhere.
//
// Between processes of one machine packets are not serialised; frame.h turns this into the Ethernet frame that
// a wire would carry (for captures and network links) and back.
// Threads: plain values.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

namespace verbena::fabric {

using Gid = std::array<std::uint8_t, 16>;
using Mac = std::array<std::uint8_t, 6>;

// How the packet is carried: RoCE v1 (EtherType 0x8915, GRH), or v2 (UDP port 4791) over IPv4 or IPv6.
enum class Carrier : std::uint8_t { roce_v1 = 0, roce_v2_ipv4 = 1, roce_v2_ipv6 = 2 };

// Everything about the way, constant for a connected QP.
struct Address {
  Gid sgid{};  // IPv4 as ::ffff:a.b.c.d
  Gid dgid{};
  Mac smac{};
  Mac dmac{};
  Carrier carrier = Carrier::roce_v2_ipv4;
  std::uint8_t hop_limit = 64;
  std::uint8_t traffic_class = 0;
  std::uint8_t sl = 0;
  std::uint32_t flow_label = 0;   // 20 bits
  std::uint16_t udp_sport = 0;    // 0xc000..0xffff as the RoCE v2 annex asks
};

struct Packet {
  const Address* address = nullptr;
  std::uint32_t dest_qpn = 0;
  std::uint32_t psn = 0;
  std::uint8_t opcode = 0;        // BTH opcode (prm/wire.h); says which of the headers below are present
  bool solicited = false;
  bool ack_request = false;
  bool migrated = true;           // BTH MigReq
  std::uint16_t pkey = 0xffff;
  std::uint32_t xrc_srqn = 0;     // XRCETH (XRC requests)
  // DETH (UD)
  std::uint32_t qkey = 0;
  std::uint32_t src_qpn = 0;      // also known (from the context) for connected QPs, though not on the wire
  // RETH, AtomicETH
  std::uint64_t va = 0;
  std::uint32_t rkey = 0;
  std::uint32_t length = 0;       // RETH DMA length
  std::uint64_t swap_add = 0;
  std::uint64_t compare = 0;
  std::uint8_t extended_bytes = 0;  // extended atomics: 4 or 8; their masks travel between our devices alone
  std::uint64_t swap_add_mask = 0;
  std::uint64_t compare_mask = 0;
  // AETH: syndrome byte as on the wire (ACK 0x00|credits, RNR NAK 0x20|timer, NAK 0x60|code), MSN
  std::uint8_t syndrome = 0;
  std::uint32_t msn = 0;
  std::uint64_t original = 0;     // AtomicAckETH
  std::uint32_t immediate = 0;    // ImmDt, host order of the big-endian wire dword
  std::uint32_t invalidate = 0;   // IETH: rkey
  // Payload as contiguous trusted bytes; pad count follows from its size. Filled in only where frames are made
  // (captures, network links): otherwise the device moves data from memory to memory, see payload_bytes.
  std::span<const std::byte> payload{};
  std::uint32_t payload_bytes = 0;
};

}  // namespace verbena::fabric
