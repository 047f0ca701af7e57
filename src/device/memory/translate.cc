#include "device/memory/translate.h"

namespace verbena::device {

namespace {

constexpr unsigned kMaxDepth = 4;  // window -> indirect region -> region, and one to spare
// Entries looked at for one range: a gigabyte in 4 KiB pages takes 2^18. Without a bound, lists of lists of short
// entries keep the device busy for hours.
constexpr std::uint32_t kMaxSteps = 1u << 20;

// What a walk needs of an mkey, read once.
struct Snapshot {
  std::uint32_t flags;
  std::uint32_t pdn, qpn;
  MkeyMode mode;
  std::uint8_t log_page;
  std::uint64_t start, length, translations;
  std::uint32_t entries;
};

KeyError read_key(NicMap& nic, Peer* owner, std::uint32_t key, Snapshot& out) {
  const std::uint32_t number = key >> 8;
  const std::uint32_t entry = nic.segment().mkey_block[number >> kLogBlock].load(std::memory_order_acquire);
  if (entry == 0) return KeyError::unknown;
  if ((entry & 0xffff) - 1 != owner->slot) return KeyError::domain;
  const std::uint32_t index = (entry >> 16) << kLogBlock | (number & ((1u << kLogBlock) - 1));
  if (index >= kMaxMkeys) return KeyError::unknown;
  const MkeyContext& m = owner->slice->mkeys[index];
  const std::uint32_t generation = m.generation.load(std::memory_order_acquire);
  if ((generation & 1) == 0 || m.key.load(std::memory_order_relaxed) != key) return KeyError::unknown;
  // What it allows and where it leads: by our own account if it is ours (own.h). Peers may still invalidate it.
  const MkeyContext& facts = owner->key_facts[index];
  const std::uint32_t free = m.flags.load(std::memory_order_acquire) & kMkeyFree;
  // Acquiring loads: whoever sees a value of a change sees in the generation that there is one.
  out.flags = facts.flags.load(std::memory_order_acquire);
  out.pdn = m.pdn;
  out.qpn = m.qpn;
  out.mode = facts.mode;
  out.log_page = facts.log_page;
  out.start = facts.start;
  out.length = facts.length;
  out.translations = facts.translations;
  out.entries = facts.entries;
  if (m.generation.load(std::memory_order_relaxed) != generation || free != 0)
    return KeyError::unknown;
  return KeyError::none;
}

bool in_range(const Snapshot& m, std::uint64_t va, std::uint64_t length) {
  if ((m.flags & kMkeyLength64) != 0) return va + length >= va || va + length == 0;
  const std::uint64_t offset = va - m.start;
  return va >= m.start && offset <= m.length && length <= m.length - offset;
}

const Translation* table_of(const Peer& owner, const Snapshot& m) {
  // A page list of ours lies in private memory.
  if (owner.own != nullptr && m.mode == MkeyMode::mtt)
    return m.entries == 0 ? nullptr
                          : reinterpret_cast<const Translation*>(reinterpret_cast<const std::byte*>(owner.slice) +
                                                                 m.translations);
  return entry_table(owner, m.translations, m.entries);
}

class Walk {
 public:
  Walk(NicMap& nic, const KeyUse& use, PieceList& out) : nic_(nic), use_(use), out_(out) {}

  KeyError key(std::uint32_t key, std::uint64_t va, std::uint64_t length, std::uint32_t rights, unsigned depth) {
    Snapshot m{};
    if (const KeyError e = read_key(nic_, use_.owner, key, m); e != KeyError::none) return e;
    if (m.pdn != use_.pdn) return KeyError::domain;
    if (!serves(m.qpn, use_.qpn)) return KeyError::domain;
    if ((m.flags & rights) != rights) return KeyError::rights;
    if (!in_range(m, va, length)) return KeyError::range;
    switch (m.mode) {
      case MkeyMode::pa:
        out_.add(use_.owner, va + m.translations, length);
        return KeyError::none;
      case MkeyMode::mtt:
        return pages(m, va, length);
      case MkeyMode::ksm:
        return equal_entries(m, va, length, rights, depth);
      case MkeyMode::klm:
        return entries(m, va, length, rights, depth);
      default:
        return KeyError::unknown;
    }
  }

