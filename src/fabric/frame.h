// A transport packet as the bytes a RoCE port puts on the wire.
//
//   RoCEv2 (IBTA RoCEv2 annex A17): Ethernet / IPv4 or IPv6 / UDP 4791 / BTH ... payload, pad / ICRC
//   RoCEv1 (IBTA RoCE annex A16):   Ethernet 0x8915 / GRH / BTH ... payload, pad / ICRC
//
// Threads: pure functions; any thread may call.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "fabric/packet.h"

namespace verbena::fabric {

inline constexpr std::uint16_t kRoceV2Port = 4791;

// UDP source port that a flow label stands for (the rule of the RoCEv2 annex that Linux follows).
std::uint16_t flow_label_to_udp_sport(std::uint32_t flow_label);

// Encodes one frame into `out` (cleared first; its capacity is reused). `transport` is the BTH and its extension
// headers, whose pad count must fit payload.size(); the pad bytes and the ICRC are added here.
// Returns false, with `out` empty, if the packet cannot be a frame: shorter than a BTH, or longer than an IP packet.
bool encode_frame(const Address& address, std::span<const std::byte> transport, std::span<const std::byte> payload,
                  std::vector<std::byte>& out);

}  // namespace verbena::fabric
