// Raw send queues as commands: TIS and SQ, their states, their rates, and every refusal.
#include "prm/raw.h"
#include "prm/scheduling.h"
#include "tests/unit/device/command_fixture.h"

namespace verbena::device {
namespace {

using prm::Sqc;
using prm::SqState;
using prm::Tisc;
using prm::Wq;

class RawTest : public CommandTest {
 protected:
  using CreateTis = Request<prm::CreateTisIn, prm::CreateTisOut>;
  using CreateSq = Request<prm::CreateSqIn, prm::CreateSqOut, 8>;
  using ModifySq = Request<prm::ModifySqIn, prm::ModifySqOut>;

  void SetUp() override {
    CommandTest::SetUp();
    Request<prm::AllocTransportDomainIn, prm::AllocTransportDomainOut> td(Opcode::alloc_transport_domain);
    ASSERT_EQ(td.run(*device_), Status::ok);
    domain_ = td.out.get<prm::AllocTransportDomainOut::transport_domain>();
    auto tis = tis_request();
    ASSERT_EQ(tis.run(*device_), Status::ok) << reason(tis.syndrome());
    tisn_ = tis.out.get<prm::CreateTisOut::tisn>();
  }
  CreateTis tis_request() {
    CreateTis r(Opcode::create_tis);
    r.in.sub<prm::CreateTisIn::ctx>().set<Tisc::transport_domain>(domain_).set<Tisc::prio>(3);
    return r;
  }
  CreateSq sq_request() {
    CreateSq r(Opcode::create_sq);
    const auto sqc = r.in.sub<prm::CreateSqIn::ctx>();
    sqc.set<Sqc::cqn>(cqn_).set<Sqc::tis_lst_sz>(1).set<Sqc::tis_num_0>(tisn_).set<Sqc::user_index>(0x77);
    const auto wq = sqc.sub<Sqc::wq>();
    wq.set<Wq::wq_type>(prm::WqType::cyclic).set<Wq::log_wq_stride>(6).set<Wq::log_wq_sz>(5);
    wq.set<Wq::pd>(pd_).set<Wq::uar_page>(uar_).set<Wq::dbr_addr>(doorbell(memory_, 3));
    prm::store_be64(r.in.data() + prm::CreateSqIn::size, memory(0x5000));
    return r;
  }
  std::uint32_t make_sq() {
    auto r = sq_request();
    EXPECT_EQ(r.run(*device_), Status::ok) << reason(r.syndrome());
    return r.out.get<prm::CreateSqOut::sqn>();
  }
  template <class Change>
  void refused(Syndrome why, Change change) {
    auto r = sq_request();
    const auto sqc = r.in.sub<prm::CreateSqIn::ctx>();
    change(sqc, sqc.template sub<Sqc::wq>());
    EXPECT_EQ(r.run(*device_), command::status_of(why));
    EXPECT_EQ(r.syndrome(), why) << reason(r.syndrome());
  }
  Syndrome modify(std::uint32_t sqn, SqState from, SqState to, std::uint64_t mask = 0, std::uint32_t rate = 0,
                  std::uint32_t leaf = 0) {
    ModifySq r(Opcode::modify_sq);
    r.in.set<prm::ModifySqIn::sqn>(sqn).set<prm::ModifySqIn::sq_state>(from).set<prm::ModifySqIn::modify_bitmask>(mask);
    const auto sqc = r.in.sub<prm::ModifySqIn::ctx>();
    sqc.set<Sqc::state>(to).set<Sqc::packet_pacing_rate_limit_index>(rate).set<Sqc::qos_queue_group_id>(leaf);
    r.run(*device_);
    return r.syndrome();
  }
  SqState state(std::uint32_t sqn) {
    Request<prm::QuerySqIn, prm::QuerySqOut> r(Opcode::query_sq);
    r.in.set<prm::QuerySqIn::sqn>(sqn);
    EXPECT_EQ(r.run(*device_), Status::ok);
    EXPECT_EQ(r.out.sub<prm::QuerySqOut::sq_context>().get<Sqc::user_index>(), 0x77u);
    return r.out.sub<prm::QuerySqOut::sq_context>().get<Sqc::state>();
  }
  template <class In, class Out>
  Syndrome destroy(Opcode opcode, std::uint32_t number) {
    Request<In, Out> r(opcode);
    prm::store_be32(r.in.data() + 8, number);
    r.run(*device_);
    return r.syndrome();
  }
  Syndrome destroy_sq(std::uint32_t sqn) { return destroy<prm::DestroySqIn, prm::DestroySqOut>(Opcode::destroy_sq, sqn); }
  Syndrome destroy_tis(std::uint32_t n) { return destroy<prm::DestroyTisIn, prm::DestroyTisOut>(Opcode::destroy_tis, n); }
  void set_rate(std::uint32_t index, std::uint32_t kbps, std::uint16_t uid = 0) {
    using In = prm::SetPpRateLimitIn;
    Request<In, prm::SetPpRateLimitOut> r(Opcode::set_pp_rate_limit, uid);
    r.in.set<In::rate_limit_index>(index).sub<In::ctx>().set<prm::SetPpRateLimitContext::rate_limit>(kbps);
    EXPECT_EQ(r.run(*device_), Status::ok);
  }

