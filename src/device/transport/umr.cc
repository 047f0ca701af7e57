// Work requests that change memory keys: UMR (which is also how memory windows are bound and invalidated) and
// LOCAL_INVAL.
#include "device/memory/translate.h"
#include "device/transport/requester.h"
#include "prm/wqe.h"

namespace verbena::device {

namespace {

using Mask = prm::UmrMkeyMask;

struct Right {
  std::uint64_t mask;
  std::uint32_t flag;
};

void change(std::uint32_t& flags, std::uint32_t flag, bool on) { flags = on ? flags | flag : flags & ~flag; }

void apply_rights(std::uint32_t& flags, std::uint64_t mask, const prm::ConstView<prm::Mkc>& mkc) {
  if ((mask & Mask::lr) != 0) change(flags, kMkeyLocalRead, mkc.get<prm::Mkc::lr>() != 0);
  if ((mask & Mask::lw) != 0) change(flags, kMkeyLocalWrite, mkc.get<prm::Mkc::lw>() != 0);
  if ((mask & Mask::rr) != 0) change(flags, kMkeyRemoteRead, mkc.get<prm::Mkc::rr>() != 0);
  if ((mask & Mask::rw) != 0) change(flags, kMkeyRemoteWrite, mkc.get<prm::Mkc::rw>() != 0);
  if ((mask & Mask::a) != 0) change(flags, kMkeyAtomic, mkc.get<prm::Mkc::a>() != 0);
  if ((mask & Mask::en_rinval) != 0) change(flags, kMkeyRemoteInvalidate, mkc.get<prm::Mkc::en_rinval>() != 0);
  if ((mask & Mask::free) != 0) change(flags, kMkeyFree, mkc.get<prm::Mkc::free>() != 0);
}

// The entries an inline UMR carries must name memory of the same domain: a window lies on a region.
bool entry_is_sound(Nic& nic, const QpContext& qp, const prm::ConstView<prm::Klm>& klm, std::uint32_t flags) {
  const std::uint32_t bytes = klm.get<prm::Klm::byte_count>();
  std::uint32_t rights = kMkeyLocalRead;
  if ((flags & (kMkeyRemoteWrite | kMkeyAtomic | kMkeyLocalWrite)) != 0) rights |= kMkeyLocalWrite;
  PieceList ignored;
  const KeyUse use{&nic.self(), qp.pdn, qp.qpn, rights};
  return translate(nic, use, klm.get<prm::Klm::key>(), klm.get<prm::Klm::address>(),
                   bytes == 0 ? std::uint64_t{1} << 31 : bytes, ignored) == KeyError::none;
}

// Inline lists come in blocks of 64 bytes; what is not needed of the last one is zero.
bool is_padding(const prm::ConstView<prm::Klm>& klm) {
  return klm.get<prm::Klm::byte_count>() == 0 && klm.get<prm::Klm::key>() == 0 && klm.get<prm::Klm::address>() == 0;
}

}  // namespace

bool execute_umr(Nic& nic, QpContext& qp, const SendWqe& wqe) {
  const prm::ConstView<prm::UmrCtrlSeg> umr(wqe.raw + wqe.control);
  const prm::ConstView<prm::Mkc> mkc(wqe.raw + wqe.control + prm::UmrCtrlSeg::size);
  MkeyContext* m = nic.own_mkey(wqe.immediate >> 8);
  if (m == nullptr) return false;
  SharedGuard lock(m->lock, nic.me());
  // The immediate names the mkey by its index: whoever registers again with a new variant says the new one already.
  if (!Nic::in_use(*m) || m->pdn != qp.pdn) return false;
  MkeyContext& facts = nic.facts(*m);
  std::uint32_t flags = m->flags.load() & (facts.flags.load() | kMkeyFree);
  if ((flags & kMkeyUmr) == 0) return false;
  const std::uint32_t check = umr.get<prm::UmrCtrlSeg::flags>();
  if ((check & prm::UmrFlag::check_free) != 0 && (flags & kMkeyFree) == 0) return false;
  if ((check & prm::UmrFlag::check_not_free) != 0 && (flags & kMkeyFree) != 0) return false;
  if ((check & prm::UmrFlag::check_qpn) != 0 && m->qpn != qp.qpn) return false;

  const std::uint64_t mask = umr.get<prm::UmrCtrlSeg::mkey_mask>();
  apply_rights(flags, mask, mkc);
  const std::uint32_t octowords = umr.get<prm::UmrCtrlSeg::klm_octowords>();
  std::uint32_t entries = 0;
  Translation* table = nullptr;
  if ((check & prm::UmrFlag::inline_) != 0 && octowords != 0) {
    const unsigned at = wqe.control + prm::UmrCtrlSeg::size + prm::Mkc::size;
    const std::uint32_t room = facts.mode == MkeyMode::mtt ? 0u : std::uint32_t{facts.entries};  // page lists: with keys that need them
    table = entry_table(nic.self(), facts.translations, room);
    if (table == nullptr || at >= wqe.bytes) return false;
    entries = std::min({octowords, room, static_cast<std::uint32_t>((wqe.bytes - at) / prm::Klm::size)});
    for (std::uint32_t i = 0; i < entries; ++i) {
      const prm::ConstView<prm::Klm> klm(wqe.raw + at + i * prm::Klm::size);
      if (i != 0 && is_padding(klm)) {
        entries = i;
        break;
      }
      if (!entry_is_sound(nic, qp, klm, flags)) return false;
    }
  } else if (octowords != 0) {
    return false;  // entry lists in memory: with the key types that need them
  }

  m->generation.fetch_add(1, std::memory_order_acq_rel);  // nobody uses it meanwhile
  if (entries != 0) {
    const unsigned at = wqe.control + prm::UmrCtrlSeg::size + prm::Mkc::size;
    for (std::uint32_t i = 0; i < entries; ++i) {
      const prm::ConstView<prm::Klm> klm(wqe.raw + at + i * prm::Klm::size);
      table[i] = {klm.get<prm::Klm::address>(), klm.get<prm::Klm::byte_count>(), klm.get<prm::Klm::key>()};
    }
    m->parent = table[0].key;
  }
  if ((mask & Mask::start_addr) != 0) m->start = facts.start = mkc.get<prm::Mkc::start_addr>();
  if ((mask & Mask::len) != 0) m->length = facts.length = mkc.get<prm::Mkc::len>();
  if ((mask & Mask::qpn) != 0) m->qpn = mkc.get<prm::Mkc::qpn>();
  if ((mask & Mask::pd) != 0 && mkc.get<prm::Mkc::pd>() == qp.pdn) m->pdn = qp.pdn;
  if ((mask & Mask::key) != 0) m->key.store((wqe.immediate & ~0xffu) | mkc.get<prm::Mkc::mkey_7_0>());
  facts.flags.store(flags);
  m->flags.store(flags);
  m->generation.fetch_add(1, std::memory_order_release);
  return true;
}

bool execute_local_invalidate(Nic& nic, QpContext& qp, std::uint32_t key) {
  MkeyContext* m = nic.own_mkey(key >> 8);
  if (m == nullptr) return false;
  SharedGuard lock(m->lock, nic.me());
  if (!Nic::in_use(*m) || m->pdn != qp.pdn || m->key.load() != key) return false;
  const std::uint32_t flags = m->flags.load();
  if ((flags & (kMkeyUmr | kMkeyFree)) != kMkeyUmr) return false;
  if (!serves(m->qpn, qp.qpn)) return false;
  m->flags.fetch_or(kMkeyFree);
  return true;
}

}  // namespace verbena::device
