// Which device commands a program may issue, through which DEVX method, and which object each of them names.
//
// The kernel lets a program use the device's own commands but stays the owner of objects: a create is remembered with the
// command that undoes it, and a query or a change must name the object whose handle comes with it.
// Threads: pure functions.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "prm/command.h"

namespace verbena::kernel {

// An object of the device: the command that makes its kind, the type if that is CREATE_GENERAL_OBJECT, its number.
struct ObjectId {
  prm::Opcode kind{};
  std::uint16_t type = 0;
  std::uint32_t number = 0;
  bool operator==(const ObjectId&) const = default;
};

// All spans hold a general command header at least (GeneralObjInCmdHdr, GeneralObjOutCmdHdr).
using Mailbox = std::span<const std::byte>;

bool is_object_create(Mailbox in);
// The object that a query or a change names; nothing if the command is not one that is allowed there.
std::optional<ObjectId> queried_object(Mailbox in);
std::optional<ObjectId> modified_object(Mailbox in);
// Commands about the device as a whole.
bool is_general_command(Mailbox in);
// Those that need no user context of the program's: they tell what the device can do.
bool is_open_to_all(Mailbox in);
// Commands for another function; those about objects go through that function's own driver.
bool is_tunnelled(Mailbox in);

// After a create succeeded: what was made, and the request that destroys it.
ObjectId created_object(Mailbox in, Mailbox out);
std::vector<std::byte> destroy_request(Mailbox in, const ObjectId& object, std::uint16_t uid);

// Says in a command that its memory is in UMEMs: addresses of its own a program may not name. `in` is the whole request.
void require_umem(std::span<std::byte> in);

}  // namespace verbena::kernel
