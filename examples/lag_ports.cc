// Spreads queue pairs over the two ports of a bonded NIC and shows by which port each sends; then a port fails, and its
// queue pairs send by the other.
//
//   verbena run --host a -- build/dev/bin/examples/lag_ports &
//   verbena run --host b --capture lag.pcapng -- build/dev/bin/examples/lag_ports localhost
//   verbena port --host b mlx5_0 2 down        when it asks for it
//   tshark -r lag.pcapng -T fields -e frame.interface_name -e infiniband.bth.destqp
#include <memory>

#include "peers.h"

namespace {

constexpr unsigned kQueuePairs = 4;
using Connections = std::vector<std::unique_ptr<example::Connection>>;

// One message on each queue pair.
void messages(const example::Peers& peers, Connections& all) {
  for (auto& connection : all) {
    if (!peers.sends()) connection->post_recv();
    peers.meet();
    if (peers.sends()) connection->post_send("by which port?");
    connection->wait();
  }
}

void show(Connections& all) {
  for (auto& connection : all) {
    const auto port = connection->qp().lag_port();
    std::printf("QP 0x%06x: port %u, sends by port %u\n", connection->qp().number(), port.configured, port.active);
  }
}

// Waits until port 2 no longer does its own work.
void wait_for_failure(example::Connection& connection) {
  std::printf("take port 2 down: verbena port --host HOST mlx5_0 2 down\n");
  std::fflush(stdout);
  while (connection.qp().lag_port().active == 2) usleep(10000);
}

void run(const example::Peers& peers) {
  const verbena::Context context;
  const verbena::Pd pd(context);
  Connections all;
  for (unsigned i = 0; i < kQueuePairs; ++i) {
    all.push_back(std::make_unique<example::Connection>(context, pd));
    all.back()->connect(peers);
    all.back()->qp().set_lag_port(static_cast<std::uint8_t>(i % 2 + 1));
  }
  if (peers.sends()) show(all);
  messages(peers, all);
  if (peers.sends()) wait_for_failure(*all[1]);
  if (peers.sends()) show(all);
  messages(peers, all);
  std::printf("all messages arrived\n");
  peers.meet();
}

}  // namespace

int main(int argc, char** argv) { return example::main(argc, argv, run); }
