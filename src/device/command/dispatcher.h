// From the opcode in a mailbox to the handler of that command.
//
// Each object family has one file of handlers, which enters them into the table here. The dispatcher does what all
// commands share: lengths, field rules, uid, status and syndrome. Handlers are called with the device's mutex held:
// commands are the slow path.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "device/command/outcome.h"
#include "device/command/rules.h"
#include "prm/command.h"

namespace verbena::device::command {

struct State;

// Who may issue the command.
enum class Access : std::uint8_t {
  any,         // the driver and every user context
  privileged,  // uid 0 only
};

struct Entry {
  prm::Opcode opcode{};
  std::string_view name;  // as the PRM writes it
  std::size_t in_size = 0;
  std::size_t out_size = 0;     // shortest reply
  std::size_t layout_size = 0;  // of the whole reply; what does not fit is cut off
  std::size_t tail = 0;  // size of one element behind the input layout; 0: none allowed
  Access access = Access::any;
  std::optional<unsigned> (*check)(std::span<const std::byte> in) = nullptr;
  std::string_view (*field_at)(unsigned offset) = nullptr;
  void (*visit)(FieldVisitor& visitor) = nullptr;  // every field of the request
  Outcome (*run)(State&, std::span<const std::byte> in, std::span<std::byte> out, std::uint16_t uid) = nullptr;
};

class Registry {
 public:
  // Enters Handler: Outcome(State&, const Call<In, Out>&). Tail is the size of the elements that may follow In.
  template <auto Handler>
  void add(prm::Opcode opcode, std::string_view name, std::size_t tail = 0, Access access = Access::any) {
    add_entry(make<Handler>(Handler, opcode, name, tail, access));
  }

  // Replies of the command may be as short as their head: its layout has grown, and callers of any age are served.
  void allow_short_reply(prm::Opcode opcode) {
    entries_[index_[static_cast<std::uint16_t>(opcode)] - 1].out_size = prm::CommandOut::size;
  }

  const Entry* find(std::uint16_t opcode) const {
    return opcode < index_.size() && index_[opcode] ? &entries_[index_[opcode] - 1] : nullptr;
  }
  std::span<const Entry> entries() const { return entries_; }

 private:
  template <auto Handler, class In, class Out>
  static Entry make(Outcome (*)(State&, const Call<In, Out>&), prm::Opcode opcode, std::string_view name,
                    std::size_t tail, Access access) {
    Entry e{opcode, name, In::size, Out::size, Out::size, tail, access, &first_violation<In>, &field_name_at<In>};
    e.visit = [](FieldVisitor& visitor) { visit_fields<In>(visitor, {}, 0); };
    e.run = [](State& state, std::span<const std::byte> in, std::span<std::byte> out, std::uint16_t uid) {
      return Handler(state, Call<In, Out>{prm::ConstView<In>(in), prm::View<Out>(out), in, out, uid});
    };
    return e;
  }
  void add_entry(const Entry& entry);

  std::vector<Entry> entries_;
  std::array<std::uint16_t, 0x1000> index_{};
};

// All commands of the device.
const Registry& registry();

// Executes one mailbox. `in` is the caller's private copy of the request; the uid in its head is taken out of it (the
// layouts of some commands have none, yet every command of a user context carries it).
void execute(State& state, std::span<std::byte> in, std::span<std::byte> out);

}  // namespace verbena::device::command
