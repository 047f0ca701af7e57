// The attributes of a QP: which of them each transition takes, whether a value is possible, where it is stored.
//
// An attribute is a bit. Those that opt_param_mask can name have the bit they have there (prm::QpOptParam); the others
// come with certain transitions and cannot be named.
// Threads: under State::mutex; apply() also under both locks of the QP.
#pragma once

#include <cstdint>

#include "device/command/outcome.h"
#include "device/command/state.h"
#include "device/shared/contexts.h"
#include "prm/qp.h"

namespace verbena::device::command {

using Attributes = std::uint64_t;
namespace attr {
using Opt = prm::QpOptParam;
inline constexpr Attributes access = Opt::rre | Opt::rwe | Opt::rae;
inline constexpr Attributes mtu = 1ull << 32;  // with log_msg_max
inline constexpr Attributes remote_qpn = 1ull << 33;
inline constexpr Attributes receive_psn = 1ull << 34;
inline constexpr Attributes send_psn = 1ull << 35;
inline constexpr Attributes udp_sport = 1ull << 36;    // of opt_param_mask_95_32
inline constexpr Attributes leaf = 1ull << 38;         // of opt_param_mask_95_32, in the extended context
inline constexpr Attributes ack_request = 1ull << 37;  // log_ack_req_freq
}  // namespace attr

// One command of the state machine.
struct Transition {
  prm::Opcode opcode;
  QpState from;
  QpState to;
  struct Set {
    Attributes required;  // always taken from the context in the request
    Attributes optional;  // taken if opt_param_mask names them
  } rc, uc, ud;

  const Set& set(QpType type) const { return is_reliable(type) ? rc : type == QpType::uc ? uc : ud; }
};

// The transition of a command; null if it is not one of those with attributes.
const Transition* find_transition(prm::Opcode opcode);

// Is every one of `which` possible as `qpc` has it? Refuses with the attribute's own syndrome.
Outcome check_attributes(State& state, QpType type, const prm::ConstView<prm::Qpc>& qpc, Attributes which,
                         std::uint16_t uid);

// Copies the attributes between contexts, as the PRM lays them out.
void copy_attributes(const prm::ConstView<prm::Qpc>& from, const prm::View<prm::Qpc>& to, Attributes which);

// Puts the attributes into the live context.
void apply_attributes(const prm::ConstView<prm::Qpc>& qpc, Attributes which, QpContext& qp);

}  // namespace verbena::device::command
