// Protection, transport and XRC domains, PSVs, UARs: objects that are a number and a use count.
#include "device/command/dispatcher.h"
#include "device/command/families.h"
#include "device/command/state.h"
#include "prm/misc.h"
#include "prm/mkey.h"

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

Outcome alloc_xrcd(State& state, const Call<prm::AllocXrcdIn, prm::AllocXrcdOut>& call) {
  const std::uint32_t number = state.nic.alloc_xrcd();
  if (!number) return refuse(Syndrome::xrcd_none_left);
  state.xrcds.create(number, call.uid);
  call.out.set<prm::AllocXrcdOut::xrcd>(number);
  return {};
}

Outcome dealloc_xrcd(State& state, const Call<prm::DeallocXrcdIn, prm::DeallocXrcdOut>& call) {
  const auto number = call.in.get<prm::DeallocXrcdIn::xrcd>();
  const auto xrcd = own(state.xrcds.find(number), call.uid, Syndrome::xrcd_missing);
  if (!xrcd) return refuse(xrcd.error());
  if ((*xrcd)->uses) return refuse(Syndrome::xrcd_busy);
  state.xrcds.erase(number);
  state.nic.leave_xrcd(number);
  return {};
}

void erase_psv(State& state, std::uint32_t number) {
  if (Pd* pd = state.pds.find(state.psvs.find(number)->pd)) --pd->uses;
  state.psvs.erase(number);
}

// As many as are asked for, or none.
Outcome create_psv(State& state, const Call<prm::CreatePsvIn, prm::CreatePsvOut>& call) {
  const std::uint32_t wanted = call.in.get<prm::CreatePsvIn::num_psv>(), pdn = call.in.get<prm::CreatePsvIn::pd>();
  if (wanted < 1 || wanted > 4) return refuse(Syndrome::psv_count);
  Pd* pd = state.pds.find(pdn);
  if (!pd || !may_use(*pd, call.uid)) return refuse(Syndrome::psv_pd);
  std::uint32_t numbers[4]{};
  for (std::uint32_t i = 0; i < wanted; ++i) {
    const auto [number, psv] = state.psvs.create(call.uid);
    if (!psv) {
      while (i > 0) erase_psv(state, numbers[--i]);
      return refuse(Syndrome::psv_none_left);
    }
    numbers[i] = number;
    psv->pd = pdn;
    ++pd->uses;
  }
  using Out = prm::CreatePsvOut;
  call.out.set<Out::psv0_index>(numbers[0]).set<Out::psv1_index>(numbers[1]);
  call.out.set<Out::psv2_index>(numbers[2]).set<Out::psv3_index>(numbers[3]);
  return {};
}

Outcome destroy_psv(State& state, const Call<prm::DestroyPsvIn, prm::DestroyPsvOut>& call) {
  const auto number = call.in.get<prm::DestroyPsvIn::psvn>();
  const auto psv = own(state.psvs.find(number), call.uid, Syndrome::psv_missing);
  if (!psv) return refuse(psv.error());
  erase_psv(state, number);
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
  r.add<alloc_xrcd>(Opcode::alloc_xrcd, "ALLOC_XRCD");
  r.add<dealloc_xrcd>(Opcode::dealloc_xrcd, "DEALLOC_XRCD");
  r.add<create_psv>(Opcode::create_psv, "CREATE_PSV");
  r.add<destroy_psv>(Opcode::destroy_psv, "DESTROY_PSV");
  r.add<alloc_uar>(Opcode::alloc_uar, "ALLOC_UAR");
  r.add<dealloc_uar>(Opcode::dealloc_uar, "DEALLOC_UAR");
}

}  // namespace verbena::device::command
