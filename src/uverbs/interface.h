// What the network interface of a device's port is called. The kernel's role names it, and the virtual node shows it.
#pragma once

#include <cstdint>

namespace verbena::uverbs {

// That of the device `index` has the number kFirstInterface + index, far from those of the machine's own, and a name as
// udev gives it to a card on the PCI bus c8.
inline constexpr std::uint32_t kFirstInterface = 200000;
inline constexpr char kInterfaceName[] = "enp200s%unp0";

}  // namespace verbena::uverbs
