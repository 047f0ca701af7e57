// What the device reads of an Ethernet frame: the headers that flow entries match by and hashes are made of.
// Threads: pure functions.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "device/shared/segments.h"
#include "fabric/packet.h"

namespace verbena::device {

struct FrameHeaders {
  alignas(8) std::byte match[kMatchBytes]{};  // fte_match_set_lyr_2_4 of the frame
  bool group = false;                         // multicast or broadcast
  bool vlan = false;                          // one 802.1Q tag behind the addresses
  std::uint16_t tci = 0;
  bool ipv4 = false, ipv6 = false, tcp = false, udp = false;
  bool fragment = false;
  bool l3_ok = false, l4_ok = false;          // the checksum is right (or, of UDP, absent)
  bool tcp_ack = false, tcp_data = false;
};

// Of a frame of at least 14 bytes. Headers that are cut off count as absent.
FrameHeaders read_headers(std::span<const std::byte> frame);

// The same of the frame that carries a RoCE packet this way; `back`: in the other direction.
void read_roce_headers(const fabric::Address& address, bool back, std::byte (&match)[kMatchBytes]);

// Writes the checksums that a send asks for: of the IPv4 header, of TCP or UDP. Nothing where there is no such header.
void fill_checksums(std::span<std::byte> frame, bool l3, bool l4);

// What a TIR makes of the headers, by its function and fields. `type` is as CQEs have it (rss_hash_type).
struct FrameHash {
  std::uint32_t value = 0;
  std::uint8_t type = 0;
};
FrameHash hash_headers(const TirContext& tir, const FrameHeaders& headers);

}  // namespace verbena::device
