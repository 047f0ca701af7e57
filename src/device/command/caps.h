// Capability pages, computed from the profile: one function a page. Nothing is advertised that does not work.
// Threads: pure functions.
#pragma once

#include "device/profile.h"
#include "prm/caps.h"

namespace verbena::device::command {

// What is known of a device beside its profile.
struct CapFacts {
  const Profile& profile;
  unsigned device_index = 0;
};

// Fills `page` (zeroed) with the current values; false if the device has no such page.
bool fill_capability_page(const CapFacts& facts, prm::CapType type, prm::View<prm::HcaCapUnion> page);

}  // namespace verbena::device::command
