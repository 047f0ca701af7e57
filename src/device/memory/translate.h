// From a memory key, an address and a length to pieces of memory, with every check the hardware makes.
// Threads: any; reads shared contexts and trusts nothing in them.
#pragma once

#include "device/memory/pieces.h"
#include "device/shared/nic.h"

namespace verbena::device {

enum class KeyError : std::uint8_t {
  none,
  unknown,     // no such key, wrong variant, free
  domain,      // of another protection domain, process or (type-2 window) QP
  rights,
  range,
  indirection  // entry table inconsistent or nested too deeply
};

struct KeyUse {
  Peer* owner;            // the process whose QP uses the key
  std::uint32_t pdn;
  std::uint32_t qpn;      // see serves()
  std::uint32_t rights;   // kMkey* bits that the key must grant
};

// mkc.qpn: the one QP that may use the key (a type 2 window is its binder's), or any.
inline bool serves(std::uint32_t bound, std::uint32_t qpn) { return bound == 0xffffff || bound == 0 || bound == qpn; }

// Appends the pieces of [va, va + length) under `key`. On error the list's content is unspecified.
KeyError translate(NicMap& nic, const KeyUse& use, std::uint32_t key, std::uint64_t va, std::uint64_t length,
                   PieceList& out);

// The entry table of an indirect key (MkeyContext.translations, .entries), or null unless it lies wholly in the owner's
// arena.
Translation* entry_table(const Peer& owner, std::uint64_t offset, std::uint32_t entries);

}  // namespace verbena::device
