#include "device/command/dispatcher.h"

#include <algorithm>
#include <cstring>
#include <mutex>

#include "device/command/families.h"
#include "device/command/state.h"

namespace verbena::device::command {
namespace {

// Writes the head of the reply; as much of it as `out` has room for.
void answer(std::span<std::byte> out, prm::Status status, std::uint32_t syndrome) {
  if (out.empty()) return;
  prm::Box<prm::CommandOut> head;
  head.set<prm::CommandOut::status>(status).set<prm::CommandOut::syndrome>(syndrome);
  std::memcpy(out.data(), head.data(), std::min<std::size_t>(out.size(), 8));
}

void answer(std::span<std::byte> out, Syndrome why) { answer(out, status_of(why), static_cast<std::uint32_t>(why)); }

// What every command must get right before its handler sees it.
Outcome admit(const State& state, const Entry& entry, std::span<const std::byte> in, std::span<std::byte> out,
              std::uint16_t uid) {
  const bool tail_ok = entry.tail ? in.size() >= entry.in_size && (in.size() - entry.in_size) % entry.tail == 0
                                  : in.size() == entry.in_size;
  if (!tail_ok) return refuse(Syndrome::input_length);
  if (out.size() < entry.out_size) return refuse(Syndrome::output_length);
  if (!state.initialised && entry.opcode > prm::Opcode::set_driver_version)
    return refuse(Syndrome::hca_not_initialised);
  if (uid == 0 || uid == prm::kSharedResourceUid) return {};
  if (entry.access == Access::privileged) return refuse(Syndrome::uid_not_privileged);
  if (!state.uctxs.find(uid)) return refuse(Syndrome::uid_unknown);
  return {};
}

// Whether the PRM has a command in this group of opcodes; tells "not here" from "nowhere".
bool is_known_opcode(std::uint16_t opcode) {
  constexpr std::uint16_t kGroups[][2] = {{0x100, 0x11f}, {0x200, 0x20f}, {0x300, 0x30f}, {0x400, 0x40f},
                                          {0x500, 0x51f}, {0x600, 0x60f}, {0x700, 0x78f}, {0x800, 0x84f},
                                          {0x900, 0x96f}, {0xa00, 0xa0f}, {0xb00, 0xb1f}};
  return std::ranges::any_of(kGroups, [&](const auto& g) { return opcode >= g[0] && opcode <= g[1]; });
}

}  // namespace

void Registry::add_entry(const Entry& entry) {
  entries_.push_back(entry);
  index_[static_cast<std::uint16_t>(entry.opcode)] = static_cast<std::uint16_t>(entries_.size());
}

const Registry& registry() {
  static const Registry all = [] {
    Registry r;
    add_hca_commands(r);
    add_domain_commands(r);
    add_uctx_commands(r);
    add_mkey_commands(r);
    add_eq_commands(r);
    add_cq_commands(r);
    add_srq_commands(r);
    add_xrc_commands(r);
    add_qp_commands(r);
    add_mcg_commands(r);
    add_vport_commands(r);
    add_roce_commands(r);
    add_counter_commands(r);
    add_register_commands(r);
    add_lag_commands(r);
    add_memic_commands(r);
    add_qos_commands(r);
    add_raw_commands(r);
    add_receive_commands(r);
    add_flow_commands(r);
    add_general_commands(r);
    return r;
  }();
  return all;
}

void execute(State& state, std::span<std::byte> in, std::span<std::byte> out) {
  std::fill(out.begin(), out.end(), std::byte{0});
  if (in.size() < prm::CommandIn::size) return answer(out, Syndrome::input_length);
  const prm::View<prm::CommandIn> head(in);
  const auto opcode = static_cast<std::uint16_t>(head.get<prm::CommandIn::opcode>());
  const Entry* entry = registry().find(opcode);
  if (!entry) return answer(out, is_known_opcode(opcode) ? Syndrome::not_supported : Syndrome::unknown_opcode);

  std::lock_guard lock(state.mutex);
  const auto uid = static_cast<std::uint16_t>(head.get<prm::CommandIn::uid>());
  head.set<prm::CommandIn::uid>(0);
  if (const auto admitted = admit(state, *entry, in, out, uid); !admitted) return answer(out, admitted.error());
  if (const auto violation = entry->check(in.first(entry->in_size)))
    return answer(out, prm::Status::bad_param, rule_syndrome(opcode, *violation));
  std::vector<std::byte> whole(out.size() < entry->layout_size ? entry->layout_size : 0);
  const auto done = entry->run(state, in, whole.empty() ? out : std::span(whole), uid);
  if (!whole.empty()) std::memcpy(out.data(), whole.data(), out.size());
  if (!done) {
    std::fill(out.begin(), out.end(), std::byte{0});  // nothing of a half-made answer
    answer(out, done.error());
  }
}

}  // namespace verbena::device::command
