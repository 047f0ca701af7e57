// A Backend without a device behind it: two devices, their attributes, nodes that answer one request.
#pragma once

#include "uverbs/backend.h"

namespace verbena::preload::testing {

const uverbs::Backend& stub_backend();

}  // namespace verbena::preload::testing
