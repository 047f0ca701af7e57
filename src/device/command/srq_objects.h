// What the kinds of shared receive queues have in common: SRQ and RMP (srq_commands.cc), XRC SRQ and XRQ
// (xrc_commands.cc). They are one kind of context and share one number space.
// Threads: under State::mutex.
#pragma once

#include "device/command/queues.h"
#include "device/command/state.h"
#include "device/shared/srq_type.h"

namespace verbena::device::command {

inline constexpr std::uint8_t kSrqGood = 1, kSrqError = 0;  // SrqContext.state

// What the commands that create one say, once their contexts are read.
struct SrqShape {
  std::uint8_t type;
  bool cyclic;
  std::uint32_t pdn;
  unsigned log_size, log_stride;
  std::uint32_t limit;
  std::uint64_t dbr_addr;
  bool dbr_umem_valid;
  std::uint32_t dbr_umem_id;
  QueueMemory memory;
  // XRC SRQ and XRQ
  std::uint32_t cqn = 0;         // 0: none
  std::uint32_t xrcd = 0;        // 0: none
  std::uint32_t user_index = 0;
};

using LiveSrq = Live<SrqRecord, SrqContext>;

// Not yet visible: the caller stores the context it was made from and publishes.
Maybe<LiveSrq> create_shared_queue(State& state, const SrqShape& shape, std::uint16_t uid);
Maybe<LiveSrq> named_srq(State& state, std::uint32_t number, std::uint16_t uid, std::uint8_t type);
Outcome destroy_shared_queue(State& state, std::uint32_t number, std::uint16_t uid, std::uint8_t type);
Outcome set_srq_limit(State& state, SrqContext& srq, std::uint32_t limit);
// How many WQEs wait in the queue: what the doorbell record says was posted, less what was taken.
std::uint32_t waiting_wqes(const SrqContext& srq);
// The parts of a work queue context that the device changes. With the context's lock held.
void read_back_wq(const SrqContext& srq, const prm::View<prm::Wq>& wq);
// The shape that a work queue context describes.
SrqShape shape_of(const prm::ConstView<prm::Wq>& wq, std::uint8_t type, std::span<const std::byte> pages);

}  // namespace verbena::device::command
