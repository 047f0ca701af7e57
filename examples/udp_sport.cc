// Changes the UDP source port of a RoCE v2 queue pair in three ways, and sends a message before and after each: by the
// library's call, by the raw command that the call is made of, and by the same command in C++. Read the ports in a
// capture:
//
//   verbena run --host a -- build/dev/bin/examples/udp_sport &
//   verbena run --host b --capture ports.pcapng -- build/dev/bin/examples/udp_sport localhost
//   tshark -r ports.pcapng -T fields -e udp.srcport -e infiniband.bth.opcode
//
// A switch that spreads flows over links looks at this port: changing it moves the queue pair to another way.
// The program uses the public interfaces alone and runs on a ConnectX as well.
#include "peers.h"

namespace prm = verbena::prm;

namespace {

// 1. The call of direct verbs.
void by_the_call(verbena::Qp& qp) {
  if (const int error = mlx5dv_modify_qp_udp_sport(qp.get(), 0xc222))
    throw verbena::Error("mlx5dv_modify_qp_udp_sport", error);
}

// A command is a block of big-endian words; a field is named by the byte offset of its word and its lowest bit.
void put(std::uint8_t* box, unsigned word, unsigned low_bit, std::uint32_t value) {
  std::uint32_t now;
  std::memcpy(&now, box + word, 4);
  now = htobe32(be32toh(now) | value << low_bit);
  std::memcpy(box + word, &now, 4);
}

// 2. The same as one command: RTS2RTS_QP changes a queue pair that is ready to send and leaves it so.
void by_the_command(verbena::Qp& qp) {
  constexpr unsigned kRts2Rts = 0x505;
  constexpr unsigned kQpc = 0x18;             // the queue pair context in the request
  constexpr unsigned kPath = kQpc + 0x18;     // its primary address path
  constexpr unsigned kOptMask95To32 = 0x108;  // which fields are to change, second part
  constexpr std::uint32_t kUdpSport = 1 << 2;
  std::uint8_t in[0x110] = {}, out[0x10] = {};
  put(in, 0x00, 16, kRts2Rts);
  put(in, 0x08, 0, qp.number());
  put(in, kPath + 0x20, 0, 0xc333);
  put(in, kOptMask95To32 + 4, 0, kUdpSport);
  if (mlx5dv_devx_qp_modify(qp.get(), in, sizeof in, out, sizeof out) != 0) {
    std::uint32_t syndrome;
    std::memcpy(&syndrome, out + 4, 4);
    std::fprintf(stderr, "refused: status 0x%x, syndrome 0x%x\n", out[0], be32toh(syndrome));
    std::exit(1);
  }
}

// 3. The command in named fields. A field that RTS2RTS_QP has not does not compile; a refusal throws with its reason.
void by_the_named_command(verbena::Qp& qp) {
  using In = prm::Rts2rtsQpIn;
  verbena::Command<In> change;
  change.set<In::opt_param_mask_95_32>(prm::QpExtOptParam::udp_sport);
  change.sub<In::qpc>().sub<prm::Qpc::primary_address_path>().set<prm::Ads::udp_sport>(0xc444);
  qp.modify(change);
}

// One message from the sending process to the other.
void message(const example::Peers& peers, example::Connection& connection, const char* how) {
  if (!peers.sends()) connection.post_recv();
  peers.meet();
  if (peers.sends()) connection.post_send(how);
  connection.wait();
  if (!peers.sends()) std::printf("\"%s\" arrived\n", connection.data());
  std::fflush(stdout);
}

void run(const example::Peers& peers) {
  const verbena::Context context;
  const verbena::Pd pd(context);
  example::Connection connection(context, pd);
  connection.connect(peers);
  message(peers, connection, "as connected");
  if (peers.sends()) by_the_call(connection.qp());
  message(peers, connection, "mlx5dv_modify_qp_udp_sport");
  if (peers.sends()) by_the_command(connection.qp());
  message(peers, connection, "RTS2RTS_QP by hand");
  if (peers.sends()) by_the_named_command(connection.qp());
  message(peers, connection, "RTS2RTS_QP in named fields");
  peers.meet();
}

}  // namespace

int main(int argc, char** argv) { return example::main(argc, argv, run); }
