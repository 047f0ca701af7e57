// What ports and sets of counters count: exact frames and octets, the errors of either side, and that nothing is lost
// when a QP or its process goes.
#include "device/shared/counters.h"
#include "transport_world.h"

namespace verbena::device::test {
namespace {

using prm::CqeOpcode;
using prm::WqeOpcode;

// Ethernet 14, IPv4 20, UDP 8, BTH 12, ICRC 4 (IBTA annex A17); the frame check sequence is not counted.
constexpr std::uint64_t kPlain = 14 + 20 + 8 + 12 + 4, kReth = 16, kAeth = 4, kAtomicEth = 28, kAtomicAck = 8;

class Counters : public RcPair {
 protected:
  std::string second_host() override { return "other"; }
  void SetUp() override {
    RcPair::SetUp();
    ma = a->memory(1 << 20);
    mb = b->memory(1 << 20);
  }
  Process::Wr one_sided(WqeOpcode opcode, std::uint32_t bytes) {
    return {.opcode = opcode, .sges = {{ma.p, bytes, ma.key}}, .raddr = reinterpret_cast<std::uint64_t>(mb.p), .rkey = mb.key};
  }
  void run(const Process::Wr& wr, CqeOpcode wanted = CqeOpcode::req) {
    a->post(*qa, wr);
    ASSERT_EQ(a->wait(*ca).opcode, wanted);
  }
  static void expect(Process& p, std::uint64_t out, std::uint64_t out_octets, std::uint64_t in, std::uint64_t in_octets) {
    const Directions ib = port_traffic(*p.nic, 0).ib;
    EXPECT_EQ(ib.out.packets, out);
    EXPECT_EQ(ib.out.octets, out_octets);
    EXPECT_EQ(ib.in.packets, in);
    EXPECT_EQ(ib.in.octets, in_octets);
  }
  std::uint64_t events(Process& p, EventCounter which) { return counted(static_cast<NicMap&>(*p.nic))[which]; }

