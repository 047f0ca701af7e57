// Calls of mlx5dv whose effect is in the frames: UDP source ports, and the port of the bond that a queue pair sends by.
// The program reads the capture that it makes the device write.
#include <fcntl.h>
#include <sys/stat.h>

#include "ethernet.h"

namespace {

struct Packet {
  unsigned port;  // that it left by
  std::vector<std::uint8_t> bytes;
  std::uint16_t be16(std::size_t at) const { return static_cast<std::uint16_t>(bytes[at] << 8 | bytes[at + 1]); }
};

// A pcapng file of this machine's byte order, whose interfaces are ports: their names end in the port's number.
class Capture {
 public:
  Capture() {
    CHECK((fd_ = mkstemp(path_)) >= 0);
    setenv("VERBENA_CAPTURE", path_, 1);
  }
  ~Capture() {
    close(fd_);
    unlink(path_);
  }
  Capture(const Capture&) = delete;
  Capture& operator=(const Capture&) = delete;
  // What was captured since the last call.
  std::vector<Packet> take() {
    constexpr std::uint32_t interface_description = 1, enhanced_packet = 6;
    std::vector<Packet> packets;
    std::uint32_t head[7];
    while (pread(fd_, head, 8, at_) == 8) {
      const std::uint32_t length = head[1];
      CHECK(length >= 12 && length % 4 == 0);
      if (head[0] == enhanced_packet) {
        CHECK(pread(fd_, head, sizeof head, at_) == sizeof head && head[5] <= length);
        CHECK(head[2] < ports_.size());
        Packet packet{ports_[head[2]], std::vector<std::uint8_t>(head[5])};
        CHECK(pread(fd_, packet.bytes.data(), head[5], at_ + static_cast<off_t>(sizeof head)) == static_cast<ssize_t>(head[5]));
        packets.push_back(std::move(packet));
      } else if (head[0] == interface_description) {
        struct {
          std::uint16_t code, bytes;
          char text[256];
        } name;
        CHECK(pread(fd_, &name, sizeof name, at_ + 16) > 4 && name.code == 2 && name.bytes && name.bytes < sizeof name.text);
        ports_.push_back(static_cast<unsigned>(name.text[name.bytes - 1] - '0'));
      }
      at_ += length;
    }
    return packets;
  }

 private:
  char path_[32] = "/tmp/verbena-wire-XXXXXX";
  int fd_ = -1;
  off_t at_ = 0;
  std::vector<unsigned> ports_;
};

// RoCE v2 over IPv6: where the headers are.
constexpr std::size_t kUdp = 14 + 40, kBth = kUdp + 8;
bool is_request_to(const Packet& p, std::uint32_t qpn) {
  if (p.bytes.size() < kBth + 12 || p.be16(12) != 0x86dd || p.bytes[20] != 17 || p.be16(kUdp + 2) != 4791) return false;
  const std::uint32_t to = static_cast<std::uint32_t>(p.bytes[kBth + 5] << 16 | p.bytes[kBth + 6] << 8 | p.bytes[kBth + 7]);
  return to == qpn && p.bytes[kBth] == 0x04;  // RC SEND only
}

struct Pair : ConnectedPair {
  using ConnectedPair::ConnectedPair;
  void send() {
    ibv_sge sge = {reinterpret_cast<std::uintptr_t>(data), 8, mr->lkey};
    ibv_recv_wr receive = {}, *bad_receive;
    receive.sg_list = &sge;
    receive.num_sge = 1;
    CHECK(!ibv_post_recv(b, &receive, &bad_receive));
    ibv_send_wr wr = {}, *bad;
    wr.sg_list = &sge;
    wr.num_sge = 1;
    wr.opcode = IBV_WR_SEND;
    wr.send_flags = IBV_SEND_SIGNALED;
    CHECK(!ibv_post_send(a, &wr, &bad));
    for (int i = 0; i < 2; ++i) CHECK(next_wc(cq).status == IBV_WC_SUCCESS);
  }
  // The packet of one message.
  Packet sent(Capture& capture) {
    capture.take();
    send();
    for (Packet& p : capture.take())
      if (is_request_to(p, b->qp_num)) return std::move(p);
    CHECK(!"a packet in the capture");
    return {};
  }
};

// Linux' rule for a port that nobody chose: of the numbers of both queue pairs where there is no flow label.
std::uint16_t derived_port(std::uint32_t own, std::uint32_t peer) {
  std::uint64_t v = std::uint64_t{own} * peer;
  v ^= v >> 20;
  v ^= v >> 40;
  const auto label = static_cast<std::uint32_t>(v & 0xfffff);
  return static_cast<std::uint16_t>(((label & 0x3fff) ^ (label & 0xfc000) >> 14) | 0xc000);
}

void source_ports(World* w, Capture& capture) {
  Pair p(w);
  const std::uint16_t derived = derived_port(p.a->qp_num, p.b->qp_num);
  EXPECT(p.sent(capture).be16(kUdp) == derived, "before: the derived port");
  for (const std::uint16_t port : {50000, 0xffff, 1, 0}) {
    CHECK(!mlx5dv_modify_qp_udp_sport(p.a, port));
    const std::uint16_t got = p.sent(capture).be16(kUdp), due = port ? port : derived;
    EXPECT(got == due, "%u, not %u", got, due);
    QueryQp query(prm::Opcode::query_qp);
    query.in.set<prm::QueryQpIn::qpn>(p.a->qp_num);
    CHECK(!mlx5dv_devx_qp_query(p.a, query.in.data(), query.in.size(), query.out.data(), query.out.size()));
    const auto path = query.out.sub<prm::QueryQpOut::qpc>().sub<prm::Qpc::primary_address_path>();
    EXPECT(path.get<prm::Ads::udp_sport>() == port, "the context has %u", static_cast<unsigned>(path.get<prm::Ads::udp_sport>()));
  }
}

void bond_ports(World* w, Capture& capture) {
  Pair p(w);
  for (const std::uint8_t port : {1, 2, 1}) {
    CHECK(!mlx5dv_modify_qp_lag_port(p.a, port));
    EXPECT(p.sent(capture).port == port, "a connected queue pair leaves by port %u", port);
  }
  Side side;
  const auto frame = make_frame(kOther, 7, 7777);
  for (const std::uint8_t port : {2, 1, 2}) {
    CHECK(!mlx5dv_modify_qp_lag_port(side.qp, port));
    capture.take();
    CHECK(!side.send(frame));
    unsigned seen = 0;
    for (const Packet& packet : capture.take())
      if (packet.bytes.size() >= frame.size() && std::equal(frame.begin(), frame.end(), packet.bytes.begin())) {
        ++seen;
        EXPECT(packet.port == port, "a raw packet queue pair leaves by port %u", port);
      }
    EXPECT(seen == 1, "%u frames", seen);
  }
}

}  // namespace

int main() {
  Capture capture;
  World w = open_devx();
  source_ports(&w, capture);
  bond_ports(&w, capture);
  close_world(&w);
  if (failures) return 1;
  puts("ok");
  return 0;
}
