// Protection domains, transport domains, UARs: objects that are a number and a use count.
#include "device/command/dispatcher.h"
#include "device/command/families.h"
#include "device/command/state.h"
#include "prm/misc.h"

namespace verbena::device::command {
namespace {

Outcome alloc_pd(State& state, const Call<prm::AllocPdIn, prm::AllocPdOut>& call) {
  const auto [number, pd] = state.pds.create(call.uid);
  if (!pd) return refuse(Syndrome::pd_none_left);
  call.out.set<prm::AllocPdOut::pd>(number);
  return {};
}

Outcome dealloc_pd(State& state, const Call<prm::DeallocPdIn, prm::DeallocPdOut>& call) {
  const auto number = call.in.get<prm::DeallocPdIn::pd>();
  const auto pd = own(state.pds.find(number), call.uid, Syndrome::pd_missing);
  if (!pd) return refuse(pd.error());
  if ((*pd)->uses) return refuse(Syndrome::pd_busy);
  state.pds.erase(number);
  return {};
}

Outcome alloc_transport_domain(State& state,
                               const Call<prm::AllocTransportDomainIn, prm::AllocTransportDomainOut>& call) {
  const auto [number, td] = state.transport_domains.create(call.uid);
  if (!td) return refuse(Syndrome::td_none_left);
  call.out.set<prm::AllocTransportDomainOut::transport_domain>(number);
  return {};
}

Outcome dealloc_transport_domain(State& state,
                                 const Call<prm::DeallocTransportDomainIn, prm::DeallocTransportDomainOut>& call) {
  const auto number = call.in.get<prm::DeallocTransportDomainIn::transport_domain>();
  const auto td = own(state.transport_domains.find(number), call.uid, Syndrome::td_missing);
  if (!td) return refuse(td.error());
  if ((*td)->uses) return refuse(Syndrome::td_busy);
  state.transport_domains.erase(number);
  return {};
}

Outcome alloc_uar(State& state, const Call<prm::AllocUarIn, prm::AllocUarOut>& call) {
  const auto [number, uar] = state.uars.create(call.uid);
  if (!uar) return refuse(Syndrome::uar_none_left);
  call.out.set<prm::AllocUarOut::uar>(number);
  return {};
}

Outcome dealloc_uar(State& state, const Call<prm::DeallocUarIn, prm::DeallocUarOut>& call) {
  const auto number = call.in.get<prm::DeallocUarIn::uar>();
  const auto uar = own(state.uars.find(number), call.uid, Syndrome::uar_missing);
  if (!uar) return refuse(uar.error());
  if ((*uar)->uses) return refuse(Syndrome::uar_busy);
  state.uars.erase(number);
  return {};
}

}  // namespace

void add_domain_commands(Registry& r) {
  using prm::Opcode;
  r.add<alloc_pd>(Opcode::alloc_pd, "ALLOC_PD");
  r.add<dealloc_pd>(Opcode::dealloc_pd, "DEALLOC_PD");
  r.add<alloc_transport_domain>(Opcode::alloc_transport_domain, "ALLOC_TRANSPORT_DOMAIN");
  r.add<dealloc_transport_domain>(Opcode::dealloc_transport_domain, "DEALLOC_TRANSPORT_DOMAIN");
  r.add<alloc_uar>(Opcode::alloc_uar, "ALLOC_UAR");
  r.add<dealloc_uar>(Opcode::dealloc_uar, "DEALLOC_UAR");
}

}  // namespace verbena::device::command