 private:
  // Rights that memory under a window or an indirect key must grant: it is reached as its owner would.
  static std::uint32_t underlying(std::uint32_t rights) {
    std::uint32_t out = 0;
    if ((rights & (kMkeyRemoteWrite | kMkeyAtomic | kMkeyLocalWrite)) != 0) out |= kMkeyLocalWrite;
    if ((rights & (kMkeyRemoteRead | kMkeyLocalRead)) != 0) out |= kMkeyLocalRead;
    return out;
  }

  // Kept out of key(), which is all that a direct key needs.
  [[gnu::noinline]] KeyError pages(const Snapshot& m, std::uint64_t va, std::uint64_t length) {
    const Translation* t = table_of(*use_.owner, m);
    if (t == nullptr || m.log_page < 6 || m.log_page > 40) return KeyError::indirection;
    const std::uint64_t page = std::uint64_t{1} << m.log_page;
    // The first entry maps the page that `start` lies in.
    std::uint64_t offset = va - (m.start & ~(page - 1));
    while (length != 0) {
      const std::uint64_t i = offset >> m.log_page, inside = offset & (page - 1);
      if (i >= m.entries) return KeyError::range;
      if (++steps_ > kMaxSteps) return KeyError::indirection;
      const std::uint64_t n = std::min(length, page - inside);
      out_.add(use_.owner, t[i].va + inside, n);
      offset += n;
      length -= n;
    }
    return KeyError::none;
  }

  [[gnu::noinline]] KeyError equal_entries(const Snapshot& m, std::uint64_t va, std::uint64_t length,
                                           std::uint32_t rights, unsigned depth) {
    const Translation* t = table_of(*use_.owner, m);
    if (t == nullptr || m.log_page < 6 || m.log_page > 40 || depth >= kMaxDepth) return KeyError::indirection;
    const std::uint64_t page = std::uint64_t{1} << m.log_page;
    std::uint64_t offset = va - (m.start & ~(page - 1));
    while (length != 0) {
      const std::uint64_t i = offset >> m.log_page, inside = offset & (page - 1);
      if (i >= m.entries) return KeyError::range;
      if (++steps_ > kMaxSteps) return KeyError::indirection;
      const std::uint64_t n = std::min(length, page - inside);
      const Translation entry = t[i];
      if (const KeyError e = key(entry.key, entry.va + inside, n, underlying(rights), depth + 1); e != KeyError::none)
        return e;
      offset += n;
      length -= n;
    }
    return KeyError::none;
  }

  [[gnu::noinline]] KeyError entries(const Snapshot& m, std::uint64_t va, std::uint64_t length, std::uint32_t rights,
                                     unsigned depth) {
    const Translation* t = table_of(*use_.owner, m);
    if (t == nullptr || depth >= kMaxDepth) return KeyError::indirection;
    std::uint64_t skip = va - m.start;
    for (std::uint32_t i = 0; i < m.entries && length != 0; ++i) {
      if (++steps_ > kMaxSteps) return KeyError::indirection;
      const Translation entry = t[i];
      const std::uint32_t bytes = entry.bytes;
      const std::uint64_t size = bytes == 0 ? std::uint64_t{1} << 31 : bytes;
      if (skip >= size) {
        skip -= size;
        continue;
      }
      const std::uint64_t n = std::min(length, size - skip);
      if (const KeyError e = key(entry.key, entry.va + skip, n, underlying(rights), depth + 1); e != KeyError::none)
        return e;
      skip = 0;
      length -= n;
    }
    return length == 0 ? KeyError::none : KeyError::range;
  }

  NicMap& nic_;
  const KeyUse& use_;
  PieceList& out_;
  std::uint32_t steps_ = 0;
};

}  // namespace

Translation* entry_table(const Peer& owner, std::uint64_t offset, std::uint32_t entries) {
  const std::uint64_t bytes = std::uint64_t{entries} * sizeof(Translation);
  if (entries == 0 || offset < kArenaOffset || offset % alignof(Translation) != 0 || offset > kSliceBytes ||
      bytes > kSliceBytes - offset)
    return nullptr;
  return reinterpret_cast<Translation*>(reinterpret_cast<std::byte*>(owner.slice) + offset);
}

KeyError translate(NicMap& nic, const KeyUse& use, std::uint32_t key, std::uint64_t va, std::uint64_t length,
                   PieceList& out) {
  return Walk(nic, use, out).key(key, va, length, use.rights, 0);
}

}  // namespace verbena::device
