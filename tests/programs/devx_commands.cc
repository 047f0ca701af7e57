// Every command that a program may give the device, given through DEVX and seen in what the device then does or says.
// At the end docs/devx.md says which commands there are: one that was not shown here is a failure.
#include <string>
#include <vector>

#include "devx_frames.h"
#include "prm/admin.h"
#include "prm/general_object.h"
#include "prm/scheduling.h"
#include "../devx_table.h"

namespace {

using prm::Opcode;
using prm::QpServiceType;

// Commands without a success to show here, and why.
const std::pair<const char*, const char*> kElsewhere[] = {
    {"QUERY_SRQ", "of what CREATE_SRQ makes, the driver's: tests/unit/device"},
    {"DESTROY_SRQ", "of what CREATE_SRQ makes"},
    {"ARM_RQ", "of what CREATE_SRQ makes"},
};

// ---- facts about the device ----

void facts(World* w) {
  ibv_device_attr attr;
  CHECK(!ibv_query_device(w->context, &attr));
  Command<prm::QueryHcaCapIn, prm::QueryHcaCapOut> cap(Opcode::query_hca_cap);
  cap.in.set<prm::QueryHcaCapIn::op_mod>(1);  // general, as they are
  GENERAL(cap, w);
  const auto general = prm::ConstView<prm::CmdHcaCap>(cap.out.data() + 16);
  CHECK(attr.max_qp == 1 << general.get<prm::CmdHcaCap::log_max_qp>() &&
        attr.max_cq == 1 << general.get<prm::CmdHcaCap::log_max_cq>());
  Command<prm::QueryAdapterIn, prm::QueryAdapterOut> adapter(Opcode::query_adapter);
  GENERAL(adapter, w);
  CHECK(!std::memcmp(adapter.out.sub<prm::QueryAdapterOut::query_adapter_struct>()
                         .bytes<prm::QueryAdapterParamBlock::vsd_contd_psid>()
                         .data(),
                     "MT_", 3));
  Command<prm::QueryIssiIn, prm::QueryIssiOut> issi(Opcode::query_issi);
  GENERAL(issi, w);
  CHECK(issi.out.get<prm::QueryIssiOut::current_issi>() == 1);
  Command<prm::NopIn, prm::NopOut> nop(Opcode::nop);
  GENERAL(nop, w);

  Command<prm::QueryVportStateIn, prm::QueryVportStateOut> vport(Opcode::query_vport_state);
  GENERAL(vport, w);
  CHECK(vport.out.get<prm::QueryVportStateOut::state>() == prm::VportState::up);
  Command<prm::QueryNicVportContextIn, prm::QueryNicVportContextOut> nic(Opcode::query_nic_vport_context);
  GENERAL(nic, w);
  const auto nvc = nic.out.sub<prm::QueryNicVportContextOut::nic_vport_context>();
  const auto mac = nvc.sub<prm::NicVportContext::permanent_address>();
  // The link-local address is made of the MAC.
  CHECK(nvc.get<prm::NicVportContext::roce_en>() == 1);
  CHECK((mac.get<prm::MacAddressLayout::mac_addr_31_0>() & 0xffffff) ==
        (prm::load_be32(reinterpret_cast<std::byte*>(w->gid.raw) + 12) & 0xffffff));
  Command<prm::QueryEswVportContextIn, prm::QueryEswVportContextOut> esw(Opcode::query_esw_vport_context);
  GENERAL(esw, w);
  const auto steered = esw.out.sub<prm::QueryEswVportContextOut::esw_vport_context>();
  mlx5dv_port port = {};
  CHECK(!mlx5dv_query_port(w->context, 1, &port));
  CHECK(steered.get<prm::EswVportContext::sw_steering_vport_icm_address_rx>() == port.vport_steering_icm_rx &&
        steered.get<prm::EswVportContext::sw_steering_vport_icm_address_tx>() == port.vport_steering_icm_tx);
  Command<prm::QueryHcaVportContextIn, prm::QueryHcaVportContextOut> hca(Opcode::query_hca_vport_context);
  hca.in.set<prm::QueryHcaVportContextIn::port_num>(1);
  GENERAL(hca, w);
  CHECK(hca.out.sub<prm::QueryHcaVportContextOut::hca_vport_context>().get<prm::HcaVportContext::node_guid>() ==
        be64toh(ibv_get_device_guid(w->context->device)));
  Command<prm::QueryRoceAddressIn, prm::QueryRoceAddressOut> address(Opcode::query_roce_address);
  address.in.set<prm::QueryRoceAddressIn::roce_address_index>(static_cast<std::uint32_t>(w->gid_index))
      .set<prm::QueryRoceAddressIn::vhca_port_num>(1);
  GENERAL(address, w);
  CHECK(!std::memcmp(address.out.sub<prm::QueryRoceAddressOut::roce_address>().data(), w->gid.raw, 16));
  Command<prm::QueryLagIn, prm::QueryLagOut> lag(Opcode::query_lag);
  GENERAL(lag, w);
  const auto lagc = lag.out.sub<prm::QueryLagOut::ctx>();
  CHECK(lagc.get<prm::Lagc::lag_state>() == 1 && lagc.get<prm::Lagc::tx_remap_affinity_1>() == 1 &&
        lagc.get<prm::Lagc::tx_remap_affinity_2>() == 2);
}

std::uint64_t octets_sent(World* w) {
  Command<prm::QueryVportCounterIn, prm::QueryVportCounterOut> count(Opcode::query_vport_counter);
  GENERAL(count, w);
  return count.out.sub<prm::QueryVportCounterOut::transmitted_ib_unicast>().get<prm::TrafficCounter::octets>();
}

void small_objects(World* w, Memory& m) {
  Command<prm::QueryMkeyIn, prm::QueryMkeyOut> key(Opcode::query_mkey);
  key.in.set<prm::QueryMkeyIn::mkey_index>(m.key.number);
  QUERY(key, m.key);
  CHECK(key.out.sub<prm::QueryMkeyOut::memory_key_mkey_entry>().get<prm::Mkc::len>() == Memory::kBytes);
  Command<prm::CreatePsvIn, prm::CreatePsvOut> psv(Opcode::create_psv);
  psv.in.set<prm::CreatePsvIn::num_psv>(1).set<prm::CreatePsvIn::pd>(m.pd.number);
  const Object first = made<prm::CreatePsvOut::psv0_index>(w, psv, Opcode::destroy_psv);
  const Object second = made<prm::CreatePsvOut::psv0_index>(w, psv, Opcode::destroy_psv);
  CHECK(first.number != second.number);
  CHECK(mlx5dv_devx_obj_destroy(m.pd.handle) == EINVAL);  // keys and PSVs are of it
}

// ---- queue pairs ----

void connected(World* w, Memory& m) {
  CompletionQueue cq(m);
  Command<prm::AllocQCounterIn, prm::AllocQCounterOut> set(Opcode::alloc_q_counter);
  const Object counters = made<prm::AllocQCounterOut::counter_set_id>(w, set, Opcode::dealloc_q_counter);
  QueuePair a(m, cq, QpServiceType::rc, [](auto) {}), b(m, cq, QpServiceType::rc, [](auto) {});
  const std::size_t from = m.take(4096), to = m.take(4096);
  a.to_init();
  b.to_init(counters.number);
  // What INIT2INIT takes away, the responder refuses; RTS2RTS gives it back.
  b.go(Opcode::init2init_qp, prm::QpOptParam::rwe, [](auto qpc) { qpc.template set<prm::Qpc::rwe>(0); });
  a.connect(b.object.number);
  b.connect(a.object.number);
  CHECK(!b.state().sub<prm::QueryQpOut::qpc>().get<prm::Qpc::rwe>());
  b.go(Opcode::rts2rts_qp, prm::QpOptParam::rwe, [](auto qpc) { qpc.template set<prm::Qpc::rwe>(1); });
  const std::uint64_t before = octets_sent(w);
  std::strcpy(m.base + from, "by hand");
  a.write(from, 4096, to);
  CHECK(cq.next().get<prm::Cqe64::opcode>() == prm::CqeOpcode::req && !std::strcmp(m.base + to, "by hand"));
  CHECK(octets_sent(w) >= before + 4096);
  Command<prm::QueryQCounterIn, prm::QueryQCounterOut> count(Opcode::query_q_counter);
  count.in.set<prm::QueryQCounterIn::counter_set_id>(counters.number);
  QUERY(count, counters);
  CHECK(count.out.get<prm::QueryQCounterOut::rx_write_requests>() == 1);

  QueryCq query(Opcode::query_cq);
  query.in.set<prm::QueryCqIn::cqn>(cq.object.number);
  Command<prm::ModifyCqIn, prm::ModifyCqOut> change(Opcode::modify_cq);
  change.in.set<prm::ModifyCqIn::cqn>(cq.object.number);
  store_be32(change.in.data() + 0xc, 3);  // modify_field_select: period and count
  change.in.sub<prm::ModifyCqIn::cq_context>().set<prm::Cqc::cq_max_count>(9);
  MODIFY(change, cq.object);
  QUERY(query, cq.object);
  CHECK(query.out.sub<prm::QueryCqOut::cq_context>().get<prm::Cqc::cq_max_count>() == 9);

  b.receive(to, 64);
  Command<prm::Qp2errIn, prm::Qp2errOut> error(Opcode::qp_2err);
  error.in.set<prm::Qp2errIn::qpn>(b.object.number);
  MODIFY(error, b.object);
  CHECK(cq.next().get<prm::Cqe64::opcode>() == prm::CqeOpcode::resp_err && b.is(prm::QpState::err));
  Command<prm::Qp2rstIn, prm::Qp2rstOut> reset(Opcode::qp_2rst);
  reset.in.set<prm::Qp2rstIn::qpn>(b.object.number);
  MODIFY(reset, b.object);
  CHECK(b.is(prm::QpState::rst));
}

// A request that fails locally stops the send queue of an unreliable service; SQERR2RTS starts it again.
void unreliable(Memory& m) {
  CompletionQueue cq(m), other(m);
  QueuePair a(m, cq, QpServiceType::uc, [](auto) {}), b(m, other, QpServiceType::uc, [](auto) {});
  for (QueuePair* q : {&a, &b}) q->to_init();
  a.connect(b.object.number);
  b.connect(a.object.number);
  const std::size_t data = m.take(128);
  a.send(data, 16, 0xdead00);
  CHECK(cq.next().get<prm::Cqe64::opcode>() == prm::CqeOpcode::req_err);
  CHECK(soon([&] { return a.is(prm::QpState::sqer); }));
  a.go(Opcode::sqerr2rts_qp, 0, [](auto) {});
  CHECK(a.is(prm::QpState::rts));
  b.receive(data + 64, 64);
  std::memset(m.base + data, 0x5a, 16);
  a.send(data, 16);
  CHECK(cq.next().get<prm::Cqe64::opcode>() == prm::CqeOpcode::req);
  CHECK(other.next().get<prm::Cqe64::byte_cnt>() == 16 && m.base[data + 79] == 0x5a);
}

void groups(World* w, Memory& m) {
  CompletionQueue cq(m), other(m);
  QueuePair a(m, cq, QpServiceType::ud, [](auto) {}), b(m, other, QpServiceType::ud, [](auto) {});
  for (QueuePair* q : {&a, &b}) {
    q->to_init();
    q->go(Opcode::init2rtr_qp, 0, [](auto qpc) { qpc.template set<prm::Qpc::mtu>(prm::QpMtu::mtu_1k); });
    q->go(Opcode::rtr2rts_qp, 0, [](auto) {});
  }
  const std::size_t data = m.take(256);
  ::ibv_gid group;
  CHECK(inet_pton(AF_INET6, "ff0e::ffff:e001:0309", &group) == 1);
  const auto send = [&] {
    a.post(prm::WqeOpcode::send, data, 16, [&](std::byte* at) {
      prm::View<prm::UdAdrsVector> av(at);
      av.set<prm::UdAdrsVector::qkey>(0x1234).set<prm::UdAdrsVector::ext>(1).set<prm::UdAdrsVector::destination_qp_dct>(
          0xffffff);
      av.set<prm::UdAdrsVector::grh>(1)
          .set<prm::UdAdrsVector::src_addr_index>(static_cast<std::uint32_t>(w->gid_index))
          .set<prm::UdAdrsVector::hop_limit>(1);
      std::memcpy(av.bytes<prm::UdAdrsVector::rgid_rip>().data(), group.raw, 16);
      return 3u;
    });
    CHECK(cq.next().get<prm::Cqe64::opcode>() == prm::CqeOpcode::req);
  };
  b.receive(data + 64, 128);
  Command<prm::AttachToMcgIn, prm::AttachToMcgOut> attach(Opcode::attach_to_mcg);
  attach.in.set<prm::AttachToMcgIn::qpn>(b.object.number);
  std::memcpy(attach.in.bytes<prm::AttachToMcgIn::multicast_gid>().data(), group.raw, 16);
  mlx5dv_devx_obj* member = attach.create(w->context);
  CHECK(note(attach, member ? 0 : errno));
  send();
  CHECK(other.next().get<prm::Cqe64::byte_cnt>() == 16 + 40);
  CHECK(!mlx5dv_devx_obj_destroy(member));
  accepted.insert(static_cast<unsigned>(Opcode::detach_from_mcg));
  b.receive(data + 64, 128);
  send();
  CHECK(!soon([&] { return other.ready(); }, 20));
}

// ---- receives that queue pairs share, and their limit events ----

void pools(World* w, Memory& m) {
  CompletionQueue cq(m), other(m);
  Pool pool(m), idle(m);
  for (Pool* p : {&pool, &idle}) {
    Command<prm::CreateRmpIn, prm::CreateRmpOut> create(Opcode::create_rmp);
    create.in.sub<prm::CreateRmpIn::ctx>().set<prm::Rmpc::state>(prm::RmpState::rdy);
    m.fill_wq(create.in.sub<prm::CreateRmpIn::ctx>().sub<prm::Rmpc::wq>(), prm::WqType::linked_list, 6, Pool::kLog,
              p->ring, p->record);
    p->object = made<prm::CreateRmpOut::rmpn>(w, create, Opcode::destroy_rmp);
  }
  QueuePair a(m, cq, QpServiceType::rc, [](auto) {});
  QueuePair b(m, other, QpServiceType::rc, [&](auto qpc) {
    qpc.template set<prm::Qpc::rq_type>(prm::RqType::srq_rmp_xrq)
        .template set<prm::Qpc::srqn_rmpn_xrqn>(pool.object.number);
  });
  for (QueuePair* q : {&a, &b}) q->to_init();
  a.connect(b.object.number);
  b.connect(a.object.number);
  const std::size_t data = m.take(128);
  const Channel channel(w, pool.object.handle, prm::EventType::srq_rq_limit, 21),
      quiet(w, idle.object.handle, prm::EventType::srq_rq_limit, 22);
  for (unsigned i = 0; i < 4; ++i) pool.receive(data + 64, 64);
  const auto set_limit = [&](const Object& of, std::uint32_t limit) {
    using In = prm::ModifyRmpIn;
    Command<In, prm::ModifyRmpOut> arm(Opcode::modify_rmp);
    arm.in.set<In::rmpn>(of.number).set<In::rmp_state>(prm::RmpState::rdy);
    arm.in.sub<In::bitmask>().set<prm::RmpBitmask::lwm>(1);
    arm.in.sub<In::ctx>().set<prm::Rmpc::state>(prm::RmpState::rdy);
    arm.in.sub<In::ctx>().sub<prm::Rmpc::wq>().set<prm::Wq::lwm>(limit);
    MODIFY(arm, of);
  };
  set_limit(pool.object, 3);
  for (unsigned i = 0; i < 2; ++i) {
    a.send(data, 16);
    CHECK(cq.next().get<prm::Cqe64::opcode>() == prm::CqeOpcode::req);
    CHECK(other.next().get<prm::Cqe64::wqe_counter>() == i);
  }
  channel.expect(prm::EventType::srq_rq_limit, 21, pool.object.number, prm::QpEventObject::rq);
  CHECK(!quiet.readable(0));
  Command<prm::QueryRmpIn, prm::QueryRmpOut> query(Opcode::query_rmp);
  query.in.set<prm::QueryRmpIn::rmpn>(pool.object.number);
  QUERY(query, pool.object);
  const auto wq = query.out.sub<prm::QueryRmpOut::rmp_context>().sub<prm::Rmpc::wq>();
  CHECK(wq.get<prm::Wq::hw_counter>() == 2 && wq.get<prm::Wq::sw_counter>() == 4 && wq.get<prm::Wq::lwm>() == 0);
  CHECK(mlx5dv_devx_obj_destroy(pool.object.handle) == EINVAL);  // a queue pair stands on it
}

void xrc(World* w, Memory& m) {
  CompletionQueue cq(m), received(m);
  Command<prm::AllocXrcdIn, prm::AllocXrcdOut> alloc(Opcode::alloc_xrcd);
  const Object domain = made<prm::AllocXrcdOut::xrcd>(w, alloc, Opcode::dealloc_xrcd);
  Pool srq(m);
  using In = prm::CreateXrcSrqIn;
  Command<In, prm::CreateXrcSrqOut> create(Opcode::create_xrc_srq);
  create.in.set<In::xrc_srq_umem_id>(m.umem->umem_id)
      .set<In::xrc_srq_umem_valid>(1)
      .set<In::xrc_srq_umem_offset>(srq.ring);
  const auto context = create.in.sub<In::xrc_srq_context_entry>();
  context.set<prm::XrcSrqc::xrcd>(domain.number)
      .set<prm::XrcSrqc::cqn>(received.object.number)
      .set<prm::XrcSrqc::pd>(m.pd.number);
  context.set<prm::XrcSrqc::log_rq_stride>(2)
      .set<prm::XrcSrqc::log_xrc_srq_size>(Pool::kLog)
      .set<prm::XrcSrqc::user_index>(0x321);
  context.set<prm::XrcSrqc::dbr_umem_id>(m.umem->umem_id)
      .set<prm::XrcSrqc::dbr_umem_valid>(1)
      .set<prm::XrcSrqc::dbr_addr>(srq.record);
  srq.object = made<prm::CreateXrcSrqOut::xrc_srqn>(w, create, Opcode::destroy_xrc_srq);
  const auto both_halves = [&](auto qpc) {
    qpc.template set<prm::Qpc::rq_type>(prm::RqType::zero_size).template set<prm::Qpc::xrcd>(domain.number);
  };
  QueuePair a(m, cq, QpServiceType::xrc, both_halves), b(m, cq, QpServiceType::xrc, both_halves);
  for (QueuePair* q : {&a, &b}) q->to_init();
  a.connect(b.object.number);
  b.connect(a.object.number);
  const std::size_t data = m.take(128);
  const Channel channel(w, srq.object.handle, prm::EventType::srq_rq_limit, 31);
  for (unsigned i = 0; i < 2; ++i) srq.receive(data + 64, 64);
  Command<prm::ArmXrcSrqIn, prm::ArmXrcSrqOut> arm(Opcode::arm_xrc_srq);
  arm.in.set<prm::ArmXrcSrqIn::op_mod>(1)
      .set<prm::ArmXrcSrqIn::xrc_srqn>(srq.object.number)
      .set<prm::ArmXrcSrqIn::lwm>(2);
  MODIFY(arm, srq.object);
  CHECK(!channel.readable(0));
  std::memset(m.base + data, 0x6b, 16);
  a.post(prm::WqeOpcode::send, data, 16, [&](std::byte* at) {
    prm::View<prm::XrcSeg>(at).set<prm::XrcSeg::xrc_srqn>(srq.object.number);
    return 1u;
  });
  CHECK(cq.next().get<prm::Cqe64::opcode>() == prm::CqeOpcode::req);
  CHECK(received.next().get<prm::Cqe64::srqn_uidx>() == 0x321 && m.base[data + 79] == 0x6b);
  channel.expect(prm::EventType::srq_rq_limit, 31, srq.object.number);
  Command<prm::QueryXrcSrqIn, prm::QueryXrcSrqOut> query(Opcode::query_xrc_srq);
  query.in.set<prm::QueryXrcSrqIn::xrc_srqn>(srq.object.number);
  QUERY(query, srq.object);
  CHECK(query.out.sub<prm::QueryXrcSrqOut::xrc_srq_context_entry>().get<prm::XrcSrqc::wqe_cnt>() == 1);
}

void xrqs(World* w, Memory& m) {
  CompletionQueue cq(m);
  Pool queue(m);
  Command<prm::CreateXrqIn, prm::CreateXrqOut> create(Opcode::create_xrq);
  const auto context = create.in.sub<prm::CreateXrqIn::xrq_context>();
  context.set<prm::Xrqc::cqn>(cq.object.number);
  m.fill_wq(context.sub<prm::Xrqc::wq>(), prm::WqType::linked_list, 6, Pool::kLog, queue.ring, queue.record);
  queue.object = made<prm::CreateXrqOut::xrqn>(w, create, Opcode::destroy_xrq);
  for (unsigned i = 0; i < 4; ++i) queue.receive(0, 64);
  Command<prm::ArmXrqIn, prm::ArmXrqOut> arm(Opcode::arm_xrq);
  arm.in.set<prm::ArmXrqIn::xrqn>(queue.object.number).set<prm::ArmXrqIn::lwm>(2);
  MODIFY(arm, queue.object);
  Command<prm::QueryXrqIn, prm::QueryXrqOut> query(Opcode::query_xrq);
  query.in.set<prm::QueryXrqIn::xrqn>(queue.object.number);
  QUERY(query, queue.object);
  const auto wq = query.out.sub<prm::QueryXrqOut::xrq_context>().sub<prm::Xrqc::wq>();
  CHECK(wq.get<prm::Wq::lwm>() == 2 && wq.get<prm::Wq::sw_counter>() == 4);
}

// ---- scheduling elements, as commands and as general objects ----

void scheduling(World* w) {
  using Context = prm::SchedulingContext;
  using Create = prm::CreateSchedulingElementIn;
  constexpr unsigned kNic = 3;
  Command<Create, prm::CreateSchedulingElementOut> create(Opcode::create_scheduling_element);
  create.in.set<Create::scheduling_hierarchy>(kNic);
  const Object root =
      made<prm::CreateSchedulingElementOut::scheduling_element_id>(w, create, Opcode::destroy_scheduling_element);
  create.in.sub<Create::scheduling_context>()
      .set<Context::parent_element_id>(root.number)
      .set<Context::max_average_bw>(10);
  const Object node =
      made<prm::CreateSchedulingElementOut::scheduling_element_id>(w, create, Opcode::destroy_scheduling_element);
  using Modify = prm::ModifySchedulingElementIn;
  Command<Modify, prm::ModifySchedulingElementOut> modify(Opcode::modify_scheduling_element);
  modify.in.set<Modify::scheduling_hierarchy>(kNic)
      .set<Modify::scheduling_element_id>(node.number)
      .set<Modify::modify_bitmask>(prm::SchedulingSelect::max_average_bw);
  modify.in.sub<Modify::scheduling_context>().set<Context::max_average_bw>(25);
  MODIFY(modify, node);
  using Query = prm::QuerySchedulingElementIn;
  Command<Query, prm::QuerySchedulingElementOut> query(Opcode::query_scheduling_element);
  query.in.set<Query::scheduling_hierarchy>(kNic).set<Query::scheduling_element_id>(node.number);
  QUERY(query, node);
  CHECK(query.out.sub<prm::QuerySchedulingElementOut::scheduling_context>().get<Context::max_average_bw>() == 25);

  using Head = prm::GeneralObjInCmdHdr;
  using Element = prm::SchedElem;
  prm::Box<Head, Element::size> request;
  prm::Box<prm::GeneralObjOutCmdHdr, Element::size> answer;
  const prm::View<Element> body(request.data() + Head::size);
  const auto head = [&](Opcode opcode, std::uint32_t id) {
    request.set<Head::opcode>(static_cast<std::uint16_t>(opcode))
        .set<Head::obj_type>(prm::GeneralObjectType::scheduling_element)
        .set<Head::obj_id>(id);
  };
  head(Opcode::create_general_object, 0);
  body.set<Element::scheduling_hierarchy>(kNic)
      .sub<Element::sched_context>()
      .set<Context::parent_element_id>(root.number)
      .set<Context::max_average_bw>(5);
  mlx5dv_devx_obj* object =
      mlx5dv_devx_obj_create(w->context, request.data(), request.size(), answer.data(), answer.size());
  CHECK(object);
  const std::uint32_t id = std::as_const(answer).get<prm::GeneralObjOutCmdHdr::obj_id>();
  head(Opcode::modify_general_object, id);
  body.set<Element::modify_field_select>(prm::SchedulingSelect::max_average_bw)
      .sub<Element::sched_context>()
      .set<Context::max_average_bw>(6);
  CHECK(!mlx5dv_devx_obj_modify(object, request.data(), request.size(), answer.data(), answer.size()));
  head(Opcode::query_general_object, id);
  CHECK(!mlx5dv_devx_obj_query(object, request.data(), Head::size, answer.data(), answer.size()));
  CHECK(prm::ConstView<Element>(answer.data() + Head::size)
            .sub<Element::sched_context>()
            .get<Context::max_average_bw>() == 6);
  CHECK(!mlx5dv_devx_obj_destroy(object));
  for (const Opcode opcode : {Opcode::create_general_object, Opcode::modify_general_object,
                              Opcode::query_general_object, Opcode::destroy_general_object})
    accepted.insert(static_cast<unsigned>(opcode));
}

// ---- the account ----

void nothing_is_missing() {
  unsigned there = 0;
  for (const auto& [opcode, command] : verbena::documented_commands()) {
    const std::string& name = command.name;
    // What has no door is the driver's, except for what undoes an object.
    const bool drivers = command.doors.starts_with('-') && (!command.undoes() || name.ends_with("_UAR") || name.ends_with("_UMEM") ||
                                                  name.ends_with("_EQ"));
    if (!command.device.starts_with("yes") || drivers) continue;
    ++there;
    bool elsewhere = false;
    for (const auto& [known, why] : kElsewhere) elsewhere |= name == known;
    EXPECT(accepted.contains(opcode) != elsewhere, "%s: %s", name.c_str(), elsewhere ? "shown after all" : "not shown");
  }
  std::printf("%u commands, %zu shown\n", there, accepted.size());
  CHECK(there > 80);
}

}  // namespace

int main() {
  World w = open_devx();
  facts(&w);
  {
    Memory m(&w);
    small_objects(&w, m);
    connected(&w, m);
    unreliable(m);
    groups(&w, m);
    pools(&w, m);
    xrc(&w, m);
    xrqs(&w, m);
    frames(&w, m);
  }
  scheduling(&w);
  nothing_is_missing();
  close_world(&w);
  if (failures) return 1;
  puts("ok");
  return 0;
}
