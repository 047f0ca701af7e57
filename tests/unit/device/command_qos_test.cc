// Rates as commands: the packet pacing table, scheduling elements by both doors, and QPs that hang on them.
#include "device/shared/nic.h"
#include "prm/caps.h"
#include "prm/general_object.h"
#include "prm/scheduling.h"
#include "tests/unit/device/command_fixture.h"

namespace verbena::device {
namespace {

using prm::SchedulingContext;
using Create = Request<prm::CreateSchedulingElementIn, prm::CreateSchedulingElementOut>;
// A general object's command; the body follows the head.
struct Object {
  explicit Object(Opcode opcode) { in.set<prm::GeneralObjInCmdHdr::opcode>(static_cast<std::uint16_t>(opcode)); }
  Status run(Device& device, std::size_t tail = prm::SchedElem::size) {
    device.execute(in.span().first(prm::GeneralObjInCmdHdr::size + tail), out.span());
    return static_cast<Status>(out.get<prm::GeneralObjOutCmdHdr::status>());
  }
  Syndrome syndrome() const { return static_cast<Syndrome>(out.get<prm::GeneralObjOutCmdHdr::syndrome>()); }
  prm::Box<prm::GeneralObjInCmdHdr, prm::SchedElem::size> in;
  prm::Box<prm::GeneralObjOutCmdHdr> out;
};

class QosTest : public CommandTest {
 protected:
  enum : std::uint32_t { tsar = 0, group = 4 };