  std::uint32_t domain_ = 0, tisn_ = 0;
};

TEST_F(RawTest, TransportInterfaces) {
  Request<prm::QueryTisIn, prm::QueryTisOut> query(Opcode::query_tis);
  query.in.set<prm::QueryTisIn::tisn>(tisn_);
  ASSERT_EQ(query.run(*device_), Status::ok);
  EXPECT_EQ(query.out.sub<prm::QueryTisOut::tis_context>().get<Tisc::prio>(), 3u);
  Request<prm::ModifyTisIn, prm::ModifyTisOut> modify(Opcode::modify_tis);
  modify.in.set<prm::ModifyTisIn::tisn>(tisn_);
  modify.in.sub<prm::ModifyTisIn::bitmask>().set<prm::ModifyTisBitmask::prio>(1);
  modify.in.sub<prm::ModifyTisIn::ctx>().set<Tisc::prio>(5).set<Tisc::lag_tx_port_affinity>(2);
  ASSERT_EQ(modify.run(*device_), Status::ok);
  ASSERT_EQ(query.run(*device_), Status::ok);
  EXPECT_EQ(query.out.sub<prm::QueryTisOut::tis_context>().get<Tisc::prio>(), 5u);
  EXPECT_EQ(query.out.sub<prm::QueryTisOut::tis_context>().get<Tisc::lag_tx_port_affinity>(), 0u);
  modify.in.sub<prm::ModifyTisIn::bitmask>().set<prm::ModifyTisBitmask::lag_tx_port_affinity>(1);
  modify.in.sub<prm::ModifyTisIn::ctx>().set<Tisc::prio>(7).set<Tisc::lag_tx_port_affinity>(3);
  modify.run(*device_);
  EXPECT_EQ(modify.syndrome(), Syndrome::tis_lag_port);
  ASSERT_EQ(query.run(*device_), Status::ok);
  EXPECT_EQ(query.out.sub<prm::QueryTisOut::tis_context>().get<Tisc::prio>(), 5u);  // nothing has happened
  auto beyond = tis_request();
  beyond.in.sub<prm::CreateTisIn::ctx>().set<Tisc::lag_tx_port_affinity>(3);
  beyond.run(*device_);
  EXPECT_EQ(beyond.syndrome(), Syndrome::tis_lag_port);
  const auto sqn = make_sq();
  EXPECT_EQ(destroy_tis(tisn_), Syndrome::tis_busy);
  Request<prm::DeallocTransportDomainIn, prm::DeallocTransportDomainOut> td(Opcode::dealloc_transport_domain);
  td.in.set<prm::DeallocTransportDomainIn::transport_domain>(domain_);
  td.run(*device_);
  EXPECT_EQ(td.syndrome(), Syndrome::td_busy);
  EXPECT_EQ(destroy_sq(sqn), Syndrome{});
  EXPECT_EQ(destroy_tis(tisn_), Syndrome{});
  EXPECT_EQ(destroy_tis(tisn_), Syndrome::tis_missing);
  auto lost = tis_request();
  lost.in.sub<prm::CreateTisIn::ctx>().set<Tisc::transport_domain>(4711);
  lost.run(*device_);
  EXPECT_EQ(lost.syndrome(), Syndrome::tis_domain);
  auto tls = tis_request();
  tls.in.sub<prm::CreateTisIn::ctx>().set<Tisc::tls_en>(1);
  tls.run(*device_);
  EXPECT_EQ(tls.syndrome(), Syndrome::tis_tls);
  for (int i = 0; i < 1023; ++i) tis_request().run(*device_);
  auto full = tis_request();
  full.run(*device_);
  EXPECT_EQ(full.syndrome(), Syndrome::tis_none_left);
}

TEST_F(RawTest, NoMoreSendQueuesThanTheDeviceSays) {
  TearDown();
  profile_.limits.log_max_qp = 4;
  SetUp();
  for (unsigned i = 0; i < 16; ++i) make_sq();
  refused(Syndrome::sq_none_left, [](auto, auto) {});
}

TEST_F(RawTest, WhatIsNoSendQueue) {
  refused(Syndrome::sq_initial_state, [](auto sqc, auto) { sqc.template set<Sqc::state>(SqState::rdy); });
  refused(Syndrome::sq_offload, [](auto sqc, auto) { sqc.template set<Sqc::hairpin>(1); });
  refused(Syndrome::sq_offload, [](auto sqc, auto) { sqc.template set<Sqc::rlky>(1); });
  refused(Syndrome::sq_offload, [](auto sqc, auto) { sqc.template set<Sqc::cd_master>(1); });
  refused(Syndrome::sq_offload, [](auto, auto wq) { wq.template set<Wq::wq_signature>(1); });
  refused(Syndrome::sq_ts_format,
          [](auto sqc, auto) { sqc.template set<Sqc::ts_format>(prm::TimestampFormat::real_time); });
  refused(Syndrome::sq_wq_type, [](auto, auto wq) { wq.template set<Wq::wq_type>(prm::WqType::linked_list); });
  refused(Syndrome::sq_wq_type, [](auto, auto wq) { wq.template set<Wq::log_wq_stride>(4); });
  refused(Syndrome::sq_size, [](auto, auto wq) { wq.template set<Wq::log_wq_sz>(31); });
  refused(Syndrome::sq_pd, [](auto, auto wq) { wq.template set<Wq::pd>(4711); });
  refused(Syndrome::sq_uar, [](auto, auto wq) { wq.template set<Wq::uar_page>(4711); });
  refused(Syndrome::sq_cq, [](auto sqc, auto) { sqc.template set<Sqc::cqn>(4711); });
  refused(Syndrome::sq_tis, [](auto sqc, auto) { sqc.template set<Sqc::tis_num_0>(4711); });
  refused(Syndrome::sq_rate, [](auto sqc, auto) { sqc.template set<Sqc::packet_pacing_rate_limit_index>(9); });
  refused(Syndrome::sq_leaf, [](auto sqc, auto) { sqc.template set<Sqc::qos_queue_group_id>(9); });
  EXPECT_EQ(modify(4711, SqState::rst, SqState::rdy), Syndrome::sq_missing);
  EXPECT_EQ(modify(make_qp(), SqState::rst, SqState::rdy), Syndrome::sq_missing) << "a queue pair is none";
}

TEST_F(RawTest, StatesAndRates) {
  const auto sqn = make_sq();
  const auto& live = *static_cast<QpContext*>(device_->sq_token(sqn));
  EXPECT_EQ(state(sqn), SqState::rst);
  EXPECT_EQ(modify(sqn, SqState::rdy, SqState::rdy), Syndrome::sq_current_state);
  EXPECT_EQ(modify(sqn, SqState::rst, SqState::rdy), Syndrome{});
  EXPECT_EQ(state(sqn), SqState::rdy);
  EXPECT_EQ(modify(sqn, SqState::rdy, SqState::rdy, 2), Syndrome::sq_bitmask);
  EXPECT_EQ(modify(sqn, SqState::rdy, SqState::rdy, 1, 5), Syndrome::sq_rate);
  set_rate(5, 1000);
  EXPECT_EQ(modify(sqn, SqState::rdy, SqState::rdy, 1, 5), Syndrome{});
  EXPECT_EQ(live.shaped, kShapedRate);
  EXPECT_EQ(live.rate_index, 5);
  EXPECT_EQ(modify(sqn, SqState::rdy, SqState::rdy, 1, 0), Syndrome{});
  EXPECT_EQ(live.shaped, 0);

  Request<prm::CreateSchedulingElementIn, prm::CreateSchedulingElementOut> element(Opcode::create_scheduling_element);
  element.in.set<prm::CreateSchedulingElementIn::scheduling_hierarchy>(3);
  ASSERT_EQ(element.run(*device_), Status::ok);
  const auto root = element.out.get<prm::CreateSchedulingElementOut::scheduling_element_id>();
  const auto context = element.in.sub<prm::CreateSchedulingElementIn::scheduling_context>();
  context.set<prm::SchedulingContext::parent_element_id>(root).set<prm::SchedulingContext::element_type>(4);
  ASSERT_EQ(element.run(*device_), Status::ok);
  const auto leaf = element.out.get<prm::CreateSchedulingElementOut::scheduling_element_id>();
  EXPECT_EQ(modify(sqn, SqState::rdy, SqState::rdy, 4, 0, root), Syndrome::sq_leaf);
  EXPECT_EQ(modify(sqn, SqState::rdy, SqState::rdy, 4, 0, leaf), Syndrome{});
  EXPECT_EQ(live.leaf, leaf);
  Request<prm::DestroySchedulingElementIn, prm::DestroySchedulingElementOut> end(Opcode::destroy_scheduling_element);
  end.in.set<prm::DestroySchedulingElementIn::scheduling_hierarchy>(3);
  end.in.set<prm::DestroySchedulingElementIn::scheduling_element_id>(leaf);
  end.run(*device_);
  EXPECT_EQ(end.syndrome(), Syndrome::sched_busy);

  EXPECT_EQ(modify(sqn, SqState::rdy, SqState{2}), Syndrome::sq_new_state);
  EXPECT_EQ(state(sqn), SqState::rdy);
  EXPECT_EQ(modify(sqn, SqState::rdy, SqState::err), Syndrome{});
  EXPECT_EQ(modify(sqn, SqState::err, SqState::rdy), Syndrome::sq_new_state);
  EXPECT_EQ(modify(sqn, SqState::err, SqState::rst), Syndrome{});
  EXPECT_EQ(state(sqn), SqState::rst);
  EXPECT_EQ(destroy_sq(sqn), Syndrome{});
  EXPECT_EQ(end.run(*device_), Status::ok);
  // Of a user's own entry, another user's queue keeps off.
  set_rate(6, 1000, 0);
  EXPECT_EQ(destroy_sq(sqn), Syndrome::sq_missing);
}

}  // namespace
}  // namespace verbena::device
