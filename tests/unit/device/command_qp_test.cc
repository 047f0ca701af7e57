// The state machine of queue pairs: every command from every state, what is taken, what is read back.
#include <array>
#include <map>

#include "tests/unit/device/command_fixture.h"

namespace verbena::device {
namespace {

using prm::Ads;
using prm::Qpc;
using Opt = prm::QpOptParam;

constexpr std::array kStates{QpState::rst,  QpState::init, QpState::rtr, QpState::rts,
                             QpState::sqer, QpState::sqd,  QpState::err};

struct Edge {
  Opcode opcode;
  std::array<bool, 7> allowed;  // from rst, init, rtr, rts, sqer, sqd, err
  QpState to;
};
constexpr std::array kEdges{
    Edge{Opcode::rst2init_qp, {1, 0, 0, 0, 0, 0, 0}, QpState::init},
    Edge{Opcode::init2init_qp, {0, 1, 0, 0, 0, 0, 0}, QpState::init},
    Edge{Opcode::init2rtr_qp, {0, 1, 0, 0, 0, 0, 0}, QpState::rtr},
    Edge{Opcode::rtr2rts_qp, {0, 0, 1, 0, 0, 0, 0}, QpState::rts},
    Edge{Opcode::rts2rts_qp, {0, 0, 0, 1, 0, 0, 0}, QpState::rts},
    Edge{Opcode::rts2sqd_qp, {0, 0, 0, 1, 0, 0, 0}, QpState::sqd},
    Edge{Opcode::sqd2sqd_qp, {0, 0, 0, 0, 0, 1, 0}, QpState::sqd},
    Edge{Opcode::sqd_rts_qp, {0, 0, 0, 0, 0, 1, 0}, QpState::rts},
    Edge{Opcode::sqerr2rts_qp, {0, 0, 0, 0, 1, 0, 0}, QpState::rts},
    Edge{Opcode::qp_2err, {1, 1, 1, 1, 1, 1, 1}, QpState::err},
    Edge{Opcode::qp_2rst, {1, 1, 1, 1, 1, 1, 1}, QpState::rst},
};

class QpCommandTest : public CommandTest {
 protected:
  void bring_to(std::uint32_t qpn, QpState state) {
    ASSERT_EQ(transit(Opcode::qp_2rst, qpn), Status::ok);
    const auto step = [&](Opcode opcode) { ASSERT_EQ(transit(opcode, qpn), Status::ok) << reason(syndrome_); };
    if (state == QpState::rst) return;
    if (state == QpState::err) return step(Opcode::qp_2err);
    step(Opcode::rst2init_qp);
    if (state == QpState::init) return;
    step(Opcode::init2rtr_qp);
    if (state == QpState::rtr) return;
    step(Opcode::rtr2rts_qp);
    if (state == QpState::sqd) step(Opcode::rts2sqd_qp);
    // Only a failed send leads to SQER; the test takes the short way.
    if (state == QpState::sqer) live_qp(qpn).state.store(static_cast<std::uint32_t>(QpState::sqer));
  }
};

TEST_F(QpCommandTest, EveryCommandFromEveryState) {
  for (const auto type : {prm::QpServiceType::rc, prm::QpServiceType::uc, prm::QpServiceType::ud}) {
    const auto qpn = make_qp(type);
    for (const Edge& edge : kEdges)
      for (const QpState from : kStates) {
        bring_to(qpn, from);
        const Status status = transit(edge.opcode, qpn);
        const QpState now = static_cast<QpState>(live_qp(qpn).state.load());
        SCOPED_TRACE(testing::Message() << "opcode " << std::hex << static_cast<int>(edge.opcode) << " from "
                                        << static_cast<int>(from) << ": " << reason(syndrome_));
        if (edge.allowed[static_cast<std::size_t>(from)]) {
          EXPECT_EQ(status, Status::ok);
          EXPECT_EQ(now, edge.to);
        } else {
          EXPECT_EQ(status, Status::bad_qp_state);
          EXPECT_EQ(syndrome_, Syndrome::qp_state);
          EXPECT_EQ(now, from);
        }
      }
  }
}

TEST_F(QpCommandTest, ReadsBackWhatTransitionsWrote) {
  const auto qpn = make_qp();
  ASSERT_EQ(
      transit(Opcode::rst2init_qp, qpn, 0, [](auto qpc) { qpc.template set<Qpc::rwe>(1).template set<Qpc::rre>(1); }),
      Status::ok);
  ASSERT_EQ(transit(Opcode::init2rtr_qp, qpn, Opt::rae,
                    [](auto qpc) {
                      qpc.template set<Qpc::remote_qpn>(0x777).template set<Qpc::next_rcv_psn>(0xabcdef);
                      qpc.template set<Qpc::log_rra_max>(2).template set<Qpc::min_rnr_nak>(12);
                      qpc.template set<Qpc::rae>(1).template set<Qpc::rwe>(0);  // rwe is not named, so it stays
                      const auto path = qpc.template sub<Qpc::primary_address_path>();
                      path.template set<Ads::src_addr_index>(3).template set<Ads::hop_limit>(64);
                      path.template set<Ads::rmac_47_32>(0x0200).template set<Ads::rmac_31_0>(0x11223344);
                      path.template set<Ads::udp_sport>(0xc123).template set<Ads::tclass>(0x28);
                      path.template bytes<Ads::rgid_rip>()[15] = std::byte{9};
                    }),
            Status::ok)
      << reason(syndrome_);
  ASSERT_EQ(transit(Opcode::rtr2rts_qp, qpn, 0,
                    [](auto qpc) {
                      qpc.template set<Qpc::next_send_psn>(0x123456).template set<Qpc::log_sra_max>(4);
                      qpc.template set<Qpc::retry_count>(5).template set<Qpc::rnr_retry>(7);
                      qpc.template sub<Qpc::primary_address_path>().template set<Ads::ack_timeout>(14);
                    }),
            Status::ok)
      << reason(syndrome_);
  auto out = query_qp(qpn);
  const auto qpc = out.sub<prm::QueryQpOut::qpc>();
  EXPECT_EQ(qpc.get<Qpc::state>(), prm::QpState::rts);
  EXPECT_EQ(qpc.get<Qpc::rwe>(), 1u);
  EXPECT_EQ(qpc.get<Qpc::rae>(), 1u);
  EXPECT_EQ(qpc.get<Qpc::remote_qpn>(), 0x777u);
  EXPECT_EQ(qpc.get<Qpc::next_rcv_psn>(), 0xabcdefu);
  EXPECT_EQ(qpc.get<Qpc::next_send_psn>(), 0x123456u);
  EXPECT_EQ(qpc.get<Qpc::last_acked_psn>(), 0x123455u);
  EXPECT_EQ(qpc.get<Qpc::retry_count>(), 5u);
  EXPECT_EQ(qpc.get<Qpc::user_index>(), 0x1234u);
  const auto path = qpc.sub<Qpc::primary_address_path>();
  EXPECT_EQ(path.get<Ads::ack_timeout>(), 14u);
  EXPECT_EQ(path.get<Ads::rmac_31_0>(), 0x11223344u);
  const QpContext& live = live_qp(qpn);
  EXPECT_EQ(live.path.rmac[0], 2);
  EXPECT_EQ(live.path.rgid[15], 9);
  EXPECT_EQ(live.path.udp_sport, 0xc123);
  EXPECT_EQ(live.path.traffic_class, 0x28);
  EXPECT_EQ(live.log_mtu, 10);
  EXPECT_EQ(live.rnr_retry, 7);
  EXPECT_EQ(live.ack_timeout, 14);
  EXPECT_TRUE(live.rre && live.rwe && live.rae);
}

TEST_F(QpCommandTest, RefusesImpossibleAttributes) {
  const auto qpn = make_qp();
  bring_to(qpn, QpState::init);
  const auto refused = [&](std::uint32_t mask, auto fill) {
    EXPECT_NE(transit(Opcode::init2rtr_qp, qpn, mask, fill), Status::ok);
    return syndrome_;
  };
  EXPECT_EQ(refused(0, [](auto q) { q.template set<Qpc::mtu>(prm::QpMtu::raw_ethernet); }), Syndrome::qp_mtu);
  EXPECT_EQ(refused(0, [](auto q) { q.template set<Qpc::log_msg_max>(31); }), Syndrome::qp_log_msg_max);
  EXPECT_EQ(refused(0, [](auto q) { q.template set<Qpc::log_rra_max>(5); }), Syndrome::qp_log_rra_max);
  EXPECT_EQ(refused(Opt::alt_addr_path, [](auto) {}), Syndrome::qp_alternate_path);
  EXPECT_EQ(refused(Opt::q_key, [](auto) {}), Syndrome::qp_opt_param_mask);
  EXPECT_EQ(refused(Opt::primary_port,
                    [](auto q) { q.template sub<Qpc::primary_address_path>().template set<Ads::vhca_port_num>(3); }),
            Syndrome::qp_port);
  EXPECT_EQ(refused(Opt::pkey_index,
                    [](auto q) { q.template sub<Qpc::primary_address_path>().template set<Ads::pkey_index>(1); }),
            Syndrome::qp_pkey_index);
  EXPECT_EQ(refused(Opt::lag_tx_affinity, [](auto q) { q.template set<Qpc::lag_tx_port_affinity>(3); }),
            Syndrome::qp_lag_port);
  EXPECT_EQ(qp_state(qpn), prm::QpState::init);
}

TEST_F(QpCommandTest, RtsTakesSourcePortAndBondPort) {
  const auto qpn = make_qp();
  bring_to(qpn, QpState::rts);
  Request<prm::Rts2rtsQpIn, prm::Rts2rtsQpOut> r(Opcode::rts2rts_qp);
  r.in.set<prm::Rts2rtsQpIn::qpn>(qpn).set<prm::Rts2rtsQpIn::opt_param_mask>(Opt::lag_tx_affinity);
  r.in.set<prm::Rts2rtsQpIn::opt_param_mask_95_32>(prm::QpExtOptParam::udp_sport);
  const auto qpc = r.in.sub<prm::Rts2rtsQpIn::qpc>();
  qpc.set<Qpc::lag_tx_port_affinity>(2).sub<Qpc::primary_address_path>().set<Ads::udp_sport>(0xc00d);
  ASSERT_EQ(r.run(*device_), Status::ok) << reason(r.syndrome());
  EXPECT_EQ(live_qp(qpn).path.udp_sport, 0xc00d);
  EXPECT_EQ(live_qp(qpn).path.lag_tx_port_affinity, 2);
}

TEST_F(QpCommandTest, RingsLieAsTheHardwareLaysThem) {
  const auto qpn = make_qp();
  const QpContext& qp = live_qp(qpn);
  EXPECT_EQ(qp.rq.va, memory(0x2000));
  EXPECT_EQ(qp.rq.log_stride, 5u);
  EXPECT_EQ(qp.sq.va, memory(0x2000) + (32u << 5));
  EXPECT_EQ(qp.sq.log_stride, 6u);

  auto scattered = qp_request();
  prm::store_be64(scattered.in.data() + prm::CreateQpIn::size + 8, memory(0x5000));
  EXPECT_EQ(scattered.run(*device_), Status::ok) << "3 KiB fit into the first page";
  scattered.in.sub<prm::CreateQpIn::qpc>().set<Qpc::log_sq_size>(6);
  EXPECT_EQ(scattered.run(*device_), Status::bad_param);
  EXPECT_EQ(scattered.syndrome(), Syndrome::queue_pages_scattered);
  auto nowhere = qp_request();
  nowhere.in.sub<prm::CreateQpIn::qpc>().set<Qpc::dbr_addr>(0x10);
  EXPECT_EQ(nowhere.run(*device_), Status::bad_param);
  EXPECT_EQ(nowhere.syndrome(), Syndrome::dbr_not_mapped);
  auto few = qp_request();
  few.in.sub<prm::CreateQpIn::qpc>().set<Qpc::log_sq_size>(10);
  EXPECT_EQ(few.run(*device_), Status::bad_input_len);
  EXPECT_EQ(few.syndrome(), Syndrome::queue_pages_short);
}

TEST_F(QpCommandTest, HoldsWhatItStandsOn) {
  const auto qpn = make_qp();
  Request<prm::DestroyCqIn, prm::DestroyCqOut> cq(Opcode::destroy_cq);
  cq.in.set<prm::DestroyCqIn::cqn>(cqn_);
  EXPECT_EQ(cq.run(*device_), Status::bad_res_state);
  EXPECT_EQ(cq.syndrome(), Syndrome::cq_busy);
  Request<prm::DeallocPdIn, prm::DeallocPdOut> pd(Opcode::dealloc_pd);
  pd.in.set<prm::DeallocPdIn::pd>(pd_);
  EXPECT_EQ(pd.run(*device_), Status::bad_res_state);

  Request<prm::DestroyQpIn, prm::DestroyQpOut> qp(Opcode::destroy_qp);
  qp.in.set<prm::DestroyQpIn::qpn>(qpn);
  EXPECT_EQ(qp.run(*device_), Status::ok);
  EXPECT_EQ(qp.run(*device_), Status::bad_resource);
  EXPECT_EQ(cq.run(*device_), Status::ok);
  EXPECT_EQ(pd.run(*device_), Status::ok);
}

TEST_F(QpCommandTest, MulticastMembership) {
  const auto ud = make_qp(prm::QpServiceType::ud), rc = make_qp();
  Request<prm::AttachToMcgIn, prm::AttachToMcgOut> attach(Opcode::attach_to_mcg);
  attach.in.set<prm::AttachToMcgIn::qpn>(ud);
  EXPECT_EQ(attach.run(*device_), Status::bad_param);
  EXPECT_EQ(attach.syndrome(), Syndrome::mcg_gid);
  attach.in.bytes<prm::AttachToMcgIn::multicast_gid>()[0] = std::byte{0xff};
  attach.in.set<prm::AttachToMcgIn::qpn>(rc);
  attach.run(*device_);
  EXPECT_EQ(attach.syndrome(), Syndrome::mcg_qp_type);
  attach.in.set<prm::AttachToMcgIn::qpn>(ud);
  EXPECT_EQ(attach.run(*device_), Status::ok);
  Request<prm::DestroyQpIn, prm::DestroyQpOut> destroy(Opcode::destroy_qp);
  destroy.in.set<prm::DestroyQpIn::qpn>(ud);
  EXPECT_EQ(destroy.run(*device_), Status::bad_res_state);
  Request<prm::DetachFromMcgIn, prm::DetachFromMcgOut> detach(Opcode::detach_from_mcg);
  detach.in.set<prm::DetachFromMcgIn::qpn>(ud);
  detach.in.bytes<prm::DetachFromMcgIn::multicast_gid>()[0] = std::byte{0xff};
  EXPECT_EQ(detach.run(*device_), Status::ok);
  EXPECT_NE(detach.run(*device_), Status::ok);
  // As often as it was attached.
  for (int i = 0; i < 3; ++i) EXPECT_EQ(attach.run(*device_), Status::ok);
  for (int i = 0; i < 3; ++i) {
    EXPECT_EQ(destroy.run(*device_), Status::bad_res_state);
    EXPECT_EQ(detach.run(*device_), Status::ok);
  }
  EXPECT_NE(detach.run(*device_), Status::ok);
  EXPECT_EQ(destroy.run(*device_), Status::ok);
}

TEST_F(QpCommandTest, NumbersCostTheSameHoweverMany) {
  std::vector<std::uint32_t> numbers;
  for (int i = 0; i < 3000; ++i) numbers.push_back(make_qp());
  for (const auto qpn : numbers) {
    Request<prm::DestroyQpIn, prm::DestroyQpOut> destroy(Opcode::destroy_qp);
    destroy.in.set<prm::DestroyQpIn::qpn>(qpn);
    ASSERT_EQ(destroy.run(*device_), Status::ok);
  }
}

}  // namespace
}  // namespace verbena::device
