// User contexts (the uid in every command) and the memory they declare for their queues.
#include <algorithm>

#include "device/command/dispatcher.h"
#include "device/command/families.h"
#include "device/command/queues.h"
#include "device/command/state.h"
#include "prm/misc.h"

namespace verbena::device::command {
namespace {

constexpr std::uint32_t kUctxCaps = 0;  // raw transmit and device-internal resources: neither is offered

Outcome create_uctx(State& state, const Call<prm::CreateUctxIn, prm::CreateUctxOut>& call) {
  const auto cap = call.in.sub<prm::CreateUctxIn::uctx>().get<prm::Uctx::cap>();
  if (cap & ~kUctxCaps) return refuse(Syndrome::uctx_cap);
  const auto [number, uctx] = state.uctxs.create(0);
  if (!uctx) return refuse(Syndrome::uctx_none_left);
  uctx->cap = cap;
  call.out.set<prm::CreateUctxOut::uid>(number);
  return {};
}

Outcome destroy_uctx(State& state, const Call<prm::DestroyUctxIn, prm::DestroyUctxOut>& call) {
  const auto uid = call.in.get<prm::DestroyUctxIn::uid>();
  if (!state.uctxs.find(uid)) return refuse(Syndrome::uctx_missing);
  if (state.counts.of(static_cast<std::uint16_t>(uid))) return refuse(Syndrome::uctx_busy);
  state.uctxs.erase(uid);
  return {};
}

Outcome create_umem(State& state, const Call<prm::CreateUmemIn, prm::CreateUmemOut>& call) {
  const auto umem = call.in.sub<prm::CreateUmemIn::umem>();
  if (umem.get<prm::Umem::ats>()) return refuse(Syndrome::umem_ats);
  const std::uint64_t entries = umem.get<prm::Umem::num_of_mtt>();
  const auto tail = call.tail();
  if (entries == 0 || entries > tail.size() / prm::Mtt::size) return refuse(Syndrome::umem_entries);
  const unsigned log_page = umem.get<prm::Umem::log_page_size>() + 12;
  const std::uint64_t page = 1ull << log_page;
  const std::uint64_t offset = umem.get<prm::Umem::page_offset>();
  if (offset >= page) return refuse(Syndrome::umem_page_offset);

  // An entry is an address and, in its low two bits, what may be done there.
  const std::uint64_t first = prm::load_be64(tail.data()) & ~0xffull;
  std::uint64_t rights = 3;
  for (std::uint64_t i = 0; i < entries; ++i) {
    const std::uint64_t entry = prm::load_be64(tail.data() + i * prm::Mtt::size);
    rights &= entry;
    if ((entry & ~0xffull) != first + (i << log_page)) return refuse(Syndrome::umem_scattered);
  }
  if (!(rights & 1)) return refuse(Syndrome::umem_rights);
  const std::uint64_t bytes = (entries << log_page) - offset;
  if (first + (entries << log_page) < first || entries > (~0ull >> log_page)) return refuse(Syndrome::umem_not_mapped);
  // The last page may reach past what the program mapped, if pages of the UMEM are larger than the system's.
  if (!is_mapped(first + offset, 1)) return refuse(Syndrome::umem_not_mapped);

  const auto [number, object] = state.umems.create(call.uid);
  if (!object) return refuse(Syndrome::umem_none_left);
  object->va = first + offset;
  object->bytes = bytes;
  object->writable = rights & 2;
  state.engine.registered(object->va, bytes);
  call.out.set<prm::CreateUmemOut::umem_id>(number);
  return {};
}

Outcome destroy_umem(State& state, const Call<prm::DestroyUmemIn, prm::DestroyUmemOut>& call) {
  const auto number = call.in.get<prm::DestroyUmemIn::umem_id>();
  const auto umem = own(state.umems.find(number), call.uid, Syndrome::umem_missing);
  if (!umem) return refuse(umem.error());
  if ((*umem)->uses) return refuse(Syndrome::umem_busy);
  state.engine.unregistered((*umem)->va, (*umem)->bytes);
  state.umems.erase(number);
  return {};
}

}  // namespace

void add_uctx_commands(Registry& r) {
  using prm::Opcode;
  r.add<create_uctx>(Opcode::create_uctx, "CREATE_UCTX", 0, Access::privileged);
  r.add<destroy_uctx>(Opcode::destroy_uctx, "DESTROY_UCTX", 0, Access::privileged);
  r.add<create_umem>(Opcode::create_umem, "CREATE_UMEM", prm::Mtt::size);
  r.add<destroy_umem>(Opcode::destroy_umem, "DESTROY_UMEM");
}

}  // namespace verbena::device::command
