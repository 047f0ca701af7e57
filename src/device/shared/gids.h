// The port tables of a new NIC: MACs and GIDs as Linux lays them out for a RoCE port.
// Threads: the creator of a segment, under its file lock.
#pragma once

#include "device/shared/nic.h"
#include "fabric/registry.h"

namespace verbena::device {

void fill_ports(NicSegment& segment, const NicConfig& config);
// Tells the registry every GID of the segment; harmless if it knows them.
void register_gids(const NicSegment& segment, fabric::Registry& registry);

}  // namespace verbena::device