  Memory ma, mb;
};

TEST_F(Counters, FramesAndOctetsOfEveryOperation) {
  b->post_recv(*qb, {{mb.p, 4096, mb.key}});
  run({.opcode = WqeOpcode::send, .sges = {{ma.p, 2500, ma.key}}});  // three packets of at most 1024, one ACK
  std::uint64_t out = 3 * kPlain + 2500, in = kPlain + kAeth;
  expect(*a, 3, out, 1, in);
  expect(*b, 1, in, 3, out);
  run(one_sided(WqeOpcode::rdma_write, 1025));
  out += 2 * kPlain + kReth + 1025 + 3;  // the last packet is padded to four
  in += kPlain + kAeth;
  expect(*a, 5, out, 2, in);
  run(one_sided(WqeOpcode::rdma_read, 3000));
  out += kPlain + kReth;
  in += 3 * kPlain + 2 * kAeth + 3000;  // of the responses, the first and the last have an AETH
  expect(*a, 6, out, 5, in);
  run(one_sided(WqeOpcode::atomic_fa, 8));
  out += kPlain + kAtomicEth;
  in += kPlain + kAeth + kAtomicAck;
  expect(*a, 7, out, 6, in);
  expect(*b, 6, in, 7, out);
  EXPECT_EQ(events(*b, &EventCounters::rx_write_requests), 1u);
  EXPECT_EQ(events(*b, &EventCounters::rx_read_requests), 1u);
  EXPECT_EQ(events(*b, &EventCounters::rx_atomic_requests), 1u);
  EXPECT_EQ(events(*a, &EventCounters::rx_write_requests), 0u);
}

TEST_F(Counters, AMessageOfManyTurnsCountsAsOne) {
  run(one_sided(WqeOpcode::rdma_write, 1 << 20));
  expect(*a, 1024, 1024 * kPlain + kReth + (1 << 20), 4, 4 * (kPlain + kAeth));
  run(one_sided(WqeOpcode::rdma_read, 1 << 20));
  const Directions ib = port_traffic(*a->nic, 0).ib;
  EXPECT_EQ(ib.out.packets, 1025u);
  EXPECT_EQ(ib.in.packets, 4u + 1024);
  EXPECT_EQ(events(*b, &EventCounters::rx_read_requests), 1u);
  EXPECT_EQ(events(*b, &EventCounters::duplicate_request), 0u);
}

TEST_F(Counters, ErrorsOfBothSides) {
  run({.opcode = WqeOpcode::send, .sges = {{ma.p, 8, ma.key}}}, CqeOpcode::req_err);  // no receive: RNR until it gives up
  EXPECT_EQ(events(*b, &EventCounters::out_of_buffer), 3u);
  EXPECT_EQ(events(*a, &EventCounters::rnr_nak_retry_err), 2u);
  EXPECT_EQ(events(*a, &EventCounters::req_cqe_error), 1u);
  EXPECT_EQ(events(*a, &EventCounters::req_cqe_flush_error), 0u);
  a->post(*qa, {.opcode = WqeOpcode::send, .sges = {{ma.p, 8, ma.key}}});
  ASSERT_EQ(a->wait(*ca).opcode, CqeOpcode::req_err);
  EXPECT_EQ(events(*a, &EventCounters::req_cqe_error), 2u);
  EXPECT_EQ(events(*a, &EventCounters::req_cqe_flush_error), 1u);
}

TEST_F(Counters, ARemoteAccessErrorIsCountedWhereItHappens) {
  b->post_recv(*qb, {{mb.p, 8, mb.key}});
  auto wr = one_sided(WqeOpcode::rdma_write, 8);
  wr.rkey ^= 0xff;
  run(wr, CqeOpcode::req_err);
  EXPECT_EQ(events(*a, &EventCounters::req_remote_access_errors), 1u);
  EXPECT_EQ(events(*b, &EventCounters::resp_remote_access_errors), 1u);
  ASSERT_EQ(b->wait(*cb).opcode, CqeOpcode::resp_err);  // flushed
  EXPECT_EQ(events(*b, &EventCounters::resp_cqe_error), 1u);
  EXPECT_EQ(events(*b, &EventCounters::resp_cqe_flush_error), 1u);
  EXPECT_EQ(events(*b, &EventCounters::req_remote_access_errors), 0u);
}

TEST_F(Counters, TimeoutsAreCountedUntilRetriesEnd) {
  b->engine->set_state(*qb->context, QpState::rst);
  run(one_sided(WqeOpcode::rdma_write, 8), CqeOpcode::req_err);
  EXPECT_EQ(events(*a, &EventCounters::local_ack_timeout_err), 2u);  // retry_count
  expect(*a, 3, 3 * (kPlain + kReth + 8), 0, 0);
  EXPECT_EQ(port_traffic(*b->nic, 0).ib.in.packets, 3u);  // they came, to a QP that takes none
}

TEST_F(Counters, ASetCountsItsOwnQps) {
  Qp* other = b->qp(QpType::rc, cb);
  qb->context->q_counter = 5;
  other->context->q_counter = 6;
  run(one_sided(WqeOpcode::rdma_write, 8));
  run(one_sided(WqeOpcode::rdma_write, 8));
  EXPECT_EQ(counted(*b->nic, 5)[&EventCounters::rx_write_requests], 2u);
  EXPECT_EQ(counted(*b->nic, 6)[&EventCounters::rx_write_requests], 0u);
  auto wr = one_sided(WqeOpcode::rdma_write, 8);
  wr.rkey ^= 0xff;
  run(wr, CqeOpcode::req_err);
  EXPECT_EQ(counted(*b->nic, 5)[&EventCounters::resp_remote_access_errors], 1u);
  EXPECT_EQ(counted(*b->nic, 6)[&EventCounters::resp_remote_access_errors], 0u);
  b->nic->free_qp(*qb->context);
  EXPECT_EQ(counted(*b->nic, 5)[&EventCounters::rx_write_requests], 3u);
}

TEST_F(Counters, NothingIsLostWhenAQpOrItsProcessGoes) {
  run(one_sided(WqeOpcode::rdma_write, 100));
  const auto before = port_traffic(*a->nic, 0).ib;
  a->nic->free_qp(*qa->context);
  auto now = port_traffic(*a->nic, 0).ib;
  EXPECT_EQ(now.out.packets, before.out.packets);
  EXPECT_EQ(now.in.octets, before.in.octets);
  auto witness = NicMap::visit(dir_, "other", 0);
  ASSERT_TRUE(witness);
  ASSERT_EQ(port_traffic(**witness, 0).ib.in.packets, 1u);
  b.reset();
  now = port_traffic(**witness, 0).ib;
  EXPECT_EQ(now.in.packets, 1u);
  EXPECT_EQ(now.in.octets, kPlain + kReth + 100);
  EXPECT_EQ(counted(**witness)[&EventCounters::rx_write_requests], 1u);
}

TEST_F(Counters, DatagramsAndGroups) {
  Qp* ua = a->qp(QpType::ud, ca);
  Qp* ub = b->qp(QpType::ud, cb);
  for (auto [p, q] : {std::pair{a.get(), ua}, std::pair{b.get(), ub}})
    for (const QpState state : {QpState::init, QpState::rtr, QpState::rts}) p->engine->set_state(*q->context, state);
  b->post_recv(*ub, {{mb.p, 4096, mb.key}});
  b->post_recv(*ub, {{mb.p, 4096, mb.key}});
  std::uint8_t gid[16];
  b->gid(gid);
  a->post(*ua, {.sges = {{ma.p, 100, ma.key}}, .dgid = gid, .dqpn = ub->context->qpn});
  ASSERT_EQ(a->wait(*ca).opcode, CqeOpcode::req);
  ASSERT_EQ(b->wait(*cb).opcode, CqeOpcode::resp_send);
  constexpr std::uint64_t kDatagram = kPlain + 8 + 100;
  expect(*a, 1, kDatagram, 0, 0);
  expect(*b, 0, 0, 1, kDatagram);
  std::uint8_t group[16] = {0xff, 0x0e, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 0xe0, 0, 0, 9};
  ASSERT_EQ(b->nic->attach_multicast(group, ub->context->qpn), 0);
  a->post(*ua, {.sges = {{ma.p, 100, ma.key}}, .dgid = group, .dqpn = 0xffffff});
  ASSERT_EQ(a->wait(*ca).opcode, CqeOpcode::req);
  ASSERT_EQ(b->wait(*cb).opcode, CqeOpcode::resp_send);
  EXPECT_EQ(port_traffic(*a->nic, 0).ib_multicast.out.packets, 1u);
  EXPECT_EQ(port_traffic(*b->nic, 0).ib_multicast.in.octets, kDatagram);
  expect(*b, 0, 0, 1, kDatagram);
}

}  // namespace
}  // namespace verbena::device::test
