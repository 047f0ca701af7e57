#include "kernel/counters.h"

#include <algorithm>
#include <cerrno>
#include <string_view>

#include "kernel/command.h"
#include "prm/misc.h"
#include "prm/port.h"

namespace verbena::kernel {
namespace {

using Vport = prm::QueryVportCounterOut;
using Qcounter = prm::QueryQCounterOut;

template <class Field, class... Groups>
std::uint64_t traffic(const prm::ConstView<Vport>& out) {
  return (out.sub<Groups>().template get<Field>() + ...);
}
using Octets = prm::TrafficCounter::octets;
using Packets = prm::TrafficCounter::packets;

// counters/: data is counted in words of 32 bits.
struct VportRow {
  std::string_view name;
  std::uint64_t (*read)(const prm::ConstView<Vport>&);
};
constexpr VportRow kVportRows[] = {
    {"port_rcv_data", [](const auto& o) { return traffic<Octets, Vport::received_ib_unicast, Vport::received_ib_multicast>(o) / 4; }},
    {"port_rcv_packets", traffic<Packets, Vport::received_ib_unicast, Vport::received_ib_multicast>},
    {"port_xmit_data", [](const auto& o) { return traffic<Octets, Vport::transmitted_ib_unicast, Vport::transmitted_ib_multicast>(o) / 4; }},
    {"port_xmit_packets", traffic<Packets, Vport::transmitted_ib_unicast, Vport::transmitted_ib_multicast>},
    {"unicast_rcv_packets", traffic<Packets, Vport::received_ib_unicast>},
    {"unicast_xmit_packets", traffic<Packets, Vport::transmitted_ib_unicast>},
    {"multicast_rcv_packets", traffic<Packets, Vport::received_ib_multicast>},
    {"multicast_xmit_packets", traffic<Packets, Vport::transmitted_ib_multicast>},
    {"port_rcv_errors", traffic<Packets, Vport::received_errors>},
};
// There is nothing on a shared-memory link that these could count.
constexpr std::string_view kAlwaysZero[] = {
    "excessive_buffer_overrun_errors", "link_downed",  "link_error_recovery",     "local_link_integrity_errors",
    "port_rcv_constraint_errors",      "symbol_error", "port_xmit_constraint_errors", "port_rcv_remote_physical_errors",
    "port_rcv_switch_relay_errors",    "port_xmit_discards", "port_xmit_wait", "VL15_dropped"};

// hw_counters/
struct QRow {
  std::string_view name;
  std::uint64_t (*read)(const prm::ConstView<Qcounter>&);
};
template <class Field>
std::uint64_t q(const prm::ConstView<Qcounter>& out) {
  return out.get<Field>();
}
constexpr QRow kQRows[] = {
    {"rx_write_requests", q<Qcounter::rx_write_requests>},
    {"rx_read_requests", q<Qcounter::rx_read_requests>},
    {"rx_atomic_requests", q<Qcounter::rx_atomic_requests>},
    {"out_of_buffer", q<Qcounter::out_of_buffer>},
    {"out_of_sequence", q<Qcounter::out_of_sequence>},
    {"duplicate_request", q<Qcounter::duplicate_request>},
    {"rnr_nak_retry_err", q<Qcounter::rnr_nak_retry_err>},
    {"packet_seq_err", q<Qcounter::packet_seq_err>},
    {"implied_nak_seq_err", q<Qcounter::implied_nak_seq_err>},
    {"local_ack_timeout_err", q<Qcounter::local_ack_timeout_err>},
    {"resp_local_length_error", q<Qcounter::resp_local_length_error>},
    {"resp_cqe_error", q<Qcounter::resp_cqe_error>},
    {"req_cqe_error", q<Qcounter::req_cqe_error>},
    {"req_remote_invalid_request", q<Qcounter::req_remote_invalid_request>},
    {"req_remote_access_errors", q<Qcounter::req_remote_access_errors>},
    {"resp_remote_access_errors", q<Qcounter::resp_remote_access_errors>},
    {"resp_cqe_flush_error", q<Qcounter::resp_cqe_flush_error>},
    {"req_cqe_flush_error", q<Qcounter::req_cqe_flush_error>},
};

}  // namespace

std::vector<std::string_view> hw_counter_names() {
  std::vector<std::string_view> names;
  for (const QRow& row : kQRows) names.push_back(row.name);
  return names;
}

int read_counter(Node& node, const std::string& name, std::uint64_t* value) {
  *value = 0;
  for (const VportRow& row : kVportRows) {
    if (row.name != name) continue;
    Command<prm::QueryVportCounterIn, Vport> query(prm::Opcode::query_vport_counter);
    query.in().set<prm::QueryVportCounterIn::port_num>(1);
    if (int error = query.run(node.device())) return error;
    *value = row.read(query.out());
    return 0;
  }
  for (const QRow& row : kQRows) {
    if (row.name != name) continue;
    Command<prm::QueryQCounterIn, Qcounter> query(prm::Opcode::query_q_counter);
    query.in().set<prm::QueryQCounterIn::counter_set_id>(node.counter_set());
    if (int error = query.run(node.device())) return error;
    *value = row.read(query.out());
    return 0;
  }
  return std::ranges::find(kAlwaysZero, name) != std::end(kAlwaysZero) ? 0 : ENOENT;
}

}  // namespace verbena::kernel