  static Create request(std::uint32_t type, std::uint32_t parent, std::uint32_t mbps = 0, std::uint32_t share = 0,
                        std::uint16_t uid = 0) {
    Create r(Opcode::create_scheduling_element, uid);
    r.in.set<prm::CreateSchedulingElementIn::scheduling_hierarchy>(3);
    const auto c = r.in.sub<prm::CreateSchedulingElementIn::scheduling_context>();
    c.set<SchedulingContext::element_type>(type).set<SchedulingContext::parent_element_id>(parent);
    c.set<SchedulingContext::max_average_bw>(mbps).set<SchedulingContext::bw_share>(share);
    return r;
  }
  std::uint32_t element(std::uint32_t type, std::uint32_t parent, std::uint32_t mbps = 0, std::uint32_t share = 0) {
    auto r = request(type, parent, mbps, share);
    EXPECT_EQ(r.run(*device_), Status::ok) << reason(r.syndrome());
    return r.out.get<prm::CreateSchedulingElementOut::scheduling_element_id>();
  }
  void refused(Create r, Syndrome why) {
    EXPECT_EQ(r.run(*device_), command::status_of(why));
    EXPECT_EQ(r.syndrome(), why) << reason(r.syndrome());
  }
  prm::Box<SchedulingContext> query(std::uint32_t id) {
    Request<prm::QuerySchedulingElementIn, prm::QuerySchedulingElementOut> r(Opcode::query_scheduling_element);
    r.in.set<prm::QuerySchedulingElementIn::scheduling_hierarchy>(3);
    r.in.set<prm::QuerySchedulingElementIn::scheduling_element_id>(id);
    EXPECT_EQ(r.run(*device_), Status::ok) << reason(r.syndrome());
    prm::Box<SchedulingContext> context;
    std::memcpy(context.data(), r.out.sub<prm::QuerySchedulingElementOut::scheduling_context>().data(), 0x40);
    return context;
  }
  Syndrome destroy(std::uint32_t id) {
    Request<prm::DestroySchedulingElementIn, prm::DestroySchedulingElementOut> r(Opcode::destroy_scheduling_element);
    r.in.set<prm::DestroySchedulingElementIn::scheduling_hierarchy>(3);
    r.in.set<prm::DestroySchedulingElementIn::scheduling_element_id>(id);
    r.run(*device_);
    return r.syndrome();
  }
  Object object(Opcode opcode, std::uint32_t id = 0) {
    Object r(opcode);
    r.in.set<prm::GeneralObjInCmdHdr::obj_type>(prm::GeneralObjectType::scheduling_element);
    r.in.set<prm::GeneralObjInCmdHdr::obj_id>(id);
    return r;
  }
  static prm::View<prm::SchedElem> body(Object& r) {
    return prm::View<prm::SchedElem>(r.in.data() + prm::GeneralObjInCmdHdr::size);
  }
  // INIT2INIT with the extended context.
  Syndrome hang(std::uint32_t qpn, std::uint32_t requester, std::uint32_t responder, bool extension = true,
                std::uint16_t uid = 0) {
    using In = prm::Init2initQpIn;
    Request<In, prm::Init2initQpOut, prm::QpcExt::size> r(Opcode::init2init_qp, uid);
    r.in.set<In::qpn>(qpn).set<In::qpc_ext>(extension);
    r.in.set<In::opt_param_mask_95_32>(prm::QpExtOptParam::qos_queue_group_id);
    const prm::View<prm::QpcExt> ext(r.in.data() + In::size);
    ext.set<prm::QpcExt::qos_queue_group_id_requester>(requester);
    ext.set<prm::QpcExt::qos_queue_group_id_responder>(responder);
    r.run(*device_);
    return r.syndrome();
  }
  void init(std::uint32_t qpn) {
    using In = prm::Rst2initQpIn;
    Request<In, prm::Rst2initQpOut> r(Opcode::rst2init_qp);
    r.in.set<In::qpn>(qpn);
    const auto path = r.in.sub<In::qpc>().sub<prm::Qpc::primary_address_path>();
    path.set<prm::Ads::vhca_port_num>(1);
    ASSERT_EQ(r.run(*device_), Status::ok) << reason(r.syndrome());
  }
  const QpContext& live(std::uint32_t qpn) { return *static_cast<QpContext*>(device_->sq_token(qpn)); }
};

TEST_F(QosTest, CapabilityPage) {
  Request<prm::QueryHcaCapIn, prm::QueryHcaCapOut> r(Opcode::query_hca_cap);
  r.in.set<prm::QueryHcaCapIn::op_mod>(prm::cap_op_mod(prm::CapType::qos, prm::CapMode::current));
  ASSERT_EQ(r.run(*device_), Status::ok);
  const auto cap = r.out.sub<prm::QueryHcaCapOut::capability>().sub<prm::HcaCapUnion::qos_cap>();
  using C = prm::QosCap;
  EXPECT_EQ(cap.get<C::packet_pacing>() & cap.get<C::packet_pacing_uid>() & cap.get<C::packet_pacing_burst_bound>(), 1u);
  EXPECT_EQ(cap.get<C::packet_pacing_rate_table_size>(), 128u);
  EXPECT_EQ(cap.get<C::packet_pacing_min_rate>(), 1u);
  EXPECT_EQ(cap.get<C::packet_pacing_max_rate>(), 100'000'000u);
  EXPECT_EQ(cap.get<C::nic_element_type>(), 0x11u);
  EXPECT_EQ(cap.get<C::nic_tsar_type>(), 1u);
  EXPECT_EQ(cap.get<C::nic_bw_share>() & cap.get<C::nic_rate_limit>() & cap.get<C::nic_qp_scheduling>(), 1u);
  EXPECT_EQ(cap.get<C::esw_scheduling>() | cap.get<C::esw_rate_limit>(), 0u);
}

TEST_F(QosTest, PacketPacingTable) {
  using In = prm::SetPpRateLimitIn;
  const auto set = [&](std::uint32_t index, std::uint32_t kbps) {
    Request<In, prm::SetPpRateLimitOut> r(Opcode::set_pp_rate_limit);
    r.in.set<In::rate_limit_index>(index).sub<In::ctx>().set<prm::SetPpRateLimitContext::rate_limit>(kbps);
    r.run(*device_);
    return r.syndrome();
  };
  EXPECT_EQ(set(1, 100), Syndrome{});
  EXPECT_EQ(set(127, 100'000'000), Syndrome{});
  EXPECT_EQ(set(1, 0), Syndrome{});
  EXPECT_EQ(set(0, 100), Syndrome::pp_index);
  EXPECT_EQ(set(128, 100), Syndrome::pp_index);
  EXPECT_EQ(set(1, 100'000'001), Syndrome::pp_rate);
}

TEST_F(QosTest, ATableThatIsShortOrNotThere) {
  using In = prm::SetPpRateLimitIn;
  for (const unsigned rates : {3u, 0u}) {
    device_.reset();
    profile_.limits.packet_pacing_rates = rates;
    auto attached = Device::attach(profile_, "test", 0);
    ASSERT_TRUE(attached) << attached.error().reason;
    device_ = std::move(*attached);
    for (const std::uint32_t index : {0u, 1u, 3u, 4u, 127u}) {
      Request<In, prm::SetPpRateLimitOut> r(Opcode::set_pp_rate_limit);
      r.in.set<In::rate_limit_index>(index).sub<In::ctx>().set<prm::SetPpRateLimitContext::rate_limit>(100);
      r.run(*device_);
      EXPECT_EQ(r.syndrome(), !rates                        ? Syndrome::not_supported
                              : index == 0 || index > rates ? Syndrome::pp_index
                                                            : Syndrome{})
          << rates << " " << index;
    }
    Request<prm::QueryHcaCapIn, prm::QueryHcaCapOut> page(Opcode::query_hca_cap);
    page.in.set<prm::QueryHcaCapIn::op_mod>(prm::cap_op_mod(prm::CapType::qos, prm::CapMode::current));
    ASSERT_EQ(page.run(*device_), Status::ok);
    const auto cap = page.out.sub<prm::QueryHcaCapOut::capability>().sub<prm::HcaCapUnion::qos_cap>();
    using C = prm::QosCap;
    EXPECT_EQ(cap.get<C::packet_pacing_rate_table_size>(), rates ? rates + 1 : 0);
    for (const auto bit : {cap.get<C::packet_pacing>(), cap.get<C::packet_pacing_uid>(),
                           cap.get<C::packet_pacing_burst_bound>(), cap.get<C::packet_pacing_typical_size>()})
      EXPECT_EQ(bit, rates ? 1u : 0u);
    EXPECT_EQ(cap.get<C::packet_pacing_max_rate>() != 0, rates != 0);
    EXPECT_EQ(cap.get<C::nic_qp_scheduling>(), 1u);
  }
}

TEST_F(QosTest, ATreeIsBuiltChangedAndTakenDown) {
  const auto root = element(tsar, 0), node = element(tsar, root, 100, 3), leaf = element(group, node, 10, 7);
  EXPECT_EQ(query(leaf).get<SchedulingContext::max_average_bw>(), 10u);
  EXPECT_EQ(query(leaf).get<SchedulingContext::bw_share>(), 7u);
  EXPECT_EQ(query(leaf).get<SchedulingContext::parent_element_id>(), node);
  EXPECT_EQ(query(leaf).get<SchedulingContext::element_type>(), group);

  using In = prm::ModifySchedulingElementIn;
  Request<In, prm::ModifySchedulingElementOut> modify(Opcode::modify_scheduling_element);
  modify.in.set<In::scheduling_hierarchy>(3).set<In::scheduling_element_id>(leaf).set<In::modify_bitmask>(2);
  const auto to = modify.in.sub<In::scheduling_context>();
  to.set<SchedulingContext::max_average_bw>(20).set<SchedulingContext::bw_share>(9);
  ASSERT_EQ(modify.run(*device_), Status::ok);
  EXPECT_EQ(query(leaf).get<SchedulingContext::max_average_bw>(), 20u);
  EXPECT_EQ(query(leaf).get<SchedulingContext::bw_share>(), 7u) << "was not selected";
  modify.in.set<In::modify_bitmask>(4);
  EXPECT_EQ(modify.run(*device_), Status::bad_param);
  EXPECT_EQ(modify.syndrome(), Syndrome::sched_select);
  modify.in.set<In::modify_bitmask>(1);
  to.set<SchedulingContext::bw_share>(101);
  modify.run(*device_);
  EXPECT_EQ(modify.syndrome(), Syndrome::sched_share);
  to.set<SchedulingContext::bw_share>(1);
  modify.in.set<In::scheduling_element_id>(root);
  modify.run(*device_);
  EXPECT_EQ(modify.syndrome(), Syndrome::sched_root);
  modify.in.set<In::scheduling_hierarchy>(2);
  modify.run(*device_);
  EXPECT_EQ(modify.syndrome(), Syndrome::sched_hierarchy);

  EXPECT_EQ(destroy(root), Syndrome::sched_busy);
  EXPECT_EQ(destroy(node), Syndrome::sched_busy);
  EXPECT_EQ(destroy(leaf), Syndrome{});
  EXPECT_EQ(destroy(leaf), Syndrome::sched_missing);
  EXPECT_EQ(destroy(node), Syndrome{});
  EXPECT_EQ(destroy(root), Syndrome{});
}

TEST_F(QosTest, WhatIsNoTree) {
  const auto root = element(tsar, 0), leaf = element(group, root);
  refused(request(group, 0), Syndrome::sched_root);
  refused(request(tsar, 0, 10), Syndrome::sched_root);
  refused(request(tsar, 0, 0, 1), Syndrome::sched_root);
  refused(request(1, root), Syndrome::sched_type);
  refused(request(tsar, leaf), Syndrome::sched_parent);
  refused(request(tsar, 4711), Syndrome::sched_parent);
  refused(request(tsar, root, 0, 101), Syndrome::sched_share);
  auto esw = request(tsar, root);
  esw.in.set<prm::CreateSchedulingElementIn::scheduling_hierarchy>(2);
  refused(esw, Syndrome::sched_hierarchy);
  auto ets = request(tsar, root);
  ets.in.sub<prm::CreateSchedulingElementIn::scheduling_context>().set<SchedulingContext::element_attributes>(2u << 16);
  refused(ets, Syndrome::sched_tsar_type);
  std::uint32_t at = root;
  for (int depth = 1; depth < 16; ++depth) at = element(tsar, at);
  refused(request(tsar, at), Syndrome::sched_depth);
  for (int i = 2 + 15; i < 1023; ++i) element(group, root);
  refused(request(group, root), Syndrome::sched_none_left);
}

TEST_F(QosTest, TheSameAsGeneralObject) {
  Object create = object(Opcode::create_general_object);
  body(create).set<prm::SchedElem::scheduling_hierarchy>(3);
  ASSERT_EQ(create.run(*device_), Status::ok) << reason(create.syndrome());
  const auto root = create.out.get<prm::GeneralObjOutCmdHdr::obj_id>();
  const auto context = body(create).sub<prm::SchedElem::sched_context>();
  context.set<SchedulingContext::parent_element_id>(root).set<SchedulingContext::element_type>(group);
  context.set<SchedulingContext::max_average_bw>(30).set<SchedulingContext::bw_share>(5);
  body(create).set<prm::SchedElem::modify_field_select>(2);
  ASSERT_EQ(create.run(*device_), Status::ok);
  const auto leaf = create.out.get<prm::GeneralObjOutCmdHdr::obj_id>();
  EXPECT_EQ(query(leaf).get<SchedulingContext::max_average_bw>(), 30u);
  EXPECT_EQ(query(leaf).get<SchedulingContext::bw_share>(), 0u) << "was not selected";
  body(create).set<prm::SchedElem::modify_field_select>(8);
  create.run(*device_);
  EXPECT_EQ(create.syndrome(), Syndrome::sched_select);
  create.run(*device_, prm::SchedElem::size - 4);
  EXPECT_EQ(create.syndrome(), Syndrome::input_length);

  Object modify = object(Opcode::modify_general_object, leaf);
  body(modify).set<prm::SchedElem::scheduling_hierarchy>(3).set<prm::SchedElem::modify_field_select>(3);
  body(modify).sub<prm::SchedElem::sched_context>().set<SchedulingContext::bw_share>(6);
  ASSERT_EQ(modify.run(*device_), Status::ok) << reason(modify.syndrome());
  std::byte out[prm::GeneralObjOutCmdHdr::size + prm::SchedElem::size];
  Object query_object = object(Opcode::query_general_object, leaf);
  device_->execute(query_object.in.span().first(prm::GeneralObjInCmdHdr::size), out);
  const prm::ConstView<prm::SchedElem> found(out + prm::GeneralObjOutCmdHdr::size);
  EXPECT_EQ(found.sub<prm::SchedElem::sched_context>().get<SchedulingContext::bw_share>(), 6u);
  EXPECT_EQ(found.sub<prm::SchedElem::sched_context>().get<SchedulingContext::max_average_bw>(), 0u);

  Object remove = object(Opcode::destroy_general_object, root);
  remove.run(*device_, 0);
  EXPECT_EQ(remove.syndrome(), Syndrome::sched_busy);
  remove.in.set<prm::GeneralObjInCmdHdr::obj_id>(leaf);
  EXPECT_EQ(remove.run(*device_, 0), Status::ok);
  remove.run(*device_, 0);
  EXPECT_EQ(remove.syndrome(), Syndrome::sched_missing);
}

TEST_F(QosTest, QueuePairsHangOnQueueGroups) {
  const auto root = element(tsar, 0), leaf = element(group, root, 10), other = element(group, root, 20);
  const auto qpn = make_qp();
  init(qpn);
  EXPECT_EQ(hang(qpn, leaf, 0, false), Syndrome::qp_extension);
  EXPECT_EQ(hang(qpn, root, 0), Syndrome::qp_leaf);
  EXPECT_EQ(hang(qpn, 4711, 0), Syndrome::qp_leaf);
  EXPECT_EQ(hang(qpn, 0, 4711), Syndrome::qp_leaf);
  EXPECT_EQ(live(qpn).shaped, 0);
  EXPECT_EQ(hang(qpn, leaf, other), Syndrome{});
  EXPECT_EQ(live(qpn).leaf, leaf);
  EXPECT_EQ(live(qpn).shaped, kShapedLeaf);
  EXPECT_EQ(live(qpn).responder_leaf.load(), other);
  EXPECT_EQ(destroy(leaf), Syndrome::sched_busy);
  EXPECT_EQ(destroy(other), Syndrome::sched_busy);
  EXPECT_EQ(hang(qpn, other, 0), Syndrome{});
  EXPECT_EQ(destroy(leaf), Syndrome{});
  // A reset takes it off, as does its end.
  Request<prm::Qp2rstIn, prm::Qp2rstOut> reset(Opcode::qp_2rst);
  reset.in.set<prm::Qp2rstIn::qpn>(qpn);
  ASSERT_EQ(reset.run(*device_), Status::ok);
  EXPECT_EQ(live(qpn).shaped, 0);
  init(qpn);
  EXPECT_EQ(hang(qpn, other, 0), Syndrome{});
  Request<prm::DestroyQpIn, prm::DestroyQpOut> end(Opcode::destroy_qp);
  end.in.set<prm::DestroyQpIn::qpn>(qpn);
  ASSERT_EQ(end.run(*device_), Status::ok);
  EXPECT_EQ(destroy(other), Syndrome{});

  const auto last = element(group, root);
  const auto ud = make_qp(prm::QpServiceType::ud);
  init(ud);
  EXPECT_EQ(hang(ud, last, last), Syndrome::qp_responder_leaf);
  EXPECT_EQ(hang(ud, last, 0), Syndrome{});
}

}  // namespace
}  // namespace verbena::device
