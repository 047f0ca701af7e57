// Packet headers against frames written out by hand from the standards, and against the C library's structs.
#include "prm/wire.h"

#include <gtest/gtest.h>
#include <infiniband/opcode.h>
#include <net/ethernet.h>
#include <netinet/ip.h>
#include <netinet/ip6.h>
#include <netinet/udp.h>

#include <array>
#include <cstddef>

namespace verbena::prm {
namespace {

template <class... B>
std::array<std::byte, sizeof...(B)> raw(B... b) {
  return {static_cast<std::byte>(b)...};
}

TEST(Wire, BaseTransportHeader) {
  // RDMA WRITE only, solicited, 3 pad bytes, to QP 0x12345, acknowledge requested, PSN 0xabcdef.
  const auto bytes = raw(0x0a, 0xb0, 0xff, 0xff, 0x40, 0x01, 0x23, 0x45, 0x80, 0xab, 0xcd, 0xef);
  const ConstView<Bth> bth(bytes.data());
  EXPECT_EQ(bth.get<Bth::opcode>(), BthOpcode::rc_rdma_write_only);
  EXPECT_EQ(bth.get<Bth::service>(), BthService::rc);
  EXPECT_EQ(bth.get<Bth::operation>(), BthOperation::rdma_write_only);
  EXPECT_EQ(bth.get<Bth::se>(), 1u);
  EXPECT_EQ(bth.get<Bth::migreq>(), 0u);
  EXPECT_EQ(bth.get<Bth::padcnt>(), 3u);
  EXPECT_EQ(bth.get<Bth::tver>(), 0u);
  EXPECT_EQ(bth.get<Bth::pkey>(), 0xffffu);
  EXPECT_EQ(bth.get<Bth::fecn>(), 0u);
  EXPECT_EQ(bth.get<Bth::becn>(), 1u);
  EXPECT_EQ(bth.get<Bth::destqp>(), 0x12345u);
  EXPECT_EQ(bth.get<Bth::ackreq>(), 1u);
  EXPECT_EQ(bth.get<Bth::psn>(), 0xabcdefu);
}

TEST(Wire, ExtendedHeaders) {
  Box<AtomicEth> atomic;
  atomic.set<AtomicEth::va>(0x0102030405060708).set<AtomicEth::rkey>(0x11121314);
  atomic.set<AtomicEth::swap_add>(0x2122232425262728).set<AtomicEth::compare>(0x3132333435363738);
  const auto bytes = raw(1, 2, 3, 4, 5, 6, 7, 8, 0x11, 0x12, 0x13, 0x14, 0x21, 0x22, 0x23, 0x24, 0x25, 0x26, 0x27, 0x28,
                         0x31, 0x32, 0x33, 0x34, 0x35, 0x36, 0x37, 0x38);
  ASSERT_EQ(atomic.span().size(), bytes.size());
  EXPECT_EQ(std::memcmp(atomic.data(), bytes.data(), bytes.size()), 0);

  const auto nak = raw(0x63, 0x00, 0x12, 0x34);  // NAK, remote operational error
  const ConstView<Aeth> aeth(nak.data());
  EXPECT_EQ(aeth.get<Aeth::kind>(), AethKind::nak);
  EXPECT_EQ(static_cast<NakCode>(aeth.get<Aeth::value>()), NakCode::remote_operational_error);
  EXPECT_EQ(aeth.get<Aeth::syndrome>(), 0x63u);
  EXPECT_EQ(aeth.get<Aeth::msn>(), 0x1234u);

  EXPECT_EQ(Reth::size, 16u);
  EXPECT_EQ(Deth::size, 8u);
  EXPECT_EQ(Grh::size, 40u);
}

TEST(Wire, InternetHeadersMatchTheCLibrary) {
  Box<Eth> eth;
  eth.set<Eth::ethertype>(kEtherTypeRoce);
  eth.bytes<Eth::src>()[0] = std::byte{0x42};
  const auto* e = reinterpret_cast<const ether_header*>(eth.data());
  EXPECT_EQ(be16toh(e->ether_type), 0x8915);
  EXPECT_EQ(e->ether_shost[0], 0x42);
  EXPECT_EQ(Eth::size, sizeof(ether_header));

  Box<Ipv4> ip;
  ip.set<Ipv4::version>(4).set<Ipv4::ihl>(5).set<Ipv4::dscp>(0x1a).set<Ipv4::ecn>(2).set<Ipv4::total_length>(1000);
  ip.set<Ipv4::dont_fragment>(1).set<Ipv4::ttl>(64).set<Ipv4::protocol>(17).set<Ipv4::checksum>(0xbeef);
  ip.bytes<Ipv4::dst>()[3] = std::byte{9};
  iphdr i{};
  std::memcpy(&i, ip.data(), sizeof i);
  EXPECT_EQ(i.version, 4u);
  EXPECT_EQ(i.ihl, 5u);
  EXPECT_EQ(i.tos, 0x1a << 2 | 2);
  EXPECT_EQ(be16toh(i.tot_len), 1000);
  EXPECT_EQ(be16toh(i.frag_off), IP_DF);
  EXPECT_EQ(i.ttl, 64);
  EXPECT_EQ(i.protocol, IPPROTO_UDP);
  EXPECT_EQ(be16toh(i.check), 0xbeef);
  EXPECT_EQ(be32toh(i.daddr) & 0xff, 9u);

  Box<Ipv6> ip6;
  ip6.set<Ipv6::version>(6).set<Ipv6::traffic_class>(0x6a).set<Ipv6::flow_label>(0xfacee).set<Ipv6::payload_length>(99);
  ip6.set<Ipv6::next_header>(17).set<Ipv6::hop_limit>(1);
  ip6_hdr h{};
  std::memcpy(&h, ip6.data(), sizeof h);
  EXPECT_EQ(be32toh(h.ip6_flow), 0x66afaceeu);
  EXPECT_EQ(be16toh(h.ip6_plen), 99);
  EXPECT_EQ(h.ip6_nxt, 17);
  EXPECT_EQ(h.ip6_hlim, 1);
  EXPECT_EQ(Ipv6::src::offset, offsetof(ip6_hdr, ip6_src));
  EXPECT_EQ(Ipv6::dst::offset, offsetof(ip6_hdr, ip6_dst));
  EXPECT_EQ(Ipv6::size, sizeof(ip6_hdr));

  Box<Udp> udp;
  udp.set<Udp::dport>(kUdpPortRoceV2).set<Udp::length>(8);
  udphdr u{};
  std::memcpy(&u, udp.data(), sizeof u);
  EXPECT_EQ(be16toh(u.dest), 4791);
  EXPECT_EQ(be16toh(u.len), 8);
}

TEST(Wire, OpcodesAreThePublicOnes) {
  EXPECT_EQ(static_cast<int>(BthOpcode::rc_rdma_read_response_only), IBV_OPCODE_RC_RDMA_READ_RESPONSE_ONLY);
  EXPECT_EQ(static_cast<int>(BthOpcode::rc_atomic_acknowledge), IBV_OPCODE_RC_ATOMIC_ACKNOWLEDGE);
  EXPECT_EQ(static_cast<int>(BthOpcode::rc_fetch_add), IBV_OPCODE_RC_FETCH_ADD);
  EXPECT_EQ(static_cast<int>(BthOpcode::uc_rdma_write_only_imm), IBV_OPCODE_UC_RDMA_WRITE_ONLY_WITH_IMMEDIATE);
  EXPECT_EQ(static_cast<int>(BthOpcode::ud_send_only_imm), IBV_OPCODE_UD_SEND_ONLY_WITH_IMMEDIATE);
  EXPECT_EQ(bth_opcode(BthService::xrc, BthOperation::send_only), 0xa4);
}

}  // namespace
}  // namespace verbena::prm
