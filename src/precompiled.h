// What nearly every source includes, compiled once (target precompiled): parsing these takes longer than compiling
// most of our files. Sources still include what they use; `./dev lint` and the fuzz preset compile without this.
#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <bit>
#include <cerrno>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <expected>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "prm/command.h"
#include "prm/cq.h"
#include "prm/eq.h"
#include "prm/mkey.h"
#include "prm/misc.h"
#include "prm/port.h"
#include "prm/qp.h"
