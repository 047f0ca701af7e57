// What a command handler gets and gives: typed views of the mailboxes in, success or a syndrome out.
// Threads: values only.
#pragma once

#include <cstddef>
#include <cstdint>
#include <expected>
#include <span>

#include "device/command/refusals.h"
#include "prm/command.h"

namespace verbena::device::command {

// Success, or the syndrome of the refusal. The status that goes with it stands in the table.
using Outcome = std::expected<void, Syndrome>;
template <class T>
using Maybe = std::expected<T, Syndrome>;

inline std::unexpected<Syndrome> refuse(Syndrome why) { return std::unexpected(why); }

// One command under execution. The dispatcher has checked lengths, field rules and the uid.
template <class InLayout, class OutLayout>
struct Call {
  using In = InLayout;
  using Out = OutLayout;
  prm::ConstView<In> in;
  prm::View<Out> out;                // zeroed
  std::span<const std::byte> input;  // whole request, with what follows the layout (pas[] and the like)
  std::span<std::byte> output;       // whole reply
  std::uint16_t uid;                 // 0: the driver itself

  std::span<const std::byte> tail() const { return input.subspan(In::size); }
};

}  // namespace verbena::device::command
