// CREATE_MKEY, QUERY_MKEY, DESTROY_MKEY, QUERY_SPECIAL_CONTEXTS.
//
// A direct key (access mode PA) has no table: registering costs the same for 4 KiB and for 4 GiB. The tables of the
// other modes are copied into the device's own memory, so the guest cannot change them afterwards.
#include <algorithm>
#include <cstring>

#include "device/command/dispatcher.h"
#include "device/command/families.h"
#include "device/command/queues.h"
#include "device/command/state.h"
#include "prm/mkey.h"

namespace verbena::device::command {
namespace {

using prm::Mkc;
using In = prm::CreateMkeyIn;
using Mode = prm::MkeyAccessMode;
constexpr std::uint32_t kOctword = 16;
constexpr std::uint64_t kMaxPages = 1ull << 24;

std::uint32_t flags_of(const prm::ConstView<Mkc>& mkc) {
  std::uint32_t flags = 0;
  const auto add = [&](std::uint32_t on, std::uint32_t flag) { flags |= on ? flag : 0; };
  add(mkc.get<Mkc::free>(), kMkeyFree);
  add(mkc.get<Mkc::lw>(), kMkeyLocalWrite);
  add(mkc.get<Mkc::lr>(), kMkeyLocalRead);
  add(mkc.get<Mkc::rw>(), kMkeyRemoteWrite);
  add(mkc.get<Mkc::rr>(), kMkeyRemoteRead);
  add(mkc.get<Mkc::a>(), kMkeyAtomic);
  add(mkc.get<Mkc::umr_en>(), kMkeyUmr);
  add(mkc.get<Mkc::length64>(), kMkeyLength64);
  add(mkc.get<Mkc::en_rinval>(), kMkeyRemoteInvalidate);
  add(mkc.get<Mkc::relaxed_ordering_write>(), kMkeyRelaxed);
  return flags;
}

// What the device cannot do, whatever the rest says.
Outcome check_features(const Call<In, prm::CreateMkeyOut>& call, const prm::ConstView<Mkc>& mkc) {
  if (call.in.get<In::pg_access>()) return refuse(Syndrome::mkey_odp);
  if (mkc.get<Mkc::bsf_en>() || mkc.get<Mkc::bsf_octword_size>()) return refuse(Syndrome::mkey_signature);
  if (mkc.get<Mkc::crypto_en>()) return refuse(Syndrome::mkey_crypto);
  if (mkc.get<Mkc::ma_translation_mode>()) return refuse(Syndrome::mkey_ats);
  switch (prm::mkey_access_mode(mkc)) {
    case Mode::pa:
    case Mode::mtt:
    case Mode::klms:
    case Mode::ksm:
    case Mode::memic:
      return {};
    case Mode::sw_icm:
      return refuse(Syndrome::mkey_device_memory);
  }
  return refuse(Syndrome::mkey_access_mode);
}

// Entries that the table must hold: what the request carries, or what a later UMR may fill in.
Maybe<std::uint32_t> table_entries(const State& state, const Call<In, prm::CreateMkeyOut>& call, Mode mode,
                                   std::uint32_t* given) {
  const auto mkc = call.in.sub<In::memory_key_mkey_entry>();
  const std::uint64_t per_octword = mode == Mode::mtt ? 2 : 1;
  const std::uint64_t capacity = mkc.get<Mkc::translations_octword_size>() * per_octword;
  const std::uint64_t actual = call.in.get<In::translations_octword_actual_size>() * per_octword;
  if (actual * (kOctword / per_octword) > call.tail().size()) return refuse(Syndrome::mkey_table_short);
  if (actual > capacity) return refuse(Syndrome::mkey_table_size);
  // The limit is on indirection; a page list may be as long as memory is large.
  const std::uint64_t limit = mode == Mode::mtt ? kMaxPages : 1ull << state.profile.limits.log_max_klm_list_size;
  if (std::max(capacity, actual) > limit) return refuse(Syndrome::mkey_table_limit);
  if (mkc.get<Mkc::free>() ? capacity == 0 && !mkc.get<Mkc::umr_en>() : actual == 0)
    return refuse(Syndrome::mkey_table_empty);
  *given = static_cast<std::uint32_t>(actual);
  return static_cast<std::uint32_t>(std::max(capacity, actual));
}

void copy_table(const Call<In, prm::CreateMkeyOut>& call, Mode mode, unsigned log_page, std::uint32_t given,
                Translation* table) {
  for (std::uint32_t i = 0; i < given; ++i) {
    if (mode == Mode::mtt) {
      const auto page = call.in.at<In::pages>(i).get<prm::Pas::address>();
      table[i] = {page & ~0xffull, log_page < 32 ? 1u << log_page : 0, 0};
    } else {
      const auto klm = call.in.at<In::klms>(i);
      const std::uint32_t bytes =
          mode == Mode::ksm ? (log_page < 32 ? 1u << log_page : 0) : klm.get<prm::Klm::byte_count>();
      table[i] = {klm.get<prm::Klm::address>(), bytes, klm.get<prm::Klm::key>()};
    }
  }
}

// A key over a UMEM needs no table: the UMEM is one run of addresses.
Outcome place_in_umem(State& state, const Call<In, prm::CreateMkeyOut>& call, MkeyContext& key,
                      std::uint32_t* umem_id) {
  const std::uint32_t id = call.in.get<In::mkey_umem_id>();
  Umem* umem = state.umems.find(id);
  if (!umem || !may_use(*umem, call.uid)) return refuse(Syndrome::mkey_umem_missing);
  const std::uint64_t offset = call.in.get<In::mkey_umem_offset>();
  if (offset > umem->bytes || key.length > umem->bytes - offset) return refuse(Syndrome::mkey_umem_short);
  const auto writes = kMkeyLocalWrite | kMkeyRemoteWrite | kMkeyAtomic;
  if (!umem->writable && (key.flags.load(std::memory_order_relaxed) & writes))
    return refuse(Syndrome::mkey_umem_read_only);
  key.mode = MkeyMode::pa;
  key.translations = umem->va + offset - key.start;
  *umem_id = id;
  return {};
}

// Device memory counts from zero; start_addr says where in the BAR it lies.
Outcome place_in_memic(State& state, MkeyContext& key, std::uint64_t* area) {
  if (!state.memic.holding(key.start, key.length, area)) return refuse(Syndrome::mkey_memic);
  key.mode = MkeyMode::pa;
  key.translations = reinterpret_cast<std::uint64_t>(state.memic.at(key.start));
  key.start = 0;
  return {};
}

// What a key lies in, to be counted as used.
struct Ground {
  std::uint32_t umem = Backing::kNone;
  std::uint64_t memic = 0;
};

Outcome fill(State& state, const Call<In, prm::CreateMkeyOut>& call, MkeyContext& key, Ground* ground) {
  const auto mkc = call.in.sub<In::memory_key_mkey_entry>();
  const Mode mode = prm::mkey_access_mode(mkc);
  key.pdn = mkc.get<Mkc::pd>();
  key.qpn = mkc.get<Mkc::qpn>();
  key.flags.store(flags_of(mkc), std::memory_order_relaxed);
  key.mode = static_cast<MkeyMode>(mode);
  key.log_page = static_cast<std::uint8_t>(mkc.get<Mkc::log_page_size>());
  key.uid = call.uid;
  key.start = mkc.get<Mkc::start_addr>();
  key.length = mkc.get<Mkc::len>();
  if (call.in.get<In::mkey_umem_valid>()) {
    if (mode != Mode::mtt) return refuse(Syndrome::mkey_umem_mode);
    if (mkc.get<Mkc::length64>()) return refuse(Syndrome::mkey_length64_mode);
    return place_in_umem(state, call, key, &ground->umem);
  }
  if (mode == Mode::memic) {
    if (mkc.get<Mkc::length64>()) return refuse(Syndrome::mkey_length64_mode);
    return place_in_memic(state, key, &ground->memic);
  }
  if (mode == Mode::pa) {
    if (!mkc.get<Mkc::length64>() && key.start + key.length < key.start) return refuse(Syndrome::mkey_range);
    return {};
  }
  if (mkc.get<Mkc::length64>() && mode == Mode::mtt) return refuse(Syndrome::mkey_length64_mode);
  std::uint32_t given = 0;
  const auto entries = table_entries(state, call, mode, &given);
  if (!entries) return refuse(entries.error());
  if (mode == Mode::mtt && !mkc.get<Mkc::free>()) {
    const std::uint64_t page = 1ull << key.log_page;
    if (key.log_page < 12) return refuse(Syndrome::mkey_page_size);
    if (((key.start & (page - 1)) + key.length) > std::uint64_t{given} * page)
      return refuse(Syndrome::mkey_table_cover);
  }
  if (*entries == 0) return {};
  key.translations = state.nic.alloc_table(*entries);
  if (!key.translations) return refuse(Syndrome::mkey_no_table_memory);
  key.entries = *entries;
  copy_table(call, mode, key.log_page, given, state.nic.table(key.translations));
  return {};
}

Outcome create_mkey(State& state, const Call<In, prm::CreateMkeyOut>& call) {
  const auto mkc = call.in.sub<In::memory_key_mkey_entry>();
  if (auto ok = check_features(call, mkc); !ok) return ok;
  Pd* pd = state.pds.find(mkc.get<Mkc::pd>());
  if (!pd || !may_use(*pd, call.uid)) return refuse(Syndrome::mkey_pd);
  if (state.mkeys.size() >= 1ull << state.profile.limits.log_max_mkey) return refuse(Syndrome::mkey_none_left);

  MkeyContext* key = state.nic.alloc_mkey();
  if (!key) return refuse(Syndrome::mkey_none_left);
  Ground ground;
  if (auto ok = fill(state, call, *key, &ground); !ok) {
    state.nic.free_mkey(*key);
    return ok;
  }
  const std::uint32_t index = key->key.load(std::memory_order_relaxed) >> 8;
  key->key.store(index << 8 | mkc.get<Mkc::mkey_7_0>(), std::memory_order_relaxed);
  MkeyRecord& record = state.mkeys.create(index, call.uid);
  std::memcpy(record.context.data(), mkc.data(), Mkc::size);
  record.umem = ground.umem;
  record.memic = ground.memic;
  record.table = key->translations;
  record.entries = key->entries;
  ++pd->uses;
  if (ground.umem != Backing::kNone) ++state.umems.find(ground.umem)->uses;
  if (ground.memic) ++state.memic.areas[ground.memic].uses;
  if (key->mode == MkeyMode::pa && !mkc.get<Mkc::length64>() && !ground.memic) {
    record.memory_va = key->start + key->translations;
    record.memory_bytes = key->length;
    state.engine.registered(record.memory_va, record.memory_bytes);
  }
  call.out.set<prm::CreateMkeyOut::mkey_index>(index);
  state.nic.publish(*key);
  return {};
}

// The live context: UMR and window binds change keys after they were made.
void read_back(const MkeyContext& key, prm::View<Mkc> mkc) {
  const std::uint32_t flags = key.flags.load(std::memory_order_relaxed);
  mkc.set<Mkc::free>(!!(flags & kMkeyFree));
  mkc.set<Mkc::lw>(!!(flags & kMkeyLocalWrite)).set<Mkc::lr>(!!(flags & kMkeyLocalRead));
  mkc.set<Mkc::rw>(!!(flags & kMkeyRemoteWrite)).set<Mkc::rr>(!!(flags & kMkeyRemoteRead));
  mkc.set<Mkc::relaxed_ordering_write>(!!(flags & kMkeyRelaxed));
  mkc.set<Mkc::a>(!!(flags & kMkeyAtomic)).set<Mkc::length64>(!!(flags & kMkeyLength64));
  mkc.set<Mkc::mkey_7_0>(key.key.load(std::memory_order_relaxed) & 0xff);
  mkc.set<Mkc::qpn>(key.qpn).set<Mkc::pd>(key.pdn);
  mkc.set<Mkc::start_addr>(key.start).set<Mkc::len>(key.length);
}

Outcome query_mkey(State& state, const Call<prm::QueryMkeyIn, prm::QueryMkeyOut>& call) {
  const auto index = call.in.get<prm::QueryMkeyIn::mkey_index>();
  const auto record = own(state.mkeys.find(index), call.uid, Syndrome::mkey_missing);
  if (!record) return refuse(record.error());
  const MkeyContext* key = state.nic.own_mkey(index);
  if (!key) return refuse(Syndrome::mkey_missing);
  const auto mkc = call.out.sub<prm::QueryMkeyOut::memory_key_mkey_entry>();
  std::memcpy(mkc.data(), (*record)->context.data(), Mkc::size);
  read_back(*key, mkc);
  if ((*record)->memic) mkc.set<Mkc::start_addr>((*record)->context.get<Mkc::start_addr>());
  if (call.in.get<prm::QueryMkeyIn::pg_access>() && (*record)->entries) {
    const Translation* table = state.nic.table((*record)->table);
    auto* to = call.out.bytes<prm::QueryMkeyOut::bsf0_klm0_pas_mtt0_1>().data();
    for (std::uint32_t i = 0; i < std::min<std::uint32_t>(2, (*record)->entries); ++i, to += kOctword) {
      const prm::View<prm::Klm> klm(to);
      klm.set<prm::Klm::byte_count>(table[i].bytes).set<prm::Klm::key>(table[i].key);
      klm.set<prm::Klm::address>(table[i].va);
    }
  }
  return {};
}

Outcome destroy_mkey(State& state, const Call<prm::DestroyMkeyIn, prm::DestroyMkeyOut>& call) {
  const auto index = call.in.get<prm::DestroyMkeyIn::mkey_index>();
  const auto record = own(state.mkeys.find(index), call.uid, Syndrome::mkey_missing);
  if (!record) return refuse(record.error());
  MkeyContext* key = state.nic.own_mkey(index);
  if (!key) return refuse(Syndrome::mkey_missing);
  if (Pd* pd = state.pds.find((*record)->context.get<Mkc::pd>()); pd && pd->uses) --pd->uses;
  if (Umem* umem = state.umems.find((*record)->umem); umem && umem->uses) --umem->uses;
  if (const auto it = state.memic.areas.find((*record)->memic); it != state.memic.areas.end() && it->second.uses)
    --it->second.uses;
  state.nic.free_mkey(*key);
  if ((*record)->memory_bytes) state.engine.unregistered((*record)->memory_va, (*record)->memory_bytes);
  if ((*record)->entries) state.nic.free_table((*record)->table, (*record)->entries);
  state.mkeys.erase(index);
  return {};
}

// No reserved key, no null key, no dump-fill key: all read as zero, and their capabilities are off.
Outcome query_special_contexts(State&, const Call<prm::QuerySpecialContextsIn, prm::QuerySpecialContextsOut>&) {
  return {};
}

}  // namespace

void add_mkey_commands(Registry& r) {
  using prm::Opcode;
  r.add<create_mkey>(Opcode::create_mkey, "CREATE_MKEY", prm::Dword::size);
  r.add<query_mkey>(Opcode::query_mkey, "QUERY_MKEY");
  r.add<destroy_mkey>(Opcode::destroy_mkey, "DESTROY_MKEY");
  r.add<query_special_contexts>(Opcode::query_special_contexts, "QUERY_SPECIAL_CONTEXTS");
}

}  // namespace verbena::device::command
