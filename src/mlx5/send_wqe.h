// Building send WQEs in the ring: one function a segment, shared by ibv_post_send() and the ibv_wr_* builders.
// Segments are 16-byte multiples and 64 divides the ring, so a segment may begin at the ring's end (then it moves to
// the start) but never straddles it, except for inline data.
//
// Threads: the holder of SendQueue::lock.
#pragma once

#include <cstddef>

#include "mlx5/types.h"

namespace verbena::mlx5 {

inline constexpr std::uint32_t kIsInline = IBV_SEND_INLINE;

// fm_ce_se bits for the low three send flags: fence, signaled, solicited.
inline constexpr std::uint8_t kFlagBits[8] = {
    0,
    kFenceFull,
    kCqUpdate,
    kFenceFull | kCqUpdate,
    kSolicited,
    kFenceFull | kSolicited,
    kCqUpdate | kSolicited,
    kFenceFull | kCqUpdate | kSolicited,
};
static_assert(IBV_SEND_FENCE == 1 && IBV_SEND_SIGNALED == 2 && IBV_SEND_SOLICITED == 4);

// The fence a WQE carries: what it asked for, or what its predecessor (a bind or invalidate) left for it.
inline std::uint8_t control_bits(SendQueue& sq, unsigned send_flags) {
  std::uint8_t bits = kFlagBits[send_flags & 7] | sq.signal_bits;
  if (__builtin_expect(sq.next_fence, 0)) {
    if (!(send_flags & IBV_SEND_FENCE)) bits |= sq.next_fence;
    sq.next_fence = 0;
  }
  return bits;
}

// How many more requests fit, given what the poller has retired.
inline std::uint32_t room(const SendQueue& sq) {
  return sq.max_post - (sq.head - sq.tail.load(std::memory_order_acquire));
}

inline char* block(const SendQueue& sq, std::uint32_t index) { return sq.start + std::size_t{index} * kWqeBlock; }

inline char* wrap(const SendQueue& sq, char* at) { return __builtin_expect(at == sq.end, 0) ? sq.start : at; }

// Both halves of the control segment. `imm` is stored as it is.
inline void set_control(const SendQueue& sq, void* ctrl, std::uint32_t post, std::uint32_t opcode, std::uint32_t ds,
                        std::uint8_t bits, std::uint32_t imm) {
  const std::uint64_t first = (std::uint64_t{((post & 0xffff) << 8) | opcode} << 32) | (sq.qpn_field | ds);
  store64(ctrl, be(first));
  store64(static_cast<char*>(ctrl) + 8, (std::uint64_t{imm} << 32) | (std::uint64_t{bits} << 24));
}

inline void set_remote(char* at, std::uint64_t address, std::uint32_t rkey) {
  store64(at, be(address));
  store64(at + 8, be(std::uint64_t{rkey} << 32));
}

inline void set_data(char* at, std::uint32_t length, std::uint32_t lkey, std::uint64_t address) {
  store64(at, be((std::uint64_t{length} << 32) | lkey));
  store64(at + 8, be(address));
}

inline void set_atomic(char* at, std::uint64_t swap_or_add, std::uint64_t compare) {
  store64(at, be(swap_or_add));
  store64(at + 8, be(compare));
}

// What stands between the control segment and the operation, by transport.
enum class Transport { connected, datagram, xrc, frames };

inline void set_xrc(char* at, std::uint32_t srqn) {
  store64(at, be(std::uint64_t{srqn} << 32));
  store64(at + 8, 0);
}

inline void set_datagram(char* at, const Ah* ah, std::uint32_t qpn, std::uint32_t qkey) {
  std::memcpy(at, &ah->av, sizeof ah->av);
  store64(at, be(std::uint64_t{qkey} << 32));
  store32(at + 8, be(qpn | MLX5_EXTENDED_UD_AV));
}

// Copies without reading past `from`: two overlapping words where that covers it.
inline void copy_short(char* to, const char* from, std::uint32_t length) {
  if (length >= 8 && length <= 16) {
    const std::uint64_t head = load64(from), tail = load64(from + length - 8);
    store64(to, head);
    store64(to + length - 8, tail);
  } else {
    std::memcpy(to, from, length);
  }
}

// The Ethernet segment of a frame whose head stays with the data: checksums are all it says.
inline void set_eth(char* at, unsigned send_flags) {
  constexpr std::uint64_t kBoth = MLX5_ETH_WQE_L3_CSUM | MLX5_ETH_WQE_L4_CSUM;
  store64(at, send_flags & IBV_SEND_IP_CSUM ? kBoth << 32 : 0);
  store64(at + 8, 0);
}
// For devices that want `size` bytes of the frame in the WQE: copies them behind the length. The segment's own 16 bytes hold
// two of them.
inline constexpr std::uint32_t kEthHeadAt = offsetof(mlx5_wqe_eth_seg, inline_hdr_start);
inline std::uint32_t eth_segments(std::uint32_t head) { return head ? (kEthHeadAt + head + kSegment - 1) / kSegment : 1; }
// What is left of a list of `count` entries behind the head. Entries, or -1: the frame is shorter than its head.
int take_eth_head(char* at, std::uint32_t size, const ibv_sge* list, std::size_t count, ibv_sge* rest);
inline constexpr unsigned kMostEntries = 64;  // of any send

// Bytes of an inline segment, which alone may straddle the ring's end. Returns where the next byte goes.
inline char* copy_inline(const SendQueue& sq, char* at, const void* from, std::uint32_t length) {
  const auto* source = static_cast<const char*>(from);
  const auto left = static_cast<std::uint64_t>(sq.end - at);
  if (__builtin_expect(length > left, 0)) {
    std::memcpy(at, source, left);
    source += left;
    length -= static_cast<std::uint32_t>(left);
    at = sq.start;
  }
  copy_short(at, source, length);
  return at + length;
}

// Segments that an inline segment of `length` bytes takes, header included.
inline std::uint32_t inline_segments(std::uint32_t length) { return (length + 4 + kSegment - 1) / kSegment; }

// The UMR segments that bind a window (info.length != 0) or free a key. Returns segments added, or 0 with *error set.
std::uint32_t set_bind(const SendQueue& sq, char* at, ibv_mw_type type, std::uint32_t rkey,
                       const ibv_mw_bind_info& info, int* error);

// Makes what was posted up to sq.cur_post visible: doorbell record, then the kick. Call without the lock where
// `unlock` says so: the embedded device runs in this thread and needs no lock of ours.
void write_uar(SendQueue& sq, const char* ctrl, std::uint32_t bytes, bool blueflame);

inline void publish(SendQueue& sq) {
  // The device reads the record after the WQEs; x86 keeps stores in order, the compiler must too.
  __atomic_store_n(sq.dbrec, be(sq.cur_post & 0xffff), __ATOMIC_RELEASE);
}

}  // namespace verbena::mlx5
