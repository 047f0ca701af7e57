// A transport packet as the bytes a RoCE port puts on the wire.
//
//   RoCEv2 (IBTA RoCEv2 annex A17): Ethernet / IPv4 or IPv6 / UDP 4791 / BTH ... payload, pad / ICRC
//   RoCEv1 (IBTA RoCE annex A16):   Ethernet 0x8915 / GRH / BTH ... payload, pad / ICRC
//
// Threads: pure functions; any thread may call.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace verbena::fabric {

using Mac = std::array<std::uint8_t, 6>;
using Gid = std::array<std::uint8_t, 16>;

inline constexpr std::uint16_t kRoceV2Port = 4791;

// True for ::ffff:a.b.c.d, the GID of an IPv4 address; RoCEv2 then uses an IPv4 header.
bool is_ipv4_mapped(const Gid& gid);

// UDP source port that a flow label stands for (the rule of the RoCEv2 annex that Linux follows).
std::uint16_t flow_label_to_udp_sport(std::uint32_t flow_label);

// Everything of a frame that is not the IB transport.
struct FrameAddress {
  bool roce_v1 = false;
  Mac source_mac{};
  Mac destination_mac{};
  Gid source_gid{};
  Gid destination_gid{};
  std::uint8_t traffic_class = 0;
  std::uint8_t hop_limit = 64;
  std::uint32_t flow_label = 0;
  std::uint16_t udp_sport = 0;  // 0: derived from the flow label
};

// Encodes one frame into `out` (cleared first; its capacity is reused). `transport` is the BTH and its extension
// headers, whose pad count must fit payload.size(); the pad bytes and the ICRC are added here.
// Returns false, with `out` empty, if the packet cannot be a frame: shorter than a BTH, or longer than an IP packet.
bool encode_frame(const FrameAddress& address, std::span<const std::byte> transport, std::span<const std::byte> payload,
                  std::vector<std::byte>& out);

}  // namespace verbena::fabric
