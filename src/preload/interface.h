// The network interface of each emulated port, for programs that find their device by it (DPDK does): what ioctl(2) on
// any socket, if_nametoindex(3) and rtnetlink say of it. Nothing can be sent through it; its flags and MTU are this
// process's.
//
// Threads: any.
#pragma once

#include <net/if.h>
#include <sys/types.h>
#include <sys/uio.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "preload/state.h"

namespace verbena::preload {

std::optional<unsigned> interface_of_name(const State& state, std::string_view name);  // index of the device
std::optional<unsigned> interface_of_number(const State& state, std::uint32_t number);

// Requests on interfaces (SIOC*) that name one, as ioctl(2). kNotOurs: another is meant.
inline constexpr int kNotOurs = -2;
inline bool is_interface_request(unsigned long request) { return request >> 8 == 0x89; }
int interface_ioctl(const State& state, unsigned long request, void* argument);

// rtnetlink stays the kernel's. A program's question about our interface (RTM_GETLINK) is sent to it as a request of a
// type that it does not know and of a length to which its refusal is as long as our answer. When the refusal is received
// the answer is put in its place. So nothing is to be kept of a socket, and poll(2) and MSG_PEEK are right.

// The request to send instead of this one; empty: it is not about us.
std::vector<std::byte> disguised_question(const State& state, int fd, const iovec* pieces, std::size_t count);
// Whether any was sent: else nothing that is received need be looked at.
inline std::atomic<bool> questions_asked{false};
// Puts answers in the place of refusals among the `length` bytes that were received.
void reveal_answer(const State& state, const iovec* pieces, std::size_t count, std::size_t length);

}  // namespace verbena::preload
