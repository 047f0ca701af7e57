// A transport packet as the bytes a RoCE port puts on the wire.
//
//   RoCE v2 (IBTA annex A17): Ethernet / IPv4 or IPv6 / UDP 4791 / BTH, extension headers, payload, pad / ICRC
//   RoCE v1 (IBTA annex A16): Ethernet 0x8915 / GRH / the same
//
// Threads: pure functions; any thread may call.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "fabric/packet.h"

namespace verbena::fabric {

// UDP source port that a flow label stands for (annex A17.9.4, as Linux computes it).
std::uint16_t flow_label_to_udp_sport(std::uint32_t flow_label);

// How long the frame of a packet with this BTH opcode and this much payload is.
std::size_t frame_bytes(Carrier carrier, std::uint8_t opcode, std::size_t payload);

// The same for a message as one packet stands for it where it goes in one piece: `packets` frames with `payload` bytes
// in all, the extension headers of `opcode` only where the first and the last frame of such a message have them.
std::uint64_t message_bytes(Carrier carrier, std::uint8_t opcode, std::uint64_t payload, std::uint32_t packets);

// Encodes `packet`, whose payload must be filled in, as one frame into `out` (cleared first; its capacity is reused).
// Returns false, with `out` empty, if no frame can say it: no address, or longer than an IP packet.
bool encode_frame(const Packet& packet, std::vector<std::byte>& out);

// The same for a transport that is encoded already: `transport` is the BTH and its extension headers, its pad count
// in agreement with payload.size(); the pad bytes and the ICRC are added here.
bool encode_frame(const Address& address, std::span<const std::byte> transport, std::span<const std::byte> payload,
                  std::vector<std::byte>& out);

}  // namespace verbena::fabric
