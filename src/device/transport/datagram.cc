// The UD side of the responder: Q_Key, the 40 bytes of network header in front of the data, the CQE's UD fields.
#include <cstring>

#include "device/memory/transfer.h"
#include "device/transport/responder.h"
#include "device/transport/vendor.h"

namespace verbena::device {

namespace {

constexpr std::uint64_t kGrhBytes = prm::Grh::size;

// What lies in front of the data: the GRH or IPv6 header, or for IPv4 20 zero bytes and the IPv4 header.
void network_header(const fabric::Packet& packet, std::uint64_t bytes, std::byte (&out)[kGrhBytes]) {
  std::memset(out, 0, sizeof out);
  const fabric::Address& a = *packet.address;
  const bool imm = static_cast<prm::BthOperation>(packet.opcode & 0x1f) == prm::BthOperation::send_only_imm;
  const auto padded = static_cast<std::uint32_t>((bytes + 3) & ~std::uint64_t{3});
  const std::uint32_t ib = prm::Bth::size + prm::Deth::size + (imm ? prm::ImmDt::size : 0) + padded + prm::kIcrcSize;
  if (a.carrier == fabric::Carrier::roce_v2_ipv4) {
    const prm::View<prm::Ipv4> v(out + 20);
    v.set<prm::Ipv4::version>(4).set<prm::Ipv4::ihl>(5).set<prm::Ipv4::dscp>(a.traffic_class >> 2);
    v.set<prm::Ipv4::ecn>(a.traffic_class & 3).set<prm::Ipv4::total_length>(prm::Ipv4::size + prm::Udp::size + ib);
    v.set<prm::Ipv4::dont_fragment>(1).set<prm::Ipv4::ttl>(a.hop_limit).set<prm::Ipv4::protocol>(prm::kIpProtocolUdp);
    std::memcpy(out + 20 + prm::Ipv4::src::offset, a.sgid.data() + 12, 4);
    std::memcpy(out + 20 + prm::Ipv4::dst::offset, a.dgid.data() + 12, 4);
    std::uint32_t sum = 0;
    for (unsigned i = 0; i < 20; i += 2)
      sum += static_cast<unsigned>(out[20 + i]) << 8 | static_cast<unsigned>(out[21 + i]);
    while (sum >> 16 != 0) sum = (sum & 0xffff) + (sum >> 16);
    v.set<prm::Ipv4::checksum>(~sum & 0xffff);
    return;
  }
  const bool v1 = a.carrier == fabric::Carrier::roce_v1;
  const prm::View<prm::Grh> v(out);
  v.set<prm::Grh::ip_version>(6).set<prm::Grh::tclass>(a.traffic_class).set<prm::Grh::flow_label>(a.flow_label);
  v.set<prm::Grh::pay_len>(ib + (v1 ? 0 : prm::Udp::size));
  v.set<prm::Grh::next_header>(v1 ? prm::kGrhNextHeaderIba : prm::kIpProtocolUdp).set<prm::Grh::hop_limit>(a.hop_limit);
  std::memcpy(out + prm::Grh::sgid::offset, a.sgid.data(), 16);
  std::memcpy(out + prm::Grh::dgid::offset, a.dgid.data(), 16);
}

}  // namespace

// Without a receive WQE a datagram is lost, in the end. The link is a lossless one (PFC, and the buffers of the NIC):
// it holds the packet while the receiver is only late, and drops at once the packets of one that does not post, or never has.
Answer Responder::nothing_posted() {
  const std::uint16_t consumed =
      qp_.srq < kMaxSrqs ? owner_.slice->srqs[qp_.srq].consumed : qp_.rq_head;
  if (!drop_ && qp_.rx_dropped_at != consumed) return Answer::held;
  qp_.rx_dropped_at = consumed;
  befell(&EventCounters::out_of_buffer);
  return Answer::none;
}

Answer Responder::receive_datagram(const fabric::Packet& packet, const Payload& payload) {
  const auto op = static_cast<prm::BthOperation>(packet.opcode & 0x1f);
  if (op != prm::BthOperation::send_only && op != prm::BthOperation::send_only_imm) return Answer::none;
  if (packet.qkey != qp_.qkey) return Answer::none;
  ReceiveQueue queue(owner_, qp_, me_, complete_);
  ReceiveWqe wqe;
  if (!queue.current(wqe)) return nothing_posted();
  std::byte header[kGrhBytes];
  network_header(packet, payload.bytes, header);
  PieceList all;
  all.add(nullptr, reinterpret_cast<std::uint64_t>(header), kGrhBytes);
  for (unsigned i = 0; i < payload.pieces->size(); ++i)
    all.add((*payload.pieces)[i].peer, (*payload.pieces)[i].va, (*payload.pieces)[i].length);
  const Payload whole{&all, 0, kGrhBytes + payload.bytes};
  switch (scatter(wqe, 0, whole)) {
    case Scatter::ok:
      break;
    case Scatter::source_fault:
      return Answer::source_fault;
    case Scatter::gone:
      return Answer::none;
    case Scatter::too_long:
      receive_error(wqe, prm::CqeSyndrome::local_length_err, kVendorLocalLength);
      to_error();
      return Answer::none;
    case Scatter::protection:
      receive_error(wqe, prm::CqeSyndrome::local_prot_err, prm::kVendorSyndromeLocalProtection);
      to_error();
      return Answer::none;
  }
  CqeBuffer cqe;
  const auto v = cqe.view();
  const auto carrier = packet.address->carrier;
  v.set<prm::Cqe64::g>(1).set<prm::Cqe64::rqpn>(packet.src_qpn);
  v.set<prm::Cqe64::roce_packet_type>(carrier == fabric::Carrier::roce_v1        ? prm::CqeRocePacket::grh
                                      : carrier == fabric::Carrier::roce_v2_ipv4 ? prm::CqeRocePacket::ipv4
                                                                                 : prm::CqeRocePacket::ipv6);
  v.set<prm::Cqe64::srqn_uidx>(qp_.user_index);
  const bool imm = op == prm::BthOperation::send_only_imm;
  if (imm) v.set<prm::Cqe64::imm_inval_pkey>(packet.immediate);
  v.set<prm::Cqe64::byte_cnt>(static_cast<std::uint32_t>(whole.bytes)).set<prm::Cqe64::qpn>(qp_.qpn);
  v.set<prm::Cqe64::wqe_counter>(wqe.index).set<prm::Cqe64::se>(packet.solicited);
  v.set<prm::Cqe64::opcode>(imm ? prm::CqeOpcode::resp_send_imm : prm::CqeOpcode::resp_send);
  if (!complete_.post(qp_.recv_cq, cqe, packet.solicited)) [[unlikely]]
    lost_completion();
  queue.release();
  return Answer::none;
}

}  // namespace verbena::device
